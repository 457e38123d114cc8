//! Examples of every kind for the page.

use serde::Serialize;

/// An example.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// Kind: `history`, `litmus`, `protocol` or `model`.
    pub kind: &'static str,
    /// Heading under which it is listed.
    pub group: &'static str,
    /// Name in the list.
    pub title: &'static str,
    /// Ids of the models; for `model` the one to compare with.
    pub models: &'static [&'static str],
    /// Object, for histories of calls.
    pub object: &'static str,
    /// Text.
    pub text: &'static str,
}

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("../assets/examples/", $name))
    };
}

const fn history(
    group: &'static str,
    title: &'static str,
    models: &'static [&'static str],
    text: &'static str,
) -> Example {
    Example { kind: "history", group, title, models, object: "", text }
}

static EXAMPLES: &[Example] = &[
    history("Registers", "Message passing", &["cc", "sc"], text!("message-passing.hist")),
    history("Registers", "Store buffering", &["tso", "sc"], text!("store-buffering.hist")),
    history(
        "Registers",
        "Independent reads",
        &["ccv", "tso", "sc"],
        text!("independent-reads.hist"),
    ),
    history("Transactions", "Lost update", &["rc", "si", "ser"], text!("lost-update.hist")),
    history("Transactions", "Write skew", &["si", "ser"], text!("write-skew.hist")),
    history("Transactions", "Long fork", &["psi", "si"], text!("long-fork.hist")),
    Example {
        object: "queue",
        ..history("Objects", "A queue out of order", &["linearizability"], text!("queue.hist"))
    },
    Example {
        object: "queue",
        ..history("Objects", "A queue in order", &["linearizability"], text!("queue-fine.hist"))
    },
    Example {
        object: "counter",
        ..history(
            "Objects",
            "A lost update of a counter",
            &["linearizability"],
            text!("counter.hist"),
        )
    },
    Example {
        object: "map",
        ..history(
            "Objects",
            "A weak size of a map",
            &["linearizability", "causal-convergence", "happens-before-visibility"],
            text!("map-size.hist"),
        )
    },
    Example {
        kind: "litmus",
        ..history("Litmus tests", "SB: store buffering", &["sc", "tso"], text!("sb.litmus"))
    },
    Example {
        kind: "litmus",
        ..history("Litmus tests", "MP: message passing", &["tso", "pso"], text!("mp.litmus"))
    },
    Example {
        kind: "litmus",
        ..history("Litmus tests", "IRIW", &["tso", "rmo"], text!("iriw.litmus"))
    },
    Example {
        kind: "litmus",
        ..history(
            "Litmus tests",
            "MP of AArch64, with a fence and a branch",
            &["sc", "aarch64"],
            text!("mp-aarch64.litmus"),
        )
    },
    Example {
        kind: "protocol",
        ..history("Protocols", "MSI without an invalidation", &[], text!("msi-missing.m"))
    },
    Example { kind: "protocol", ..history("Protocols", "Serial memory", &[], text!("serial.m")) },
    Example { kind: "model", ..history("Models", "Per-key order", &["sc"], text!("per-key.cat")) },
    Example {
        kind: "model",
        ..history("Models", "Causal consistency, by hand", &["cc"], text!("causal.cat"))
    },
    Example {
        kind: "model",
        ..history("Models", "An isolation level, by hand", &["tcc"], text!("level.cat"))
    },
];

/// Returns the examples.
pub fn examples() -> &'static [Example] {
    EXAMPLES
}

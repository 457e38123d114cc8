//! Writes a gallery of drawings into a folder: `cargo run --example gallery -- FOLDER`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;

use consistory_draw::{DrawOptions, Plot, Series, explain, history_svg, line_plot};
use consistory_history::History;
use consistory_verdict::{Certificate, Judgement};
use support::{cycle, history, op, ring, violation};

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: gallery FOLDER");
        std::process::exit(2);
    };
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for (name, model, history, judgement) in histories() {
        let options = DrawOptions { model: model.into(), ..DrawOptions::default() };
        std::fs::write(
            folder.join(name).with_extension("svg"),
            history_svg(&history, &judgement, &options),
        )?;
        std::fs::write(
            folder.join(name).with_extension("txt"),
            explain(&history, model, &judgement, &[]),
        )?;
    }
    std::fs::write(folder.join("plot.svg"), plot())
}

fn histories() -> Vec<(&'static str, &'static str, History, Judgement)> {
    let mut found = Vec::new();

    let h = history("t0: w(x,1) w(y,1)\nt1: r(y,1) r(x,0)");
    let j = violation("WriteCOInitRead", cycle(&h, MESSAGE_PASSING));
    found.push(("message-passing", "cc", h, j));

    let h = history("t0: w(x,1) r(x,2)\nt1: w(x,2) r(x,1)");
    let j = violation("CyclicCF", cycle(&h, CROSSED));
    found.push(("convergence", "ccv", h, j));

    let h = history(
        "alice: w(x,1) w(y,1)\nbob: r(x,1) w(x,2) w(z,1)\ncarol: r(z,1) r(y,0)\ndave: r(y,1) r(x,1) r(z,1) r(x,1)",
    );
    let j = violation("WriteCORead", cycle(&h, OVERWRITTEN));
    found.push(("overwritten", "cc", h, j));

    let h = history("t0: w(z,1) w(x,1) w(y,1)\nt1: w(x,2) r(z,0) r(y,1) r(x,2)");
    let j = violation("WriteHBInitRead", seen_by(cycle(&h, HIDDEN_INITIAL), op(&h, "t1:3")));
    found.push(("memory-initial", "cm", h, j));

    let h = history(
        "t0: w(z,1) w(x,1) w(a,1)\nt1: r(a,1) w(y,1)\nt2: w(x,2) w(z,2) r(y,1) r(x,2) r(z,1)",
    );
    let j = violation("CyclicHB", seen_by(cycle(&h, NESTED), op(&h, "t2:4")));
    found.push(("memory", "cm", h, j));

    let h = large();
    let j = violation("WriteCORead", cycle(&h, LARGE));
    found.push(("large", "cc", h, j));

    let h = history("t0: w(x,1) r(y,0)\nt1: w(y,1) r(z,0)\nt2: w(z,1) r(x,0)");
    let j = violation("acyclic po | wr | ww | rw", cycle(&h, BUFFERS));
    found.push(("store-buffers", "sc", h, j));

    let h = history(
        "t0: w(x,1) r(y,0)\nt1: w(y,1) r(x,0)\nt2: r(x,1) r(y,0)\nt3: r(y,1) r(x,0) r(x,1)",
    );
    let order = h.ops().collect();
    found.push((
        "consistent",
        "cc",
        h,
        Judgement::Consistent(Certificate::Order { order, wr: vec![] }.into()),
    ));

    let h = history("t0: w(x,1)\nt1: w(x,2)\nt2: r(x,1) r(x,2)\nt3: r(x,2) r(x,1)");
    let branches = Box::new([cycle(&h, FIRST_CASE), cycle(&h, SECOND_CASE)]);
    let writes = [op(&h, "t0:0"), op(&h, "t1:0")];
    let j = violation("acyclic po | wr | ww | rw", Certificate::SplitOrder { writes, branches });
    found.push(("cases", "sc", h, j));

    let h = history("writer: w(x,1)\nreader: r(x,1) r(x,7)");
    let read = op(&h, "reader:1");
    found.push(("thin-air", "cc", h, violation("ThinAirRead", Certificate::ThinAirRead { read })));

    let (h, j) = ring(40);
    found.push(("ring", "cc", h, j));
    let (h, j) = ring(5);
    found.push(("small-ring", "cc", h, j));

    let h = history(
        "t0: w(x,1) w(y,1) w(z,3) w(t,1)\nt1: w(u,2) w(v,2) w(z,4) w(s,2)\nt2: r(t,1) w(u,4) w(a,3)\nt3: r(t,1) w(v,4) w(b,4)\nt4: r(s,2) w(x,3) w(c,5)\nt5: r(s,2) w(y,3) w(d,6)\nt6: r(a,3) r(v,2)\nt7: r(b,4) r(u,2)\nt8: r(c,5) r(y,1)\nt9: r(d,6) r(x,1)",
    );
    let writes = [op(&h, "t0:2"), op(&h, "t1:2")];
    let branches = Box::new([cycle(&h, ZIGZAG_FIRST), cycle(&h, ZIGZAG_SECOND)]);
    let j = violation("acyclic po | wr | ww | rw", Certificate::SplitOrder { writes, branches });
    found.push(("zigzag", "sc", h, j));
    found
}

fn seen_by(certificate: Certificate, observer: consistory_history::OpId) -> Certificate {
    match certificate {
        Certificate::Cycle { edges, check, .. } => {
            Certificate::Cycle { edges, observer: Some(observer), check }
        }
        other => other,
    }
}

const MESSAGE_PASSING: &str = "
t0:0 po t0:1
t0:1 wr t1:0
t1:0 po t1:1
t1:1 rw t0:0
  init:x wr t1:1
  init:x po t0:0";

const CROSSED: &str = "
t0:0 cf t1:0
  t0:0 po t0:1
  t1:0 wr t0:1
t1:0 cf t0:0
  t1:0 po t1:1
  t0:0 wr t1:1";

const OVERWRITTEN: &str = "
bob:1 po bob:2
bob:2 wr dave:2
dave:2 po dave:3
dave:3 rw bob:1
  alice:0 wr dave:3
  alice:0 wr bob:0
  bob:0 po bob:1";

const HIDDEN_INITIAL: &str = "
t0:0 hb init:z
  t0:0 po t0:1
  t0:1 hb t1:0
    t0:1 po t0:2
    t0:2 wr t1:2
    t1:2 po t1:3
    t1:0 wr t1:3
  t1:0 po t1:1
  init:z wr t1:1
init:z po t0:0";

const NESTED: &str = "
t0:0 po t0:1
t0:1 hb t2:0
  t0:1 po t0:2
  t0:2 wr t1:0
  t1:0 po t1:1
  t1:1 wr t2:2
  t2:2 po t2:3
  t2:0 wr t2:3
t2:0 po t2:1
t2:1 hb t0:0
  t2:1 po t2:4
  t0:0 wr t2:4";

const LARGE: &str = "
client3:612 po client3:640
client3:640 wr client1:300
client1:300 po client1:302
client1:302 rw client3:612
  client0:41 wr client1:302
  client0:41 po client0:77
  client0:77 wr client3:500
  client3:500 po client3:612";

const BUFFERS: &str = "
t0:0 po t0:1
t0:1 rw t1:0
  init:y wr t0:1
  init:y ww t1:0
t1:0 po t1:1
t1:1 rw t2:0
  init:z wr t1:1
  init:z ww t2:0
t2:0 po t2:1
t2:1 rw t0:0
  init:x wr t2:1
  init:x ww t0:0";

const FIRST_CASE: &str = "
t1:0 wr t3:0
t3:0 po t3:1
t3:1 rw t1:0
  t0:0 wr t3:1
  t0:0 ww t1:0";

const SECOND_CASE: &str = "
t0:0 wr t2:0
t2:0 po t2:1
t2:1 rw t0:0
  t1:0 wr t2:1
  t1:0 ww t0:0";

const ZIGZAG_FIRST: &str = "
t4:1 po t4:2
t4:2 wr t8:0
t8:0 po t8:1
t8:1 rw t5:1
  t0:1 wr t8:1
  t0:1 po t0:2
  t0:2 ww t1:2
  t1:2 po t1:3
  t1:3 wr t5:0
  t5:0 po t5:1
t5:1 po t5:2
t5:2 wr t9:0
t9:0 po t9:1
t9:1 rw t4:1
  t0:0 wr t9:1
  t0:0 po t0:2
  t0:2 ww t1:2
  t1:2 po t1:3
  t1:3 wr t4:0
  t4:0 po t4:1";

const ZIGZAG_SECOND: &str = "
t2:1 po t2:2
t2:2 wr t6:0
t6:0 po t6:1
t6:1 rw t3:1
  t1:1 wr t6:1
  t1:1 po t1:2
  t1:2 ww t0:2
  t0:2 po t0:3
  t0:3 wr t3:0
  t3:0 po t3:1
t3:1 po t3:2
t3:2 wr t7:0
t7:0 po t7:1
t7:1 rw t2:1
  t1:0 wr t7:1
  t1:0 po t1:2
  t1:2 ww t0:2
  t0:2 po t0:3
  t0:3 wr t2:0
  t2:0 po t2:1";

/// Builds a history of six clients with about seven hundred operations each.
fn large() -> History {
    let mut text = String::new();
    for client in 0..6 {
        let op = |i: usize| match (client, i) {
            (0, 41) => "w(balance,100)".into(),
            (0, 77) => "w(flag,1)".into(),
            (3, 500) => "r(flag,1)".into(),
            (3, 612) => "w(balance,250)".into(),
            (3, 640) => "w(done,1)".into(),
            (1, 300) => "r(done,1)".into(),
            (1, 302) => "r(balance,100)".into(),
            _ if i.is_multiple_of(3) => format!("r(k{client},{})", i.saturating_sub(1)),
            _ => format!("w(k{client},{i})"),
        };
        let ops: Vec<String> = (0..700).map(op).collect();
        text += &format!("client{client}: {}\n", ops.join(" "));
    }
    history(&text)
}

fn plot() -> String {
    let names = ["cc", "ccv", "cm", "ccm", "wsc", "sc", "sc, enumeration", "tso, enumeration"];
    let series = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let power = 1.0 + i as f64 * 0.4;
            let cut = if i < 6 { 600 } else { 300 };
            let points = (100..=cut)
                .step_by(50)
                .map(|n| {
                    (
                        f64::from(n),
                        1e-4 * (f64::from(n) / 100.0).powf(power) * 2.2f64.powi(i as i32),
                    )
                })
                .map(|(x, y)| if i < 6 { (x, y) } else { (x, y * (x / 60.0).exp()) })
                .collect();
            Series { name: (*name).into(), points, missing: (i >= 6).then(|| "out of time".into()) }
        })
        .collect();
    line_plot(&Plot {
        title: "Time to decide a history of eight sessions".into(),
        x_label: "operations".into(),
        y_label: "seconds".into(),
        log_x: false,
        log_y: true,
        series,
    })
}

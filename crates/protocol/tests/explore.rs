//! Small descriptions, one per feature of the language, and the numbers of their states.
//!
//! The numbers of descriptions that Rumur 2022.08 accepts are the same as Rumur's. The first line
//! of a description contains the expected numbers: states, rules fired and depth without symmetry,
//! and states with symmetry. Some constants may be changed so that the test is fast.

use std::path::Path;

use consistory_protocol::{Exploration, Explorer, Model, Options, Outcome, Unfinished, Violation};
use consistory_verdict::{Budget, Stopped};

fn run(text: &str, options: &Options) -> Exploration {
    let model = Model::parse("test.m", text).unwrap_or_else(|errors| panic!("{errors}"));
    Explorer::new(&model.plain()).options(options.clone()).run().unwrap()
}

fn with(symmetry: bool, jobs: usize) -> Options {
    Options { symmetry, jobs, ..Options::default() }
}

fn models() -> impl Iterator<Item = (String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    })
}

/// Parses the numbers of `-- expect: states 5, fired 8, ...`.
fn expected(name: &str, text: &str) -> [u64; 4] {
    let line = text.lines().next().and_then(|line| line.strip_prefix("-- expect: "));
    let line = line.unwrap_or_else(|| panic!("{name} does not say what is expected of it"));
    let number = |key: &str| {
        let part = line.split(", ").find_map(|part| part.strip_prefix(key));
        part.unwrap_or_else(|| panic!("{name}: {key}")).trim().parse().unwrap()
    };
    ["states", "fired", "depth", "reduced"].map(number)
}

#[test]
fn models_have_the_expected_number_of_states() {
    for (name, text) in models() {
        let [states, fired, depth, reduced] = expected(&name, &text);
        if states > 100_000 && std::env::var_os("LARGE").is_none() {
            continue;
        }
        for jobs in [1, 3] {
            let full = run(&text, &with(false, jobs));
            assert!(matches!(full.outcome, Outcome::Holds), "{name}: {:?}", full.outcome);
            let found = &full.progress;
            assert_eq!(
                (found.states, found.fired, u64::from(found.depth)),
                (states, fired, depth),
                "{name} with {jobs} threads"
            );
            let small = run(&text, &with(true, jobs));
            assert!(matches!(small.outcome, Outcome::Holds), "{name}: {:?}", small.outcome);
            assert_eq!(small.progress.states, reduced, "{name}, reduced, with {jobs} threads");
            assert_eq!(small.progress.depth, full.progress.depth, "{name}");
        }
    }
}

/// German's protocol with fewer clients and values: the numbers of states without and with
/// symmetry.
#[test]
fn a_directory_protocol_of_any_size_is_explored() {
    let (_, text) = models().find(|(name, _)| name == "german").unwrap();
    for (clients, values, full, reduced) in
        [(2, 1, 1461, 735), (2, 2, 3390, 852), (3, 1, 27_513, 4947), (3, 2, 58_104, 5235)]
    {
        let text = text
            .replace("CLIENTS: 4", &format!("CLIENTS: {clients}"))
            .replace("VALUES: 2", &format!("VALUES: {values}"));
        assert_eq!(run(&text, &with(false, 2)).progress.states, full, "{clients}, {values}");
        assert_eq!(run(&text, &with(true, 2)).progress.states, reduced, "{clients}, {values}");
    }
}

/// Checks which violation a description has, and after how many steps, with and without symmetry.
fn goes_wrong(text: &str, message: &str, steps: usize) {
    for symmetry in [false, true] {
        let found = run(text, &with(symmetry, 2));
        let Outcome::Violated { violation, run } = found.outcome else {
            panic!("{text}: {:?}", found.outcome);
        };
        let shown = match violation {
            Violation::Fault { fault, .. } => format!("{}: {}", fault.position, fault.kind),
            Violation::Invariant { name, position, fault } => match fault {
                Some(fault) => format!("{position}: {name}: {}", fault.kind),
                None => format!("{position}: {name}"),
            },
            Violation::Deadlock => "deadlock".to_owned(),
            Violation::Rejected { .. } | Violation::Graph { .. } => "rejected".to_owned(),
        };
        assert_eq!((shown.as_str(), run.steps.len() - 1), (message, steps), "{text}");
    }
}

#[test]
fn what_goes_wrong_is_found_by_a_shortest_run() {
    let counter = "var x: 0..3; startstate begin x := 0; end;\n";
    let up = "rule \"up\" x < 3 ==> x := x + 1; end;\n";
    let text = |more: &str| format!("{counter}{up}{more}");
    goes_wrong(&text(""), "deadlock", 3);
    goes_wrong(&text("rule x = 2 ==> end; rule x = 3 ==> x := 3; end;"), "deadlock", 3);
    goes_wrong(&text("invariant \"small\" x != 2;"), "test.m:3:1: small", 2);
    goes_wrong(
        &text("rule x = 1 ==> assert x = 2 \"no\"; end;"),
        "test.m:3:16: assertion failed: no",
        2,
    );
    goes_wrong(
        &text("rule x = 1 ==> assert x = 2; end;"),
        "test.m:3:16: assertion failed: x = 2",
        2,
    );
    goes_wrong(&text("rule x = 3 ==> error \"full\"; end;"), "test.m:3:16: error: full", 4);
    goes_wrong(
        &text("rule x = 2 ==> x := x * 2; end;"),
        "test.m:3:21: the value of `x * 2` is not in `0..3`",
        3,
    );
    goes_wrong(&text("rule x = 1 ==> x := 1 / (x - 1); end;"), "test.m:3:21: division by 0", 2);
    goes_wrong(&text("rule x = 1 ==> undefine x; end;"), "test.m:2:11: `x` is undefined", 3);
    goes_wrong(
        &text("rule x = 1 ==> while true do x := x; end; end;"),
        "test.m:3:16: the loop went on for more than 1000 rounds",
        2,
    );
    goes_wrong("var x: 0..1; startstate x := x; end;", "test.m:1:30: `x` is undefined", 0);
    goes_wrong(
        "type T: 0..1; var a: array [T] of T; startstate a[0] := 0; end;\n\
         rule a[0] = 0 ==> a[0] := 1; end; rule a[0] = 1 ==> a[a[0] + 1] := 0; end;",
        "test.m:2:55: the value of `a[0] + 1` is not in `T`",
        2,
    );
    goes_wrong(
        "var m: multiset [1] of 0..1; startstate undefine m; end; rule begin multisetadd(0, m); end;",
        "test.m:1:69: the multiset is full: it can hold 1 elements",
        2,
    );
    goes_wrong(
        "var x: 0..1; function f(): 0..1; begin if x = 1 then return 0; end; end;\n\
         startstate x := 0; end; rule begin x := f(); end;",
        "test.m:1:23: the function `f` ends without `return`",
        1,
    );
    goes_wrong(
        "type P: scalarset(3); var on: array [P] of boolean;\n\
         startstate for p: P do on[p] := false; end; end;\n\
         ruleset p: P do rule !on[p] ==> on[p] := true; end; end;\n\
         invariant \"not all\" exists p: P do !on[p] end;",
        "test.m:4:1: not all",
        3,
    );
}

#[test]
fn a_run_shows_what_changes_and_what_is_printed() {
    let text = "type P: scalarset(2); var x: array [P] of 0..2;\n\
        startstate for p: P do x[p] := 0; end; end;\n\
        ruleset p: P do rule \"up\" x[p] < 2 ==> x[p] := x[p] + 1; put \"now \"; put x[p]; end; end;\n\
        invariant \"less\" !exists p: P do x[p] = 2 end;";
    let Outcome::Violated { run, .. } = run(text, &with(true, 1)).outcome else { panic!() };
    let shown: Vec<String> = run
        .steps
        .iter()
        .zip(&run.steps[1..])
        .map(|(before, step)| {
            let changes = step.changes(before);
            let changes: Vec<String> = changes
                .map(|(old, new)| format!("{}: {:?} {:?}", new.name, old.value, new.value))
                .collect();
            format!("{} | {} | {}", step.rule, step.printed, changes.join(", "))
        })
        .collect();
    let [first, second] = &shown[..] else { panic!("{shown:?}") };
    let of = |p: u32, n: u32| {
        format!("up (p=P_{p}) | now {n} | x[P_{p}]: Some(\"{}\") Some(\"{n}\")", n - 1)
    };
    assert!((1..=2).any(|p| *first == of(p, 1) && *second == of(p, 2)), "{shown:?}");
}

#[test]
fn a_limit_of_states_ends_undecided() {
    let (_, text) = models().find(|(name, _)| name == "german").unwrap();
    let options = Options { states: Some(10_000), ..with(false, 2) };
    let found = run(&text, &options);
    assert!(matches!(found.outcome, Outcome::Undecided { .. }));
    assert!(found.progress.states > 10_000 && found.progress.expanded > 0);
}

/// A thousand parts per state and a thousand successors per state: together they exceed the budget.
#[test]
fn a_memory_budget_ends_undecided() {
    let text = "var x: array [0..999] of 0..1000; startstate clear x; end;\n\
                ruleset i: 0..999 do rule x[i] < 1000 ==> x[i] := x[i] + 1; end; end;";
    let model = Model::parse("test.m", text).unwrap();
    for bytes in [1 << 10, 1 << 20, 8 << 20] {
        let budget = Budget::unlimited().with_memory(bytes);
        let system = model.plain();
        let explorer = Explorer::new(&system).options(with(true, 2)).budget(budget);
        let found = explorer.run().unwrap();
        let Outcome::Undecided { reason } = found.outcome else { panic!("{:?}", found.outcome) };
        assert!(matches!(reason, Unfinished::Budget(Stopped::Memory { .. })), "{reason}");
    }
}

#[test]
fn hash_compaction_finds_the_same_states_and_runs() {
    let (_, text) = models().find(|(name, _)| name == "german").unwrap();
    let text = text.replace("CLIENTS: 4", "CLIENTS: 3");
    for symmetry in [false, true] {
        let exact = run(&text, &with(symmetry, 2));
        let compact = run(&text, &Options { compaction: true, ..with(symmetry, 2) });
        assert_eq!(compact.progress.states, exact.progress.states);
        assert_eq!(compact.progress.fired, exact.progress.fired);
        assert!(compact.omission.is_some_and(|p| p > 0.0 && p < 1e-9) && exact.omission.is_none());
        let broken = text.replace("sharers[c] := true;", "");
        let [exact, compact] = [false, true].map(|compaction| {
            let found = run(&broken, &Options { compaction, ..with(symmetry, 2) });
            let Outcome::Violated { violation, run } = found.outcome else { panic!() };
            (format!("{violation:?}"), run)
        });
        assert_eq!(exact, compact);
    }
}

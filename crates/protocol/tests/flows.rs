//! Data and its labels flow through every construct of the language.

use consistory_protocol::tracking::{Companion, Effect, Operation, Rejected, Renaming, Source};
use consistory_protocol::{Explorer, Model, Options, Outcome};

/// A companion that remembers for each location whether it holds the last store, and requires that
/// every load returns it.
struct Latest {
    locations: usize,
}

/// Contents of a location.
const NOTHING: u8 = 0;
const OLD: u8 = 1;
const LATEST: u8 = 2;

impl Latest {
    fn follow(&self, before: &[u8], effect: &Effect, after: &mut [u8]) -> Result<(), Rejected> {
        let label = |source: &Source| match *source {
            Source::Location(at) => before[at as usize],
            Source::Store(_) => LATEST,
            Source::Initial { .. } => LATEST,
            Source::Nothing => NOTHING,
        };
        let mut is_stored = false;
        for operation in &effect.operations {
            match operation {
                Operation::Load { from, .. } if label(from) != LATEST => return Err(Rejected),
                Operation::Store { .. } => is_stored = true,
                _ => {}
            }
        }
        for (source, after) in effect.sources.iter().zip(after) {
            *after = match (source, label(source)) {
                (Source::Store(_), _) => LATEST,
                (_, LATEST) if is_stored => OLD,
                (_, label) => label,
            };
        }
        Ok(())
    }
}

impl Companion for Latest {
    fn width(&self) -> usize {
        self.locations
    }

    fn start(&self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected> {
        self.follow(&vec![NOTHING; self.locations], effect, state)
    }

    fn step(&self, before: &[u8], effect: &Effect, after: &mut [u8]) -> Result<(), Rejected> {
        self.follow(before, effect, after)
    }

    fn rename(&self, state: &[u8], renaming: &Renaming, renamed: &mut [u8]) {
        for (&label, &new) in state.iter().zip(&renaming.locations) {
            renamed[new as usize] = label;
        }
    }
}

/// Explores a description that stores data to `source`, moves it to `target` and loads it there.
fn outcome(types: &str, functions: &str, movement: &str, symmetry: bool) -> Outcome {
    let text = format!(
        "--@ data Value\n\
         type Proc: scalarset(2); Value: scalarset(2); I: 0..2; {types}\n\
         var source, target: Value; phase: 0..2; {functions}\n\
         ruleset v: Value do startstate source := v; target := v; phase := 0; Init(); end; end;\n\
         ruleset p: Proc; v: Value do\n\
           --@ store proc=p\n\
           rule \"store\" phase = 0 ==> source := v; phase := 1; end;\n\
         end;\n\
         ruleset p: Proc do\n\
           rule \"move\" phase = 1 ==> {movement} phase := 2; end;\n\
           --@ load proc=p from=target\n\
           rule \"load\" phase = 2 ==> phase := 0; end;\n\
         end;\n"
    );
    let model = Model::parse("flow.m", &text).unwrap_or_else(|errors| panic!("{text}{errors}"));
    let system = model.tracked().unwrap_or_else(|errors| panic!("{text}{errors}"));
    let companion = Latest { locations: system.shape().unwrap().locations as usize };
    let options = Options { symmetry, ..Options::default() };
    Explorer::new(&system).companion(&companion).options(options).run().unwrap().outcome
}

const NO_INIT: &str = "procedure Init(); begin end;";

fn flows(types: &str, functions: &str, movement: &str) {
    for symmetry in [false, true] {
        let found = outcome(types, functions, movement, symmetry);
        assert!(matches!(found, Outcome::Holds), "{movement}: {found:?}");
    }
}

#[test]
fn labels_follow_data_everywhere() {
    flows("", NO_INIT, "target := source;");
    let init = "procedure Init(); begin undefine r; undefine s; end;";
    let records = "R: record a: I; d: Value; end;";
    flows(records, &format!("var r, s: R; {init}"), "r.d := source; s := r; target := s.d;");
    // Whole arrays, and arrays shifted by a loop.
    flows(
        "A: array [I] of Value;",
        &format!("var r, s: A; {init}"),
        "r[0] := source; s := r; for i := 2 to 1 by -1 do if !isundefined(s[i-1]) then s[i] := s[i-1]; end; end; target := s[1];",
    );
    // Parameters by reference and by value, locals, returned values and records.
    flows(
        records,
        &format!(
            "var r, s: R; {init} function id(v: Value): Value; begin return v; end;\n\
             function make(v: Value): R; var x: R; begin x.d := id(v); return x; end;\n\
             procedure put_(var to_: Value; v: R); var l: Value; begin l := v.d; to_ := l; end;"
        ),
        "r := make(source); put_(s.d, r); put_(target, make(id(s.d)));",
    );
    // Aliases of places that move, and a conditional.
    flows(
        "A: array [I] of Value;",
        &format!("var r, s: A; k: I; {init}"),
        "k := 0; alias here: r[k]; there: s[k] do k := 1; here := source; there := here; end; target := isundefined(r[k]) ? s[0] : r[1];",
    );
    // Elements of multisets, changed in place and removed.
    flows(
        "M: record n: I; d: Value; end;",
        "var net: multiset [3] of M; procedure Init(); begin undefine net; end;\n\
         procedure send(n: I; v: Value); var m: M; begin m.n := n; m.d := v; multisetadd(m, net); end;",
        "multisetremovepred(i: net, true); send(1, target); send(0, source); send(2, target); target := source;",
    );
    // `clear` and `undefine` leave no data that could be loaded.
    flows(
        records,
        &format!("var r, s: R; {init}"),
        "clear r; undefine s; r.d := source; target := r.d;",
    );
}

#[test]
fn a_multiset_hands_out_what_was_put_in() {
    let text = "--@ data Value\n\
        type Proc: scalarset(2); Value: scalarset(2); M: record n: 0..1; d: Value; end;\n\
        var net: multiset [2] of M; memory: Value; is_full: boolean;\n\
        ruleset v: Value do startstate undefine net; memory := v; is_full := false; end; end;\n\
        ruleset p: Proc; v: Value do\n\
          --@ store proc=p\n\
          rule \"store\" !is_full ==> var m: M; begin m.n := 1; m.d := v; multisetadd(m, net);\n\
            m.n := 0; m.d := memory; multisetadd(m, net); is_full := true; end;\n\
        end;\n\
        choose i: net do\n\
          rule \"drop\" net[i].n = DROPPED ==> multisetremove(i, net); end;\n\
          rule \"take\" multisetcount(j: net, true) = 1 ==> memory := net[i].d;\n\
            multisetremove(i, net); is_full := false; end;\n\
        end;\n\
        ruleset p: Proc do\n\
          --@ load proc=p from=memory\n\
          rule \"load\" !is_full ==> end;\n\
        end;\n";
    for (dropped, is_right) in [("0", true), ("1", false)] {
        for symmetry in [false, true] {
            let model = Model::parse("net.m", &text.replace("DROPPED", dropped)).unwrap();
            let system = model.tracked().unwrap();
            let companion = Latest { locations: system.shape().unwrap().locations as usize };
            let options = Options { symmetry, ..Options::default() };
            let explorer = Explorer::new(&system).companion(&companion).options(options);
            let found = explorer.run().unwrap();
            assert_eq!(matches!(found.outcome, Outcome::Holds), is_right, "{:?}", found.outcome);
        }
    }
}

#[test]
fn what_was_overwritten_is_not_found() {
    for symmetry in [false, true] {
        let found = outcome("", NO_INIT, "source := target; target := source;", symmetry);
        let Outcome::Violated { run, .. } = found else { panic!("{found:?}") };
        let rules: Vec<&str> =
            run.steps.iter().map(|step| step.rule.split(' ').next().unwrap()).collect();
        assert_eq!(rules, ["start", "store", "move", "load"]);
        assert_eq!(run.steps[2].effect.sources, [Source::Location(1), Source::Location(1)]);
    }
}

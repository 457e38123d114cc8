//! The library of protocols: each verdict is as expected, by exploration, simulation and brute
//! force.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_diagnostic::Style;
use consistory_history::{Action, History, HistoryBuilder};
use consistory_protocol::tracking::{
    Companion, Effect, Operation, Rejected, Renaming, Shape, Source,
};
use consistory_protocol::{
    Exploration, Explorer, Model, Monitor, Options, Outcome, System, TraceNames, Unfinished,
    Violation, Witness, history, simulate,
};
use consistory_registers::{Options as CheckOptions, StoreModel, decide_stored};
use consistory_verdict::Verdict;

/// A protocol of the library.
struct Protocol {
    name: String,
    system: System,
    /// The same protocol with concrete data.
    plain: System,
    expected: Verdict,
    /// Whether the exploration takes too long for a test.
    is_large: bool,
}

fn protocols() -> Vec<Protocol> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/protocols");
    let paths = crate::variants::protocols(&folder);
    let protocols = paths.iter().map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = crate::variants::read(path);
        let expected = match text.lines().find_map(|line| line.strip_prefix("-- expect: ")) {
            Some("consistent") => Verdict::Consistent,
            Some("violation") => Verdict::Violation,
            other => panic!("{name}: no expectation, or one that means nothing: {other:?}"),
        };
        let is_large = text.lines().any(|line| line == "-- size: large");
        let model =
            Model::parse(&name, &text).unwrap_or_else(|d| panic!("{}", d.render(Style::Plain)));
        let system = model.tracked().unwrap_or_else(|d| panic!("{}", d.render(Style::Plain)));
        let plain = model.plain();
        Protocol { name, system, plain, expected, is_large }
    });
    protocols.collect()
}

fn find(name: &str) -> Protocol {
    protocols().into_iter().find(|protocol| protocol.name == name).unwrap()
}

fn names(system: &System) -> TraceNames {
    TraceNames { procs: system.proc_names(), blocks: system.block_names() }
}

fn verdict(history: &History) -> Verdict {
    decide_stored(history, StoreModel::Sc, &CheckOptions::default()).judgement.verdict()
}

fn options() -> Options {
    Options { jobs: 2, deadlock: false, ..Options::default() }
}

fn verify(system: &System, options: &Options) -> Exploration {
    Explorer::new(system).options(options.clone()).run().unwrap()
}

/// Explores with a companion of the test.
fn explore_with(system: &System, companion: &dyn Companion, options: &Options) -> Exploration {
    Explorer::new(system).companion(companion).options(options.clone()).run().unwrap()
}

/// Large protocols are explored if `CONSISTORY_LARGE` is set.
#[test]
fn each_protocol_has_its_verdict() {
    let with_large = std::env::var_os("CONSISTORY_LARGE").is_some();
    for protocol in protocols().iter().filter(|protocol| with_large || !protocol.is_large) {
        let Protocol { name, system, expected, .. } = protocol;
        match verify(system, &options()).outcome {
            Outcome::Holds => assert_eq!(*expected, Verdict::Consistent, "{name}"),
            Outcome::Violated { violation: Violation::Graph { history, .. }, .. } => {
                assert_eq!(*expected, Verdict::Violation, "{name}");
                assert_eq!(verdict(&history), Verdict::Violation, "{name}: a real violation");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn each_right_protocol_has_two_broken_ones() {
    let all = protocols();
    for right in all.iter().filter(|p| p.expected == Verdict::Consistent) {
        let family = right.name.split('-').next().unwrap();
        let broken = all.iter().filter(|p| {
            p.expected == Verdict::Violation && p.name.split('-').next() == Some(family)
        });
        assert!(broken.count() >= 2, "{}", right.name);
    }
}

/// With concrete data, correct protocols keep their invariants and have no deadlock.
#[test]
fn right_protocols_do_not_get_stuck() {
    for Protocol { name, plain, expected, is_large, .. } in protocols() {
        if is_large || expected != Verdict::Consistent {
            continue;
        }
        let options = Options { deadlock: true, states: Some(100_000), ..options() };
        let explored = verify(&plain, &options);
        assert!(!matches!(explored.outcome, Outcome::Violated { .. }), "{name}");
    }
}

/// Two processors each store to a block, and then load the other's block too early.
#[test]
fn store_buffers_show_store_buffering() {
    let system = find("store-buffers").system;
    let outcome = verify(&system, &options()).outcome;
    let Outcome::Violated { violation: Violation::Graph { history, .. }, .. } = outcome else {
        panic!("not refused")
    };
    assert_eq!((history.session_count(), history.len()), (2, 4));
    for session in history.sessions() {
        let ops: Vec<_> = history.session_ops(session).collect();
        let (written, _) = history.writes(ops[0]).expect("a store comes first");
        let (read, found) = history.reads(ops[1]).expect("then a load");
        assert_ne!(written, read);
        assert_eq!(found, history.initial_value(read), "which misses the other's store");
    }
}

/// Violations that simulation need not find, because only a few runs in ten thousand have them.
const RARE: [&str; 2] = ["directory-ignored-invalidation", "directory-uncounted"];

/// Simulation never finds a violation of a proved protocol, and finds one of each broken protocol.
#[test]
fn simulation_agrees_with_verification() {
    for Protocol { name, system, expected, .. } in protocols() {
        if RARE.contains(&name.as_str()) {
            continue;
        }
        let names = names(&system);
        let mut found = false;
        for seed in 0..300 {
            let simulation = simulate(&system, 300, seed);
            assert_eq!(simulation.fault, None, "{name}: {seed}");
            let history = history(&names, &simulation.effects).unwrap();
            found |= verdict(&history) == Verdict::Violation;
            if found || (expected == Verdict::Consistent && seed == 10) {
                break;
            }
        }
        assert_eq!(found, expected == Verdict::Violation, "{name}");
    }
}

/// A companion whose state is the whole trace so far and the contents of each location. An
/// exploration with it visits all traces up to a length, and judges each by itself.
struct Everything<'a> {
    names: &'a TraceNames,
    length: usize,
    known: Mutex<Known>,
}

/// Situations by number; 0 denotes all situations whose trace is too long.
#[derive(Default)]
struct Known {
    situations: Vec<Situation>,
    numbers: HashMap<Situation, u32>,
    verdicts: HashMap<Vec<Traced>, bool>,
}

impl Known {
    fn number(&mut self, situation: Situation) -> u32 {
        if let Some(&number) = self.numbers.get(&situation) {
            return number;
        }
        self.situations.push(situation.clone());
        let number = self.situations.len() as u32;
        self.numbers.insert(situation, number);
        number
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Situation {
    trace: Vec<Traced>,
    /// Store whose value each location holds, counting from 1; 0 is the initial value, -1 none.
    contents: Vec<i64>,
}

/// An operation: whether it is a store, its processor, its block, and its value.
type Traced = (bool, u32, u32, i64);

impl Everything<'_> {
    fn go(&self, before: &Situation, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected> {
        let mut next = before.clone();
        let mut performed = Vec::new();
        let value = |source: Source, performed: &[i64]| match source {
            Source::Location(at) => before.contents[at as usize],
            Source::Store(at) => performed[at as usize],
            Source::Initial { .. } => 0,
            Source::Nothing => -1,
        };
        for &operation in &effect.operations {
            let mut stored = -1;
            match operation {
                Operation::Load { proc, block, from } => {
                    next.trace.push((false, proc, block, value(from, &performed)));
                }
                Operation::Store { proc, block } => {
                    stored = 1 + next.trace.iter().filter(|traced| traced.0).count() as i64;
                    next.trace.push((true, proc, block, stored));
                }
                Operation::Serialize { .. } => {}
            }
            performed.push(stored);
        }
        next.contents = effect.sources.iter().map(|&s| value(s, &performed)).collect();
        if next.trace.len() > self.length {
            return Ok(());
        }
        let known = &mut *self.known.lock().unwrap();
        let trace = next.trace.clone();
        let is_fine = *known.verdicts.entry(trace).or_insert_with_key(|trace| self.judge(trace));
        if !is_fine {
            return Err(Rejected);
        }
        state.copy_from_slice(&known.number(next).to_le_bytes());
        Ok(())
    }

    fn judge(&self, trace: &[Traced]) -> bool {
        let mut builder = HistoryBuilder::new();
        for &(stores, proc, block, value) in trace {
            let session = builder.session(&self.names.procs[proc as usize]);
            let key = builder.key(&self.names.blocks[block as usize]);
            let value = builder.int(value);
            let write = Action::Write { key, value };
            builder.push(session, if stores { write } else { Action::Read { key, value } });
        }
        verdict(&builder.finish().unwrap()) == Verdict::Consistent
    }
}

impl Companion for Everything<'_> {
    fn width(&self) -> usize {
        4
    }

    fn start(&self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected> {
        self.go(&Situation::default(), effect, state)
    }

    fn step(&self, before: &[u8], effect: &Effect, after: &mut [u8]) -> Result<(), Rejected> {
        let number = u32::from_le_bytes(before.try_into().unwrap());
        if number == 0 {
            return Ok(());
        }
        let before = self.known.lock().unwrap().situations[number as usize - 1].clone();
        self.go(&before, effect, after)
    }

    /// The exploration has no symmetry: only the elements of multisets are permuted.
    fn rename(&self, state: &[u8], renaming: &Renaming, renamed: &mut [u8]) {
        let number = u32::from_le_bytes(state.try_into().unwrap());
        if number == 0 {
            return;
        }
        let known = &mut *self.known.lock().unwrap();
        let mut situation = known.situations[number as usize - 1].clone();
        for (from, &to) in renaming.locations.iter().enumerate() {
            situation.contents[to as usize] = known.situations[number as usize - 1].contents[from];
        }
        renamed.copy_from_slice(&known.number(situation).to_le_bytes());
    }
}

/// Without its marks, a protocol that orders its stores later fails under the order in which they
/// happen. Such runs are passed over, so that exactly the real violations are found.
#[test]
fn runs_that_only_the_store_order_fails_are_passed_over() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/protocols");
    let mut found = Vec::new();
    for (name, expected) in [
        ("lazy-caching", Verdict::Consistent),
        ("store-buffers-drained", Verdict::Consistent),
        ("lazy-caching-unmarked", Verdict::Violation),
        ("store-buffers", Verdict::Violation),
        ("store-buffers-bypass", Verdict::Violation),
    ] {
        let path = ["m", "patch"].map(|e| folder.join(format!("{name}.{e}")));
        let text = crate::variants::read(path.iter().find(|path| path.exists()).unwrap());
        let unmarked: Vec<&str> =
            text.lines().filter(|line| !line.contains("--@ serialize")).collect();
        let system = Model::parse(name, &unmarked.join("\n")).unwrap().tracked().unwrap();
        let options = Options { states: Some(20_000), ..options() };
        let explored = Explorer::new(&system).options(options).judge(verdict).run().unwrap();
        match explored.outcome {
            Outcome::Violated { violation: Violation::Graph { history, .. }, .. } => {
                assert_eq!((expected, verdict(&history)), (Verdict::Violation, expected), "{name}");
            }
            Outcome::Undecided { reason: Unfinished::Unexplained(found) } => {
                assert_eq!(expected, Verdict::Consistent, "{name}");
                assert_eq!(verdict(&found.history), expected, "{name}");
            }
            other => panic!("{name} is not refused: {other:?}"),
        }
        found.push((name, explored.passed));
    }
    let runs_of = |wanted: &str| found.iter().find(|(name, _)| *name == wanted).unwrap().1;
    assert!(runs_of("store-buffers") > 0, "its shortest run that fails is fine");
    assert_eq!(runs_of("lazy-caching-unmarked"), 0, "its shortest run that fails is not");
}

/// Limits of brute force: the number of operations in a trace, and the number of states.
const LONGEST: usize = 4;
const MOST: u64 = 40_000;

/// All traces of up to four operations are judged: for every protocol of the library, the first
/// violation comes after the same number of steps, as far as brute force gets; further if
/// `CONSISTORY_LARGE` is set.
#[test]
fn the_product_agrees_with_brute_force() {
    let (mut proved, mut refuted) = (0, 0);
    for Protocol { name, system, expected, .. } in protocols() {
        let names = &names(&system);
        let everything = Everything { names, length: LONGEST, known: Mutex::default() };
        let most =
            Some(if std::env::var_os("CONSISTORY_LARGE").is_some() { 20 * MOST } else { MOST });
        let options = Options { symmetry: false, states: most, ..options() };
        let brute = explore_with(&system, &everything, &options);
        // An unfinished search says nothing about steps after its last level.
        let depth = brute.progress.depth as usize;
        if matches!(brute.outcome, Outcome::Undecided { .. }) && expected == Verdict::Consistent {
            continue;
        }
        let product = verify(&system, &self::options());
        match (brute.outcome, product.outcome) {
            (Outcome::Violated { run: brute, .. }, Outcome::Violated { run, .. }) => {
                assert_eq!(expected, Verdict::Violation, "{name}");
                assert_eq!(brute.steps.len(), run.steps.len(), "{name}");
                refuted += 1;
            }
            (Outcome::Holds, Outcome::Holds) => {
                assert_eq!(expected, Verdict::Consistent, "{name}");
                proved += 1;
            }
            (Outcome::Undecided { .. }, Outcome::Violated { run, .. }) => {
                let operations: usize = run.steps.iter().map(|step| step.operations.len()).sum();
                assert!(operations > LONGEST || run.steps.len() > depth + 1, "{name}");
            }
            (brute, product) => panic!("{name}: {brute:?}, but {product:?}"),
        }
    }
    assert!(proved >= 1 && refuted >= 10, "{proved} proved, {refuted} refuted");
}

/// Observer and checker accept step by step the runs that the witness accepts state by state.
#[test]
fn the_monitor_follows_simulated_runs() {
    for protocol in protocols().iter().filter(|p| p.expected == Verdict::Consistent) {
        let Protocol { name, system, .. } = protocol;
        let homes = system.location_homes();
        for seed in 0..10 {
            let mut monitor = Monitor::new(system.shape().unwrap()).with_homes(&homes);
            for effect in &simulate(system, 40, seed).effects {
                assert_eq!(monitor.step(effect), Ok(()), "{name}: {seed}");
            }
            let shape = system.shape().unwrap();
            let bound =
                2 * shape.locations + shape.procs * shape.blocks + shape.procs + shape.blocks;
            assert!(monitor.checker().peak() <= bound as usize + 1, "{name}");
        }
    }
}

/// A witness that records the size of its largest state.
struct Measured {
    witness: Witness,
    largest: AtomicUsize,
}

impl Measured {
    fn note(&self, state: &[u8]) {
        self.largest.fetch_max(self.witness.bits_used(state), Ordering::Relaxed);
    }
}

impl Companion for Measured {
    fn width(&self) -> usize {
        self.witness.width()
    }

    fn start(&self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected> {
        self.witness.start(effect, state)?;
        self.note(state);
        Ok(())
    }

    fn step(&self, before: &[u8], effect: &Effect, after: &mut [u8]) -> Result<(), Rejected> {
        self.witness.step(before, effect, after)?;
        self.note(after);
        Ok(())
    }

    fn rename(&self, state: &[u8], renaming: &Renaming, renamed: &mut [u8]) {
        self.witness.rename(state, renaming, renamed);
    }
}

/// The table of docs/observer.md: the bound of section 4.4 and the size of the largest reached
/// state.
#[test]
fn the_sizes_of_states_are_what_the_page_says() {
    let lg = |things: u32| things.next_power_of_two().trailing_zeros();
    let mut table = String::new();
    for Protocol { name, system, expected, is_large, .. } in protocols() {
        let shape = system.shape().unwrap();
        if is_large || expected != Verdict::Consistent {
            continue;
        }
        let Shape { procs, blocks, locations, .. } = shape;
        let label = lg(procs) + lg(blocks) + 1 + 1;
        let bound = (locations + procs * blocks) * label + locations * lg(locations);
        let witness = Witness::new(shape).unwrap().with_homes(&system.location_homes());
        let measured = Measured { witness, largest: AtomicUsize::new(0) };
        let explored = explore_with(&system, &measured, &options());
        assert!(matches!(explored.outcome, Outcome::Holds), "{name}");
        let largest = measured.largest.into_inner();
        table += &format!("| `{name}` | {locations} | {bound} | {largest} |\n");
    }
    let page = include_str!("../../../docs/observer.md");
    assert!(page.contains(&table), "the table of docs/observer.md should be\n{table}");
}

//! Searches for the smallest histories that one model allows and another forbids.
//!
//! Histories are enumerated by size: operations, then sessions, then variables. For each shape the
//! sources of the reads are chosen one by one. The branch is pruned as soon as the partial choice
//! violates every model that should allow the history in an open question. This is sound for a
//! definition in which a violation remains one whatever is added to `wr`, which the compiled
//! definition records; for other definitions nothing is pruned. At a leaf a model is decided only
//! if an open question needs it, cheap models first, and never if the lattice has a proof.
//!
//! All cores take skeletons from one list. The answers do not depend on their speed: the answer to
//! a question is the first history of the first skeleton that has one. The number of histories does
//! not depend on it either: if a skeleton was examined for a question that an earlier skeleton
//! answered in the meantime, it is counted again without that question.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_history::{Action, Details, History, HistoryBuilder};
use consistory_models::implies;
use consistory_registers::Model;
use consistory_verdict::{Budget, Stopped};
use consistory_work::on_threads;

use crate::compile::{Code, compile};
use crate::reduce::Reduction;
use crate::run::{Machine, Standing};
use crate::shape::{Kind, Shape, Skeleton, Source, Space, skeletons};
use crate::sources::{Next, Visitor, choose};

/// A question: is there a history that one model allows and another forbids?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// Index of the model that should allow it.
    pub allows: usize,
    /// Index of the model that should forbid it.
    pub forbids: usize,
}

/// Options of a scan.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// Budget of the whole scan.
    pub budget: Budget,
    /// Number of threads.
    pub jobs: usize,
    /// Share of the space to examine.
    pub share: Share,
}

/// A share of the space: every n-th skeleton of each size.
///
/// The answer to a question is that of the share that found it at the least [`ScanIndex`], so
/// shares on different machines together give the answers of the whole scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Number of the share, from 0.
    pub index: usize,
    /// Number of shares.
    pub of: usize,
}

impl Share {
    /// The whole space.
    pub const WHOLE: Share = Share { index: 0, of: 1 };

    /// Returns whether a skeleton is in the share, by its number among those of its size.
    pub(crate) fn has(self, skeleton: usize) -> bool {
        skeleton % self.of == self.index
    }
}

/// Position of a history in the order of the scan: operations, sessions, variables and the number
/// of the skeleton. Levels are scanned skeleton by skeleton, and have that number third.
pub type ScanIndex = [usize; 4];

impl Default for ScanOptions {
    fn default() -> Self {
        ScanOptions { budget: Budget::unlimited(), jobs: 1, share: Share::WHOLE }
    }
}

/// The result of a scan.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Smallest history for each question that has one within the space.
    pub answers: Vec<Option<History>>,
    /// Position at which each answer was found.
    pub places: Vec<Option<ScanIndex>>,
    /// The largest number of operations up to which every history was considered, for the
    /// questions without an answer.
    pub complete: usize,
    /// Number of histories decided, up to symmetry and without pruned ones.
    pub histories: u64,
    /// The reason why the scan stopped before the space was exhausted.
    pub stopped: Option<Stopped>,
}

/// Searches for a smallest history for each question.
///
/// The space must be small ([`Space::is_small`]).
pub fn scan(
    models: &[Model],
    questions: &[Question],
    space: &Space,
    options: &ScanOptions,
) -> Scan {
    assert!(space.is_small(), "operations and variables are at most sixteen together");
    let is_catalogued = |model: &Model| matches!(model, Model::Catalogued(_));
    let reduction = match models.iter().all(is_catalogued) {
        true => Reduction::Catalogue,
        false => Reduction::None,
    };
    scan_reduced(models, questions, space, options, reduction)
}

/// Implements [`scan`] with a chosen reduction.
pub(crate) fn scan_reduced(
    models: &[Model],
    questions: &[Question],
    space: &Space,
    options: &ScanOptions,
    reduction: Reduction,
) -> Scan {
    let mut scan = Scan {
        answers: vec![None; questions.len()],
        places: vec![None; questions.len()],
        complete: 0,
        histories: 0,
        stopped: None,
    };
    let codes = models.iter().map(|model| compile(model.definition(), &options.budget));
    let codes: Vec<Code> = match codes.collect() {
        Ok(codes) => codes,
        Err(stopped) => return Scan { stopped: Some(stopped), ..scan },
    };
    let plan = Plan::new(models, &codes, reduction);
    // Histories of fences alone have no variables.
    let fewest = if space.fences { 0 } else { 1 };
    for operations in 1..=space.operations {
        for sessions in 1..=space.sessions.min(operations) {
            let mut skeletons = skeletons(space, operations, sessions);
            skeletons.retain(|skeleton| reduction.needs_skeleton(skeleton));
            // Of equal size, histories of plain reads and writes are the simplest.
            skeletons.sort_by_key(Skeleton::extras);
            for variables in fewest..=space.variables.min(operations) {
                let open: Vec<usize> =
                    (0..questions.len()).filter(|&q| scan.answers[q].is_none()).collect();
                if open.is_empty() {
                    scan.complete = space.operations;
                    return scan;
                }
                let group = Group {
                    codes: &codes,
                    plan: &plan,
                    questions,
                    open: &open,
                    skeletons: &skeletons,
                    variables,
                    reduction,
                    share: options.share,
                    budget: &options.budget,
                    next: AtomicUsize::new(0),
                    found_at: questions.iter().map(|_| AtomicUsize::new(usize::MAX)).collect(),
                    found: Mutex::new(Vec::new()),
                    counts: Mutex::new(Vec::new()),
                    stopped: Mutex::new(None),
                };
                let jobs = options.jobs.clamp(1, skeletons.len().max(1));
                on_threads(jobs, || group.work());
                scan.histories += group.histories();
                let mut found = group.found.into_inner().expect("no thread panicked");
                found.sort_by_key(|&(_, skeleton, _)| skeleton);
                for (question, skeleton, history) in found {
                    let place = [operations, sessions, variables, skeleton];
                    scan.places[question].get_or_insert(place);
                    scan.answers[question].get_or_insert(history);
                }
                scan.stopped = group.stopped.into_inner().expect("no thread panicked");
                if scan.stopped.is_some() {
                    return scan;
                }
            }
        }
        scan.complete = operations;
    }
    scan
}

/// Steps of compiled definitions between two checks of the clock.
const COST_PER_CHECK: usize = 1 << 17;

/// The order in which models are decided, and the implications between their verdicts.
struct Plan {
    /// Estimated number of steps per history.
    look_cost: usize,
    /// Models, cheap ones first.
    by_cost: Vec<usize>,
    /// Models that each model implies, itself included, one bit each.
    weaker: Vec<u32>,
    /// Models that imply each model, itself included, one bit each.
    stronger: Vec<u32>,
    /// A model that implies all others.
    strongest: Option<usize>,
}

impl Plan {
    fn new(models: &[Model], codes: &[Code], reduction: Reduction) -> Self {
        let all = 0..models.len();
        let is_implied = |from: usize, to: usize| {
            from == to
                || match (&models[from], &models[to], reduction) {
                    (Model::Catalogued(from), Model::Catalogued(to), Reduction::Catalogue) => {
                        implies(from.id, to.id).is_some()
                    }
                    _ => false,
                }
        };
        let collect = |is_in: &dyn Fn(usize) -> bool| {
            all.clone().filter(|&m| is_in(m)).fold(0, |set, m| set | 1 << m)
        };
        let weaker: Vec<u32> =
            all.clone().map(|m| collect(&|other| is_implied(m, other))).collect();
        let stronger = all.clone().map(|m| collect(&|other| is_implied(other, m))).collect();
        let mut by_cost: Vec<usize> = all.clone().collect();
        by_cost.sort_by_key(|&m| codes[m].cost());
        let strongest = all.clone().find(|&m| weaker[m].count_ones() as usize == models.len());
        // A small definition decides a history faster than its sources are chosen.
        let look_cost = 128 + codes.iter().map(Code::cost).sum::<usize>();
        Plan { look_cost, by_cost, weaker, stronger, strongest }
    }
}

/// The known verdicts on one history, one bit per model.
struct Verdicts<'a, 'b> {
    plan: &'a Plan,
    machines: &'a mut [Machine<'b>],
    sources: &'a [Source],
    satisfied: u32,
    violated: u32,
}

impl Verdicts<'_, '_> {
    /// Returns whether a model is satisfied, and records the implied verdicts.
    fn holds(&mut self, model: usize) -> bool {
        if (self.satisfied | self.violated) >> model & 1 == 0 {
            if self.machines[model].satisfies(self.sources) {
                self.satisfied |= self.plan.weaker[model];
            } else {
                self.violated |= self.plan.stronger[model];
            }
        }
        self.satisfied >> model & 1 == 1
    }
}

/// The histories of one size.
struct Group<'a> {
    codes: &'a [Code],
    plan: &'a Plan,
    questions: &'a [Question],
    open: &'a [usize],
    skeletons: &'a [Skeleton],
    variables: usize,
    reduction: Reduction,
    share: Share,
    budget: &'a Budget,
    next: AtomicUsize,
    /// First skeleton with an answer, for each question.
    found_at: Vec<AtomicUsize>,
    found: Mutex<Vec<(usize, usize, History)>>,
    /// Each examined skeleton, with the number of questions and of histories.
    counts: Mutex<Vec<(usize, usize, u64)>>,
    stopped: Mutex<Option<Stopped>>,
}

impl Group<'_> {
    /// Takes skeletons until there are none left.
    fn work(&self) {
        let mut worker = Worker::new(self);
        let mut counts = Vec::new();
        loop {
            let skeleton = self.next.fetch_add(1, Ordering::Relaxed);
            if skeleton >= self.skeletons.len() {
                break;
            }
            if !self.share.has(skeleton) {
                continue;
            }
            let is_open = |&q: &usize| self.found_at[q].load(Ordering::Relaxed) > skeleton;
            let open: Vec<usize> = self.open.iter().copied().filter(is_open).collect();
            let questions = open.len();
            let goes_on = worker.look_at(skeleton, open);
            counts.push((skeleton, questions, worker.histories));
            // A worker stops early if it has all answers or the time is over.
            if !goes_on && self.stopped.lock().expect("no thread panicked").is_some() {
                break;
            }
        }
        self.counts.lock().expect("no thread panicked").extend(counts);
    }

    /// Counts the histories that one thread alone would have decided.
    fn histories(&self) -> u64 {
        let counts = self.counts.lock().expect("no thread panicked");
        let has_stopped = self.stopped.lock().expect("no thread panicked").is_some();
        let mut total = 0;
        for &(skeleton, questions, histories) in counts.iter() {
            // A question that an earlier skeleton answered is not open here, though the thread may
            // have learned of the answer too late.
            let is_open = |&q: &usize| self.found_at[q].load(Ordering::Relaxed) >= skeleton;
            let open: Vec<usize> = self.open.iter().copied().filter(is_open).collect();
            if has_stopped || open.len() == questions {
                total += histories;
            } else if !open.is_empty() {
                let mut worker = Worker::new(self);
                worker.look_at(skeleton, open);
                total += worker.histories;
            }
        }
        total
    }
}

/// The state of one thread.
struct Worker<'a> {
    group: &'a Group<'a>,
    machines: Vec<Machine<'a>>,
    /// Index of the current skeleton.
    skeleton: usize,
    /// The current shape, for writing out a history.
    shape: Option<Outline>,
    /// Questions that this skeleton may answer.
    open: Vec<usize>,
    /// Models that may allow a history, one bit each, for each number of chosen sources.
    alive: Vec<u32>,
    /// Number of decided histories of the skeleton.
    histories: u64,
    looks: usize,
}

impl<'a> Worker<'a> {
    fn new(group: &'a Group<'a>) -> Self {
        Worker {
            group,
            machines: group.codes.iter().map(Machine::new).collect(),
            skeleton: 0,
            shape: None,
            open: Vec::new(),
            alive: vec![0],
            histories: 0,
            looks: 0,
        }
    }

    /// Visits the histories of a skeleton for some questions. Returns whether to continue.
    fn look_at(&mut self, skeleton: usize, open: Vec<usize>) -> bool {
        (self.skeleton, self.open, self.histories) = (skeleton, open, 0);
        let Group { skeletons, variables, reduction, .. } = self.group;
        self.open.is_empty()
            || skeletons[skeleton].shapes(*variables, &mut |shape, automorphisms| {
                if !reduction.needs_shape(shape) {
                    return true;
                }
                self.start(shape);
                self.alive[0] == 0 || choose(shape, automorphisms, reduction, self)
            })
    }

    fn start(&mut self, shape: &Shape<'_>) {
        self.shape = Some(Outline::of(shape));
        let wanted = self.wanted();
        let mut alive = 0;
        for (m, machine) in self.machines.iter_mut().enumerate() {
            // A definition that the shape alone violates forbids every history of the shape.
            let standing = machine.load(shape);
            if wanted >> m & 1 == 1 && standing == Standing::Open {
                alive |= 1 << m;
            }
        }
        self.alive.clear();
        self.alive.push(alive);
    }

    /// Returns the models that should allow the history in an open question.
    fn wanted(&self) -> u32 {
        self.open.iter().fold(0, |set, &q| set | 1 << self.group.questions[q].allows)
    }

    /// Counts the examined histories, and checks the clock periodically.
    fn has_time(&mut self) -> bool {
        self.looks += self.group.plan.look_cost;
        if self.looks < COST_PER_CHECK {
            return true;
        }
        self.looks = 0;
        match self.group.budget.check() {
            Ok(()) => self.group.stopped.lock().expect("no thread panicked").is_none(),
            Err(stopped) => {
                *self.group.stopped.lock().expect("no thread panicked") = Some(stopped);
                false
            }
        }
    }
}

impl Visitor for Worker<'_> {
    fn partial(&mut self, sources: &[Source]) -> Next {
        if !self.has_time() {
            return Next::Stop;
        }
        self.alive.truncate(sources.len());
        let plan = self.group.plan;
        let mut alive = self.alive[sources.len() - 1] & self.wanted();
        for &m in &plan.by_cost {
            if alive >> m & 1 == 0 {
                continue;
            }
            let machine = &mut self.machines[m];
            if !machine.prunes() || machine.look(sources) == Standing::Open {
                // One model that may allow a history suffices to continue.
                break;
            }
            alive &= !plan.stronger[m];
        }
        self.alive.push(alive);
        if alive == 0 { Next::Skip } else { Next::Deeper }
    }

    fn complete(&mut self, sources: &[Source]) -> bool {
        if !self.has_time() {
            return false;
        }
        self.histories += 1;
        let alive = self.alive[sources.len().saturating_sub(1).min(self.alive.len() - 1)];
        let plan = self.group.plan;
        let mut verdicts =
            Verdicts { plan, machines: &mut self.machines, sources, satisfied: 0, violated: 0 };
        // A history that the strongest model allows is allowed by all.
        if plan.strongest.is_some_and(|strongest| verdicts.holds(strongest)) {
            return true;
        }
        let mut answered = false;
        for &question in &self.open {
            let Question { allows, forbids } = self.group.questions[question];
            if alive >> allows & 1 == 0 {
                continue;
            }
            // Both models are decided unless the first verdict settles the question; the cheaper
            // one comes first.
            let codes = self.group.codes;
            if codes[forbids].cost() < codes[allows].cost() && verdicts.holds(forbids) {
                continue;
            }
            let separates = verdicts.holds(allows) && !verdicts.holds(forbids);
            if separates && let Some(outline) = &self.shape {
                let history = outline.history(sources);
                self.group.found_at[question].fetch_min(self.skeleton, Ordering::Relaxed);
                let mut found = self.group.found.lock().expect("no thread panicked");
                found.push((question, self.skeleton, history));
                answered = true;
            }
        }
        if answered {
            let group = self.group;
            let skeleton = self.skeleton;
            self.open.retain(|&q| group.found_at[q].load(Ordering::Relaxed) > skeleton);
        }
        !self.open.is_empty()
    }
}

/// A shape from which histories are written out.
pub(crate) struct Outline {
    kinds: Vec<Kind>,
    sessions: Vec<usize>,
    variables: Vec<Option<usize>>,
}

impl Outline {
    pub(crate) fn of(shape: &Shape<'_>) -> Self {
        let all = 0..shape.len();
        Outline {
            kinds: all.clone().map(|at| shape.kind(at)).collect(),
            sessions: all.clone().map(|at| shape.session(at)).collect(),
            variables: all.map(|at| shape.variable(at)).collect(),
        }
    }

    /// Writes out the history with the given sources: sessions t0, t1, ..., variables x, y, z, ...,
    /// and values 1, 2, ... of each variable in the order of its writes.
    pub(crate) fn history(&self, sources: &[Source]) -> History {
        self.build(sources, None)
    }

    /// Writes out the history with transactions; `is_joined` returns whether an operation is in the
    /// transaction of the previous one. Single operations have no brackets.
    pub(crate) fn transactions(
        &self,
        sources: &[Source],
        is_joined: impl Fn(usize) -> bool,
    ) -> History {
        self.build(sources, Some(&is_joined))
    }

    fn build(&self, sources: &[Source], is_joined: Option<&dyn Fn(usize) -> bool>) -> History {
        const NAMES: [&str; 16] =
            ["x", "y", "z", "a", "b", "c", "d", "e", "g", "h", "i", "j", "k", "l", "m", "n"];
        let mut builder = HistoryBuilder::new();
        let mut written = [0; NAMES.len()];
        let values: Vec<i64> = (0..self.kinds.len())
            .map(|at| match (self.kinds[at], self.variables[at]) {
                (Kind::Write | Kind::Rmw, Some(variable)) => {
                    written[variable] += 1;
                    written[variable]
                }
                _ => 0,
            })
            .collect();
        let joins = |at: usize| {
            let of_session = |at: &usize| self.sessions.get(*at) == self.sessions.get(at - 1);
            at > 0 && of_session(&at) && is_joined.is_some_and(|is_joined| is_joined(at))
        };
        let mut transaction = None;
        for (at, &kind) in self.kinds.iter().enumerate() {
            let session = builder.session(&format!("t{}", self.sessions[at]));
            if !joins(at) {
                transaction = joins(at + 1).then(|| builder.begin_transaction());
            }
            let details = Details { transaction, ..Details::default() };
            let Some(variable) = self.variables[at] else {
                builder.push_with(session, Action::Fence, details);
                continue;
            };
            let key = builder.key(NAMES[variable]);
            let source = sources.iter().find(|source| source.read == at);
            let found = source.and_then(|source| source.write).map_or(0, |write| values[write]);
            let (own, found) = (builder.int(values[at]), builder.int(found));
            let action = match kind {
                Kind::Read => Action::Read { key, value: found },
                Kind::Rmw => Action::Rmw { key, read: found, write: own },
                Kind::Write | Kind::Fence => Action::Write { key, value: own },
            };
            builder.push_with(session, action, details);
        }
        builder.finish().expect("single operations are a history")
    }
}

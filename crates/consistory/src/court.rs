//! The court: chooses the models and deciders for a history, and has each verdict certified.
//!
//! A verdict leaves the court only after the independent checker has accepted its certificate. If
//! the checker rejects the certificate, the verdict becomes undecided, with the reason
//! ([`Verdict::rejection`]).

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use consistory_history::History;
use consistory_models::{Definition, linearizability};
use consistory_objects::{Inference, Levels, infer_levels};
use consistory_registers::{Engine, Model as RegisterModel, Tuning};
use consistory_spec::{Level, Object, ObjectModel, parse_axioms, parse_levels};
use consistory_verdict::{
    Budget, ClientOrder, Family, Gauge, Judgement, Level as IsolationLevel, Options, Ruling,
    Stopped, Stopwatch,
};
use consistory_work::{catch_panic, pipeline, side_by_side};

use crate::held::Held;
use crate::model::{Model, Rejection};
use crate::objects::{NamedObject, of_history};
use crate::progress::{Observer, Stage};
use crate::report::{Origin, Report};
use crate::select::{Choice, all_object_models, all_register_models, choose};
use crate::transactions::{as_transactions, is_of_transactions};
use crate::verdict::Verdict;
use crate::{Case, Error, objects, registers, transactions};

/// Default time per model.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(60);
/// Default limit of the memory for the tables of one history, in bytes.
pub const DEFAULT_MEMORY: u64 = 4 << 30;

/// Minimum of the time limit for reading a history.
pub const MIN_READING_TIME: Duration = Duration::from_millis(100);

/// Time of reading or preparing a history from which it counts towards the time of each model.
const MIN_CHARGED_READING: Duration = Duration::from_millis(1);

/// Number of operations from which certificates are checked on several threads.
const PARALLEL_CERTIFY_OPS: usize = 20_000;

/// Judges histories by models.
///
/// Without [`models`](Court::models) a history is judged by every model that applies to it, and the
/// strongest satisfied ones are reported. A clone shares its threads with the original.
#[derive(Clone, Debug)]
pub struct Court {
    subject: Subject,
    /// Models of registers: those that were named, followed by the members of a group.
    registers: Arc<[RegisterModel]>,
    /// Models of objects: those that were named, followed by the members of a group.
    objects: Arc<[ObjectModel]>,
    /// Isolation levels that were named, and definitions about transactions.
    isolation: Arc<[AskedLevel]>,
    /// Numbers of named models: of registers, and of objects.
    named: [usize; 2],
    levels: Option<MethodLevels>,
    group: Option<Group>,
    settings: Settings,
    /// Number of histories being judged.
    at_work: Arc<AtomicUsize>,
}

/// A requested isolation level.
#[derive(Clone, Debug)]
enum AskedLevel {
    Known(IsolationLevel),
    /// A user's definition.
    Own {
        id: Arc<str>,
        definition: Arc<Definition>,
    },
}

impl AskedLevel {
    fn id(&self) -> &str {
        match self {
            AskedLevel::Known(level) => level.id(),
            AskedLevel::Own { id, .. } => id,
        }
    }

    fn is(&self, level: IsolationLevel) -> bool {
        matches!(self, AskedLevel::Known(known) if *known == level)
    }

    fn in_order(self, order: ClientOrder) -> Model {
        match self {
            AskedLevel::Known(level) => Model::Isolation { level, order },
            AskedLevel::Own { id, definition } => Model::OwnLevel { id, definition, order },
        }
    }
}

/// A model that assigns visibility levels to methods.
#[derive(Clone, Debug)]
struct MethodLevels {
    /// The levels by the methods' names.
    levels: Arc<[(Box<str>, Level)]>,
    /// Level of methods that are not listed.
    other: Level,
}

/// The kind of operations in the histories.
#[derive(Clone, Debug)]
enum Subject {
    /// Determined by the models or the history.
    Any,
    /// Reads and writes.
    Registers,
    /// Calls of this object.
    Object(NamedObject),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Group {
    All,
    Strongest,
}

/// Settings of a judgement.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    time: Duration,
    /// Part of the time of each model that reading the history took.
    spent: Duration,
    memory: u64,
    pub(crate) jobs: usize,
    engine: Engine,
    interrupt: Option<Arc<AtomicBool>>,
    gauge: Option<Gauge>,
    certify: Certify,
    observer: Option<Observer>,
    pub(crate) order: ClientOrder,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Certify {
    Every,
    None,
}

impl Settings {
    pub(crate) fn budget(&self) -> Budget {
        let budget = match &self.gauge {
            Some(gauge) => Budget::unlimited().with_gauge(gauge.clone()),
            None => Budget::unlimited(),
        };
        let budget = budget.with_time(self.time).with_memory(self.memory);
        let budget = if self.spent.is_zero() { budget } else { budget.after(self.spent) };
        match &self.interrupt {
            Some(flag) => budget.with_interrupt(Arc::clone(flag)),
            None => budget,
        }
    }

    /// Returns the same settings with another limit of time, for one thread that reports nothing.
    pub(crate) fn within(&self, time: Duration) -> Self {
        let (time, spent) = (time.min(self.time), Duration::ZERO);
        Settings { time, spent, jobs: 1, observer: None, ..self.clone() }
    }

    /// Returns the same settings with the time that was spent from each model's time.
    fn after(&self, preparing: &Budget) -> Self {
        let spent = match preparing.spent() {
            spent if spent >= MIN_CHARGED_READING => self.spent.saturating_add(spent),
            _ => self.spent,
        };
        Settings { spent, ..self.clone() }
    }

    fn observe(&self, stage: Stage) {
        if let Some(Observer(observe)) = &self.observer {
            observe(stage);
        }
    }

    pub(crate) fn register_options(&self, jobs: usize) -> Options<Tuning> {
        let order = registers::in_definitions(self.order);
        let tuning = Tuning { engine: self.engine, order, ..Tuning::default() };
        Options { budget: self.budget(), jobs, tuning }
    }

    pub(crate) fn certify_options(&self, jobs: usize) -> Options {
        Options { budget: self.budget(), jobs, tuning: () }
    }

    pub(crate) fn object_options(&self, jobs: usize) -> consistory_objects::Options {
        objects::options(self.budget(), jobs)
    }
}

impl Default for Court {
    fn default() -> Self {
        Court::new()
    }
}

impl Court {
    /// Builds a court for histories of any family; the object of calls is inferred.
    pub fn new() -> Self {
        Court::on(Subject::Any)
    }

    /// Builds a court for reads and writes of registers.
    pub fn registers() -> Self {
        Court::on(Subject::Registers)
    }

    /// Builds a court for calls of a built-in object, such as `queue` or `register(0)`, or of the
    /// object that a file describes.
    pub fn object(name: &str) -> Result<Self, Error> {
        Ok(Court::on(Subject::Object(NamedObject::load(name)?)))
    }

    /// Builds a court for calls of your own object.
    ///
    /// ```
    /// use consistory::spec::{Specification, Value};
    ///
    /// struct Flag; // can be raised once
    /// impl Specification for Flag {
    ///     type State = bool;
    ///     fn initial(&self) -> bool { false }
    ///     fn invoke(&self, raised: &mut bool, method: &str, _: &[Value]) -> Option<Value> {
    ///         (method == "raise").then(|| Value::Bool(!std::mem::replace(raised, true)))
    ///     }
    /// }
    /// let court = consistory::Court::own_object("flag", std::sync::Arc::new(Flag));
    /// let twice = consistory::parse("t0: raise() => true @1..4\nt1: raise() => true @2..3")?;
    /// assert!(court.models(["linearizability"])?.judge(&twice)?[0].is_violation());
    /// # Ok::<(), consistory::Error>(())
    /// ```
    pub fn own_object(name: &str, object: Arc<dyn Object>) -> Self {
        Court::on(Subject::Object(NamedObject::new(name, object)))
    }

    fn on(subject: Subject) -> Self {
        Court {
            subject,
            registers: Arc::default(),
            objects: Arc::default(),
            isolation: Arc::default(),
            named: [0, 0],
            levels: None,
            group: None,
            settings: Settings {
                time: DEFAULT_BUDGET,
                spent: Duration::ZERO,
                memory: DEFAULT_MEMORY,
                jobs: std::thread::available_parallelism().map_or(1, usize::from),
                engine: Engine::Auto,
                interrupt: None,
                gauge: None,
                certify: Certify::Every,
                observer: None,
                order: ClientOrder::default(),
            },
            at_work: Arc::default(),
        }
    }

    /// Builds a court for one model.
    pub(crate) fn with_model(model: Model, settings: Settings) -> Self {
        let court = match model {
            Model::Register(model) => {
                Court { registers: [model].into(), named: [1, 0], ..Court::registers() }
            }
            Model::Object { object, model } => Court {
                objects: [model].into(),
                named: [0, 1],
                ..Court::on(Subject::Object(object))
            },
            Model::Isolation { level, .. } => {
                Court { isolation: [AskedLevel::Known(level)].into(), ..Court::new() }
            }
            Model::OwnLevel { id, definition, .. } => {
                let own = AskedLevel::Own { id, definition };
                Court { isolation: [own].into(), ..Court::new() }
            }
        };
        Court { settings, ..court }
    }

    /// Adds models: ids in any case, paths of definition files, `all` or `strongest`.
    pub fn models<S: AsRef<str>>(
        mut self,
        names: impl IntoIterator<Item = S>,
    ) -> Result<Self, Error> {
        for name in names {
            match choose(name.as_ref())? {
                Choice::Register(model) => self.add_register_model(model)?,
                Choice::Object(model) => self.add_object_model(model)?,
                Choice::Isolation(level) => self.add_level(level)?,
                Choice::All => {
                    self.group.get_or_insert(Group::All);
                }
                Choice::Strongest => self.group = Some(Group::Strongest),
            }
        }
        Ok(self)
    }

    /// Adds your own model of registers, in the definition language.
    ///
    /// `name` is used in reports and errors. The text may include files of the catalogue.
    ///
    /// ```
    /// let court = consistory::Court::registers()
    ///     .definition("coherence", "\"Per-key order\" acyclic po & loc | wr as CyclicPerKey")?;
    /// let history = consistory::parse("t0: w(x,1) r(x,1)\nt1: r(x,1) r(x,0)")?;
    /// assert!(court.judge(&history)?[0].is_consistent());
    /// # Ok::<(), consistory::Error>(())
    /// ```
    pub fn definition(mut self, name: &str, text: &str) -> Result<Self, Error> {
        let definition = Arc::new(consistory_models::load(name, text, |_| None)?);
        self.add_register_model(RegisterModel::Own { id: name.into(), definition })?;
        Ok(self)
    }

    /// Adds a model of an object given by axioms, such as `vis >= po; vis >= vis ; vis`.
    pub fn axioms(mut self, text: &str) -> Result<Self, Error> {
        let mut axioms = parse_axioms("axioms", text)?;
        for method in axioms.iter_mut().filter_map(|axiom| axiom.of.as_mut()).flatten() {
            *method = self.known_method(method)?;
        }
        self.add_object_model(ObjectModel::of_axioms(axioms))?;
        Ok(self)
    }

    /// Adds a model in which methods have visibility levels, such as `size=weak,get=monotonic`; the
    /// other methods see all operations linearized before them.
    pub fn levels(self, text: &str) -> Result<Self, Error> {
        let mut levels = parse_levels("levels", text)?;
        for (method, _) in &mut levels {
            *method = self.known_method(method)?;
        }
        Ok(self.method_levels(levels, Level::Complete))
    }

    /// Adds a model in which methods have visibility levels; `other` is the level of unlisted
    /// methods.
    #[must_use]
    pub fn method_levels(mut self, levels: Vec<(Box<str>, Level)>, other: Level) -> Self {
        self.levels = Some(MethodLevels { levels: levels.into(), other });
        self
    }

    /// Adds a model of objects.
    pub fn object_model(mut self, model: ObjectModel) -> Result<Self, Error> {
        self.add_object_model(model)?;
        Ok(self)
    }

    fn known_method(&self, method: &str) -> Result<Box<str>, Error> {
        match &self.subject {
            Subject::Object(named) => named.known_method(method),
            _ => Ok(method.into()),
        }
    }

    fn add_register_model(&mut self, model: RegisterModel) -> Result<(), Error> {
        if let RegisterModel::Own { id, definition } = &model
            && definition.is_transactional()
            && !matches!(self.subject, Subject::Object(_))
            && self.named == [0, 0]
        {
            if !self.isolation.iter().any(|known| known.id() == &**id) {
                let (id, definition) = (id.clone(), definition.clone());
                let own = AskedLevel::Own { id, definition };
                self.isolation = self.isolation.iter().cloned().chain([own]).collect();
            }
            return Ok(());
        }
        let is_own = |level: &AskedLevel| matches!(level, AskedLevel::Own { .. });
        if self.isolation.iter().all(is_own) {
            // If models of registers are selected, definitions about transactions are judged like
            // these.
            for level in std::mem::take(&mut self.isolation).iter() {
                if let AskedLevel::Own { id, definition } = level.clone() {
                    let own = RegisterModel::Own { id, definition };
                    self.registers = self.registers.iter().cloned().chain([own]).collect();
                    self.named[0] += 1;
                }
            }
        }
        if !self.isolation.is_empty() {
            let expected = Family::Transactions;
            return Err(Error::WrongFamily { id: model.id().into(), expected });
        }
        if matches!(self.subject, Subject::Any) && self.asks_only_for_linearizability() {
            // If other models of registers are selected, it is treated as one of them.
            self.objects = Arc::default();
            self.named[1] = 0;
            self.add_register_model(RegisterModel::Catalogued(linearizability()))?;
        }
        if matches!(self.subject, Subject::Object(_)) || self.named[1] > 0 {
            return Err(Error::WrongFamily { id: model.id().into(), expected: Family::Objects });
        }
        if !self.registers.iter().any(|known| known.id() == model.id()) {
            self.registers = self.registers.iter().cloned().chain([model]).collect();
            self.named[0] += 1;
        }
        Ok(())
    }

    fn add_object_model(&mut self, model: ObjectModel) -> Result<(), Error> {
        if !self.isolation.is_empty() {
            let expected = Family::Transactions;
            return Err(Error::WrongFamily { id: model.id.into(), expected });
        }
        if matches!(self.subject, Subject::Registers) || self.named[0] > 0 {
            if model.id == "linearizability" {
                return self.add_register_model(RegisterModel::Catalogued(linearizability()));
            }
            return Err(Error::WrongFamily { id: model.id.into(), expected: Family::Registers });
        }
        if !self.objects.iter().any(|known| known.id == model.id) {
            self.objects = self.objects.iter().cloned().chain([model]).collect();
            self.named[1] += 1;
        }
        Ok(())
    }

    fn add_level(&mut self, level: IsolationLevel) -> Result<(), Error> {
        let expected = match &self.subject {
            Subject::Registers => Some(Family::Registers),
            Subject::Object(_) => Some(Family::Objects),
            Subject::Any if self.named[0] > 0 => Some(Family::Registers),
            Subject::Any if self.named[1] > 0 => Some(Family::Objects),
            Subject::Any => None,
        };
        if let Some(expected) = expected {
            return Err(Error::WrongFamily { id: level.id().into(), expected });
        }
        if !self.isolation.iter().any(|known| known.is(level)) {
            let level = AskedLevel::Known(level);
            self.isolation = self.isolation.iter().cloned().chain([level]).collect();
        }
        Ok(())
    }

    /// Sets the order between transactions that isolation levels must respect.
    #[must_use]
    pub fn order(mut self, order: ClientOrder) -> Self {
        self.settings.order = order;
        self
    }

    /// Limits the time for each model.
    #[must_use]
    pub fn budget(mut self, time: Duration) -> Self {
        self.settings.time = time;
        self
    }

    /// Limits the memory that the tables for one history may take, in bytes.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.settings.memory = bytes;
        self
    }

    /// Sets the number of threads; by default one per core.
    #[must_use]
    pub fn jobs(mut self, threads: usize) -> Self {
        self.settings.jobs = threads.max(1);
        self
    }

    /// Chooses the engine that completes SC, TSO and PSO if saturation leaves writes unordered.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.settings.engine = engine;
        self
    }

    /// Stops judging, with undecided verdicts, as soon as the flag is set.
    #[must_use]
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.settings.interrupt = Some(flag);
        self
    }

    /// Measures time and memory by a gauge, instead of the clock and the deciders' own estimates.
    #[must_use]
    pub fn gauge(mut self, gauge: Gauge) -> Self {
        self.settings.gauge = Some(gauge);
        self
    }

    /// Returns the budget for reading a history: the time of one model, and half of its memory,
    /// since the data exists twice while the history is built. The time is at least
    /// [`MIN_READING_TIME`], because opening a file takes time.
    pub fn reading_budget(&self) -> Budget {
        let Settings { time, memory, .. } = self.settings;
        self.settings.budget().with_time(time.max(MIN_READING_TIME)).with_memory(memory / 2)
    }

    /// Calls a function at each stage of a judgement, from any thread.
    #[must_use]
    pub fn on_progress(mut self, observe: impl Fn(Stage) + Send + Sync + 'static) -> Self {
        self.settings.observer = Some(Observer(Arc::new(observe)));
        self
    }

    /// Skips the check of certificates: verdicts are then as reliable as the deciders.
    #[must_use]
    pub fn without_certification(mut self) -> Self {
        self.settings.certify = Certify::None;
        self
    }

    /// Judges a history by every model.
    pub fn judge<'h>(&self, history: &'h History) -> Result<Report<'h>, Error> {
        self.hear(Held::Borrowed(history), Origin::default())
    }

    /// Returns the ids of the models that were selected by name.
    pub fn named_models(&self) -> impl Iterator<Item = &str> {
        let registers = self.registers.iter().map(RegisterModel::id);
        let objects = self.objects.iter().map(|model| &*model.id);
        registers.chain(objects).chain(self.isolation.iter().map(|level| level.id()))
    }

    /// Judges a history with its source; errors name the source.
    pub fn judge_case(&self, case: Case) -> Result<Report<'static>, Error> {
        let Case { source, number, index, history, reading } = case;
        let place = Origin { source: Arc::clone(&source), number, index, reading };
        let mut court = Cow::Borrowed(self);
        if reading >= MIN_CHARGED_READING {
            court.to_mut().settings.spent = reading;
        }
        catch_panic(|| court.hear(Held::Shared(history), place))
            .unwrap_or_else(|panicked| Err(Error::Internal(panicked)))
            .map_err(|error| error.at(&source, index))
    }

    /// Judges many histories on all threads, and returns the reports in input order.
    pub fn judge_all<C>(&self, cases: C) -> Reports
    where
        C: IntoIterator<Item = Result<Case, Error>>,
        C::IntoIter: Send + 'static,
    {
        let jobs = self.settings.jobs;
        let (sender, reports) = sync_channel(jobs);
        let (court, cases) = (self.clone(), cases.into_iter());
        let judging = std::thread::spawn(move || {
            pipeline::run(
                jobs,
                |push| {
                    for case in cases {
                        let operations = case.as_ref().map_or(0, |case| case.history.len());
                        if !push(case, operations) {
                            return;
                        }
                    }
                },
                |case| case.and_then(|case| court.judge_case(case)),
                |report| sender.send(report).is_ok(),
            );
        });
        Reports { reports, judging: Some(judging) }
    }

    /// Lowers visibility levels of methods until they also explain a history of calls.
    pub fn infer_levels(
        &self,
        history: &History,
        levels: &mut Levels,
    ) -> Result<Result<Inference, Stopped>, Error> {
        let named = match &self.subject {
            Subject::Object(named) => named.clone(),
            _ => of_history("", history)?,
        };
        let (calls, named) = named.as_calls(history)?;
        let task = objects::task(calls.as_ref().unwrap_or(history), &named)?;
        Ok(infer_levels(&task, levels, &self.settings.object_options(self.settings.jobs)))
    }

    /// Returns the family by which a history is judged.
    fn family(&self, history: &History) -> Family {
        match &self.subject {
            _ if !self.isolation.is_empty() => Family::Transactions,
            Subject::Registers => Family::Registers,
            Subject::Object(_) => Family::Objects,
            Subject::Any if self.named[0] > 0 => Family::Registers,
            Subject::Any if self.named[1] > 0 || history.has_calls() => Family::Objects,
            Subject::Any if is_of_transactions(history) => Family::Transactions,
            Subject::Any => Family::Registers,
        }
    }

    fn hear<'h>(&self, history: Held<'h>, place: Origin) -> Result<Report<'h>, Error> {
        let turn = Turn::start(&self.at_work);
        let _tenant = self.settings.gauge.as_ref().map(Gauge::enter);
        // Histories judged at the same time share the threads.
        let jobs = (self.settings.jobs / turn.at_work).max(1);
        let hearing = Hearing { jobs, watch: Stopwatch::start(self.settings.gauge.as_ref()) };
        let family = self.family(&history);
        self.refuse_ineffective(family)?;
        match family {
            Family::Registers => self.hear_registers(history, place, &hearing),
            Family::Objects => match self.hear_in_real_time(&history, &place, &hearing)? {
                InRealTime::Judged(report) => Ok(report),
                InRealTime::OtherQuestion => self.hear_calls(history, place, &hearing),
                InRealTime::Open => {
                    let mut court = self.clone();
                    court.settings.time /= 2;
                    court.hear_calls(history, place, &hearing)
                }
            },
            Family::Transactions => self.hear_transactions(history, place, &hearing),
        }
    }

    /// Fails if a setting that was chosen has no effect on models of this family.
    fn refuse_ineffective(&self, family: Family) -> Result<(), Error> {
        let no_effect = |setting, meant_for| Err(Error::NoEffect { setting, meant_for, family });
        let Settings { order, engine, .. } = self.settings;
        let is_own = |model: &RegisterModel| match model {
            RegisterModel::Own { definition, .. } => definition.is_transactional(),
            RegisterModel::Catalogued(_) => false,
        };
        let knows_order = family == Family::Transactions || self.registers.iter().any(is_own);
        if order != ClientOrder::default() && !knows_order {
            return no_effect(format!("the order `{}`", order.id()), "isolation levels");
        }
        if engine != Engine::Auto && family != Family::Registers {
            return no_effect("the choice of an engine".to_owned(), "sc, tso and pso");
        }
        Ok(())
    }

    fn hear_registers<'h>(
        &self,
        history: Held<'h>,
        place: Origin,
        hearing: &Hearing,
    ) -> Result<Report<'h>, Error> {
        let (named, group) = (self.named[0], self.group(self.named[0]));
        let all: Arc<[RegisterModel]>;
        let models = match group {
            None => &self.registers,
            Some(_) => {
                let is_new = |m: &RegisterModel| !self.registers.iter().any(|n| n.id() == m.id());
                let rest = all_register_models().filter(is_new);
                all = self.registers.iter().cloned().chain(rest).collect();
                &all
            }
        };
        let (operations, count) = (history.len(), models.len());
        self.settings.observe(Stage::Judging { operations, models: count });
        let rulings =
            registers::judge(&history, models, &self.settings.register_options(hearing.jobs));
        let mut ruled = Vec::with_capacity(models.len());
        let mut refused = None;
        for (i, (model, ruling)) in models.iter().zip(rulings).enumerate() {
            match ruling {
                Ok(ruling) => {
                    let model = Model::Register(model.clone()).ordered(self.settings.order);
                    ruled.push((model, ruling));
                }
                Err(reason) if i < named => {
                    return Err(Error::DoesNotApply { model: model.id().to_owned(), reason });
                }
                // A group stands for every model that applies, so one that does not apply is
                // skipped.
                Err(reason) => refused = Some(reason),
            }
        }
        if let (true, Some(reason)) = (ruled.is_empty(), refused) {
            return Err(Error::NoneApplies { reason });
        }
        Ok(self.report(history, place, None, ruled, group, hearing))
    }

    fn asks_only_for_linearizability(&self) -> bool {
        let is_it = matches!(&self.objects[..], [model] if model.id == "linearizability");
        is_it && self.levels.is_none() && self.group.is_none()
    }

    /// Judges linearizability of timed reads and writes, recorded as such or as calls of an object
    /// that consists of registers.
    ///
    /// It takes at most half of the time, which is too little only if values repeat; the search
    /// over calls then has the other half.
    fn hear_in_real_time<'h>(
        &self,
        history: &Held<'h>,
        place: &Origin,
        hearing: &Hearing,
    ) -> Result<InRealTime<'h>, Error> {
        if !self.asks_only_for_linearizability() {
            return Ok(InRealTime::OtherQuestion);
        }
        let named = match &self.subject {
            Subject::Object(named) => Some(named.clone()),
            _ if history.has_calls() => Some(of_history(&place.source, history)?),
            _ => None,
        };
        let model = RegisterModel::Catalogued(linearizability());
        let (budget, started) = (self.settings.budget(), Instant::now());
        let mut stopped = None;
        let registers = match &named {
            Some(named) if history.has_calls() => {
                let made = named.as_registers_while(history, &mut || {
                    stopped = budget.check().err();
                    stopped.is_none()
                });
                match (made, stopped) {
                    (Some(made), _) => Held::Shared(Arc::new(made)),
                    (None, None) => return Ok(InRealTime::OtherQuestion),
                    (None, Some(stopped)) => {
                        let judgement = Judgement::Undecided(stopped);
                        let ruling = Ruling::own(judgement, started.elapsed());
                        let ruled = vec![(Model::Register(model), ruling)];
                        let (history, place) = (history.clone(), place.clone());
                        let report = self.report(history, place, None, ruled, None, hearing);
                        return Ok(InRealTime::Judged(report));
                    }
                }
            }
            _ => history.clone(),
        };
        let converting = started.elapsed();
        if model.definition().applies(&registers).is_err() || !model.has_decider(&registers) {
            return Ok(InRealTime::OtherQuestion);
        }
        let operations = registers.len();
        self.settings.observe(Stage::Judging { operations, models: 1 });
        let mut options = self.settings.register_options(hearing.jobs);
        options.budget = budget.after(budget.spent()).share(2);
        let ruling = registers::judge(&registers, std::slice::from_ref(&model), &options);
        let Ok(mut ruling) = ruling.into_iter().next().expect("one model has one ruling") else {
            return Ok(InRealTime::OtherQuestion);
        };
        if let Judgement::Undecided(Stopped::Time { .. }) = ruling.judgement {
            return Ok(InRealTime::Open);
        }
        ruling.time += converting;
        let ruled = vec![(Model::Register(model), ruling)];
        let report = self.report(registers, place.clone(), named, ruled, None, hearing);
        Ok(InRealTime::Judged(report))
    }

    fn hear_calls<'h>(
        &self,
        history: Held<'h>,
        place: Origin,
        hearing: &Hearing,
    ) -> Result<Report<'h>, Error> {
        let (preparing, started) = (self.settings.budget(), Instant::now());
        let named = match &self.subject {
            Subject::Object(named) => named.clone(),
            _ => of_history(&place.source, &history)?,
        };
        let (calls, named) = named.as_calls(&history)?;
        let history = calls.map_or(history, |calls| Held::Shared(Arc::new(calls)));
        let asked = self.named[1] + usize::from(self.levels.is_some());
        let group = self.group(asked);
        let mut models: Vec<ObjectModel> = self.objects.to_vec();
        if group.is_some() {
            models
                .extend(all_object_models().filter(|m| !self.objects.iter().any(|n| n.id == m.id)));
        }
        let task = objects::task(&history, &named)?;
        if let Some(MethodLevels { levels, other }) = &self.levels {
            models.push(ObjectModel::of_levels(levels, *other, &task.methods()));
        }
        let (operations, count) = (history.len(), models.len());
        self.settings.observe(Stage::Judging { operations, models: count });
        let (prepared, settings) = (started.elapsed(), self.settings.after(&preparing));
        let mut rulings = objects::judge(&task, &models, &settings.object_options(hearing.jobs));
        drop(task);
        if let Some(first) = rulings.first_mut() {
            first.time += prepared;
        }
        let ruled = models.into_iter().zip(rulings);
        let ruled = ruled
            .map(|(model, ruling)| (Model::Object { object: named.clone(), model }, ruling))
            .collect();
        Ok(self.report(history, place, Some(named), ruled, group, hearing))
    }

    fn hear_transactions<'h>(
        &self,
        history: Held<'h>,
        place: Origin,
        hearing: &Hearing,
    ) -> Result<Report<'h>, Error> {
        let (preparing, started) = (self.settings.budget(), Instant::now());
        let converted = match as_transactions(&history)? {
            Cow::Borrowed(_) => None,
            Cow::Owned(converted) => Some(converted),
        };
        let history = converted.map_or(history, |history| Held::Shared(Arc::new(history)));
        let group = self.group(self.isolation.len());
        let mut asked = self.isolation.to_vec();
        if group.is_some() {
            let is_new = |level: &IsolationLevel| !self.isolation.iter().any(|a| a.is(*level));
            let rest = IsolationLevel::ALL.into_iter().filter(is_new);
            asked.extend(rest.map(AskedLevel::Known));
        }
        let (operations, count) = (history.len(), asked.len());
        self.settings.observe(Stage::Judging { operations, models: count });
        // The built-in levels are decided together.
        let (mut levels, mut own) = (Vec::new(), Vec::new());
        for level in &asked {
            match level {
                AskedLevel::Known(level) => levels.push(*level),
                AskedLevel::Own { id, definition } => {
                    let (id, definition) = (id.clone(), definition.clone());
                    own.push(RegisterModel::Own { id, definition });
                }
            }
        }
        let order = self.settings.order;
        let (prepared, settings) = (started.elapsed(), self.settings.after(&preparing));
        let mut known = match levels.is_empty() {
            true => Vec::new(),
            false => transactions::judge(&history, order, &levels, &settings.budget())?,
        };
        if let Some(first) = known.first_mut() {
            first.time += prepared;
        }
        let mut known = known.into_iter();
        let options = self.settings.register_options(hearing.jobs);
        let mut own = registers::judge(&history, &own, &options).into_iter();
        let mut ruled = Vec::with_capacity(asked.len());
        for level in asked {
            let ruling = match &level {
                AskedLevel::Known(_) => known.next().expect("one ruling per level"),
                AskedLevel::Own { id, .. } => own
                    .next()
                    .expect("one ruling per definition")
                    .map_err(|reason| Error::DoesNotApply { model: id.to_string(), reason })?,
            };
            ruled.push((level.in_order(order), ruling));
        }
        Ok(self.report(history, place, None, ruled, group, hearing))
    }

    /// Returns the requested group; without any model this is the strongest.
    fn group(&self, named: usize) -> Option<Group> {
        self.group.or((named == 0).then_some(Group::Strongest))
    }

    /// Passes the certificates to the checker and builds the verdicts.
    fn report<'h>(
        &self,
        history: Held<'h>,
        place: Origin,
        object: Option<NamedObject>,
        ruled: Vec<(Model, Ruling)>,
        group: Option<Group>,
        hearing: &Hearing,
    ) -> Report<'h> {
        let checked = self.have_checked(&history, &ruled, hearing);
        let verdicts: Vec<Verdict<'h>> = ruled
            .into_iter()
            .zip(checked)
            .map(|((model, mut ruling), (rejection, time))| {
                ruling.time += time;
                // Later work on the verdict, such as shrinking, reads nothing.
                let settings = Settings { spent: Duration::ZERO, ..self.settings.clone() };
                let history = history.clone();
                let verdict = Verdict { history, model, ruling, rejection: None, settings };
                verdict.withheld_if(rejection)
            })
            .collect();
        let strongest = (group == Some(Group::Strongest)).then(|| strongest(&verdicts));
        Report { place, history, object, verdicts, strongest }
    }

    /// Passes the certificates to the checker, in parallel for a large history. Returns the reason
    /// of each rejection, and the time of the check.
    ///
    /// A check may use the time that is left after deciding its model. Only work counts: time
    /// during which other programs kept the decider waiting is not charged to the check.
    fn have_checked(
        &self,
        history: &History,
        ruled: &[(Model, Ruling)],
        hearing: &Hearing,
    ) -> Vec<(Option<Rejection>, Duration)> {
        if self.settings.certify == Certify::None {
            return vec![(None, Duration::ZERO); ruled.len()];
        }
        let jobs = hearing.jobs;
        let is_large = history.len() >= PARALLEL_CERTIFY_OPS;
        let together = if is_large { jobs.min(ruled.len()).max(1) } else { 1 };
        let alone = self.settings.certify_options(if is_large { jobs } else { 1 });
        let part = Options {
            budget: alone.budget.with_part_of_memory(together),
            jobs: (alone.jobs / together).max(1),
            ..alone.clone()
        };
        let (done, total) = (AtomicUsize::new(0), ruled.len());
        self.settings.observe(Stage::Certifying { done: 0, total });
        // Certificates of isolation levels share much of the work.
        let levels: Vec<(IsolationLevel, &Ruling)> = ruled
            .iter()
            .filter_map(|(model, ruling)| match model {
                Model::Isolation { level, .. } => Some((*level, ruling)),
                _ => None,
            })
            .collect();
        let mut of_levels = Vec::new().into_iter();
        if !levels.is_empty() {
            let started = Instant::now();
            // Deciding has used a part of the time of every level; checking has the remaining time
            // of one level.
            let spent = levels.iter().map(|(_, ruling)| ruling.time).max().unwrap_or_default();
            let budget = alone.budget.after(hearing.watch.work_in(spent));
            let order = self.settings.order;
            let rejections = transactions::rejections(history, order, &levels, &budget);
            let each = started.elapsed() / u32::try_from(levels.len()).unwrap_or(1);
            done.store(levels.len(), Ordering::Relaxed);
            self.settings.observe(Stage::Certifying { done: levels.len(), total });
            let checked: Vec<_> =
                rejections.into_iter().map(|rejection| (rejection, each)).collect();
            of_levels = checked.into_iter();
        }
        let is_level = |i: &usize| matches!(ruled[*i].0, Model::Isolation { .. });
        let others: Vec<usize> = (0..total).filter(|i| !is_level(i)).collect();
        let check = |i: usize, options: &Options| {
            let (model, ruling) = &ruled[others[i]];
            let budget = options.budget.after(hearing.watch.work_in(ruling.time));
            let started = Instant::now();
            let accepted =
                model.accept_ruling(history, ruling, &Options { budget, ..options.clone() });
            (accepted.err(), started.elapsed())
        };
        let mut checked = side_by_side(others.len(), together, |i| {
            let checked = check(i, &part);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            self.settings.observe(Stage::Certifying { done, total });
            checked
        });
        for (i, checked) in checked.iter_mut().enumerate().filter(|_| together > 1) {
            if let (Some(Rejection::Stopped(Stopped::Memory { .. })), spent) = checked {
                // Alone, with all of the memory, it may succeed.
                let (rejection, time) = check(i, &alone);
                *checked = (rejection, time + *spent);
            }
        }
        let mut checked = checked.into_iter();
        let next = |i| match is_level(&i) {
            true => of_levels.next().expect("every level was checked"),
            false => checked.next().expect("every other model was checked"),
        };
        (0..total).map(next).collect()
    }
}

/// Resources for judging one history.
struct Hearing {
    /// Number of threads.
    jobs: usize,
    /// Stopwatch started with the judgement.
    watch: Stopwatch,
}

/// Returns the satisfied models that no other satisfied model implies.
fn strongest(verdicts: &[Verdict<'_>]) -> Vec<String> {
    let satisfied = verdicts.iter().filter(|verdict| verdict.is_consistent());
    strongest_of(satisfied.map(|verdict| &verdict.model))
}

/// Returns the ids of the models that no other given model implies.
pub fn strongest_of<'a>(models: impl Iterator<Item = &'a Model>) -> Vec<String> {
    let models: Vec<&Model> = models.collect();
    let satisfied = |family: Family| -> Vec<&str> {
        models.iter().filter(|model| model.family() == family).map(|model| model.id()).collect()
    };
    let registers = consistory_models::strongest(&satisfied(Family::Registers));
    let objects = objects::strongest(&satisfied(Family::Objects));
    let levels = || {
        models.iter().filter_map(|model| match model {
            Model::Isolation { level, .. } => Some(*level),
            _ => None,
        })
    };
    let is_implied =
        |level: IsolationLevel| levels().any(|other| other != level && other.implies(level));
    let is_strongest = |model: &&&Model| match model {
        Model::Isolation { level, .. } => !is_implied(*level),
        // The implications of a user's definition are unknown.
        model => matches!(model, Model::OwnLevel { .. }),
    };
    let levels = models.iter().filter(is_strongest).map(|model| model.id());
    registers.into_iter().chain(objects).chain(levels).map(ToOwned::to_owned).collect()
}

/// Result for a history that may consist of timed reads and writes.
enum InRealTime<'h> {
    /// The history consists of timed reads and writes, and was judged.
    Judged(Report<'h>),
    /// The history consists of timed reads and writes, but the time share ran out.
    Open,
    /// The history must be judged as calls of an object.
    OtherQuestion,
}

/// A history's share of the threads while it is judged.
struct Turn<'a> {
    counter: &'a AtomicUsize,
    /// Number of histories being judged, this one included.
    at_work: usize,
}

impl<'a> Turn<'a> {
    fn start(counter: &'a AtomicUsize) -> Self {
        Turn { counter, at_work: counter.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reports on many histories, in input order, as they are judged on other threads.
#[derive(Debug)]
pub struct Reports {
    reports: Receiver<Result<Report<'static>, Error>>,
    judging: Option<JoinHandle<()>>,
}

impl Iterator for Reports {
    type Item = Result<Report<'static>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Ok(report) = self.reports.recv() {
            return Some(report);
        }
        // A panic must not look like the end of the input.
        if let Err(panic) = self.judging.take()?.join() {
            std::panic::resume_unwind(panic);
        }
        None
    }
}

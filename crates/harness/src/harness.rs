//! The interface for authors of collections: a constructor, methods, and test settings.

use std::sync::Arc;
use std::time::Duration;

use consistory_formats::Diagnostics;
use consistory_history::Value;
use consistory_spec::{
    CallError, Level, Object, ObjectError, ObjectModel, Specification, find, parse_levels,
};

use crate::campaign::{Campaign, CampaignError};
use crate::judge::Promise;
use crate::program::{Program, ProgramError};
use crate::report::Report;
use crate::signature::{Domain, Signature, Sort};
use crate::threads::{Callable, Clock, ThreadError, ThreadRunner};
use crate::values::{Answer, Arguments};

/// Defines builder methods that set the field of the same name.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $field(mut self, $field: $type) -> Self {
                self.$field = $field;
                self
            }
        )*
    };
}

/// The reason why a harness cannot run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HarnessError {
    /// The object's specification is missing.
    #[error(
        "nothing says what the object should do: name one with `object`, or give a `specification`"
    )]
    NoObject,
    /// There is no such object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// There is no method to call.
    #[error("there is no method to call: give some with `method`, and not all of weight 0")]
    NoMethod,
    /// The object has no such method.
    #[error(transparent)]
    Method(#[from] CallError),
    /// A setting names a method, or an argument, that the harness does not have.
    #[error("`{method}`: no such method was given, or it has no such argument")]
    Setting {
        /// The method.
        method: String,
    },
    /// A number is 0 or too large.
    #[error("{what} is {value}, it must be from 1 to {most}")]
    OutOfRange {
        /// The setting.
        what: &'static str,
        /// The number.
        value: usize,
        /// The largest that is possible.
        most: usize,
    },
    /// A model or levels cannot be read.
    #[error("{0}")]
    Model(Diagnostics),
    /// A program cannot be read.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A program contains a call that the object does not have.
    #[error("{call}: {error}")]
    Call {
        /// The call.
        call: String,
        /// The reason.
        error: CallError,
    },
    /// A program could not be run.
    #[error(transparent)]
    Thread(#[from] ThreadError),
}

impl From<CampaignError<ThreadError>> for HarnessError {
    fn from(error: CampaignError<ThreadError>) -> Self {
        match error {
            CampaignError::Call { call, error } => HarnessError::Call { call, error },
            CampaignError::Runner(error) => HarnessError::Thread(error),
        }
    }
}

/// A method with the arguments that programs may pass.
struct Given<T> {
    callable: Callable<T>,
    sorts: Vec<Sort>,
}

/// The specification of the object.
enum Meant {
    Named(Box<str>),
    Specified(Arc<dyn Object>),
}

/// The promised consistency, as given.
enum Said {
    Model(Box<str>),
    Levels(Box<str>),
}

/// Tests a concurrent collection: see the [crate's documentation](crate) for an example.
pub struct Harness<T> {
    make: Arc<dyn Fn() -> T + Send + Sync>,
    meant: Option<Meant>,
    methods: Vec<Given<T>>,
    weights: Vec<(Box<str>, u32)>,
    domains: Vec<(Box<str>, usize, Vec<Value>)>,
    said: Said,
    threads: usize,
    calls: usize,
    keys: u32,
    seed: u64,
    rounds: u64,
    failures: usize,
    shrinking: Duration,
    infers_levels: bool,
    clock: Clock,
}

impl<T: Send + Sync + 'static> Harness<T> {
    /// Starts with a constructor; each run of a program gets a new object.
    pub fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Harness {
            make: Arc::new(make),
            meant: None,
            methods: Vec::new(),
            weights: Vec::new(),
            domains: Vec::new(),
            said: Said::Model("linearizability".into()),
            threads: 2,
            calls: 3,
            keys: 2,
            seed: 0,
            rounds: 1_000,
            failures: 1,
            shrinking: Duration::from_secs(5),
            infers_levels: false,
            clock: Clock::default(),
        }
    }

    /// Sets the specification by the name of a built-in object, such as `map` or `queue(10)`;
    /// `consistory_spec::catalogue` lists them.
    #[must_use]
    pub fn object(mut self, name: &str) -> Self {
        self.meant = Some(Meant::Named(name.into()));
        self
    }

    /// Sets your own specification.
    #[must_use]
    pub fn specification(mut self, specification: impl Specification) -> Self {
        self.meant = Some(Meant::Specified(Arc::new(specification)));
        self
    }

    /// Adds a method, by a name in the specification.
    ///
    /// The arguments are `()`, one value, a tuple or an array of integers, texts or truth values.
    /// The return may also be an option, a list or a pair of those. A method may be added several
    /// times with different numbers of arguments.
    #[must_use]
    pub fn method<A: Arguments, R: Answer>(
        mut self,
        name: &str,
        call: impl Fn(&T, A) -> R + Send + Sync + 'static,
    ) -> Self {
        let sorts = A::sorts();
        let perform = move |object: &T, args: &[Value]| {
            let args = A::from_values(args).expect("arguments are checked before a program runs");
            call(object, args).into_value()
        };
        let callable = Callable {
            name: name.into(),
            arity: sorts.len(),
            fits: |args| A::from_values(args).is_some(),
            perform: Arc::new(perform),
        };
        self.methods.push(Given { callable, sorts });
        self
    }

    /// Sets how often a method is called relative to others, which have weight 1; 0 disables it.
    #[must_use]
    pub fn weight(mut self, method: &str, weight: u32) -> Self {
        self.weights.push((method.into(), weight));
        self
    }

    /// Sets the values of an argument of a method, counted from 0.
    ///
    /// By default, keys are chosen from a few, and inserted values are all different.
    #[must_use]
    pub fn argument<V: Answer>(
        mut self,
        method: &str,
        position: usize,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let values = values.into_iter().map(V::into_value).collect();
        self.domains.push((method.into(), position, values));
        self
    }

    setters! {
        /// Sets the number of threads of a program; 2 by default.
        threads: usize;
        /// Sets the number of calls per thread; 3 by default.
        calls: usize;
        /// Sets the number of keys that programs use; 2 by default.
        keys: u32;
        /// Sets the seed of the programs. The interleaving of threads still differs between runs.
        seed: u64;
        /// Sets the number of runs of each program; 1,000 by default.
        rounds: u64;
        /// Sets the number of different failures after which to stop; 1 by default.
        failures: usize;
        /// Sets the time limit for shrinking a failure; five seconds by default.
        shrinking: Duration;
        /// Sets how the order of calls is recorded.
        clock: Clock;
    }

    /// Sets a model other than linearizability: a named one, such as `causal-convergence`, or
    /// axioms, such as `vis >= po`.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.said = Said::Model(model.into());
        self
    }

    /// Sets visibility levels of methods, such as `len=weak, iter=monotonic`; unlisted methods have
    /// the level `complete`.
    #[must_use]
    pub fn levels(mut self, levels: &str) -> Self {
        self.said = Said::Levels(levels.into());
        self
    }

    /// Adds the inferred visibility level of each method to the report.
    #[must_use]
    pub fn infer_levels(mut self) -> Self {
        self.infers_levels = true;
        self
    }

    /// Runs random programs for some time, or until one fails.
    ///
    /// # Panics
    ///
    /// Panics if the harness cannot run; [`try_run`](Self::try_run) returns the error instead.
    #[track_caller]
    pub fn run(self, time: Duration) -> Report {
        match self.try_run(time) {
            Ok(report) => report,
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs random programs for some time, or until one fails.
    pub fn try_run(self, time: Duration) -> Result<Report, HarnessError> {
        let (mut campaign, mut runner) = self.build()?;
        campaign.time = time;
        Ok(campaign.run(&mut runner, |_| ())?)
    }

    /// Runs one program `rounds` times, or until it fails.
    ///
    /// # Panics
    ///
    /// Panics if the program cannot be run; [`try_replay`](Self::try_replay) returns the error.
    #[track_caller]
    pub fn replay(self, program: &str, rounds: u64) -> Report {
        match self.try_replay(program, rounds) {
            Ok(report) => report,
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs one program `rounds` times, or until it fails.
    pub fn try_replay(self, program: &str, rounds: u64) -> Result<Report, HarnessError> {
        let program: Program = program.parse()?;
        let (campaign, mut runner) = self.build()?;
        Ok(campaign.replay(&program, rounds, &mut runner)?)
    }

    /// Returns the campaign and the runner of its programs, for full control.
    pub fn build(self) -> Result<(Campaign, ThreadRunner), HarnessError> {
        for (what, value, most) in [
            ("the number of threads", self.threads, 64),
            ("the number of calls", self.calls, 1_000),
            ("the number of keys", self.keys as usize, 1_000_000),
            ("the number of rounds", usize::try_from(self.rounds).unwrap_or(usize::MAX), 1 << 30),
        ] {
            if !(1..=most).contains(&value) {
                return Err(HarnessError::OutOfRange { what, value, most });
            }
        }
        let object = match self.meant {
            None => return Err(HarnessError::NoObject),
            Some(Meant::Named(name)) => find(&name)?,
            Some(Meant::Specified(object)) => object,
        };
        let mut signatures = Vec::new();
        for given in &self.methods {
            let mut signature =
                Signature::of(&*object, &given.callable.name, given.callable.arity)?;
            for (parameter, &sort) in signature.parameters.iter_mut().zip(&given.sorts) {
                parameter.sort = sort;
            }
            signatures.push(signature);
        }
        let setting = |method: &str| HarnessError::Setting { method: method.to_owned() };
        for (method, weight) in self.weights {
            let mut named = signatures.iter_mut().filter(|s| s.method == method).peekable();
            named.peek().ok_or_else(|| setting(&method))?;
            named.for_each(|signature| signature.weight = weight);
        }
        for (method, position, values) in self.domains {
            let named = signatures.iter_mut().filter(|s| s.method == method);
            let mut parameters = named.filter_map(|s| s.parameters.get_mut(position)).peekable();
            parameters.peek().ok_or_else(|| setting(&method))?;
            parameters.for_each(|parameter| parameter.domain = Domain::Of(values.clone()));
        }
        if signatures.iter().all(|signature| signature.weight == 0) {
            return Err(HarnessError::NoMethod);
        }
        let promise = match self.said {
            Said::Model(text) => {
                Promise::Model(ObjectModel::parse("model", &text).map_err(HarnessError::Model)?)
            }
            Said::Levels(text) => Promise::Levels {
                levels: named_as_specified(
                    &*object,
                    parse_levels("levels", &text).map_err(HarnessError::Model)?,
                ),
                other: Level::Complete,
            },
        };
        let mut campaign = Campaign::new(object, signatures);
        campaign.promise = promise;
        campaign.programs.threads = self.threads;
        campaign.programs.calls = self.calls;
        campaign.programs.keys = self.keys;
        campaign.programs.seed = self.seed;
        campaign.rounds = self.rounds;
        campaign.failures = self.failures;
        campaign.shrinking = self.shrinking;
        campaign.infers_levels = self.infers_levels;
        let callables = self.methods.into_iter().map(|given| given.callable).collect();
        Ok((campaign, ThreadRunner::new(self.make, callables, self.clock)))
    }
}

/// Returns levels by the names of methods in the specification.
fn named_as_specified(
    object: &dyn Object,
    levels: Vec<(Box<str>, Level)>,
) -> Vec<(Box<str>, Level)> {
    let name = |said: Box<str>| {
        let is_it = |m: &&consistory_spec::Method| m.name == said || m.aliases.contains(&said);
        object.methods().iter().find(is_it).map_or(said.clone(), |method| method.name.clone())
    };
    levels.into_iter().map(|(method, level)| (name(method), level)).collect()
}

//! Tests databases under load and faults, and records their histories.
//!
//! A [`System`] defines how nodes are started and reached. Sessions connect as [`Client`]s and run
//! the programs of a [`Workload`], while faults ([`Nemesis`]) happen by a [`Schedule`] that was
//! drawn before. The requests and their outcomes are written as JSON lines: a history, which the
//! rest of Consistory judges.
//!
//! ```no_run
//! use std::path::Path;
//! use std::time::Duration;
//! use consistory_drive::{
//!     Cluster, Observer, RunOptions, Schedule, SessionRule, WorkloadKind, find, run,
//! };
//!
//! struct Quiet;
//! impl Observer for Quiet {}
//!
//! let system = find("sqlite", &["journal=wal".to_owned()])?;
//! let folder = Path::new("runs/sqlite").to_owned();
//! let options = RunOptions {
//!     workload: WorkloadKind::Register,
//!     time: Duration::from_secs(2),
//!     seed: 1,
//!     sessions: 4,
//!     keys: 3,
//!     first_key: 0,
//!     requests: None,
//!     rate: 0,
//!     timeout: Duration::from_secs(1),
//!     session_rule: SessionRule::Client,
//!     moves: false,
//!     keeps_going: false,
//!     folder: folder.clone(),
//! };
//! let cluster = Cluster::embedded(&folder);
//! let found = run(&*system, &cluster, &Schedule::default(), &options, &Quiet)?;
//! println!("{} operations", found.operations);
//! # Ok::<(), consistory_drive::DriveError>(())
//! ```
//!
//! Nodes run in their own namespaces: see [`relaunch`]. Reading order: [`Request`] and [`Outcome`],
//! then the traits, then `recorder`, `journal`, `nemesis` and `run`.

mod catalogue;
mod clock;
mod cluster;
mod error;
mod findings;
mod isolate;
mod journal;
mod nemesis;
mod network;
mod processes;
mod recorder;
mod request;
mod run;
mod schedule;
mod settings;
mod sql;
mod stats;
mod switch;
mod system;
mod systems;
mod tool;
mod wire;
mod workloads;

pub use consistory_random::Random;

pub use catalogue::{Entry, SYSTEMS, external, find};
pub use clock::Clock;
pub use cluster::{Cluster, NodeId};
pub use error::DriveError;
pub use findings::{CoreOperation, Findings, Judged, ModelVerdict};
pub use isolate::{
    Sweeper, bound_to_this_thread, check as check_isolation, is_inside, is_root, relaunch,
};
pub use journal::{Journal, SessionRule, Style};
pub use nemesis::{FaultEvent, Nemesis, Site};
pub use network::Links;
pub use recorder::{Recorder, Row};
pub use request::{Action, BALANCES, Change, FIRST_BALANCE, Key, Outcome, Reply, Request, balance};
pub use run::{Observer, Run, RunOptions, boot, record, run};
pub use schedule::{FaultKind, FaultMix, Planned, Schedule, Target};
pub use settings::{Setting, Settings};
pub use stats::{Counts, Span, counts, spans};
pub use system::{Client, System, write_through};
pub use workloads::{Family, Program, Workload, WorkloadKind};

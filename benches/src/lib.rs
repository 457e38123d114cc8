//! Measurements: against the encodings of the papers, and of how far the deciders reach.
//!
//! Programs print what they measure and write it into `docs/`, so that a rerun refreshes what
//! is claimed there:
//! - `thesis` redoes the experiments of Zennou's thesis on causal consistency (2021, Figures 3.3
//!   and 3.4), with the thesis's own Datalog encodings in the same run.
//! - `scale` goes up to a million operations, one process a measurement, and to hundreds of
//!   thousands of small histories.
//! - `jdk` redoes the experiments of Emmi and Enea's paper on weak consistency (2018, Figures 7
//!   and 8), on histories that it recorded from collections of the JDK.
//! - `protocols` explores protocols, one of them with Rumur in the same run.
//! - `gradual` redoes its experiments on SC and TSO (Figures 4.6, 4.7, 4.15 to 4.18, 5.5 and 5.10),
//!   with the plain encodings and the plain search in the same run.
//! - `porcupine` judges Porcupine's own logs, with Porcupine in the same run; it needs the feature
//!   `peers`.
//! - `databases` runs `consistory test` on all databases: the table of `docs/live.md`.
//! - `galera` redoes the thesis's experiment on Galera (section 3.3.4).
//! - `recorder` says what recording costs the clients of a database.
//! - `growth` says how far SC, TSO, wSC and wTSO reach, and how their time grows.
//!
//! The modules: `datalog` writes the thesis's encodings, `clingo` runs them, `logs` finds Porcupine's logs,
//! `measure` times our side, `plain` decides SC and TSO without saturation, `publish` writes what was found, `turns` makes
//! histories of objects that are hard to judge.

pub mod clingo;
pub mod datalog;
pub mod logs;
pub mod measure;
pub mod plain;
pub mod publish;
pub mod turns;

//! Measurements: comparisons with the encodings of the papers, and scaling of the deciders.
//!
//! Programs print their measurements and write them into `docs/`, so that a rerun refreshes the
//! claims there:
//! - `thesis` redoes the experiments of Zennou's thesis on causal consistency (2021, Figures 3.3
//!   and 3.4), with the thesis's own Datalog encodings in the same run.
//! - `scale` measures up to a million operations, with one process per measurement, and hundreds of
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
//! - `recorder` measures the cost of recording for the clients of a database.
//! - `growth` measures the scaling of SC, TSO, wSC and wTSO.
//! - `isolation` measures the deciders of isolation levels on large histories.
//! - `certified` compares the times of deciding and certifying, for all models and levels.
//! - `undecided` counts the histories on which a search for an isolation level ends undecided.
//!
//! The modules: `datalog` writes the thesis's encodings, `clingo` runs them, `logs` finds
//! Porcupine's logs, `measure` times our deciders, `plain` decides SC and TSO without saturation,
//! `publish` writes the results, `turns` generates histories of objects that are hard to judge.

pub mod clingo;
pub mod datalog;
pub mod logs;
pub mod measure;
pub mod plain;
pub mod publish;
pub mod turns;

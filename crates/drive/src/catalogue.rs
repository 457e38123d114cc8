//! The catalogue of systems.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64};

use crate::error::DriveError;
use crate::network::MAX_NODES;
use crate::settings::{Setting, Settings};
use crate::system::System;
use crate::systems::command::External;
use crate::systems::{etcd, galera, mariadb, postgres, redis, sqlite};
use crate::workloads::WorkloadKind;

/// A system of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name of the system.
    pub name: &'static str,
    /// A description of the system.
    pub about: &'static str,
    /// Settings of the system.
    pub settings: &'static [Setting],
    make: fn(Settings) -> Box<dyn System>,
}

/// All systems that can be tested by name.
pub const SYSTEMS: &[Entry] = &[
    Entry {
        name: "sqlite",
        about: "SQLite, embedded: needs nothing",
        settings: sqlite::SETTINGS,
        make: |settings| Box::new(sqlite::Sqlite { settings }),
    },
    Entry {
        name: "redis",
        about: "Redis: a primary, two replicas, three sentinels",
        settings: redis::SETTINGS,
        make: |settings| Box::new(redis::Redis { settings }),
    },
    Entry {
        name: "etcd",
        about: "etcd: three nodes",
        settings: etcd::SETTINGS,
        make: |settings| Box::new(etcd::Etcd { settings }),
    },
    Entry {
        name: "postgres",
        about: "PostgreSQL: one node, or a primary with standbys",
        settings: postgres::SETTINGS,
        make: |settings| Box::new(postgres::Postgres::new(settings)),
    },
    Entry {
        name: "mariadb",
        about: "MariaDB: one node",
        settings: mariadb::SETTINGS,
        make: |settings| Box::new(mariadb::MariaDb { settings }),
    },
    Entry {
        name: "galera",
        about: "MariaDB with Galera: three nodes that all take writes",
        settings: galera::SETTINGS,
        make: |settings| Box::new(galera::Galera { settings }),
    },
];

/// Finds a system by its name and applies settings to it.
pub fn find(name: &str, settings: &[String]) -> Result<Box<dyn System>, DriveError> {
    let entry = SYSTEMS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = SYSTEMS.iter().map(|entry| entry.name).collect();
        DriveError::Malformed(format!(
            "there is no system `{name}`; there are {}",
            names.join(", ")
        ))
    })?;
    Ok((entry.make)(Settings::parse(name, entry.settings, settings)?))
}

/// Builds a system from the user's own programs.
///
/// `client` is the command of a session's program. `script` starts and stops the nodes; their
/// number is that of the names in `nodes`.
pub fn external(
    client: Vec<String>,
    script: Option<PathBuf>,
    nodes: Vec<String>,
    workload: WorkloadKind,
) -> Result<Box<dyn System>, DriveError> {
    if client.is_empty() {
        return Err(DriveError::Malformed("the client's command is empty".to_owned()));
    }
    if script.is_some() && nodes.len() > MAX_NODES {
        let message = format!("{} nodes cannot be started; {MAX_NODES} can", nodes.len());
        return Err(DriveError::Malformed(message));
    }
    let (sessions, probes) = (AtomicU64::new(0), AtomicI64::new(0));
    Ok(Box::new(External { client, script, nodes, workload, sessions, probes }))
}

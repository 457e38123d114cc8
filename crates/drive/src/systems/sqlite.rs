//! SQLite, embedded: one connection per session, all in this process.

use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;

use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::settings::{Setting, Settings};
use crate::sql::{Dialect, Rows, SqlClient, SqlConnection, SqlError};
use crate::system::{Client, System};

/// The settings of SQLite.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: "journal",
        values: &["wal", "delete", "truncate", "persist", "memory"],
        about: "the journal mode",
    },
    Setting {
        name: "cache",
        values: &["private", "shared", "uncommitted"],
        about: "whether connections share a cache, and then also read what is not committed",
    },
    Setting {
        name: "begin",
        values: &["deferred", "immediate"],
        about: "when a transaction takes its lock",
    },
];

/// SQLite.
pub(crate) struct Sqlite {
    pub(crate) settings: Settings,
}

struct Connection(rusqlite::Connection);

impl SqlConnection for Connection {
    fn query(&mut self, sql: &str, deadline: Instant) -> Result<Rows, SqlError> {
        let run = || -> rusqlite::Result<Rows> {
            let left = deadline.saturating_duration_since(Instant::now());
            self.0.busy_timeout(left)?;
            let mut statement = self.0.prepare(sql)?;
            let columns = statement.column_count();
            let mut found = Rows::default();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let column = |at| {
                    Ok(match row.get_ref(at)? {
                        ValueRef::Null => None,
                        ValueRef::Integer(number) => Some(number.to_string()),
                        ValueRef::Real(number) => Some(number.to_string()),
                        ValueRef::Text(text) | ValueRef::Blob(text) => {
                            Some(String::from_utf8_lossy(text).into_owned())
                        }
                    })
                };
                found.rows.push((0..columns).map(column).collect::<rusqlite::Result<_>>()?);
            }
            found.affected = self.0.changes();
            Ok(found)
        };
        // SQLite runs in this process: an error always means that the statement was rolled back,
        // and a COMMIT that fails leaves the transaction open.
        run().map_err(|error| SqlError::Rejected { is_definite: true, message: error.to_string() })
    }
}

impl Sqlite {
    fn open(&self, cluster: &Cluster) -> Result<Connection, DriveError> {
        let file = cluster.shared_folder().join("sqlite.db");
        let open = || -> rusqlite::Result<Connection> {
            use rusqlite::OpenFlags;
            let shared = self.settings.get("cache") != "private";
            let cache =
                if shared { OpenFlags::SQLITE_OPEN_SHARED_CACHE } else { OpenFlags::empty() };
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | cache;
            let connection = rusqlite::Connection::open_with_flags(&file, flags)?;
            connection.busy_timeout(Duration::from_secs(2))?;
            connection.pragma_update(None, "journal_mode", self.settings.get("journal"))?;
            // No fault cuts the power, so data need not reach the disk.
            connection.pragma_update(None, "synchronous", "off")?;
            if self.settings.get("cache") == "uncommitted" {
                connection.pragma_update(None, "read_uncommitted", "on")?;
            }
            Ok(Connection(connection))
        };
        open().map_err(|error| DriveError::setup(format!("SQLite: {error}")))
    }
}

impl System for Sqlite {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn version(&self) -> Result<String, DriveError> {
        Ok(format!("SQLite {}", rusqlite::version()))
    }

    fn nodes(&self) -> usize {
        0
    }

    fn settings(&self) -> String {
        self.settings.show()
    }

    fn commands(&self, _cluster: &Cluster, _node: NodeId) -> Result<Vec<Command>, DriveError> {
        Ok(Vec::new())
    }

    fn set_up(&self, cluster: &Cluster) -> Result<(), DriveError> {
        let mut connection = self.open(cluster)?;
        let deadline = Instant::now() + Duration::from_secs(10);
        for table in Dialect::Sqlite.tables() {
            connection
                .query(&table, deadline)
                .map_err(|error| DriveError::setup(format!("SQLite: {error}")))?;
        }
        Ok(())
    }

    fn connect(
        &self,
        cluster: &Cluster,
        _node: NodeId,
        _deadline: Instant,
    ) -> Result<Box<dyn Client>, DriveError> {
        let begin = match self.settings.get("begin") {
            "immediate" => "begin immediate",
            _ => "begin",
        };
        let connection = self.open(cluster)?;
        Ok(Box::new(SqlClient { connection, dialect: Dialect::Sqlite, begin }))
    }
}

//! PostgreSQL: one node at a chosen isolation level, or a primary with standbys and a promotion.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::isolate::{as_user, give};
use crate::request::{Outcome, Request};
use crate::settings::{Setting, Settings};
use crate::sql::{Dialect, SqlClient, SqlConnection, SqlError};
use crate::system::{Client, System, write_through};
use crate::tool;
use crate::wire::postgres::Connection;
use crate::workloads::{Family, WorkloadKind};

const PORT: u16 = 5432;

/// The settings of PostgreSQL.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: "level",
        values: &["serializable", "repeatable-read", "read-committed"],
        about: "the isolation level of transactions",
    },
    Setting { name: "standbys", values: &["0", "1", "2"], about: "the number of standbys" },
    Setting {
        name: "sync",
        values: &["off", "on", "apply"],
        about: "whether a commit waits for a standby, and then until it can be read there",
    },
    Setting {
        name: "reads",
        values: &["primary", "node"],
        about: "whether a session reads from the primary or from its own node",
    },
];

/// Time for which the standby is cut off before the primary is killed.
const LAG: Duration = Duration::from_millis(700);

/// PostgreSQL.
pub(crate) struct Postgres {
    pub(crate) settings: Settings,
    /// The node that is currently the primary.
    primary: AtomicUsize,
}

impl Postgres {
    pub(crate) fn new(settings: Settings) -> Self {
        Postgres { settings, primary: AtomicUsize::new(0) }
    }

    fn primary(&self) -> NodeId {
        NodeId(self.primary.load(Ordering::SeqCst))
    }

    /// Finds a program of the newest installed version.
    fn program(name: &str) -> Result<PathBuf, DriveError> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let newest = versions
            .filter_map(|entry| {
                let path = entry.path().join("bin").join(name);
                let version: u32 = entry.file_name().to_str()?.parse().ok()?;
                tool::is_program(&path).then_some((version, path))
            })
            .max();
        match newest {
            Some((_, path)) => Ok(path),
            None => tool::require(name, "postgresql"),
        }
    }

    /// Returns a command that does not run as root, since PostgreSQL refuses to run as root.
    fn command(program: &str) -> Result<Command, DriveError> {
        let mut command = as_user("postgres", &Self::program(program)?);
        command.env("LC_ALL", "C");
        Ok(command)
    }

    fn run(cluster: &Cluster, node: NodeId, command: &Command) -> Result<(), DriveError> {
        tool::run_command(&cluster.enter(node, command), "").map(drop)
    }

    /// Copies the primary's data to a node, which becomes a standby.
    fn copy(&self, cluster: &Cluster, node: NodeId) -> Result<(), DriveError> {
        let data = cluster.folder(node).join("data");
        if data.exists() {
            std::fs::remove_dir_all(&data).map_err(|error| DriveError::file(&data, error))?;
        }
        let primary = cluster.address(self.primary());
        let source = format!("host={primary} port={PORT} user=postgres application_name={node}");
        let mut copy = Self::command("pg_basebackup")?;
        copy.args(["-d", &source, "-R", "-X", "stream", "-c", "fast", "--no-sync", "-D"])
            .arg(&data);
        Self::run(cluster, node, &copy)
    }

    fn query(&self, cluster: &Cluster, node: NodeId, sql: &str) -> Result<(), DriveError> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let explain = |error: SqlError| DriveError::setup(format!("{node}: {error}"));
        let mut connection =
            Connection::connect(cluster.socket(node, PORT), deadline).map_err(explain)?;
        connection.query(sql, deadline).map(drop).map_err(explain)
    }

    fn client(
        &self,
        cluster: &Cluster,
        node: NodeId,
        deadline: Instant,
    ) -> Result<SqlClient<Connection>, SqlError> {
        let mut connection = Connection::connect(cluster.socket(node, PORT), deadline)?;
        let (begin, default) = match self.settings.get("level") {
            "read-committed" => ("begin isolation level read committed", "read committed"),
            "repeatable-read" => ("begin isolation level repeatable read", "repeatable read"),
            // A standby supports no level stronger than repeatable read.
            _ if node != self.primary() => {
                ("begin isolation level repeatable read", "repeatable read")
            }
            _ => ("begin isolation level serializable", "serializable"),
        };
        connection.query(&format!("set default_transaction_isolation = '{default}'"), deadline)?;
        Ok(SqlClient { connection, dialect: Dialect::Postgres, begin })
    }
}

impl System for Postgres {
    fn name(&self) -> &str {
        "postgres"
    }

    fn version(&self) -> Result<String, DriveError> {
        Self::program("initdb")?;
        let text = tool::version(&Self::program("postgres")?, "--version")?;
        let number = text.split_whitespace().nth(2);
        Ok(number.map_or(text.clone(), |number| format!("PostgreSQL {number}")))
    }

    fn nodes(&self) -> usize {
        1 + self.settings.get("standbys").parse::<usize>().unwrap_or(0)
    }

    fn settings(&self) -> String {
        self.settings.show()
    }

    fn supports(&self, workload: WorkloadKind) -> bool {
        workload != WorkloadKind::Queue
    }

    fn promise(&self, workload: WorkloadKind) -> String {
        match (workload.family(), self.settings.get("level")) {
            (Family::Transactions, "read-committed") => "rc",
            (Family::Transactions, "repeatable-read") => "si",
            (Family::Transactions, _) => "ser",
            (Family::Registers | Family::Object(_), _) => "linearizability",
        }
        .to_owned()
    }

    fn prepare(&self, cluster: &Cluster) -> Result<(), DriveError> {
        for node in cluster.ids() {
            give(&cluster.folder(node), "postgres")?;
        }
        let data = cluster.folder(NodeId(0)).join("data");
        let mut init = Self::command("initdb")?;
        init.args(["-U", "postgres", "-A", "trust", "--no-sync", "-D"]).arg(&data);
        Self::run(cluster, NodeId(0), &init)?;
        let settings = "listen_addresses = '*'\nunix_socket_directories = ''\nfsync = off\n\
            wal_level = replica\nmax_wal_senders = 8\nhot_standby = on\nshared_buffers = 64MB\n\
            max_connections = 60\nwal_keep_size = 64MB\nwal_receiver_status_interval = 1\n\
            wal_retrieve_retry_interval = 200\ntcp_user_timeout = 3000\n\
            deadlock_timeout = 20ms\n";
        let access = "host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n";
        for (name, text) in [("postgresql.conf", settings), ("pg_hba.conf", access)] {
            let path = data.join(name);
            let old = std::fs::read_to_string(&path).map_err(|e| DriveError::file(&path, e))?;
            std::fs::write(&path, old + text).map_err(|error| DriveError::file(&path, error))?;
        }
        Ok(())
    }

    fn commands(&self, cluster: &Cluster, node: NodeId) -> Result<Vec<Command>, DriveError> {
        let mut server = Self::command("postgres")?;
        server.arg("-D").arg(cluster.folder(node).join("data"));
        Ok(vec![server])
    }

    fn boot(&self, cluster: &Cluster) -> Result<(), DriveError> {
        let first = NodeId(0);
        cluster.start(self.commands(cluster, first)?, first)?;
        let until = Instant::now() + Duration::from_secs(60);
        while self.query(cluster, first, "select 1").is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        for table in Dialect::Postgres.tables() {
            self.query(cluster, first, &table)?;
        }
        for node in cluster.ids().skip(1) {
            self.copy(cluster, node)?;
            cluster.start(self.commands(cluster, node)?, node)?;
        }
        if cluster.len() > 1 && self.settings.get("sync") != "off" {
            // Set only now: without a streaming standby, commits would wait forever.
            self.query(cluster, first, "alter system set synchronous_standby_names = '*'")?;
            if self.settings.get("sync") == "apply" {
                self.query(cluster, first, "alter system set synchronous_commit = 'remote_apply'")?;
            }
            self.query(cluster, first, "select pg_reload_conf()")?;
        }
        Ok(())
    }

    fn restart(&self, cluster: &Cluster, node: NodeId) -> Result<(), DriveError> {
        let is_standby = cluster.folder(node).join("data/standby.signal").exists();
        if node != self.primary() && !is_standby {
            // The node was the primary, and its log may have diverged.
            self.copy(cluster, node)?;
        }
        cluster.start(self.commands(cluster, node)?, node)
    }

    /// Waits until a write through the primary works and every standby answers.
    fn ready(&self, cluster: &Cluster, limit: Duration) -> Result<(), DriveError> {
        let until = Instant::now() + limit;
        write_through(self, cluster, self.primary(), until)?;
        for node in cluster.ids().filter(|&node| node != self.primary()) {
            while let Err(error) = self.query(cluster, node, "select 1") {
                cluster.check_alive(node)?;
                if Instant::now() > until {
                    let reason = error.to_string();
                    return Err(DriveError::NotReady { node: node.to_string(), reason });
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }

    fn leader(&self, _cluster: &Cluster) -> Option<NodeId> {
        Some(self.primary())
    }

    fn verbs(&self) -> &[&'static str] {
        if self.nodes() > 1 { &["failover"] } else { &[] }
    }

    /// Cuts the next standby off briefly, kills the primary, promotes the standby, and makes the
    /// old primary a standby.
    fn perform(&self, cluster: &Cluster, _verb: &str) -> Result<String, DriveError> {
        let old = self.primary();
        let new = NodeId((old.0 + 1) % cluster.len());
        cluster.network()?.set_link(new.0, false)?;
        std::thread::sleep(LAG);
        cluster.kill(old);
        cluster.network()?.set_link(new.0, true)?;
        let until = Instant::now() + Duration::from_secs(20);
        while let Err(error) = self.query(cluster, new, "select pg_promote(true, 20)") {
            if Instant::now() > until {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.primary.store(new.0, Ordering::SeqCst);
        // The other standbys and the old primary follow the new one.
        for node in cluster.ids().filter(|&node| node != new) {
            cluster.kill(node);
            self.copy(cluster, node)?;
            cluster.start(self.commands(cluster, node)?, node)?;
        }
        Ok(format!("{new} cut off, {old} killed, {new} promoted"))
    }

    fn connect(
        &self,
        cluster: &Cluster,
        node: NodeId,
        deadline: Instant,
    ) -> Result<Box<dyn Client>, DriveError> {
        let explain = |error: SqlError| DriveError::setup(error.to_string());
        let first = self.primary();
        let primary = self.client(cluster, first, deadline).map_err(explain)?;
        let reads_own = self.settings.get("reads") == "node" && node != self.primary();
        let own = match reads_own {
            true => Some(self.client(cluster, node, deadline).map_err(explain)?),
            false => None,
        };
        Ok(Box::new(PostgresClient { primary, own, homes: (first, node), sent_to: first }))
    }
}

struct PostgresClient {
    primary: SqlClient<Connection>,
    own: Option<SqlClient<Connection>>,
    /// The nodes of the two.
    homes: (NodeId, NodeId),
    /// The node of the last request.
    sent_to: NodeId,
}

impl Client for PostgresClient {
    fn run(&mut self, request: &Request, deadline: Instant) -> Outcome {
        match &mut self.own {
            Some(own) if request.is_read() => {
                self.sent_to = self.homes.1;
                own.run(request, deadline)
            }
            _ => {
                self.sent_to = self.homes.0;
                self.primary.run(request, deadline)
            }
        }
    }

    fn sent_to(&self) -> Option<NodeId> {
        Some(self.sent_to)
    }
}

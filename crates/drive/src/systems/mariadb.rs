//! MariaDB: one node at a chosen isolation level.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::isolate::{as_user, give};
use crate::settings::{Setting, Settings};
use crate::sql::{Dialect, SqlClient, SqlConnection, SqlError};
use crate::system::{Client, System};
use crate::tool;
use crate::wire::mysql::Connection;
use crate::workloads::{Family, WorkloadKind};

pub(crate) const PORT: u16 = 3306;

/// The user that the server runs as.
pub(crate) const USER: &str = "mysql";

pub(crate) const LEVEL: Setting = Setting {
    name: "level",
    values: &["repeatable-read", "serializable", "read-committed", "read-uncommitted"],
    about: "the isolation level of transactions",
};

/// The settings of MariaDB.
pub(crate) const SETTINGS: &[Setting] = &[LEVEL];

/// MariaDB.
pub(crate) struct MariaDb {
    pub(crate) settings: Settings,
}

pub(crate) fn server() -> Result<PathBuf, DriveError> {
    tool::require("mariadbd", "mariadb-server")
}

/// Returns the short version of the server.
pub(crate) fn server_version() -> Result<String, DriveError> {
    let text = tool::version(&server()?, "--version")?;
    // In `10.11.14-MariaDB-0+deb12u2` the package's version follows that of the server.
    let number = text.split_whitespace().skip_while(|word| *word != "Ver").nth(1);
    let number = number.and_then(|number| number.split('-').next());
    Ok(number.map_or(text.clone(), |number| format!("MariaDB {number}")))
}

/// Makes the server's user the owner of a node's folder, and creates the system tables in it.
pub(crate) fn install(cluster: &Cluster, node: NodeId) -> Result<(), DriveError> {
    give(&cluster.folder(node), USER)?;
    let mut command = as_user(USER, &tool::require("mariadb-install-db", "mariadb-server")?);
    // The server's user may have no access to this program's temporary folder.
    command.env("TMPDIR", cluster.folder(node)).args([
        "--no-defaults".to_owned(),
        format!("--datadir={}", cluster.folder(node).join("data").display()),
        "--auth-root-authentication-method=normal".to_owned(),
        "--skip-test-db".to_owned(),
        "--innodb-log-file-size=16M".to_owned(),
        "--innodb-buffer-pool-size=32M".to_owned(),
    ]);
    tool::run_command(&command, "").map(drop)
}

/// Returns the command of a server, without the options of a cluster.
pub(crate) fn server_command(cluster: &Cluster, node: NodeId) -> Result<Command, DriveError> {
    let folder = cluster.folder(node);
    let mut command = as_user(USER, &server()?);
    let file = |name: &str| folder.join(name).display().to_string();
    command.env("TMPDIR", &folder).args([
        "--no-defaults".to_owned(),
        format!("--datadir={}", file("data")),
        format!("--socket={}", file("socket")),
        format!("--pid-file={}", file("pid")),
        format!("--port={PORT}"),
        "--bind-address=0.0.0.0".to_owned(),
        "--skip-name-resolve".to_owned(),
        "--skip-grant-tables".to_owned(),
        "--innodb-buffer-pool-size=64M".to_owned(),
        "--innodb-log-file-size=16M".to_owned(),
        "--innodb-lock-wait-timeout=1".to_owned(),
        "--performance-schema=OFF".to_owned(),
    ]);
    Ok(command)
}

/// Connects to a server and sets the isolation level.
pub(crate) fn client(
    cluster: &Cluster,
    node: NodeId,
    level: &str,
    deadline: Instant,
) -> Result<Box<dyn Client>, DriveError> {
    let connect = || -> Result<_, SqlError> {
        let mut connection = Connection::connect(cluster.socket(node, PORT), deadline)?;
        let level = level.replace('-', " ");
        connection.query(&format!("set session transaction isolation level {level}"), deadline)?;
        connection.query("use test", deadline)?;
        Ok(connection)
    };
    let connection = connect().map_err(|error| DriveError::setup(error.to_string()))?;
    Ok(Box::new(SqlClient { connection, dialect: Dialect::MariaDb, begin: "start transaction" }))
}

/// Creates the database and the tables, as soon as the server answers.
pub(crate) fn create_tables(
    cluster: &Cluster,
    node: NodeId,
    limit: Duration,
) -> Result<(), DriveError> {
    let until = Instant::now() + limit;
    let mut connection = loop {
        match Connection::connect(
            cluster.socket(node, PORT),
            Instant::now() + Duration::from_secs(2),
        ) {
            Ok(connection) => break connection,
            Err(error) if Instant::now() > until => {
                let reason = error.to_string();
                return Err(DriveError::NotReady { node: node.to_string(), reason });
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
        cluster.check_alive(node)?;
    };
    let statements = ["create database test".to_owned(), "use test".to_owned()];
    for sql in statements.into_iter().chain(Dialect::MariaDb.tables()) {
        while let Err(error) = connection.query(&sql, Instant::now() + Duration::from_secs(20)) {
            if Instant::now() > until || matches!(error, SqlError::Lost(_)) {
                return Err(DriveError::setup(format!("{node}: {sql}: {error}")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}

/// Returns the model that an isolation level promises.
pub(crate) fn promise(level: &str, workload: WorkloadKind) -> String {
    match (workload.family(), level) {
        (Family::Transactions, "serializable") => "ser",
        (Family::Transactions, "repeatable-read") => "si",
        (Family::Transactions, _) => "rc",
        (Family::Registers | Family::Object(_), _) => "linearizability",
    }
    .to_owned()
}

impl System for MariaDb {
    fn name(&self) -> &str {
        "mariadb"
    }

    fn version(&self) -> Result<String, DriveError> {
        tool::require("mariadb-install-db", "mariadb-server")?;
        server_version()
    }

    fn nodes(&self) -> usize {
        1
    }

    fn settings(&self) -> String {
        self.settings.show()
    }

    fn promise(&self, workload: WorkloadKind) -> String {
        promise(self.settings.get("level"), workload)
    }

    fn prepare(&self, cluster: &Cluster) -> Result<(), DriveError> {
        install(cluster, NodeId(0))
    }

    fn commands(&self, cluster: &Cluster, node: NodeId) -> Result<Vec<Command>, DriveError> {
        Ok(vec![server_command(cluster, node)?])
    }

    fn boot(&self, cluster: &Cluster) -> Result<(), DriveError> {
        cluster.start(self.commands(cluster, NodeId(0))?, NodeId(0))?;
        create_tables(cluster, NodeId(0), Duration::from_secs(60))
    }

    fn leader(&self, _cluster: &Cluster) -> Option<NodeId> {
        Some(NodeId(0))
    }

    fn connect(
        &self,
        cluster: &Cluster,
        node: NodeId,
        deadline: Instant,
    ) -> Result<Box<dyn Client>, DriveError> {
        client(cluster, node, self.settings.get("level"), deadline)
    }
}

//! Galera: three MariaDB servers, each of which accepts writes and certifies them with the others.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::mariadb::{self, LEVEL};
use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::isolate::give;
use crate::settings::{Setting, Settings};
use crate::system::{Client, System, write_through};
use crate::tool;
use crate::workloads::{Family, WorkloadKind};

const LIBRARY: &str = "/usr/lib/galera/libgalera_smm.so";

/// The settings of Galera.
pub(crate) const SETTINGS: &[Setting] = &[
    LEVEL,
    Setting {
        name: "sync-wait",
        values: &["0", "1"],
        about: "whether a read waits until the node has what was committed before (wsrep_sync_wait)",
    },
    Setting {
        name: "flush",
        values: &["1", "0", "2"],
        about: "when a commit reaches the log on disk (innodb_flush_log_at_trx_commit)",
    },
];

/// Galera.
pub(crate) struct Galera {
    pub(crate) settings: Settings,
}

impl Galera {
    fn command(&self, cluster: &Cluster, node: NodeId) -> Result<Command, DriveError> {
        let all: Vec<String> =
            cluster.ids().map(|node| cluster.address(node).to_string()).collect();
        let address = cluster.address(node);
        let mut command = mariadb::server_command(cluster, node)?;
        command.args([
            format!("--innodb-flush-log-at-trx-commit={}", self.settings.get("flush")),
            "--innodb-autoinc-lock-mode=2".to_owned(),
            "--binlog-format=ROW".to_owned(),
            "--wsrep-on=ON".to_owned(),
            format!("--wsrep-provider={LIBRARY}"),
            "--wsrep-cluster-name=consistory".to_owned(),
            format!("--wsrep-cluster-address=gcomm://{}", all.join(",")),
            format!("--wsrep-node-name={node}"),
            format!("--wsrep-node-address={address}"),
            "--wsrep-sst-method=rsync".to_owned(),
            "--wsrep-slave-threads=2".to_owned(),
            format!("--wsrep-sync-wait={}", self.settings.get("sync-wait")),
            "--wsrep-provider-options=gcache.size=64M;evs.keepalive_period=PT0.5S;\
             evs.suspect_timeout=PT2S;evs.inactive_timeout=PT6S;evs.install_timeout=PT5S"
                .to_owned(),
        ]);
        Ok(command)
    }

    fn found(&self, cluster: &Cluster, node: NodeId) -> Result<(), DriveError> {
        let mut command = self.command(cluster, node)?;
        command.arg("--wsrep-new-cluster");
        cluster.start(vec![command], node)
    }
}

impl System for Galera {
    fn name(&self) -> &str {
        "galera"
    }

    fn version(&self) -> Result<String, DriveError> {
        if !Path::new(LIBRARY).exists() {
            return Err(DriveError::Missing {
                program: "galera-4".to_owned(),
                install: "apt-get install -y mariadb-server galera-4 rsync".to_owned(),
            });
        }
        tool::require("rsync", "rsync")?;
        tool::require("mariadb-install-db", "mariadb-server galera-4")?;
        mariadb::server_version().map(|text| format!("Galera 4 on {text}"))
    }

    fn settings(&self) -> String {
        self.settings.show()
    }

    fn supports(&self, workload: WorkloadKind) -> bool {
        workload != WorkloadKind::Queue
    }

    fn promise(&self, workload: WorkloadKind) -> String {
        let level = match self.settings.get("level") {
            // Between nodes, the documentation promises at most snapshot isolation.
            "serializable" => "repeatable-read",
            level => level,
        };
        match (workload.family(), self.settings.get("sync-wait")) {
            // All nodes apply all writes in one order, but a read may return an older state.
            (Family::Registers, "0") => "sc".to_owned(),
            _ => mariadb::promise(level, workload),
        }
    }

    fn prepare(&self, cluster: &Cluster) -> Result<(), DriveError> {
        mariadb::install(cluster, NodeId(0))
    }

    fn commands(&self, cluster: &Cluster, node: NodeId) -> Result<Vec<Command>, DriveError> {
        let data = cluster.folder(node).join("data");
        if !data.exists() {
            std::fs::create_dir_all(&data).map_err(|error| DriveError::file(&data, error))?;
            give(&cluster.folder(node), mariadb::USER)?;
            give(&data, mariadb::USER)?;
        }
        Ok(vec![self.command(cluster, node)?])
    }

    fn boot(&self, cluster: &Cluster) -> Result<(), DriveError> {
        let first = NodeId(0);
        self.found(cluster, first)?;
        mariadb::create_tables(cluster, first, Duration::from_secs(60))?;
        // A joining node copies the data of another one, which serves one copy at a time.
        for node in cluster.ids().skip(1) {
            cluster.start(self.commands(cluster, node)?, node)?;
            write_through(self, cluster, node, Instant::now() + Duration::from_secs(90))?;
        }
        Ok(())
    }

    /// Restarts the cluster from the node with the latest state.
    fn recover(&self, cluster: &Cluster) -> Result<(), DriveError> {
        let mut newest = (i64::MIN, NodeId(0));
        for node in cluster.ids() {
            let mut command = self.command(cluster, node)?;
            let report = cluster.folder(node).join("recovery.log");
            command.arg("--wsrep-recover").arg(format!("--log-error={}", report.display()));
            let _ = std::fs::remove_file(&report);
            tool::run_command(&cluster.enter(node, &command), "")?;
            let text = std::fs::read_to_string(&report).unwrap_or_default();
            let _ = std::fs::remove_file(&report);
            let position = text.lines().rev().find_map(|line| {
                let (_, after) = line.split_once("Recovered position:")?;
                after.trim().rsplit_once(':')?.1.parse::<i64>().ok()
            });
            newest = newest.max((position.unwrap_or(-1), NodeId(usize::MAX - node.0)));
        }
        let first = NodeId(usize::MAX - newest.1.0);
        let state = cluster.folder(first).join("data/grastate.dat");
        let text =
            std::fs::read_to_string(&state).map_err(|error| DriveError::file(&state, error))?;
        let text = text.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1");
        std::fs::write(&state, text).map_err(|error| DriveError::file(&state, error))?;
        self.found(cluster, first)?;
        let limit = || Instant::now() + Duration::from_secs(90);
        write_through(self, cluster, first, limit())?;
        for node in cluster.ids().filter(|&node| node != first) {
            cluster.start(self.commands(cluster, node)?, node)?;
            write_through(self, cluster, node, limit())?;
        }
        Ok(())
    }

    fn connect(
        &self,
        cluster: &Cluster,
        node: NodeId,
        deadline: Instant,
    ) -> Result<Box<dyn Client>, DriveError> {
        mariadb::client(cluster, node, self.settings.get("level"), deadline)
    }
}

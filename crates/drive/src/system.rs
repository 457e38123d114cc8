//! The traits that a system under test implements.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::request::{Action, Key, Outcome, Request};
use crate::workloads::{Family, WorkloadKind};

/// A session's connection to the system.
///
/// A client is used by one thread at a time. After an indeterminate outcome it is dropped, whatever
/// its state, and a new one is connected.
pub trait Client: Send {
    /// Runs a request and returns before the deadline, or soon after.
    ///
    /// A client reports [`Outcome::Failed`] only if the system's answer proves that the request had
    /// no effect and never will have one. Any other error is indeterminate.
    fn run(&mut self, request: &Request, deadline: Instant) -> Outcome;

    /// Returns the node that the last request was sent to, if it was not the node of the session:
    /// many systems redirect clients to their leader.
    fn sent_to(&self) -> Option<NodeId> {
        None
    }
}

/// A system under test: how its nodes are started, reached and repaired.
pub trait System: Send + Sync {
    /// Returns the name that selects the system on the command line.
    fn name(&self) -> &str;

    /// Returns the version, or an error that names the missing packages.
    fn version(&self) -> Result<String, DriveError>;

    /// Returns the commands that start a node's servers, the main one first.
    ///
    /// They run in the node's namespace and must stay in the foreground.
    fn commands(&self, cluster: &Cluster, node: NodeId) -> Result<Vec<Command>, DriveError>;

    /// Connects a session to a node.
    fn connect(
        &self,
        cluster: &Cluster,
        node: NodeId,
        deadline: Instant,
    ) -> Result<Box<dyn Client>, DriveError>;

    /// Returns the number of nodes; an embedded system has none.
    fn nodes(&self) -> usize {
        3
    }

    /// Returns the number of nodes among which sessions are distributed; at least 1.
    fn homes(&self) -> usize {
        self.nodes().max(1)
    }

    /// Returns the settings as text, for reports.
    fn settings(&self) -> String {
        String::new()
    }

    /// Returns whether the system can run a workload.
    fn supports(&self, _workload: WorkloadKind) -> bool {
        true
    }

    /// Returns the model that the system's documentation promises for a workload.
    fn promise(&self, workload: WorkloadKind) -> String {
        match workload.family() {
            Family::Transactions => "ser",
            Family::Registers | Family::Object(_) => "linearizability",
        }
        .to_owned()
    }

    /// Writes configuration files and creates data folders.
    fn prepare(&self, _cluster: &Cluster) -> Result<(), DriveError> {
        Ok(())
    }

    /// Starts all nodes for the first time.
    fn boot(&self, cluster: &Cluster) -> Result<(), DriveError> {
        for node in cluster.ids() {
            cluster.start(self.commands(cluster, node)?, node)?;
        }
        Ok(())
    }

    /// Kills a node.
    fn kill(&self, cluster: &Cluster, node: NodeId) -> Result<(), DriveError> {
        cluster.kill(node);
        Ok(())
    }

    /// Restarts a killed node.
    fn restart(&self, cluster: &Cluster, node: NodeId) -> Result<(), DriveError> {
        cluster.start(self.commands(cluster, node)?, node)
    }

    /// Restarts all nodes after all were killed.
    fn recover(&self, cluster: &Cluster) -> Result<(), DriveError> {
        for node in cluster.ids() {
            self.restart(cluster, node)?;
        }
        Ok(())
    }

    /// Creates tables and similar objects, once all nodes are ready for the first time.
    fn set_up(&self, _cluster: &Cluster) -> Result<(), DriveError> {
        Ok(())
    }

    /// Waits until a write through every node has worked.
    fn ready(&self, cluster: &Cluster, limit: Duration) -> Result<(), DriveError> {
        let until = Instant::now() + limit;
        for node in cluster.ids() {
            write_through(self, cluster, node, until)?;
        }
        Ok(())
    }

    /// Stops everything that would not end with this process.
    fn tear_down(&self, _cluster: &Cluster) {}

    /// Returns the leader, if the system has one and it can be determined.
    fn leader(&self, _cluster: &Cluster) -> Option<NodeId> {
        None
    }

    /// Lists the system's own faults, such as a promotion.
    fn verbs(&self) -> &[&'static str] {
        &[]
    }

    /// Performs one of the system's own faults.
    fn perform(&self, _cluster: &Cluster, verb: &str) -> Result<String, DriveError> {
        Err(DriveError::setup(format!("there is no fault `{verb}`")))
    }
}

/// Time limit of one attempt of a readiness probe.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// Repeats a write through a node until it succeeds.
pub fn write_through<S: System + ?Sized>(
    system: &S,
    cluster: &Cluster,
    node: NodeId,
    until: Instant,
) -> Result<(), DriveError> {
    let probe = || Request::Single(Action::Write(Key::PROBE, 1));
    request_through(system, cluster, node, &probe, until)
}

/// Sends requests through a node until one succeeds; each attempt has its own request.
pub(crate) fn request_through<S: System + ?Sized>(
    system: &S,
    cluster: &Cluster,
    node: NodeId,
    probe: &dyn Fn() -> Request,
    until: Instant,
) -> Result<(), DriveError> {
    let mut last = "no attempt was made".to_owned();
    while Instant::now() < until {
        let deadline = until.min(Instant::now() + PROBE_TIME);
        match system.connect(cluster, node, deadline) {
            Ok(mut client) => match client.run(&probe(), deadline) {
                Outcome::Ok(_) => return Ok(()),
                Outcome::Failed(reason) | Outcome::Unknown { reason, .. } => last = reason,
            },
            Err(error) => last = error.to_string(),
        }
        cluster.check_alive(node)?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(DriveError::NotReady { node: cluster.name(node), reason: last })
}

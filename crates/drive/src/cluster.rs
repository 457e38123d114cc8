//! The nodes of a run: their namespaces, folders and processes.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::error::DriveError;
use crate::isolate::{mount_tmpfs, mount_workspace};
use crate::network::{Links, Network, Rule, address};
use crate::processes;

/// A node, counted from 0; it is shown as `n1`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub usize);

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "n{}", self.0 + 1)
    }
}

/// Size of the file system that holds a node's data.
const NODE_DISK: &str = "512m";

/// The nodes of a run.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    logs: PathBuf,
    network: Option<Network>,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    /// The processes started last, the node's main process first.
    processes: Mutex<Vec<Child>>,
}

impl Cluster {
    /// Builds a cluster without nodes, for embedded systems; their files are in `folder`.
    pub fn embedded(folder: &Path) -> Cluster {
        let folder = folder.to_owned();
        Cluster { logs: folder.clone(), folder, network: None, nodes: Vec::new() }
    }

    /// Creates namespaces and folders for nodes.
    ///
    /// The process must have been started by [`relaunch`](crate::relaunch). Logs of servers are
    /// written to `logs`; `needed` are other paths that must stay visible.
    pub fn isolated(
        nodes: usize,
        links: Links,
        logs: &Path,
        needed: &[PathBuf],
    ) -> Result<Cluster, DriveError> {
        if !crate::isolate::is_inside() {
            return Err(DriveError::setup("this process does not run in namespaces of its own"));
        }
        std::fs::create_dir_all(logs).map_err(|error| DriveError::file(logs, error))?;
        let logs = logs.canonicalize().map_err(|error| DriveError::file(logs, error))?;
        let needed: Vec<PathBuf> = needed.iter().cloned().chain([logs.clone()]).collect();
        let folder = mount_workspace(&needed)?;
        let network = Network::up(&folder, nodes, links)?;
        let cluster = Cluster {
            nodes: (0..nodes).map(|_| Node { processes: Mutex::new(Vec::new()) }).collect(),
            folder,
            logs,
            network: Some(network),
        };
        for node in cluster.ids() {
            let folder = cluster.folder(node);
            std::fs::create_dir_all(&folder).map_err(|error| DriveError::file(&folder, error))?;
            mount_tmpfs(&folder, NODE_DISK)?;
            // A log of an earlier run may exist, and servers would append to it.
            let _ = std::fs::remove_file(cluster.log(node));
        }
        Ok(cluster)
    }

    /// Lists the nodes.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId)
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are no nodes, as for an embedded system.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the name of a node.
    pub fn name(&self, node: NodeId) -> String {
        node.to_string()
    }

    /// Returns the address of a node.
    pub fn address(&self, node: NodeId) -> Ipv4Addr {
        address(node.0)
    }

    /// Returns the address of a node's server.
    pub fn socket(&self, node: NodeId, port: u16) -> SocketAddr {
        SocketAddr::from((self.address(node), port))
    }

    /// Returns the folder of a node's data, on its own small file system.
    pub fn folder(&self, node: NodeId) -> PathBuf {
        self.folder.join(node.to_string())
    }

    /// Returns the folder of files that all nodes share.
    pub fn shared_folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the log file of a node's servers.
    pub fn log(&self, node: NodeId) -> PathBuf {
        self.logs.join(format!("{node}.log"))
    }

    /// Returns a command that runs in a node's namespace, with the environment and working folder
    /// of the given command.
    pub fn enter(&self, node: NodeId, command: &Command) -> Command {
        let Some(network) = &self.network else { panic!("an embedded system has no nodes") };
        let [enter, net, dashes] = network.enter(node.0);
        let mut inside = Command::new(enter);
        inside.args([net, dashes]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            inside.current_dir(folder);
        }
        inside
    }

    /// Starts servers on a node in place of killed ones.
    pub fn start(&self, commands: Vec<Command>, node: NodeId) -> Result<(), DriveError> {
        for mut child in self.processes(node).drain(..) {
            // The killed server has ended; this removes its entry from the process table.
            let _ = child.try_wait();
        }
        self.add(commands, node)
    }

    /// Starts more servers on a node.
    pub fn add(&self, commands: Vec<Command>, node: NodeId) -> Result<(), DriveError> {
        for command in commands {
            let path = self.log(node);
            let log = OpenOptions::new().create(true).append(true).open(&path);
            let log = log.map_err(|error| DriveError::file(&path, error))?;
            let child = self
                .enter(node, &command)
                .env("TMPDIR", self.folder(node))
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                .spawn()
                .map_err(|error| DriveError::setup(format!("{command:?}: {error}")))?;
            self.processes(node).push(child);
        }
        Ok(())
    }

    fn processes(&self, node: NodeId) -> MutexGuard<'_, Vec<Child>> {
        self.nodes[node.0].processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree(&self, node: NodeId) -> Vec<u32> {
        let mut all = Vec::new();
        for child in self.processes(node).iter_mut() {
            if let Ok(None) = child.try_wait() {
                all.extend(processes::tree(child.id()));
            }
        }
        all
    }

    /// Returns whether any server started on a node is still running.
    pub fn is_running(&self, node: NodeId) -> bool {
        self.processes(node).iter_mut().any(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Describes how a node's server ended, with the end of its log; `None` if none has ended.
    pub fn exited(&self, node: NodeId) -> Option<String> {
        self.ended(node, |_| true)
    }

    /// Fails if a node's server ended with an error, so that callers stop waiting for it.
    ///
    /// A server may end without an error after it has started another process.
    pub fn check_alive(&self, node: NodeId) -> Result<(), DriveError> {
        match self.ended(node, |status| !status.success()) {
            Some(reason) => Err(DriveError::Ended { node: self.name(node), reason }),
            None => Ok(()),
        }
    }

    fn ended(&self, node: NodeId, counts: impl Fn(&ExitStatus) -> bool) -> Option<String> {
        if node.0 >= self.nodes.len() {
            // The node is not run by this process.
            return None;
        }
        let status = {
            let mut processes = self.processes(node);
            let mut statuses =
                processes.iter_mut().filter_map(|child| child.try_wait().ok().flatten());
            let ended = statuses.find(counts);
            ended?
        };
        let log = std::fs::read(self.log(node)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let mut tail: Vec<&str> =
            log.lines().rev().filter(|l| !l.trim().is_empty()).take(4).collect();
        tail.reverse();
        Some(format!("its server ended ({status}); the log ends with: {}", tail.join(" / ")))
    }

    /// Stops a node's processes without killing them (SIGSTOP).
    pub fn pause(&self, node: NodeId) {
        processes::signal(&self.tree(node), Signal::STOP);
    }

    /// Lets a paused node continue.
    pub fn resume(&self, node: NodeId) {
        processes::signal(&self.tree(node), Signal::CONT);
    }

    /// Kills a node's processes at once and waits until they are gone.
    pub fn kill(&self, node: NodeId) {
        let all = self.tree(node);
        processes::signal(&all, Signal::KILL);
        for child in self.processes(node).iter_mut() {
            let _ = child.wait();
        }
        let exists = |pid: &u32| {
            // This process adopts orphans, which stay as zombies and hold no resources.
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z "))
        };
        while all.iter().any(exists) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks the node's servers to end, waits up to ten seconds, and then kills them.
    pub fn stop(&self, node: NodeId) {
        for child in self.processes(node).iter_mut() {
            if let Ok(None) = child.try_wait() {
                processes::signal(&[child.id()], Signal::TERM);
            }
        }
        for _ in 0..200 {
            let ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
            if self.processes(node).iter_mut().all(ended) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.kill(node);
    }

    /// Fills a node's disk.
    pub fn fill_disk(&self, node: NodeId) -> Result<(), DriveError> {
        let path = self.folder(node).join("filler");
        let mut file = std::fs::File::create(&path).map_err(|e| DriveError::file(&path, e))?;
        let block = vec![0_u8; 1 << 20];
        // Writes until an error reports that no space is left.
        while file.write_all(&block).is_ok() {}
        while file.write_all(&block[..512]).is_ok() {}
        Ok(())
    }

    /// Frees a node's disk.
    pub fn free_disk(&self, node: NodeId) {
        let _ = std::fs::remove_file(self.folder(node).join("filler"));
    }

    pub(crate) fn network(&self) -> Result<&Network, DriveError> {
        self.network.as_ref().ok_or_else(|| {
            DriveError::setup("an embedded system has no network that a fault could cut")
        })
    }

    pub(crate) fn set_rules(&self, rules: &[Rule]) -> Result<(), DriveError> {
        self.network()?.set_rules(rules)
    }
}

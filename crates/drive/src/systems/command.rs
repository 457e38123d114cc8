//! A system of the user: a program per session, which exchanges JSON lines, and optionally a script
//! that starts the nodes.
//!
//! ```text
//! > {"type":"init","session":0,"node":"10.77.0.1","nodes":["10.77.0.1"],"workload":"register"}
//! < {"type":"ok"}
//! > {"id":1,"op":"write","key":"k1","value":17}            < {"id":1,"type":"ok"}
//! > {"id":2,"op":"read","key":"k1"}                        < {"id":2,"type":"ok","value":17}
//! > {"id":3,"op":"txn","steps":[["r","k1",null],["append","k2",3]]}
//! < {"id":3,"type":"ok","steps":[["r","k1",[1]],["append","k2",3]]}
//! < {"id":4,"type":"fail","error":"..."}                   no effect, for sure
//! < {"id":5,"type":"info","error":"..."}                   indeterminate
//! ```
//!
//! If a program does not answer in time, ends, or writes anything else, its request is
//! indeterminate, and the program is restarted.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use consistory_work::spawn;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::isolate::bound_to_this_thread;
use crate::request::{Action, Change, Key, Outcome, Reply, Request};
use crate::system::{Client, System, request_through};
use crate::tool;
use crate::workloads::WorkloadKind;

/// The first element that probes add to a set; sessions never reach it.
const FIRST_PROBE: i64 = 1_000_000_000_000;

/// A system of the user.
pub(crate) struct External {
    /// The client's program and its arguments.
    pub(crate) client: Vec<String>,
    /// The script that starts nodes; `None` if the nodes are started by other means.
    pub(crate) script: Option<PathBuf>,
    /// The names or addresses of the nodes; only their number matters if a script starts them.
    pub(crate) nodes: Vec<String>,
    pub(crate) workload: WorkloadKind,
    pub(crate) sessions: AtomicU64,
    /// The number of elements that probes have added to a set.
    pub(crate) probes: AtomicI64,
}

impl External {
    fn address(&self, cluster: &Cluster, node: NodeId) -> String {
        match self.script {
            Some(_) => cluster.address(node).to_string(),
            None => self.nodes.get(node.0).cloned().unwrap_or_default(),
        }
    }

    fn addresses(&self, cluster: &Cluster) -> Vec<String> {
        (0..self.homes()).map(|node| self.address(cluster, NodeId(node))).collect()
    }

    /// Builds a write of the workload's own kind that sessions never read. A queue has no such
    /// write.
    fn probe(&self) -> Request {
        let write = Action::Write(Key::PROBE, 1);
        match self.workload {
            WorkloadKind::Set => {
                // A set may refuse an element that it contains.
                Request::Add(FIRST_PROBE + self.probes.fetch_add(1, Ordering::Relaxed))
            }
            WorkloadKind::RwRegister | WorkloadKind::LongFork => Request::Transaction(vec![write]),
            WorkloadKind::ListAppend => Request::Transaction(vec![Action::Append(Key::PROBE, 1)]),
            WorkloadKind::ReadModifyWrite => {
                Request::Transaction(vec![Action::Update(Key::PROBE, Change::Put(1))])
            }
            _ => Request::Single(write),
        }
    }

    /// Returns the script's command for a verb.
    fn verb(&self, cluster: &Cluster, verb: &str, node: Option<NodeId>) -> Option<Command> {
        let mut command = Command::new(self.script.as_ref()?);
        command.arg(verb);
        if let Some(node) = node {
            command.arg(node.to_string());
            command.env("CONSISTORY_ADDRESS", self.address(cluster, node));
            command.env("CONSISTORY_FOLDER", cluster.folder(node));
        }
        command.env("CONSISTORY_NODES", self.addresses(cluster).join(","));
        Some(command)
    }

    /// Runs a verb whose command ends by itself.
    fn run_verb(
        &self,
        cluster: &Cluster,
        verb: &str,
        node: Option<NodeId>,
    ) -> Result<(), DriveError> {
        let Some(command) = self.verb(cluster, verb, node) else { return Ok(()) };
        let mut command = match node {
            Some(node) => cluster.enter(node, &command),
            None => command,
        };
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(DriveError::setup(format!("`{verb}` failed: {status}")));
                }
                None if Instant::now() > until => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(DriveError::setup(format!("`{verb}` took over a minute")));
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl System for External {
    fn name(&self) -> &str {
        "command"
    }

    fn version(&self) -> Result<String, DriveError> {
        let program = &self.client[0];
        // A name without a slash is looked up when the program is started.
        if program.contains('/') && !tool::is_program(program.as_ref()) {
            return Err(DriveError::Malformed(format!("`{program}` is not a program")));
        }
        Ok(self.client.join(" "))
    }

    fn nodes(&self) -> usize {
        if self.script.is_some() { self.nodes.len().max(1) } else { 0 }
    }

    fn homes(&self) -> usize {
        self.nodes.len().max(1)
    }

    fn supports(&self, workload: WorkloadKind) -> bool {
        workload != WorkloadKind::Bank
    }

    fn commands(&self, cluster: &Cluster, node: NodeId) -> Result<Vec<Command>, DriveError> {
        Ok(self.verb(cluster, "start", Some(node)).into_iter().collect())
    }

    fn kill(&self, cluster: &Cluster, node: NodeId) -> Result<(), DriveError> {
        cluster.kill(node);
        self.run_verb(cluster, "kill", Some(node))
    }

    /// Runs the script's `ready`, and then writes through every node; a queue has no write that
    /// sessions never read.
    fn ready(&self, cluster: &Cluster, limit: Duration) -> Result<(), DriveError> {
        let until = Instant::now() + limit;
        while let Err(error) = self.run_verb(cluster, "ready", None) {
            if Instant::now() > until {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        if matches!(self.workload, WorkloadKind::Queue | WorkloadKind::Bank) {
            return Ok(());
        }
        let probe = || self.probe();
        for node in (0..self.homes()).map(NodeId) {
            request_through(self, cluster, node, &probe, until)?;
        }
        Ok(())
    }

    fn tear_down(&self, cluster: &Cluster) {
        for node in cluster.ids() {
            let _ = self.run_verb(cluster, "stop", Some(node));
        }
        let _ = self.run_verb(cluster, "teardown", None);
    }

    fn connect(
        &self,
        cluster: &Cluster,
        node: NodeId,
        deadline: Instant,
    ) -> Result<Box<dyn Client>, DriveError> {
        let mut child = bound_to_this_thread(&self.client[0])
            .args(&self.client[1..])
            .env("CONSISTORY_FOLDER", cluster.shared_folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| DriveError::setup(format!("{}: {error}", self.client[0])))?;
        let output = child.stdout.take().expect("the output is piped");
        let (sender, lines) = sync_channel(16);
        let started = spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        if let Err(error) = started {
            let _ = child.kill().and_then(|()| child.wait());
            return Err(error.into());
        }
        let input = child.stdin.take().expect("the input is piped");
        let mut client = Process { child, input, lines, id: 0 };
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let init = json!({"type": "init", "session": session, "node": self.address(cluster, node),
            "nodes": self.addresses(cluster), "workload": self.workload.name()});
        // An interpreter may take some time to start.
        let patient = deadline.max(Instant::now() + Duration::from_secs(5));
        match client.exchange(&init, patient) {
            Ok(answer) if answer["type"] == "ok" => Ok(Box::new(client)),
            Ok(answer) => Err(DriveError::setup(format!("the client answered {answer} to init"))),
            Err(reason) => Err(DriveError::setup(format!("the client: {reason}"))),
        }
    }
}

/// A running client program.
struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    id: u64,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn exchange(&mut self, message: &Value, deadline: Instant) -> Result<Value, String> {
        writeln!(self.input, "{message}").map_err(|error| error.to_string())?;
        let left = deadline.saturating_duration_since(Instant::now());
        let line = self.lines.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => "no answer in time".to_owned(),
            RecvTimeoutError::Disconnected => "the program has ended".to_owned(),
        })?;
        serde_json::from_str(&line).map_err(|error| format!("`{line}` is not JSON: {error}"))
    }
}

impl Client for Process {
    fn run(&mut self, request: &Request, deadline: Instant) -> Outcome {
        self.id += 1;
        let mut message = encode(request);
        message["id"] = self.id.into();
        let answer = match self.exchange(&message, deadline) {
            Ok(answer) => answer,
            Err(reason) => return Outcome::unknown(reason),
        };
        if answer["id"] != self.id {
            return Outcome::unknown(format!("the answer {answer} is not to request {}", self.id));
        }
        let error = answer["error"].as_str().unwrap_or("no reason given");
        match answer["type"].as_str() {
            Some("ok") => match decode(request, &answer) {
                Some(replies) => Outcome::Ok(replies),
                None => Outcome::unknown(format!("the answer {answer} does not fit the request")),
            },
            Some("fail") => Outcome::failed(error),
            _ => Outcome::unknown(error),
        }
    }
}

fn encode(request: &Request) -> Value {
    let step = |step: &Action| match step {
        Action::Read(key) | Action::ReadList(key) => json!(["r", key.to_string(), null]),
        Action::Write(key, value) => json!(["w", key.to_string(), value]),
        Action::Append(key, value) => json!(["append", key.to_string(), value]),
        Action::Update(key, change) => json!(["update", key.to_string(), put(*change)]),
    };
    match request {
        Request::Single(Action::Read(key) | Action::ReadList(key)) => {
            json!({"op": "read", "key": key.to_string()})
        }
        Request::Single(Action::Write(key, value)) => {
            json!({"op": "write", "key": key.to_string(), "value": value})
        }
        Request::Single(one) => json!({"op": "txn", "steps": [step(one)]}),
        Request::Transaction(steps) => {
            json!({"op": "txn", "steps": steps.iter().map(step).collect::<Vec<_>>()})
        }
        Request::CompareAndSet { key, old, new } => {
            json!({"op": "cas", "key": key.to_string(), "old": old, "new": new})
        }
        Request::Add(value) => json!({"op": "add", "value": value}),
        Request::Members => json!({"op": "members"}),
        Request::Enqueue(value) => json!({"op": "enqueue", "value": value}),
        Request::Dequeue => json!({"op": "dequeue"}),
    }
}

fn put(change: Change) -> i64 {
    change.apply(None)
}

fn decode(request: &Request, answer: &Value) -> Option<Vec<Reply>> {
    let number = |value: &Value| match value {
        Value::Null => Some(None),
        value => value.as_i64().map(Some),
    };
    let list = |value: &Value| match value {
        Value::Null => Some(Vec::new()),
        value => value.as_array()?.iter().map(Value::as_i64).collect(),
    };
    let of_step = |step: &Action, value: &Value| {
        Some(match step {
            Action::Read(_) | Action::Update(..) => Reply::Value(number(value)?),
            Action::ReadList(_) => Reply::List(list(value)?),
            Action::Write(..) | Action::Append(..) => Reply::Done,
        })
    };
    match request {
        Request::Single(step @ (Action::Read(_) | Action::ReadList(_) | Action::Write(..))) => {
            Some(vec![of_step(step, &answer["value"])?])
        }
        Request::Single(_) | Request::Transaction(_) => {
            let steps = request.steps();
            let answered = answer["steps"].as_array().filter(|a| a.len() == steps.len())?;
            steps.iter().zip(answered).map(|(step, answer)| of_step(step, &answer[2])).collect()
        }
        Request::CompareAndSet { .. } => Some(vec![Reply::Success(answer["value"].as_bool()?)]),
        Request::Add(_) | Request::Enqueue(_) => Some(vec![Reply::Done]),
        Request::Members => Some(vec![Reply::List(list(&answer["value"])?)]),
        Request::Dequeue => Some(vec![Reply::Value(number(&answer["value"])?)]),
    }
}

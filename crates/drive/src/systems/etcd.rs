//! etcd: three nodes that agree by Raft, accessed through their JSON gateway.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::request::{Action, Key, Outcome, Reply, Request};
use crate::settings::{Setting, Settings};
use crate::system::{Client, System};
use crate::tool;
use crate::wire::http::{Connection, base64, from_base64};
use crate::workloads::WorkloadKind;

const PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;

/// The settings of etcd.
pub(crate) const SETTINGS: &[Setting] = &[Setting {
    name: "reads",
    values: &["linearizable", "serializable"],
    about: "whether a read asks the majority or only the node",
}];

/// etcd.
pub(crate) struct Etcd {
    pub(crate) settings: Settings,
}

impl System for Etcd {
    fn name(&self) -> &str {
        "etcd"
    }

    fn version(&self) -> Result<String, DriveError> {
        let text = tool::version(&tool::require("etcd", "etcd-server")?, "--version")?;
        Ok(text.replace("etcd Version: ", "etcd "))
    }

    fn settings(&self) -> String {
        self.settings.show()
    }

    fn supports(&self, workload: WorkloadKind) -> bool {
        !matches!(workload, WorkloadKind::ListAppend | WorkloadKind::Queue)
    }

    fn commands(&self, cluster: &Cluster, node: NodeId) -> Result<Vec<Command>, DriveError> {
        let mut command = Command::new(tool::require("etcd", "etcd-server")?);
        let peer = |node: NodeId| format!("http://{}", cluster.socket(node, PEER_PORT));
        let all: Vec<String> = cluster.ids().map(|node| format!("{node}={}", peer(node))).collect();
        let client = format!("http://{}", cluster.socket(node, PORT));
        command.args(["--name", &node.to_string()]);
        command.arg("--data-dir").arg(cluster.folder(node).join("data"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer(node)]);
        command.args(["--initial-advertise-peer-urls", &peer(node)]);
        command.args(["--initial-cluster", &all.join(","), "--initial-cluster-state", "new"]);
        command.args(["--heartbeat-interval", "100", "--election-timeout", "1000"]);
        Ok(vec![command])
    }

    fn leader(&self, cluster: &Cluster) -> Option<NodeId> {
        let deadline = Instant::now() + Duration::from_secs(2);
        cluster.ids().find(|&node| {
            let ask = || {
                let mut connection = Connection::connect(cluster.socket(node, PORT), deadline)?;
                connection.post("/v3/maintenance/status", &json!({}), deadline)
            };
            let status: std::io::Result<(u16, Value)> = ask();
            status.is_ok_and(|(_, status)| {
                let own = &status["header"]["member_id"];
                own.is_string() && status["leader"] == *own
            })
        })
    }

    fn connect(
        &self,
        cluster: &Cluster,
        node: NodeId,
        deadline: Instant,
    ) -> Result<Box<dyn Client>, DriveError> {
        let address = cluster.socket(node, PORT);
        Ok(Box::new(EtcdClient {
            connection: Some(Connection::connect(address, deadline)?),
            address,
            serializable: self.settings.get("reads") == "serializable",
        }))
    }
}

struct EtcdClient {
    connection: Option<Connection>,
    address: SocketAddr,
    serializable: bool,
}

impl EtcdClient {
    fn post(&mut self, path: &str, body: &Value, deadline: Instant) -> Result<Value, Outcome> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            // Nothing has been sent yet.
            None => Connection::connect(self.address, deadline).map_err(Outcome::failed)?,
        };
        match connection.post(path, body, deadline) {
            Ok((200, answer)) => {
                self.connection = Some(connection);
                Ok(answer)
            }
            Ok((_, answer)) => {
                let error =
                    answer["error"].as_str().map_or_else(|| answer.to_string(), str::to_owned);
                Err(Outcome::unknown(error))
            }
            Err(error) => Err(Outcome::unknown(error)),
        }
    }

    fn range(&self, key: Key) -> Value {
        json!({"key": base64(&key.to_string()), "serializable": self.serializable})
    }

    fn ask(&mut self, request: &Request, deadline: Instant) -> Result<Vec<Reply>, Outcome> {
        Ok(match request {
            Request::Single(Action::Read(key)) => {
                let answer = self.post("/v3/kv/range", &self.range(*key), deadline)?;
                vec![Reply::Value(first(&answer).map(|(value, _)| value))]
            }
            Request::Single(Action::Write(key, value)) => {
                self.post("/v3/kv/put", &put(&key.to_string(), *value), deadline)?;
                vec![Reply::Done]
            }
            Request::Single(Action::Update(..)) | Request::Transaction(_) => {
                self.transaction(request.steps(), deadline)?
            }
            Request::CompareAndSet { key, old, new } => {
                let key = key.to_string();
                let compare = match old {
                    Some(old) => json!({"key": base64(&key), "target": "VALUE", "result": "EQUAL",
                        "value": base64(&old.to_string())}),
                    None => json!({"key": base64(&key), "target": "VERSION", "result": "EQUAL",
                        "version": "0"}),
                };
                let body = json!({"compare": [compare],
                    "success": [{"requestPut": put(&key, *new)}]});
                let answer = self.post("/v3/kv/txn", &body, deadline)?;
                vec![Reply::Success(answer["succeeded"] == true)]
            }
            Request::Add(element) => {
                self.post("/v3/kv/put", &put(&format!("e/{element}"), *element), deadline)?;
                vec![Reply::Done]
            }
            Request::Members => {
                let body = json!({"key": base64("e/"), "range_end": base64("e0"),
                    "serializable": self.serializable});
                let answer = self.post("/v3/kv/range", &body, deadline)?;
                let found = answer["kvs"].as_array().cloned().unwrap_or_default();
                vec![Reply::List(found.iter().filter_map(|pair| number(&pair["value"])).collect())]
            }
            Request::Single(Action::ReadList(_) | Action::Append(..))
            | Request::Enqueue(_)
            | Request::Dequeue => return Err(Outcome::failed("etcd has no lists")),
        })
    }

    /// Runs steps as one transaction of etcd. Registers that are updated are read before it. The
    /// transaction then compares their revisions, and fails if another client has written them.
    fn transaction(&mut self, steps: &[Action], deadline: Instant) -> Result<Vec<Reply>, Outcome> {
        let (mut compare, mut requests, mut before) = (Vec::new(), Vec::new(), Vec::new());
        for step in steps {
            let mut read = None;
            requests.push(match step {
                Action::Read(key) => json!({"requestRange": self.range(*key)}),
                Action::Write(key, value) => json!({"requestPut": put(&key.to_string(), *value)}),
                Action::Update(key, change) => {
                    let answer = self
                        .post("/v3/kv/range", &self.range(*key), deadline)
                        .map_err(|_| Outcome::failed("the register cannot be read"))?;
                    let found = first(&answer);
                    let revision = found.as_ref().map_or("0".to_owned(), |(_, r)| r.clone());
                    compare.push(json!({"key": base64(&key.to_string()), "target": "MOD",
                        "result": "EQUAL", "mod_revision": revision}));
                    let value = found.map(|(value, _)| value);
                    read = Some(Reply::Value(value));
                    json!({"requestPut": put(&key.to_string(), change.apply(value))})
                }
                Action::ReadList(_) | Action::Append(..) => {
                    return Err(Outcome::failed("etcd has no lists"));
                }
            });
            before.push(read);
        }
        let body = json!({"compare": compare, "success": requests});
        let known: Vec<Reply> = before.iter().map_while(Option::clone).collect();
        let answer = self.post("/v3/kv/txn", &body, deadline).map_err(|outcome| match outcome {
            Outcome::Unknown { reason, .. } => Outcome::Unknown { replies: known, reason },
            outcome => outcome,
        })?;
        if answer["succeeded"] != true {
            return Err(Outcome::failed("another client wrote in the meantime"));
        }
        Ok((steps.iter().zip(before).enumerate())
            .map(|(at, (step, before))| match step {
                Action::Read(_) => {
                    let range = &answer["responses"][at]["response_range"];
                    Reply::Value(first(range).map(|(value, _)| value))
                }
                _ => before.unwrap_or(Reply::Done),
            })
            .collect())
    }
}

impl Client for EtcdClient {
    fn run(&mut self, request: &Request, deadline: Instant) -> Outcome {
        match self.ask(request, deadline) {
            Ok(replies) => Outcome::Ok(replies),
            Err(outcome) => outcome,
        }
    }
}

fn put(key: &str, value: i64) -> Value {
    json!({"key": base64(key), "value": base64(&value.to_string())})
}

fn number(encoded: &Value) -> Option<i64> {
    from_base64(encoded.as_str()?).parse().ok()
}

/// Returns the value and the revision of the first pair of an answer.
fn first(answer: &Value) -> Option<(i64, String)> {
    let pair = answer["kvs"].as_array()?.first()?;
    let revision = pair["mod_revision"].as_str().unwrap_or("0").to_owned();
    Some((number(&pair["value"])?, revision))
}

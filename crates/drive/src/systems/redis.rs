//! Redis: a primary, two replicas, and three sentinels that promote a replica if the primary fails.
//!
//! A session regularly asks the sentinel of its own node for the primary, as client libraries do.
//! While a primary is cut off, sessions of its node therefore still write to it, and the other
//! sessions write to the new one.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::request::{Action, Outcome, Reply, Request};
use crate::settings::{Setting, Settings};
use crate::system::{Client, System, write_through};
use crate::tool;
use crate::wire::resp::{Answer, Connection};

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// Interval at which a session asks for the primary.
const RESOLVE_EVERY: Duration = Duration::from_millis(500);

/// The settings of Redis.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: "wait",
        values: &["0", "1", "2"],
        about: "the replicas that must have a write before it is acknowledged (WAIT)",
    },
    Setting {
        name: "min-replicas",
        values: &["0", "1", "2"],
        about: "the replicas that a primary needs to accept writes (min-replicas-to-write)",
    },
    Setting {
        name: "reads",
        values: &["primary", "node"],
        about: "whether a session reads from the primary or from its own node",
    },
    Setting {
        name: "appendonly",
        values: &["no", "yes"],
        about: "whether writes go to a log on disk",
    },
];

/// Redis.
pub(crate) struct Redis {
    pub(crate) settings: Settings,
}

impl System for Redis {
    fn name(&self) -> &str {
        "redis"
    }

    fn version(&self) -> Result<String, DriveError> {
        let text = tool::version(&tool::require("redis-server", "redis-server")?, "--version")?;
        let number = text.split_whitespace().find_map(|word| word.strip_prefix("v="));
        Ok(number.map_or(text.clone(), |number| format!("Redis {number}")))
    }

    fn settings(&self) -> String {
        self.settings.show()
    }

    fn prepare(&self, cluster: &Cluster) -> Result<(), DriveError> {
        let primary = cluster.address(NodeId(0));
        for node in cluster.ids() {
            let folder = cluster.folder(node);
            let mut server = format!(
                "port {PORT}\nbind 0.0.0.0\nprotected-mode no\ndir {}\nsave \"\"\nappendonly {}\n\
                 repl-diskless-sync-delay 0\nrepl-timeout 5\nmin-replicas-max-lag 2\n\
                 min-replicas-to-write {}\n",
                folder.display(),
                self.settings.get("appendonly"),
                self.settings.get("min-replicas"),
            );
            if node != NodeId(0) {
                server += &format!("replicaof {primary} {PORT}\n");
            }
            let sentinel = format!(
                "port {SENTINEL_PORT}\nbind 0.0.0.0\nprotected-mode no\ndir {}\n\
                 sentinel monitor m {primary} {PORT} 2\nsentinel down-after-milliseconds m 1000\n\
                 sentinel failover-timeout m 3000\n",
                folder.display()
            );
            for (name, text) in [("redis.conf", server), ("sentinel.conf", sentinel)] {
                let path = folder.join(name);
                std::fs::write(&path, text).map_err(|error| DriveError::file(&path, error))?;
            }
        }
        Ok(())
    }

    fn commands(&self, cluster: &Cluster, node: NodeId) -> Result<Vec<Command>, DriveError> {
        let program = tool::require("redis-server", "redis-server")?;
        let folder = cluster.folder(node);
        let mut server = Command::new(&program);
        server.arg(folder.join("redis.conf"));
        let mut sentinel = Command::new(&program);
        sentinel.arg(folder.join("sentinel.conf")).arg("--sentinel");
        Ok(vec![server, sentinel])
    }

    /// Starts the sentinels once the replicas are in sync: sentinels ask a primary for its replicas
    /// when they start, and then only every ten seconds.
    fn boot(&self, cluster: &Cluster) -> Result<(), DriveError> {
        let mut sentinels = Vec::new();
        for node in cluster.ids() {
            let mut servers = self.commands(cluster, node)?;
            sentinels.push((node, servers.split_off(1)));
            cluster.start(servers, node)?;
        }
        let until = Instant::now() + Duration::from_secs(30);
        while let Err(reason) = replication(cluster) {
            cluster.ids().try_for_each(|node| cluster.check_alive(node))?;
            if Instant::now() > until {
                return Err(DriveError::NotReady { node: "redis".to_owned(), reason });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        for (node, sentinel) in sentinels {
            cluster.add(sentinel, node)?;
        }
        Ok(())
    }

    /// Waits until sentinels know each other, one node is the primary of all others, and a write
    /// through every sentinel works.
    fn ready(&self, cluster: &Cluster, limit: Duration) -> Result<(), DriveError> {
        let until = Instant::now() + limit;
        loop {
            match replication(cluster).and_then(|()| sentinels(cluster)) {
                Ok(()) => break,
                Err(reason) if Instant::now() > until => {
                    return Err(DriveError::NotReady { node: "redis".to_owned(), reason });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
            cluster.ids().try_for_each(|node| cluster.check_alive(node))?;
        }
        for node in cluster.ids() {
            write_through(self, cluster, node, until)?;
        }
        Ok(())
    }

    fn leader(&self, cluster: &Cluster) -> Option<NodeId> {
        let deadline = Instant::now() + Duration::from_secs(1);
        let is_primary = |node: &NodeId| {
            let fields = info(cluster.socket(*node, PORT), deadline);
            fields.is_ok_and(|text| text.contains("role:master"))
        };
        cluster.ids().find(is_primary)
    }

    fn connect(
        &self,
        cluster: &Cluster,
        node: NodeId,
        deadline: Instant,
    ) -> Result<Box<dyn Client>, DriveError> {
        let mut client = RedisClient {
            sentinel: cluster.socket(node, SENTINEL_PORT),
            own: cluster.socket(node, PORT),
            nodes: cluster.ids().map(|node| cluster.socket(node, PORT)).collect(),
            sent_to: None,
            reads_own: self.settings.get("reads") == "node",
            wait: self.settings.get("wait"),
            primary: None,
            replica: None,
            resolved: None,
        };
        client.resolve(deadline)?;
        Ok(Box::new(client))
    }
}

fn info(address: SocketAddr, deadline: Instant) -> std::io::Result<String> {
    let mut connection = Connection::connect(address, deadline)?;
    Ok(connection.ask(&["INFO", "replication"])?.text().unwrap_or_default())
}

/// Checks that one primary has all other nodes as replicas. Returns an error that says what is
/// missing.
fn replication(cluster: &Cluster) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut primaries = 0;
    for node in cluster.ids() {
        if let Some(exited) = cluster.exited(node) {
            return Err(exited);
        }
        let text =
            info(cluster.socket(node, PORT), deadline).map_err(|e| format!("{node}: {e}"))?;
        let replicas = format!("connected_slaves:{}", cluster.len() - 1);
        if text.contains("role:master") {
            primaries += 1;
            if !text.contains(&replicas) {
                return Err(format!("{node} lacks replicas"));
            }
        } else if !text.contains("master_link_status:up") {
            return Err(format!("{node} is not in sync with its primary"));
        }
    }
    if primaries == 1 { Ok(()) } else { Err(format!("there are {primaries} primaries")) }
}

/// Checks that every sentinel knows a primary and all other sentinels. Returns an error that says
/// what is missing.
fn sentinels(cluster: &Cluster) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(1);
    for node in cluster.ids() {
        let mut sentinel = Connection::connect(cluster.socket(node, SENTINEL_PORT), deadline)
            .map_err(|error| format!("sentinel of {node}: {error}"))?;
        let master = sentinel.ask(&["SENTINEL", "MASTER", "m"]).map_err(|e| e.to_string())?;
        let Answer::List(fields) = master else { return Err(format!("sentinel of {node}")) };
        let field = |name: &str| {
            let at = fields.iter().position(|field| field.text().as_deref() == Some(name))?;
            fields.get(at + 1)?.text()
        };
        let others = (cluster.len() - 1).to_string();
        for name in ["num-other-sentinels", "num-slaves"] {
            if field(name).as_ref() != Some(&others) {
                return Err(format!("the sentinel of {node} does not know all others"));
            }
        }
        if field("flags").as_deref() != Some("master") {
            return Err(format!("the sentinel of {node} sees no primary"));
        }
    }
    Ok(())
}

struct RedisClient {
    sentinel: SocketAddr,
    own: SocketAddr,
    /// The addresses of all nodes.
    nodes: Vec<SocketAddr>,
    /// The server of the last request.
    sent_to: Option<SocketAddr>,
    reads_own: bool,
    wait: &'static str,
    primary: Option<(SocketAddr, Connection)>,
    replica: Option<Connection>,
    resolved: Option<Instant>,
}

impl RedisClient {
    /// Connects to the primary that the sentinel names, or keeps the connection if the primary is
    /// unchanged.
    fn resolve(&mut self, deadline: Instant) -> std::io::Result<()> {
        let mut sentinel = Connection::connect(self.sentinel, deadline)?;
        let answer = sentinel.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"])?;
        self.resolved = Some(Instant::now());
        let Answer::List(parts) = answer else {
            return Err(std::io::Error::other("the sentinel names no primary"));
        };
        let part = |at: usize| parts.get(at).and_then(Answer::text).unwrap_or_default();
        let address: SocketAddr = format!("{}:{}", part(0), part(1))
            .parse()
            .map_err(|_| std::io::Error::other("the sentinel names no address"))?;
        if self.primary.as_ref().is_none_or(|(known, _)| *known != address) {
            self.primary = Some((address, Connection::connect(address, deadline)?));
        }
        Ok(())
    }

    /// Returns the connection for a request, or the reason why nothing can be sent.
    fn connection(&mut self, is_read: bool, deadline: Instant) -> Result<&mut Connection, String> {
        if is_read && self.reads_own {
            let replica = match self.replica.take() {
                Some(replica) => replica,
                None => {
                    Connection::connect(self.own, deadline).map_err(|error| error.to_string())?
                }
            };
            self.sent_to = Some(self.own);
            return Ok(self.replica.insert(replica));
        }
        let is_due = self.resolved.is_none_or(|last| last.elapsed() > RESOLVE_EVERY);
        if is_due || self.primary.is_none() {
            let soon = deadline.min(Instant::now() + Duration::from_millis(200));
            match self.resolve(soon) {
                Err(error) if self.primary.is_none() => return Err(error.to_string()),
                // If the sentinel does not answer, the session continues with the known primary.
                _ => self.resolved = Some(Instant::now()),
            }
        }
        let (address, connection) = self.primary.as_mut().expect("it is connected");
        self.sent_to = Some(*address);
        Ok(connection)
    }

    fn ask(&mut self, request: &Request, deadline: Instant) -> Result<Outcome, Outcome> {
        let wait = self.wait;
        let connection = self.connection(request.is_read(), deadline).map_err(Outcome::Failed)?;
        connection.set_deadline(deadline);
        let mut replies = Vec::new();
        match request {
            Request::Single(Action::Update(..)) | Request::Transaction(_) => {
                replies = transaction(connection, request.steps())?;
            }
            Request::Single(step) => {
                let words = words(step);
                replies.push(reply(step, ask(connection, &borrowed(&words))?));
            }
            Request::CompareAndSet { key, old, new } => {
                const SCRIPT: &str = "local v = redis.call('get', KEYS[1]) \
                    if (v or '') == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) return 1 end \
                    return 0";
                let old = old.map_or(String::new(), |old| old.to_string());
                let (key, new) = (key.to_string(), new.to_string());
                let answer = ask(connection, &["EVAL", SCRIPT, "1", &key, &old, &new])?;
                replies.push(Reply::Success(answer == Answer::Integer(1)));
            }
            Request::Add(element) => {
                ask(connection, &["SADD", "elements", &element.to_string()])?;
                replies.push(Reply::Done);
            }
            Request::Members => {
                let answer = ask(connection, &["SMEMBERS", "elements"])?;
                replies.push(Reply::List(numbers(&answer)));
            }
            Request::Enqueue(element) => {
                ask(connection, &["RPUSH", "queue", &element.to_string()])?;
                replies.push(Reply::Done);
            }
            Request::Dequeue => {
                let answer = ask(connection, &["LPOP", "queue"])?;
                replies.push(Reply::Value(number(&answer)));
            }
        }
        if wait != "0" && !request.is_read() {
            match connection.ask(&["WAIT", wait, "500"]) {
                Ok(Answer::Integer(count)) if count >= wait.parse().unwrap_or(0) => {}
                Ok(_) => {
                    let reason = "too few replicas have the write".to_owned();
                    return Err(Outcome::Unknown { replies, reason });
                }
                Err(error) => return Err(Outcome::Unknown { replies, reason: error.to_string() }),
            }
        }
        Ok(Outcome::Ok(replies))
    }
}

impl Client for RedisClient {
    fn run(&mut self, request: &Request, deadline: Instant) -> Outcome {
        let outcome = self.ask(request, deadline).unwrap_or_else(|outcome| outcome);
        // A primary that became a replica refuses writes; the next request asks again.
        if matches!(outcome, Outcome::Failed(_)) {
            self.resolved = None;
            self.primary = None;
        }
        outcome
    }

    fn sent_to(&self) -> Option<NodeId> {
        let address = self.sent_to?;
        self.nodes.iter().position(|node| *node == address).map(NodeId)
    }
}

/// Errors that prove that a request had no effect.
const REFUSALS: [&str; 10] = [
    "READONLY",
    "NOREPLICAS",
    // The log on disk cannot be written, so writes are refused before they are executed.
    "MISCONF",
    "LOADING",
    "MASTERDOWN",
    "OOM",
    "NOAUTH",
    "WRONGTYPE",
    "EXECABORT",
    "ERR wrong number",
];

fn ask(connection: &mut Connection, words: &[&str]) -> Result<Answer, Outcome> {
    match connection.ask(words) {
        Ok(Answer::Error(error)) if REFUSALS.iter().any(|refusal| error.starts_with(refusal)) => {
            Err(Outcome::Failed(error))
        }
        Ok(Answer::Error(error)) => Err(Outcome::unknown(error)),
        Ok(answer) => Ok(answer),
        Err(error) => Err(Outcome::unknown(error)),
    }
}

/// Runs steps by MULTI and EXEC. Registers that are updated are read before, outside of it, because
/// a client cannot compute with values read inside a transaction of Redis.
fn transaction(connection: &mut Connection, steps: &[Action]) -> Result<Vec<Reply>, Outcome> {
    let mut before: Vec<Option<Reply>> = Vec::new();
    let mut commands: Vec<Vec<String>> = vec![vec!["MULTI".to_owned()]];
    for step in steps {
        let mut read = None;
        let command = match step {
            Action::Update(key, change) => {
                let answer = ask(connection, &["GET", &key.to_string()]);
                // No write has been sent yet.
                let answer = answer.map_err(|_| Outcome::failed("the register cannot be read"))?;
                read = Some(Reply::Value(number(&answer)));
                words(&Action::Write(*key, change.apply(number(&answer))))
            }
            step => words(step),
        };
        before.push(read);
        commands.push(command);
    }
    commands.push(vec!["EXEC".to_owned()]);
    let borrowed_commands: Vec<Vec<&str>> = commands.iter().map(|words| borrowed(words)).collect();
    let slices: Vec<&[&str]> = borrowed_commands.iter().map(Vec::as_slice).collect();
    let known = |before: &[Option<Reply>]| before.iter().map_while(Option::clone).collect();
    let answers = connection
        .ask_all(&slices)
        .map_err(|error| Outcome::Unknown { replies: known(&before), reason: error.to_string() })?;
    match answers.last() {
        Some(Answer::List(results)) => Ok((steps.iter().zip(before).zip(results))
            .map(|((step, before), answer)| before.unwrap_or_else(|| reply(step, answer.clone())))
            .collect()),
        Some(Answer::Error(error)) if REFUSALS.iter().any(|r| error.starts_with(r)) => {
            Err(Outcome::Failed(error.clone()))
        }
        other => Err(Outcome::unknown(format!("EXEC returned {other:?}"))),
    }
}

fn words(step: &Action) -> Vec<String> {
    match step {
        Action::Read(key) => vec!["GET".to_owned(), key.to_string()],
        Action::Write(key, value) => vec!["SET".to_owned(), key.to_string(), value.to_string()],
        Action::ReadList(key) => {
            vec!["LRANGE".to_owned(), format!("list-{key}"), "0".to_owned(), "-1".to_owned()]
        }
        Action::Append(key, value) => {
            vec!["RPUSH".to_owned(), format!("list-{key}"), value.to_string()]
        }
        Action::Update(..) => unreachable!("updates are split into a read and a write"),
    }
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn reply(step: &Action, answer: Answer) -> Reply {
    match step {
        Action::Read(_) => Reply::Value(number(&answer)),
        Action::ReadList(_) => Reply::List(numbers(&answer)),
        _ => Reply::Done,
    }
}

fn number(answer: &Answer) -> Option<i64> {
    answer.text()?.parse().ok()
}

fn numbers(answer: &Answer) -> Vec<i64> {
    match answer {
        Answer::List(items) => items.iter().filter_map(number).collect(),
        _ => Vec::new(),
    }
}

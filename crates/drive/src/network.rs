//! One network namespace per node, one for the switch; the clients live in that of this process.
//!
//! ```text
//!     clients (eth0) ──┐
//!     n1 (eth0) ───────┤ br0, in the namespace of the switch, with one nft ruleset
//!     n2 (eth0) ───────┘
//! ```
//!
//! Nodes are cut off from each other by rules on the bridge's forward hook. The whole ruleset is
//! replaced in one transaction, so a partition begins and ends at one moment. Clients reach every
//! node whatever the rules say; only a link that is down cuts off the clients too.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::error::DriveError;
use crate::tool;

/// The last byte of the clients' address.
const CLIENTS: u8 = 100;

/// The namespaces of a run.
#[derive(Debug)]
pub(crate) struct Network {
    folder: PathBuf,
}

/// What happens to packets from some nodes to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) from: Vec<usize>,
    pub(crate) to: Vec<usize>,
    /// The percentage of packets that are dropped.
    pub(crate) loss: u8,
}

/// Returns the address of a node, counted from 0.
pub(crate) fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, node as u8 + 1)
}

impl Network {
    /// Makes the namespaces and connects them.
    pub(crate) fn up(folder: &Path, nodes: usize) -> Result<Network, DriveError> {
        let folder = folder.join("namespaces");
        std::fs::create_dir_all(&folder).map_err(|error| DriveError::file(&folder, error))?;
        let network = Network { folder };
        network.make("switch")?;
        network.ip("switch", "link add br0 type bridge\nlink set br0 up\n")?;
        let switch = network.file("switch");
        for node in 0..nodes {
            let name = format!("n{}", node + 1);
            network.make(&name)?;
            let peer = network.file(&name);
            let link = format!(
                "link add v{name} netns {} type veth peer name eth0 netns {}\n",
                switch.display(),
                peer.display()
            );
            tool::run(&["ip", "-batch", "-"], &link)?;
            network.ip("switch", &format!("link set v{name} master br0 up\n"))?;
            let address = address(node);
            network.ip(
                &name,
                &format!("link set lo up\naddr add {address}/24 dev eth0\nlink set eth0 up\n"),
            )?;
        }
        let clients = format!(
            "link set lo up\nlink add vclients netns {} type veth peer name eth0\n\
             addr add 10.77.0.{CLIENTS}/24 dev eth0\nlink set eth0 up\n",
            switch.display()
        );
        tool::run(&["ip", "-batch", "-"], &clients)?;
        network.ip("switch", "link set vclients master br0 up\n")?;
        Ok(network)
    }

    fn file(&self, namespace: &str) -> PathBuf {
        self.folder.join(namespace)
    }

    fn make(&self, namespace: &str) -> Result<(), DriveError> {
        let file = self.file(namespace);
        std::fs::write(&file, "").map_err(|error| DriveError::file(&file, error))?;
        tool::run(&["unshare", &format!("--net={}", file.display()), "true"], "").map(drop)
    }

    /// Returns the words that run a command in a node's namespace.
    pub(crate) fn enter(&self, node: usize) -> [String; 3] {
        let file = self.file(&format!("n{}", node + 1));
        ["nsenter".to_owned(), format!("--net={}", file.display()), "--".to_owned()]
    }

    fn ip(&self, namespace: &str, batch: &str) -> Result<(), DriveError> {
        let net = format!("--net={}", self.file(namespace).display());
        tool::run(&["nsenter", &net, "ip", "-batch", "-"], batch).map(drop)
    }

    /// Replaces all rules in one transaction.
    pub(crate) fn set_rules(&self, rules: &[Rule]) -> Result<(), DriveError> {
        let net = format!("--net={}", self.file("switch").display());
        tool::run(&["nsenter", &net, "nft", "-f", "-"], &ruleset(rules)).map(drop)
    }

    /// Takes a node's link down, or up again.
    pub(crate) fn set_link(&self, node: usize, up: bool) -> Result<(), DriveError> {
        let state = if up { "up" } else { "down" };
        self.ip("switch", &format!("link set vn{} {state}\n", node + 1))
    }

    /// Makes a node's link slow in both directions, or fast again.
    ///
    /// Uses a delay where the kernel has one (netem), a narrow token bucket elsewhere.
    pub(crate) fn set_delay(&self, node: usize, delay_ms: Option<u64>) -> Result<(), DriveError> {
        let switch = format!("--net={}", self.file("switch").display());
        let inside = format!("--net={}", self.file(&format!("n{}", node + 1)).display());
        let ends = [(switch, format!("vn{}", node + 1)), (inside, "eth0".to_owned())];
        for (namespace, device) in &ends {
            let shape = |kind: &[&str]| {
                let command =
                    ["nsenter", namespace, "tc", "qdisc", "replace", "dev", device, "root"];
                tool::run(&[&command, kind].concat(), "").map(drop)
            };
            match delay_ms {
                None => {
                    let remove =
                        ["nsenter", namespace, "tc", "qdisc", "del", "dev", device, "root"];
                    tool::run(&remove, "")?;
                }
                Some(delay) => shape(&["netem", "delay", &format!("{delay}ms")]).or_else(|_| {
                    shape(&["tbf", "rate", "48kbit", "burst", "3000", "latency", "2s"])
                })?,
            }
        }
        Ok(())
    }
}

/// Writes the rules for `nft -f`.
fn ruleset(rules: &[Rule]) -> String {
    let mut text = "add table bridge faults\ndelete table bridge faults\ntable bridge faults {\n  \
                    chain forward {\n    type filter hook forward priority 0; policy accept;\n"
        .to_owned();
    let list = |nodes: &[usize]| {
        let nodes: Vec<String> = nodes.iter().map(|&node| address(node).to_string()).collect();
        nodes.join(", ")
    };
    for rule in rules.iter().filter(|rule| !rule.from.is_empty() && !rule.to.is_empty()) {
        let (from, to) = (list(&rule.from), list(&rule.to));
        let chance = match rule.loss {
            100.. => String::new(),
            loss => format!("numgen random mod 100 < {loss} "),
        };
        text += &format!("    ip saddr {{ {from} }} ip daddr {{ {to} }} {chance}drop\n");
    }
    text + "  }\n}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ruleset_replaces_the_one_before() {
        let cut = Rule { from: vec![0], to: vec![1, 2], loss: 100 };
        let lossy = Rule { from: vec![1], to: vec![2], loss: 20 };
        let empty = Rule { from: vec![], to: vec![2], loss: 100 };
        let text = ruleset(&[cut, lossy, empty]);
        assert!(text.starts_with("add table bridge faults\ndelete table bridge faults\n"));
        let rules: Vec<&str> = text.lines().filter(|l| l.contains("drop")).map(str::trim).collect();
        assert_eq!(
            rules,
            [
                "ip saddr { 10.77.0.1 } ip daddr { 10.77.0.2, 10.77.0.3 } drop",
                "ip saddr { 10.77.0.2 } ip daddr { 10.77.0.3 } numgen random mod 100 < 20 drop",
            ]
        );
    }
}

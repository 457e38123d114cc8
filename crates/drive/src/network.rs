//! One network namespace per node; the clients are in the namespace of this process.
//!
//! Namespaces are connected in one of two ways. With a *bridge*, in its own namespace, the kernel
//! forwards packets; nft rules on the bridge's forward hook cut nodes off from each other. The
//! whole ruleset is replaced in one transaction, so a partition begins and ends at one moment.
//!
//! ```text
//!     clients (eth0) ──┐
//!     n1 (eth0) ───────┤ br0, in the namespace of the switch, with one nft ruleset
//!     n2 (eth0) ───────┘
//! ```
//!
//! A *switch* in this process ([`Switch`]) can also delay and drop packets. The bridge cannot,
//! because not every kernel has netem. A switch costs a few microseconds per packet, so it is used
//! only if needed.
//!
//! Partitions never cut off the clients. Only a link that is down is down for clients too, and only
//! a slow link is slow for them.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::DriveError;
use crate::switch::{RoundTrips, Switch};
use crate::tool;

/// Last byte of the clients' address.
const CLIENTS: u8 = 100;

/// Largest number of nodes: their addresses are below that of the clients.
pub(crate) const MAX_NODES: usize = CLIENTS as usize - 1;

/// The forwarding of packets between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Links {
    /// The kernel forwards packets: fast, and any partition is possible.
    #[default]
    Bridge,
    /// This process forwards packets, and can also delay and drop them.
    UserSpace {
        /// Seed of the choice of dropped packets.
        seed: u64,
    },
}

/// The namespaces of a run.
#[derive(Debug)]
pub(crate) struct Network {
    folder: PathBuf,
    nodes: usize,
    /// The switch; `None` if a bridge is used.
    switch: Option<Switch>,
}

/// A rule for packets from some ports to others.
///
/// A port is a node's number, or the number of nodes for the clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) from: Vec<usize>,
    pub(crate) to: Vec<usize>,
    pub(crate) effect: Effect,
}

/// The effect of a rule on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The packet is dropped.
    Drop,
    /// The packet is dropped with this probability.
    Lose { percent: u8 },
    /// The packet is delayed.
    Delay(Duration),
}

/// Returns the address of a node, counted from 0.
pub(crate) fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, node as u8 + 1)
}

/// Returns the address of the clients.
fn clients_address() -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, CLIENTS)
}

impl Network {
    /// Creates the namespaces and connects them.
    pub(crate) fn up(folder: &Path, nodes: usize, links: Links) -> Result<Network, DriveError> {
        let folder = folder.join("namespaces");
        std::fs::create_dir_all(&folder).map_err(|error| DriveError::file(&folder, error))?;
        let mut network = Network { folder, nodes, switch: None };
        for node in 0..nodes {
            network.make(&name(node))?;
        }
        match links {
            Links::Bridge => network.connect_bridge()?,
            Links::UserSpace { seed } => network.connect_switch(seed)?,
        }
        Ok(network)
    }

    fn connect_bridge(&self) -> Result<(), DriveError> {
        self.make("switch")?;
        self.ip("switch", "link add br0 type bridge\nlink set br0 up\n")?;
        let switch = self.file("switch");
        for node in 0..self.nodes {
            let name = name(node);
            let peer = self.file(&name);
            let link = format!(
                "link add v{name} netns {} type veth peer name eth0 netns {}\n",
                switch.display(),
                peer.display()
            );
            tool::run(&["ip", "-batch", "-"], &link)?;
            self.ip("switch", &format!("link set v{name} master br0 up\n"))?;
            self.ip(&name, &device_up(address(node)))?;
        }
        let clients = format!(
            "link add vclients netns {} type veth peer name eth0\n{}",
            switch.display(),
            device_up(clients_address())
        );
        tool::run(&["ip", "-batch", "-"], &clients)?;
        self.ip("switch", "link set vclients master br0 up\n")
    }

    fn connect_switch(&mut self, seed: u64) -> Result<(), DriveError> {
        let (mut devices, mut addresses) = (Vec::new(), Vec::new());
        for node in 0..self.nodes {
            let name = name(node);
            // A device stays open in the process that opened it, even after it is moved to another
            // namespace.
            devices.push(Switch::open_device(&format!("t{name}"))?);
            addresses.push(address(node));
            let file = self.file(&name);
            let moved = format!("link set dev t{name} netns {} name eth0\n", file.display());
            tool::run(&["ip", "-batch", "-"], &moved)?;
            self.ip(&name, &device_up(address(node)))?;
        }
        devices.push(Switch::open_device("eth0")?);
        addresses.push(clients_address());
        tool::run(&["ip", "-batch", "-"], &device_up(clients_address()))?;
        self.switch = Some(Switch::start(devices, addresses, seed)?);
        Ok(())
    }

    fn file(&self, namespace: &str) -> PathBuf {
        self.folder.join(namespace)
    }

    fn make(&self, namespace: &str) -> Result<(), DriveError> {
        let file = self.file(namespace);
        std::fs::write(&file, "").map_err(|error| DriveError::file(&file, error))?;
        tool::run(&["unshare", &format!("--net={}", file.display()), "true"], "").map(drop)
    }

    /// Returns the command prefix that runs a command in a node's namespace.
    pub(crate) fn enter(&self, node: usize) -> [String; 3] {
        let file = self.file(&name(node));
        ["nsenter".to_owned(), format!("--net={}", file.display()), "--".to_owned()]
    }

    fn ip(&self, namespace: &str, batch: &str) -> Result<(), DriveError> {
        let net = format!("--net={}", self.file(namespace).display());
        tool::run(&["nsenter", &net, "ip", "-batch", "-"], batch).map(drop)
    }

    /// Replaces all rules at one moment.
    pub(crate) fn set_rules(&self, rules: &[Rule]) -> Result<(), DriveError> {
        if let Some(switch) = &self.switch {
            switch.set_rules(rules);
            return Ok(());
        }
        if rules.iter().any(|rule| rule.effect != Effect::Drop) {
            return Err(DriveError::setup(
                "slow and lossy links need the switch in user space (`Links::UserSpace`)",
            ));
        }
        let net = format!("--net={}", self.file("switch").display());
        tool::run(&["nsenter", &net, "nft", "-f", "-"], &ruleset(rules)).map(drop)
    }

    /// Sets a node's link up or down.
    pub(crate) fn set_link(&self, node: usize, up: bool) -> Result<(), DriveError> {
        if let Some(switch) = &self.switch {
            switch.set_down(node, !up);
            return Ok(());
        }
        let state = if up { "up" } else { "down" };
        self.ip("switch", &format!("link set vn{} {state}\n", node + 1))
    }

    /// Measures round trips between two nodes through the switch; `None` for a bridge.
    pub(crate) fn measure(&self, from: usize, to: usize) -> Option<RoundTrips> {
        let (every, patience) = (Duration::from_millis(8), Duration::from_secs(1));
        Some(self.switch.as_ref()?.measure(from, to, 100, every, patience))
    }
}

/// Returns the name of a node's namespace.
fn name(node: usize) -> String {
    format!("n{}", node + 1)
}

/// Returns the commands of `ip` that give `eth0` its address and set it up.
fn device_up(address: Ipv4Addr) -> String {
    format!("link set lo up\naddr add {address}/24 dev eth0\nlink set eth0 up\n")
}

/// Writes rules as input of `nft -f`.
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
        text += &format!("    ip saddr {{ {from} }} ip daddr {{ {to} }} drop\n");
    }
    text + "  }\n}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ruleset_replaces_the_one_before() {
        let cut = Rule { from: vec![0], to: vec![1, 2], effect: Effect::Drop };
        let empty = Rule { from: vec![], to: vec![2], effect: Effect::Drop };
        let text = ruleset(&[cut, empty]);
        assert!(text.starts_with("add table bridge faults\ndelete table bridge faults\n"));
        let rules: Vec<&str> = text.lines().filter(|l| l.contains("drop")).map(str::trim).collect();
        assert_eq!(rules, ["ip saddr { 10.77.0.1 } ip daddr { 10.77.0.2, 10.77.0.3 } drop"]);
    }
}

//! The schedule of faults: drawn from the seed before the run, written to a file, and replayable.

use std::fmt::Write;
use std::time::Duration;

use serde_json::Value;

use consistory_random::Random;

use crate::cluster::NodeId;
use crate::error::DriveError;
use crate::network::Links;

/// A kind of fault that applies to any cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FaultKind {
    /// Two groups of nodes cannot reach each other.
    PartitionHalves,
    /// One node and the others cannot reach each other.
    PartitionOne,
    /// One node cannot reach the others, but they can reach it.
    PartitionOneWay,
    /// Each node reaches only its neighbours; of three nodes, two cannot reach each other.
    PartitionRing,
    /// A node's processes are stopped, and continue later.
    Pause,
    /// A node's processes are killed, and restarted later.
    Kill,
    /// All nodes are killed, and restarted later.
    KillAll,
    /// A node is unreachable, also for clients.
    LinkDown,
    /// All packets to and from a node are delayed.
    Slow,
    /// A third of the packets between nodes are lost.
    Lossy,
    /// A node's disk is full.
    DiskFull,
    /// A fault specific to the system, by its index in [`System::verbs`](crate::System::verbs).
    Own(usize),
}

/// Names of the built-in kinds.
const NAMES: [(FaultKind, &str); 11] = [
    (FaultKind::PartitionHalves, "partition-halves"),
    (FaultKind::PartitionOne, "partition-one"),
    (FaultKind::PartitionOneWay, "partition-one-way"),
    (FaultKind::PartitionRing, "partition-ring"),
    (FaultKind::Pause, "pause"),
    (FaultKind::Kill, "kill"),
    (FaultKind::KillAll, "kill-all"),
    (FaultKind::LinkDown, "link-down"),
    (FaultKind::Slow, "slow"),
    (FaultKind::Lossy, "lossy"),
    (FaultKind::DiskFull, "disk-full"),
];

/// The kinds that `partition` chooses from; the first one is the most frequent.
const PARTITIONS: [FaultKind; 4] = [
    FaultKind::PartitionOne,
    FaultKind::PartitionHalves,
    FaultKind::PartitionOneWay,
    FaultKind::PartitionRing,
];

impl FaultKind {
    /// Returns the name, given the names of the system's own faults.
    pub fn name(self, own: &[&'static str]) -> String {
        match self {
            FaultKind::Own(at) => own.get(at).copied().unwrap_or("unknown").to_owned(),
            kind => {
                let found = NAMES.iter().find(|(named, _)| *named == kind);
                found.expect("every common kind has a name").1.to_owned()
            }
        }
    }

    fn named(name: &str, own: &[&'static str]) -> Option<FaultKind> {
        let common = NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind);
        common.or_else(|| own.iter().position(|verb| *verb == name).map(FaultKind::Own))
    }

    /// Returns whether the fault applies to a single node.
    pub fn has_target(self) -> bool {
        !matches!(self, FaultKind::KillAll | FaultKind::Lossy | FaultKind::Own(_))
    }

    /// Returns whether the fault needs links in user space ([`Links::UserSpace`](crate::Links)).
    pub fn needs_switch(self) -> bool {
        matches!(self, FaultKind::Slow | FaultKind::Lossy)
    }

    /// Returns the least number of nodes for which the fault has an effect. Links between nodes
    /// need two nodes, and a ring of two has no link to cut.
    fn least_nodes(self) -> usize {
        match self {
            FaultKind::PartitionHalves
            | FaultKind::PartitionOne
            | FaultKind::PartitionOneWay
            | FaultKind::Lossy => 2,
            FaultKind::PartitionRing => 3,
            _ => 1,
        }
    }

    /// Returns whether the fault is a momentary event that does not need to be ended.
    pub fn is_momentary(self) -> bool {
        matches!(self, FaultKind::Own(_))
    }
}

/// The faults to choose from. Each time, one of the alternatives is chosen, and all of its faults
/// happen together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultMix {
    alternatives: Vec<Vec<Vec<FaultKind>>>,
}

impl FaultMix {
    /// Parses a list such as `partition,kill` or `partition+slow,pause`; `+` joins faults that
    /// happen together. `none` and the empty text stand for no faults.
    ///
    /// A fault without an effect on so few nodes is an error.
    pub fn parse(text: &str, own: &[&'static str], nodes: usize) -> Result<FaultMix, DriveError> {
        let mut alternatives = Vec::new();
        for part in
            text.split(',').map(str::trim).filter(|part| !part.is_empty() && *part != "none")
        {
            let mut together = Vec::new();
            for name in part.split('+').map(str::trim) {
                let mut kinds = match name {
                    "partition" => PARTITIONS.to_vec(),
                    _ => vec![FaultKind::named(name, own).ok_or_else(|| {
                        let common = NAMES.iter().map(|(_, name)| *name);
                        let known: Vec<&str> = ["partition"]
                            .into_iter()
                            .chain(common)
                            .chain(own.iter().copied())
                            .collect();
                        DriveError::Malformed(format!(
                            "there is no fault `{name}`; there are {}",
                            known.join(", ")
                        ))
                    })?],
                };
                let least = kinds.iter().map(|kind| kind.least_nodes()).min().unwrap_or(0);
                kinds.retain(|kind| kind.least_nodes() <= nodes);
                if kinds.is_empty() {
                    return Err(DriveError::Malformed(too_few(name, least, nodes)));
                }
                together.push(kinds);
            }
            alternatives.push(together);
        }
        Ok(FaultMix { alternatives })
    }

    /// Returns whether there are no faults to choose from.
    pub fn is_empty(&self) -> bool {
        self.alternatives.is_empty()
    }
}

/// Returns the message about a fault that has no effect on so few nodes.
fn too_few(fault: &str, least: usize, nodes: usize) -> String {
    let there_are = match nodes {
        0 => "there are no nodes",
        1 => "there is one",
        _ => "there are two",
    };
    let needed = ["a node", "two nodes", "three nodes"][least.clamp(1, 3) - 1];
    format!("`{fault}` needs {needed}, and {there_are}")
}

/// The node to which a fault applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A node.
    Node(NodeId),
    /// The leader at the time when the fault begins.
    Leader,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Node(node) => node.fmt(f),
            Target::Leader => f.write_str("leader"),
        }
    }
}

/// A planned fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// Time of the beginning, in milliseconds after the first request.
    pub at_ms: u64,
    /// Duration, in milliseconds.
    pub for_ms: u64,
    /// The kind of fault.
    pub kind: FaultKind,
    /// The node to which it applies.
    pub target: Target,
}

/// The faults of a run, in the order in which they begin.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// The faults.
    pub faults: Vec<Planned>,
}

/// Number of the random stream from which schedules are drawn.
const STREAM: u64 = 1 << 32;

impl Schedule {
    /// Draws a schedule: quiet phases of 2 to 3 seconds, faults of 5 to 8 seconds.
    ///
    /// The first fault that has a target hits the leader, and later ones hit it half of the time. A
    /// fault that would not end at least a second before the end of the run is left out; if it
    /// would be the only one, it is shortened instead.
    pub fn draw(mix: &FaultMix, nodes: usize, time: Duration, seed: u64) -> Schedule {
        let mut faults: Vec<Planned> = Vec::new();
        if mix.is_empty() || nodes == 0 {
            return Schedule { faults };
        }
        let mut random = Random::new(seed, STREAM);
        let time = time.as_millis() as u64;
        let mut at = random.between(1_500, 2_500).min(time / 4);
        loop {
            let mut lasting = random.between(5_000, 8_000);
            let together = random.choose(&mix.alternatives);
            if at + lasting + 1_000 > time {
                if !faults.is_empty() {
                    break;
                }
                lasting = time.saturating_sub(at + 1_000).max(500);
            }
            for kinds in together {
                // The first kind reveals the most defects, so it is drawn half of the time.
                let is_first = faults.is_empty() || random.percent(50);
                let kind = if is_first { kinds[0] } else { *random.choose(kinds) };
                let hits_leader = faults.is_empty() || random.percent(50);
                let node = NodeId(random.below(nodes as u32) as usize);
                let target = if hits_leader { Target::Leader } else { Target::Node(node) };
                faults.push(Planned { at_ms: at, for_ms: lasting, kind, target });
            }
            at += lasting + random.between(2_000, 3_000);
        }
        Schedule { faults }
    }

    /// Returns the links that the faults need: those of the kernel, unless one is slow or lossy.
    pub fn links(&self, seed: u64) -> Links {
        match self.faults.iter().any(|fault| fault.kind.needs_switch()) {
            true => Links::UserSpace { seed },
            false => Links::Bridge,
        }
    }

    /// Writes one JSON line per fault.
    pub fn to_lines(&self, own: &[&'static str]) -> String {
        let mut text = String::new();
        for (number, fault) in self.faults.iter().enumerate() {
            let Planned { at_ms, for_ms, kind, target } = fault;
            let _ = writeln!(
                text,
                "{{\"plan\":{number},\"at_ms\":{at_ms},\"for_ms\":{for_ms},\"fault\":\"{}\",\
                 \"target\":\"{target}\"}}",
                kind.name(own)
            );
        }
        text
    }

    /// Reads a schedule from JSON lines. Lines without `plan`, which report events, are skipped.
    pub fn from_lines(
        text: &str,
        own: &[&'static str],
        nodes: usize,
    ) -> Result<Schedule, DriveError> {
        let mut faults = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let malformed = |what: &str| {
                DriveError::Malformed(format!("line {} of the schedule: {what}", index + 1))
            };
            let value: Value =
                serde_json::from_str(line).map_err(|error| malformed(&error.to_string()))?;
            if value.get("plan").is_none() || value.get("at_ms").is_none() {
                continue;
            }
            let number = |name: &str| {
                value
                    .get(name)
                    .and_then(Value::as_u64)
                    .ok_or_else(|| malformed(&format!("\"{name}\" is a number of milliseconds")))
            };
            let text = |name: &str| {
                value
                    .get(name)
                    .and_then(Value::as_str)
                    .ok_or_else(|| malformed(&format!("\"{name}\" is a text")))
            };
            let kind = FaultKind::named(text("fault")?, own)
                .ok_or_else(|| malformed("there is no such fault"))?;
            if kind.least_nodes() > nodes {
                return Err(malformed(&too_few(&kind.name(own), kind.least_nodes(), nodes)));
            }
            let target = match text("target")? {
                "leader" => Target::Leader,
                name => {
                    let node =
                        name.strip_prefix('n').and_then(|number| number.parse::<usize>().ok());
                    let node = node.filter(|node| (1..=nodes).contains(node));
                    Target::Node(NodeId(
                        node.ok_or_else(|| malformed("there is no such node"))? - 1,
                    ))
                }
            };
            faults.push(Planned {
                at_ms: number("at_ms")?,
                for_ms: number("for_ms")?,
                kind,
                target,
            });
        }
        faults.sort_by_key(|fault| fault.at_ms);
        Ok(Schedule { faults })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_depends_on_the_seed_only_and_can_be_read_again() {
        let own = ["promote"];
        let mix = FaultMix::parse("partition+slow,kill,promote", &own, 3).unwrap();
        let draw = |seed| Schedule::draw(&mix, 3, Duration::from_secs(120), seed);
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let schedule = draw(7);
        assert!(schedule.faults.len() > 5, "{schedule:?}");
        assert_eq!(Schedule::from_lines(&schedule.to_lines(&own), &own, 3).unwrap(), schedule);
    }

    #[test]
    fn a_short_run_has_one_fault_and_no_faults_are_none() {
        let mix = FaultMix::parse("kill", &[], 3).unwrap();
        let schedule = Schedule::draw(&mix, 3, Duration::from_secs(5), 1);
        assert_eq!(schedule.faults.len(), 1);
        assert!(schedule.faults[0].at_ms + schedule.faults[0].for_ms < 5_000);
        assert!(FaultMix::parse("none", &[], 3).unwrap().is_empty());
        assert!(FaultMix::parse("earthquake", &[], 3).is_err());
    }

    #[test]
    fn the_first_fault_hits_the_leader() {
        let mix = FaultMix::parse("partition", &[], 3).unwrap();
        for seed in 0..20 {
            let schedule = Schedule::draw(&mix, 3, Duration::from_secs(20), seed);
            assert_eq!(schedule.faults[0].kind, FaultKind::PartitionOne);
            assert_eq!(schedule.faults[0].target, Target::Leader);
        }
    }

    #[test]
    fn a_fault_that_would_do_nothing_is_refused() {
        for (faults, nodes, said) in [
            ("partition", 1, "`partition` needs two nodes, and there is one"),
            ("kill,lossy", 1, "`lossy` needs two nodes, and there is one"),
            ("partition-ring", 2, "`partition-ring` needs three nodes, and there are two"),
        ] {
            let error = FaultMix::parse(faults, &[], nodes).unwrap_err();
            assert_eq!(error.to_string(), said);
        }
        // With two nodes, no partition is a ring.
        let mix = FaultMix::parse("partition,slow,kill", &[], 2).unwrap();
        for seed in 0..20 {
            let schedule = Schedule::draw(&mix, 2, Duration::from_secs(60), seed);
            assert!(schedule.faults.iter().all(|fault| fault.kind != FaultKind::PartitionRing));
            assert!(Schedule::from_lines(&schedule.to_lines(&[]), &[], 2).is_ok());
        }
        let ring = r#"{"plan":0,"at_ms":1,"for_ms":1,"fault":"partition-ring","target":"n1"}"#;
        assert!(Schedule::from_lines(ring, &[], 2).is_err());
        assert!(Schedule::from_lines(ring, &[], 3).is_ok());
    }
}

//! Faults: how each begins and ends.

use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use consistory_work::each;

use crate::clock::Clock;
use crate::cluster::{Cluster, NodeId};
use crate::error::DriveError;
use crate::network::{Effect, Rule};
use crate::schedule::{FaultKind, Planned, Schedule, Target};
use crate::system::System;

/// A fault that can begin and end.
///
/// [`FaultKind`] implements the built-in faults; a system adds its own by
/// [`System::verbs`](crate::System::verbs).
pub trait Nemesis {
    /// Begins the fault at a node and returns a description.
    fn begin(&self, site: &Site<'_>, node: NodeId) -> Result<String, DriveError>;

    /// Ends the fault at a node.
    fn end(&self, site: &Site<'_>, node: NodeId) -> Result<(), DriveError>;
}

/// The cluster and network that faults act on.
pub struct Site<'a> {
    /// The system.
    pub system: &'a dyn System,
    /// The nodes of the system.
    pub cluster: &'a Cluster,
    /// The rules of the faults that are active, by kind.
    rules: Mutex<Vec<(FaultKind, Vec<Rule>)>>,
}

impl<'a> Site<'a> {
    /// Builds a site without faults.
    pub fn new(system: &'a dyn System, cluster: &'a Cluster) -> Self {
        Site { system, cluster, rules: Mutex::new(Vec::new()) }
    }

    /// Adds rules to the existing ones, in one transaction.
    fn add_rules(&self, kind: FaultKind, rules: Vec<Rule>) -> Result<(), DriveError> {
        let mut active = self.rules.lock().expect("no thread panics with the rules");
        active.push((kind, rules));
        self.apply(&active)
    }

    /// Restarts a node, unless the end of another fault has restarted it already.
    fn restart(&self, node: NodeId) -> Result<(), DriveError> {
        match self.cluster.is_running(node) {
            true => Ok(()),
            false => self.system.restart(self.cluster, node),
        }
    }

    fn remove_rules(&self, kind: FaultKind) -> Result<(), DriveError> {
        let mut active = self.rules.lock().expect("no thread panics with the rules");
        active.retain(|(other, _)| *other != kind);
        self.apply(&active)
    }

    fn apply(&self, active: &[(FaultKind, Vec<Rule>)]) -> Result<(), DriveError> {
        let rules: Vec<Rule> = active.iter().flat_map(|(_, rules)| rules.iter().cloned()).collect();
        self.cluster.set_rules(&rules)
    }
}

/// Delay of each packet to or from a slow node.
const DELAY: Duration = Duration::from_millis(50);

/// Percentage of packets that lossy links drop.
const LOSS_PERCENT: u8 = 30;

/// Longest wait until the cluster is writable through every node.
pub(crate) const READY_LIMIT: Duration = Duration::from_secs(90);

impl Nemesis for FaultKind {
    fn begin(&self, site: &Site<'_>, node: NodeId) -> Result<String, DriveError> {
        let cluster = site.cluster;
        let all: Vec<usize> = (0..cluster.len()).collect();
        let others: Vec<usize> = all.iter().copied().filter(|&other| other != node.0).collect();
        let cut = |from: &[usize], to: &[usize]| Rule {
            from: from.into(),
            to: to.into(),
            effect: Effect::Drop,
        };
        let both = |a: &[usize], b: &[usize]| vec![cut(a, b), cut(b, a)];
        Ok(match *self {
            FaultKind::PartitionHalves => {
                // The smaller half starts at the target.
                let size = (cluster.len() / 2).max(1);
                let half: Vec<usize> = (0..size).map(|i| (node.0 + i) % cluster.len()).collect();
                let rest: Vec<usize> = all.iter().copied().filter(|n| !half.contains(n)).collect();
                site.add_rules(*self, both(&half, &rest))?;
                let names = |nodes: &[usize]| {
                    let names: Vec<String> = nodes.iter().map(|&n| NodeId(n).to_string()).collect();
                    names.join(" ")
                };
                format!("{} cut off from {}", names(&half), names(&rest))
            }
            FaultKind::PartitionOne => {
                site.add_rules(*self, both(&[node.0], &others))?;
                format!("{node} cut off")
            }
            FaultKind::PartitionOneWay => {
                site.add_rules(*self, vec![cut(&[node.0], &others)])?;
                format!("{node} not heard by the others")
            }
            FaultKind::PartitionRing => {
                let count = cluster.len();
                let is_neighbour = |a: usize, b: usize| {
                    let distance = (a + count - b) % count;
                    match count {
                        // In a ring of three nodes all are neighbours, so one of the links is cut.
                        3 => {
                            ![a, b].contains(&node.0)
                                || distance == 1 && b == node.0
                                || distance == 2 && a == node.0
                        }
                        _ => distance == 1 || distance == count - 1,
                    }
                };
                let far = |a: usize| -> Vec<usize> {
                    all.iter().copied().filter(|&b| b != a && !is_neighbour(a, b)).collect()
                };
                let rules = all.iter().map(|&a| cut(&[a], &far(a))).collect();
                site.add_rules(*self, rules)?;
                match far(node.0)[..] {
                    [other] => format!("{node} cut off from {}", NodeId(other)),
                    _ => "each node cut off from all but two".to_owned(),
                }
            }
            FaultKind::Pause => {
                cluster.pause(node);
                format!("{node} paused")
            }
            FaultKind::Kill => {
                site.system.kill(cluster, node)?;
                format!("{node} killed")
            }
            FaultKind::KillAll => {
                let system = site.system;
                let kills = each(cluster.ids().collect(), |node| system.kill(cluster, node));
                kills.into_iter().collect::<Result<(), DriveError>>()?;
                "all nodes killed".to_owned()
            }
            FaultKind::LinkDown => {
                cluster.network()?.set_link(node.0, false)?;
                format!("link of {node} down")
            }
            FaultKind::Slow => {
                // The port of the clients follows those of the nodes.
                let everyone: Vec<usize> = others.iter().copied().chain([cluster.len()]).collect();
                let late = |from: &[usize], to: &[usize]| Rule {
                    from: from.into(),
                    to: to.into(),
                    effect: Effect::Delay(DELAY),
                };
                site.add_rules(
                    *self,
                    vec![late(&[node.0], &everyone), late(&everyone, &[node.0])],
                )?;
                format!("{node} slow")
            }
            FaultKind::Lossy => {
                let effect = Effect::Lose { percent: LOSS_PERCENT };
                site.add_rules(*self, vec![Rule { from: all.clone(), to: all, effect }])?;
                format!("{LOSS_PERCENT} % of packets lost")
            }
            FaultKind::DiskFull => {
                cluster.fill_disk(node)?;
                format!("disk of {node} full")
            }
            FaultKind::Own(verb) => {
                let name = site.system.verbs().get(verb).copied().unwrap_or("unknown");
                site.system.perform(cluster, name)?
            }
        })
    }

    fn end(&self, site: &Site<'_>, node: NodeId) -> Result<(), DriveError> {
        let cluster = site.cluster;
        match *self {
            FaultKind::PartitionHalves
            | FaultKind::PartitionOne
            | FaultKind::PartitionOneWay
            | FaultKind::PartitionRing
            | FaultKind::Slow
            | FaultKind::Lossy => site.remove_rules(*self),
            FaultKind::Pause => {
                cluster.resume(node);
                Ok(())
            }
            FaultKind::Kill => site.restart(node),
            FaultKind::KillAll => {
                // The end of another fault may have restarted a node.
                for node in cluster.ids().filter(|&node| cluster.is_running(node)) {
                    site.system.kill(cluster, node)?;
                }
                site.system.recover(cluster)
            }
            FaultKind::LinkDown => cluster.network()?.set_link(node.0, true),
            FaultKind::DiskFull => {
                cluster.free_disk(node);
                // Most servers end when they cannot write.
                match cluster.exited(node) {
                    Some(_) => {
                        cluster.kill(node);
                        site.restart(node)
                    }
                    None => Ok(()),
                }
            }
            FaultKind::Own(_) => Ok(()),
        }
    }
}

/// A fault that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultEvent {
    /// The kind of fault.
    pub name: String,
    /// A description of the fault.
    pub text: String,
    /// Measurements during the fault: round trips on a slow or lossy link.
    pub measured: Option<String>,
    /// The node of the fault, if it happened to one node.
    pub node: Option<NodeId>,
    /// Time of the beginning, in nanoseconds of the run's clock.
    pub begin: u64,
    /// Time of the end; `None` if the fault lasted until the end of the run.
    pub end: Option<u64>,
    /// Time at which a write through every node worked again.
    pub ready: Option<u64>,
}

/// Whether to continue with a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// Time is left.
    GoOn,
    /// The time is over; the cluster should become ready once more.
    TimeIsOver,
    /// Stop at once.
    AtOnce,
}

/// Carries out a schedule until `pace` says to stop, then ends the active faults. `pace` first
/// waits for the given duration.
///
/// Later faults are delayed by the time that the cluster needs to become ready again. Faults are
/// added to `events` when they begin, so `events` also contains those that happened before an
/// error.
pub(crate) fn carry_out(
    site: &Site<'_>,
    schedule: &Schedule,
    clock: Clock,
    log: &mut dyn Write,
    events: &mut Vec<FaultEvent>,
    mut pace: impl FnMut(Duration) -> Pace,
) -> Result<(), DriveError> {
    let own = site.system.verbs();
    let mut delay = 0;
    let mut next = 0;
    while next < schedule.faults.len() {
        let first = &schedule.faults[next];
        let together: Vec<&Planned> =
            schedule.faults[next..].iter().take_while(|f| f.at_ms == first.at_ms).collect();
        next += together.len();
        let wait = |ms: u64| Duration::from_millis(ms).saturating_sub(clock.elapsed());
        if pace(wait(first.at_ms + delay)) != Pace::GoOn {
            break;
        }
        let mut active: Vec<(usize, &Planned, NodeId)> = Vec::new();
        for (offset, fault) in together.iter().enumerate() {
            let node = match fault.target {
                Target::Node(node) => node,
                Target::Leader => site.system.leader(site.cluster).unwrap_or(NodeId(0)),
            };
            // Beginning a fault takes time, and may affect clients from now on.
            let begin = clock.now();
            let text = fault.kind.begin(site, node)?;
            let name = fault.kind.name(own);
            let plan = next - together.len() + offset;
            note(log, begin, "begin", plan, &name, &text)?;
            let node_hit = fault.kind.has_target().then_some(node);
            let measured = measure(site, fault.kind, node)?;
            if let Some(measured) = &measured {
                note(log, clock.now(), "measured", plan, &name, measured)?;
            }
            let event =
                FaultEvent { name, text, measured, node: node_hit, begin, end: None, ready: None };
            active.push((events.len(), fault, node));
            events.push(event);
        }
        let longest = together.iter().filter(|f| !f.kind.is_momentary()).map(|f| f.for_ms).max();
        let pace_then = pace(wait(first.at_ms + delay + longest.unwrap_or(0)));
        // Servers are restarted only after links and disks work again.
        let mut ending = active.clone();
        ending.sort_by_key(|(_, fault, _)| match fault.kind {
            FaultKind::KillAll => 3,
            FaultKind::Kill => 2,
            FaultKind::DiskFull => 1,
            _ => 0,
        });
        for (at, fault, node) in ending {
            fault.kind.end(site, node)?;
            events[at].end = Some(clock.now());
            note(log, clock.now(), "end", at, &events[at].name, &events[at].text)?;
        }
        if pace_then == Pace::AtOnce {
            break;
        }
        let before = clock.now();
        site.system.ready(site.cluster, READY_LIMIT)?;
        let ready = clock.now();
        for (at, fault, node) in active {
            events[at].ready = Some(ready);
            note(
                log,
                ready,
                "ready",
                at,
                &fault.kind.name(own),
                "a write through every node worked",
            )?;
            if let Some(measured) = measure(site, fault.kind, node)? {
                note(log, clock.now(), "healed", at, &events[at].name, &measured)?;
            }
        }
        delay += (clock.now() - before) / 1_000_000;
        if pace_then == Pace::TimeIsOver {
            break;
        }
    }
    Ok(())
}

/// Measures the effect of a fault on a link; `None` for faults that do not make links slow or
/// lossy.
fn measure(site: &Site<'_>, kind: FaultKind, node: NodeId) -> Result<Option<String>, DriveError> {
    if !kind.needs_switch() || site.cluster.len() < 2 {
        return Ok(None);
    }
    let other = NodeId((node.0 + 1) % site.cluster.len());
    let Some(found) = site.cluster.network()?.measure(node.0, other.0) else { return Ok(None) };
    let median = found
        .median
        .map_or(String::new(), |median| format!(", median {:.2} ms", median.as_secs_f64() * 1e3));
    Ok(Some(format!(
        "round trips from {node} to {other}: {} of {} answered{median}",
        found.answered, found.sent
    )))
}

fn note(
    log: &mut dyn Write,
    at: u64,
    event: &str,
    plan: usize,
    name: &str,
    text: &str,
) -> Result<(), DriveError> {
    let line = serde_json::json!({
        "ms": at / 1_000_000, "event": event, "fault": name, "of": plan, "text": text,
    });
    writeln!(log, "{line}")?;
    Ok(log.flush()?)
}

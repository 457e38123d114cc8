//! A switch in user space, for links that are slow or lose packets.
//!
//! Each node has a TUN device in its namespace, the clients have one too, and this process forwards
//! IP packets between the devices. Each direction of each link has a delay and a share of dropped
//! packets, drawn from the run's seed. No kernel module other than TUN is needed.
//!
//! ```text
//!     clients (eth0) ⇄ thread ─┐
//!     n1 (eth0)      ⇄ thread ─┼─ table of links ─ queue of packets that are late
//!     n2 (eth0)      ⇄ thread ─┘
//! ```
//!
//! The switch measures its own effect: [`Switch::measure`] sends echo requests as if one node
//! pinged another. They pass through the links and the other node's kernel like all packets, and
//! the times of the answers are measured.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use consistory_work::spawn;
use tun_tap::{Iface, Mode};

use consistory_random::Random;

use crate::error::DriveError;
use crate::network::{Effect, Rule};

/// Largest forwarded packet; devices have an MTU of 1500.
const MAX_PACKET: usize = 2_048;

/// Largest number of delayed packets at a time; further packets are dropped, as in a router.
const MAX_LATE_PACKETS: usize = 100_000;

/// Number of the random stream that decides which packets are dropped.
const LOSS_STREAM: u64 = 1 << 34;

/// A running switch. Its threads end with the process.
#[derive(Debug)]
pub(crate) struct Switch {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The devices: one per node, then the device of the clients.
    devices: Vec<Iface>,
    addresses: Vec<Ipv4Addr>,
    table: RwLock<Table>,
    random: Mutex<Random>,
    late: Mutex<Queue>,
    woken: Condvar,
    probes: Mutex<BTreeMap<u16, Probe>>,
}

/// The conditions of the links, by `from * ports + to`.
#[derive(Clone, Debug)]
struct Table {
    links: Vec<Link>,
    is_down: Vec<bool>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    loss_percent: u8,
    delay: Duration,
}

/// Delayed packets, the next one due first; packets due at the same time keep the order of arrival.
#[derive(Debug, Default)]
struct Queue {
    packets: BinaryHeap<Reverse<Late>>,
    arrivals: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Late {
    due: Instant,
    arrival: u64,
    to: usize,
    packet: Vec<u8>,
}

/// The echo requests of one measurement.
#[derive(Debug, Default)]
struct Probe {
    sent: Vec<Instant>,
    round_trips: BTreeMap<u16, Duration>,
}

/// The result of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RoundTrips {
    pub(crate) sent: usize,
    pub(crate) answered: usize,
    /// The median time of the answered requests.
    pub(crate) median: Option<Duration>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Switch {
    /// Starts forwarding between devices with the given addresses.
    pub(crate) fn start(
        devices: Vec<Iface>,
        addresses: Vec<Ipv4Addr>,
        seed: u64,
    ) -> Result<Switch, DriveError> {
        let ports = devices.len();
        let table =
            Table { links: vec![Link::default(); ports * ports], is_down: vec![false; ports] };
        let shared = Arc::new(Shared {
            devices,
            addresses,
            table: RwLock::new(table),
            random: Mutex::new(Random::new(seed, LOSS_STREAM)),
            late: Mutex::new(Queue::default()),
            woken: Condvar::new(),
            probes: Mutex::new(BTreeMap::new()),
        });
        for port in 0..ports {
            let shared = Arc::clone(&shared);
            spawn(move || shared.read_from(port))?;
        }
        let timer = Arc::clone(&shared);
        spawn(move || timer.deliver_late())?;
        Ok(Switch { shared })
    }

    /// Opens a device in the namespace of this process; the caller moves it to its own namespace.
    pub(crate) fn open_device(name: &str) -> Result<Iface, DriveError> {
        Iface::without_packet_info(name, Mode::Tun).map_err(|error| DriveError::Tun { error })
    }

    /// Replaces all rules at once.
    pub(crate) fn set_rules(&self, rules: &[Rule]) {
        let ports = self.shared.devices.len();
        let mut links = vec![Link::default(); ports * ports];
        for rule in rules {
            for (&from, &to) in rule.from.iter().flat_map(|a| rule.to.iter().map(move |b| (a, b))) {
                let link = &mut links[from * ports + to];
                match rule.effect {
                    Effect::Drop => link.loss_percent = 100,
                    Effect::Lose { percent } => link.loss_percent = link.loss_percent.max(percent),
                    Effect::Delay(delay) => link.delay += delay,
                }
            }
        }
        self.shared.table.write().unwrap_or_else(PoisonError::into_inner).links = links;
    }

    /// Cuts a port off from all others, or connects it again.
    pub(crate) fn set_down(&self, port: usize, is_down: bool) {
        let mut table = self.shared.table.write().unwrap_or_else(PoisonError::into_inner);
        table.is_down[port] = is_down;
    }

    /// Sends echo requests from one port to another. Measures the times of the answers that arrive
    /// within `patience` after the last request.
    pub(crate) fn measure(
        &self,
        from: usize,
        to: usize,
        requests: u16,
        every: Duration,
        patience: Duration,
    ) -> RoundTrips {
        static NEXT: AtomicU16 = AtomicU16::new(1);
        let identifier = NEXT.fetch_add(1, Ordering::Relaxed);
        let shared = &self.shared;
        locked(&shared.probes).insert(identifier, Probe::default());
        for sequence in 0..requests {
            let addresses = (shared.addresses[from], shared.addresses[to]);
            let packet = echo_request(addresses, identifier, sequence);
            if let Some(probe) = locked(&shared.probes).get_mut(&identifier) {
                probe.sent.push(Instant::now());
            }
            shared.forward(from, to, &packet);
            std::thread::sleep(every);
        }
        let answered = || locked(&shared.probes).get(&identifier).map(|p| p.round_trips.len());
        let until = Instant::now() + patience;
        while Instant::now() < until && answered() < Some(requests.into()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let probe = locked(&shared.probes).remove(&identifier).unwrap_or_default();
        let mut times: Vec<Duration> = probe.round_trips.into_values().collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied();
        RoundTrips { sent: requests.into(), answered: times.len(), median }
    }
}

impl Shared {
    /// Forwards the packets that a port sends, until its device is gone.
    fn read_from(&self, port: usize) {
        let mut buffer = [0; MAX_PACKET];
        while let Ok(length) = self.devices[port].recv(&mut buffer) {
            let packet = &buffer[..length];
            if let Some(to) = destination(packet)
                && let Some(to) = self.addresses.iter().position(|address| *address == to)
            {
                self.forward(port, to, packet);
            }
        }
    }

    fn forward(&self, from: usize, to: usize, packet: &[u8]) {
        let link = {
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            if table.is_down[from] || table.is_down[to] {
                return;
            }
            table.links[from * self.devices.len() + to]
        };
        let is_lost = match link.loss_percent {
            0 => false,
            100.. => true,
            percent => locked(&self.random).percent(percent.into()),
        };
        if is_lost {
            return;
        }
        if link.delay.is_zero() {
            return self.deliver(to, packet);
        }
        let mut late = locked(&self.late);
        if late.packets.len() < MAX_LATE_PACKETS {
            let (due, arrival) = (Instant::now() + link.delay, late.arrivals);
            late.arrivals += 1;
            late.packets.push(Reverse(Late { due, arrival, to, packet: packet.to_vec() }));
            self.woken.notify_one();
        }
    }

    /// Delivers delayed packets when they are due.
    fn deliver_late(&self) {
        let mut late = locked(&self.late);
        loop {
            let now = Instant::now();
            match late.packets.peek() {
                None => late = self.woken.wait(late).unwrap_or_else(PoisonError::into_inner),
                Some(Reverse(next)) if next.due > now => {
                    let wait = next.due - now;
                    let woken = self.woken.wait_timeout(late, wait);
                    late = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => {
                    if let Some(Reverse(next)) = late.packets.pop() {
                        drop(late);
                        self.deliver(next.to, &next.packet);
                        late = locked(&self.late);
                    }
                }
            }
        }
    }

    fn deliver(&self, to: usize, packet: &[u8]) {
        if let Some((identifier, sequence)) = echo_reply(packet)
            && let Some(probe) = locked(&self.probes).get_mut(&identifier)
            && let Some(sent) = probe.sent.get(usize::from(sequence))
        {
            let round_trip = sent.elapsed();
            probe.round_trips.entry(sequence).or_insert(round_trip);
        }
        // A device that is not up refuses the packet, which is then lost as on any network.
        let _ = self.devices[to].send(packet);
    }
}

/// Returns the destination address of an IPv4 packet.
fn destination(packet: &[u8]) -> Option<Ipv4Addr> {
    let is_ipv4 = packet.len() >= 20 && packet[0] >> 4 == 4;
    is_ipv4.then(|| Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]))
}

/// Length of the IPv4 header of the echo requests.
const HEADER: usize = 20;

/// Writes an ICMP echo request.
fn echo_request((from, to): (Ipv4Addr, Ipv4Addr), identifier: u16, sequence: u16) -> Vec<u8> {
    let mut packet = vec![0; HEADER + 8];
    let length = packet.len() as u16;
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[8] = 64;
    packet[9] = 1;
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    let header = checksum(&packet[..HEADER]);
    packet[10..12].copy_from_slice(&header.to_be_bytes());
    packet[HEADER] = 8;
    packet[HEADER + 4..HEADER + 6].copy_from_slice(&identifier.to_be_bytes());
    packet[HEADER + 6..].copy_from_slice(&sequence.to_be_bytes());
    let message = checksum(&packet[HEADER..]);
    packet[HEADER + 2..HEADER + 4].copy_from_slice(&message.to_be_bytes());
    packet
}

/// Returns the identifier and the number of an ICMP echo reply.
fn echo_reply(packet: &[u8]) -> Option<(u16, u16)> {
    let header = usize::from(packet[0] & 0xf) * 4;
    let message = packet.get(header..header + 8)?;
    let is_reply = packet[9] == 1 && message[0] == 0;
    let number = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    is_reply.then(|| (number(4), number(6)))
}

/// Computes the checksum of RFC 1071 over a whole number of 16-bit words.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_request_has_the_fields_and_checksums_of_the_standards() {
        let (from, to) = (Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2));
        let packet = echo_request((from, to), 7, 513);
        // The sum over a part with a correct checksum is 0.
        assert_eq!((checksum(&packet[..HEADER]), checksum(&packet[HEADER..])), (0, 0));
        assert_eq!(destination(&packet), Some(to));
        assert_eq!(echo_reply(&packet), None, "a request is not a reply");
        let mut reply = packet;
        reply[HEADER] = 0;
        assert_eq!(echo_reply(&reply), Some((7, 513)));
        assert_eq!(destination(&[0x60; 40]), None, "IPv6 is not forwarded");
        assert_eq!(destination(&[0x45; 8]), None, "a packet may be cut short");
    }

    #[test]
    fn late_packets_come_in_the_order_of_their_times() {
        let now = Instant::now();
        let late = |due: u64, arrival| {
            let due = now + Duration::from_millis(due);
            Reverse(Late { due, arrival, to: 0, packet: Vec::new() })
        };
        let mut heap = BinaryHeap::from([late(5, 0), late(1, 2), late(1, 1), late(9, 3)]);
        let order: Vec<u64> = std::iter::from_fn(|| heap.pop().map(|p| p.0.arrival)).collect();
        assert_eq!(order, [1, 2, 0, 3]);
    }
}

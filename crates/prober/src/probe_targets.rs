//! Hosts that reply to ICMP, probed one by one for as long as the caller wants: for a controller of rates.
//!
//! A host is asked for its time (RFC 792, type 13), which gives the delay of each direction up to the
//! difference of the clocks. One that does not reply to that is sent echo requests, and so is one with an
//! IPv6 address (ICMPv6 has no such message).

use crate::clock::ProbeClock;
use crate::error::Error;
use crate::ping::message;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_sys::icmp::{self, Icmp};
use tidegate_sys::poll::{self, Readiness};
use tidegate_sys::stamped;

/// The most hosts at once.
pub const MAX_PROBE_TARGETS: usize = 64;
/// Without a reply after this a probe is lost; one that comes later than the second is not known any more.
const LOST_AFTER_NS: u64 = 1_000_000_000;
const FORGOTTEN_AFTER_NS: u64 = 10_000_000_000;
/// Requests without a reply that are kept for a host.
const MAX_OPEN: usize = 1024;
/// After so many lost probes the other kind of request is tried, where none was ever answered.
const TRIES: u32 = 4;
/// Messages that are read from a socket at once: a flood must not keep us from sending.
const MAX_READ: usize = 64;

const TIMESTAMP: u8 = 13;
const TIMESTAMP_REPLY: u8 = 14;
const ECHO_REPLY: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;
/// Bytes of a timestamp message, and of an echo request (as ping sends them).
const STAMPED: usize = 20;
const ECHO_DATA: u16 = 56;
/// Set in a time that is not in milliseconds since midnight UTC (RFC 792).
const NOT_STANDARD: u32 = 1 << 31;
const DAY_MS: i64 = 86_400_000;

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetEvent {
    /// A reply came.
    Reply {
        /// The host, by number.
        target: u16,
        /// When the probe was sent, ns of the caller's clock.
        sent_ns: u64,
        /// When the reply came.
        at_ns: u64,
        /// The delays there and back by the clocks of both ends, ns: their difference is in them.
        one_way_ns: Option<[i64; 2]>,
    },
    /// None came within a second.
    Lost {
        /// The host, by number.
        target: u16,
        /// When the probe was sent.
        sent_ns: u64,
    },
}

/// A request without a reply.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: u64,
    sent_ns: u64,
    /// By the wall clock, ns since 1970.
    wall_ns: u64,
    lost: bool,
}

#[derive(Debug)]
struct Target {
    address: IpAddr,
    socket: Option<Icmp>,
    /// What waited at the socket when it was looked at last.
    ready: Readiness,
    next: u64,
    open: VecDeque<Open>,
    asks_time: bool,
    /// It replied to this kind of request once.
    replied: bool,
    unanswered: u32,
}

/// Hosts that are probed.
#[derive(Debug)]
pub struct ProbeTargets {
    targets: Vec<Target>,
    sign: message::Sign,
    buffer: Vec<u8>,
}

impl ProbeTargets {
    /// Opens a socket for each.
    ///
    /// # Errors
    /// Too many hosts; no permission (it needs CAP_NET_RAW). A host without a route is tried again by
    /// [`ProbeTargets::reopen`].
    pub fn open(addresses: &[IpAddr]) -> Result<ProbeTargets, Error> {
        if addresses.len() > MAX_PROBE_TARGETS {
            return Err(Error::Wrong(format!("at most {MAX_PROBE_TARGETS} probe targets at once")));
        }
        let token = RandomState::new().hash_one(1_u8);
        let target = |address: &IpAddr| Target {
            address: *address,
            socket: None,
            ready: Readiness::default(),
            next: 0,
            open: VecDeque::new(),
            asks_time: address.is_ipv4(),
            replied: false,
            unanswered: 0,
        };
        let mut all = ProbeTargets {
            targets: addresses.iter().map(target).collect(),
            sign: message::Sign { token, identifier: (token >> 48) as u16 },
            buffer: vec![0; 2048],
        };
        for at in 0..all.targets.len() {
            match all.connect(at) {
                Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(Error::NotAllowed {
                        what: "a raw ICMP socket".to_owned(),
                        remedy: "Run as root, or with CAP_NET_RAW.".to_owned(),
                    });
                }
                _ => {}
            }
        }
        Ok(all)
    }

    fn connect(&mut self, at: usize) -> io::Result<()> {
        let target = &mut self.targets[at];
        let v6 = target.address.is_ipv6();
        let types: &[u8] = if v6 { &[ECHO_REPLY_V6] } else { &[ECHO_REPLY, TIMESTAMP_REPLY] };
        target.socket = None;
        let socket = Icmp::raw(target.address, types)?;
        stamped::note(&socket, v6, false)?;
        target.socket = Some(socket);
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.targets.len()
    }

    /// The address of one, and whether it gives delays one way: whether it is asked for its time.
    pub fn target(&self, at: usize) -> Option<(IpAddr, bool)> {
        self.targets.get(at).map(|target| (target.address, target.asks_time))
    }

    /// Opens all sockets again: the address that they send from may not be this computer's any more.
    pub fn reopen(&mut self) {
        for at in 0..self.targets.len() {
            // What fails is tried again the next time.
            let _ = self.connect(at);
        }
    }

    /// Waits until one of these descriptors is ready, or something came from a host, or the time is over;
    /// which of the descriptors are ready. [`ProbeTargets::collect`] then reads what came, and nothing else.
    ///
    /// # Errors
    /// What `poll(2)` reports.
    pub fn wait(&mut self, others: &[BorrowedFd<'_>], limit: Duration) -> io::Result<Vec<bool>> {
        let own = self.targets.iter().filter_map(|target| Some(target.socket.as_ref()?.as_fd()));
        let waited: Vec<BorrowedFd<'_>> = others.iter().copied().chain(own).collect();
        let mut found = poll::ready(&waited, limit)?.into_iter();
        let others = found.by_ref().take(others.len());
        let others = others.map(|ready| ready.is_readable || ready.has_error).collect();
        for target in self.targets.iter_mut().filter(|target| target.socket.is_some()) {
            target.ready = found.next().unwrap_or_default();
        }
        Ok(others)
    }

    /// Sends a probe to a host; one that cannot be sent counts as lost later.
    pub fn send(&mut self, at: usize, clock: &ProbeClock) {
        let sign = self.sign;
        let Some(target) = self.targets.get_mut(at) else { return };
        let number = target.next;
        target.next += 1;
        let wall_ns = wall();
        let bytes = if target.asks_time {
            time_request(sign, number as u16, ms_of_day(wall_ns))
        } else {
            message::request(target.address.is_ipv6(), sign, number, &message::data(sign, number, ECHO_DATA))
        };
        if target.open.len() >= MAX_OPEN {
            target.open.pop_front();
        }
        target.open.push_back(Open { number, sent_ns: clock.now(), wall_ns, lost: false });
        if let Some(socket) = &target.socket
            && icmp::send(socket, &bytes).is_err()
        {
            // An error of an earlier probe is returned once, by the next send.
            let _ = icmp::send(socket, &bytes);
        }
    }

    /// Reads the replies that [`ProbeTargets::wait`] saw, and finds what is lost by now.
    pub fn collect(&mut self, clock: &mut ProbeClock, events: &mut Vec<TargetEvent>) {
        for at in 0..self.targets.len() {
            self.read(at, clock, events);
            let now = clock.now();
            let target = &mut self.targets[at];
            let mut lost = 0;
            for open in &mut target.open {
                if !open.lost && now.saturating_sub(open.sent_ns) >= LOST_AFTER_NS {
                    open.lost = true;
                    lost += 1;
                    events.push(TargetEvent::Lost { target: at as u16, sent_ns: open.sent_ns });
                }
            }
            target.unanswered += lost;
            target.open.retain(|open| now.saturating_sub(open.sent_ns) < FORGOTTEN_AFTER_NS);
            if target.unanswered >= TRIES && !target.replied && target.address.is_ipv4() {
                target.asks_time = !target.asks_time;
                target.unanswered = 0;
            }
        }
    }

    fn read(&mut self, at: usize, clock: &mut ProbeClock, events: &mut Vec<TargetEvent>) {
        let (sign, buffer) = (self.sign, &mut self.buffer);
        let target = &mut self.targets[at];
        let Some(socket) = &target.socket else { return };
        let Readiness { is_readable, has_error } = std::mem::take(&mut target.ready);
        if has_error {
            // Errors that came back are not needed: what is not answered is lost.
            for _ in 0..MAX_READ {
                if !matches!(stamped::notice(socket, buffer), Ok(Some(_))) {
                    break;
                }
            }
        }
        if !is_readable {
            return;
        }
        for _ in 0..MAX_READ {
            let came = match stamped::receive(socket, buffer) {
                Ok(Some(came)) => came,
                Ok(None) => return,
                Err(_) => continue,
            };
            let v6 = target.address.is_ipv6();
            let bytes = &buffer[..came.bytes.min(buffer.len())];
            let bytes = if v6 { bytes } else { message::behind_ip(bytes) };
            let Some((number, times)) = reply(bytes, sign, v6) else { continue };
            let Some(found) = target.open.iter().rposition(|open| open.number as u16 == number) else {
                continue;
            };
            let Some(open) = target.open.remove(found) else { continue };
            target.unanswered = 0;
            target.replied = true;
            let at_ns = clock.stamped(came.stamp_ns).max(open.sent_ns);
            let there = times.and_then(|times| one_way(open.wall_ns, at_ns - open.sent_ns, times));
            if times.is_some() && there.is_none() {
                // Its times mean nothing: round trips are all that it gives.
                target.asks_time = false;
            }
            events.push(TargetEvent::Reply {
                target: at as u16,
                sent_ns: open.sent_ns,
                at_ns,
                one_way_ns: there,
            });
        }
    }
}

fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn ms_of_day(wall_ns: u64) -> u32 {
    ((wall_ns / 1_000_000) % DAY_MS as u64) as u32
}

/// A timestamp request (RFC 792).
fn time_request(sign: message::Sign, sequence: u16, now_ms: u32) -> Vec<u8> {
    let mut bytes = vec![TIMESTAMP, 0, 0, 0];
    bytes.extend(sign.identifier.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(now_ms.to_be_bytes());
    bytes.extend([0; 8]);
    let sum = message::checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// The last bits of the number of the request that a message replies to, and the times in it (received, sent
/// again). `None`: it is no reply to one of these requests.
fn reply(bytes: &[u8], sign: message::Sign, v6: bool) -> Option<(u16, Option<[u32; 2]>)> {
    let head = bytes.get(..message::HEAD)?;
    if head[1] != 0 || head[4..6] != sign.identifier.to_be_bytes() {
        return None;
    }
    let number = u16::from_be_bytes([head[6], head[7]]);
    match (head[0], v6) {
        (TIMESTAMP_REPLY, false) => {
            let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
            bytes.get(..STAMPED)?;
            Some((number, Some([word(12)?, word(16)?])))
        }
        (ECHO_REPLY, false) | (ECHO_REPLY_V6, true) => {
            message::echo(bytes, [head[0]; 2], sign, true).map(|_| (number, None))
        }
        _ => None,
    }
}

/// The delays there and back, ns; `None`: the times are not in milliseconds since midnight.
fn one_way(sent_wall_ns: u64, took_ns: u64, [received, sent]: [u32; 2]) -> Option<[i64; 2]> {
    if (received | sent) & NOT_STANDARD != 0 {
        return None;
    }
    // Midnight may be between the two clocks' times.
    let within = |ns: i64| {
        let day = DAY_MS * 1_000_000;
        (ns + day / 2).rem_euclid(day) - day / 2
    };
    let of_day = (sent_wall_ns % (DAY_MS as u64 * 1_000_000)) as i64;
    let up = i64::from(received) * 1_000_000 - of_day;
    let down = of_day + took_ns as i64 - i64::from(sent) * 1_000_000;
    Some([within(up), within(down)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGN: message::Sign = message::Sign { token: 7, identifier: 0x1234 };
    const MS: u64 = 1_000_000;

    #[test]
    fn a_reply_has_the_delays_of_both_directions() {
        let request = time_request(SIGN, 9, 1000);
        assert_eq!((request.len(), message::checksum(&request)), (STAMPED, 0));
        let mut bytes = request.clone();
        bytes[0] = TIMESTAMP_REPLY;
        bytes[12..16].copy_from_slice(&1030_u32.to_be_bytes());
        bytes[16..20].copy_from_slice(&1031_u32.to_be_bytes());
        assert_eq!(reply(&bytes, SIGN, false), Some((9, Some([1030, 1031]))));
        assert_eq!(one_way(1000 * MS, 51 * MS, [1030, 1031]), Some([30_000_000, 20_000_000]));
        for wrong in [&bytes[..19], &request[..], &[][..]] {
            assert_eq!(reply(wrong, SIGN, false), None, "{wrong:?}");
        }
        let other = message::Sign { identifier: 1, ..SIGN };
        assert_eq!(reply(&bytes, other, false), None);
    }

    #[test]
    fn midnight_and_odd_clocks_make_no_delay() {
        let late = (DAY_MS as u64 - 5) * MS;
        assert_eq!(one_way(late, 20 * MS, [5, 6]), Some([10_000_000, 9_000_000]));
        assert_eq!(one_way(0, MS, [NOT_STANDARD | 5, 6]), None);
    }

    #[test]
    fn this_computer_replies_with_its_time() {
        let here = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2])];
        let mut targets = match ProbeTargets::open(&here) {
            Ok(targets) => targets,
            Err(error) => return println!("SKIPPED: {error}"),
        };
        let mut clock = ProbeClock::begin();
        targets.send(0, &clock);
        targets.send(1, &clock);
        let mut events = Vec::new();
        for _ in 0..100 {
            targets.wait(&[], Duration::from_millis(50)).expect("sockets");
            targets.collect(&mut clock, &mut events);
            if events.len() >= 2 {
                break;
            }
        }
        for event in &events {
            let TargetEvent::Reply { sent_ns, at_ns, one_way_ns: Some(ways), .. } = event else {
                panic!("{event:?}")
            };
            // Times are in whole milliseconds.
            let sum = ways[0] + ways[1] - (at_ns - sent_ns) as i64;
            assert!(sum.abs() < 3_000_000, "{event:?}");
        }
        assert_eq!(events.len(), 2, "{events:?}");
    }
}

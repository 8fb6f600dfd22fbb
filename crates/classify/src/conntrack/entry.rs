//! A connection: what is kept of it, and for how long.

use super::tuple::Tuple;
use tidegate_packet::header::proto;
use tidegate_packet::{Nanos, Time};

/// A tracked connection.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// As it began, and as answers look.
    pub(super) tuples: [Tuple; 2],
    pub(super) mark: u32,
    pub(super) labels: u128,
    pub(super) packets: [u64; 2],
    pub(super) bytes: [u64; 2],
    /// Packets and bytes are counted.
    pub(super) counts: bool,
    pub(super) answered: bool,
    pub(super) confirmed: bool,
    /// Is it settled what the world sees of each end?
    pub(super) settled: [bool; 2],
    pub(super) tcp: Tcp,
    /// What the last reset acknowledged.
    pub(super) reset_ack: u32,
    pub(super) began: Time,
    pub(super) expires: Time,
    pub(super) used: bool,
}

impl Entry {
    pub(super) fn count(&mut self, reply: bool, len: u64) {
        if self.counts {
            self.packets[usize::from(reply)] += 1;
            self.bytes[usize::from(reply)] += len;
        }
    }
}

/// How far a TCP connection has come (RFC 9293's states as a bystander sees them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tcp {
    /// Not TCP.
    #[default]
    None,
    SynSent,
    /// SYN from both sides.
    SynBoth,
    SynReceived,
    Established,
    /// One side has closed,
    FinWait,
    /// which was acknowledged.
    CloseWait,
    /// Both sides have closed,
    LastAck,
    /// which was acknowledged: either side may begin again.
    TimeWait,
    /// Reset after one side had closed: a new SYN reopens it.
    Ended,
    /// Reset; was its last packet a reset by its opener, so that a new SYN reopens it?
    Closed(bool),
    /// Reset before the handshake was answered: the side that opened it has nothing more to send.
    Refused(bool),
}

/// How long a connection is remembered without a packet: Linux's defaults.
pub(super) fn timeout(entry: &Entry, now: Time) -> Nanos {
    let seconds = match (entry.tuples[0].protocol, entry.tcp) {
        (proto::TCP, Tcp::SynSent | Tcp::SynBoth) => 120,
        (proto::TCP, Tcp::SynReceived) => 60,
        (proto::TCP, Tcp::Established) if !entry.answered => 300,
        (proto::TCP, Tcp::Established) => 432_000,
        (proto::TCP, Tcp::FinWait | Tcp::TimeWait) => 120,
        (proto::TCP, Tcp::CloseWait) => 60,
        (proto::TCP, Tcp::LastAck) => 30,
        (proto::TCP, _) => 10,
        (proto::UDP, _) if entry.answered && now.since(entry.began) > Nanos::secs(2) => 120,
        (proto::UDP, _) | (proto::ICMP | proto::ICMPV6, _) => 30,
        _ => 600,
    };
    Nanos::secs(seconds)
}

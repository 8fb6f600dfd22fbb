//! Connections: which packets belong together, in both directions, with a mark and counters (as Linux's nf_conntrack shows itself).
//!
//! A packet is looked up by its addresses, protocol and ports, or made the first of a new connection; that is kept when the packet has
//! passed all hooks ([`Conntrack::confirm`]). Time is an argument: what has not been seen for its timeout is forgotten when it is
//! asked for. What is modelled of TCP is the order of flags, not windows: segments are taken to be in window.

mod act;
mod inside;
mod nat;
mod related;
mod tcp;

pub(crate) use act::flower_state;
pub use nat::End;

use crate::headers::Outer;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use tcp::{Step, Tcp, opening, step};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Meta, Pkt, Pool, Span, Time};
use tidegate_policy::netfilter::Connstate as State;

/// Connections kept at most; beyond, packets of new ones are dropped, as Linux does.
pub const MAX_CONNECTIONS: usize = 262_144;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tuple {
    /// Sender; IPv4 in the last four octets.
    pub source: [u8; 16],
    /// Receiver.
    pub destination: [u8; 16],
    /// Are the addresses IPv6? Those of IPv4 stand in the last four bytes.
    pub v6: bool,
    /// IP protocol number (IANA): 6 is TCP.
    pub protocol: u8,
    /// Sender's port; an echo's identifier.
    pub sport: u16,
    /// Receiver's port; type and code of an ICMP message.
    pub dport: u16,
    /// The zone: connections of different zones have nothing to do with each other.
    pub zone: u16,
}

impl Tuple {
    fn back(self) -> Tuple {
        let (sport, dport) = match self.protocol {
            proto::ICMP | proto::ICMPV6 => (self.sport, answering(self.dport)),
            _ => (self.dport, self.sport),
        };
        Tuple { source: self.destination, destination: self.source, sport, dport, ..self }
    }
}

/// Requests of ICMP and ICMPv6 and what answers them: echo, timestamp, information, address mask; echo, node information.
const QUERIES: [(u8, u8); 6] = [(8, 0), (13, 14), (15, 16), (17, 18), (128, 129), (139, 140)];

/// Type and code of the answer to a request, and of the request for an answer.
fn answering(message: u16) -> u16 {
    let [kind, code] = message.to_be_bytes();
    let other = QUERIES.iter().find_map(|(request, answer)| match kind {
        k if k == *request => Some(*answer),
        k if k == *answer => Some(*request),
        _ => None,
    });
    u16::from_be_bytes([other.unwrap_or(kind), code])
}

/// A connection.
#[derive(Clone, Debug)]
struct Entry {
    /// As it began, and as answers look.
    tuples: [Tuple; 2],
    mark: u32,
    labels: u128,
    packets: [u64; 2],
    bytes: [u64; 2],
    /// Packets and bytes are counted.
    counts: bool,
    answered: bool,
    confirmed: bool,
    /// Is it settled what the world sees of each end?
    settled: [bool; 2],
    tcp: Tcp,
    /// What the last reset acknowledged.
    reset_ack: u32,
    began: Time,
    expires: Time,
    used: bool,
}

impl Entry {
    fn count(&mut self, reply: bool, len: u64) {
        if self.counts {
            self.packets[usize::from(reply)] += 1;
            self.bytes[usize::from(reply)] += len;
        }
    }
}

/// What rules ask of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// New connections are counted: some rule asks for bytes or packets.
    accounting: bool,
    /// Some rule asks for connections at all.
    active: bool,
}

/// The table of connections.
#[derive(Debug, Default)]
pub struct Conntrack {
    entries: Vec<Entry>,
    free: Vec<u32>,
    index: BTreeMap<Tuple, u32>,
    asked: Asked,
    /// Connections that an action began, with that time: whoever carries such a packet may lose it unseen.
    begun: VecDeque<(u32, Time)>,
    /// When the packet came in that is on its way through the hooks.
    now: Time,
    /// All connections are in one zone, whatever zone is asked for.
    no_zones: bool,
}

/// A connection of a packet: number and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    at: u32,
    /// It goes against the direction the connection began in.
    pub reply: bool,
}

impl Conntrack {
    /// Zones are ignored, as by a kernel that was built without them.
    pub fn without_zones(&mut self) {
        self.no_zones = true;
    }

    /// Begins to look at packets: a rule wants to know. With `accounting`, connections that begin from now on are counted.
    pub fn activate(&mut self, accounting: bool) {
        self.asked.active = true;
        self.asked.accounting |= accounting;
    }

    /// What rules asked for so far.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// Looks at packets as far as this asks.
    pub fn set_asked(&mut self, asked: Asked) {
        self.asked = asked;
    }

    /// How many connections are kept.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Forgets all connections: the packets of each begin a new one.
    pub fn forget_all(&mut self) {
        self.entries.clear();
        self.free.clear();
        self.index.clear();
        self.begun.clear();
    }

    /// Is none known?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Finds or begins the connection of a packet that enters the machine. False: the table is full, the packet is lost.
    pub fn enter(&mut self, now: Time, pool: &mut Pool, pkt: &Pkt) -> bool {
        // Untracked by a rule of the raw table.
        let untracked = pool.meta(pkt).connection == pack(State::Untracked, None);
        if !self.asked.active || untracked || act::is_settled(pool.meta(pkt)) {
            return true;
        }
        self.look_up(now, pool, pkt)
    }

    /// Finds or begins the connection of a packet. False: the table is full, the packet is lost.
    fn look_up(&mut self, now: Time, pool: &mut Pool, pkt: &Pkt) -> bool {
        self.look_up_in(0, now, pool, pkt)
    }

    /// The same in a zone.
    fn look_up_in(&mut self, zone: u16, now: Time, pool: &mut Pool, pkt: &Pkt) -> bool {
        self.now = now;
        let outer = Outer::of(pool, pkt);
        let wrong = pool.meta(pkt).rewritten() && !pool.settle(pkt).has_right_transport();
        let (state, membership, full) = match (self.related(zone, now, &outer, pool, pkt), tuple(&outer)) {
            _ if wrong => (State::Invalid, None, false),
            (Some((state, membership)), _) => (state, membership, false),
            (None, Some(tuple)) => self.track(now, Tuple { zone, ..tuple }, &outer, network_len(pool.meta(pkt))),
            (None, None) => (State::Invalid, None, false),
        };
        let meta = pool.meta_mut(pkt);
        meta.connection = meta.connection & act::BY_ACTION | pack(state, membership);
        !full
    }

    /// A packet has passed all hooks: its connection is kept.
    pub fn confirm(&mut self, pool: &Pool, pkt: &Pkt) {
        if let Some(membership) = membership(pool.meta(pkt)).filter(|_| self.asked.active) {
            self.keep(membership.at);
        }
    }

    fn keep(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        let tuples = entry.tuples;
        if core::mem::replace(&mut entry.confirmed, true) {
            return;
        }
        for tuple in tuples {
            // Whoever had this place has been given up: its time was over.
            if let Some(before) = self.index.get(&tuple).copied().filter(|before| *before != at) {
                self.forget(before);
            }
            self.index.insert(tuple, at);
        }
    }

    /// A packet was lost on its way through the hooks: a connection that was only about to begin is forgotten.
    pub fn abandon(&mut self, pool: &Pool, pkt: &Pkt) {
        if let Some(membership) = membership(pool.meta(pkt))
            && !self.entries[membership.at as usize].confirmed
        {
            self.forget(membership.at);
        }
    }

    /// The mark of a packet's connection; `None`: it has none.
    pub fn mark(&self, meta: &Meta) -> Option<u32> {
        Some(self.entries[membership(meta)?.at as usize].mark)
    }

    /// The mark of the connection that a packet belongs to or, where it has not passed the hooks, would be found in in
    /// this zone.
    pub(crate) fn known_mark(&mut self, now: Time, pool: &Pool, pkt: &Pkt, zone: u16) -> Option<u32> {
        let meta = pool.meta(pkt);
        if !matches!(meta.ethertype, ethertype::IPV4 | ethertype::IPV6) {
            return None;
        }
        let zone = if self.no_zones { 0 } else { zone };
        let found = match membership(meta) {
            Some(membership) => membership,
            None => self.lookup(now, &Tuple { zone, ..tuple(&Outer::of(pool, pkt))? })?,
        };
        Some(self.entries[found.at as usize].mark)
    }

    /// Sets the mark of the connection that a packet belongs to; of a packet without one nothing is done.
    pub fn set_mark(&mut self, meta: &Meta, mark: u32) {
        if let Some(membership) = membership(meta) {
            self.entries[membership.at as usize].mark = mark;
        }
    }

    /// Packets and bytes of a packet's connection, as it began and against that; `None`: they are not counted.
    pub fn counters(&self, meta: &Meta) -> Option<([u64; 2], [u64; 2])> {
        let entry = &self.entries[membership(meta)?.at as usize];
        entry.counts.then_some((entry.packets, entry.bytes))
    }

    fn track(&mut self, now: Time, tuple: Tuple, outer: &Outer, len: u64) -> (State, Option<Membership>, bool) {
        let found = self.lookup(now, &tuple);
        let Some(membership) = found else { return self.begin(now, tuple, outer, len) };
        let entry = &mut self.entries[membership.at as usize];
        let mut counts = true;
        let mut refused = false;
        if entry.tcp != Tcp::None {
            match step(entry, membership.reply, outer) {
                Step::Invalid => return (State::Invalid, None, false),
                Step::Reopen => {
                    self.forget(membership.at);
                    return self.begin(now, tuple, outer, len);
                }
                Step::Go(next) => {
                    if matches!(next, Tcp::Refused(_)) {
                        entry.reset_ack = outer.tcp_ack.unwrap_or(0);
                    }
                    refused = matches!(next, Tcp::Closed(_) | Tcp::Ended) && !entry.answered;
                    entry.tcp = next;
                }
                Step::Slip(next) => {
                    entry.tcp = next;
                    counts = false;
                }
                Step::Ignore => counts = false,
            }
        }
        if counts {
            entry.count(membership.reply, len);
            // The first answer does not lengthen the time yet.
            entry.expires = now + timeout(entry, now);
        }
        entry.answered |= membership.reply;
        let state = if entry.answered { State::Established } else { State::New };
        if refused {
            // The packet still reads its mark; the place is given out again only to a later packet.
            self.forget(membership.at);
        }
        (state, Some(membership), false)
    }

    fn lookup(&mut self, now: Time, tuple: &Tuple) -> Option<Membership> {
        let at = *self.index.get(tuple)?;
        let entry = &self.entries[at as usize];
        if entry.expires <= now {
            self.forget(at);
            return None;
        }
        Some(Membership { at, reply: entry.tuples[0] != *tuple })
    }

    fn begin(&mut self, now: Time, tuple: Tuple, outer: &Outer, len: u64) -> (State, Option<Membership>, bool) {
        let tcp = match (tuple.protocol, outer.tcp_flags) {
            (proto::TCP, Some(flags)) => match opening(flags) {
                Some(state) => state,
                None => return (State::Invalid, None, false),
            },
            (proto::TCP, None) => return (State::Invalid, None, false),
            (proto::ICMP | proto::ICMPV6, _) => match outer.icmp {
                Some((kind, _)) if QUERIES.iter().any(|(request, _)| kind == *request) => Tcp::None,
                // Neighbours and routers looking for one another, multicast listeners.
                Some((130..=136 | 143, _)) if tuple.v6 => return (State::Untracked, None, false),
                _ => return (State::Invalid, None, false),
            },
            _ => Tcp::None,
        };
        if self.len() >= MAX_CONNECTIONS {
            self.sweep(now);
            if self.len() >= MAX_CONNECTIONS {
                return (State::Invalid, None, true);
            }
        }
        let mut entry = Entry {
            tuples: [tuple, tuple.back()],
            mark: 0,
            labels: 0,
            packets: [0; 2],
            bytes: [0; 2],
            counts: self.asked.accounting,
            answered: false,
            confirmed: false,
            settled: [false; 2],
            tcp,
            reset_ack: 0,
            began: now,
            expires: now,
            used: true,
        };
        entry.count(false, len);
        entry.expires = now + timeout(&entry, now);
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        (State::New, Some(Membership { at, reply: false }), false)
    }

    fn forget(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        if !core::mem::replace(&mut entry.used, false) {
            return;
        }
        let (confirmed, tuples) = (entry.confirmed, entry.tuples);
        if confirmed {
            for tuple in tuples {
                self.index.remove(&tuple);
            }
        }
        self.free.push(at);
    }

    /// Forgets all whose time is over.
    fn sweep(&mut self, now: Time) {
        for at in 0..self.entries.len() as u32 {
            let entry = &self.entries[at as usize];
            if entry.used && entry.confirmed && entry.expires <= now {
                self.forget(at);
            }
        }
    }
}

/// What a packet's place in its connection looks like in [`Meta::connection`]: nothing, or number, direction and state.
fn pack(state: State, membership: Option<Membership>) -> u32 {
    let state = match state {
        State::New => 1,
        State::Established => 2,
        State::Related => 3,
        State::Invalid => 4,
        State::Untracked => 5,
    };
    let member = membership.map_or(0, |m| (m.at + 1) << 4 | u32::from(m.reply) << 3);
    member | state
}

/// The connection of a packet.
fn membership(meta: &Meta) -> Option<Membership> {
    let at = ((meta.connection & !act::BY_ACTION) >> 4).checked_sub(1)?;
    Some(Membership { at, reply: meta.connection & 8 != 0 })
}

/// A packet comes to the hooks: what is known of it from before is forgotten, unless an action looked it up.
pub fn begin_hooks(meta: &mut Meta) {
    if meta.connection & act::BY_ACTION == 0 {
        meta.connection = 0;
    }
}

/// A packet that nobody shall look up: it has no connection, and is untracked to those who ask.
pub fn untrack(meta: &mut Meta) {
    meta.connection = pack(State::Untracked, None);
}

/// The number of a packet's connection.
pub(crate) fn number(meta: &Meta) -> Option<u32> {
    membership(meta).map(|m| m.at)
}

/// What a packet is to its connection.
pub fn state(meta: &Meta) -> State {
    match meta.connection & 7 {
        1 => State::New,
        2 => State::Established,
        3 => State::Related,
        5 => State::Untracked,
        // Before the lookup too: a rule of the table raw that asks finds none.
        _ => State::Invalid,
    }
}

/// Bytes of a network packet.
pub(crate) fn network_len(meta: &Meta) -> u64 {
    u64::from(meta.frame_len).saturating_sub(tidegate_packet::Head::ETHERNET as u64)
}

/// How a packet is looked up; `None`: it cannot be.
fn tuple(outer: &Outer) -> Option<Tuple> {
    let ports = match outer.protocol {
        proto::ICMP | proto::ICMPV6 => {
            let (kind, code) = outer.icmp.unwrap_or_default();
            Some((outer.icmp_ident.unwrap_or(0), u16::from_be_bytes([kind, code])))
        }
        proto::TCP | proto::UDP | 33 | 132 | 136 => outer.ports,
        _ => Some((0, 0)),
    };
    let (sport, dport) = ports?;
    let Outer { v6, protocol, source, destination, .. } = *outer;
    Some(Tuple { source, destination, v6, protocol, sport, dport, zone: 0 })
}

/// How long a connection is remembered without a packet: Linux's defaults.
fn timeout(entry: &Entry, now: Time) -> Span {
    let seconds = match (entry.tuples[0].protocol, entry.tcp) {
        (proto::TCP, Tcp::SynSent | Tcp::SynBoth) => 120,
        (proto::TCP, Tcp::SynReceived) => 60,
        (proto::TCP, Tcp::Established) if !entry.answered => 300,
        (proto::TCP, Tcp::Established) => 432_000,
        (proto::TCP, Tcp::FinWait | Tcp::TimeWait) => 120,
        (proto::TCP, Tcp::CloseWait) => 60,
        (proto::TCP, Tcp::LastAck) => 30,
        (proto::TCP, _) => 10,
        (proto::UDP, _) if entry.answered && now.since(entry.began) > Span::secs(2) => 120,
        (proto::UDP, _) | (proto::ICMP | proto::ICMPV6, _) => 30,
        _ => 600,
    };
    Span::secs(seconds)
}

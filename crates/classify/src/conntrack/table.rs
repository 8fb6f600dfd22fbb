//! The table of connections: packets are looked up, connections begun, kept and forgotten.

use super::entry::{Entry, Tcp, timeout};
use super::membership::{BY_ACTION, Membership, is_settled, membership, network_len, pack};
use super::tcp::{Step, opening, step};
use super::tuple::{QUERIES, Tuple, tuple};
use crate::headers::Outer;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Meta, Pkt, Pool, Time};
use tidegate_policy::netfilter::Connstate as State;

/// Connections kept at most; beyond, packets of new ones are dropped, as Linux does.
pub const MAX_CONNECTIONS: usize = 262_144;

/// What rules ask of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConntrackUse {
    /// New connections are counted: some rule requests bytes or packets.
    accounting: bool,
    /// Some rule requests connections at all.
    active: bool,
}

impl ConntrackUse {
    /// Whether packets are looked up.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.active
    }
}

/// The table of connections.
#[derive(Debug, Default)]
pub struct Conntrack {
    pub(super) entries: Vec<Entry>,
    pub(super) free: Vec<u32>,
    pub(super) index: BTreeMap<Tuple, u32>,
    pub(super) requested: ConntrackUse,
    /// Connections that an action began, with that time: their first packet may be dropped unseen.
    pub(super) begun: VecDeque<(u32, Time)>,
    /// When the packet came in that is on its way through the hooks.
    pub(super) now: Time,
    /// All connections are in one zone, whatever zone is requested.
    pub(super) no_zones: bool,
}

impl Conntrack {
    /// Zones are ignored, as by a kernel that was built without them.
    pub fn without_zones(&mut self) {
        self.no_zones = true;
    }

    /// Begins to look at packets: a rule wants to know. With `accounting`, connections that begin from now on
    /// are counted.
    pub fn activate(&mut self, accounting: bool) {
        self.requested.active = true;
        self.requested.accounting |= accounting;
    }

    /// What rules requested so far.
    pub fn requested(&self) -> ConntrackUse {
        self.requested
    }

    /// Looks packets up as far as `requested` needs it.
    pub fn set_use(&mut self, requested: ConntrackUse) {
        self.requested = requested;
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

    /// Finds or begins the connection of a packet that enters the machine. False: the table is full, the
    /// packet is dropped.
    pub fn enter(&mut self, now: Time, pool: &mut Pool, pkt: &Pkt) -> bool {
        // Untracked by a rule of the raw table.
        let untracked = pool.meta(pkt).connection == pack(State::Untracked, None);
        if !self.requested.active || untracked || is_settled(pool.meta(pkt)) {
            return true;
        }
        self.look_up(now, pool, pkt)
    }

    /// Finds or begins the connection of a packet. False: the table is full, the packet is dropped.
    fn look_up(&mut self, now: Time, pool: &mut Pool, pkt: &Pkt) -> bool {
        self.look_up_in(0, now, pool, pkt)
    }

    /// Looks a packet up in a zone.
    pub(super) fn look_up_in(&mut self, zone: u16, now: Time, pool: &mut Pool, pkt: &Pkt) -> bool {
        self.now = now;
        let outer = Outer::of(pool, pkt);
        let wrong = pool.meta(pkt).rewritten() && !pool.settle(pkt).has_right_transport();
        let (state, membership, full) = match (self.related(zone, now, &outer, pool, pkt), tuple(&outer)) {
            _ if wrong => (State::Invalid, None, false),
            (Some((state, membership)), _) => (state, membership, false),
            (None, Some(tuple)) => {
                self.track(now, Tuple { zone, ..tuple }, &outer, network_len(pool.meta(pkt)))
            }
            (None, None) => (State::Invalid, None, false),
        };
        let meta = pool.meta_mut(pkt);
        meta.connection = meta.connection & BY_ACTION | pack(state, membership);
        !full
    }

    /// A packet has passed all hooks: its connection is kept.
    pub fn confirm(&mut self, pool: &Pool, pkt: &Pkt) {
        if let Some(membership) = membership(pool.meta(pkt)).filter(|_| self.requested.active) {
            self.keep(membership.at);
        }
    }

    pub(super) fn keep(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        let tuples = entry.tuples;
        if core::mem::replace(&mut entry.confirmed, true) {
            return;
        }
        for tuple in tuples {
            // The entry that had this place has expired.
            if let Some(before) = self.index.get(&tuple).copied().filter(|before| *before != at) {
                self.forget(before);
            }
            self.index.insert(tuple, at);
        }
    }

    /// A packet was dropped on its way through the hooks: a connection that was only about to begin is
    /// forgotten.
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

    /// The mark of the connection that a packet belongs to or, where it has not passed the hooks, would be
    /// found in in this zone.
    pub fn known_mark(&mut self, now: Time, pool: &Pool, pkt: &Pkt, zone: u16) -> Option<u32> {
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

    /// Packets and bytes of a packet's connection, as it began and against that; `None`: they are not
    /// counted.
    pub fn counters(&self, meta: &Meta) -> Option<([u64; 2], [u64; 2])> {
        let entry = &self.entries[membership(meta)?.at as usize];
        entry.counts.then_some((entry.packets, entry.bytes))
    }

    fn track(
        &mut self,
        now: Time,
        tuple: Tuple,
        outer: &Outer,
        len: u64,
    ) -> (State, Option<Membership>, bool) {
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

    pub(super) fn lookup(&mut self, now: Time, tuple: &Tuple) -> Option<Membership> {
        let at = *self.index.get(tuple)?;
        let entry = &self.entries[at as usize];
        if entry.expires <= now {
            self.forget(at);
            return None;
        }
        Some(Membership { at, reply: entry.tuples[0] != *tuple })
    }

    fn begin(
        &mut self,
        now: Time,
        tuple: Tuple,
        outer: &Outer,
        len: u64,
    ) -> (State, Option<Membership>, bool) {
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
            counts: self.requested.accounting,
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

    pub(super) fn forget(&mut self, at: u32) {
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

//! choke: random early detection that keeps flows from taking more than their part, without state per flow
//! (Pan, Prabhakar and Psounis, INFOCOM 2000).
//!
//! While the average queue is above `min` an arrival is compared with a packet drawn from the queue; are they
//! of one flow, both are dropped. The more of the queue a flow holds, the more of it is met. Packets are in a
//! ring, where one dropped in the middle leaves a gap until those before it are gone. Lengths are packets.
//! The law is in [`crate::algo::red`].

use super::red::Flags;
use crate::algo::red::{Params, State};
use crate::batch::BuiltIn;
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState};
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Addrs, FlowKeys, Pkt, Pool, Time};
use tidegate_policy::dump::{QueueStats, RedStats, Xstats};
use tidegate_policy::{Errno, QdiscParams, RedParams, TcError};

const MAX_LIMIT: u32 = 131_071;
/// How often a packet is drawn before the oldest is taken: gaps are no packets.
const TRIES: u32 = 3;

pub(crate) struct Choke {
    limit: u32,
    params: Params,
    flags: Flags,
    state: State,
    stats: RedStats,
    overlimits: u32,
    /// A power of two of places.
    ring: Vec<Option<Pkt>>,
    head: u32,
    tail: u32,
}

/// The bytes of flow keys that are compared: network protocol, transport protocol, ports, and eight bytes
/// of addresses.
type Digest = [u8; 16];

fn digest(keys: &FlowKeys) -> Digest {
    let mut bytes = [0; 16];
    bytes[0..2].copy_from_slice(&keys.ethertype.to_be_bytes());
    bytes[2] = keys.protocol;
    bytes[4..6].copy_from_slice(&keys.ports.0.to_be_bytes());
    bytes[6..8].copy_from_slice(&keys.ports.1.to_be_bytes());
    match &keys.addrs {
        Addrs::V4(src, dst) => {
            bytes[8..12].copy_from_slice(src);
            bytes[12..16].copy_from_slice(dst);
        }
        // Linux compares the bytes at the offsets of IPv4's addresses: half of an IPv6 source, nothing of its
        // destination.
        Addrs::V6(src, _) => bytes[8..16].copy_from_slice(&src[..8]),
        Addrs::None => {}
    }
    bytes
}

/// The digest of a packet; the kernel keeps it in the packet.
fn digested(pool: &mut Pool, pkt: &Pkt) -> Digest {
    let digest = digest(pool.keys(pkt));
    let word = |at: usize| u32::from_le_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
    pool.meta_mut(pkt).scratch.set(word(0) << 8 | 1, word(3));
    digest
}

fn same_flow(pool: &mut Pool, one: &Pkt, two: &Pkt) -> bool {
    pool.meta(one).ethertype == pool.meta(two).ethertype && digested(pool, one) == digested(pool, two)
}

fn check(params: &RedParams) -> Result<(Params, Flags), TcError> {
    let law = Params::new(params.curve, params.idle.clone());
    let law = law.filter(|_| params.limit <= MAX_LIMIT).ok_or(TcError::bare(Errno::Inval))?;
    Ok((law, Flags::of(params)))
}

fn ring(limit: u32) -> Vec<Option<Pkt>> {
    let mut ring = Vec::new();
    ring.resize_with((limit + 1).next_power_of_two() as usize, || None);
    ring
}

impl Choke {
    pub(crate) fn new(params: Option<&RedParams>) -> Result<Choke, TcError> {
        let params = params.ok_or(TcError::bare(Errno::Inval))?;
        let (law, flags) = check(params)?;
        Ok(Choke {
            limit: params.limit,
            params: law,
            flags,
            state: State::default(),
            stats: RedStats { matched: Some(0), ..RedStats::default() },
            overlimits: 0,
            ring: ring(params.limit),
            head: 0,
            tail: 0,
        })
    }

    fn mask(&self) -> u32 {
        self.ring.len() as u32 - 1
    }

    fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// A place of the ring with a packet, drawn.
    fn drawn(&self, cx: &mut Context<'_>) -> u32 {
        let places = self.tail.wrapping_sub(self.head) & self.mask();
        for _ in 0..TRIES {
            let place = (self.head + cx.random.source.below(places)) & self.mask();
            if self.ring[place as usize].is_some() {
                return place;
            }
        }
        self.head
    }

    /// Draws a waiting packet; returns its position if it is of the arrival's flow.
    fn matched(&self, cx: &mut Context<'_>, pkt: &Pkt) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let place = self.drawn(cx);
        let other = self.ring[place as usize].as_ref()?;
        same_flow(cx.pool, other, pkt).then_some(place)
    }

    fn take(&mut self, place: u32) -> Option<Pkt> {
        let pkt = self.ring[place as usize].take();
        if place == self.head {
            self.skip_gaps();
        }
        pkt
    }

    /// Goes over the oldest place and the gaps after it.
    fn skip_gaps(&mut self) {
        loop {
            self.head = (self.head + 1) & self.mask();
            if self.is_empty() || self.ring[self.head as usize].is_some() {
                return;
            }
        }
    }

    /// Marks a packet if it can be marked; returns whether it must be dropped instead.
    fn must_drop(&mut self, cx: &mut Context<'_>, pkt: &Pkt, hard: bool) -> bool {
        self.overlimits = self.overlimits.wrapping_add(1);
        let may_mark = self.flags.ecn && !(hard && self.flags.harddrop);
        let marked = may_mark && cx.pool.meta_mut(pkt).set_ce();
        if marked {
            self.stats.marked += 1;
        } else {
            self.stats.early += 1;
        }
        !marked
    }

    /// Judges an arrival by the average; true when it is to be dropped.
    fn decide(&mut self, cx: &mut Context<'_>, own: QdiscState, pkt: &Pkt) -> bool {
        if self.state.is_low(&self.params) {
            self.state.pass();
            return false;
        }
        if let Some(place) = self.matched(cx, pkt) {
            *self.stats.matched.get_or_insert(0) += 1;
            if let Some(other) = self.take(place) {
                cx.drop(own.handle, other, DropReason::Early);
            }
            return true;
        }
        if self.state.is_high(&self.params) {
            self.state.pass();
            return self.must_drop(cx, pkt, true);
        }
        self.state.is_selected(&self.params, cx.random.source) && self.must_drop(cx, pkt, false)
    }

    /// All packets, oldest first.
    fn drain(&mut self) -> Vec<Pkt> {
        let mut all = Vec::new();
        while !self.is_empty() {
            all.extend(self.ring[self.head as usize].take());
            self.head = (self.head + 1) & self.mask();
        }
        (self.head, self.tail) = (0, 0);
        all
    }

    /// Moves the backlog to a ring of another size, and drops what does not fit.
    fn move_to(&mut self, cx: &mut Context<'_>, own: QdiscState, limit: u32) {
        let fresh = ring(limit);
        if fresh.len() == self.ring.len() {
            return;
        }
        let waiting = self.drain();
        self.ring = fresh;
        for pkt in waiting {
            if self.tail < self.mask() {
                self.ring[self.tail as usize] = Some(pkt);
                self.tail += 1;
            } else {
                cx.next_purge_group();
                cx.purge(own.handle, pkt);
            }
        }
    }
}

impl Discipline for Choke {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let scratch = &mut cx.pool.meta_mut(&pkt).scratch;
        scratch.0 &= !0xff;
        self.state.arrival(&self.params, own.qlen, cx.now);
        if self.decide(cx, own, &pkt) {
            cx.drop(own.handle, pkt, DropReason::Early);
            return Enqueue::Congested;
        }
        if own.qlen >= self.limit {
            self.stats.pdrop += 1;
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        // With enough gaps the ring wraps before the limit is reached. Linux overwrites what it finds there:
        // that packet is neither sent nor counted as dropped, and stays in the backlog for good.
        if let Some(forgotten) = self.ring[self.tail as usize].replace(pkt) {
            cx.pool.release(forgotten);
        }
        self.tail = (self.tail + 1) & self.mask();
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        if self.is_empty() {
            self.state.idle(cx.now);
            return Dequeue::Empty;
        }
        self.take(self.head).map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Choke(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        let (law, flags) = check(params)?;
        self.move_to(cx, own, params.limit);
        (self.params, self.flags, self.limit) = (law, flags, params.limit);
        self.state.forget(self.is_empty());
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        for pkt in self.drain() {
            cx.next_purge_group();
            cx.purge(own.handle, pkt);
        }
        self.state.restart();
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Choke(self.flags.params(self.limit, self.params.curve()))
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        Xstats::Red(self.stats.clone())
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.overlimits;
    }
}

impl BuiltIn for Choke {
    fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        if self.is_empty() {
            return Some(Peek::Empty);
        }
        let first = self.ring[self.head as usize].as_ref();
        Some(first.map_or(Peek::Empty, |pkt| Peek::Packet(cx.pool.meta(pkt).len)))
    }

    fn peek_slot(&self) -> Option<usize> {
        if self.is_empty() { None } else { self.ring[self.head as usize].as_ref().map(Pkt::slot) }
    }
}

/// A tree may end with packets in it, their pool with them: their tickets are then no drops.
impl Drop for Choke {
    fn drop(&mut self) {
        for pkt in &mut self.ring {
            core::mem::forget(pkt.take());
        }
    }
}

//! sfb: stochastic fair blue (Feng, Kandlur, Saha and Shin, INFOCOM 2001).
//!
//! A flow is hashed into one bin on each of eight levels. A bin that fills raises its probability of marking,
//! one found empty lowers it; a packet is marked with the lowest probability of its bins, so a flow that
//! responds is safe as long as one of its bins is not shared with one that does not. A flow with probability
//! 1 in all bins is limited to a rate. The hash key changes after `rehash`; shortly before, the next key's
//! bins learn about those flows too. The queue itself is a child.

use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::classify::{ClassifyResult, Consumed, classify};
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Visit};
use crate::kind::classful;
use crate::node::QdiscNode;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, HashKey, Jiffies, Pkt, Time, siphash};
use tidegate_policy::dump::{ClassDump, QueueStats, SfbStats, Xstats};
use tidegate_policy::{ClassOp, Errno, QdiscParams, SfbParams, TcError, Verb};

const LEVELS: usize = 8;
const BINS: usize = 16;
const CERTAIN: u32 = 0xffff;
/// The longest time that brings penalty tokens, seconds.
const PENALTY_SECONDS: i64 = 10;

#[derive(Clone, Copy, Default)]
struct Bin {
    qlen: u16,
    probability: u16,
}

/// The bins under one hash key.
#[derive(Default)]
struct Bank {
    key: HashKey,
    bins: [[Bin; BINS]; LEVELS],
}

/// What the bins of a flow come to.
struct Least {
    qlen: u32,
    probability: u32,
}

pub(crate) struct Sfb {
    params: SfbParams,
    jiffies: Jiffies,
    /// Jiffies between changes of the key, and of warming up before them.
    rehash: i64,
    warmup: i64,
    /// When the key last changed, jiffies.
    rehashed: i64,
    warming: bool,
    banks: Box<[Bank; 2]>,
    bank: usize,
    tokens: u32,
    tokens_since: i64,
    stats: SfbStats,
    overlimits: u32,
    child: QdiscNode,
    handle: Handle,
}

/// The kernel's parameters when none are given (tc always gives some).
fn default_params() -> SfbParams {
    SfbParams {
        rehash_ms: 600_000,
        warmup_ms: 60_000,
        limit: 0,
        max: 25,
        target: 20,
        increment: 66,
        decrement: 11,
        penalty_rate: 10,
        penalty_burst: 20,
    }
}

impl Bank {
    /// The places of a hash: a bin per level.
    fn places(hash: u32) -> impl Iterator<Item = (usize, usize)> {
        (0..LEVELS).map(move |level| (level, (hash >> (4 * level)) as usize & (BINS - 1)))
    }

    /// Lets the bins of a hash learn from an arrival.
    fn learn(&mut self, hash: u32, params: &SfbParams) -> Least {
        let mut least = Least { qlen: CERTAIN, probability: CERTAIN };
        for (level, place) in Bank::places(hash) {
            let bin = &mut self.bins[level][place];
            let probability = u32::from(bin.probability);
            if bin.qlen == 0 {
                bin.probability = probability.saturating_sub(params.decrement) as u16;
            } else if u32::from(bin.qlen) >= params.target {
                bin.probability = probability.saturating_add(params.increment).min(CERTAIN) as u16;
            }
            least.qlen = least.qlen.min(u32::from(bin.qlen));
            least.probability = least.probability.min(u32::from(bin.probability));
        }
        least
    }

    /// A packet of this hash came, or left.
    fn count(&mut self, hash: u32, came: bool) {
        if hash == 0 {
            return;
        }
        for (level, place) in Bank::places(hash) {
            let qlen = &mut self.bins[level][place].qlen;
            *qlen = if came { qlen.saturating_add(1) } else { qlen.saturating_sub(1) };
        }
    }
}

impl Sfb {
    pub(crate) fn new(cx: &mut Context<'_>, handle: Handle, params: Option<&SfbParams>) -> Sfb {
        let mut sfb = Sfb {
            params: SfbParams::default(),
            jiffies: cx.device.jiffies,
            rehash: 0,
            warmup: 0,
            rehashed: 0,
            warming: false,
            banks: Box::default(),
            bank: 0,
            tokens: 0,
            tokens_since: 0,
            stats: SfbStats::default(),
            overlimits: 0,
            child: QdiscNode::noop(cx, handle.class(1)),
            handle,
        };
        sfb.set(cx, params);
        sfb
    }

    /// Takes parameters over: everything learnt is forgotten, and the backlog is dropped with the queue.
    fn set(&mut self, cx: &mut Context<'_>, params: Option<&SfbParams>) {
        self.params = params.cloned().unwrap_or_else(default_params);
        if self.params.limit == 0 {
            self.params.limit = cx.device.tx_queue_len;
        }
        let queue = QdiscNode::hidden_pfifo(cx, self.params.limit, self.handle.class(1));
        let mut old = core::mem::replace(&mut self.child, queue);
        old.purge(cx);
        self.jiffies = cx.device.jiffies;
        self.rehash = self.jiffies.of_millis(self.params.rehash_ms).into();
        self.warmup = self.jiffies.of_millis(self.params.warmup_ms).into();
        let present = self.jiffies.at(cx.now);
        (self.rehashed, self.tokens_since) = (present, present);
        self.tokens = self.params.penalty_burst;
        self.forget();
        for bank in self.banks.iter_mut() {
            bank.key = cx.random.source.key();
        }
        old.end(cx);
    }

    fn forget(&mut self) {
        (self.bank, self.warming) = (0, false);
        for bank in self.banks.iter_mut() {
            bank.bins = Default::default();
        }
    }

    /// Changes banks when it is time, the old one getting a new key.
    fn keep_turning(&mut self, cx: &mut Context<'_>) {
        if self.rehash == 0 {
            return;
        }
        let (present, due) = (self.jiffies.at(cx.now), self.rehashed + self.rehash);
        if present > due {
            self.banks[self.bank].key = cx.random.source.key();
            self.bank ^= 1;
            (self.warming, self.rehashed) = (false, present);
        } else if !self.warming && self.warmup > 0 && present > due - self.warmup {
            self.warming = true;
        }
    }

    /// The hash of a packet under a bank's key, never 0; `None` when a filter sends it nowhere.
    fn choose(
        &self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: &Pkt,
        bank: usize,
    ) -> Result<Option<u32>, Consumed> {
        let key = self.banks[bank].key;
        if filters.is_empty() {
            return Ok(Some(cx.pool.keyed_hash(pkt, key).max(1)));
        }
        match classify(filters, cx, own.handle, pkt) {
            ClassifyResult::Nothing => Ok(None),
            ClassifyResult::Class(class) => {
                Ok(Some((siphash(&u32::from(class.minor()).to_le_bytes(), key) as u32).max(1)))
            }
            ClassifyResult::Consumed(gone) => Err(gone),
        }
    }

    /// May a flow that does not respond send one more?
    fn takes_penalty_token(&mut self, now: Time) -> bool {
        let (rate, burst) = (self.params.penalty_rate, self.params.penalty_burst);
        if rate == 0 || burst == 0 {
            return false;
        }
        if self.tokens == 0 {
            let hz = i64::from(self.jiffies.hz);
            let present = self.jiffies.at(now);
            let age = (present - self.tokens_since).min(PENALTY_SECONDS * hz);
            self.tokens = ((age * i64::from(rate) / hz) as u32).min(burst);
            self.tokens_since = present;
            if self.tokens == 0 {
                return false;
            }
        }
        self.tokens -= 1;
        true
    }

    /// Decides about a packet with that hash; `Some` has its hashes under both keys, as far as the bins are
    /// to count it.
    fn admits(&mut self, cx: &mut Context<'_>, pkt: &Pkt, hash: u32, bank: usize) -> Option<[u32; 2]> {
        let mut hashes = [0; 2];
        hashes[bank] = hash;
        let least = self.banks[bank].learn(hash, &self.params);
        if least.qlen >= self.params.max {
            self.overlimits = self.overlimits.wrapping_add(1);
            self.stats.bucketdrop += 1;
            return None;
        }
        if least.probability >= CERTAIN {
            let other = bank ^ 1;
            if self.warming {
                hashes[other] = cx.pool.keyed_hash(pkt, self.banks[other].key).max(1);
                self.banks[other].learn(hashes[other], &self.params);
            }
            if !self.takes_penalty_token(cx.now) {
                self.overlimits = self.overlimits.wrapping_add(1);
                self.stats.penaltydrop += 1;
                return None;
            }
            return Some(hashes);
        }
        self.spares(cx, pkt, least.probability).then_some(hashes)
    }

    /// Draws: marks, drops, or lets pass. Above a half the flow is dropped rather than marked, the more the
    /// higher.
    fn spares(&mut self, cx: &mut Context<'_>, pkt: &Pkt, probability: u32) -> bool {
        let drawn = u32::from(cx.random.source.u16());
        if drawn >= probability {
            return true;
        }
        let half = CERTAIN / 2;
        let too_much = probability > half && drawn < (probability - half) * 2;
        if !too_much && cx.pool.meta_mut(pkt).set_ce() {
            self.stats.marked += 1;
            return true;
        }
        self.stats.earlydrop += 1;
        false
    }
}

impl Discipline for Sfb {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        if own.qlen >= self.params.limit {
            self.overlimits = self.overlimits.wrapping_add(1);
            self.stats.queuedrop += 1;
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Congested;
        }
        // The packet that finds it time for another bank still meets the old one, with its new key.
        let bank = self.bank;
        self.keep_turning(cx);
        let hash = match self.choose(cx, own, filters, &pkt, bank) {
            Ok(Some(hash)) => hash,
            Ok(None) => {
                cx.drop(own.handle, pkt, DropReason::Unclassified);
                return Enqueue::Dropped;
            }
            Err(gone) => return gone.carry_out(cx, own.handle, pkt),
        };
        let Some(hashes) = self.admits(cx, &pkt, hash, bank) else {
            cx.drop(own.handle, pkt, DropReason::Early);
            return Enqueue::Congested;
        };
        cx.pool.meta_mut(&pkt).scratch.set(hashes[0], hashes[1]);
        let result = self.child.enqueue(cx, pkt);
        match result {
            Enqueue::Queued => {
                for (bank, hash) in self.banks.iter_mut().zip(hashes) {
                    bank.count(hash, true);
                }
            }
            Enqueue::Taken => {}
            _ => self.stats.childdrop += 1,
        }
        result
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        let result = self.child.dequeue(cx);
        if let Dequeue::Packet(pkt) = &result {
            // What a qdisc below wrote over the hashes is taken for them: Linux does too.
            let scratch = cx.pool.meta(pkt).scratch;
            self.banks[0].count(scratch.first(), false);
            self.banks[1].count(scratch.second(), false);
        }
        result
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Sfb(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        self.set(cx, Some(params));
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, _own: QdiscState) {
        self.child.purge(cx);
        self.forget();
        // Linux forgets the keys with the bins, and draws one only: the other bank has none until its turn is
        // over.
        self.banks[0].key = cx.random.source.key();
        self.banks[1].key = HashKey::default();
    }

    fn params(&self) -> QdiscParams {
        let ms = |jiffies: i64| (jiffies * 1000 / i64::from(self.jiffies.hz)) as u32;
        QdiscParams::Sfb(SfbParams {
            rehash_ms: ms(self.rehash),
            warmup_ms: ms(self.warmup),
            ..self.params.clone()
        })
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        let bins = || self.banks[self.bank].bins.iter().flatten();
        let probabilities = || bins().map(|bin| u32::from(bin.probability));
        Xstats::Sfb(SfbStats {
            maxqlen: bins().map(|bin| u32::from(bin.qlen)).max().unwrap_or(0),
            maxprob: probabilities().max().unwrap_or(0),
            avgprob: probabilities().sum::<u32>() / (LEVELS * BINS) as u32,
            ..self.stats.clone()
        })
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.overlimits;
    }

    classful!();
}

impl Classful for Sfb {
    /// As in Linux, the listing ends before its class.
    fn classes(&mut self, _now: Time, _qdisc: Handle, _out: &mut Vec<ClassDump>) {}

    fn has_class(&self, _class: Handle) -> bool {
        // There is one class, and every name means it.
        true
    }

    fn class_op(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        _filters: &mut FilterList,
        op: &ClassOp,
    ) -> Result<Option<String>, TcError> {
        // Linux first dumps what it deletes, and SFB cannot be dumped.
        Err(TcError::bare(if op.verb == Verb::Delete { Errno::Inval } else { Errno::NoSys }))
    }

    fn child(&mut self, _class: Handle) -> Option<&mut QdiscNode> {
        Some(&mut self.child)
    }

    fn default_child(&self, cx: &mut Context<'_>, class: Handle) -> QdiscNode {
        QdiscNode::noop(cx, class)
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.node(&mut self.child);
    }
}

impl BuiltIn for Sfb {
    fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        Some(self.child.peek(cx))
    }

    fn peek_slot(&self) -> Option<usize> {
        self.child.peek_slot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use tidegate_packet::Seeded;

    /// V-B1: with M flows that do not listen, another one has all its bins among theirs with (1 -
    /// (15/16)^M)^8 (Feng et al. 2001).
    #[test]
    fn v_b1_flows_seldom_share_all_bins() {
        extern crate std;
        let mut random = Seeded::new(1);
        let key = HashKey(random.next(), random.next());
        let mut next = 0u32;
        let mut hash = || {
            next += 1;
            siphash(&next.to_le_bytes(), key) as u32
        };
        for (flows, expected) in [(10, 0.0026), (20, 0.0763), (30, 0.2876)] {
            let mut unlucky = 0;
            for _ in 0..4000 {
                let bad: BTreeSet<(usize, usize)> =
                    (0..flows).flat_map(|_| Bank::places(hash()).collect::<Vec<_>>()).collect();
                unlucky +=
                    (0..200).filter(|_| Bank::places(hash()).all(|place| bad.contains(&place))).count();
            }
            let part = unlucky as f64 / 800_000.0;
            let within = (part / expected - 1.0).abs() <= 0.05;
            std::println!(
                "validation: Queueing theory and hashing | V-B1-{flows} | SFB: an innocent flow has only \
                bins of {flows} that do not listen | {expected} | {part:.4} | {} | Feng et al. 2001",
                if within { "within" } else { "outside" }
            );
            assert!(within, "{flows} flows: {part} for {expected}");
        }
    }
}

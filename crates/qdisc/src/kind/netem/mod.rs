//! netem: the delays and faults of a network (Hemminger 2005; loss by chains: Salsano, Ludovici and others
//! 2009).
//!
//! A packet may get a second copy, be dropped, get a wrong bit; then it gets a time at which it may leave,
//! and is queued in the order of these times. With a rate it may leave only when those before it have been
//! sent. A packet that is reordered leaves at once. A child qdisc gets packets when their time has come.
//!
//! A second copy begins again at the root of the tree. That happens before the original has its time, so the
//! original is set aside meanwhile: see [`Context::copy`].

mod loss;
mod waiting;

use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Visit};
use crate::kind::classful;
use crate::kind::only_class;
use crate::node::QdiscNode;
use alloc::boxed::Box;
use alloc::vec::Vec;
use loss::LossGenerator;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Lfsr113, LinuxChange, Pkt, RandomSource, Time};
use tidegate_policy::dump::{ClassDump, NetemStats, QueueStats, Xstats};
use tidegate_policy::{
    Errno, Kind, NetemCorrelations, NetemDistribution, NetemParams, NetemProbability, NetemRate, NetemSlot,
    QdiscParams, TcError,
};
use waiting::Waiting;

/// What the values of a distribution are multiples of: a standard deviation.
const DEVIATION: i64 = 8192;

pub(crate) struct Netem {
    params: NetemParams,
    delay: Correlated,
    copies: Correlated,
    reorders: Correlated,
    errors: Correlated,
    loss: LossGenerator,
    /// Packets since the last that was reordered.
    counter: u32,
    /// Packets that were reordered.
    reordered: u32,
    /// Packets that were marked instead of dropped: they count as drops.
    marked: u32,
    /// Packets that filters below took away as they came to the child: not drops of this one.
    taken_below: u32,
    /// What Linux 7.2 counts.
    counts: NetemStats,
    slot: Slot,
    waiting: Waiting,
    /// Where its chances come from, if not from the kernel's generator.
    own: Option<Lfsr113>,
    /// A packet whose copy is on its way.
    aside: Option<Pkt>,
    is_root: bool,
    child: QdiscNode,
}

/// Draws of which each is like the one before to a degree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Correlated {
    degree: NetemProbability,
    last: u32,
}

impl Correlated {
    fn begin(random: &mut dyn RandomSource, degree: NetemProbability) -> Correlated {
        Correlated { degree, last: random.u32() }
    }

    fn draw(&mut self, chance: &mut Chance<'_>) -> u32 {
        let value = chance.u32();
        if self.degree == 0 {
            return value;
        }
        let old = u64::from(self.degree) + 1;
        self.last =
            ((u64::from(value) * ((1 << 32) - old)).wrapping_add(u64::from(self.last) * old) >> 32) as u32;
        self.last
    }

    /// Does what has this probability happen?
    fn happens(&mut self, chance: &mut Chance<'_>, probability: NetemProbability) -> bool {
        probability > 0 && probability >= self.draw(chance)
    }
}

/// Where the draws come from that decide about packets.
pub(crate) enum Chance<'a> {
    Kernel(&'a mut dyn RandomSource),
    Own(&'a mut Lfsr113),
}

impl<'a> Chance<'a> {
    fn of(own: &'a mut Option<Lfsr113>, kernel: &'a mut dyn RandomSource) -> Chance<'a> {
        match own {
            Some(own) => Chance::Own(own),
            None => Chance::Kernel(kernel),
        }
    }

    pub(crate) fn u32(&mut self) -> u32 {
        match self {
            Chance::Kernel(source) => source.u32(),
            Chance::Own(own) => own.next_u32(),
        }
    }
}

/// The burst in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// When it began, or the next begins; 0: there are none.
    next: u64,
    packets_left: i32,
    bytes_left: i32,
}

/// A time around `mean`, within `deviation`, in ns.
fn around(mean: i64, deviation: i64, draw: u32, table: Option<&NetemDistribution>) -> i64 {
    let Some(NetemDistribution(table)) = table else {
        let width = 2 * u64::from(deviation as u32);
        return (u64::from(draw).checked_rem(width).unwrap_or(0) as i64)
            .wrapping_add(mean)
            .wrapping_sub(deviation);
    };
    let at = i64::from(table[draw as usize % table.len()]);
    let part = (deviation % DEVIATION).wrapping_mul(at);
    let rounded = if part >= 0 { part + DEVIATION / 2 } else { part - DEVIATION / 2 };
    rounded / DEVIATION + (deviation / DEVIATION).wrapping_mul(at) + mean
}

/// How long a packet of `len` bytes takes at a rate, ns.
fn sending_time(rate: &NetemRate, len: u32) -> u64 {
    let mut len = (i64::from(len) + i64::from(rate.packet_overhead)) as u64;
    if rate.cell_size > 0 {
        // The kernel's whole numbers have 32 bits here.
        let cells = u64::from((len as u32).div_ceil(rate.cell_size));
        len = cells.wrapping_mul((i64::from(rate.cell_size) + i64::from(rate.cell_overhead)) as u64);
    }
    len.wrapping_mul(1_000_000_000).checked_div(rate.rate).unwrap_or(0)
}

impl Netem {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        parent: Handle,
        params: Option<&NetemParams>,
    ) -> Result<Netem, TcError> {
        let params = params.ok_or(TcError::bare(Errno::Inval))?;
        let mut netem = Netem {
            params: NetemParams::default(),
            delay: Correlated::default(),
            copies: Correlated::default(),
            reorders: Correlated::default(),
            errors: Correlated::default(),
            loss: LossGenerator::default(),
            counter: 0,
            reordered: 0,
            marked: 0,
            taken_below: 0,
            slot: Slot::default(),
            waiting: Waiting::default(),
            counts: NetemStats::default(),
            own: None,
            aside: None,
            is_root: parent == Handle::ROOT,
            child: QdiscNode::absent(),
        };
        if cx.device.switches.linux.has(LinuxChange::NetemGenerator) {
            netem.seed(cx.random.source.u64());
        }
        netem.set(cx, params);
        Ok(netem)
    }

    /// A change was refused because of its second copies: what Linux takes over before it looks at them stays
    /// taken.
    pub(crate) fn change_partly(&mut self, params: &NetemParams) {
        let NetemParams { limit, latency_ns, jitter_ns, gap, loss, .. } = *params;
        let jitter_ns = bounded(jitter_ns);
        self.params = NetemParams { limit, latency_ns, jitter_ns, gap, loss, ..self.params.clone() };
        if params.distribution.is_some() {
            self.params.distribution.clone_from(&params.distribution);
        }
        self.loss.set(loss);
        self.counter = 0;
    }

    /// Does it make second copies?
    pub(crate) fn copies(&self) -> bool {
        self.params.duplicate > 0
    }

    /// Begins the generator of its own.
    fn seed(&mut self, seed: u64) {
        self.own = Some(Lfsr113::new(seed));
        self.params.seed = Some(seed);
    }

    fn set(&mut self, cx: &mut Context<'_>, params: &NetemParams) {
        let before = core::mem::replace(&mut self.params, params.clone());
        self.params.seed = before.seed;
        if let Some(seed) = params.seed.filter(|_| self.own.is_some()) {
            self.seed(seed);
        }
        let random_source = &mut *cx.random.source;
        self.counter = 0;
        if let Some(NetemCorrelations { delay, loss, duplicate }) = params.correlations {
            self.delay = Correlated::begin(random_source, delay);
            self.loss.random = Correlated::begin(random_source, loss);
            self.copies = Correlated::begin(random_source, duplicate);
        }
        if let Some((_, degree)) = params.reorder {
            self.reorders = Correlated::begin(random_source, degree);
        }
        if let Some((_, degree)) = params.corrupt {
            self.errors = Correlated::begin(random_source, degree);
        }
        self.loss.set(params.loss);
        keep_unsaid(&mut self.params, before);
        self.params.jitter_ns = bounded(self.params.jitter_ns);
        if let Some(slot) = self.params.slot.as_mut().filter(|_| params.slot.is_some()) {
            slot.dist_jitter_ns = bounded(slot.dist_jitter_ns);
            let any = slot.min_delay_ns | slot.max_delay_ns | slot.dist_jitter_ns != 0;
            self.slot = Slot { next: if any { cx.now.0 } else { 0 }, ..full(slot) };
        }
    }

    /// The probability that a packet is reordered: a distance without one means always.
    fn reorder_probability(&self) -> NetemProbability {
        self.params
            .reorder
            .map_or(if self.params.gap > 0 { NetemProbability::MAX } else { 0 }, |(probability, _)| {
                probability
            })
    }

    /// A time after now at which the packet may leave.
    fn time_to_send(&mut self, cx: &mut Context<'_>, len: u32) -> u64 {
        let NetemParams { latency_ns, jitter_ns, .. } = self.params;
        let mut delay = latency_ns;
        if jitter_ns != 0 {
            let draw = self.delay.draw(&mut Chance::of(&mut self.own, cx.random.source));
            delay = around(latency_ns, jitter_ns, draw, self.params.distribution.as_ref());
        }
        let mut from = cx.now.0;
        if let Some(rate) = &self.params.rate {
            if let Some(last) = self.waiting.last() {
                delay = delay.wrapping_sub(last.wrapping_sub(from) as i64).max(0);
                from = last;
            }
            delay = delay.wrapping_add(sending_time(rate, len) as i64);
        }
        self.counts.delayed += u64::from(delay != 0);
        from.wrapping_add_signed(delay)
    }

    /// Gives the packet its place.
    fn take_in(&mut self, cx: &mut Context<'_>, pkt: Pkt) {
        let gap = self.params.gap;
        let probability = self.reorder_probability();
        let chance = &mut Chance::of(&mut self.own, cx.random.source);
        let in_order = gap == 0 || self.counter < gap - 1 || probability < self.reorders.draw(chance);
        if in_order {
            let at = self.time_to_send(cx, cx.pool.meta(&pkt).len);
            self.counter = self.counter.wrapping_add(1);
            // Nothing here reads that again, but an SFB above takes it for its own.
            cx.pool.meta_mut(&pkt).scratch.0 = at;
            self.waiting.insert(at, pkt);
        } else {
            self.counter = 0;
            self.counts.reordered += 1;
            self.reordered += 1;
            cx.pool.meta_mut(&pkt).scratch.0 = cx.now.0;
            self.waiting.put_first(cx.now.0, pkt);
        }
    }

    /// The copy is through: its original continues.
    pub(crate) fn resume(&mut self, cx: &mut Context<'_>) {
        if let Some(pkt) = self.aside.take() {
            self.take_in(cx, pkt);
        }
    }

    /// A wrong bit.
    fn corrupt(&mut self, cx: &mut Context<'_>, pkt: &Pkt) {
        let Some((probability, _)) = self.params.corrupt else { return };
        if self.errors.happens(&mut Chance::of(&mut self.own, cx.random.source), probability) {
            self.counts.corrupted += 1;
            let byte = cx.random.source.below(cx.pool.meta(pkt).frame_len);
            let bit = cx.random.source.below(8);
            cx.pool.corrupt(pkt, byte, bit);
        }
    }

    fn next_slot(&mut self, cx: &mut Context<'_>) {
        let Some(slot) = &self.params.slot else { return };
        let draw = match slot.distribution {
            None => cx.random.source.u32(),
            Some(_) => Chance::of(&mut self.own, cx.random.source).u32(),
        };
        let wait = match &slot.distribution {
            None => {
                let width = slot.max_delay_ns.wrapping_sub(slot.min_delay_ns);
                slot.min_delay_ns.wrapping_add(i64::from(draw).wrapping_mul(width) >> 32)
            }
            Some(table) => around(slot.dist_delay_ns, slot.dist_jitter_ns, draw, Some(table)),
        };
        self.slot = Slot { next: cx.now.0.wrapping_add_signed(wait), ..full(slot) };
    }

    /// A packet of this length leaves in the present burst.
    fn use_slot(&mut self, cx: &mut Context<'_>, len: u32) {
        if self.slot.next == 0 {
            return;
        }
        self.slot.packets_left = self.slot.packets_left.wrapping_sub(1);
        self.slot.bytes_left = self.slot.bytes_left.wrapping_sub(len as i32);
        if self.slot.packets_left <= 0 || self.slot.bytes_left <= 0 {
            self.next_slot(cx);
        }
    }

    fn dequeue_child(&mut self, cx: &mut Context<'_>) -> Option<Pkt> {
        match self.child.there_mut()?.dequeue_fresh(cx) {
            Dequeue::Packet(pkt) => Some(pkt),
            Dequeue::Empty | Dequeue::Throttled => None,
        }
    }
}

/// What a change does not speak of stays: some of netem's options do, some do not.
fn keep_unsaid(params: &mut NetemParams, before: NetemParams) {
    params.distribution = params.distribution.take().or(before.distribution);
    params.corrupt = params.corrupt.or(before.corrupt);
    params.reorder = params.reorder.or(before.reorder.filter(|_| params.gap == 0));
    params.correlations = params.correlations.or(before.correlations);
    params.rate = params.rate.or(before.rate);
    params.ecn |= before.ecn;
    params.slot = params.slot.take().or(before.slot);
}

/// A jitter as far as it fits the 32 bits of what it is scaled with.
fn bounded(jitter_ns: i64) -> i64 {
    jitter_ns.unsigned_abs().min(i32::MAX as u64) as i64
}

/// A burst that has not begun.
fn full(slot: &NetemSlot) -> Slot {
    let or_all = |limit: i32| if limit == 0 { i32::MAX } else { limit };
    Slot { next: 0, packets_left: or_all(slot.max_packets), bytes_left: or_all(slot.max_bytes) }
}

impl Discipline for Netem {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        // A copy is not copied again: in 6.1 not by the netem that made it, which has none beside it; in 7.2
        // by none.
        let known = cx.device.switches.linux.has(LinuxChange::NetemCopies) && cx.pool.is_duplicate(&pkt);
        let chance = &mut Chance::of(&mut self.own, cx.random.source);
        let may_copy = self.aside.is_none() && !known;
        let copies = may_copy && self.copies.happens(chance, self.params.duplicate);
        let lost = self.loss.should_drop(chance);
        self.counts.duplicated += u64::from(copies);
        if lost {
            if self.params.ecn && cx.pool.meta_mut(&pkt).set_ce() {
                self.counts.ecn_marked += 1;
                self.marked += u32::from(!cx.device.switches.linux.has(LinuxChange::NetemMarks));
                // Both copies' bytes are the same ones in Linux.
                if let Some(original) = &self.aside {
                    cx.pool.meta_mut(original).set_ce();
                }
            } else if copies {
                // Lost and copied is neither.
                self.counts.dropped += 1;
                return self.admit(cx, own, pkt, None);
            } else {
                self.counts.dropped += 1;
                cx.drop(own.handle, pkt, DropReason::Early);
                return Enqueue::DroppedSilently;
            }
        }
        let copy = if copies { cx.pool.duplicate(&pkt) } else { None };
        self.admit(cx, own, pkt, copy)
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        loop {
            if cx.copied.is_some() {
                // A netem below has made a copy: the root takes it before anything else goes on.
                return Dequeue::Throttled;
            }
            if let Some(pkt) = self.waiting.take_first() {
                return Dequeue::Packet(pkt);
            }
            let Some(at) = self.waiting.next() else {
                return self.dequeue_child(cx).map_or(Dequeue::Empty, Dequeue::Packet);
            };
            if self.slot.next != 0 && self.slot.next < at {
                self.next_slot(cx);
            }
            if at > cx.now.0 || self.slot.next > cx.now.0 {
                if let Some(pkt) = self.dequeue_child(cx) {
                    return Dequeue::Packet(pkt);
                }
                cx.wake(own, Time(at.max(self.slot.next)));
                // Linux polls the child a second time.
                return self.dequeue_child(cx).map_or(Dequeue::Throttled, Dequeue::Packet);
            }
            let Some(pkt) = self.waiting.take() else { return Dequeue::Empty };
            self.use_slot(cx, cx.pool.meta(&pkt).len);
            match self.child.there_mut() {
                None => return Dequeue::Packet(pkt),
                Some(child) => {
                    let len = cx.pool.meta(&pkt).len;
                    if child.enqueue(cx, pkt) == Enqueue::Taken {
                        self.taken_below = self.taken_below.wrapping_add(1);
                        cx.leave_inside(len);
                    }
                    // Another device takes its packet before the next one here is looked at. Below other
                    // qdiscs, which would go on to other classes, it takes it afterwards.
                    if self.is_root && cx.actions.pause() {
                        return Dequeue::Throttled;
                    }
                }
            }
        }
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Netem(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        self.set(cx, params);
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        self.waiting.purge(cx, own.handle);
        if let Some(child) = self.child.there_mut() {
            child.purge(cx);
        }
        cx.wake(own, Time::NEVER);
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Netem(Box::new(self.params.clone()))
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        self.own.as_ref().map_or(Xstats::None, |_| Xstats::Netem(self.counts))
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.requeues = self.reordered;
        stats.drops = stats.drops.wrapping_add(self.marked).wrapping_sub(self.taken_below);
    }

    classful!();
}

impl Classful for Netem {
    fn has_class(&self, _class: Handle) -> bool {
        // There is one class, and every name means it.
        true
    }

    fn child(&mut self, _class: Handle) -> Option<&mut QdiscNode> {
        Some(&mut self.child)
    }

    fn default_child(&self, _cx: &mut Context<'_>, _class: Handle) -> QdiscNode {
        QdiscNode::absent()
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        if let Some(child) = self.child.there_mut() {
            visit.node(child);
        }
    }

    fn classes(&mut self, _now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        if self.child.there().is_some() {
            out.push(only_class(Kind::Netem, qdisc, &self.child));
        }
    }
}

impl BuiltIn for Netem {}

impl Netem {
    /// Enqueues a packet that is not dropped, after its copy if it has one.
    fn admit(&mut self, cx: &mut Context<'_>, own: QdiscState, pkt: Pkt, copy: Option<Pkt>) -> Enqueue {
        self.corrupt(cx, &pkt);
        // The original of a copy is not there yet.
        if own.qlen - u32::from(self.aside.is_some()) >= self.params.limit {
            if let Some(copy) = copy {
                cx.forget(own.handle, copy);
            }
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        match copy {
            Some(copy) => {
                self.aside = Some(pkt);
                cx.copy(own.handle, copy);
            }
            None => self.take_in(cx, pkt),
        }
        Enqueue::Queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn times_spread_uniformly_or_by_a_table() {
        assert_eq!(around(5_000_000, 5_000_000, 3_203_108_257, None), 3_108_257);
        let table = NetemDistribution(vec![-8192, 0, 8192, 4096].into());
        let at = |draw| around(1000, 100, draw, Some(&table));
        assert_eq!([at(0), at(1), at(2), at(7)], [900, 1000, 1100, 1050]);
        assert_eq!(around(0, 8193, 2, Some(&table)), 8193);
    }

    #[test]
    fn a_rate_counts_overheads_and_cells() {
        let rate = NetemRate { rate: 125_000, packet_overhead: 14, cell_size: 48, cell_overhead: 5 };
        assert_eq!(sending_time(&NetemRate { rate: 125_000, ..NetemRate::default() }, 1000), 8_000_000);
        assert_eq!(sending_time(&rate, 1000), 22 * 53 * 8000);
    }

    #[test]
    fn a_degree_of_one_half_makes_draws_alike() {
        struct Given(u32);
        impl RandomSource for Given {
            fn word(&mut self) -> u64 {
                0
            }
            fn u32(&mut self) -> u32 {
                self.0
            }
            fn u16(&mut self) -> u16 {
                0
            }
            fn u64(&mut self) -> u64 {
                0
            }
            fn below(&mut self, _n: u32) -> u32 {
                0
            }
        }
        let mut random = Correlated::begin(&mut Given(0x8000_0000), 0x7fff_ffff);
        let draw = |random: &mut Correlated, given| random.draw(&mut Chance::Kernel(&mut Given(given)));
        assert_eq!(draw(&mut random, 0), 0x4000_0000);
        assert_eq!(draw(&mut random, 0), 0x2000_0000);
        assert_eq!(draw(&mut Correlated::default(), 7), 7);
    }
}

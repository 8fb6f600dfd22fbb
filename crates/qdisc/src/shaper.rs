//! One device's egress: the root of its tree, with everything the tree shares.

use crate::algo::adjusted_size;
use crate::batch::Budget;
use crate::context::{
    Context, DeviceInfo, DropCount, DropReason, Event, EventRing, RandomContext, Watchdogs,
};
use crate::discipline::{Dequeue, Enqueue, Visit};
use crate::ingress::{Hooked, Ingress};
use crate::node::QdiscNode;
use crate::paths::{self, MAX_DEPTH, ParentIndex};
use alloc::boxed::Box;
use alloc::vec::Vec;
use tidegate_classify::{Redirect, Shared};
use tidegate_packet::{Handle, LinuxChange, Pkt, Pool, RandomSource, Time, Timer, Wheel};
use tidegate_policy::Kind;

/// What a sender learns about the packet it offered.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmitStatus {
    /// It waits or is on its way.
    Queued,
    /// Its flow had a drop: slow down.
    Congested,
    /// It was refused.
    Refused,
    /// It was dropped before it came to the device, which need not be polled.
    Stopped,
    /// A filter redirected the packet before it came to this device, which need not be polled.
    Away,
}

/// What happened to a packet that arrived at a device.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum IngressVerdict {
    /// The packet continues.
    Passed(Pkt),
    /// A filter leads it to another device.
    Redirected(Pkt, Redirect),
    /// It was dropped.
    Dropped,
}

/// A qdisc in which something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacklogLocation {
    /// Its handle; [`Handle::NONE`] of one that was not requested.
    pub qdisc: Handle,
    /// The kind of the qdisc.
    pub kind: Kind,
    /// [`Handle::ROOT`], or the class it is attached to.
    pub on: Handle,
}

/// The egress of one device, and the filters on what arrives there.
///
/// The driver's contract: [`Shaper::offer`] each packet; after every offer (refused ones too) and whenever
/// [`Shaper::timeout`] has come, [`Shaper::poll`] until it gives nothing, unless the link is busy, then when
/// it is free again. The timeout may change with every call; nothing else changes it.
pub struct Shaper {
    pub(crate) device: DeviceInfo,
    pub(crate) root: QdiscNode,
    watchdogs: Watchdogs,
    pub(crate) events: EventRing,
    flow_key_drawn: bool,
    pub(crate) births: u64,
    pub(crate) next_handle: u16,
    /// When the next hash key changes, once looked for.
    pub(crate) perturb_known: Option<Timer>,
    wheel: Wheel,
    late_timers: bool,
    /// Packets that the root had sent when it was last found to have nothing to send; of devices with several
    /// transmit queues.
    sent_at_end: u64,
    pub(crate) ingress: Box<Ingress>,
    redirected: Option<(Pkt, Redirect)>,
    copied: Option<(Pkt, Handle)>,
    pub(crate) parents: ParentIndex,
    /// The machine's actions, while the device is at work; in between they are with the machine.
    pub(crate) shared: Box<Shared>,
}

impl core::fmt::Debug for Shaper {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shaper")
            .field("device", &self.device)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// A shaper's parts, lent apart.
struct Entered<'a> {
    root: &'a mut QdiscNode,
    ingress: &'a mut Ingress,
    cx: Context<'a>,
    ways: &'a ParentIndex,
}

/// How many packets of a batch are looked at together.
const BATCH: usize = 32;
/// A tree with fewer qdiscs than this, and fewer packets than [`FEW_PACKETS`], is in the cache anyway.
const FEW_QDISCS: usize = 256;
const FEW_PACKETS: usize = 4096;

/// The first handle the kernel gives out on its own.
pub(crate) const FIRST_AUTO: u16 = 0x8001;

impl Shaper {
    /// The egress of a device with nothing configured: packets wait in a pfifo_fast without a handle.
    pub fn new(device: DeviceInfo, events: EventRing) -> Shaper {
        let mut watchdogs = Watchdogs::default();
        Shaper {
            device,
            root: QdiscNode::untouched(device, &mut watchdogs),
            watchdogs,
            events,
            flow_key_drawn: false,
            births: 0,
            next_handle: FIRST_AUTO,
            perturb_known: None,
            sent_at_end: 0,
            wheel: Wheel::new(device.jiffies),
            late_timers: false,
            ingress: Box::default(),
            redirected: None,
            copied: None,
            parents: ParentIndex::default(),
            shared: Box::default(),
        }
    }

    /// What it knows of the device.
    pub fn device(&self) -> DeviceInfo {
        self.device
    }

    /// Changes what it knows of the device; limits taken over before stay as they are.
    pub fn set_device(&mut self, device: DeviceInfo) {
        self.device = device;
    }

    /// The device's transmit queue gets another length. In 6.1 the whole tree is emptied for that, unless the
    /// length is what it was.
    pub fn set_queue_len(&mut self, now: Time, pool: &mut Pool, random: &mut dyn RandomSource, packets: u32) {
        if packets == self.device.tx_queue_len {
            return;
        }
        self.device.tx_queue_len = packets;
        self.configure(|shaper| {
            let (root, _, mut cx) = shaper.enter_all(now, pool, random);
            if cx.device.switches.linux.has(LinuxChange::BacklogKept) {
                root.resize_kept(&mut cx);
            } else {
                root.resize(&mut cx);
            }
        });
    }

    /// The device goes up for the first time: now it shows whether it has a queue, if no qdisc was requested.
    /// Later changes of its transmit queue length do not change that (6.1 and 7.2; recorded: queue-of-*).
    pub fn begin(&mut self, now: Time, pool: &mut Pool, random: &mut dyn RandomSource) {
        if !self.is_configured() && matches!(self.root.kind(), Kind::PfifoFast | Kind::Noqueue) {
            let (root, mut cx) = self.enter(now, pool, random);
            let new = QdiscNode::instead(&mut cx);
            core::mem::replace(root, new).destroy(&mut cx);
        }
    }

    /// The handle that the next qdisc without one gets.
    pub fn next_handle(&self) -> u16 {
        self.next_handle
    }

    /// Handles continue from here; `None`: from the first that the kernel gives out.
    pub fn set_next_handle(&mut self, next: Option<u16>) {
        self.next_handle = next.unwrap_or(FIRST_AUTO);
    }

    /// Is a qdisc configured?
    pub fn is_configured(&self) -> bool {
        !self.root.handle().is_none()
    }

    /// Packets waiting in the tree.
    pub fn qlen(&self) -> u32 {
        self.root.qlen()
    }

    /// The qdiscs in which packets wait, each before those that are attached to it.
    pub fn waiting(&mut self) -> Vec<BacklogLocation> {
        struct Down(Vec<BacklogLocation>);
        impl Visit for Down {
            fn node(&mut self, node: &mut QdiscNode) {
                if node.qlen() > 0 {
                    self.0.push(BacklogLocation {
                        qdisc: node.handle(),
                        kind: node.kind(),
                        on: node.parent(),
                    });
                    node.visit(self);
                }
            }
        }
        let mut down = Down(Vec::new());
        down.node(&mut self.root);
        down.0
    }

    /// A packet arrives at the device.
    pub fn arrive(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        pkt: Pkt,
    ) -> IngressVerdict {
        let (_, ingress, mut cx) = self.enter_all(now, pool, random);
        match ingress.arrive(&mut cx, pkt) {
            Hooked::Passed(pkt) => IngressVerdict::Passed(pkt),
            Hooked::Lost => IngressVerdict::Dropped,
            Hooked::Led(pkt, way) => IngressVerdict::Redirected(pkt, way),
        }
    }

    /// The packet that the last offer redirected to another device, and the way.
    #[inline]
    pub fn take_redirected(&mut self) -> Option<(Pkt, Redirect)> {
        self.redirected.take()
    }

    /// The next packet that was redirected inside the tree, as a netem gave it to the qdisc below: after each
    /// poll and offer, until there is none. Where a machine lends its actions ([`Shaper::swap_shared`]), it
    /// finds these packets there, among the copies.
    pub fn take_redirected_inside(&mut self) -> Option<(Pkt, Redirect)> {
        self.shared.actions.take_redirected()
    }

    /// Lends it the machine's actions, or takes them back: it gets what is given, and what it had is in its
    /// place.
    #[inline]
    pub fn swap_shared(&mut self, shared: &mut Box<Shared>) {
        core::mem::swap(&mut self.shared, shared);
    }

    /// Shows the places that the actions of each filter have.
    pub fn each_action(&mut self, show: &mut dyn FnMut(&[u32])) {
        self.ingress.each_action(show);
        self.each(&mut |node| node.each_action(show));
    }

    /// Offers a packet for sending.
    pub fn offer(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        pkt: Pkt,
    ) -> XmitStatus {
        let pkt = if self.ingress.is_there() {
            let (_, ingress, mut cx) = self.enter_all(now, pool, random);
            match ingress.leave(&mut cx, pkt) {
                Hooked::Passed(pkt) => pkt,
                Hooked::Lost => return XmitStatus::Stopped,
                Hooked::Led(pkt, way) => {
                    self.redirected = Some((pkt, way));
                    return XmitStatus::Away;
                }
            }
        } else {
            pkt
        };
        let (root, mut cx, ways) = self.enter_paths(now, pool, random);
        offer_to(root, &mut cx, ways, pkt)
    }

    /// Offers packets for sending in order, as [`Shaper::offer`] would one by one, and reports for each the
    /// sender's result and where it was redirected. For many packets this is faster, because their cache
    /// misses overlap.
    pub fn offer_batch(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        packets: &mut Vec<Pkt>,
        mut report: impl FnMut(XmitStatus, Option<(Pkt, Redirect)>),
    ) {
        if self.ingress.is_there() {
            for pkt in packets.drain(..) {
                let offer = self.offer(now, pool, random, pkt);
                report(offer, self.redirected.take());
            }
            return;
        }
        let (root, mut cx, ways) = self.enter_paths(now, pool, random);
        let near = cx.watchdogs.len() < FEW_QDISCS && cx.pool.live() < FEW_PACKETS;
        for n in (0..packets.len()).step_by(BATCH).filter(|_| !near) {
            prefetch_paths(root, cx.pool, &packets[n..(n + BATCH).min(packets.len())]);
        }
        for pkt in packets.drain(..) {
            let offer = offer_to(root, &mut cx, ways, pkt);
            report(offer, cx.redirected.take());
        }
    }

    /// Takes the next packet to send; `None` when nothing waits or nothing may go yet.
    pub fn poll(&mut self, now: Time, pool: &mut Pool, random: &mut dyn RandomSource) -> Option<Pkt> {
        let (root, mut cx) = self.enter(now, pool, random);
        let mark = cx.events.mark();
        let result = root.dequeue_fresh(&mut cx);
        cx.events.reverse_left(mark, || {
            let by_itself = matches!(root.kind(), Kind::Codel | Kind::FqCodel | Kind::Cake | Kind::DualPi2);
            by_itself && cx.device.switches.linux.has(LinuxChange::DropsListed)
        });
        let result = if self.copied.is_some() { self.take_copies(now, pool, random, result) } else { result };
        match result {
            Dequeue::Packet(pkt) => Some(pkt),
            Dequeue::Empty | Dequeue::Throttled => {
                // A queue of an mq runs on its own.
                if self.device.tx_queues > 1 && self.root.kind() != Kind::Mq {
                    self.dequeue_again(now, pool, random)
                } else {
                    None
                }
            }
        }
    }

    /// On devices with several transmit queues Linux looks behind each packet for more of the same queue, so
    /// the tree is polled once more in vain at the end of a run; qdiscs that shape count that.
    ///
    /// Few devices have several. Inlined, this cost every poll 19 instructions, for a second context on the
    /// stack.
    #[cold]
    #[inline(never)]
    fn dequeue_again(&mut self, now: Time, pool: &mut Pool, random: &mut dyn RandomSource) -> Option<Pkt> {
        let sent = self.root.sent_packets();
        if core::mem::replace(&mut self.sent_at_end, sent) == sent {
            return None;
        }
        let (root, mut cx) = self.enter(now, pool, random);
        match root.dequeue_fresh(&mut cx) {
            Dequeue::Packet(pkt) => Some(pkt),
            Dequeue::Empty | Dequeue::Throttled => None,
        }
    }

    /// A netem below another makes its copies while packets leave: the root takes them, then goes on, unless
    /// it gave a packet (7.2; recorded: copies-below-copies).
    #[cold]
    #[inline(never)]
    fn take_copies(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        mut result: Dequeue,
    ) -> Dequeue {
        let (root, mut cx, ways) = self.enter_paths(now, pool, random);
        // Each turn moves a packet down from one netem to the next, and a copy makes none.
        while cx.copied.is_some() {
            offer_copy(root, &mut cx, ways);
            if !matches!(result, Dequeue::Packet(_)) {
                result = root.dequeue_fresh(&mut cx);
            }
        }
        result
    }

    /// Takes up to `room` packets to send, in order, as [`Shaper::poll`] would one by one; they are appended
    /// to `out`.
    pub fn poll_batch(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        room: usize,
        out: &mut Vec<Pkt>,
    ) {
        let (root, mut cx, ways) = self.enter_paths(now, pool, random);
        let mut budget = Budget { packets: room, bytes: i64::MAX };
        while budget.packets > 0 {
            let ran = root.dequeue_run(&mut cx, &mut budget, out);
            if cx.copied.is_some() {
                offer_copy(root, &mut cx, ways);
                continue;
            }
            if ran {
                continue;
            }
            match root.dequeue_fresh(&mut cx) {
                Dequeue::Packet(pkt) => out.push(pkt),
                _ if cx.copied.is_some() => {
                    offer_copy(root, &mut cx, ways);
                    continue;
                }
                Dequeue::Empty | Dequeue::Throttled => return,
            }
            budget.packets -= 1;
        }
        offer_copy(root, &mut cx, ways);
    }

    /// When the tree wants to be polled again.
    pub fn timeout(&mut self) -> Option<Time> {
        self.watchdogs.next()
    }

    /// Disarms the watchdogs that are due; when any was, the root must be polled.
    pub fn fire(&mut self, now: Time) -> bool {
        let any = self.watchdogs.fire(now);
        if let Some(mq) = self.root.as_mq_mut().filter(|_| any) {
            mq.wake(self.watchdogs.fired());
        }
        any
    }

    /// When the earliest change of a hash key is due; [`Timer::NEVER`] if none is.
    pub fn perturb_due(&mut self) -> Timer {
        if let Some(known) = self.perturb_known {
            return known;
        }
        let earliest = self.earliest(|node| node.rehash_due());
        self.perturb_known = Some(earliest);
        earliest
    }

    /// Changes the hash key that was due first, drawing the new one.
    pub fn perturb(&mut self, now: Time, pool: &mut Pool, random: &mut dyn RandomSource) {
        let due = self.perturb_due();
        let Some(handle) = self.find(|node| node.rehash_due() == due) else { return };
        if self.late_timers {
            let others = self.earliest(|node| node.rehash_due_after(due));
            self.wheel.set_pending(others.at);
        }
        self.perturb_known = None;
        self.on(now, pool, random, handle, |node, cx| node.perturb(cx, due));
    }

    /// Hash keys change when the driver reports a timer, which may be late, as on a machine that sleeps.
    /// `never_turned`: no maintenance timer has run since the machine started.
    pub fn late_timers(&mut self, never_turned: bool) {
        self.late_timers = true;
        self.wheel.set_never_turned(never_turned);
    }

    /// An operation may arm timers, and how coarsely depends on those that are due.
    pub(crate) fn note_pending_timers(&mut self) {
        if self.late_timers {
            let due = self.perturb_due();
            self.wheel.set_pending(due.at);
        }
    }

    fn earliest(&mut self, of: impl Fn(&QdiscNode) -> Timer) -> Timer {
        struct Earliest<F>(F, Timer);
        impl<F: Fn(&QdiscNode) -> Timer> Visit for Earliest<F> {
            fn node(&mut self, node: &mut QdiscNode) {
                self.1 = self.1.min((self.0)(node));
                node.visit(self);
            }
        }
        let mut earliest = Earliest(of, Timer::NEVER);
        earliest.node(&mut self.root);
        earliest.1
    }

    /// What happened since the last reading.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain()
    }

    /// Drops a packet that something outside the tree refused (a rule of netfilter), so that it is counted
    /// like any other.
    pub fn refuse(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        pkt: Pkt,
        why: DropReason,
    ) {
        let (_, mut cx) = self.enter(now, pool, random);
        cx.drop(Handle::NONE, pkt, why);
    }

    pub(crate) fn enter<'a>(
        &'a mut self,
        now: Time,
        pool: &'a mut Pool,
        random: &'a mut dyn RandomSource,
    ) -> (&'a mut QdiscNode, Context<'a>) {
        let (root, _, cx) = self.enter_all(now, pool, random);
        (root, cx)
    }

    pub(crate) fn enter_all<'a>(
        &'a mut self,
        now: Time,
        pool: &'a mut Pool,
        random: &'a mut dyn RandomSource,
    ) -> (&'a mut QdiscNode, &'a mut Ingress, Context<'a>) {
        let Entered { root, ingress, cx, .. } = self.enter_whole(now, pool, random);
        (root, ingress, cx)
    }

    fn enter_paths<'a>(
        &'a mut self,
        now: Time,
        pool: &'a mut Pool,
        random: &'a mut dyn RandomSource,
    ) -> (&'a mut QdiscNode, Context<'a>, &'a ParentIndex) {
        let Entered { root, cx, ways, .. } = self.enter_whole(now, pool, random);
        (root, cx, ways)
    }

    fn enter_whole<'a>(
        &'a mut self,
        now: Time,
        pool: &'a mut Pool,
        random_source: &'a mut dyn RandomSource,
    ) -> Entered<'a> {
        let cx = Context {
            now,
            pool,
            actions: &mut self.shared.actions,
            blocks: &mut self.shared.blocks,
            random: RandomContext { source: random_source, flow_key_drawn: &mut self.flow_key_drawn },
            device: self.device,
            wheel: &self.wheel,
            watchdogs: &mut self.watchdogs,
            events: &mut self.events,
            redirected: &mut self.redirected,
            copied: &mut self.copied,
            dropped: DropCount::default(),
            vanished: crate::context::DropCount::default(),
            misheard: 0,
            purge_group: 0,
        };
        Entered { root: &mut self.root, ingress: &mut self.ingress, cx, ways: &self.parents }
    }

    /// The handle of the first qdisc, from the root down, for which `test` holds.
    pub(crate) fn find(&mut self, test: impl FnMut(&mut QdiscNode) -> bool) -> Option<Handle> {
        struct First<F>(F, Option<Handle>);
        impl<F: FnMut(&mut QdiscNode) -> bool> Visit for First<F> {
            fn node(&mut self, node: &mut QdiscNode) {
                if self.1.is_some() {
                    return;
                }
                if !node.handle().is_none() && (self.0)(node) {
                    self.1 = Some(node.handle());
                } else {
                    node.visit(self);
                }
            }
        }
        let mut first = First(test, None);
        first.node(&mut self.root);
        first.1
    }

    pub(crate) fn has_qdisc(&mut self, handle: Handle) -> bool {
        self.node(handle).is_some()
    }

    /// The qdisc with this handle.
    pub(crate) fn node(&mut self, handle: Handle) -> Option<&mut QdiscNode> {
        if handle.is_none() {
            return None;
        }
        let way = self.parents.to(&mut self.root, handle);
        debug_assert_eq!(
            way.is_some(),
            self.find(|node| node.handle() == handle).is_some(),
            "every qdisc has its way"
        );
        paths::follow(&mut self.root, way?.classes())
    }

    /// Runs `f` on the qdisc with this handle.
    pub(crate) fn on<R>(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        handle: Handle,
        mut f: impl FnMut(&mut QdiscNode, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let way = self.parents.to(&mut self.root, handle)?;
        let (root, mut cx) = self.enter(now, pool, random);
        root.with(&mut cx, way.classes(), &mut f)
    }
}

/// Hands a packet to the root.
#[inline]
fn offer_to(root: &mut QdiscNode, cx: &mut Context<'_>, ways: &ParentIndex, pkt: Pkt) -> XmitStatus {
    if let Some(stab) = root.stab() {
        let len = adjusted_size(stab, cx.pool.meta(&pkt).len);
        cx.pool.meta_mut(&pkt).len = len;
    }
    let mark = cx.events.mark();
    let result = root.enqueue(cx, pkt);
    if cx.copied.is_some() {
        offer_copy(root, cx, ways);
    }
    cx.events.reverse_from(mark);
    match result {
        Enqueue::Queued | Enqueue::DroppedSilently | Enqueue::Taken | Enqueue::Parked => XmitStatus::Queued,
        Enqueue::Congested => XmitStatus::Congested,
        Enqueue::Dropped => XmitStatus::Refused,
    }
}

/// Offers the second copy of a packet that netem made, as long as it is, and has the original continue after
/// that.
#[cold]
fn offer_copy(root: &mut QdiscNode, cx: &mut Context<'_>, ways: &ParentIndex) {
    let Some((copy, at)) = cx.copied.take() else { return };
    let _ = root.enqueue(cx, copy);
    cx.send_redirected();
    if let Some(way) = ways.to(root, at) {
        root.with(cx, way.classes(), &mut |node, cx| node.resume(cx));
    }
}

/// Goes down the tree with up to [`BATCH`] packets at once, a line of each at a time, so that all wait for
/// their next lines together.
fn prefetch_paths(root: &QdiscNode, pool: &mut Pool, packets: &[Pkt]) {
    let mut at = [Some(root); BATCH];
    for _ in 0..MAX_DEPTH {
        let mut on_the_way = false;
        for (pkt, place) in packets.iter().zip(&mut at) {
            let Some(node) = *place else { continue };
            *place = node.child_hint(pool, pkt);
            place.iter().for_each(|next| next.prefetch(pool, 0, 1));
            on_the_way |= place.is_some();
        }
        if !on_the_way {
            return;
        }
        at[..packets.len()].iter().flatten().for_each(|node| node.touch_body(pool));
    }
}

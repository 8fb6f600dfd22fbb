//! What qdiscs work with: the time, the pool, draws, watchdogs, and the one way to drop a packet.

use crate::discipline::QdiscState;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use tidegate_classify::{Actions, Blocks, FilterRandom, Redirect};
use tidegate_packet::{Handle, Jiffies, LinuxVersion, Pkt, Pool, QueueLocation, RandomSource, Time, Wheel};

/// What a qdisc may ask of the device it works for.
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// Its number in its machine, as packets note where they wait, plus one; 0: it has none.
    pub number: u16,
    /// The largest frame, link header included, bytes: the default quantum (`psched_mtu`).
    pub max_frame: u32,
    /// The transmit queue length, packets: the default limit.
    pub tx_queue_len: u32,
    /// How many transmit queues it has, at least 1.
    pub tx_queues: u32,
    /// Has it no queue unless it is given one?
    pub queueless: bool,
    /// Bytes of the link header in each frame.
    pub link_header: u32,
    /// The timer tick of the machine.
    pub jiffies: Jiffies,
    /// How its qdiscs differ from a stock kernel's.
    pub switches: Switches,
}

impl DeviceInfo {
    /// Packets of the transmit queue, where nothing else was said.
    const USUAL_QUEUE_LEN: u32 = 1000;

    /// A qdisc is made for it. A device without a queue, whose transmit queue was given length 0, gets the
    /// usual length back; any other stays as it is (6.1 and 7.2 were asked).
    pub(crate) fn restore_queue(&mut self) {
        if self.queueless && self.tx_queue_len == 0 {
            self.tx_queue_len = DeviceInfo::USUAL_QUEUE_LEN;
        }
    }
}

/// Whose behaviour qdiscs show: by default that of a stock Linux 6.1 with its tc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The release of Linux. Qdiscs learn it when they are made.
    pub linux: LinuxVersion,
    /// The module parameter `htb_hysteresis`: classes of HTB change their mode less often, and are less
    /// exact.
    pub htb_hysteresis: bool,
    /// A RED with `adaptive` adapts. Since iproute2 5.7 tc encodes the flag so that the kernel only stores
    /// it.
    pub adaptive_red: bool,
    /// No packet skips an empty pfifo_fast while the device has space. The bypass is visible only where the
    /// transmit queue has length 0, and the recorded kernels were run without it.
    pub no_bypass: bool,
}

impl Default for DeviceInfo {
    fn default() -> DeviceInfo {
        DeviceInfo {
            number: 0,
            max_frame: 1514,
            tx_queue_len: DeviceInfo::USUAL_QUEUE_LEN,
            tx_queues: 1,
            queueless: false,
            link_header: 14,
            jiffies: Jiffies { hz: 250 },
            switches: Switches::default(),
        }
    }
}

/// A source of random numbers with what the machine remembers about them.
pub struct RandomContext<'a> {
    /// Where draws come from.
    pub source: &'a mut dyn RandomSource,
    /// Has the machine's flow filters' common key been drawn?
    pub flow_key_drawn: &'a mut bool,
}

impl RandomContext<'_> {
    /// Where filters get their random draws from.
    pub fn random(&mut self) -> FilterRandom<'_> {
        FilterRandom { source: &mut *self.source, flow_key_drawn: &mut *self.flow_key_drawn }
    }
}

/// What everything beside the tree is reached through while a packet moves.
pub struct Context<'a> {
    /// The present time.
    pub now: Time,
    /// Where packets live.
    pub pool: &'a mut Pool,
    /// Randomness.
    pub random: RandomContext<'a>,
    /// The machine's actions.
    pub actions: &'a mut Actions,
    /// The machine's shared blocks of filters.
    pub(crate) blocks: &'a mut Blocks,
    /// The device that the tree is attached to.
    pub device: DeviceInfo,
    /// Where maintenance timers are armed.
    pub(crate) wheel: &'a Wheel,
    pub(crate) watchdogs: &'a mut Watchdogs,
    pub(crate) events: &'a mut EventRing,
    /// The packet just offered, where a filter redirected it, and where it goes. Packets that are redirected
    /// later, while they move inside the tree, join the copies in [`Actions`], where they keep their order.
    pub(crate) redirected: &'a mut Option<(Pkt, Redirect)>,
    /// A second copy of a packet, and the qdisc that made it: to be offered at the root before the original
    /// continues.
    pub(crate) copied: &'a mut Option<(Pkt, Handle)>,
    /// Packets and bytes dropped in the tree since the shaper was entered; each Node compares before and
    /// after.
    pub(crate) dropped: DropCount,
    /// Packets that vanished from a qdisc without its ancestors being notified.
    pub(crate) vanished: DropCount,
    /// The correction of the dropped bytes that the ancestors must still get: see [`Context::drop_instead`].
    pub(crate) misheard: u64,
    /// The group that packets purged now belong to.
    pub(crate) purge_group: u16,
}

/// A count of drops.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DropCount {
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
}

impl DropCount {
    pub(crate) fn since(self, before: DropCount) -> DropCount {
        DropCount { packets: self.packets - before.packets, bytes: self.bytes.wrapping_sub(before.bytes) }
    }

    /// So many more.
    pub(crate) fn and(self, packets: u32, bytes: u64) -> DropCount {
        DropCount { packets: self.packets + packets, bytes: self.bytes.wrapping_add(bytes) }
    }
}

impl Context<'_> {
    /// Notes for observers that a qdisc is handed a packet, and what that is attached to.
    pub(crate) fn note_location(&mut self, pkt: &Pkt, qdisc: Handle, on: Handle) {
        let (device, since) = (self.device.number, self.now);
        self.pool.set_queue_location(pkt, QueueLocation { qdisc, on, queue: None, device, since });
    }

    /// Drops a packet: the only way there is. `at` is the qdisc that does it.
    pub fn drop(&mut self, at: Handle, pkt: Pkt, why: DropReason) {
        self.dropped.packets += 1;
        self.dropped.bytes = self.dropped.bytes.wrapping_add(u64::from(self.pool.meta(&pkt).len));
        self.record(EventKind::Drop(why), at, &pkt);
        self.pool.release(pkt);
    }

    /// Drops a waiting packet in a qdisc that then reports the arrival, `len` bytes long, as not taken. Its
    /// ancestors count the arrival's bytes as dropped instead of this packet's, so their backlog is wrong
    /// from then on, as in Linux.
    pub(crate) fn drop_instead(&mut self, at: Handle, pkt: Pkt, why: DropReason, len: u32) {
        self.misheard = u64::from(len).wrapping_sub(u64::from(self.pool.meta(&pkt).len));
        self.drop(at, pkt, why);
    }

    /// Drops a packet without counting it: CAKE's, when a change leaves it fewer tins. Only the qdisc itself
    /// takes it from its backlog; its ancestors keep it for ever, as in Linux.
    pub(crate) fn vanish(&mut self, at: Handle, pkt: Pkt) {
        self.vanished.packets += 1;
        self.vanished.bytes += u64::from(self.pool.meta(&pkt).len);
        self.record(EventKind::Drop(DropReason::PurgedAtOnce), at, &pkt);
        self.pool.release(pkt);
    }

    /// Drops a packet that stays counted as waiting for ever, as in Linux: pfifo_fast's, when its rings
    /// become shorter.
    pub(crate) fn drop_uncounted(&mut self, at: Handle, pkt: Pkt) {
        self.record(EventKind::Drop(DropReason::PurgedAtOnce), at, &pkt);
        self.pool.release(pkt);
    }

    /// Redirects a packet away to another device: neither sent nor dropped here.
    pub(crate) fn redirect(&mut self, at: Handle, pkt: Pkt, way: Redirect) {
        debug_assert!(self.redirected.is_none(), "one packet is offered at a time");
        self.record(EventKind::Redirected, at, &pkt);
        *self.redirected = Some((pkt, way));
    }

    /// A packet of this many bytes left the tree inside it, by a filter: on the way from one qdisc to the one
    /// below, not when it was offered. It no longer waits, and the ancestors count it as dropped, as in Linux
    /// (6.1 and 7.2; recorded: redirected-below-netem).
    #[cold]
    pub(crate) fn leave_inside(&mut self, len: u32) {
        self.dropped = self.dropped.and(1, u64::from(len));
        self.send_redirected();
    }

    /// Hands over the packet that was redirected last: the driver of the device sends it on after this call.
    pub(crate) fn send_redirected(&mut self) {
        if let Some((pkt, way)) = self.redirected.take() {
            self.actions.push_redirected(pkt, way);
        }
    }

    /// A packet is consumed, and counted as dropped nowhere.
    pub(crate) fn steal(&mut self, at: Handle, pkt: Pkt) {
        self.record(EventKind::Drop(DropReason::Policy), at, &pkt);
        self.pool.release(pkt);
    }

    fn record(&mut self, what: EventKind, at: Handle, pkt: &Pkt) {
        let meta = self.pool.meta(pkt);
        self.events.push(Event {
            time: self.now,
            what,
            at,
            slot: pkt.slot() as u32,
            ident: meta.ident,
            len: meta.frame_len,
            dsfield: meta.dsfield,
        });
    }

    /// Has a second copy of a packet offered at the root; then the qdisc `at`, which set the original aside,
    /// continues.
    pub(crate) fn copy(&mut self, at: Handle, copy: Pkt) {
        debug_assert!(self.copied.is_none(), "a copy is not copied again");
        *self.copied = Some((copy, at));
    }

    /// Has a netem below stopped, until the root takes the copy that it made? Then it is to be asked again
    /// before any other queue.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.copied.is_some()
    }

    /// A copy that was never offered is gone: an event reports it, but no counter does.
    pub(crate) fn forget(&mut self, at: Handle, copy: Pkt) {
        self.record(EventKind::Drop(DropReason::Full), at, &copy);
        self.pool.release(copy);
    }

    /// Drops a packet because its queue is emptied; those of one call of a qdisc's purge are freed together.
    pub fn purge(&mut self, at: Handle, pkt: Pkt) {
        self.drop(at, pkt, DropReason::Purged(self.purge_group));
    }

    /// What is purged from now on is another group.
    pub(crate) fn next_purge_group(&mut self) {
        self.purge_group = self.purge_group.saturating_add(1);
    }

    /// Arms the qdisc's watchdog for `at`, instead of what it was armed for: the root will be polled then, or
    /// at once if that has passed.
    pub fn wake(&mut self, own: QdiscState, at: Time) {
        self.watchdogs.arm(own.watchdog, at.max(self.now));
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue is full: the arrival is refused.
    Full,
    /// The queue is full: a packet that waited made space.
    Overflow,
    /// CoDel's law.
    Codel,
    /// The early drop of another AQM: RED, CHOKe, SFB and PIE, which decide at enqueue, or a qdisc from
    /// outside this crate.
    Early,
    /// Longer than the bucket can ever hold.
    TooLong,
    /// No class would have it.
    Unclassified,
    /// A filter's verdict.
    Policy,
    /// A netfilter rule, before any queue.
    Netfilter,
    /// A netfilter rule at the last hook, where the packet is already the outgoing device's.
    NetfilterLeaving,
    /// The queue it waited in was taken away, emptied or made smaller; packets of one group are freed
    /// together.
    Purged(u16),
    /// Dropped by a purge and freed at once: a packet held for a peek, or one of pfifo_fast.
    PurgedAtOnce,
    /// An acknowledgement that later ones of its connection make needless.
    Superseded,
    /// Purged from among netem's packets that overtook others: what records drops in a kernel takes these for
    /// no packet of the device.
    PurgedUnseen,
    /// Its flow's new bucket was full after the hash key changed.
    Rehash,
}

/// An event, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The virtual time of the event.
    pub time: Time,
    /// What happened to the packet.
    pub what: EventKind,
    /// The qdisc's handle.
    pub at: Handle,
    /// The packet's slot; it may be handed out again with the next packet.
    pub slot: u32,
    /// Its maker's number for it.
    pub ident: u32,
    /// The frame's length, bytes.
    pub len: u32,
    /// Its DS field then.
    pub dsfield: u8,
}

/// The kinds of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A packet was dropped.
    Drop(DropReason),
    /// A filter redirected a packet to another device. (The kernel sends a copy there and frees the packet
    /// that was enqueued.)
    Redirected,
}

/// A ring of the latest events: bounded, allocated once, counting what it had to forget.
#[derive(Debug)]
pub struct EventRing {
    events: Vec<Event>,
    capacity: usize,
    forgotten: u64,
}

impl EventRing {
    /// Space for `capacity` events between two readings; 0 keeps none.
    pub fn new(capacity: usize) -> EventRing {
        EventRing { events: Vec::with_capacity(capacity), capacity, forgotten: 0 }
    }

    fn push(&mut self, event: Event) {
        if self.events.len() < self.capacity {
            self.events.push(event);
        } else {
            self.forgotten += 1;
        }
    }

    /// How many are held: a place to [`EventRing::reverse_from`] later.
    pub(crate) fn mark(&self) -> usize {
        self.events.len()
    }

    /// Turns what came since `mark` round: the kernel strings packets refused in one call onto a list, and
    /// frees the last first. What CoDel's law takes, where something is taken out only to be looked at, it
    /// frees at once.
    #[inline]
    pub(crate) fn reverse_from(&mut self, mark: usize) {
        // Most calls refuse nothing.
        if self.events.len() > mark + 1 {
            self.turn_round(mark);
        }
    }

    /// The same of what a root dropped while a packet left it.
    #[inline]
    pub(crate) fn reverse_left(&mut self, mark: usize, is_listed: impl Fn() -> bool) {
        if self.events.len() > mark + 1 && is_listed() {
            self.events[mark..].reverse();
        }
    }

    #[cold]
    fn turn_round(&mut self, mark: usize) {
        let Some(since) = self.events.get_mut(mark..) else { return };
        let put_off = |event: &Event| event.what != EventKind::Drop(DropReason::Codel);
        since.sort_by_key(put_off);
        let at_once = since.partition_point(|event| !put_off(event));
        since[at_once..].reverse();
    }

    /// Brings drops of an operation into the order in which the kernel frees them: what was held for a peek
    /// at once, then what it put off, group by group, the last group first.
    pub(crate) fn settle_purged(&mut self, mark: usize) {
        if let Some(since) = self.events.get_mut(mark..) {
            since.sort_by_key(|event| match event.what {
                EventKind::Drop(DropReason::Purged(group)) => (1, Reverse(group)),
                EventKind::Drop(_) | EventKind::Redirected => (0, Reverse(0)),
            });
        }
    }

    /// What happened since the last reading, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    /// Events that found the ring full.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

/// The watchdogs of one tree: each shaping node has one, and the earliest of them is the shaper's timeout.
#[derive(Debug, Default)]
pub(crate) struct Watchdogs {
    /// When each fires, by number; `NEVER` when not armed.
    armed: Vec<Time>,
    /// The armed watchdogs, earliest first, with stale entries left behind by re-arming.
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    free: Vec<u32>,
    /// Those that fired together last.
    fired: Vec<u32>,
}

impl Watchdogs {
    /// The number of no watchdog.
    pub(crate) const NO_WATCHDOG: u32 = u32::MAX;

    /// A number for a new shaping node.
    pub(crate) fn register(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.armed.push(Time::NEVER);
            self.armed.len() as u32 - 1
        })
    }

    /// Nodes that have one.
    pub(crate) fn len(&self) -> usize {
        self.armed.len() - self.free.len()
    }

    /// The node is gone.
    pub(crate) fn forget(&mut self, watchdog: u32) {
        self.armed[watchdog as usize] = Time::NEVER;
        self.free.push(watchdog);
    }

    fn arm(&mut self, watchdog: u32, at: Time) {
        if self.armed[watchdog as usize] == at {
            return;
        }
        self.armed[watchdog as usize] = at;
        if self.heap.len() > 64 + 4 * self.armed.len() {
            self.heap.clear();
            let all = self.armed.iter().enumerate().filter(|(_, t)| **t != Time::NEVER);
            self.heap.extend(all.map(|(n, t)| Reverse((*t, n as u32))));
            return;
        }
        self.heap.push(Reverse((at, watchdog)));
    }

    /// When the earliest fires.
    pub(crate) fn next(&mut self) -> Option<Time> {
        while let Some(Reverse((at, watchdog))) = self.heap.peek() {
            if self.armed[*watchdog as usize] == *at {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Disarms all that are due; returns whether any was.
    pub(crate) fn fire(&mut self, now: Time) -> bool {
        self.fired.clear();
        while self.next().is_some_and(|at| at <= now) {
            if let Some(Reverse((_, watchdog))) = self.heap.pop() {
                self.armed[watchdog as usize] = Time::NEVER;
                self.fired.push(watchdog);
            }
        }
        !self.fired.is_empty()
    }

    /// Those that [`Self::fire`] found due.
    pub(crate) fn fired(&self) -> &[u32] {
        &self.fired
    }
}

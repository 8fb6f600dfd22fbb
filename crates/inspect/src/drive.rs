//! The engine under load: what a class's queue does when it is kept full, alone and while all others are busy
//! too.

use crate::reading::{CARRIED_OUT_AT, CLSACT_EGRESS, PolicyModel};
use crate::walk::outcome::{acts, redirects};
use std::collections::BTreeMap;
use tidegate_gateway::{DeviceId, EgressPath, Gateway, GatewayContext, XmitStatus};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Handle, Head, Meta, Nanos, Pool, Rate, Seeded, Time};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{Act, ClassLayout, ClassOp, ClassParams, Kind, Op, QdiscOp, QdiscParams, Ticks, Verb};
use tidegate_syntax::{Env, tc};

/// Packets that may wait at once; a queue that holds more is full enough.
const MAX_PACKETS: usize = 20_000;
/// As many packets as are offered to a queue that is to be full, where no limit stops them before.
pub(crate) const FULL: usize = 4000;
/// Packets that may leave in one measurement.
const MAX_SENT: usize = 60_000;

/// Frames that leave before a rate is measured, and while it is.
const SKIPPED: u32 = 500;
const MEASURED: u32 = 500;
/// And of each class: slow ones of the same rate send in the same instants, so that one frame of each may be
/// too many.
const MEASURED_EACH: u32 = 250;
/// How many of the longest delays pass while a rate is measured, where packets are delayed.
const DELAYS: u64 = 50;
/// The backlog in packets of a class that is kept full: enough for its child never to run dry before the next
/// comes; where packets are delayed, the initial one.
const FEW: u32 = 4;
const ROOMY: u32 = 64;
/// Packets in a row that may be dropped on purpose.
const MOST_LOST: u32 = 1000;
/// Frames that leave a queue whose marks are counted: enough for CoDel to act after its interval, and for
/// RED's average to rise.
pub(crate) const WATCHED: u32 = 4000;
/// Congestion experienced (RFC 3168).
const CE: u8 = 3;
/// Turns of a class that are watched.
const TURNS: u32 = 4;

/// Between two measurements.
const PAUSE: Nanos = Nanos::millis(600_000);

/// What a full queue showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    /// Packets it took at once.
    pub(crate) packets: u32,
    /// From the offer of the last of them until it left.
    pub(crate) wait: Nanos,
}

/// Why it is not known how long a full queue takes to empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// It could not be measured.
    Unmeasured,
    /// So many packets still waited after this time, in which the others sent [`MAX_SENT`].
    Waiting { packets: u32, after: Nanos },
}

/// The most that a class sent in a row while others had something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Bytes of it, link headers included.
    pub(crate) bytes: u64,
    /// Between the packets of others before and after it.
    pub(crate) wait: Nanos,
}

/// Machines on which measurements are made, one after another: making one takes as long as the policy is.
pub(crate) struct Bench<'r> {
    reading: &'r PolicyModel,
    /// A change of the policy, to see whether that is the cause.
    instead: Option<Op>,
    rigs: BTreeMap<String, Rig>,
}

impl<'r> Bench<'r> {
    pub(crate) fn new(reading: &'r PolicyModel) -> Bench<'r> {
        Bench { reading, instead: None, rigs: BTreeMap::new() }
    }

    /// Machines on which one class has other parameters than the policy gives it.
    pub(crate) fn instead(reading: &'r PolicyModel, class: &ClassDump, params: ClassParams) -> Bench<'r> {
        let op = ClassOp {
            verb: Verb::Change,
            dev: class.dev.clone(),
            parent: class.parent,
            classid: class.classid,
            kind: Some(class.kind.name().into()),
            params: Some(params),
            estimator: None,
        };
        Bench { reading, instead: Some(Op::Class(op)), rigs: BTreeMap::new() }
    }

    /// Machines on which the qdisc of a command of tc is as the command would make it with these words;
    /// `None`: they cannot be parsed.
    pub(crate) fn rebuilt(reading: &'r PolicyModel, words: &[String]) -> Option<Bench<'r>> {
        let parsed = tc::parse(words, &reading.env()).ok()?;
        let tc::TcCommand::Apply(Op::Qdisc(op)) = parsed.command else { return None };
        let op = QdiscOp { verb: Verb::Change, ..op };
        Some(Bench { reading, instead: Some(Op::Qdisc(op)), rigs: BTreeMap::new() })
    }

    /// A machine without a backlog and with full buckets; `None` where packets cannot be sent to one of the
    /// classes by its number, or where what it sends depends on where in it they go.
    fn rig(&mut self, dev: &str, frame: u32, classes: &[Handle]) -> Option<&mut Rig> {
        let led = |class: &Handle| {
            let is_leaf = || self.reading.class(dev, *class).is_none_or(|class| self.reading.is_leaf(class));
            *class == Handle::NONE || (self.reading.is_led_by_number(dev, class.qdisc()) && is_leaf())
        };
        if !classes.iter().all(led)
            || classes.iter().any(|class| depends_on_band(self.reading, dev, *class))
            || is_between(self.reading, dev)
        {
            return None;
        }
        if !self.rigs.contains_key(dev) {
            self.rigs.insert(dev.to_owned(), Rig::new(self.reading, dev, self.instead.as_ref())?);
        }
        // A qdisc that lets nothing go (plug) still holds what was offered before.
        if !self.rigs.get_mut(dev)?.empty() {
            self.rigs.insert(dev.to_owned(), Rig::new(self.reading, dev, self.instead.as_ref())?);
        }
        let rig = self.rigs.get_mut(dev)?;
        rig.frame = frame;
        rig.empty().then_some(rig)
    }

    /// As [`fill`], of a device's class.
    pub(crate) fn fill(
        &mut self,
        dev: &str,
        class: Handle,
        others: &[Handle],
        frame: u32,
        most: usize,
    ) -> Option<Filled> {
        self.fill_beside(dev, class, others, frame, most).ok()
    }

    /// Fills one queue beside others; where that did not end, how far it came.
    pub(crate) fn fill_beside(
        &mut self,
        dev: &str,
        class: Handle,
        others: &[Handle],
        frame: u32,
        most: usize,
    ) -> Result<Filled, Unfinished> {
        let rig = self.rig(dev, frame, &with(class, others)).ok_or(Unfinished::Unmeasured)?;
        fill(rig, class, others, most)
    }

    /// As [`survivors`], of a device's class.
    pub(crate) fn survivors(&mut self, dev: &str, class: Handle, frame: u32, offered: u32) -> Option<u32> {
        Some(survivors(self.rig(dev, frame, &[class])?, class, offered))
    }

    /// How many of [`WATCHED`] frames with this ECN field a class's queue marks, in which so many frames are
    /// kept waiting if it takes them, and how many waited at most; `None`: it cannot be measured, or nothing
    /// limits what leaves.
    pub(crate) fn marked(
        &mut self,
        dev: &str,
        class: Handle,
        frame: u32,
        (backlog, ecn): (u32, u8),
    ) -> Option<(u32, u32)> {
        marked(self.rig(dev, frame, &[class])?, class, backlog, ecn)
    }

    /// As [`together`], of classes of a device.
    pub(crate) fn together(&mut self, dev: &str, classes: &[Handle], frame: u32) -> Option<Rate> {
        together(self.rig(dev, frame, classes)?, classes)
    }

    /// As [`stretch`], of a device's class.
    pub(crate) fn stretch(
        &mut self,
        dev: &str,
        class: Handle,
        others: &[Handle],
        frame: u32,
        turn: u32,
    ) -> Option<Stretch> {
        stretch(self.rig(dev, frame, &with(class, others))?, class, others, turn)
    }

    /// The rate at which one class sends that always has something to send; the others are idle.
    pub(crate) fn rate(&mut self, dev: &str, class: Handle, frame: u32) -> Option<Rate> {
        self.together(dev, &[class], frame)
    }

    /// Bytes that one class sends in a time after it was idle, while it always has something to send.
    pub(crate) fn first(&mut self, dev: &str, class: Handle, frame: u32, time: Nanos) -> Option<u64> {
        let classes = [class];
        let rig = self.rig(dev, frame, &classes)?;
        let (until, mut busy) = (Time(rig.now.0 + time.0), Busy::new(&classes, FEW, 0));
        busy.begin(rig);
        for sent in 0..MAX_SENT as u64 {
            let number = rig.next()?;
            if rig.now > until {
                return Some(sent * u64::from(frame));
            }
            busy.follow(rig, number);
        }
        None
    }

    /// Does anything on a device hold packets back for a time of its own?
    pub(crate) fn delays(&self, dev: &str) -> bool {
        longest_delay(self.reading, dev) > Nanos(0)
    }
}

/// Is what a device's queues send not decided by them alone? Filters of clsact send packets elsewhere or hold
/// them back before; what an ifb sends of another device's packets goes on to that one's queues.
fn is_between(reading: &PolicyModel, dev: &str) -> bool {
    reading.filters.iter().any(|dump| {
        let led = redirects(dump).any(|to| to == dev);
        let before = dump.dev == dev && dump.parent == CLSACT_EGRESS;
        led && !reading.arrives(dump) || before && !acts(dump).all(only_writes)
    })
}

/// Does an action leave alone whether and where a packet goes?
fn only_writes(act: &Act) -> bool {
    matches!(act, Act::Skbedit(_) | Act::Connmark(_) | Act::Ctinfo(_))
}

/// Does a class hold several bands or classes, of which one may hold packets back? Then what it sends is that
/// of no one of them: frames sent by the class's number all go to the same.
fn depends_on_band(reading: &PolicyModel, dev: &str, class: Handle) -> bool {
    let mut above: Vec<&QdiscDump> =
        reading.class(dev, class).and_then(|class| reading.child(class)).into_iter().collect();
    let (mut divided, mut holds) = (false, false);
    // More qdiscs than a device has cannot be below a class.
    for _ in 0..=reading.qdiscs.len() {
        let Some(qdisc) = above.pop() else { break };
        divided |= !matches!(qdisc.kind.classes(), ClassLayout::None | ClassLayout::Flows | ClassLayout::One);
        holds |= reading.may_hold_back(qdisc);
        let below = |inner: &&QdiscDump| {
            inner.dev == dev && !qdisc.handle.is_none() && inner.parent.qdisc() == qdisc.handle
        };
        above.extend(reading.qdiscs.iter().filter(below));
    }
    divided && holds
}

/// The longest delay of a packet by the netems on its way through a device; the greatest value where it is
/// unknown.
fn longest_delay(reading: &PolicyModel, dev: &str) -> Nanos {
    let own = |qdisc: &QdiscDump| match &qdisc.params {
        QdiscParams::Netem(netem) => {
            // No distribution of tc's goes beyond so many times the jitter.
            let jitter = netem.jitter_ns.saturating_abs().saturating_mul(4);
            match netem.slot {
                // How much such a netem lets through depends on how long its packets have waited already.
                Some(_) => u64::MAX,
                None => netem.latency_ns.max(0).saturating_add(jitter).unsigned_abs(),
            }
        }
        _ => 0,
    };
    let on_way = |qdisc: &QdiscDump| reading.above(qdisc).map(own).fold(own(qdisc), u64::saturating_add);
    let on_device = reading.qdiscs.iter().filter(|qdisc| qdisc.dev == dev);
    Nanos(on_device.map(on_way).max().unwrap_or(0))
}

fn with(class: Handle, others: &[Handle]) -> Vec<Handle> {
    [class].iter().chain(others).copied().collect()
}

/// The rate at which some classes send together that always have something to send, bursts aside; others are
/// idle. `None`: nothing limits them, or it would take too long to see.
fn together(rig: &mut Rig, classes: &[Handle]) -> Option<Rate> {
    Some(rig.roomy(classes)?.0)
}

/// The most that a class sends in a row while `others` are busy too, initial bursts aside, over several turns
/// of as many bytes; `None` where packets cannot be sent to the classes by number, or where that would take
/// too long.
fn stretch(rig: &mut Rig, class: Handle, others: &[Handle], turn: u32) -> Option<Stretch> {
    // A packet that is delayed has no turns of its own, and a dropped one ends a turn.
    if rig.counted {
        return None;
    }
    let all = with(class, others);
    for (number, class) in (0..).zip(&all) {
        // Enough for its child never to run dry before the next comes.
        for _ in 0..4 {
            let _ = rig.offer(*class, number);
        }
    }
    let turns = (turn / rig.frame.max(1) + 1).checked_mul(TURNS)?.checked_mul(all.len() as u32)?;
    let frames = MEASURED.max(turns);
    let skipped = rig.skipped(SKIPPED);
    if frames.saturating_add(skipped) as usize > MAX_SENT {
        return None;
    }
    let (mut longest, mut now) = (Stretch { bytes: 0, wait: Nanos(0) }, Stretch { bytes: 0, wait: Nanos(0) });
    let mut begun = None;
    for sent in 0..skipped + frames {
        let number = rig.next()?;
        let _ = rig.offer(*all.get(number as usize)?, number);
        if number == 0 {
            now.bytes += u64::from(rig.frame);
            continue;
        }
        // What the buckets held at first is no turn; nor is what began with it.
        if let Some(begun) = begun.filter(|_| sent >= skipped) {
            now.wait = rig.now.since(begun);
            longest = if now.bytes > longest.bytes { now } else { longest };
        }
        begun = Some(rig.now);
        now.bytes = 0;
    }
    Some(longest)
}

/// How many of so many frames, offered to a class in one instant, ever leave.
fn survivors(rig: &mut Rig, class: Handle, offered: u32) -> u32 {
    for _ in 0..offered {
        let _ = rig.offer(class, 0);
    }
    (0..offered).take_while(|_| rig.next().is_some()).count() as u32
}

/// Keeps so many frames of one ECN field waiting, where the queue takes them; counts those that leave with
/// CE, and those that waited at most.
fn marked(rig: &mut Rig, class: Handle, backlog: u32, ecn: u8) -> Option<(u32, u32)> {
    let begun = rig.now;
    // Each is a flow of its own: choke drops two of the same.
    let mut port = 0_u16;
    let mut offer = |rig: &mut Rig| {
        port = port.wrapping_add(1);
        let mut head = datagram(port);
        head.set_dsfield(ecn);
        let _ = rig.offer_as(class, 0, head);
    };
    for _ in 0..backlog {
        offer(rig);
    }
    let (mut marked, mut waited) = (0, 0);
    for _ in 0..WATCHED {
        waited = waited.max(rig.gateway.qlen(rig.device));
        let left = rig.next_packet()?;
        marked += u32::from(left.ecn == CE);
        offer(rig);
    }
    (rig.now > begun).then_some((marked, waited))
}

/// Fills the queue of `class` at once with frames, at most `most` of them, while `others` always have
/// something to send.
fn fill(rig: &mut Rig, class: Handle, others: &[Handle], most: usize) -> Result<Filled, Unfinished> {
    let unmeasured = Unfinished::Unmeasured;
    let mut busy = Busy::new(others, FEW, 1);
    if rig.delay > Nanos(0) && !others.is_empty() {
        busy.room = rig.roomy(others).ok_or(unmeasured)?.1;
        if !rig.empty() {
            return Err(unmeasured);
        }
        busy.begin(rig);
        rig.leave(&mut busy, SKIPPED, 4).ok_or(unmeasured)?;
    } else {
        busy.begin(rig);
    }
    let mut taken = 0;
    while taken < most.min(MAX_PACKETS / 2) && matches!(rig.offer(class, 0), XmitStatus::Queued) {
        taken += 1;
    }
    let begun = rig.now;
    let (mut left, mut last) = (0, begun);
    // What an idle bucket lets through at once makes room for more: a queue that is kept full waits behind
    // that. Where no more packets come than these, it does not.
    let mut more = if most >= FULL { MAX_PACKETS } else { 0 };
    for _ in 0..MAX_SENT {
        if left == taken {
            break;
        }
        let next = match rig.next() {
            // A packet dropped on purpose counts as taken, and never leaves.
            None if others.is_empty() => {
                taken = left;
                break;
            }
            next => next.ok_or(unmeasured)?,
        };
        match next {
            0 if more > 0 && rig.now == begun && matches!(rig.offer(class, 0), XmitStatus::Queued) => {
                more -= 1
            }
            0 => {
                left += 1;
                last = rig.now;
            }
            number => busy.follow(rig, number),
        }
    }
    match (left == taken, taken) {
        (_, 0) => Err(unmeasured),
        // Its bucket holds more than that.
        _ if more == 0 && most >= FULL => Err(unmeasured),
        (true, _) => Ok(Filled { packets: taken as u32, wait: last.since(begun) }),
        (false, _) => {
            let packets = (taken - left) as u32;
            Err(Unfinished::Waiting { packets, after: rig.now.since(begun) })
        }
    }
}

/// Classes that always have something to send.
struct Busy<'c> {
    classes: &'c [Handle],
    /// The number of the first one's packets; the others' follow.
    first: u32,
    /// Packets that each is to have waiting.
    room: u32,
    /// The backlog of each class in packets, where something delays packets; else it is not read.
    waiting: Vec<u32>,
    /// Packets of each that have left.
    left: Vec<u32>,
    /// Its queue had no room for so many.
    is_full: Vec<bool>,
    /// One of them had nothing to send after all.
    is_dry: bool,
}

impl<'c> Busy<'c> {
    fn new(classes: &'c [Handle], room: u32, first: u32) -> Busy<'c> {
        let all = classes.len();
        Busy {
            classes,
            first,
            room,
            waiting: vec![0; all],
            left: vec![0; all],
            is_full: vec![false; all],
            is_dry: false,
        }
    }

    /// Gives each what it is to have, in turns: what holds them all may be shared.
    fn begin(&mut self, rig: &mut Rig) {
        for few in (0..self.room).step_by(FEW as usize) {
            for at in 0..self.classes.len() {
                self.top_up(rig, at, self.room.min(few + FEW));
            }
        }
    }

    fn top_up(&mut self, rig: &mut Rig, at: usize, room: u32) {
        // A packet dropped on purpose is offered again, within reason.
        for _ in 0..MOST_LOST + room {
            if self.waiting[at] >= room {
                return;
            }
            let before = rig.waiting();
            match rig.offer(self.classes[at], self.first + at as u32) {
                XmitStatus::Queued if rig.counted => {
                    self.waiting[at] += rig.waiting().saturating_sub(before);
                }
                XmitStatus::Queued => self.waiting[at] += 1,
                _ => {
                    self.is_full[at] = true;
                    return;
                }
            }
        }
        self.is_dry |= self.waiting[at] == 0;
    }

    /// After a packet of one has left, another of the same comes.
    fn follow(&mut self, rig: &mut Rig, number: u32) {
        let at = number.saturating_sub(self.first) as usize;
        if at >= self.classes.len() {
            return;
        }
        self.left[at] += 1;
        self.waiting[at] = self.waiting[at].saturating_sub(1);
        // A drop on the way left no trace but this.
        if self.classes.len() == 1 && rig.counted {
            self.waiting[at] = self.waiting[at].min(rig.waiting());
        }
        self.top_up(rig, at, self.room);
    }

    /// Whether each had a backlog above what is delayed at a time, or as many packets as its queue takes.
    fn had_enough(&self, took: Nanos, delay: Nanos) -> bool {
        let value_of = |left: &u32| u128::from(*left) * u128::from(delay.0) / u128::from(took.0.max(1));
        let enough = |(left, is_full): (&u32, &bool)| *is_full || value_of(left) * 2 <= u128::from(self.room);
        self.left.iter().zip(&self.is_full).all(enough)
    }
}

struct Rig {
    gateway: Gateway,
    device: DeviceId,
    pool: Pool,
    draws: Seeded,
    now: Time,
    frame: u32,
    /// The longest delay of a packet on purpose.
    delay: Nanos,
    /// Something on the device drops or duplicates packets on purpose: the backlog is counted.
    counted: bool,
    /// Bytes that leave until its buckets hold no more than they always do, bit by bit.
    settling: u64,
}

/// A frame that left.
struct Departed {
    /// The number that it was offered with.
    ident: u32,
    /// Its ECN field.
    ecn: u8,
}

/// What a bucket adds to a rate by emptying so many times as slowly is not waited for.
const MOST_TIMES: u128 = 50;

/// Bytes that may leave before the buckets of a device's classes and of its tbf are as empty as they become
/// when all is busy: a bucket empties as fast as the next limit exceeds its rate.
fn settling(gateway: &mut Gateway, device: DeviceId) -> u64 {
    let bytes = |rate: Rate, bucket: Ticks, limit: Rate| {
        let held = u128::from(rate.0).saturating_mul(bucket.duration().0.into()) / 1_000_000_000;
        let until = match limit.0.checked_sub(rate.0) {
            // It never empties: the next limit keeps it full.
            Some(0) => 0,
            // As good as never: what it adds to the rate is little.
            Some(more) if u128::from(more) * MOST_TIMES < u128::from(limit.0) => held * MOST_TIMES,
            Some(more) => held.saturating_mul(limit.0.into()) / u128::from(more),
            None => held,
        };
        u64::try_from(until).unwrap_or(u64::MAX)
    };
    let mut sum = 0_u64;
    for class in gateway.classes(CARRIED_OUT_AT, device) {
        let ClassParams::Htb(htb) = &class.params else { continue };
        // What lends has no limit of its own but that of what is above it.
        let own = bytes(htb.rate.rate, htb.buffer, htb.ceil.rate);
        let lent = bytes(htb.ceil.rate, htb.cbuffer, Rate(htb.ceil.rate.0.saturating_mul(2)));
        sum = sum.saturating_add(own).saturating_add(lent);
    }
    for qdisc in gateway.qdiscs(CARRIED_OUT_AT, device) {
        let QdiscParams::Tbf(tbf) = &qdisc.params else { continue };
        let peak = tbf.peak.as_ref().map_or(Rate(u64::MAX), |peak| peak.rate);
        sum = sum.saturating_add(bytes(tbf.rate.rate, tbf.buffer, peak));
    }
    sum
}

/// The command that takes a device's clsact away.
fn removal(dev: &str) -> Option<Op> {
    let words = ["qdisc", "del", "dev", dev, "clsact"].map(str::to_owned);
    match tc::parse(&words, &Env::default()).ok()?.command {
        tc::TcCommand::Apply(op) => Some(op),
        _ => None,
    }
}

impl Rig {
    /// `None`: there is no such device, or what should be otherwise is refused.
    fn new(reading: &PolicyModel, dev: &str, instead: Option<&Op>) -> Option<Rig> {
        let mut gateway = reading.machine();
        let device = gateway.device(dev)?;
        let (mut draws, mut pool) = (Seeded::new(1), Pool::new(MAX_PACKETS));
        // Packets name their class by their priority, which filters there may write over.
        let hook = reading.qdiscs.iter().any(|qdisc| qdisc.dev == dev && qdisc.kind == Kind::Clsact);
        let unhooked = hook.then(|| removal(dev)).flatten();
        for op in unhooked.as_ref().into_iter().chain(instead) {
            let world = GatewayContext { now: CARRIED_OUT_AT, pool: &mut pool, random: &mut draws };
            gateway.apply(world, op).ok()?;
        }
        let delay = longest_delay(reading, dev);
        let counted = reading.qdiscs.iter().any(|qdisc| qdisc.dev == dev && qdisc.kind == Kind::Netem);
        let settling = settling(&mut gateway, device);
        Some(Rig { gateway, device, pool, draws, now: CARRIED_OUT_AT, frame: 0, delay, counted, settling })
    }

    /// Frames that leave before a rate is measured.
    fn skipped(&self, least: u32) -> u32 {
        let settling = self.settling / u64::from(self.frame.max(1));
        least.max(u32::try_from(settling).unwrap_or(u32::MAX))
    }

    /// The backlog in packets, where it is read.
    fn waiting(&self) -> u32 {
        if self.counted { self.gateway.qlen(self.device) } else { 0 }
    }

    /// The rate of classes that always have something to send, and the backlog of each for that in packets:
    /// more than any delay on the way, or as many as its queue takes.
    fn roomy(&mut self, classes: &[Handle]) -> Option<(Rate, u32)> {
        if self.delay == Nanos(u64::MAX) {
            return None;
        }
        let mut room = if self.delay > Nanos(0) { ROOMY } else { FEW };
        let frames = |few: u32, each: u32| few.max(each * classes.len() as u32).min(MAX_SENT as u32 / 3);
        while room as usize * classes.len() <= MAX_PACKETS / 2 {
            let mut busy = Busy::new(classes, room, 0);
            busy.begin(self);
            // What the buckets held at first is not the rate.
            self.leave(&mut busy, self.skipped(frames(SKIPPED, 8)), 4)?;
            let begun = self.now;
            busy.left.fill(0);
            let sent = self.leave(&mut busy, frames(MEASURED, MEASURED_EACH), DELAYS)?;
            let took = self.now.since(begun);
            if busy.had_enough(took, self.delay) {
                return Some((self.rate_since(begun, sent)?, room));
            }
            if !self.empty() {
                return None;
            }
            room *= 4;
        }
        None
    }

    /// Lets so many frames leave at least, and so many of the longest delays pass; how many left.
    fn leave(&mut self, busy: &mut Busy<'_>, frames: u32, delays: u64) -> Option<u32> {
        let until = Time(self.now.0.saturating_add(self.delay.0.saturating_mul(delays)));
        for sent in 0..MAX_SENT as u32 {
            if sent >= frames && self.now >= until {
                return Some(sent);
            }
            let number = self.next()?;
            busy.follow(self, number);
            if busy.is_dry {
                return None;
            }
        }
        None
    }

    /// Lets everything leave, and time pass until the state is fresh; false if it does not end.
    fn empty(&mut self) -> bool {
        for _ in 0..2 * MAX_PACKETS {
            if self.next().is_none() {
                self.now = Time(self.now.0 + PAUSE.0);
                return self.gateway.qlen(self.device) == 0;
            }
        }
        false
    }

    fn world(&mut self) -> (GatewayContext<'_>, &mut Gateway) {
        (GatewayContext { now: self.now, pool: &mut self.pool, random: &mut self.draws }, &mut self.gateway)
    }

    /// Offers a frame to a class, by its number.
    fn offer(&mut self, class: Handle, ident: u32) -> XmitStatus {
        self.offer_as(class, ident, datagram(PORT))
    }

    /// As [`Rig::offer`], a frame that begins so.
    fn offer_as(&mut self, class: Handle, ident: u32, head: Head) -> XmitStatus {
        let mut meta = Meta::of(&head, self.frame);
        (meta.priority, meta.ident) = (class.0, ident);
        let Some(pkt) = self.pool.insert(meta, head) else { return XmitStatus::Refused };
        let device = self.device;
        let (world, gateway) = self.world();
        gateway.offer(world, device, EgressPath::Direct, pkt)
    }

    /// The rate of so many frames that left since then; `None`: at once, for nothing limits them.
    fn rate_since(&self, begun: Time, frames: u32) -> Option<Rate> {
        let took = self.now.since(begun).0;
        let bytes = u128::from(frames) * u128::from(self.frame);
        (took > 0).then(|| Rate((bytes * 1_000_000_000 / u128::from(took)) as u64))
    }

    /// The number of the next frame that leaves, time going on until it does; `None`: none ever will.
    fn next(&mut self) -> Option<u32> {
        self.next_packet().map(|left| left.ident)
    }

    /// The next frame that leaves, as [`Rig::next`].
    fn next_packet(&mut self) -> Option<Departed> {
        for _ in 0..1000 {
            let device = self.device;
            let (world, gateway) = self.world();
            if let Some(pkt) = gateway.poll(world, device) {
                let meta = self.pool.meta(&pkt);
                let left = Departed { ident: meta.ident, ecn: meta.ecn() };
                self.pool.release(pkt);
                return Some(left);
            }
            self.now = self.gateway.timeout(device)?.max(self.now);
            self.gateway.fire(self.now, device);
        }
        None
    }
}

/// The source port of datagrams of one conversation.
const PORT: u16 = 40_000;

/// The front of a UDP datagram from a port.
fn datagram(port: u16) -> Head {
    let mut bytes = [0_u8; 28];
    bytes[0] = 0x45;
    bytes[8] = 64;
    bytes[9] = proto::UDP;
    bytes[12..20].copy_from_slice(&[192, 0, 2, 7, 198, 51, 100, 9]);
    bytes[20..22].copy_from_slice(&port.to_be_bytes());
    bytes[22..24].copy_from_slice(&(PORT + 1).to_be_bytes());
    Head::from_network(ethertype::IPV4, &bytes)
}

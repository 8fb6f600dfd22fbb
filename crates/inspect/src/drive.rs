//! The engine under load: what a class's queue does when it is kept full, alone and while all others are busy too.

use crate::reading::{CARRIED_OUT_AT, Reading};
use std::collections::BTreeMap;
use tidegate_gateway::{DeviceId, Gateway, Offer, Route, World};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Handle, Head, Meta, Pool, Rate, Seeded, Span, Time};
use tidegate_policy::dump::ClassDump;
use tidegate_policy::{ClassOp, ClassParams, Op, Verb};

/// Packets that may wait at once; a queue that holds more is full enough.
const MAX_PACKETS: usize = 20_000;
/// Packets that may leave in one measurement.
const MAX_SENT: usize = 60_000;

/// Frames that leave before a rate is measured, and while it is.
const SKIPPED: u32 = 500;
const MEASURED: u32 = 500;
/// Turns of a class that are watched.
const TURNS: u32 = 4;

/// Between two measurements.
const PAUSE: Span = Span::millis(600_000);

/// What a full queue showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    /// Packets it took at once.
    pub(crate) packets: u32,
    /// From the offer of the last of them until it left.
    pub(crate) wait: Span,
}

/// The most that a class sent in a row while others had something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Bytes of it, link headers included.
    pub(crate) bytes: u64,
    /// Between the packets of others before and after it.
    pub(crate) wait: Span,
}

/// Machines on which measurements are made, one after another: making one takes as long as the policy is.
pub(crate) struct Bench<'r> {
    reading: &'r Reading,
    /// What is otherwise than the policy says, to see whether that is the cause.
    instead: Option<Op>,
    rigs: BTreeMap<String, Rig>,
}

impl<'r> Bench<'r> {
    pub(crate) fn new(reading: &'r Reading) -> Bench<'r> {
        Bench { reading, instead: None, rigs: BTreeMap::new() }
    }

    /// Machines on which one class has other parameters than the policy gives it.
    pub(crate) fn instead(reading: &'r Reading, class: &ClassDump, params: ClassParams) -> Bench<'r> {
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

    /// A machine on which nothing waits and all buckets are full; `None` where packets cannot be led to one of the
    /// classes by its number.
    fn rig(&mut self, dev: &str, frame: u32, classes: &[Handle]) -> Option<&mut Rig> {
        let led = |class: &Handle| {
            let is_leaf = || self.reading.class(dev, *class).is_none_or(|class| self.reading.is_leaf(class));
            *class == Handle::NONE || (self.reading.is_led_by_number(dev, class.qdisc()) && is_leaf())
        };
        if !classes.iter().all(led) {
            return None;
        }
        if !self.rigs.contains_key(dev) {
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
        fill(self.rig(dev, frame, &with(class, others))?, class, others, most)
    }

    /// As [`survivors`], of a device's class.
    pub(crate) fn survivors(&mut self, dev: &str, class: Handle, frame: u32, offered: u32) -> Option<u32> {
        Some(survivors(self.rig(dev, frame, &[class])?, class, offered))
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

    /// As [`rate`], of a device's class.
    pub(crate) fn rate(&mut self, dev: &str, class: Handle, frame: u32) -> Option<Rate> {
        rate(self.rig(dev, frame, &[class])?, class)
    }
}

fn with(class: Handle, others: &[Handle]) -> Vec<Handle> {
    [class].iter().chain(others).copied().collect()
}

/// The rate at which a class sends that always has something to send, bursts aside; the others are idle.
fn rate(rig: &mut Rig, class: Handle) -> Option<Rate> {
    for _ in 0..4 {
        let _ = rig.offer(class, 0);
    }
    // What the buckets held at first is not the rate.
    for _ in 0..SKIPPED {
        rig.next()?;
        let _ = rig.offer(class, 0);
    }
    let begun = rig.now;
    for _ in 0..MEASURED {
        rig.next()?;
        let _ = rig.offer(class, 0);
    }
    rig.rate_since(begun, MEASURED)
}

/// The rate at which several classes send together that always have something to send, bursts aside.
fn together(rig: &mut Rig, classes: &[Handle]) -> Option<Rate> {
    for (number, class) in (0..).zip(classes) {
        // Enough for its child never to run dry before the next comes.
        for _ in 0..4 {
            let _ = rig.offer(*class, number);
        }
    }
    let frames = |few: u32| few.max(8 * classes.len() as u32);
    let mut leave = |frames: u32| {
        for _ in 0..frames {
            let number = rig.next()?;
            let _ = rig.offer(*classes.get(number as usize)?, number);
        }
        Some(rig.now)
    };
    // What the buckets held at first is not the rate.
    let begun = leave(frames(SKIPPED))?;
    leave(frames(MEASURED))?;
    rig.rate_since(begun, frames(MEASURED))
}

/// The most that a class sends in a row while `others` are busy too, bursts at first aside, over several turns of as
/// many bytes; `None` where packets cannot be led to the classes by number, or where that would take too long.
fn stretch(rig: &mut Rig, class: Handle, others: &[Handle], turn: u32) -> Option<Stretch> {
    let all = with(class, others);
    for (number, class) in (0..).zip(&all) {
        // Enough for its child never to run dry before the next comes.
        for _ in 0..4 {
            let _ = rig.offer(*class, number);
        }
    }
    let turns = (turn / rig.frame.max(1) + 1).checked_mul(TURNS)?.checked_mul(all.len() as u32)?;
    let frames = MEASURED.max(turns);
    if frames as usize > MAX_SENT {
        return None;
    }
    let (mut longest, mut now) = (Stretch { bytes: 0, wait: Span(0) }, Stretch { bytes: 0, wait: Span(0) });
    let mut begun = None;
    for sent in 0..SKIPPED + frames {
        let number = rig.next()?;
        let _ = rig.offer(*all.get(number as usize)?, number);
        if number == 0 {
            now.bytes += u64::from(rig.frame);
            continue;
        }
        // What the buckets held at first is no turn; nor is what began with it.
        if let Some(begun) = begun.filter(|_| sent >= SKIPPED) {
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

/// Fills the queue of `class` at once with frames, at most `most` of them, while `others` always have something to
/// send; `None` where packets cannot be led to the class by its number, or the measurement would not end.
fn fill(rig: &mut Rig, class: Handle, others: &[Handle], most: usize) -> Option<Filled> {
    for (number, other) in (1..).zip(others) {
        // Enough for its child never to run dry before the next comes.
        for _ in 0..4 {
            let _ = rig.offer(*other, number);
        }
    }
    let mut taken = 0;
    while taken < most.min(MAX_PACKETS / 2) && matches!(rig.offer(class, 0), Offer::Queued) {
        taken += 1;
    }
    let begun = rig.now;
    let (mut left, mut last) = (0, begun);
    for _ in 0..MAX_SENT {
        if left == taken {
            break;
        }
        let next = match rig.next() {
            // What is lost on purpose counts as taken, and never leaves.
            None if others.is_empty() => {
                taken = left;
                break;
            }
            next => next?,
        };
        match next {
            0 => {
                left += 1;
                last = rig.now;
            }
            number => {
                let _ = rig.offer(others[number as usize - 1], number);
            }
        }
    }
    (left == taken && taken > 0).then_some(Filled { packets: taken as u32, wait: last.since(begun) })
}

struct Rig {
    gateway: Gateway,
    device: DeviceId,
    pool: Pool,
    draws: Seeded,
    now: Time,
    frame: u32,
}

impl Rig {
    /// `None`: there is no such device, or what should be otherwise is refused.
    fn new(reading: &Reading, dev: &str, instead: Option<&Op>) -> Option<Rig> {
        let mut gateway = reading.machine();
        let device = gateway.device(dev)?;
        let (mut draws, mut pool) = (Seeded::new(1), Pool::new(MAX_PACKETS));
        if let Some(op) = instead {
            let world = World { now: CARRIED_OUT_AT, pool: &mut pool, draws: &mut draws };
            gateway.apply(world, op).ok()?;
        }
        Some(Rig { gateway, device, pool, draws, now: CARRIED_OUT_AT, frame: 0 })
    }

    /// Lets everything leave, and time pass until nobody remembers it; false if it does not end.
    fn empty(&mut self) -> bool {
        for _ in 0..2 * MAX_PACKETS {
            if self.next().is_none() {
                self.now = Time(self.now.0 + PAUSE.0);
                return self.gateway.qlen(self.device) == 0;
            }
        }
        false
    }

    fn world(&mut self) -> (World<'_>, &mut Gateway) {
        (World { now: self.now, pool: &mut self.pool, draws: &mut self.draws }, &mut self.gateway)
    }

    /// Offers a frame to a class, by its number.
    fn offer(&mut self, class: Handle, ident: u32) -> Offer {
        let head = datagram();
        let mut meta = Meta::of(&head, self.frame);
        (meta.priority, meta.ident) = (class.0, ident);
        let Some(pkt) = self.pool.insert(meta, head) else { return Offer::Refused };
        let device = self.device;
        let (world, gateway) = self.world();
        gateway.offer(world, device, Route::Direct, pkt)
    }

    /// The rate of so many frames that left since then; `None`: at once, for nothing limits them.
    fn rate_since(&self, begun: Time, frames: u32) -> Option<Rate> {
        let took = self.now.since(begun).0;
        let bytes = u128::from(frames) * u128::from(self.frame);
        (took > 0).then(|| Rate((bytes * 1_000_000_000 / u128::from(took)) as u64))
    }

    /// The number of the next frame that leaves, time going on until it does; `None`: none ever will.
    fn next(&mut self) -> Option<u32> {
        for _ in 0..1000 {
            let device = self.device;
            let (world, gateway) = self.world();
            if let Some(pkt) = gateway.poll(world, device) {
                let ident = self.pool.meta(&pkt).ident;
                self.pool.release(pkt);
                return Some(ident);
            }
            self.now = self.gateway.timeout(device)?.max(self.now);
            self.gateway.fire(self.now, device);
        }
        None
    }
}

/// The front of a UDP datagram.
fn datagram() -> Head {
    let mut octets = [0_u8; 28];
    octets[0] = 0x45;
    octets[8] = 64;
    octets[9] = proto::UDP;
    octets[12..20].copy_from_slice(&[192, 0, 2, 7, 198, 51, 100, 9]);
    octets[20..24].copy_from_slice(&[0x9c, 0x40, 0x9c, 0x41]);
    Head::from_network(ethertype::IPV4, &octets)
}

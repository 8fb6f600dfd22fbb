//! The engine: the model machine between a backend and the clock.
//!
//! ```text
//! PacketIo ── receive ──▶ Engine ── offer ──▶ Gateway: trees, filters, ifb ── poll ──▶ Engine ── pass | drop ──▶ PacketIo
//! ```
//! The driver passes the time and lends the backend; nothing here sleeps, reads a clock or opens anything.
//! Timers run at the time they were due, not at the time of the wake-up: a rate stays the rate although every
//! sleep is a little too long. How much is made up for is bounded ([`CREDIT`]).

mod fast_path;
mod size;
mod watch;

pub use fast_path::Session;
pub use size::link_rate;
pub use watch::{Captured, ClassSeen, PacketOutcome, PacketSojourn, SojournHistogram, Watch};

use crate::packet_io::{AttachPoint, Came, Leaving, PacketIo, Passed, TrafficDirection};
use fast_path::FastPath;
use std::collections::BTreeMap;
use std::io;
use tidegate_gateway::{
    DeviceId, DeviceSpec, EgressPath, Gateway, GatewayContext, ReceiveOutcome, XmitStatus,
};
use tidegate_packet::header::ethertype;
use tidegate_packet::{FwMark, Handle, Head, Meta, Nanos, Pkt, Pool, Seeded, Time};
use tidegate_policy::{Op, TcError};

/// The longest time that is made up for: after a longer pause what was missed is missed.
pub const CREDIT: Nanos = Nanos(10_000_000);
/// Packets taken in before those that may leave do.
const BATCH: usize = 64;
/// How often devices are served in a row because others redirected packets to them.
const MOST_ROUNDS: u32 = 64;
/// Timers carried out before the backend is looked at again.
const MOST_TIMERS: usize = 4096;

/// What the engine did with packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Taken in.
    pub received: u64,
    /// Let go.
    pub passed: u64,
    /// Of those, passed by the queues: what must never be starved.
    pub fast_path: u64,
    /// Dropped by the policy.
    pub dropped: u64,
    /// Dropped because the pool was full: the limit of memory.
    pub no_room: u64,
    /// Dropped because the device's own queue was full.
    pub full: u64,
    /// Copies that the backend cannot make, and packets redirected to a device without a backend.
    pub nowhere: u64,
    /// Nanoseconds that timers were carried out late, the most.
    pub latest: u64,
    /// Times that they were later than is made up for ([`CREDIT`]).
    pub late: u64,
}

/// What is known about a packet inside, by its slot.
#[derive(Clone, Copy, Debug, Default)]
struct HeldPacket {
    ticket: Option<u32>,
    place: usize,
    came: Time,
    mark: u32,
    dsfield: u8,
    /// The DS field with which it left the last device that it waited at.
    noted: u8,
}

/// The model machine, with its devices' numbers at the backend.
pub struct Engine {
    gateway: Gateway,
    pool: Pool,
    random: Seeded,
    now: Time,
    places: Vec<(DeviceId, bool)>,
    devices: Vec<DeviceId>,
    held: Vec<HeldPacket>,
    incoming: Vec<(Pkt, usize)>,
    counts: EngineStats,
    watch: Option<Watch>,
    /// The kernel's numbers of devices.
    numbers: Vec<(u32, String)>,
    express: Option<FastPath>,
}

impl Engine {
    /// A machine with these devices; `places` are the backend's, each on one of them. `most`: packets held at
    /// once, over all devices.
    pub fn new(devices: &[(String, DeviceSpec)], places: &[AttachPoint], most: usize, seed: u64) -> Engine {
        let mut gateway = Gateway::new();
        for (name, spec) in devices {
            gateway.add_device(name, *spec);
        }
        let mut pool = Pool::new(most);
        pool.follow_copies();
        let mut engine = Engine {
            gateway,
            pool,
            random: Seeded::new(seed),
            now: Time(0),
            places: Vec::new(),
            devices: Vec::new(),
            held: Vec::new(),
            incoming: Vec::with_capacity(BATCH),
            counts: EngineStats::default(),
            watch: None,
            numbers: Vec::new(),
            express: None,
        };
        engine.settle_in(places);
        engine
    }

    /// Places of the backend are these from now on; those on devices that are not there get what is offered
    /// there unqueued.
    pub fn settle_in(&mut self, places: &[AttachPoint]) {
        self.places.clear();
        for place in places {
            let device = match self.gateway.device(&place.dev) {
                Some(device) => device,
                None => self
                    .gateway
                    .add_device(&place.dev, DeviceSpec { queueless: true, ..DeviceSpec::default() }),
            };
            self.places.push((device, place.direction == TrafficDirection::Ingress));
        }
        self.devices = self.gateway.devices().collect();
    }

    /// Continues to a time: runs what was due, takes in arrivals, sends what may leave. True: there may be
    /// more at once.
    ///
    /// # Errors
    /// The backend is broken.
    pub fn turn(&mut self, packet_io: &mut dyn PacketIo, now: Time) -> io::Result<bool> {
        let behind = self.catch_up(packet_io, now)?;
        let came = self.take_in(packet_io)?;
        let mut incoming = std::mem::take(&mut self.incoming);
        for (pkt, place) in incoming.drain(..) {
            self.arrive(packet_io, place, pkt)?;
        }
        self.incoming = incoming;
        packet_io.flush()?;
        Ok(behind || came == BATCH)
    }

    /// When something is due, if nothing comes before; never earlier than the last turn.
    pub fn due(&mut self) -> Option<Time> {
        let Engine { gateway, devices, .. } = self;
        let perturb = Some(gateway.perturb_due()).filter(|due| *due != Time::NEVER);
        devices.iter().filter_map(|device| gateway.timeout(*device)).chain(perturb).min()
    }

    /// Carries out operations at a time, in order, up to the first that is refused: its number and why.
    /// Packets that an operation leaves no space for are dropped, all others wait on.
    ///
    /// # Errors
    /// The backend is broken.
    pub fn apply(
        &mut self,
        packet_io: &mut dyn PacketIo,
        now: Time,
        ops: &[Op],
    ) -> io::Result<Result<(), (usize, TcError)>> {
        self.visit(packet_io, now, |gateway, world| {
            let GatewayContext { now, pool, random: draws } = world;
            ops.iter().enumerate().try_for_each(|(at, op)| {
                gateway
                    .apply(GatewayContext { now, pool, random: draws }, op)
                    .map(drop)
                    .map_err(|error| (at, error))
            })
        })
    }

    /// Runs work on the machine at a time: a query or a change. Packets that may then leave are sent.
    ///
    /// # Errors
    /// The backend is broken.
    pub fn visit<R>(
        &mut self,
        packet_io: &mut dyn PacketIo,
        now: Time,
        work: impl FnOnce(&mut Gateway, GatewayContext<'_>) -> R,
    ) -> io::Result<R> {
        self.catch_up(packet_io, now)?;
        let Engine { gateway, pool, random: draws, now, .. } = self;
        let done = work(gateway, GatewayContext { now: *now, pool, random: draws });
        self.devices = self.gateway.devices().collect();
        self.account(packet_io)?;
        for at in 0..self.devices.len() {
            self.drain(packet_io, self.devices[at])?;
        }
        self.forward_redirected(packet_io)?;
        packet_io.flush()?;
        Ok(done)
    }

    /// Lets everything go that waits, in the order in which it came: before the end, so that nothing is
    /// dropped.
    ///
    /// # Errors
    /// The backend is broken.
    pub fn empty(&mut self, packet_io: &mut dyn PacketIo) -> io::Result<u64> {
        let before = self.counts.passed;
        let mut waiting: Vec<_> = self
            .held
            .iter_mut()
            .filter_map(|packet| Some((packet.came, packet.ticket.take()?, *packet)))
            .collect();
        waiting.sort_by_key(|(came, ticket, _)| (*came, *ticket));
        for (_, ticket, packet) in waiting {
            match packet_io.pass(ticket, &Leaving::unchanged(packet.place, packet.mark))? {
                Passed::Gone => self.counts.passed += 1,
                Passed::Full => self.counts.full += 1,
            }
        }
        packet_io.flush()?;
        Ok(self.counts.passed - before)
    }

    /// The backend is gone, with the packets it held: drops the backlog; returns how many packets that are.
    pub fn orphan(&mut self) -> u64 {
        let waiting = self.held.iter_mut().filter_map(|packet| packet.ticket.take()).count() as u64;
        self.counts.nowhere += waiting;
        waiting
    }

    /// The kernel's indices of devices; those without a backend are skipped (an ifb here does not exist in
    /// the kernel).
    pub fn number(&mut self, numbers: impl IntoIterator<Item = (u32, String)>) {
        let Engine { gateway, places, numbers: known, .. } = self;
        let has_door = |name: &str| {
            gateway.device(name).is_some_and(|device| places.iter().any(|(of, _)| *of == device))
        };
        *known = numbers.into_iter().filter(|(_, name)| has_door(name)).collect();
    }

    /// The device that the kernel knows by a number.
    pub fn numbered(&self, index: u32) -> Option<&str> {
        self.numbers.iter().find(|(number, _)| *number == index).map(|(_, name)| name.as_str())
    }

    /// The kernel calls a device otherwise now.
    pub fn renamed(&mut self, index: u32, name: &str) {
        if let Some((_, known)) = self.numbers.iter_mut().find(|(number, _)| *number == index) {
            name.clone_into(known);
        }
    }

    /// What holds the link up, and this session, passes by the queues from now on, so many packets a second
    /// of each kind.
    pub fn never_starve(&mut self, session: Option<Session>) {
        self.express.get_or_insert_default().keep(session);
    }

    /// What is known about a device.
    pub fn spec(&self, name: &str) -> Option<DeviceSpec> {
        Some(self.gateway.spec(self.gateway.device(name)?))
    }

    /// What was done so far.
    pub fn counts(&self) -> EngineStats {
        self.counts
    }

    /// Packets inside.
    pub fn held_packets(&self) -> usize {
        self.pool.live()
    }

    /// When the packet that has waited there longest came to the device, for each device and each class with
    /// a backlog; nothing without an observer.
    pub fn oldest(&self) -> BTreeMap<(DeviceId, Handle), Time> {
        let mut oldest = BTreeMap::new();
        if self.watch.is_none() {
            return oldest;
        }
        let waiting = |(_, packet): &(usize, &HeldPacket)| packet.ticket.is_some();
        for (slot, _) in self.held.iter().enumerate().filter(waiting) {
            let location = self.pool.queue_location(slot);
            let Some(device) = DeviceId::holding(location) else { continue };
            let came = oldest.entry((device, location.on)).or_insert(location.since);
            *came = (*came).min(location.since);
        }
        oldest
    }

    /// The machine's present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Begins to note how long packets wait, and where; it costs a little for each from then on.
    pub fn watch(&mut self) -> &mut Watch {
        self.pool.track_queue_locations();
        self.watch.get_or_insert_default()
    }

    /// Carries out what was due until a time; true: there is more.
    fn catch_up(&mut self, packet_io: &mut dyn PacketIo, now: Time) -> io::Result<bool> {
        let from = Time(now.0.saturating_sub(CREDIT.0));
        for _ in 0..MOST_TIMERS {
            let Some(due) = self.due().filter(|due| *due <= now) else {
                self.now = self.now.max(now);
                return Ok(false);
            };
            self.counts.latest = self.counts.latest.max(now.0 - due.0);
            self.counts.late += u64::from(due < from);
            self.now = self.now.max(due).max(from);
            self.fire(packet_io)?;
        }
        Ok(true)
    }

    /// Carries out what is due now.
    fn fire(&mut self, packet_io: &mut dyn PacketIo) -> io::Result<()> {
        let Engine { gateway, pool, random: draws, now, .. } = self;
        if gateway.perturb_due() <= *now {
            gateway.perturb(GatewayContext { now: *now, pool, random: draws });
        }
        for at in 0..self.devices.len() {
            let device = self.devices[at];
            if self.gateway.timeout(device).is_some_and(|due| due <= self.now)
                && self.gateway.fire(self.now, device)
            {
                self.drain(packet_io, device)?;
            }
        }
        self.forward_redirected(packet_io)?;
        self.account(packet_io)
    }

    /// Takes in what has come to the backend: how many packets.
    fn take_in(&mut self, packet_io: &mut dyn PacketIo) -> io::Result<usize> {
        let Engine { pool, held: packets, incoming, places, gateway, counts, now, .. } = self;
        let mut lost = Vec::new();
        let came = packet_io.receive(BATCH, &mut |came| {
            counts.received += 1;
            let device = places.get(came.place).map(|(device, _)| *device);
            let link_header = device.map_or(0, |device| gateway.spec(device).link_header);
            let (head, meta) = seen(&came, link_header);
            let (dsfield, mark) = (meta.dsfield, came.mark);
            let Some(pkt) = device.and_then(|_| pool.insert(meta, head)) else {
                lost.push(came.ticket);
                return;
            };
            // Where the packet waited that was in this slot before says nothing of this one.
            pool.clear_queue_location(&pkt);
            let slot = pkt.slot();
            if slot >= packets.len() {
                packets.resize(slot + 1, HeldPacket::default());
            }
            let (ticket, place) = (Some(came.ticket), came.place);
            packets[slot] = HeldPacket { ticket, place, came: *now, mark, dsfield, noted: dsfield };
            incoming.push((pkt, came.place));
        })?;
        for ticket in lost {
            self.counts.no_room += 1;
            packet_io.drop_packet(ticket)?;
        }
        Ok(came)
    }

    /// A packet meets the machine.
    fn arrive(&mut self, packet_io: &mut dyn PacketIo, place: usize, pkt: Pkt) -> io::Result<()> {
        let (device, arriving) = self.places[place];
        if let Some(express) = &mut self.express
            && express.takes(self.now, self.pool.head(&pkt))
        {
            self.counts.fast_path += 1;
            return self.leave(packet_io, device, arriving, pkt);
        }
        let Engine { gateway, pool, random: draws, now, .. } = self;
        let world = GatewayContext { now: *now, pool, random: draws };
        if arriving {
            match gateway.receive(world, device, pkt) {
                ReceiveOutcome::Passed(pkt, by) => self.leave(packet_io, by, true, pkt)?,
                ReceiveOutcome::Redirected(to) => self.drain(packet_io, to)?,
                ReceiveOutcome::Dropped => {}
            }
        } else {
            let offer = gateway.offer(world, device, EgressPath::Direct, pkt);
            self.after_offer(packet_io, device, offer)?;
        }
        self.forward_redirected(packet_io)?;
        self.account(packet_io)
    }

    fn after_offer(
        &mut self,
        packet_io: &mut dyn PacketIo,
        device: DeviceId,
        offer: XmitStatus,
    ) -> io::Result<()> {
        match offer {
            XmitStatus::Stopped | XmitStatus::Away => Ok(()),
            _ => self.drain(packet_io, device),
        }
    }

    /// Continues with packets that filters redirected or copied to other devices.
    fn forward_redirected(&mut self, packet_io: &mut dyn PacketIo) -> io::Result<()> {
        for _ in 0..MOST_ROUNDS {
            let mut any = false;
            for at in 0..self.devices.len() {
                let device = self.devices[at];
                if self.gateway.take_redirect_target_flag(device) {
                    self.drain(packet_io, device)?;
                    any = true;
                }
            }
            // A device that is drained may redirect packets to one before it.
            if !any {
                break;
            }
        }
        while let Some((pkt, device)) = self.gateway.take_arrived() {
            self.leave(packet_io, device, true, pkt)?;
        }
        Ok(())
    }

    /// Lets go what a device may send now.
    fn drain(&mut self, packet_io: &mut dyn PacketIo, device: DeviceId) -> io::Result<()> {
        loop {
            self.follow_copies(packet_io);
            let Engine { gateway, pool, random: draws, now, .. } = self;
            let Some(pkt) = gateway.poll(GatewayContext { now: *now, pool, random: draws }, device) else {
                return Ok(());
            };
            match gateway.returned_from(pool, &pkt) {
                Some((to, true)) => {
                    self.leave_queue(device, &pkt);
                    let Engine { gateway, pool, random: draws, now, .. } = self;
                    let offer =
                        gateway.offer_back(GatewayContext { now: *now, pool, random: draws }, to, pkt);
                    self.after_offer(packet_io, to, offer)?;
                }
                Some((to, false)) => self.leave(packet_io, to, true, pkt)?,
                None => self.leave(packet_io, device, false, pkt)?,
            }
        }
    }

    /// A packet is through.
    fn leave(
        &mut self,
        packet_io: &mut dyn PacketIo,
        device: DeviceId,
        arriving: bool,
        pkt: Pkt,
    ) -> io::Result<()> {
        self.follow_copies(packet_io);
        self.note_left(device, &pkt);
        let slot = pkt.slot();
        let place = self.places.iter().position(|place| *place == (device, arriving));
        let packet = self.held.get_mut(slot);
        let (Some(place), Some((ticket, packet))) =
            (place, packet.and_then(|packet| Some((packet.ticket.take()?, *packet))))
        else {
            self.counts.nowhere += 1;
            if let Some(ticket) = self.held.get_mut(slot).and_then(|packet| packet.ticket.take()) {
                packet_io.drop_packet(ticket)?;
            }
            self.pool.release(pkt);
            return Ok(());
        };
        let meta = self.pool.meta(&pkt);
        let (mark, dsfield, rewritten) = (meta.mark.0, meta.dsfield, meta.rewritten());
        let front = rewritten.then(|| self.pool.settle(&pkt).frame());
        let dsfield = (dsfield != packet.dsfield && front.is_none()).then_some(dsfield);
        match packet_io.pass(ticket, &Leaving { place, mark, dsfield, front })? {
            Passed::Gone => self.counts.passed += 1,
            Passed::Full => self.counts.full += 1,
        }
        self.pool.release(pkt);
        Ok(())
    }

    /// A packet has left a device's queues, and comes to another's, where it has not waited yet.
    fn leave_queue(&mut self, device: DeviceId, pkt: &Pkt) {
        self.note_left(device, pkt);
        self.pool.clear_queue_location(pkt);
    }

    /// Shows the observers, if there are any, a packet that left `device`.
    fn note_left(&mut self, device: DeviceId, pkt: &Pkt) {
        let Engine { watch: Some(watch), held, pool, now, .. } = self else { return };
        // What the backend has lost was dropped.
        let Some(packet) = held.get_mut(pkt.slot()).filter(|packet| packet.ticket.is_some()) else { return };
        let dsfield = pool.meta(pkt).dsfield;
        let marked = dsfield & 3 == 3 && packet.noted & 3 != 3;
        packet.noted = dsfield;
        let met = PacketSojourn { device, slot: pkt.slot(), came: packet.came, left: *now };
        watch.note(pool, &met, PacketOutcome::Left { marked });
    }

    /// Tells the backend of copies that were made.
    #[inline]
    fn follow_copies(&mut self, packet_io: &mut dyn PacketIo) {
        // Several times for each packet, and hardly ever are there any.
        if self.pool.has_copied() {
            self.report_copies(packet_io);
        }
    }

    fn report_copies(&mut self, packet_io: &mut dyn PacketIo) {
        let Engine { pool, held: packets, counts, .. } = self;
        let copied: Vec<_> = pool.take_copied().collect();
        for (copy, of) in copied {
            let original = packets.get(of).copied().unwrap_or_default();
            let ticket = original.ticket.and_then(|ticket| packet_io.copy(ticket));
            counts.nowhere += u64::from(ticket.is_none());
            if copy >= packets.len() {
                packets.resize(copy + 1, HeldPacket::default());
            }
            packets[copy] = HeldPacket { ticket, ..original };
            pool.watch_slot(copy);
        }
    }

    /// Tells the backend what was dropped.
    fn account(&mut self, packet_io: &mut dyn PacketIo) -> io::Result<()> {
        self.follow_copies(packet_io);
        while let Some(slot) = self.pool.take_released() {
            let Some(ticket) = self.held.get_mut(slot).and_then(|packet| packet.ticket.take()) else {
                continue;
            };
            self.counts.dropped += 1;
            if let Some(watch) = &mut self.watch {
                let (device, _) = self.places[self.held[slot].place];
                let met = PacketSojourn { device, slot, came: self.held[slot].came, left: self.now };
                watch.note(&self.pool, &met, PacketOutcome::Dropped);
            }
            packet_io.drop_packet(ticket)?;
        }
        Ok(())
    }
}

/// What the engine knows of a packet that came, on a device whose frames have this many bytes of link header.
fn seen(came: &Came<'_>, link_header: u32) -> (Head, Meta) {
    // The rest is not looked at: checksums that are there are kept up by what is changed.
    let front = &came.frame[..came.frame.len().min(Head::ETHERNET + Head::NETWORK)];
    let mut head = match (came.link_header, front.first().map(|byte| byte >> 4)) {
        (0, Some(6)) => Head::from_network(ethertype::IPV6, front),
        (0, _) => Head::from_network(ethertype::IPV4, front),
        _ => Head::from_frame(front),
    };
    let frame_len = size::counted(came, &head) + link_header - came.link_header.min(link_header);
    head.set_summed();
    let mut meta = Meta::of(&head, frame_len);
    (meta.mark, meta.priority, meta.watched) = (FwMark(came.mark), came.priority, true);
    (head, meta)
}

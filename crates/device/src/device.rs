//! The device: packets, commands and time together.

use crate::commands::{self, TcOutput};
use crate::config::EgressConfig;
use crate::error::Error;
use crate::limits::{MAX_STEP, MAX_TIME, MAX_TIMERS};
use crate::packet::{DropCause, DroppedPacket, OfferedPacket, SentPacket};
use crate::track::{Tracker, UnreadDrop};
use tidegate_gateway::{DeviceId, EgressPath, EventKind, GatewayContext, XmitStatus};
use tidegate_packet::{FwMark, Handle, Meta, Nanos, Pkt, Pool, RandomSource, Seeded, Time};
use tidegate_shims::Machine;

/// The congestion experienced codepoint of ECN (RFC 3168).
const CE: u8 = 3;

/// The egress of a network device: its qdiscs, and the packets that wait in them.
///
/// The caller's loop: [`offer`](Self::offer) each packet when it comes; after that, and whenever
/// [`next_time`](Self::next_time) has come, [`poll`](Self::poll) until it gives nothing; read
/// [`next_drop`](Self::next_drop) until it gives nothing. `next_time` may change with every other call.
///
/// ```
/// use tidegate_device::{EgressConfig, EgressDevice, OfferedPacket, PacketFields, Time};
///
/// let config = EgressConfig { rate: Some(10_000_000), ..EgressConfig::default() };
/// let mut device = EgressDevice::new(&config, "tc qdisc add dev eth0 root fq_codel")?;
/// let fields = PacketFields::udp("192.0.2.1:4433".parse()?, "198.51.100.7:50000".parse()?);
/// device.offer(Time(0), &OfferedPacket::from_fields(7, fields, 1250))?;
///
/// // 1,250 bytes take a millisecond at 10 Mbit/s.
/// let sent = device.poll(Time(0))?.expect("the link is free");
/// assert_eq!((sent.id, sent.finished), (7, Time(1_000_000)));
/// assert_eq!(device.next_time(), Some(Time(1_000_000)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EgressDevice {
    machine: Machine,
    device: DeviceId,
    name: String,
    link_header: u32,
    rate: Option<u64>,
    pool: Pool,
    random: Seeded,
    packets: u32,
    tracker: Tracker,
    latest: Time,
    /// When the link is free.
    free: Time,
    /// What packets sent back to back take beside whole nanoseconds, in nanoseconds times the rate.
    owed: u128,
    /// A poll may give something: nothing has said otherwise since the last offer, command or timer.
    ready: bool,
    stats: EgressStats,
}

/// What a device counted: packets in (`offered`, `copied`) = `sent` + `dropped` + `waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EgressStats {
    /// Packets offered, without those that were refused with an error.
    pub offered: u64,
    /// Copies that queues made of them.
    pub copied: u64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets sent that a queue marked with congestion experienced.
    pub marked: u64,
    /// Packets in the device.
    pub waiting: u32,
    /// Bytes that wait, as the root qdisc counts them.
    pub waiting_bytes: u32,
    /// How often the root qdisc put sending off (`overlimits`).
    pub overlimits: u32,
}

impl std::fmt::Debug for EgressDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EgressDevice")
            .field("name", &self.name)
            .field("rate", &self.rate)
            .field("latest", &self.latest)
            .field("waiting", &self.pool.live())
            .field("machine", &self.machine.gateway)
            .finish_non_exhaustive()
    }
}

impl EgressDevice {
    /// A device with the qdiscs, classes and filters of these tc commands, one on each line, carried out at
    /// its start. Without any, packets wait in a pfifo_fast, as in Linux.
    ///
    /// # Errors
    /// [`Error::Config`], [`Error::Commands`], [`Error::Command`].
    pub fn new(config: &EgressConfig, commands: &str) -> Result<EgressDevice, Error> {
        config.check()?;
        let mut machine = Machine::new([config.name.as_str()], config.spec());
        // Refusals are explained, and warnings are the caller's on any release.
        machine.grows = true;
        machine.warns = true;
        let Some(device) = machine.gateway.device(&config.name) else {
            return Err(Error::Config { member: "name", reason: "the machine takes no such name".into() });
        };
        let mut pool = Pool::new(config.packets as usize);
        pool.follow_copies();
        let mut random = Seeded::new(config.seed);
        // Linux draws it when it starts: which flows share a queue is another matter of chance in each run.
        pool.set_hash_key(random.key());
        let mut device = EgressDevice {
            machine,
            device,
            name: config.name.clone(),
            link_header: config.link_header(),
            rate: config.rate,
            pool,
            random,
            packets: config.packets,
            tracker: Tracker::default(),
            latest: config.start,
            free: config.start,
            owed: 0,
            ready: false,
            stats: EgressStats::default(),
        };
        device.tc(config.start, commands)?;
        Ok(device)
    }

    /// Carries out tc commands, one on each line, and returns what they print: changes during a run
    /// (`qdisc change …`), and listings (`-s -j qdisc show`).
    ///
    /// # Errors
    /// [`Error::Time`]; [`Error::Commands`]; [`Error::Command`] of the first command that is refused: those
    /// before it were carried out, those after it were not.
    pub fn tc(&mut self, now: Time, commands: &str) -> Result<TcOutput, Error> {
        self.advance(now)?;
        self.machine.now = now;
        let EgressDevice { machine, pool, random, name, .. } = self;
        let done = commands::run(machine, pool, random, name, commands);
        self.settle(now, None);
        self.ready = true;
        done
    }

    /// Offers a packet. What becomes of it is reported later, by [`poll`](Self::poll) or
    /// [`next_drop`](Self::next_drop): once, and once for each copy. The status is what Linux returns to the
    /// sender; `Refused` and `Stopped`: this packet was dropped, and `next_drop` reports it.
    ///
    /// # Errors
    /// [`Error::Time`], [`Error::Packet`], [`Error::Full`], [`Error::UnreadDrops`]: the packet was not taken,
    /// and nothing is reported for it.
    pub fn offer(&mut self, now: Time, packet: &OfferedPacket<'_>) -> Result<XmitStatus, Error> {
        self.advance(now)?;
        let unread = self.tracker.unread();
        if unread >= self.packets as usize {
            return Err(Error::UnreadDrops { unread });
        }
        let head = packet.head(self.link_header)?;
        let mut meta = Meta::of(&head, packet.length);
        (meta.mark, meta.priority) = (FwMark(packet.mark), packet.priority);
        let ecn = meta.ecn();
        meta.ident = self.tracker.begin(packet.id, now, ecn);
        let ident = meta.ident;
        let Some(pkt) = self.pool.insert(meta, head) else {
            let _ = self.tracker.end(ident);
            return Err(Error::Full { limit: self.packets });
        };
        self.stats.offered += 1;
        let world = GatewayContext { now, pool: &mut self.pool, random: &mut self.random };
        let status = self.machine.gateway.offer(world, self.device, EgressPath::Direct, pkt);
        self.settle(now, Some(ident));
        self.ready = true;
        Ok(status)
    }

    /// The next packet that the device sends at this time; `None` when nothing may be sent now, or the link
    /// is busy. Where the link is the caller's ([`EgressConfig::rate`] is `None`), call it when that can
    /// take a packet.
    ///
    /// # Errors
    /// [`Error::Time`].
    pub fn poll(&mut self, now: Time) -> Result<Option<SentPacket>, Error> {
        self.advance(now)?;
        if self.rate.is_some() && now < self.free {
            return Ok(None);
        }
        let world = GatewayContext { now, pool: &mut self.pool, random: &mut self.random };
        let polled = self.machine.gateway.poll(world, self.device);
        self.settle(now, None);
        self.ready = polled.is_some();
        Ok(polled.map(|pkt| self.send(now, pkt)))
    }

    /// When the device should be polled next: the time of the latest call if a packet may be ready now, and
    /// `None` if nothing waits and no timer runs. With a link of one's own: not before that is free.
    pub fn next_time(&mut self) -> Option<Time> {
        let ready = self.ready.then(|| self.latest.max(self.free));
        let timers = self.machine.gateway.timeout(self.device);
        let rehash = Some(self.machine.gateway.perturb_due()).filter(|at| *at != Time::NEVER);
        let next = [ready, timers, rehash].into_iter().flatten().min();
        next.map(|at| at.max(self.latest))
    }

    /// The oldest drop that was not read yet. Read all after each offer, poll and command.
    pub fn next_drop(&mut self) -> Option<DroppedPacket> {
        self.tracker.next_drop()
    }

    /// What the device counted so far. tc's own counters: `tc(now, "-s -j qdisc show")`.
    pub fn stats(&mut self) -> EgressStats {
        let root = self.machine.gateway.qdiscs(self.latest, self.device).into_iter().next();
        let (waiting_bytes, overlimits) =
            root.map_or((0, 0), |root| (root.stats.backlog, root.stats.overlimits));
        EgressStats { waiting: self.pool.live() as u32, waiting_bytes, overlimits, ..self.stats }
    }

    /// Time goes on: timers of qdiscs run when they are due, and watchdogs fire.
    fn advance(&mut self, now: Time) -> Result<(), Error> {
        if now < self.latest || now > MAX_TIME {
            return Err(Error::Time { given: now, latest: self.latest });
        }
        if now.since(self.latest) > MAX_STEP {
            return Err(Error::Step { given: now, latest: self.latest });
        }
        for _ in 0..MAX_TIMERS {
            let due = self.machine.gateway.perturb_due();
            if due > now {
                self.latest = now;
                self.ready |= self.machine.gateway.fire(now, self.device);
                return Ok(());
            }
            self.latest = self.latest.max(due);
            let world = GatewayContext { now: self.latest, pool: &mut self.pool, random: &mut self.random };
            self.machine.gateway.perturb(world);
            self.settle(self.latest, None);
        }
        Err(Error::ManyTimers { given: now, latest: self.latest })
    }

    /// A packet leaves: the link is busy with it, and its part ends.
    fn send(&mut self, now: Time, pkt: Pkt) -> SentPacket {
        let head = self.pool.settle(&pkt).on_wire();
        let meta = self.pool.meta(&pkt);
        let (length, dsfield, mark) = (meta.frame_len, meta.dsfield, meta.mark.0);
        let (priority, rewritten, ident) = (meta.priority, meta.rewritten(), meta.ident);
        self.pool.release(pkt);
        if let Some(rate) = self.rate {
            // What was left over counts only for packets back to back.
            let owed = if now == self.free { self.owed } else { 0 };
            let wanted = u128::from(length) * 8 * 1_000_000_000 + owed;
            self.owed = wanted % u128::from(rate);
            self.free = now + Nanos((wanted / u128::from(rate)) as u64);
        }
        let finished = if self.rate.is_some() { self.free } else { now };
        let (id, offered, came_with, last) = match self.tracker.end(ident) {
            Some((tracked, last)) => (tracked.id, tracked.offered, tracked.ecn, last),
            None => (0, now, 0, true),
        };
        let marked = dsfield & CE == CE && came_with != CE;
        self.stats.sent += 1;
        self.stats.sent_bytes += u64::from(length);
        self.stats.marked += u64::from(marked);
        let ethernet = self.link_header > 0;
        SentPacket {
            id,
            last,
            offered,
            finished,
            length,
            dsfield,
            mark,
            priority,
            marked,
            rewritten,
            head,
            ethernet,
        }
    }

    /// Takes in what a call did to packets beside what it returned: copies of the packet that was offered,
    /// and drops. The device holds no more packets than it keeps events of one call.
    fn settle(&mut self, now: Time, offered: Option<u32>) {
        if self.pool.has_copied() {
            let copies = self.pool.take_copied().count() as u32;
            self.stats.copied += u64::from(copies);
            if let Some(ident) = offered {
                self.tracker.copied(ident, copies);
            }
        }
        for event in self.machine.gateway.events(self.device) {
            if let EventKind::Drop(why) = event.what {
                self.stats.dropped += 1;
                self.tracker.drop(UnreadDrop {
                    ident: event.ident,
                    dropped: now,
                    length: event.len,
                    cause: DropCause::of(why),
                    qdisc: event.at,
                });
            }
        }
        // Redirected to where nothing receives.
        while let Some((pkt, _)) = self.machine.gateway.take_arrived() {
            let meta = self.pool.meta(&pkt);
            let drop = UnreadDrop {
                ident: meta.ident,
                dropped: now,
                length: meta.frame_len,
                cause: DropCause::Filter,
                qdisc: Handle::NONE,
            };
            self.pool.release(pkt);
            self.stats.dropped += 1;
            self.tracker.drop(drop);
        }
        debug_assert!(
            self.stats.offered + self.stats.copied
                >= self.stats.sent + self.stats.dropped + self.pool.live() as u64,
            "packets in = sent + dropped + waiting"
        );
    }
}

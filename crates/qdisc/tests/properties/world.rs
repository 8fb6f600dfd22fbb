//! One device with a tree, packets that come and go, and the books about them.

use std::collections::BTreeMap;
use tidegate_packet::{FwMark, Handle, Head, Meta, Nanos, Pool, Rate, Seeded, Time};
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::*;
use tidegate_qdisc::{DeviceInfo, DropReason, EventKind, EventRing, Shaper};

pub(crate) const ROOT: Handle = Handle::new(1, 0);

/// A packet that was offered; its place in the list is its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered {
    pub(crate) at: Time,
    pub(crate) class: u16,
    pub(crate) flow: u16,
    pub(crate) len: u32,
}

/// The outcome of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketState {
    Waits,
    Sent(Time),
    /// By the qdisc of this handle; none: a hidden one at the bottom.
    Lost(Handle),
}

/// A qdisc with a handle, and which packets come to it: those of its classes from a number on that no one
/// above it dropped.
struct Account {
    above: Vec<Handle>,
    classes: Vec<u16>,
    since: usize,
}

pub(crate) struct World {
    shaper: Shaper,
    pool: Pool,
    pub(crate) random: Seeded,
    pub(crate) now: Time,
    pub(crate) offered: Vec<Offered>,
    pub(crate) outcomes: Vec<PacketState>,
    /// Numbers of the packets sent, in order.
    pub(crate) sent: Vec<usize>,
    link: Rate,
    busy_until: Option<Time>,
    /// Do packets name a class of the root by their priority? They always do by their mark.
    pub(crate) named: bool,
    accounts: BTreeMap<u32, Account>,
}

pub(crate) fn rate(bits: u64) -> RateSpec {
    RateSpec { rate: Rate::bits(bits), ..RateSpec::default() }
}

/// A bucket of this many bytes at a rate, as time.
pub(crate) fn bucket(bits: u64, bytes: u64) -> Ticks {
    Ticks((bytes * 8 * Ticks::PER_SECOND).div_ceil(bits) as u32)
}

impl World {
    /// With a link of so many bits per second; 0: it takes everything at once.
    pub(crate) fn new(seed: u64, link: u64) -> World {
        World::on(DeviceInfo::default(), seed, link)
    }

    pub(crate) fn on(device: DeviceInfo, seed: u64, link: u64) -> World {
        World {
            shaper: Shaper::new(device, EventRing::new(1 << 16)),
            pool: Pool::new(1 << 16),
            random: Seeded::new(seed),
            now: Time(1_000_000_000),
            offered: Vec::new(),
            outcomes: Vec::new(),
            sent: Vec::new(),
            link: Rate::bits(link),
            busy_until: None,
            named: true,
            accounts: BTreeMap::new(),
        }
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.random.next() % end
    }

    // --- configuration

    pub(crate) fn root(&mut self, kind: &str, params: Option<QdiscParams>) {
        self.qdisc(Verb::Add, Handle::ROOT, ROOT, kind, params);
    }

    pub(crate) fn qdisc(
        &mut self,
        verb: Verb,
        parent: Handle,
        handle: Handle,
        kind: &str,
        params: Option<QdiscParams>,
    ) {
        let (dev, kind) = ("dev".into(), Some(kind.into()));
        let op = QdiscOp {
            verb,
            dev,
            parent,
            handle,
            kind,
            params,
            stab: None,
            estimator: None,
            blocks: SharedBlocks::default(),
        };
        let result = self.shaper.qdisc_op(self.now, &mut self.pool, &mut self.random, &op);
        assert!(result.is_ok(), "{op:?}: {result:?}");
        self.settle();
    }

    pub(crate) fn class(&mut self, verb: Verb, parent: Handle, classid: Handle, params: ClassParams) {
        let op = ClassOp {
            verb,
            dev: "dev".into(),
            parent,
            classid,
            kind: None,
            params: Some(params),
            estimator: None,
        };
        let result = self.shaper.class_op(self.now, &mut self.pool, &mut self.random, &op);
        assert!(result.is_ok(), "{op:?}: {result:?}");
        self.settle();
    }

    /// Packets of this class are redirected there by a filter on their mark.
    pub(crate) fn lead(&mut self, parent: Handle, class: u16, to: Handle) {
        let op = FilterOp {
            verb: Verb::Add,
            dev: "dev".into(),
            block: 0,
            parent,
            pref: 1,
            protocol: FilterOp::ALL,
            chain: 0,
            handle: u32::from(class),
            kind: Some("fw".into()),
            params: Some(FilterParams::Fw(FwParams { classid: Some(to), ..FwParams::default() })),
            actions: Vec::new(),
        };
        let result = self.shaper.filter_op(self.now, &mut self.pool, &mut self.random, &op);
        assert!(result.is_ok(), "{op:?}: {result:?}");
    }

    /// Keeps books about a qdisc from now on.
    pub(crate) fn account(&mut self, handle: Handle, above: &[Handle], classes: &[u16]) {
        let since = self.offered.len();
        self.accounts.insert(handle.0, Account { above: above.into(), classes: classes.into(), since });
    }

    /// A qdisc is no more.
    pub(crate) fn close_account(&mut self, handle: Handle) {
        self.accounts.remove(&handle.0);
    }

    // --- packets

    /// A packet comes, for a class that its mark and its priority name.
    pub(crate) fn offer(&mut self, class: u16, flow: u16, len: u32) {
        self.offer_between([10, 0, (class >> 8) as u8, class as u8], [192, 0, 2, 1], class, flow, len);
    }

    /// Offers a packet between these addresses.
    pub(crate) fn offer_between(
        &mut self,
        source: [u8; 4],
        destination: [u8; 4],
        class: u16,
        flow: u16,
        len: u32,
    ) {
        let head = head(source, destination, class, flow);
        let pkt = self.pool.insert(self.meta(&head, class, len), head).expect("the pool has room");
        self.offered.push(Offered { at: self.now, class, flow, len });
        self.outcomes.push(PacketState::Waits);
        let _ = self.shaper.offer(self.now, &mut self.pool, &mut self.random, pkt);
        self.settle();
        self.send();
    }

    /// Offers a packet without polling afterwards.
    pub(crate) fn offer_only(&mut self, class: u16, flow: u16, len: u32) {
        self.busy_until.get_or_insert(Time::NEVER);
        self.offer(class, flow, len);
    }

    fn meta(&self, head: &Head, class: u16, len: u32) -> Meta {
        let mut meta = Meta::of(head, len);
        meta.ident = self.offered.len() as u32;
        meta.mark = FwMark(u32::from(class));
        meta.priority = if self.named { ROOT.class(class).0 } else { 0 };
        meta
    }

    /// Takes one packet out, whatever the link's state; returns its number.
    pub(crate) fn poll(&mut self) -> Option<usize> {
        let pkt = self.shaper.poll(self.now, &mut self.pool, &mut self.random);
        let number = pkt.map(|pkt| {
            let number = self.pool.meta(&pkt).ident as usize;
            self.pool.release(pkt);
            self.outcomes[number] = PacketState::Sent(self.now);
            self.sent.push(number);
            number
        });
        self.settle();
        number
    }

    /// Gives the link what it takes.
    fn send(&mut self) {
        while self.busy_until.is_none() {
            let Some(number) = self.poll() else { return };
            if let Some(ns) = (u64::from(self.offered[number].len) * 1_000_000_000).checked_div(self.link.0) {
                self.busy_until = Some(self.now + Nanos(ns));
            }
        }
    }

    /// Lets time pass: the link's completions and the tree's timeouts.
    pub(crate) fn pass(&mut self, until: Time) {
        loop {
            let link = self.busy_until.filter(|time| *time != Time::NEVER);
            let Some(next) =
                [link, self.shaper.timeout()].into_iter().flatten().min().filter(|time| *time <= until)
            else {
                self.now = self.now.max(until);
                return;
            };
            self.now = self.now.max(next);
            if link == Some(next) {
                self.busy_until = None;
                self.send();
            } else if self.shaper.fire(self.now) {
                self.send();
            }
        }
    }

    // --- books

    pub(crate) fn waiting(&self) -> usize {
        self.pool.live()
    }

    /// Qdiscs with a handle.
    pub(crate) fn dumps(&mut self) -> Vec<QdiscDump> {
        self.shaper.dump_qdiscs("dev", self.now)
    }

    /// Packets waiting in each class or flow that is listed.
    pub(crate) fn listed(&mut self) -> Vec<u32> {
        let classes = self.shaper.dump_classes("dev", self.now);
        classes.iter().filter_map(|class| class.stats.as_ref()).map(|stats| stats.qlen).collect()
    }

    /// Notes who was dropped, and checks every account.
    fn settle(&mut self) {
        for event in self.shaper.events() {
            match event.what {
                EventKind::Drop(DropReason::Netfilter | DropReason::NetfilterLeaving)
                | EventKind::Redirected => {
                    panic!("nobody does that here")
                }
                EventKind::Drop(_) => {
                    assert_eq!(
                        self.outcomes[event.ident as usize],
                        PacketState::Waits,
                        "a packet has one end"
                    );
                    self.outcomes[event.ident as usize] = PacketState::Lost(event.at);
                }
            }
        }
        assert_eq!(self.shaper.qlen() as usize, self.pool.live(), "what waits in the tree is all there is");
        if !self.accounts.is_empty() {
            self.audit();
        }
    }

    /// Packets in = sent + dropped + waiting, for every qdisc; one held for a peek counts as sent and
    /// waiting.
    fn audit(&mut self) {
        for dump in self.dumps() {
            let Some(account) = self.accounts.get(&dump.handle.0) else { continue };
            let (mut packets, mut lost, mut bytes) = (0u64, 0u64, 0u64);
            for (packet, outcome) in self.offered.iter().zip(&self.outcomes).skip(account.since) {
                match outcome {
                    _ if !account.classes.contains(&packet.class) => continue,
                    PacketState::Lost(at) if account.above.contains(at) => continue,
                    PacketState::Lost(_) => lost += 1,
                    PacketState::Sent(_) => bytes += u64::from(packet.len),
                    PacketState::Waits => {}
                }
                packets += 1;
            }
            let stats = dump.stats;
            let reported = stats.packets + u64::from(stats.drops) + u64::from(stats.qlen);
            let waiting = reported.wrapping_sub(packets);
            assert!(waiting <= 1, "{} {}: {packets} in, {stats:?}", dump.kind.name(), dump.handle);
            assert_eq!(u64::from(stats.drops), lost, "{} {}", dump.kind.name(), dump.handle);
            if dump.parent == Handle::ROOT {
                assert_eq!((waiting, stats.bytes), (0, bytes), "the root holds nothing back");
            }
        }
    }

    /// Is what was sent of each flow in the order in which it came?
    pub(crate) fn flows_are_in_order(&self) {
        let mut last: BTreeMap<(u16, u16), usize> = BTreeMap::new();
        for number in &self.sent {
            let Offered { class, flow, .. } = self.offered[*number];
            if let Some(before) = last.insert((class, flow), *number) {
                assert!(
                    before < *number,
                    "packet {number} of class {class}, flow {flow} came after {before}"
                );
            }
        }
    }

    /// When each packet was sent, and its length, for those of `class` (all: 0).
    pub(crate) fn departures(&self, class: u16) -> Vec<(Time, u32)> {
        let of = |number: &&usize| class == 0 || self.offered[**number].class == class;
        let when = |number: &usize| match self.outcomes[*number] {
            PacketState::Sent(at) => (at, self.offered[*number].len),
            other => panic!("{other:?} is not sent"),
        };
        self.sent.iter().filter(of).map(when).collect()
    }
}

/// A packet of that flow, as bytes.
fn head(source: [u8; 4], destination: [u8; 4], class: u16, flow: u16) -> Head {
    let mut ip = [0u8; 48];
    (ip[0], ip[3], ip[8], ip[9]) = (0x45, 50, 64, 17);
    ip[12..16].copy_from_slice(&source);
    ip[16..20].copy_from_slice(&destination);
    ip[20..22].copy_from_slice(&(1024 + flow).to_be_bytes());
    ip[22..24].copy_from_slice(&(5000 + class).to_be_bytes());
    Head::from_network(0x0800, &ip)
}

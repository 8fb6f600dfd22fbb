//! Packets sent through the policy's machine, one at a time: the engine itself shows where each goes.

use crate::packet::{Packet, has_ports};
use crate::reading::{CARRIED_OUT_AT, PolicyModel};
use crate::tree::MOST_DEEP;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tidegate_classify::conntrack;
use tidegate_gateway::{
    BacklogLocation, DeviceId, DeviceKind, DropReason, EgressPath, EventKind, Gateway, GatewayContext,
    ReceiveOutcome, XmitStatus,
};
use tidegate_packet::header::{proto, tcp_flags};
use tidegate_packet::{Addrs, Dissector, Handle, Head, Meta, Nanos, Pkt, Pool, Seeded, Time, dissect};
use tidegate_policy::dump::{ActionDump, ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::Connstate;
use tidegate_policy::{Act, ClassLayout, Kind, LinkOp, Op};

/// Packets the machine holds: the one that is sent, and what its queues make of it.
const ROOM: usize = 64;
/// Packets sent before one to make its connection have carried as much as it should; with more to carry they
/// are longer.
const MOST_BEFORE: u64 = 4096;
/// Bytes of each of them at least.
const FULL: u64 = 1500;
/// How often a tree that delays a packet is polled again.
const MOST_WAITS: usize = 1000;
/// Devices that one packet visits at most.
const MOST_STOPS: usize = 8;

/// The address of the device that leads out.
const OUTSIDE: [u8; 4] = [192, 0, 2, 2];

/// Where a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEntry {
    /// It leaves by a device, having come there by a route.
    Leaves(DeviceId, EgressPath),
    /// It arrives at a device, before any routing: only the filters there, and what they lead it to.
    Arrives(DeviceId),
    /// It arrives at the first device and is routed out by the second.
    Through(DeviceId, DeviceId),
}

/// The path and end of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// Its connection state; [`Connstate::Untracked`] also where nothing uses connection tracking. It differs
    /// from the packet's words where no earlier packets could make those true.
    pub state: Connstate,
    /// Its mark in the end.
    pub mark: u32,
    /// Its DS field in the end.
    pub dsfield: u8,
    /// Its priority in the end.
    pub priority: u32,
    /// The devices in whose trees it was queued, or that redirected it; in order.
    pub stops: Vec<Stop>,
    /// Where and why it was dropped.
    pub dropped: Option<Loss>,
    /// What it met on its arrival, if anything, let it go on to routing.
    pub routed: bool,
}

/// A packet's stay at a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The device of the stop.
    pub device: DeviceId,
    /// The classes it was in, from the root down; none where it waited in the root itself, as in HTB's direct
    /// queue.
    pub classes: Vec<Handle>,
    /// The qdiscs it was in, from the root down; the last is the one that holds it.
    pub qdiscs: Vec<BacklogLocation>,
    /// A filter there redirected it to this device; then it was not queued here.
    pub led_to: Option<DeviceId>,
    /// It came back here from an ifb, to which a filter here had redirected it.
    pub came_back: bool,
}

impl Stop {
    /// At a device, in none of its qdiscs.
    pub(crate) fn bare(device: DeviceId) -> Stop {
        Stop { device, classes: Vec::new(), qdiscs: Vec::new(), led_to: None, came_back: false }
    }

    /// The class at the end of its way.
    pub fn leaf_class(&self) -> Option<Handle> {
        self.classes.last().copied()
    }

    /// The qdisc that holds it.
    pub fn leaf(&self) -> Option<BacklogLocation> {
        self.qdiscs.last().copied()
    }
}

/// A packet while it is queued, for questions that can be answered only then.
pub(crate) struct Glimpse<'a> {
    pub(crate) gateway: &'a mut Gateway,
    pub(crate) now: Time,
    pub(crate) stop: &'a Stop,
    /// Its headers, with the DS field as it is now.
    pub(crate) head: Head,
    pub(crate) mark: u32,
    pub(crate) priority: u32,
}

/// The observer that is called at each stop.
type Look<'l> = &'l mut dyn FnMut(Glimpse<'_>);

/// The end of a packet that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The device that dropped it.
    pub device: DeviceId,
    /// The qdisc; [`Handle::NONE`]: before any.
    pub at: Handle,
    /// Why.
    pub why: DropReason,
}

impl ProbeResult {
    /// Its stay in the tree of a device.
    pub fn stop_at(&self, device: DeviceId) -> Option<&Stop> {
        self.stops.iter().find(|stop| stop.device == device && stop.led_to.is_none())
    }

    /// The class it waited in on the last device.
    pub fn leaf_class(&self) -> Option<Handle> {
        self.stops.last()?.leaf_class()
    }

    /// The device to which a filter redirected it.
    pub fn led_to(&self) -> Option<DeviceId> {
        self.stops.iter().find_map(|stop| stop.led_to)
    }
}

/// A machine with a policy, on which packets are tried.
///
/// Each packet is the only one on the machine: there is no backlog before it, and its connection is as its
/// words state. Counters go on.
pub struct Prober {
    gateway: Gateway,
    pool: Pool,
    draws: Seeded,
    now: Time,
    /// The class above each class, where there is one.
    above: BTreeMap<(DeviceId, Handle), Handle>,
    /// The qdiscs that have one class.
    single: BTreeSet<(DeviceId, Handle)>,
    /// Devices to which actions lead copies only.
    copies: BTreeSet<DeviceId>,
    /// Devices with classes below an HFSC's. It takes the first packet of a class out of the qdiscs below, to
    /// see its length: where it came from shows in what these have sent.
    peeking: BTreeSet<DeviceId>,
    /// What the qdiscs and classes of those had sent before the packet, packets.
    sent: BTreeMap<(DeviceId, Handle), u64>,
    /// What was sent last in place of the packet that was asked for.
    instead: Option<Packet>,
    /// The mark of the connection that it belonged to as it came.
    connmark: Option<u32>,
}

impl Prober {
    /// A fresh machine with the policy.
    pub fn new(reading: &PolicyModel) -> Prober {
        let mut gateway = reading.machine();
        give_addresses(&mut gateway);
        let classes =
            reading.classes.iter().filter(|class| class.parent.minor() != 0 && class.parent != Handle::ROOT);
        let above =
            classes.filter_map(|class| Some(((gateway.device(&class.dev)?, class.classid), class.parent)));
        let above = above.collect();
        let single = reading.qdiscs.iter().filter(|qdisc| qdisc.kind.classes() == ClassLayout::One);
        let single = single.filter_map(|qdisc| Some((gateway.device(&qdisc.dev)?, qdisc.handle))).collect();
        let copies = copies(reading, &gateway);
        let below_hfsc = reading.qdiscs.iter().filter(|qdisc| {
            let has_classes = !matches!(qdisc.kind.classes(), ClassLayout::None | ClassLayout::Flows);
            let is_above = |above: &QdiscDump| above.dev == qdisc.dev && above.handle == qdisc.parent.qdisc();
            has_classes && reading.qdiscs.iter().any(|above| above.kind == Kind::Hfsc && is_above(above))
        });
        let peeking = below_hfsc.filter_map(|qdisc| gateway.device(&qdisc.dev)).collect();
        Prober {
            gateway,
            pool: Pool::new(ROOM),
            draws: Seeded::new(1),
            now: CARRIED_OUT_AT + Nanos::secs(1),
            above,
            single,
            copies,
            peeking,
            sent: BTreeMap::new(),
            instead: None,
            connmark: None,
        }
    }

    /// The packet as the last journey began with it: one that answers another, whose addresses NAT has
    /// changed, comes to the address that the other side knows.
    pub(crate) fn sent(&self, packet: &Packet) -> Packet {
        self.instead.as_ref().unwrap_or(packet).clone()
    }

    /// The mark of the connection that the last packet belonged to as it came; `None`: none was known.
    pub(crate) fn connmark(&self) -> Option<u32> {
        self.connmark
    }

    /// The machine: its counters, its devices.
    pub fn gateway(&mut self) -> &mut Gateway {
        &mut self.gateway
    }

    /// One more operation on its machine; `None`: it is refused.
    pub(crate) fn apply(&mut self, op: &Op) -> Option<()> {
        let Prober { gateway, pool, draws, now, .. } = self;
        gateway.apply(GatewayContext { now: *now, pool, random: draws }, op).ok().map(|_| ())
    }

    /// The present of the machine.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The device of that name.
    pub fn device(&self, name: &str) -> Option<DeviceId> {
        self.gateway.device(name)
    }

    /// A filter's actions with what they have counted by now.
    pub(crate) fn actions_of(&mut self, filter: &FilterDump) -> Vec<ActionDump> {
        let FilterEntry::Filter { handle: wanted, .. } = &filter.entry else { return Vec::new() };
        let Some(device) = self.device(&filter.dev) else { return Vec::new() };
        let list = self.gateway.filters(self.now, device, filter.parent).unwrap_or_default();
        let same = list.into_iter().filter(|other| (other.pref, other.chain) == (filter.pref, filter.chain));
        let actions = same.filter_map(|other| match other.entry {
            FilterEntry::Filter { handle, actions, .. } if handle == *wanted => Some(actions),
            _ => None,
        });
        actions.flatten().collect()
    }

    /// Sends a packet out by a device and lets it leave.
    pub fn send(&mut self, packet: &Packet, device: DeviceId, route: EgressPath) -> ProbeResult {
        self.travel(packet, PacketEntry::Leaves(device, route))
    }

    /// Sends a packet, follows it through the queues, and lets it leave.
    pub fn travel(&mut self, packet: &Packet, course: PacketEntry) -> ProbeResult {
        self.travel_with(packet, course, &mut |_| ())
    }

    /// As `travel`; the observer is called at each stop while the packet is there.
    pub(crate) fn travel_with(
        &mut self,
        packet: &Packet,
        course: PacketEntry,
        look: Look<'_>,
    ) -> ProbeResult {
        self.gateway.forget_connections();
        self.sent = self.peeking.clone().into_iter().flat_map(|device| self.sent_by(device)).collect();
        let instead = self.prepare(packet, course);
        // What was shown to the hooks before is no part of this packet's way.
        drop(self.gateway.take_seen());
        self.instead = instead;
        let packet = &self.sent(packet);
        let header = match course {
            PacketEntry::Arrives(device) | PacketEntry::Through(device, _) => self.link_header(device),
            PacketEntry::Leaves(device, route) => self.header_before(device, route),
        };
        let Some(pkt) = self.pool.insert(packet.meta(header), packet.head()) else {
            return ProbeResult::nowhere();
        };
        self.connmark = self.gateway.known_connection_mark(self.now, &self.pool, &pkt);
        let mut trip = Trip { slot: pkt.slot(), stops: Vec::new(), dropped: None, look };
        let came = match course {
            PacketEntry::Leaves(device, route) => return self.leave(trip, pkt, device, route),
            PacketEntry::Arrives(device) | PacketEntry::Through(device, _) => {
                self.arrive(&mut trip, pkt, device)
            }
        };
        match (came, course) {
            (Some((pkt, came_in)), PacketEntry::Through(_, to)) => {
                self.leave(trip, pkt, to, EgressPath::Forwarded(Some(came_in)))
            }
            (came, _) => {
                let way = ProbeResult { routed: came.is_some(), ..self.result_of(trip) };
                came.into_iter().for_each(|(pkt, _)| self.pool.release(pkt));
                way
            }
        }
    }

    /// Out by a device; an ifb on the way gives the packet back there.
    fn leave(&mut self, mut trip: Trip<'_>, pkt: Pkt, device: DeviceId, route: EgressPath) -> ProbeResult {
        let Prober { gateway, pool, draws, now, .. } = self;
        let offer = gateway.offer(GatewayContext { now: *now, pool, random: draws }, device, route, pkt);
        self.after_offer(&mut trip, device, offer);
        self.result_of(trip)
    }

    /// Lets go of what filters had arrive somewhere; where the packet itself is among it: by which device.
    fn arrived(&mut self, slot: usize) -> Option<DeviceId> {
        let mut by = None;
        while let Some((arrived, device)) = self.gateway.take_arrived() {
            if arrived.slot() == slot {
                by = Some(device);
            }
            self.pool.release(arrived);
        }
        by
    }

    /// In by a device; packets for routing come back, with the device they came in by.
    fn arrive(&mut self, trip: &mut Trip<'_>, pkt: Pkt, device: DeviceId) -> Option<(Pkt, DeviceId)> {
        let Prober { gateway, pool, draws, now, .. } = self;
        let received = gateway.receive(GatewayContext { now: *now, pool, random: draws }, device, pkt);
        // Only the packet itself is followed, not copies of it.
        while let Some((copy, _)) = gateway.take_arrived() {
            pool.release(copy);
        }
        match received {
            ReceiveOutcome::Passed(pkt, came_in) => Some((pkt, came_in)),
            ReceiveOutcome::Dropped | ReceiveOutcome::Redirected(_) => {
                self.note_losses(trip, device);
                let (pkt, _) = self.visit_led(trip, device, false)?;
                Some((pkt, device))
            }
        }
    }

    /// Reads where an offered packet is queued, and lets it leave; a packet from an ifb continues.
    fn after_offer(&mut self, trip: &mut Trip<'_>, device: DeviceId, offer: XmitStatus) {
        let (mut device, mut offer, mut came_back) = (device, offer, false);
        let mut led_inside = false;
        for _ in 0..MOST_STOPS {
            let led = self.note_losses(trip, device) || core::mem::take(&mut led_inside);
            if let Some(by) = self.arrived(trip.slot) {
                self.visit(trip, Stop { led_to: Some(by), came_back, ..Stop::bare(device) });
                return;
            }
            // A hook of clsact shows it by the result of the offer alone; a packet that is refused where it
            // was redirected, by nothing.
            if led || offer == XmitStatus::Away || offer == XmitStatus::Stopped && trip.dropped.is_none() {
                let Some((pkt, back)) = self.visit_led(trip, device, came_back) else { return };
                let Some(out) = back else { return self.pool.release(pkt) };
                (device, came_back) = (out, true);
                let Prober { gateway, pool, draws, now, .. } = self;
                offer = gateway.offer_back(GatewayContext { now: *now, pool, random: draws }, device, pkt);
                continue;
            }
            if offer != XmitStatus::Stopped && trip.dropped.is_none() {
                let stop = Stop { came_back, ..self.stop(device) };
                self.visit(trip, stop);
            }
            let (left, led) = self.let_leave(trip, device);
            let Some(pkt) = left else {
                if led {
                    // A filter below a netem redirected it as it waited.
                    led_inside = true;
                    continue;
                }
                return;
            };
            self.pool.release(pkt);
            return;
        }
    }

    /// Continues at the device to which the packet was redirected, if it was. A packet from an ifb comes
    /// back, with the device by which it was leaving, if it was.
    fn visit_led(
        &mut self,
        trip: &mut Trip<'_>,
        from: DeviceId,
        came_back: bool,
    ) -> Option<(Pkt, Option<DeviceId>)> {
        // Copies are no stops of the packet itself. It may be led back to the device where it came in.
        let other = |id: &DeviceId| !self.copies.contains(id);
        let ids: Vec<DeviceId> = self.gateway.devices().filter(other).collect();
        let mut led = Vec::new();
        for device in ids {
            if self.gateway.take_redirect_target_flag(device) {
                // Devices that redirected it further come before the one where it ended, or waits.
                let further = self.note_losses(trip, device);
                let waits = !self.gateway.waiting(device).is_empty();
                if device != from || waits {
                    led.push((waits, !further, device));
                }
            }
        }
        led.sort_unstable();
        let last = led.last()?.2;
        let mut at = from;
        for (_, _, device) in led {
            let came_back = came_back && at == from;
            self.visit(trip, Stop { led_to: Some(device), came_back, ..Stop::bare(at) });
            at = device;
        }
        if trip.dropped.is_some() {
            return None;
        }
        let stop = self.stop(last);
        self.visit(trip, stop);
        let pkt = self.let_leave(trip, last).0?;
        if self.gateway.spec(last).kind != DeviceKind::Ifb {
            // Any other device sends it: it does not come back.
            self.pool.release(pkt);
            return None;
        }
        let back =
            self.gateway.returned_from(&self.pool, &pkt).and_then(|(device, out)| out.then_some(device));
        Some((pkt, back))
    }

    /// Reads what happened on a device: drops are noted; true if the packet was redirected.
    fn note_losses(&mut self, trip: &mut Trip<'_>, device: DeviceId) -> bool {
        let mut led = false;
        let slot = trip.slot;
        for event in self.gateway.events(device) {
            match event.what {
                // Copies are not followed.
                EventKind::Drop(why) if trip.dropped.is_none() && event.slot as usize == slot => {
                    trip.dropped = Some(Loss { device, at: event.at, why })
                }
                EventKind::Drop(_) => {}
                EventKind::Redirected => led = true,
            }
        }
        led
    }

    /// Notes a stop, and shows it.
    fn visit(&mut self, trip: &mut Trip<'_>, stop: Stop) {
        let Prober { gateway, pool, now, .. } = self;
        if let (Some(meta), Some(head)) = (pool.last_known(trip.slot), pool.last_head(trip.slot)) {
            let mut head = head.clone();
            head.set_dsfield(meta.dsfield);
            (trip.look)(Glimpse {
                gateway,
                now: *now,
                stop: &stop,
                head,
                mark: meta.mark.0,
                priority: meta.priority,
            });
        }
        trip.stops.push(stop);
    }

    /// What each qdisc and class of a device has sent, packets. (No class has the number of a qdisc but the
    /// root class of an HFSC, which is that qdisc.)
    fn sent_by(&mut self, device: DeviceId) -> Vec<((DeviceId, Handle), u64)> {
        let qdiscs = self.gateway.qdiscs(self.now, device).into_iter();
        let qdiscs = qdiscs.map(|qdisc| (qdisc.handle, qdisc.stats.packets));
        let classes = self.gateway.classes(self.now, device).into_iter();
        let classes = classes.filter(|class| class.classid.minor() != 0);
        let classes = classes.filter_map(|class| Some((class.classid, class.stats?.packets)));
        qdiscs.chain(classes).map(|(handle, packets)| ((device, handle), packets)).collect()
    }

    /// Adds to the qdiscs that hold a packet those below, out of which the last of them took it.
    fn taken_out_of(&mut self, device: DeviceId, qdiscs: &mut Vec<BacklogLocation>) {
        let sent = self.sent_by(device);
        let has_sent = |handle: Handle| {
            let before = self.sent.get(&(device, handle)).copied().unwrap_or(0);
            !handle.is_none() && sent.iter().any(|((_, own), now)| *own == handle && *now > before)
        };
        let all = self.gateway.qdiscs(self.now, device);
        let classes = self.gateway.classes(self.now, device);
        while qdiscs.len() < MOST_DEEP {
            let last = qdiscs.last().map_or(Handle::NONE, |spot| spot.qdisc);
            if last.is_none() {
                return;
            }
            let inside = |qdisc: &&QdiscDump| qdisc.parent.qdisc() == last && has_sent(qdisc.handle);
            let below = all.iter().find(inside).map(|qdisc| (qdisc.handle, qdisc.kind, qdisc.parent));
            // A class whose qdisc no command made.
            let is_leaf = |class: &ClassDump| classes.iter().all(|other| other.parent != class.classid);
            let bare = classes
                .iter()
                .find(|class| class.classid.qdisc() == last && has_sent(class.classid) && is_leaf(class))
                .filter(|class| !class.kind.classes_are_flows());
            let next = below.or(bare.map(|class| (Handle::NONE, Kind::Pfifo, class.classid)));
            let Some((qdisc, kind, on)) = next else { return };
            qdiscs.push(BacklogLocation { qdisc, kind, on });
        }
    }

    /// Where the packet waits on a device.
    fn stop(&mut self, device: DeviceId) -> Stop {
        let mut qdiscs = self.gateway.waiting(device);
        if self.peeking.contains(&device) {
            self.taken_out_of(device, &mut qdiscs);
        }
        let mut classes = Vec::new();
        for spot in &qdiscs {
            if spot.on != Handle::ROOT && spot.on.minor() != 0 {
                // What has one class holds its qdisc there, whatever class of it a command named
                // (`parent 20:2` of a tbf).
                let qdisc = spot.on.qdisc();
                let has_one = self.single.contains(&(device, qdisc));
                self.push_line(&mut classes, device, if has_one { qdisc.class(1) } else { spot.on });
            }
        }
        Stop { classes, qdiscs, ..Stop::bare(device) }
    }

    /// The path of a packet that a device refused, where these classes took it.
    pub(crate) fn refused_in(&self, device: DeviceId, took: impl Iterator<Item = Handle>) -> Stop {
        let mut classes = Vec::new();
        for class in took.filter(|class| class.minor() != 0) {
            if !classes.contains(&class) {
                self.push_line(&mut classes, device, class);
            }
        }
        Stop { classes, ..Stop::bare(device) }
    }

    /// A class, after all that are above it in its qdisc.
    fn push_line(&self, classes: &mut Vec<Handle>, device: DeviceId, class: Handle) {
        let from = classes.len();
        let mut at = Some(class);
        while let Some(class) = at.filter(|class| !classes[from..].contains(class)) {
            classes.push(class);
            at = self.above.get(&(device, class)).copied().filter(|above| above.qdisc() == class.qdisc());
        }
        classes[from..].reverse();
    }

    /// Polls a device, waiting as long as it wants, until nothing is left there; gives the packet that was
    /// sent, and whether one was redirected meanwhile.
    fn let_leave(&mut self, trip: &mut Trip<'_>, device: DeviceId) -> (Option<Pkt>, bool) {
        let mut left = None;
        for _ in 0..MOST_WAITS {
            let Prober { gateway, pool, draws, now, .. } = self;
            if let Some(pkt) = gateway.poll(GatewayContext { now: *now, pool, random: draws }, device) {
                if pkt.slot() == trip.slot {
                    left = Some(pkt)
                } else {
                    pool.release(pkt)
                }
                continue;
            }
            let Some(next) = gateway.timeout(device).filter(|_| gateway.qlen(device) > 0) else { break };
            self.now = self.now.max(next);
            self.gateway.fire(self.now, device);
        }
        let matches =
            |gateway: &mut Gateway, now| gateway.qdiscs(now, device).iter().any(|q| q.kind == Kind::Plug);
        debug_assert!(
            self.gateway.qlen(device) == 0 || matches(&mut self.gateway, self.now),
            "a packet alone on a machine leaves in the end, but for a plug"
        );
        let led = self.note_losses(trip, device);
        (left, led)
    }

    /// Lets copies leave that actions sent to other devices: only the packet itself is followed.
    fn drop_copies(&mut self) {
        let ids: Vec<DeviceId> = self.gateway.devices().collect();
        for device in ids {
            if !self.gateway.take_redirect_target_flag(device) {
                continue;
            }
            for _ in 0..MOST_WAITS {
                let Prober { gateway, pool, draws, now, .. } = self;
                if let Some(pkt) = gateway.poll(GatewayContext { now: *now, pool, random: draws }, device) {
                    pool.release(pkt);
                    continue;
                }
                let Some(next) = gateway.timeout(device).filter(|_| gateway.qlen(device) > 0) else { break };
                self.now = self.now.max(next);
                self.gateway.fire(self.now, device);
            }
            self.gateway.events(device).for_each(drop);
        }
    }

    fn result_of(&mut self, trip: Trip<'_>) -> ProbeResult {
        self.drop_copies();
        let Some(meta) = self.pool.last_known(trip.slot) else { return ProbeResult::nowhere() };
        let Meta { dsfield, priority, mark, .. } = *meta;
        let state = conntrack::state(meta);
        ProbeResult {
            state,
            mark: mark.0,
            dsfield,
            priority,
            stops: trip.stops,
            dropped: trip.dropped,
            routed: true,
        }
    }

    fn link_header(&self, device: DeviceId) -> u32 {
        self.gateway.spec(device).link_header
    }

    /// Bytes of link header that a frame counts before it is given to a device.
    fn header_before(&self, device: DeviceId, route: EgressPath) -> u32 {
        match route {
            EgressPath::Direct => self.link_header(device),
            EgressPath::Forwarded(Some(from)) => self.link_header(from),
            EgressPath::Forwarded(None) | EgressPath::Local => Head::ETHERNET as u32,
        }
    }
}

/// Gives devices without an address those that they have in `tidegate run`: the way out has 192.0.2.2, the
/// others have 192.168.1.1 and so on. Else all devices would masquerade to one address.
fn give_addresses(gateway: &mut Gateway) {
    let leads = |kind| {
        matches!(kind, DeviceKind::Ethernet | DeviceKind::PointToPoint | DeviceKind::Raw | DeviceKind::Bridge)
    };
    let ids: Vec<DeviceId> = gateway.devices().filter(|id| leads(gateway.spec(*id).kind)).collect();
    let (bridges, mut names): (Vec<DeviceId>, Vec<DeviceId>) =
        ids.into_iter().partition(|id| gateway.spec(*id).kind == DeviceKind::Bridge);
    names.extend(bridges);
    let out = |id: &DeviceId| ["ppp", "wan"].iter().any(|start| gateway.name(*id).starts_with(start));
    if let Some(modem) = names.iter().position(out) {
        names[..=modem].rotate_right(1);
    }
    for (number, id) in (0_u8..=254).zip(names) {
        let address = if number == 0 { OUTSIDE } else { [192, 168, number, 1] };
        if gateway.addresses(id).is_empty() {
            let name = gateway.name(id).to_owned();
            let op =
                Op::Link(LinkOp::Address { name, add: true, address: IpAddr::from(address), prefix: 24 });
            let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
            // A device that is there takes its first address.
            let _ = gateway
                .apply(GatewayContext { now: CARRIED_OUT_AT, pool: &mut pool, random: &mut draws }, &op);
        }
    }
}

/// The devices that are mirrored to, and to which no filter redirects.
fn copies(reading: &PolicyModel, gateway: &Gateway) -> BTreeSet<DeviceId> {
    let acts = reading.filters.iter().flat_map(|dump| match &dump.entry {
        FilterEntry::Filter { actions, .. } => actions.as_slice(),
        _ => &[],
    });
    let (mut copies, mut redirected) = (BTreeSet::new(), BTreeSet::new());
    for act in acts.map(|dump| &dump.action.act) {
        redirected.extend(act.redirects_to().and_then(|to| gateway.device(to)));
        if let Act::Mirred(mirred) = act
            && mirred.copy
        {
            copies.extend(gateway.device(&mirred.to));
        }
    }
    copies.retain(|id| !redirected.contains(id));
    copies
}

/// A packet under way.
struct Trip<'l> {
    slot: usize,
    stops: Vec<Stop>,
    dropped: Option<Loss>,
    look: Look<'l>,
}

impl ProbeResult {
    /// Of a packet for which there was no room: the machine is never that full.
    fn nowhere() -> ProbeResult {
        debug_assert!(false, "one packet at a time always finds room");
        let state = Connstate::Untracked;
        ProbeResult {
            state,
            mark: 0,
            dsfield: 0,
            priority: 0,
            stops: Vec::new(),
            dropped: None,
            routed: false,
        }
    }
}

/// The two directions of a connection through the machine.
#[derive(Clone, Copy)]
struct Directions {
    /// The way of the packet itself; of one for the machine, where it comes in and answers leave.
    there: (DeviceId, EgressPath),
    /// Where it came in by, and answers leave by.
    from: Option<DeviceId>,
    /// It is for the machine itself.
    received: bool,
}

impl Directions {
    /// `None`: netfilter does not see the packet.
    fn of(course: PacketEntry) -> Option<Directions> {
        match course {
            PacketEntry::Leaves(device, EgressPath::Forwarded(from)) => {
                Some(Directions { there: (device, EgressPath::Forwarded(from)), from, received: false })
            }
            PacketEntry::Leaves(device, EgressPath::Local) => {
                Some(Directions { there: (device, EgressPath::Local), from: None, received: false })
            }
            PacketEntry::Through(from, to) => {
                let there = (to, EgressPath::Forwarded(Some(from)));
                Some(Directions { there, from: Some(from), received: false })
            }
            PacketEntry::Arrives(device) => {
                Some(Directions { there: (device, EgressPath::Local), from: None, received: true })
            }
            PacketEntry::Leaves(_, EgressPath::Direct) => None,
        }
    }
}

/// The packets before it, which give its connection the state that its words state.
impl Prober {
    /// Makes it true, and gives the packet to send in place of one that answers another: to the address the
    /// other side knows.
    fn prepare(&mut self, packet: &Packet, course: PacketEntry) -> Option<Packet> {
        let ways = Directions::of(course)?;
        let answers = packet.reply && matches!(packet.state, None | Some(Connstate::Established));
        let before = Packet { mark: 0, raw_bytes: Vec::new(), length: packet.shortest(), ..packet.clone() };
        let mut instead = None;
        match packet.state {
            Some(Connstate::Related) if packet.quotes() => {
                // An ICMP error goes to the tracked sender of the packet that it quotes.
                let seen =
                    self.show(&Packet { tcp_flags: tcp_flags::SYN, ..packet.quoted() }, ways, false, 0);
                instead = Some(Packet { destination: seen.source, ..packet.clone() });
            }
            Some(Connstate::Established) | None if answers || packet.state.is_some() => {
                let answered = self.converse(&before, ways);
                if packet.reply {
                    let Packet { source, destination, ports, .. } = answered;
                    instead = Some(Packet { source, destination, ports, ..packet.clone() });
                }
            }
            // A client whose request has just left has nothing to acknowledge.
            Some(Connstate::Invalid) if packet.protocol == proto::TCP => {
                self.show(&Packet { tcp_flags: tcp_flags::SYN, ..before }, ways, true, 0);
            }
            _ if packet.carried > 0 || packet.connmark > 0 => {
                drop(self.show(&before, ways, true, packet.connmark));
            }
            _ => {}
        }
        self.carry(instead.as_ref().unwrap_or(packet), ways);
        instead
    }

    /// Both sides send: the initiator, the responder, and where a protocol has a handshake, the initiator
    /// again. Returns the reply as it was sent.
    fn converse(&mut self, packet: &Packet, ways: Directions) -> Packet {
        let (forth, mark) = (!packet.reply, packet.connmark);
        let first = if forth { packet.clone() } else { packet.answer() };
        let first = Packet { tcp_flags: of_tcp(packet, tcp_flags::SYN), ..first };
        let seen = self.show(&first, ways, forth, 0);
        let answer = Packet { tcp_flags: of_tcp(packet, tcp_flags::SYN | tcp_flags::ACK), ..seen.answer() };
        self.show(&answer, ways, !forth, mark);
        if packet.protocol == proto::TCP {
            self.show(&Packet { tcp_flags: tcp_flags::ACK, ..first }, ways, forth, mark);
        }
        answer
    }

    /// As many bytes as the connection shall have carried in the packet's own direction.
    fn carry(&mut self, packet: &Packet, ways: Directions) {
        let mut left = packet.carried;
        let most = FULL.max(left.div_ceil(MOST_BEFORE)).min(u64::from(u16::MAX));
        for _ in 0..MOST_BEFORE {
            let length = left.min(most) as u16;
            if length < packet.shortest() {
                return;
            }
            let segment = Packet { length, mark: 0, raw_bytes: Vec::new(), ..packet.clone() };
            self.show(&segment, ways, true, packet.connmark);
            left -= u64::from(length);
        }
    }

    /// The destination with which a packet that is routed from one device to another leaves.
    pub(crate) fn destination_through(&mut self, packet: &Packet, from: DeviceId, to: DeviceId) -> IpAddr {
        self.gateway.forget_connections();
        let plain = Packet { mark: 0, raw_bytes: Vec::new(), ..packet.clone() };
        let destination = match Directions::of(PacketEntry::Through(from, to)) {
            Some(ways) => self.show(&plain, ways, true, 0).destination,
            None => packet.destination,
        };
        drop(self.gateway.take_seen());
        self.gateway.forget_connections();
        destination
    }

    /// Passes the hooks a packet of the same direction as the one to be sent, or of the opposite one; its
    /// connection gets a mark, if one is given. Returns the packet with the addresses it left with.
    fn show(&mut self, packet: &Packet, ways: Directions, there: bool, connmark: u32) -> Packet {
        let header = match ways {
            Directions { there: (device, route), received, .. } if there != received => {
                self.header_before(device, route)
            }
            Directions { there: (device, _), .. } => self.link_header(device),
        };
        let Prober { gateway, pool, now, .. } = self;
        let Some(pkt) = pool.insert(packet.meta(header), packet.head()) else { return packet.clone() };
        let (device, route) = ways.there;
        match ways.from {
            _ if there != ways.received => drop(gateway.only_hooks(*now, pool, device, route, &pkt)),
            Some(from) => {
                gateway.only_hooks(*now, pool, from, EgressPath::Forwarded(Some(device)), &pkt);
            }
            None => drop(gateway.input(*now, pool, device, &pkt)),
        }
        if connmark > 0 {
            gateway.mark_connection(pool, &pkt, connmark);
        }
        let keys = dissect(pool.head(&pkt), Dissector::Legacy);
        pool.release(pkt);
        let mut seen = packet.clone();
        match keys.addrs {
            Addrs::V4(source, destination) => {
                (seen.source, seen.destination) = (source.into(), destination.into())
            }
            Addrs::V6(source, destination) => {
                (seen.source, seen.destination) = (source.into(), destination.into())
            }
            Addrs::None => {}
        }
        if has_ports(packet.protocol) {
            seen.ports = keys.ports;
        }
        seen
    }
}

/// Flags, of a packet that has such.
fn of_tcp(packet: &Packet, flags: u8) -> u8 {
    if packet.protocol == proto::TCP { flags } else { 0 }
}

//! One machine: its devices, its filters' actions, and netfilter's tables before them.

use crate::device::{DeviceId, DeviceKind, DeviceSpec, Port};
use crate::firewall::{Checkpoint, Firewall, Passage};
use crate::nat;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_classify::netfilter::{NetfilterTable, RuleTrace};
use tidegate_classify::{Outgoing, Shared};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Handle, Head, KernelModel, Pkt, Pool, RandomSource, RedirectedTo, Time, Timer};
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump};
use tidegate_policy::netfilter::{Hook, NfOp};
use tidegate_policy::{Errno, Op, TcError, Verb};
use tidegate_qdisc::{BacklogLocation, DropReason, Event, NO_BLOCK, Shaper, Switches, XmitStatus};

/// What a call on the gateway needs beside it: the time, where packets live, and randomness.
pub struct GatewayContext<'a> {
    /// The present time; never less than in the call before.
    pub now: Time,
    /// The pool that packets live in: the same for all calls.
    pub pool: &'a mut Pool,
    /// Where random draws come from.
    pub random: &'a mut dyn RandomSource,
}

/// How a packet comes to a device's egress, and so which chains it meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressPath {
    /// It is given to the device as it is: no netfilter.
    Direct,
    /// The machine routes it: PREROUTING, FORWARD, POSTROUTING. The device it came in by, if that is known.
    Forwarded(Option<DeviceId>),
    /// The machine's own programs send it: OUTPUT, POSTROUTING.
    Local,
}

/// A machine: devices with their qdiscs, filters and actions, and netfilter's tables. A [`DeviceId`] is valid
/// for the gateway that gave it; another gateway panics or takes it for another device.
#[derive(Default)]
pub struct Gateway {
    pub(crate) ports: Vec<Port>,
    pub(crate) firewall: Firewall,
    /// The handle that the next qdisc without one gets, once one was given out.
    pub(crate) next_handle: Option<u16>,
    /// Its kernel, once it was said.
    pub(crate) kernel: Option<KernelModel>,
    pub(crate) shared: Box<Shared>,
    /// Packets that filters had arrive at other devices, and those; routing is yet to see them.
    pub(crate) arrived: VecDeque<(Pkt, DeviceId)>,
    /// Packets came to other devices as one was polled, since this was asked last.
    pub(crate) redirected_by_polls: bool,
    /// The time at which ifbs gave packets back last, and how many they did then.
    pub(crate) given_back: (Time, u32),
    /// Devices that are polled one inside the other, as packets are redirected from each to the next.
    pub(crate) polled_inside: u32,
    /// The list that packets on their way to other devices are taken from, kept for its memory.
    pub(crate) outgoing: Vec<Outgoing>,
    /// Actions of deleted filters stay until time continues ([`Gateway::defer_releases`]).
    pub(crate) defers_releases: bool,
}

impl core::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let shapers = self.ports.iter().filter(|port| !port.is_gone()).map(|port| (&port.name, &port.shaper));
        f.debug_map().entries(shapers).finish()
    }
}

pub(crate) const NO_DEVICE: TcError = TcError::new(Errno::NoDev, "Cannot find device");

impl Gateway {
    /// A machine without devices.
    pub fn new() -> Gateway {
        Gateway::default()
    }

    /// The kernel whose behaviour the machine shows.
    pub fn kernel(&self) -> KernelModel {
        self.kernel.unwrap_or_default()
    }

    /// Sets it, for packets that come and qdiscs that are made from now on, on all devices. Until it is set,
    /// each device follows the release that its spec names.
    pub fn set_kernel(&mut self, kernel: KernelModel) {
        self.kernel = Some(kernel);
        self.firewall.linux = kernel.linux;
        self.switch(|switches| switches.linux = kernel.linux);
    }

    /// Changes how all devices differ from a stock kernel's from now on; devices added later take the
    /// switches of their spec.
    pub fn switch(&mut self, change: impl Fn(&mut Switches)) {
        for port in &mut self.ports {
            let mut spec = port.spec;
            change(&mut spec.switches);
            port.respec(spec);
        }
    }

    /// Adds a device; one of that name that is there already stays and is returned.
    pub fn add_device(&mut self, name: &str, spec: DeviceSpec) -> DeviceId {
        if let Some(id) = self.device(name) {
            return id;
        }
        let mut spec = spec;
        if let Some(kernel) = self.kernel {
            spec.switches.linux = kernel.linux;
        }
        self.firewall.linux = spec.switches.linux;
        self.shared.actions.carries_on = true;
        let end = self.ports.len() as u32;
        match self.ports.iter_mut().zip(0..).find(|(port, _)| port.is_gone()) {
            Some((place, at)) => {
                *place = Port::new(DeviceId(at), name, spec);
                self.shared.actions.set_device_up(at, true);
                DeviceId(at)
            }
            None => {
                self.ports.push(Port::new(DeviceId(end), name, spec));
                DeviceId(end)
            }
        }
    }

    /// The device of that name.
    pub fn device(&self, name: &str) -> Option<DeviceId> {
        self.ports.iter().position(|port| port.name == name && !port.is_gone()).map(|at| DeviceId(at as u32))
    }

    /// The name of a device, as commands give it.
    pub fn name(&self, device: DeviceId) -> &str {
        &self.ports[device.0 as usize].name
    }

    /// What a device is: its kind, sizes and timers.
    pub fn spec(&self, device: DeviceId) -> DeviceSpec {
        self.ports[device.0 as usize].spec
    }

    /// The devices that are there, in the order in which they were made; deleted ones are left out.
    pub fn devices(&self) -> impl Iterator<Item = DeviceId> + use<> {
        let there: Vec<_> =
            (0..).zip(&self.ports).filter(|(_, port)| !port.is_gone()).map(|(at, _)| at).collect();
        there.into_iter().map(DeviceId)
    }

    pub(crate) fn port(&mut self, device: DeviceId) -> &mut Port {
        &mut self.ports[device.0 as usize]
    }

    pub(crate) fn named(&mut self, name: &str) -> Result<&mut Port, TcError> {
        self.ports.iter_mut().find(|port| port.name == name && !port.is_gone()).ok_or(NO_DEVICE)
    }

    /// Carries out an operation; what comes back is a warning. A refused operation has changed nothing.
    ///
    /// # Errors
    /// As the kernel refuses, in its words.
    pub fn apply(&mut self, world: GatewayContext<'_>, op: &Op) -> Result<Option<String>, TcError> {
        let now = world.now;
        self.count_actions(now);
        let done = self.carry_out(world, op);
        if may_remove_filters(op) {
            self.shared.actions.filters_may_be_gone(now);
        }
        done
    }

    /// Has the kernel be one without zones and labels of connections; those of distributions have them.
    pub fn without_zones(&mut self) {
        self.shared.actions.without_zones();
        self.firewall.connections.without_zones();
    }

    /// Whether actions of deleted filters stay until time continues. In Linux 6.1 they do, for an RCU grace
    /// period of some milliseconds: two lines of one batch see them, two commands of a script do not. Returns
    /// what was set before.
    pub fn defer_releases(&mut self, defers: bool) -> bool {
        core::mem::replace(&mut self.defers_releases, defers)
    }

    fn carry_out(&mut self, world: GatewayContext<'_>, op: &Op) -> Result<Option<String>, TcError> {
        let GatewayContext { now, pool, random: draws } = world;
        match op {
            Op::Qdisc(op) => {
                // The kernel hands out handles from one counter for all devices.
                let next = self.next_handle;
                let device = self.device(&op.dev).ok_or(NO_DEVICE)?;
                let (done, next) = self.lent(device, |shaper| {
                    shaper.set_next_handle(next);
                    (shaper.qdisc_op(now, pool, draws, op), shaper.next_handle())
                });
                self.next_handle = Some(next);
                let port = self.named(&op.dev)?;
                port.spec.tx_queue_len = port.shaper.device().tx_queue_len;
                done.map(|()| None)
            }
            Op::Class(op) => self.named(&op.dev)?.shaper.class_op(now, pool, draws, op),
            Op::Filter(op) => {
                let op = self.complete(op)?;
                tidegate_classify::flushes_all(&op)?;
                if op.block != 0 {
                    let device = self.device_for(&op)?;
                    return self
                        .lent(device, |shaper| shaper.block_filter_op(now, pool, draws, &op))
                        .map(|()| None);
                }
                let device = self.device(&op.dev).ok_or(NO_DEVICE)?;
                self.lent(device, |shaper| shaper.filter_op(now, pool, draws, &op)).map(|()| None)
            }
            Op::Chain(op) if op.block != 0 => {
                let shared = &mut self.shared;
                let filters = shared.blocks.get_mut(op.block).ok_or(NO_BLOCK)?;
                filters.apply_chain(op, &shared.actions).map(|()| None)
            }
            Op::Chain(op) => {
                let device = self.device(&op.dev).ok_or(NO_DEVICE)?;
                self.lent(device, |shaper| shaper.chain_op(now, pool, draws, op)).map(|()| None)
            }
            Op::Actions(op) => {
                let op = self.complete_actions(op)?;
                self.shared.actions.apply(&op, now)
            }
            Op::Netfilter(op) => self.firewall.apply(op).map(|()| None),
            Op::Link(op) => self.link(GatewayContext { now, pool, random: draws }, op).map(|()| None),
            Op::TxQueueLen { dev, packets } => {
                let port = self.named(dev)?;
                port.shaper.set_queue_len(now, pool, draws, *packets);
                port.respec(DeviceSpec { tx_queue_len: *packets, ..port.spec });
                Ok(None)
            }
            Op::Ring { dev, frames } => {
                let port = self.named(dev)?;
                port.respec(DeviceSpec { ring: *frames, ..port.spec });
                Ok(None)
            }
            Op::Mtu { dev, bytes } => {
                let port = self.named(dev)?;
                port.spec.kind.check_mtu(*bytes)?;
                port.respec(DeviceSpec { mtu: *bytes, ..port.spec });
                Ok(None)
            }
        }
    }

    /// Carries out all of these operations on netfilter's tables or, where one is refused, none.
    ///
    /// # Errors
    /// The number of the operation that is refused, and why.
    pub fn apply_netfilter(&mut self, ops: &[NfOp]) -> Result<(), (usize, TcError)> {
        self.firewall.apply_all(ops)
    }

    /// Netfilter as it is, to come back to.
    pub fn checkpoint(&self) -> Checkpoint {
        self.firewall.checkpoint()
    }

    /// Restores netfilter as it was at the checkpoint.
    pub fn revert(&mut self, to: Checkpoint) {
        self.firewall.revert(to);
    }

    /// iptables' tables that something was done to, in the order of `iptables-save`.
    pub fn tables(&self, ipv6: bool) -> Vec<&NetfilterTable> {
        self.firewall.tables(ipv6)
    }

    /// All tables of netfilter, whichever tool made them.
    pub fn all_tables(&self) -> &[NetfilterTable] {
        &self.firewall.tables
    }

    /// The chains that packets of a family meet at a hook, in the order in which they do: the table, and the
    /// chain's number in it.
    pub fn chains_at(&self, ipv6: bool, hook: Hook) -> Vec<(&NetfilterTable, usize)> {
        self.firewall.chains_at(ipv6, hook)
    }

    /// One of iptables' tables as it is, made if it is not there.
    pub fn table(&mut self, ipv6: bool, name: &str) -> &NetfilterTable {
        self.firewall.table(ipv6, name)
    }

    /// Gives a packet to a device's egress by a route.
    pub fn offer(
        &mut self,
        world: GatewayContext<'_>,
        device: DeviceId,
        route: EgressPath,
        pkt: Pkt,
    ) -> XmitStatus {
        let GatewayContext { now, pool, random: draws } = world;
        pool.set_dissector(self.kernel().dissector);
        pool.meta_mut(&pkt).came_in = match route {
            EgressPath::Forwarded(Some(from)) => from.number(),
            _ => 0,
        };
        let passes = self.hooks(now, pool, device, route, &pkt);
        let why = match passes {
            Passage::Passed => None,
            Passage::Dropped => Some(DropReason::Netfilter),
            Passage::DroppedLeaving => Some(DropReason::NetfilterLeaving),
        };
        if let Some(why) = why {
            self.port(device).shaper.refuse(now, pool, draws, pkt, why);
            return XmitStatus::Stopped;
        }
        if self.ports[device.0 as usize].down {
            pool.release(pkt);
            return XmitStatus::Stopped;
        }
        let offer = self.lent(device, |shaper| shaper.offer(now, pool, draws, pkt));
        self.follow(GatewayContext { now, pool, random: draws }, device, offer)
    }

    /// Shows a packet to the hooks of its route. They count from the network header on, and what they are
    /// given has an Ethernet header; a packet that passed gets the link header of the device it leaves by.
    fn hooks(
        &mut self,
        now: Time,
        pool: &mut Pool,
        device: DeviceId,
        route: EgressPath,
        pkt: &Pkt,
    ) -> Passage {
        const SHOWN: u32 = Head::ETHERNET as u32;
        let Gateway { ports, firewall, .. } = self;
        let header = |id: DeviceId| ports[id.0 as usize].spec.link_header;
        let name = |id: DeviceId| ports[id.0 as usize].name.as_str();
        let home = |name: &str, v6: bool| address(ports, name, v6);
        if let EgressPath::Forwarded(Some(from)) = route {
            reframe(pool, pkt, header(from), SHOWN);
            if pool.meta(pkt).rewritten() && !is_taken_in(pool, pkt) {
                return Passage::Dropped;
            }
        }
        let passage = match route {
            EgressPath::Direct => return Passage::Passed,
            EgressPath::Local => firewall.send(now, name(device), &home, pool, pkt),
            EgressPath::Forwarded(from) => {
                firewall.forward(now, (from.map_or("", name), name(device)), &home, pool, pkt)
            }
        };
        reframe(pool, pkt, SHOWN, header(device));
        passage
    }

    /// Shows netfilter a packet that would leave by `device` and does not: connections remember it, no queue
    /// does. False: a rule drops it.
    pub fn only_hooks(
        &mut self,
        now: Time,
        pool: &mut Pool,
        device: DeviceId,
        route: EgressPath,
        pkt: &Pkt,
    ) -> bool {
        self.hooks(now, pool, device, route, pkt) == Passage::Passed
    }

    /// Begins to note what packets meet in netfilter's tables.
    pub fn watch(&mut self) {
        self.firewall.watch = Some(Vec::new());
    }

    /// The rule traces noted since the last call; noting continues.
    pub fn take_seen(&mut self) -> Vec<RuleTrace> {
        self.firewall.watch.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Whether any rule so far had connections looked up: one that asks for states or marks of connections,
    /// or NAT.
    #[must_use]
    pub fn tracks_connections(&self) -> bool {
        self.firewall.connections.requested().is_active()
    }

    /// Connections are forgotten, as by `conntrack -F`.
    pub fn forget_connections(&mut self) {
        self.firewall.connections.forget_all();
    }

    /// Gives the connection of a packet that passed the hooks a mark, as by `conntrack -U --mark`.
    pub fn mark_connection(&mut self, pool: &Pool, pkt: &Pkt, mark: u32) {
        self.firewall.connections.set_mark(pool.meta(pkt), mark);
    }

    /// The mark of the connection that a packet belongs to, or would be found in before it passes the hooks;
    /// `None`: no connection is known.
    pub fn known_connection_mark(&mut self, now: Time, pool: &Pool, pkt: &Pkt) -> Option<u32> {
        self.firewall.connections.known_mark(now, pool, pkt, 0)
    }

    /// Shows netfilter a packet that came in by `device` and is for the machine itself; false if a rule drops
    /// it.
    pub fn input(&mut self, now: Time, pool: &mut Pool, device: DeviceId, pkt: &Pkt) -> bool {
        let Gateway { ports, firewall, .. } = self;
        let home = |name: &str, v6: bool| address(ports, name, v6);
        let port = &ports[device.0 as usize];
        reframe(pool, pkt, port.spec.link_header, Head::ETHERNET as u32);
        let passes = firewall.receive(now, &port.name, &home, pool, pkt);
        reframe(pool, pkt, Head::ETHERNET as u32, port.spec.link_header);
        passes
    }

    /// Takes the next packet that a device may send. Filters below a netem decide about packets now: other
    /// devices may have got some ([`Gateway::take_redirect_target_flag`], [`Gateway::take_arrived`]), whether
    /// this one sends or not.
    pub fn poll(&mut self, world: GatewayContext<'_>, device: DeviceId) -> Option<Pkt> {
        if self.ports[device.0 as usize].has_news
            && let Some(pkt) = self.sent_before(device)
        {
            return Some(pkt);
        }
        self.poll_tree(world, device)
    }

    /// Takes the next packet that the qdiscs of a device let go.
    #[inline]
    pub(crate) fn poll_tree(&mut self, world: GatewayContext<'_>, device: DeviceId) -> Option<Pkt> {
        let GatewayContext { now, pool, random } = world;
        let mut polled = self.lent(device, |shaper| shaper.poll(now, pool, random));
        if self.shared.actions.has_outgoing() {
            polled = self.send_polled(GatewayContext { now, pool, random }, device, polled);
        }
        let pkt = polled?;
        let meta = pool.meta_mut(&pkt);
        meta.passed_over = false;
        if meta.redirected_to != RedirectedTo::NOWHERE {
            meta.came_in = device.number();
        }
        let is_tagged = matches!(meta.ethertype, ethertype::VLAN | ethertype::QINQ);
        // An ifb sends nothing: the tag stays beside the packet (recorded: answers-rewrite/vlans-two-mirred).
        if is_tagged && self.port(device).spec.kind != DeviceKind::Ifb {
            tag_frame(pool, &pkt);
        }
        Some(pkt)
    }

    /// Sends on what actions led to other devices as this one was polled, and has a root that stopped for
    /// that go on.
    #[cold]
    #[inline(never)]
    fn send_polled(
        &mut self,
        world: GatewayContext<'_>,
        device: DeviceId,
        polled: Option<Pkt>,
    ) -> Option<Pkt> {
        let GatewayContext { now, pool, random } = world;
        let mut polled = polled;
        while self.shared.actions.has_outgoing() {
            self.redirected_by_polls = true;
            let paused = self.shared.actions.take_paused();
            self.send_outgoing(GatewayContext { now, pool, random }, device, 0);
            // Each turn takes a packet out of the netem that stopped.
            if paused && polled.is_none() {
                polled = self.lent(device, |shaper| shaper.poll(now, pool, random));
            }
        }
        polled
    }

    /// When a device's egress wants to be polled again.
    pub fn timeout(&mut self, device: DeviceId) -> Option<Time> {
        self.port(device).shaper.timeout()
    }

    /// Tells a device's watchdogs the time; true if it must be polled.
    pub fn fire(&mut self, now: Time, device: DeviceId) -> bool {
        self.port(device).shaper.fire(now)
    }

    /// When the earliest change of a hash key of the machine is due.
    pub fn perturb_due(&mut self) -> Time {
        self.first_timer().at
    }

    fn first_timer(&mut self) -> Timer {
        self.ports.iter_mut().map(|port| port.shaper.perturb_due()).min().unwrap_or(Timer::NEVER)
    }

    /// Changes the hash key that is due first.
    pub fn perturb(&mut self, world: GatewayContext<'_>) {
        let due = self.first_timer();
        if let Some(port) =
            self.ports.iter_mut().find_map(|port| (port.shaper.perturb_due() == due).then_some(port))
        {
            port.shaper.perturb(world.now, world.pool, world.random);
        }
    }

    /// Routed packets have a hop less from then on, and are dropped with their last. Off by default: it costs
    /// a look at the header of each.
    pub fn count_hops(&mut self) {
        self.firewall.counts_hops = true;
    }

    /// Hash keys change when the driver reports a timer, which may be late; `never_turned`: no maintenance
    /// timer has run since the start.
    pub fn late_timers(&mut self, never_turned: bool) {
        for port in &mut self.ports {
            port.shaper.late_timers(never_turned);
        }
    }

    /// Packets waiting in a device's tree.
    pub fn qlen(&self, device: DeviceId) -> u32 {
        self.ports[device.0 as usize].shaper.qlen()
    }

    /// The qdiscs of a device in which packets wait, from the root down.
    pub fn waiting(&mut self, device: DeviceId) -> Vec<BacklogLocation> {
        self.port(device).shaper.waiting()
    }

    /// Is anything configured on a device?
    pub fn is_configured(&self, device: DeviceId) -> bool {
        self.ports[device.0 as usize].shaper.is_configured()
    }

    /// What happened on a device since the last reading.
    pub fn events(&mut self, device: DeviceId) -> impl Iterator<Item = Event> + '_ {
        self.port(device).shaper.events()
    }

    /// The qdiscs of a device as tc lists them: those that are invisible, too, and what an mq begins with.
    pub fn listed_qdiscs(&mut self, now: Time, device: DeviceId) -> Vec<QdiscDump> {
        let port = self.port(device);
        port.shaper.list_qdiscs(&port.name, now)
    }

    /// The qdiscs of a device that commands made, and its root, in the order of tc's listing.
    pub fn qdiscs(&mut self, now: Time, device: DeviceId) -> Vec<QdiscDump> {
        let port = self.port(device);
        port.shaper.dump_qdiscs(&port.name, now)
    }

    /// The classes of a device.
    pub fn classes(&mut self, now: Time, device: DeviceId) -> Vec<ClassDump> {
        let port = self.port(device);
        port.shaper.dump_classes(&port.name, now)
    }

    /// The classes of a device that `tc class show` lists: Linux ends the listing at some qdiscs.
    pub fn listed_classes(&mut self, now: Time, device: DeviceId) -> Vec<ClassDump> {
        let port = self.port(device);
        port.shaper.list_classes(&port.name, now)
    }

    /// The filters of a qdisc or class of a device, as tc lists them.
    ///
    /// # Errors
    /// When there is no such parent.
    pub fn filters(
        &mut self,
        now: Time,
        device: DeviceId,
        parent: Handle,
    ) -> Result<Vec<FilterDump>, TcError> {
        self.listed(now, device, |shaper, name| shaper.dump_filters(now, name, parent))
    }

    /// The chains of filters of a qdisc or class, oldest first, and where they are.
    ///
    /// # Errors
    /// When there is no such parent.
    pub fn chains(&mut self, device: DeviceId, parent: Handle) -> Result<(Handle, Vec<u32>), TcError> {
        self.lent(device, |shaper| shaper.chains(parent))
    }

    /// The filters that packets are shown at a qdisc or class, without the tables of other lists that tc
    /// shows there.
    ///
    /// # Errors
    /// When there is no such parent.
    pub fn own_filters(
        &mut self,
        now: Time,
        device: DeviceId,
        parent: Handle,
    ) -> Result<Vec<FilterDump>, TcError> {
        self.listed(now, device, |shaper, name| shaper.own_filters(now, name, parent))
    }

    /// Filters of a device with what their actions counted and the names of the devices in them.
    fn listed(
        &mut self,
        now: Time,
        device: DeviceId,
        list: impl FnOnce(&mut Shaper, &str) -> Result<Vec<FilterDump>, TcError>,
    ) -> Result<Vec<FilterDump>, TcError> {
        self.count_actions(now);
        let name = self.name(device).to_owned();
        let mut dumps = self.lent(device, |shaper| list(shaper, &name))?;
        self.name_devices(&mut dumps);
        Ok(dumps)
    }
}

/// Can an operation delete or replace a filter?
fn may_remove_filters(op: &Op) -> bool {
    match op {
        Op::Filter(op) => op.verb != Verb::Add,
        Op::Chain(op) => !op.add,
        Op::Class(op) => op.verb == Verb::Delete,
        Op::Qdisc(_) | Op::Link(_) => true,
        _ => false,
    }
}

/// The tag beside a packet is written into its frame as it leaves.
fn tag_frame(pool: &mut Pool, pkt: &Pkt) {
    const TAG: u32 = 4;
    if !pool.head(pkt).tags().is_empty() {
        pool.meta_mut(pkt).frame_len += TAG;
    }
}

/// Whether the machine accepts a packet whose bytes were rewritten on the way to it: not without a valid
/// header. Bytes behind the IP length are cut, and the link header is not read again.
fn is_taken_in(pool: &mut Pool, pkt: &Pkt) -> bool {
    let meta = pool.meta(pkt);
    let network_len = meta.frame_len.saturating_sub(Head::ETHERNET as u32);
    // Tagged, it is for a device of that VLAN, and there is none.
    if !pool.head(pkt).tags().is_empty() {
        return false;
    }
    if meta.ethertype != ethertype::IPV4 {
        return true;
    }
    let Some(len) = pool.settle(pkt).sound_header(network_len) else { return false };
    pool.rewrite(pkt, |head| head.arrive(len));
    let meta = pool.meta_mut(pkt);
    meta.frame_len = Head::ETHERNET as u32 + len;
    meta.len = meta.frame_len;
    true
}

/// A packet with a link header of this many bytes gets one of so many others.
pub(crate) fn reframe(pool: &mut Pool, pkt: &Pkt, had: u32, has: u32) {
    let meta = pool.meta_mut(pkt);
    meta.frame_len = (meta.frame_len + has).saturating_sub(had);
    meta.len = meta.frame_len;
}

pub(crate) fn address(ports: &[Port], name: &str, v6: bool) -> Option<[u8; 16]> {
    nat::first(&ports.iter().find(|port| port.name == name)?.addresses, v6)
}

//! Packets that filters lead from one device to another, and what an ifb gives back.

use crate::device::{DeviceId, DeviceKind};
use crate::machine::{Gateway, GatewayContext, reframe};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use tidegate_classify::{Actions, Outgoing};
use tidegate_packet::{Pkt, Pool, RedirectedTo, Time};
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry};
use tidegate_policy::{Act, Action, ActionId, ActionsOp, Errno, FilterOp, TcError};
use tidegate_qdisc::{DropReason, IngressVerdict, Redirect, Shaper, XmitStatus};

/// Devices that one packet may be redirected through in one call; beyond that it is dropped, as in the kernel
/// a loop would be.
const MAX_REDIRECTS: u32 = Actions::MAX_REDIRECTS;

/// Packets that ifbs may give back to the devices they were leaving by at one time. More of them go round
/// (Linux would not stop), and are dropped.
const MAX_GIVEN_BACK: u32 = 1 << 16;

/// What happened to a packet that arrived at a device.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// The packet continues to routing, with this device as its input: another one where that is stacked on
    /// the first.
    Passed(Pkt, DeviceId),
    /// A filter redirected it to this device's egress, which must be polled; an ifb gives it back there (see
    /// [`Gateway::returned_from`]).
    Redirected(DeviceId),
    /// It was dropped, by a filter or because the device it was redirected to had no space.
    Dropped,
}

impl Gateway {
    /// A packet arrives at a device, before routing and netfilter: the filters of its ingress qdisc decide.
    pub fn receive(&mut self, world: GatewayContext<'_>, device: DeviceId, pkt: Pkt) -> ReceiveOutcome {
        self.receive_redirected(world, device, pkt, 0)
    }

    /// Receives a packet that filters had arrive at so many devices before.
    fn receive_redirected(
        &mut self,
        world: GatewayContext<'_>,
        device: DeviceId,
        pkt: Pkt,
        before: u32,
    ) -> ReceiveOutcome {
        let GatewayContext { now, pool, random: draws } = world;
        pool.meta_mut(&pkt).came_in = device.number();
        self.shared.actions.led_before = before;
        let arrival = self.lent(device, |shaper| shaper.arrive(now, pool, draws, pkt));
        self.shared.actions.led_before = 0;
        self.send_outgoing(GatewayContext { now, pool, random: draws }, device, before + 1);
        match arrival {
            IngressVerdict::Passed(pkt) => {
                self.ascend(GatewayContext { now, pool, random: draws }, device, pkt)
            }
            IngressVerdict::Dropped => ReceiveOutcome::Dropped,
            IngressVerdict::Redirected(pkt, way) if way.arrives => self.arrive_redirected(
                GatewayContext { now, pool, random: draws },
                device,
                way.to,
                pkt,
                before + 1,
            ),
            IngressVerdict::Redirected(pkt, way) => {
                let meta = pool.meta_mut(&pkt);
                meta.redirected_to = RedirectedTo::at(device.0 as u16, false);
                meta.set_tx_queue(None);
                match self.redirect(GatewayContext { now, pool, random: draws }, device, way, pkt) {
                    (XmitStatus::Refused | XmitStatus::Stopped, _) => ReceiveOutcome::Dropped,
                    (_, to) => ReceiveOutcome::Redirected(to),
                }
            }
        }
    }

    /// A packet that a filter at `from` had arrive at device number `to`.
    fn arrive_redirected(
        &mut self,
        world: GatewayContext<'_>,
        from: DeviceId,
        to: u32,
        pkt: Pkt,
        before: u32,
    ) -> ReceiveOutcome {
        let GatewayContext { now, pool, random: draws } = world;
        let there = self.ports.get(to as usize).filter(|port| !port.is_gone() && before <= MAX_REDIRECTS);
        let Some(header) = there.map(|port| port.spec.link_header) else {
            self.port(from).shaper.refuse(now, pool, draws, pkt, DropReason::Policy);
            return ReceiveOutcome::Dropped;
        };
        reframe(pool, &pkt, self.ports[from.0 as usize].spec.link_header, header);
        // A redirected packet loses its connection.
        pool.meta_mut(&pkt).connection = 0;
        self.receive_redirected(GatewayContext { now, pool, random: draws }, DeviceId(to), pkt, before)
    }

    /// Receives a packet at ingress that routing will see later.
    fn arrive_later(&mut self, world: GatewayContext<'_>, from: DeviceId, to: u32, pkt: Pkt, before: u32) {
        if let ReceiveOutcome::Passed(pkt, by) = self.arrive_redirected(world, from, to, pkt, before) {
            self.arrived.push_back((pkt, by));
        }
    }

    /// Sets whether a device is up, as every device is at first. One that goes down drops its backlog; then
    /// it accepts nothing, and filters redirect nothing to it.
    pub fn set_up(&mut self, world: GatewayContext<'_>, device: DeviceId, up: bool) {
        let GatewayContext { now, pool, random: draws } = world;
        let port = self.port(device);
        if !up && !port.down {
            port.shaper.stop(now, pool, draws);
        }
        if up && core::mem::take(&mut port.never_up) {
            port.shaper.begin(now, pool, draws);
        }
        port.down = !up;
        self.shared.actions.set_device_up(device.0, up);
    }

    /// A device that was never up.
    pub fn begin_down(&mut self, device: DeviceId) {
        let port = self.port(device);
        (port.down, port.never_up) = (true, true);
        self.shared.actions.set_device_up(device.0, false);
    }

    /// The next packet that a filter had arrive at a device, with that device, beside what was received or
    /// offered: the driver routes it. Copies of what is received come before it, all others after what was
    /// offered has continued.
    pub fn take_arrived(&mut self) -> Option<(Pkt, DeviceId)> {
        self.arrived.pop_front()
    }

    /// Where a packet from an ifb's egress belongs: the device it was redirected from, and whether it was on
    /// its way out there. `None`: it was never redirected.
    pub fn returned_from(&self, pool: &Pool, pkt: &Pkt) -> Option<(DeviceId, bool)> {
        let (device, out) = pool.meta(pkt).redirected_to.place()?;
        Some((DeviceId(u32::from(device)), out))
    }

    /// Offers a packet that was redirected on its way out of `device`, and came back, to that device again.
    /// The actions that redirected it are skipped.
    pub fn offer_back(&mut self, world: GatewayContext<'_>, device: DeviceId, pkt: Pkt) -> XmitStatus {
        let GatewayContext { now, pool, random: draws } = world;
        let (at, before) = self.given_back;
        self.given_back = (now, if at == now { before.saturating_add(1) } else { 0 });
        if self.given_back.1 >= MAX_GIVEN_BACK {
            self.port(device).shaper.refuse(now, pool, draws, pkt, DropReason::Policy);
            return XmitStatus::Stopped;
        }
        let meta = pool.meta_mut(&pkt);
        (meta.len, meta.passed_over, meta.redirected_to) = (meta.frame_len, true, RedirectedTo::NOWHERE);
        let offer = self.lent(device, |shaper| shaper.offer(now, pool, draws, pkt));
        self.follow(GatewayContext { now, pool, random: draws }, device, offer)
    }

    /// Whether a packet was redirected to this device since the last call: then it must be polled.
    pub fn take_redirect_target_flag(&mut self, device: DeviceId) -> bool {
        core::mem::take(&mut self.port(device).is_redirect_target)
    }

    /// A packet was given back to this device: it must be polled, as after a redirect.
    pub fn flag_redirect_target(&mut self, device: DeviceId) {
        self.port(device).is_redirect_target = true;
    }

    /// Whether polling a device had packets come to others since the last call: then those must be polled.
    pub fn take_redirected_by_polls(&mut self) -> bool {
        core::mem::take(&mut self.redirected_by_polls)
    }

    /// Carries out what the last offer to `device` left to do: its filters may have redirected the packet.
    #[inline]
    pub(crate) fn follow(
        &mut self,
        world: GatewayContext<'_>,
        device: DeviceId,
        offer: XmitStatus,
    ) -> XmitStatus {
        let GatewayContext { now, pool, random: draws } = world;
        let redirected = self.port(device).shaper.take_redirected();
        self.send_outgoing(GatewayContext { now, pool, random: draws }, device, 0);
        let Some((pkt, way)) = redirected else { return offer };
        if way.arrives {
            self.arrive_later(GatewayContext { now, pool, random: draws }, device, way.to, pkt, 0);
            return XmitStatus::Queued;
        }
        let redirected = self.redirect_leaving(GatewayContext { now, pool, random: draws }, device, way, pkt);
        match (offer, redirected) {
            (XmitStatus::Away, XmitStatus::Refused | XmitStatus::Stopped) => XmitStatus::Stopped,
            (XmitStatus::Away, _) => XmitStatus::Away,
            _ => redirected,
        }
    }

    /// Redirects a packet that was leaving `device` to the egress of another, which may give it back.
    fn redirect_leaving(
        &mut self,
        world: GatewayContext<'_>,
        device: DeviceId,
        way: Redirect,
        pkt: Pkt,
    ) -> XmitStatus {
        let meta = world.pool.meta_mut(&pkt);
        meta.redirected_to = RedirectedTo::at(device.0 as u16, true);
        meta.set_tx_queue(None);
        self.redirect(world, device, way, pkt).0
    }

    /// Sends on what actions on `device` led to other devices beside the packet that was offered or received:
    /// copies, of which an ifb gives none back, and packets redirected inside the tree.
    #[inline]
    pub(crate) fn send_outgoing(&mut self, world: GatewayContext<'_>, device: DeviceId, before: u32) {
        if self.shared.actions.has_outgoing() {
            self.send_all_outgoing(world, device, before);
        }
    }

    #[cold]
    fn send_all_outgoing(&mut self, world: GatewayContext<'_>, device: DeviceId, before: u32) {
        let GatewayContext { now, pool, random: draws } = world;
        let mut outgoing = core::mem::take(&mut self.outgoing);
        for _ in 0..MAX_REDIRECTS {
            self.shared.actions.swap_outgoing(&mut outgoing);
            if outgoing.is_empty() {
                break;
            }
            for one in outgoing.drain(..) {
                self.send_one(GatewayContext { now, pool, random: draws }, device, one, before);
            }
        }
        // What goes round for ever ends here.
        self.shared.actions.swap_outgoing(&mut outgoing);
        for one in outgoing.drain(..) {
            self.port(device).shaper.refuse(now, pool, draws, one.pkt, DropReason::Policy);
        }
        self.outgoing = outgoing;
    }

    fn send_one(&mut self, world: GatewayContext<'_>, device: DeviceId, one: Outgoing, before: u32) {
        let Outgoing { pkt, way, is_copy } = one;
        if is_copy {
            world.pool.meta_mut(&pkt).redirected_to = RedirectedTo::NOWHERE;
        }
        if way.arrives {
            self.arrive_later(world, device, way.to, pkt, before);
        } else if is_copy {
            let _ = self.redirect(world, device, way, pkt);
        } else {
            let _ = self.redirect_leaving(world, device, way, pkt);
        }
    }

    /// Has a device work with the machine's actions, and those with its connections.
    #[inline]
    pub(crate) fn lent<R>(&mut self, device: DeviceId, work: impl FnOnce(&mut Shaper) -> R) -> R {
        let Gateway { ports, shared, firewall, .. } = self;
        let shaper = &mut ports[device.0 as usize].shaper;
        let is_needed = shared.actions.needs_connections();
        if is_needed {
            shared.actions.swap_connections(&mut firewall.connections);
        }
        shaper.swap_shared(shared);
        let done = work(shaper);
        shaper.swap_shared(shared);
        if is_needed {
            shared.actions.swap_connections(&mut firewall.connections);
        }
        done
    }

    /// Redirects a packet to the egress of another device. The action that does it counts those that were not
    /// simply taken.
    fn redirect(
        &mut self,
        world: GatewayContext<'_>,
        from: DeviceId,
        way: Redirect,
        pkt: Pkt,
    ) -> (XmitStatus, DeviceId) {
        let redirected = self.redirect_onward(world, from, way.to, pkt);
        if !matches!(redirected.0, XmitStatus::Queued | XmitStatus::Away) {
            self.shared.actions.note_refused(way.by);
        }
        redirected
    }

    /// Gives a packet to the egress of device number `to`, and on if filters there lead it further.
    fn redirect_onward(
        &mut self,
        world: GatewayContext<'_>,
        from: DeviceId,
        to: u32,
        pkt: Pkt,
    ) -> (XmitStatus, DeviceId) {
        let GatewayContext { now, pool, random: draws } = world;
        let (mut pkt, mut last, mut to) = (pkt, from, to);
        self.firewall.connections.see_inside(now, pool, &pkt);
        // A redirected packet loses its connection.
        pool.meta_mut(&pkt).connection = 0;
        for _ in 0..MAX_REDIRECTS {
            let Some(port) = self.ports.get_mut(to as usize).filter(|port| !port.is_gone()) else { break };
            let meta = pool.meta_mut(&pkt);
            (meta.len, meta.came_in) = (meta.frame_len, last.number());
            port.is_redirect_target = true;
            if port.spec.kind == DeviceKind::Ifb {
                // What was redirected there before has its turn first: Linux runs a qdisc after each packet.
                // An ifb always has space; of other devices, their driver knows.
                if port.unpolled {
                    self.poll_between(GatewayContext { now, pool, random: draws }, DeviceId(to));
                }
                let port = self.port(DeviceId(to));
                (port.unpolled, port.has_news) = (true, true);
            }
            let offer = self.lent(DeviceId(to), |shaper| shaper.offer(now, pool, draws, pkt));
            match self.port(DeviceId(to)).shaper.take_redirected() {
                Some((again, Redirect { to: further, arrives: true, .. })) => {
                    self.arrive_later(
                        GatewayContext { now, pool, random: draws },
                        DeviceId(to),
                        further,
                        again,
                        0,
                    );
                    return (XmitStatus::Queued, DeviceId(to));
                }
                Some((again, further)) => {
                    // A packet that comes back goes to the device that redirected it last (asked of Linux
                    // 6.1: an ifb whose filter redirects packets to another gets them back, and drops them
                    // then).
                    pool.meta_mut(&again).redirected_to = RedirectedTo::at(to as u16, true);
                    (pkt, last, to) = (again, DeviceId(to), further.to);
                }
                None => return (offer, DeviceId(to)),
            }
        }
        self.port(from).shaper.refuse(now, pool, draws, pkt, DropReason::Policy);
        (XmitStatus::Refused, from)
    }

    /// Polls a device before another packet is redirected to it; what it sends is given by the next polls.
    fn poll_between(&mut self, world: GatewayContext<'_>, device: DeviceId) {
        let GatewayContext { now, pool, random } = world;
        self.port(device).unpolled = false;
        if self.polled_inside == MAX_REDIRECTS {
            return;
        }
        self.polled_inside += 1;
        while let Some(pkt) = self.poll_tree(GatewayContext { now, pool, random }, device) {
            self.port(device).sent.push_back(pkt);
        }
        self.polled_inside -= 1;
    }

    /// The next packet that a device sent before another one was redirected to it.
    #[cold]
    pub(crate) fn sent_before(&mut self, device: DeviceId) -> Option<Pkt> {
        let port = self.port(device);
        let pkt = port.sent.pop_front();
        port.unpolled &= pkt.is_some();
        port.has_news = port.unpolled || !port.sent.is_empty();
        pkt
    }

    /// Fills in what tc would have sent as an index: the devices that packets are redirected to.
    pub(crate) fn complete<'a>(&self, op: &'a FilterOp) -> Result<Cow<'a, FilterOp>, TcError> {
        let mut op = Cow::Borrowed(op);
        self.find_indev(&mut op)?;
        if op.actions.is_empty() {
            return Ok(op);
        }
        let mut op = op.into_owned();
        op.actions.iter_mut().try_for_each(|action| self.find_target(action))?;
        Ok(Cow::Owned(op))
    }

    fn find_indev(&self, op: &mut Cow<'_, FilterOp>) -> Result<(), TcError> {
        if op.params.as_ref().is_none_or(|params| params.indev().is_none()) {
            return Ok(());
        }
        let Some(mut params) = op.params.clone() else { return Ok(()) };
        let Some(indev) = params.indev_mut() else { return Ok(()) };
        let found = self.device(&indev.name);
        indev.device = found.ok_or(TcError::new(Errno::Inval, "Network device not found"))?.0;
        op.to_mut().params = Some(params);
        Ok(())
    }

    /// Fills in the devices of actions that are made on their own.
    pub(crate) fn complete_actions(&self, op: &ActionsOp) -> Result<ActionsOp, TcError> {
        let mut op = op.clone();
        if let ActionsOp::Set(_, actions) = &mut op {
            actions.iter_mut().try_for_each(|action| self.find_target(action))?;
        }
        Ok(op)
    }

    /// The machine's actions of a kind, as tc lists them.
    pub fn actions(&mut self, now: Time, kind: &str) -> Vec<ActionDump> {
        self.count_actions(now);
        let mut dumps = self.shared.actions.dump(kind, now);
        dumps.iter_mut().for_each(|dump| self.name_target(&mut dump.action.act));
        dumps
    }

    /// Some of the machine's actions, by number.
    ///
    /// # Errors
    /// When one is not there.
    pub fn numbered_actions(&mut self, now: Time, ids: &[ActionId]) -> Result<Vec<ActionDump>, TcError> {
        self.count_actions(now);
        let mut dumps = self.shared.actions.get(ids, now)?;
        dumps.iter_mut().for_each(|dump| self.name_target(&mut dump.action.act));
        Ok(dumps)
    }

    fn find_target(&self, action: &mut Action) -> Result<(), TcError> {
        if let Act::Mirred(mirred) = &mut action.act
            && !mirred.to.is_empty()
        {
            mirred.device = self.device(&mirred.to).ok_or(TcError::bare(Errno::NoDev))?.0;
        }
        Ok(())
    }

    /// Releases the actions of deleted filters: before the next operation or listing or, while releases are
    /// deferred, once time has gone on.
    pub(crate) fn count_actions(&mut self, now: Time) {
        if !self.shared.actions.must_count(now, self.defers_releases) {
            return;
        }
        let Gateway { ports, shared, .. } = self;
        shared.count(|show| ports.iter_mut().for_each(|port| port.shaper.each_action(show)));
    }

    /// Devices are listed by the names they have now.
    pub(crate) fn name_devices(&self, dumps: &mut [FilterDump]) {
        for dump in dumps {
            let FilterEntry::Filter { actions, params, .. } = &mut dump.entry else { continue };
            if let Some(indev) = params.indev_mut() {
                indev.name = self.name_of(indev.device).unwrap_or_default().into();
            }
            for action in actions {
                self.name_target(&mut action.action.act);
            }
        }
    }

    fn name_target(&self, act: &mut Act) {
        if let Act::Mirred(mirred) = act {
            mirred.to = self.name_of(mirred.device).unwrap_or("*").into();
        }
    }

    fn name_of(&self, device: u32) -> Option<&str> {
        let port = self.ports.get(device as usize).filter(|port| !port.is_gone())?;
        Some(&port.name)
    }
}

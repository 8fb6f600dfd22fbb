//! The world: links, flows, probes, and the loop that runs them. What each kind of traffic does in it is a
//! file in `net/`.

mod changes;
mod flows;
mod foreign;
mod passive;
mod probes;
mod sojourns;
mod transactions;

use crate::event::{Events, Kind, MAX_INDEX};
use crate::foreign::Foreign;
use crate::link::{Link, LinkId, LinkPeer, LinkQueue, LinkSpec, LinkStats, Sending};
use crate::machine::{Forwarder, OfferResult, Origin, Port, ReceiveResult};
use crate::observe::{Observed, SojournEnd};
use crate::passive::PassiveTcp;
use crate::probe::{Probe, ProbeSpec, Source, SourceSpec};
use crate::tcp_flow::{FlowSpec, TcpFlow};
use crate::transaction::Running;
use crate::transport_meta::{FlowId, PathId, ProbeId, Role, SourceId, TransportMeta};
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Pkt, Pool, Seeded, Time};

/// Packets that may exist at once, everywhere: far beyond any home link, and a bound on memory (some 250
/// bytes each).
const MAX_PACKETS: usize = 1 << 22;

/// The end of a route.
const END: u32 = u32::MAX;
/// The route that leads nowhere: the first of all.
const NOWHERE: u32 = 0;

/// A simulated network around one machine. The same calls and the same seed give the same run.
///
/// Conservation: every packet made is delivered, refused, released by the machine, or still in the pool.
#[derive(Debug)]
pub struct Net<M> {
    /// The machine under test.
    pub machine: M,
    pub(crate) now: Time,
    pub(crate) pool: Pool,
    pub(crate) transport: Vec<TransportMeta>,
    pub(crate) events: Events,
    pub(crate) random: Seeded,
    pub(crate) links: Vec<Link>,
    /// Devices that give back what they are given (ifb).
    returning: Vec<usize>,
    /// They are being served because polling a device had packets come to them.
    gives_back: bool,
    /// All paths one behind the other, each ended by [`END`].
    routes: Vec<u32>,
    pub(crate) flows: Vec<TcpFlow>,
    pub(crate) probes: Vec<Probe>,
    pub(crate) sources: Vec<Source>,
    pub(crate) transactions: Vec<Running>,
    pub(crate) sampling: Option<Nanos>,
    /// Packets the pool had no space for.
    pub overflow: u64,
    pub(crate) foreign: Foreign,
    pub(crate) observed: Option<Observed>,
    pub(crate) passive: Option<PassiveTcp>,
}

impl<M: Forwarder> Net<M> {
    /// An empty network whose clock is at `start`.
    pub fn new(machine: M, seed: u64, start: Time) -> Net<M> {
        let mut pool = Pool::new(MAX_PACKETS);
        pool.follow_copies();
        Net {
            machine,
            now: start,
            pool,
            transport: Vec::new(),
            events: Events::default(),
            random: Seeded::new(seed),
            links: Vec::new(),
            returning: Vec::new(),
            gives_back: false,
            routes: alloc::vec![END],
            flows: Vec::new(),
            probes: Vec::new(),
            sources: Vec::new(),
            transactions: Vec::new(),
            sampling: None,
            overflow: 0,
            foreign: Foreign::default(),
            observed: None,
            passive: None,
        }
    }

    /// Adds a link.
    ///
    /// # Panics
    /// With more than a million links.
    pub fn link(&mut self, spec: LinkSpec) -> LinkId {
        assert!(self.links.len() < MAX_INDEX, "a million links at most");
        if matches!((spec.waiting, spec.peer), (LinkQueue::Port { port, .. }, LinkPeer::Port(to))
            if port == to)
        {
            self.returning.push(self.links.len());
        }
        self.links.push(Link::new(spec));
        LinkId(self.links.len() as u32 - 1)
    }

    /// Adds a route over links of this network. An empty one delivers at once.
    pub fn path(&mut self, links: &[LinkId]) -> PathId {
        let start = self.routes.len() as u32;
        self.routes.extend(links.iter().map(|link| link.0));
        self.routes.push(END);
        PathId(start)
    }

    /// Adds a TCP flow, which begins at its start, or now if that has passed.
    ///
    /// # Panics
    /// There are a million flows already.
    pub fn tcp(&mut self, spec: FlowSpec) -> FlowId {
        let id = self.flows.len();
        assert!(id < MAX_INDEX, "a million flows at most");
        self.events.push(spec.start.max(self.now), Kind::Start, id);
        let random = self.flow_draws(id);
        self.flows.push(TcpFlow::new(spec, random));
        FlowId(id as u32)
    }

    /// What chance decides inside flow `id` (where BBR begins its cycle).
    pub(crate) fn flow_draws(&self, id: usize) -> Seeded {
        self.random.fork(1 << 32 | id as u64)
    }

    /// Adds a ping, whose first request is sent at its start, or now if that has passed.
    ///
    /// # Panics
    /// There are a million pings already.
    pub fn ping(&mut self, spec: ProbeSpec) -> ProbeId {
        let id = self.probes.len();
        assert!(id < MAX_INDEX, "a million probes at most");
        self.events.push(spec.start.max(self.now), Kind::Probe, id);
        self.probes.push(Probe::new(spec));
        ProbeId(id as u32)
    }

    /// Adds an open-loop source: packets by a schedule, whether they arrive or not.
    ///
    /// # Panics
    /// There are a million sources already.
    pub fn source(&mut self, spec: SourceSpec) -> SourceId {
        let id = self.sources.len();
        assert!(id < MAX_INDEX, "a million sources at most");
        self.events.push(spec.start.max(self.now), Kind::Source, id);
        let random = self.random.fork(id as u64 + 1);
        self.sources.push(Source::new(spec, random));
        SourceId(id as u32)
    }

    /// Records every flow's window and round trip at this interval, counted from its start.
    pub fn sample_every(&mut self, interval: Nanos) {
        self.sampling = Some(interval);
    }

    /// Runs up to and including `until`.
    pub fn run(&mut self, until: Time) {
        while let Some(front) = self.events.front(until) {
            self.now = front.at;
            let (kind, index) = (front.kind, front.index);
            if kind != Kind::Arrival {
                self.events.pop();
                self.dispatch(kind, index);
                continue;
            }
            let link = &mut self.links[index];
            let far_end = link.spec.peer;
            if link.has_own_events() {
                self.events.pop();
                if link.line.front().is_some_and(|&(at, _)| at <= front.at)
                    && let Some((_, pkt)) = link.line.pop_front()
                {
                    self.arrive(pkt, far_end);
                }
                continue;
            }
            let arrived = link.line.pop_front();
            match link.line.front() {
                Some(&(at, _)) => self.events.again(at),
                None => self.events.pop(),
            }
            if let Some((_, pkt)) = arrived {
                self.arrive(pkt, far_end);
            }
        }
        self.now = until.max(self.now);
    }

    /// A packet has come to the remote end of a link.
    fn arrive(&mut self, pkt: Pkt, far_end: LinkPeer) {
        let _ = match far_end {
            LinkPeer::Elsewhere => self.hop(pkt, Origin::Outside),
            LinkPeer::Beneath(upper) => self.hop(pkt, Origin::Above(upper)),
            LinkPeer::Port(port) => match self.receive(port, pkt) {
                ReceiveResult::Passed(pkt, port) => self.hop(pkt, Origin::Port(port)),
                ReceiveResult::Taken => {
                    // It is queued at a device that gives packets back, or it is dropped.
                    self.serve_returning();
                    OfferResult::Queued
                }
            },
        };
    }

    /// A packet comes to a port of the machine; it may have to wait at a device that gives back what it is
    /// given.
    fn receive(&mut self, port: Port, pkt: Pkt) -> ReceiveResult {
        if let Some(passive) = self.passive.as_mut().filter(|passive| passive.port == port) {
            passive.arrives(self.now, &self.transport[pkt.slot()]);
        }
        self.begin_sojourn(&pkt);
        let received = self.machine.receive(&mut self.pool, self.now, port, pkt);
        if let ReceiveResult::Passed(pkt, _) = &received {
            self.discard_sojourn(pkt);
        }
        received
    }

    /// Lets the devices continue that give back what they are given.
    fn serve_returning(&mut self) {
        for at in 0..self.returning.len() {
            self.collect(self.returning[at]);
            self.serve(self.returning[at]);
        }
    }

    fn dispatch(&mut self, kind: Kind, index: usize) {
        match kind {
            Kind::Arrival => {}
            Kind::Sent => self.frame_sent(index),
            Kind::Wake => self.wake(index),
            Kind::Timer => self.flow_timer(index),
            Kind::DelayedAck => self.flow_delayed_ack(index),
            Kind::Start => self.flow_start(index),
            Kind::Sample => {
                if let Some(interval) = self.sampling {
                    self.flow_sample(index, interval);
                }
            }
            Kind::Probe => self.probe(index),
            Kind::Source => self.emit(index),
            Kind::Transaction => self.transaction_due(index),
            Kind::Pace => self.flow_paced(index),
            Kind::Write => self.flow_application_writes(index),
        }
    }

    /// Puts a packet on its way over `path`; `local`: it is made on the machine itself.
    pub(crate) fn launch(&mut self, pkt: Pkt, mut meta: TransportMeta, path: PathId) -> OfferResult {
        meta.route = path.0;
        let slot = pkt.slot();
        if slot >= self.transport.len() {
            self.transport.resize(slot + 1, TransportMeta::default());
        }
        self.transport[slot] = meta;
        self.hop(pkt, Origin::Local)
    }

    /// The next link of a packet's path, or its end.
    fn hop(&mut self, pkt: Pkt, origin: Origin) -> OfferResult {
        let cargo = &mut self.transport[pkt.slot()];
        let link = self.routes[cargo.route as usize];
        if link == END {
            if let Origin::Port(port) = origin
                && !self.machine.input(&mut self.pool, self.now, port, &pkt)
            {
                self.drop_packet(pkt);
                return OfferResult::Dropped;
            }
            self.deliver(pkt);
            return OfferResult::Queued;
        }
        cargo.route += 1;
        let at = link as usize;
        let len = self.pool.meta(&pkt).frame_len;
        match self.links[at].spec.waiting {
            LinkQueue::DropTail(_) => {
                self.begin_sojourn(&pkt);
                let slot = pkt.slot();
                let link = &mut self.links[at];
                if !link.admits(self.now, len) {
                    link.stats.dropped += 1;
                    self.end_sojourn(slot, at, self.now, SojournEnd::Dropped(None));
                    self.drop_packet(pkt);
                    return OfferResult::Dropped;
                }
                let sending = link.send(self.now, pkt, len, &mut self.random);
                self.end_sojourn(slot, at, sending.start, SojournEnd::Sent);
                self.under_way(at, sending);
                OfferResult::Queued
            }
            LinkQueue::Port { port, .. } => {
                self.begin_sojourn(&pkt);
                let offer = self.machine.offer(&mut self.pool, self.now, port, origin, pkt);
                self.collect(at);
                self.serve(at);
                // Filters may have redirected it to one of those.
                if origin != Origin::Returned {
                    self.serve_returning();
                }
                offer
            }
        }
    }

    /// Gives a device what its machine sends, as far as its ring takes it.
    pub(crate) fn serve(&mut self, at: usize) {
        let LinkQueue::Port { port, .. } = self.links[at].spec.waiting else { return };
        loop {
            if !self.links[at].ring_has_room() {
                return;
            }
            let polled = self.machine.poll(&mut self.pool, self.now, port);
            self.collect(at);
            let Some(pkt) = polled else { break };
            self.end_sojourn(pkt.slot(), at, self.now, SojournEnd::Sent);
            self.release_share(&pkt);
            self.see_if_it_strays(&pkt, at);
            if self.links[at].spec.peer == LinkPeer::Port(port) {
                // It continues as having arrived where it did arrive.
                let origin = self.machine.origin(&self.pool, port, &pkt);
                if origin == Origin::Returned {
                    // Its route continued when it was first offered.
                    self.transport[pkt.slot()].route -= 1;
                }
                let _ = self.hop(pkt, origin);
                continue;
            }
            if let Some(passive) = self.passive.as_mut().filter(|passive| passive.port == port) {
                passive.leaves(self.now, &self.transport[pkt.slot()]);
            }
            let len = self.pool.meta(&pkt).frame_len;
            let link = &mut self.links[at];
            let sending = link.send(self.now, pkt, len, &mut self.random);
            let (left, alone) = (sending.left, link.in_ring() == 1);
            self.under_way(at, sending);
            if alone {
                self.events.push(left, Kind::Sent, at);
            }
        }
        self.arm_wake(at, port);
        if !self.returning.is_empty() && self.machine.take_redirected() && !self.gives_back {
            // Below a netem, filters redirect packets as the device is polled. What comes round meanwhile is
            // polled by those that give back now.
            self.gives_back = true;
            self.serve_returning();
            self.gives_back = false;
        }
    }

    /// Books what happened to a packet put on a link.
    #[inline]
    fn under_way(&mut self, at: usize, sending: Sending) {
        if let Some(arrives) = sending.arrival {
            self.events.push(arrives, Kind::Arrival, at);
        }
        if let Some(pkt) = sending.lost {
            self.drop_packet(pkt);
        }
    }

    fn arm_wake(&mut self, at: usize, port: Port) {
        let Some(due) = self.machine.timeout(port) else { return };
        if self.links[at].wake_at.is_none_or(|pending| due < pending) {
            self.links[at].wake_at = Some(due);
            self.events.push(due, Kind::Wake, at);
        }
    }

    fn frame_sent(&mut self, at: usize) {
        let link = &mut self.links[at];
        link.frame_is_through();
        if let Some(next) = link.sending_until() {
            self.events.push(next, Kind::Sent, at);
        }
        self.serve(at);
    }

    fn wake(&mut self, at: usize) {
        let LinkQueue::Port { port, .. } = self.links[at].spec.waiting else { return };
        // An earlier wake-up may have replaced this one.
        if self.links[at].wake_at != Some(self.now) {
            return;
        }
        self.links[at].wake_at = None;
        match self.machine.timeout(port) {
            Some(due) if due <= self.now => {
                let poll = self.machine.handle_timeout(&mut self.pool, self.now, port);
                self.collect(at);
                if poll {
                    self.serve(at);
                } else {
                    self.arm_wake(at, port);
                }
            }
            Some(_) => self.arm_wake(at, port),
            None => {}
        }
    }

    /// A copy that leaves for another destination than its packet has no receiver here.
    fn see_if_it_strays(&mut self, pkt: &Pkt, at: usize) {
        let meta = &mut self.transport[pkt.slot()];
        if meta.copy && meta.route.checked_sub(1).is_none_or(|last| self.routes[last as usize] != at as u32) {
            (meta.role, meta.route) = (Role::Stray, NOWHERE);
        }
    }

    /// Gives the copies that the machine made what is known about the packets they are of.
    fn follow_copies(&mut self) {
        if self.observed.is_some() {
            let copies: Vec<usize> = self.pool.copied().collect();
            copies.into_iter().for_each(|copy| self.copy_sojourn(copy));
        }
        for (copy, of) in self.pool.take_copied() {
            if copy >= self.transport.len() {
                self.transport.resize(copy + 1, TransportMeta::default());
            }
            self.transport[copy] = TransportMeta { copy: true, local: false, ..self.transport[of] };
            self.foreign.copies.extend((self.transport[of].role == Role::Foreign).then_some((copy, of)));
        }
    }

    /// Counts what the machine dropped while it worked on the port of link `at`.
    fn collect(&mut self, at: usize) {
        self.drop_sojourns(at);
        self.follow_copies();
        while let Some(slot) = self.pool.take_released() {
            self.links[at].stats.dropped += 1;
            self.end_sojourn(slot, at, self.now, SojournEnd::Dropped(None));
            let meta = self.transport[slot];
            self.record_loss(meta);
        }
    }

    fn record_loss(&mut self, meta: TransportMeta) {
        match meta.role {
            _ if meta.copy => {}
            Role::Data | Role::Syn | Role::Bare => {
                let owner = meta.owner as usize;
                let flow = &mut self.flows[owner];
                flow.lost += 1;
                if meta.local && flow.leave_queue() {
                    self.flow_wakes(owner);
                }
            }
            Role::Open => self.sources[meta.owner as usize].lost += 1,
            _ => {}
        }
    }

    /// A packet that the network itself drops.
    fn drop_packet(&mut self, pkt: Pkt) {
        let meta = self.transport[pkt.slot()];
        self.record_loss(meta);
        self.discard(pkt);
    }

    /// Releases a packet without recording why.
    pub(crate) fn discard(&mut self, pkt: Pkt) {
        self.pool.meta_mut(&pkt).watched = false;
        self.pool.release(pkt);
    }

    /// A local packet has left the machine's queue: its sender may have waited for that.
    fn release_share(&mut self, pkt: &Pkt) {
        let meta = &mut self.transport[pkt.slot()];
        if !meta.local {
            return;
        }
        meta.local = false;
        let owner = meta.owner as usize;
        if self.flows[owner].leave_queue() {
            self.flow_wakes(owner);
        }
    }

    fn deliver(&mut self, pkt: Pkt) {
        let meta = self.transport[pkt.slot()];
        match meta.role {
            Role::Bare | Role::Syn | Role::SynAck | Role::Data | Role::Ack => self.flow_deliver(pkt, meta),
            Role::EchoRequest | Role::EchoReply => self.probe_deliver(pkt, meta),
            Role::Open => self.source_deliver(pkt, meta),
            Role::Question | Role::Answer => self.transaction_deliver(pkt, meta),
            Role::Foreign => self.foreign_deliver(pkt, meta),
            Role::Stray => self.discard(pkt),
        }
    }

    /// Changes the machine in the middle of a run (an operation, a reset), then lets its devices continue:
    /// drops during `f` are counted for the first of them.
    pub fn with_machine<R>(&mut self, f: impl FnOnce(&mut M, &mut Pool, Time) -> R) -> R {
        let result = f(&mut self.machine, &mut self.pool, self.now);
        for at in 0..self.links.len() {
            if matches!(self.links[at].spec.waiting, LinkQueue::Port { .. }) {
                self.collect(at);
                self.serve(at);
            }
        }
        result
    }

    /// The time that the simulation has come to.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events.count
    }
    /// What waits in a link's own queue now: packets and bytes of frames.
    pub fn link_backlog(&mut self, link: LinkId) -> (u32, u64) {
        let now = self.now;
        self.links[link.0 as usize].backlog(now)
    }
    /// How long a link has been sending so far, what it took in and has yet to send left out.
    pub fn link_worked(&self, link: LinkId) -> Nanos {
        self.links[link.0 as usize].worked(self.now)
    }
    /// What a link counted since the network was made.
    pub fn link_stats(&self, link: LinkId) -> LinkStats {
        self.links[link.0 as usize].stats
    }
    /// How many packets are in the network now.
    pub fn packets(&self) -> usize {
        self.pool.live()
    }
}

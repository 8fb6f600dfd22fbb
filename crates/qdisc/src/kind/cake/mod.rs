//! cake: common applications kept enhanced (Høiland-Jørgensen, Täht and Morton, LANMAN 2018; tc-cake(8)).
//!
//! One qdisc for a home's link (the CAKE paper, LANMAN 2018). A shaper without bursts sends by a clock that
//! counts what each packet costs on the link. Packets take one of up to eight tins by their DSCP; a tin that
//! keeps to its threshold, a share of the rate, goes before those that do not. Within a tin flows take turns
//! ([`tin`]), each controlled by COBALT ([`crate::algo::cobalt`]). When the memory is full, the longest queue
//! of all drops ([`overflow`]). Acknowledgements that later ones make redundant can be dropped ([`ack`]).

mod ack;
mod cost;
mod overflow;
mod tin;
mod tins;

use crate::algo::cobalt::{AqmQueue, CobaltVerdict};
use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::classify::{ClassifyResult, Consumed, classify};
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState};
use crate::kind::classful;
use alloc::boxed::Box;
use alloc::vec::Vec;
use cost::Framing;
use overflow::Overflow;
use tidegate_classify::FilterList;
use tidegate_packet::{Addrs, FlowKeys, Handle, LinuxChange, LinuxVersion, Nanos, Pkt, Pool, Rate, Time};
use tidegate_policy::dump::{CakeStats, ClassDump, QueueStats, Xstats};
use tidegate_policy::{
    CakeAckFilter, CakeFlows, CakeFraming, CakeParams, CakeTins, ClassParams, Errno, Kind, QdiscParams,
    TcError,
};
use tin::{Called, QUEUES, Tin, moved};
pub use tins::{CakeReason, CakeTin};
use tins::{MOST, Pace};

/// The memory limit in packets of the largest size, where no `memlimit` is given.
const MOST_PACKETS: u32 = 10_240;
/// Memory that even a slow link has, bytes.
const LEAST_MEMORY: u64 = 4 << 20;
/// How often the rate follows what arrives.
const FOLLOWS_EVERY: Nanos = Nanos::millis(250);

pub(crate) struct Cake {
    params: CakeParams,
    /// The present rate in bytes per second, which may follow what arrives.
    rate: u64,
    frame: u32,
    linux: LinuxVersion,
    framing: Framing,
    tins: Vec<Tin>,
    current: usize,
    pace: Pace,
    /// When the shaper lets the next packet go. The failsafe runs half as fast, and not for dropped packets:
    /// with `ingress` a link whose packets are nearly all dropped would come to a stop.
    next: u64,
    failsafe: u64,
    overlimits: u32,
    memory: u64,
    memory_most: u64,
    memory_limit: u64,
    overflow: Overflow,
    arrivals: Arrivals,
}

/// What `autorate-ingress` knows of the rate at which packets arrive.
#[derive(Clone, Copy, Default)]
struct Arrivals {
    last: u64,
    /// Mean time between two.
    interval: u64,
    window_began: u64,
    window_bytes: u64,
    /// Mean of the best rates, bytes per second.
    peak: u64,
    followed: u64,
}

/// What filters chose for a packet: its flow and its hosts, from 1; 0: nothing.
#[derive(Clone, Copy, Default)]
struct Named {
    flow: u32,
    hosts: u32,
}

impl Cake {
    pub(crate) fn new(device: DeviceInfo, params: Option<&CakeParams>) -> Cake {
        let mut cake = Cake {
            params: CakeParams {
                bandwidth: Some(Rate(0)),
                autorate: Some(false),
                rtt_us: Some(100_000),
                target_us: Some(5_000),
                tins: Some(CakeTins::Diffserv3),
                flows: Some(CakeFlows::Triple),
                nat: Some(false),
                wash: Some(false),
                ingress: Some(false),
                ack_filter: Some(CakeAckFilter::Off),
                split_gso: Some(true),
                memory_limit: Some(0),
                fwmark: Some(0),
                framing: Some(CakeFraming::None),
                overhead: Some(0),
                raw: true,
                mpu: Some(0),
            },
            rate: 0,
            frame: device.max_frame,
            linux: device.switches.linux,
            framing: Framing::default(),
            tins: (0..MOST).map(|_| Tin::default()).collect(),
            current: 0,
            pace: Pace::default(),
            next: 0,
            failsafe: 0,
            overlimits: 0,
            memory: 0,
            memory_most: 0,
            memory_limit: 0,
            overflow: Overflow::default(),
            arrivals: Arrivals::default(),
        };
        if let Some(params) = params {
            cake.set(params);
        }
        cake.reconfigure();
        cake.arrivals.peak = cake.rate;
        cake
    }

    /// Takes over what was given.
    fn set(&mut self, new: &CakeParams) {
        macro_rules! take {
            ($($field:ident),*) => { $(if new.$field.is_some() { self.params.$field = new.$field; })* };
        }
        take!(
            bandwidth,
            autorate,
            tins,
            flows,
            nat,
            wash,
            ingress,
            ack_filter,
            split_gso,
            memory_limit,
            fwmark
        );
        take!(framing, overhead, mpu);
        if let Some(rate) = new.bandwidth {
            self.rate = rate.0;
        }
        if let Some(us) = new.rtt_us {
            self.params.rtt_us = Some(us.max(1));
        }
        if let Some(us) = new.target_us {
            self.params.target_us = Some(us.max(1));
        }
        if new.overhead.is_some() {
            self.params.raw = false;
        }
        if new.raw {
            self.params.raw = true;
        }
        if new.overhead.is_some() || new.raw {
            self.framing.forget_sizes();
        }
        self.framing.layered = !self.params.raw;
        self.framing.overhead = self.params.overhead.unwrap_or(0);
        self.framing.mpu = self.params.mpu.unwrap_or(0);
        self.framing.cut = self.params.framing.unwrap_or_default();
    }

    fn mode(&self) -> CakeFlows {
        self.params.flows.unwrap_or_default()
    }

    fn division(&self) -> CakeTins {
        self.params.tins.unwrap_or_default()
    }

    fn charges_drops(&self) -> bool {
        self.params.ingress == Some(true)
    }

    /// The tins in use.
    fn tin_count(&self) -> usize {
        self.division().count()
    }

    /// Gives each tin its part of the rate. Tins out of use keep what they were given before.
    fn reconfigure(&mut self) {
        let target_us = self.params.target_us.unwrap_or(1);
        let rtt_us = self.params.rtt_us.unwrap_or(1);
        let shares = tins::shares(self.division(), self.rate);
        for (tin, (rate, quantum)) in self.tins.iter_mut().zip(shares) {
            tin.terms = tins::Terms::new(rate, self.frame, target_us, rtt_us);
            tin.terms.law.exact = self.linux.has(LinuxChange::CakeRoots);
            tin.terms.law.blue_last = self.linux.has(LinuxChange::CakeBlue);
            tin.quantum = quantum.max(1);
        }
        let whole = self.tins[0].terms;
        self.pace = whole.pace;
        let unused = self.tin_count();
        for tin in self.tins.iter_mut().skip(unused) {
            tin.terms.law.frame_time = whole.law.frame_time;
        }
        if unused < MOST {
            // Linux empties the tins out of use with the mark of the current tin, and leaves it there.
            self.current = MOST - 1;
        }
        let given = u64::from(self.params.memory_limit.unwrap_or(0));
        let requested = match (given, self.rate) {
            (0, 0) => u64::from(u32::MAX),
            (0, rate) => LEAST_MEMORY.max(u64::from((rate.wrapping_mul(u64::from(rtt_us)) / 250_000) as u32)),
            (given, _) => given,
        };
        self.memory_limit = requested.min(u64::from(MOST_PACKETS * self.frame).max(given));
    }

    /// What filters chose for a packet.
    fn named(
        &self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: &Pkt,
    ) -> Result<Named, Consumed> {
        if filters.is_empty() {
            return Ok(Named::default());
        }
        match classify(filters, cx, own.handle, pkt) {
            ClassifyResult::Nothing => Ok(Named::default()),
            ClassifyResult::Class(class) => {
                let known = |number: u16| u32::from(number).min(QUEUES as u32 + 1) % (QUEUES as u32 + 1);
                Ok(Named { flow: known(class.minor()), hosts: known(class.major()) })
            }
            ClassifyResult::Consumed(gone) => Err(gone),
        }
    }

    /// The tin of a packet, its DSCP cleared where that is requested.
    fn choose_tin(&self, pool: &mut Pool, own: QdiscState, pkt: &Pkt) -> usize {
        let meta = pool.meta_mut(pkt);
        let dscp = tins::dscp(meta);
        if self.params.wash == Some(true) && matches!(meta.ethertype, 0x0800 | 0x86dd) {
            meta.dsfield &= 3;
        }
        tins::choose(self.division(), self.params.fwmark.unwrap_or(0), own.handle, meta, dscp).0
    }

    /// The flow of a packet in its tin.
    #[inline]
    fn choose_flow(&mut self, pool: &mut Pool, pkt: &Pkt, tin: usize, named: Named) -> u32 {
        let (mode, nat) = (self.mode(), self.params.nat == Some(true));
        if mode == CakeFlows::Blind && !nat {
            return self.tins[tin].only_flow();
        }
        let hash = match named.flow {
            0 if mode.by_conversation() => flow_hash(pool, pkt, nat),
            0 => 0,
            flow => flow - 1,
        };
        let mut hosts = || match named.hosts {
            0 => host_hashes(pool, pkt, nat),
            hosts => (hosts - 1, hosts - 1),
        };
        let hash = hash ^ if mode.by_conversation() { 0 } else { ends(mode, &mut hosts) };
        self.tins[tin].find(mode, Called { hash, hosts: &mut hosts })
    }

    /// Nothing waits, so time that was not used is not saved up, and a packet that came too early for the
    /// shaper is waited for.
    fn wind(&mut self, cx: &mut Context<'_>, own: QdiscState, tin: usize) {
        let now = cx.now.0;
        if self.tins[tin].backlog() == 0 {
            self.tins[tin].next = self.tins[tin].next.max(now);
            if own.qlen == 0 {
                if self.next < now {
                    (self.next, self.failsafe) = (now, now);
                } else {
                    self.wait_for_turn(cx, own);
                }
            }
        }
    }

    /// May nothing go yet? Then the watchdog is armed.
    fn wait_for_turn(&mut self, cx: &mut Context<'_>, own: QdiscState) -> bool {
        if self.next <= cx.now.0 || self.failsafe <= cx.now.0 {
            return false;
        }
        self.overlimits = self.overlimits.wrapping_add(1);
        cx.wake(own, Time(self.next.min(self.failsafe)));
        true
    }

    /// Charges a packet to its tin and to the whole; returns its cost in bytes.
    #[inline]
    fn charge(&mut self, now: u64, tin: usize, cost: u32, dropped: bool) -> u32 {
        if self.pace.is_some() {
            let whole = self.pace.ns(cost);
            let tin = &mut self.tins[tin];
            let part = tin.terms.pace.ns(cost);
            tin.next = if tin.next < now { tin.next + part } else { tin.next.max(now + part) };
            self.next = self.next.wrapping_add(whole);
            if !dropped {
                self.failsafe = self.failsafe.wrapping_add(whole + (whole >> 1));
            }
        }
        cost
    }

    /// Drops from the longest queues until the memory suffices; returns whether the flow that a packet just
    /// came for was among them.
    fn make_room(&mut self, cx: &mut Context<'_>, at: Handle, came_for: (usize, u32)) -> bool {
        let mut own = false;
        while self.memory > self.memory_limit {
            let fresh = !self.overflow.is_kept();
            let (tin, queue) = self.overflow.longest(&self.tins);
            let found = self.tins[tin].flow_of(queue);
            let Some((flow, pkt)) = found.and_then(|flow| Some((flow, self.tins[tin].pop(cx.pool, flow)?)))
            else {
                // The heap is wrong: it is built again. Then an empty queue on top means that nothing waits.
                self.overflow.forget();
                if fresh {
                    break;
                }
                continue;
            };
            let law = self.tins[tin].terms.law;
            let begins = self.tins[tin].flow(flow).state.full(&law, cx.now);
            let tin_counts = &mut self.tins[tin].counts;
            tin_counts.unresponsive = tin_counts.unresponsive.wrapping_add(begins.into());
            tin_counts.drops = tin_counts.drops.wrapping_add(1);
            self.tins[tin].flow(flow).dropped += 1;
            let meta = cx.pool.meta(&pkt);
            self.memory -= u64::from(meta.truesize);
            if self.charges_drops() {
                self.charge(cx.now.0, tin, meta.cost, true);
            }
            cx.drop(at, pkt, DropReason::Overflow);
            self.overflow.shorter(&self.tins, tin, queue);
            own |= (tin, flow) == came_for;
        }
        own
    }

    /// Learns from an arrival how fast packets come, where the rate follows that.
    fn learn_arrival(&mut self, now: Time) {
        let seen = &mut self.arrivals;
        if self.params.autorate != Some(true) {
            (seen.window_bytes, seen.last) = (0, now.0);
            return;
        }
        let interval = (now.0 - seen.last).min(1_000_000_000);
        seen.interval = moved(seen.interval, interval, if interval > seen.interval { 2 } else { 8 });
        seen.last = now.0;
        if interval <= seen.interval {
            return;
        }
        let rate =
            seen.window_bytes.wrapping_mul(1_000_000_000).checked_div(now.0 - seen.window_began).unwrap_or(0);
        seen.peak = moved(seen.peak, rate, if rate > seen.peak { 2 } else { 8 });
        (seen.window_bytes, seen.window_began) = (0, now.0);
        if now > Time(seen.followed) + FOLLOWS_EVERY {
            self.rate = (seen.peak * 15) >> 4;
            if self.linux.has(LinuxChange::CakeAutorate) {
                seen.followed = now.0;
            }
            self.reconfigure();
        }
    }

    /// The tin that sends next. Shaped: the highest whose time has come, otherwise the one whose time comes
    /// first. Not shaped: by turns. `None`: no flow takes part in any round.
    fn choose_next(&mut self, now: u64) -> Option<usize> {
        if !self.pace.is_some() {
            return self.next_in_turn();
        }
        let mut best: Option<(i64, usize)> = None;
        for (at, tin) in self.tins.iter().enumerate().take(self.tin_count()) {
            let until = tin.next.wrapping_sub(now) as i64;
            if tin.is_active() && (until <= 0 || best.is_none_or(|(least, _)| until <= least)) {
                best = Some((until, at));
            }
        }
        self.current = best.map_or(0, |(_, at)| at);
        best.map(|(_, at)| at)
    }

    fn next_in_turn(&mut self) -> Option<usize> {
        let (mut wrapped, mut empty) = (false, true);
        loop {
            let tin = &mut self.tins[self.current];
            if tin.deficit >= 0 && tin.is_active() {
                return Some(self.current);
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum;
            }
            empty &= !tin.is_active();
            self.current += 1;
            if self.current >= self.tin_count() {
                self.current = 0;
                if wrapped && empty {
                    return None;
                }
                wrapped = true;
            }
        }
    }

    /// Serves a tin: the next packet of the flow whose turn it is. `None`: a flow was found empty, and
    /// everything is to be looked at again.
    fn serve(&mut self, cx: &mut Context<'_>, own: QdiscState, at: usize, fresh: &mut bool) -> Option<Pkt> {
        let mode = self.mode();
        loop {
            let tin = &mut self.tins[at];
            let flow = tin.turn(core::mem::take(fresh))?;
            if tin.flow(flow).deficit <= 0 {
                tin.put_off(mode, flow, cx.random.source);
                continue;
            }
            loop {
                let Some(pkt) = self.pop(cx.pool, at, flow) else {
                    self.tins[at].run_empty(mode, flow, cx.now);
                    return None;
                };
                let verdict = self.decide(cx, at, flow, &pkt);
                // The last packet of a queue may be marked; it is not dropped.
                if !verdict.drop || self.tins[at].flow(flow).queue.is_empty() {
                    self.tins[at].counts.marks += u32::from(verdict.marked);
                    return Some(self.send(cx, at, flow, pkt));
                }
                if self.drop_packet(cx, own, at, flow, pkt) {
                    break;
                }
            }
        }
    }

    /// Takes the oldest packet of a flow.
    #[inline]
    fn pop(&mut self, pool: &mut Pool, at: usize, flow: u32) -> Option<Pkt> {
        let pkt = self.tins[at].pop(pool, flow)?;
        self.memory -= u64::from(pool.meta(&pkt).truesize);
        if self.overflow.is_kept() {
            let queue = self.tins[at].queue_of(flow);
            self.overflow.shorter(&self.tins, at, queue);
        }
        Some(pkt)
    }

    fn decide(&mut self, cx: &mut Context<'_>, at: usize, flow: u32, pkt: &Pkt) -> CobaltVerdict {
        struct Here<'a, 'b>(&'a mut Context<'b>, &'a Pkt);
        impl AqmQueue for Here<'_, '_> {
            fn mark(&mut self) -> bool {
                self.0.pool.meta_mut(self.1).set_ce()
            }
            fn draw(&mut self) -> u32 {
                self.0.random.source.u32()
            }
        }
        let bulk = if self.charges_drops() { self.tins[at].bulk } else { 0 };
        let law = self.tins[at].terms.law;
        let (now, waited) = (cx.now, cx.now.0.wrapping_sub(cx.pool.meta(pkt).scratch.0));
        self.tins[at].flow(flow).state.decide(&law, now, waited, bulk, &mut Here(cx, pkt))
    }

    /// Drops a packet that its flow's law dropped; returns whether the flow was charged for it, so that its
    /// turn may be over.
    fn drop_packet(&mut self, cx: &mut Context<'_>, own: QdiscState, at: usize, flow: u32, pkt: Pkt) -> bool {
        let charged = self.charges_drops();
        if charged {
            let cost = self.charge(cx.now.0, at, cx.pool.meta(&pkt).cost, true) as i32;
            self.tins[at].flow(flow).deficit -= cost;
            self.tins[at].deficit -= cost;
        }
        self.tins[at].flow(flow).dropped += 1;
        self.tins[at].counts.drops += 1;
        cx.drop(own.handle, pkt, DropReason::Codel);
        charged
    }

    fn send(&mut self, cx: &mut Context<'_>, at: usize, flow: u32, pkt: Pkt) -> Pkt {
        let meta = cx.pool.meta(&pkt);
        self.tins[at].learn_delay(cx.now.0.wrapping_sub(meta.scratch.0));
        let cost = self.charge(cx.now.0, at, meta.cost, false) as i32;
        self.tins[at].flow(flow).deficit -= cost;
        self.tins[at].deficit -= cost;
        pkt
    }

    /// A packet leaves, and `waiting` more wait: the watchdog is armed for the next, or for the flows that
    /// decay.
    fn arm(&mut self, cx: &mut Context<'_>, own: QdiscState, waiting: u32) {
        if waiting > 0 {
            if self.next > cx.now.0 {
                cx.wake(own, Time(self.next.min(self.failsafe)));
            }
            return;
        }
        let decaying = self.tins.iter().take(self.tin_count()).find(|tin| tin.decaying > 0);
        if let Some(tin) = decaying {
            cx.wake(own, cx.now + Nanos(tin.terms.law.target));
        }
    }
}

/// What distinguishes flows where conversations do not: the hashes of the ends that count.
fn ends(mode: CakeFlows, hosts: &mut dyn FnMut() -> (u32, u32)) -> u32 {
    let (source, destination) = if mode.by_source() || mode.by_destination() { hosts() } else { (0, 0) };
    (if mode.by_source() { source } else { 0 }) ^ (if mode.by_destination() { destination } else { 0 })
}

/// The hash of a packet's conversation.
fn flow_hash(pool: &mut Pool, pkt: &Pkt, nat: bool) -> u32 {
    match if nat { pool.untranslated_keys(pkt) } else { None } {
        Some(keys) => keys.hash(pool.hash_key()),
        None => pool.hash(pkt),
    }
}

/// The hashes of a packet's two ends: of its keys with one address alone.
fn host_hashes(pool: &mut Pool, pkt: &Pkt, nat: bool) -> (u32, u32) {
    let untranslated = if nat { pool.untranslated_keys(pkt) } else { None };
    let keys = untranslated.unwrap_or_else(|| pool.keys(pkt).at_label());
    let alone = FlowKeys { ports: (0, 0), protocol: 0, gre_key: [0; 4], flow_label: 0, ..keys };
    let key = pool.hash_key();
    let hash = |addrs: Addrs| FlowKeys { addrs, ..alone }.hash(key);
    match keys.addrs {
        Addrs::None => (0, 0),
        Addrs::V4(source, destination) => {
            (hash(Addrs::V4(source, [0; 4])), hash(Addrs::V4([0; 4], destination)))
        }
        Addrs::V6(source, destination) => {
            (hash(Addrs::V6(source, [0; 16])), hash(Addrs::V6([0; 16], destination)))
        }
    }
}

impl Discipline for Cake {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let named = match self.named(cx, own, filters, &pkt) {
            Ok(named) => named,
            Err(gone) => return gone.carry_out(cx, own.handle, pkt),
        };
        let tin = self.choose_tin(cx.pool, own, &pkt);
        let flow = self.choose_flow(cx.pool, &pkt, tin, named);
        if cx.pool.tracks_queue_locations() {
            self.note_queue(cx.pool, &pkt, tin, flow);
        }
        self.wind(cx, own, tin);
        let meta = cx.pool.meta_mut(&pkt);
        let len = meta.len;
        meta.cost = self.framing.cost(len, cx.device.link_header);
        meta.scratch.0 = cx.now.0;
        self.memory += u64::from(meta.truesize);
        let counts = &mut self.tins[tin].counts;
        counts.longest = counts.longest.max(len as u16);
        counts.packets += 1;
        counts.bytes += u64::from(len);
        self.arrivals.window_bytes += u64::from(len);
        self.tins[tin].push(cx.pool, flow, pkt);
        self.filter_acks(cx, own, tin, flow);
        if self.overflow.is_kept() {
            let queue = self.tins[tin].queue_of(flow);
            self.overflow.longer(&self.tins, tin, queue);
        }
        self.learn_arrival(cx.now);
        let mode = self.mode();
        self.tins[tin].join(mode, flow, cx.random.source);
        self.memory_most = self.memory_most.max(self.memory);
        if self.make_room(cx, own.handle, (tin, flow)) { Enqueue::Congested } else { Enqueue::Queued }
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        let lost = cx.dropped.packets;
        let mut fresh = true;
        loop {
            let waiting = own.qlen - (cx.dropped.packets - lost);
            if waiting == 0 {
                return Dequeue::Empty;
            }
            if self.wait_for_turn(cx, own) {
                return Dequeue::Throttled;
            }
            let Some(tin) = self.choose_next(cx.now.0) else { return Dequeue::Empty };
            if let Some(pkt) = self.serve(cx, own, tin, &mut fresh) {
                let waiting = own.qlen - (cx.dropped.packets - lost) - 1;
                self.arm(cx, own, waiting);
                self.overflow.sent();
                return Dequeue::Packet(pkt);
            }
        }
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        match params {
            Some(QdiscParams::Cake(params)) => self.set(params),
            None => {}
            Some(_) => return Err(TcError::bare(Errno::Inval)),
        }
        self.reconfigure();
        for tin in self.tin_count()..MOST {
            self.clear(cx, tin, |cx, pkt| cx.vanish(own.handle, pkt));
        }
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        for tin in 0..MOST {
            self.clear(cx, tin, |cx, pkt| cx.drop(own.handle, pkt, DropReason::PurgedAtOnce));
        }
        self.current = MOST - 1;
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.overlimits;
    }

    fn params(&self) -> QdiscParams {
        let mut params = self.params.clone();
        params.bandwidth = Some(Rate(self.rate));
        params.target_us = None;
        QdiscParams::Cake(Box::new(params))
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        let division = self.division();
        Xstats::Cake(Box::new(CakeStats {
            memory_used: self.memory_most as u32,
            memory_limit: self.memory_limit as u32,
            capacity: Rate(self.arrivals.peak),
            network_sizes: self.framing.network,
            adjusted_sizes: self.framing.adjusted,
            header_offset: self.framing.header_offset(),
            tins: (0..division.count())
                .map(|place| self.tins[tins::at_place(division, place)].stats())
                .collect(),
        }))
    }

    classful!();
}

impl Classful for Cake {
    fn classes(&mut self, now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        let division = self.division();
        for place in 0..division.count() {
            for (queue, stats, flow) in self.tins[tins::at_place(division, place)].dump_flows(now) {
                out.push(ClassDump {
                    dev: Default::default(),
                    kind: Kind::Cake,
                    classid: qdisc.class((place * QUEUES + queue + 1) as u16),
                    parent: qdisc,
                    leaf: Handle::NONE,
                    params: ClassParams::None,
                    stats: Some(stats),
                    xstats: Xstats::CakeFlow(flow),
                });
            }
        }
    }
}

impl BuiltIn for Cake {}

impl Cake {
    /// Notes the number by which tc lists the queue of a flow.
    #[cold]
    fn note_queue(&self, pool: &mut Pool, pkt: &Pkt, tin: usize, flow: u32) {
        let division = self.division();
        let place = (0..division.count()).find(|place| tins::at_place(division, *place) == tin);
        let queue = place.unwrap_or(0) * QUEUES + self.tins[tin].queue_of(flow) + 1;
        pool.note_queue(pkt, queue as u32);
    }

    /// Empties a tin; `lose` is how each packet is dropped. The flows stay in their sets.
    fn clear<'b>(&mut self, cx: &mut Context<'b>, tin: usize, lose: impl Fn(&mut Context<'b>, Pkt)) {
        for flow in self.tins[tin].in_order() {
            while let Some(pkt) = self.pop(cx.pool, tin, flow) {
                lose(cx, pkt);
            }
        }
    }
}

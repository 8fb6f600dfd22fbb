//! fq_pie: fair queueing with PIE in each flow.
//!
//! The flows are fq_codel's: new ones are served before the others, and each sends a quantum of bytes in its
//! turn. Each flow has its own PIE state, so an arrival is judged by the backlog of its own flow. The control
//! law is in [`crate::algo::pie`].

use super::purge_queue;
use crate::algo::pie::{CERTAIN, Params, State};
use crate::algo::{IndexList, Linked, ListLink};
use crate::batch::BuiltIn;
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Trimmed};
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Jiffies, PeriodicTimer, Pkt, Time};
use tidegate_policy::dump::{FqPieStats, Xstats};
use tidegate_policy::{Errno, FqPieParams, PieParams, QdiscParams, TcError};

const MEMORY_LIMIT: u32 = 32 << 20;
const MAX_FLOWS: u32 = 65_536;
const MIN_QUANTUM: u32 = 256;
const MAX_QUANTUM: u32 = 1 << 20;
/// Flows that are looked after in one jiffy.
const BATCH: usize = 2048;

pub(crate) struct FqPie {
    limit: u32,
    quantum: u32,
    memory_limit: u32,
    ecn_prob: u32,
    params: Params,
    /// Between updates, jiffies.
    update_ticks: u32,
    ecn: bool,
    /// By bucket of the hash.
    flows: Vec<Flow>,
    new_flows: IndexList,
    old_flows: IndexList,
    memory: u64,
    timer: PeriodicTimer,
    /// The flow that is looked after next.
    cursor: usize,
    stats: FqPieStats,
}

#[derive(Default)]
struct Flow {
    link: ListLink,
    queue: Fifo,
    deficit: i32,
    state: State,
}

impl Linked for Flow {
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

impl FqPie {
    pub(crate) fn new(cx: &Context<'_>, params: Option<&FqPieParams>) -> Result<FqPie, TcError> {
        let jiffies = cx.device.jiffies;
        let mut fq = FqPie {
            limit: 10 * 1024,
            quantum: cx.device.max_frame,
            memory_limit: MEMORY_LIMIT,
            ecn_prob: 10,
            params: Params::default(),
            update_ticks: jiffies.of_micros(15_000),
            ecn: false,
            flows: Vec::new(),
            new_flows: IndexList::default(),
            old_flows: IndexList::default(),
            memory: 0,
            timer: PeriodicTimer::after(jiffies, cx.now, jiffies.hz / 2),
            cursor: 0,
            stats: FqPieStats::default(),
        };
        let mut flows = 1024;
        if let Some(params) = params {
            check(params)?;
            flows = params.flows.unwrap_or(flows);
            if flows == 0 || flows > MAX_FLOWS {
                let words = "sch_fq_pie: Number of flows must range in [1..65536]";
                return Err(TcError::new(Errno::Inval, words));
            }
            fq.set(jiffies, params);
        }
        fq.flows.resize_with(flows as usize, Flow::default);
        Ok(fq)
    }

    fn set(&mut self, jiffies: Jiffies, params: &FqPieParams) {
        let pie = &params.pie;
        self.params.set(pie);
        if let Some(us) = pie.tupdate_us {
            self.update_ticks = jiffies.of_micros(us);
        }
        self.limit = pie.limit.unwrap_or(self.limit);
        self.ecn = pie.ecn.unwrap_or(self.ecn);
        self.quantum = params.quantum.map_or(self.quantum, |bytes| bytes.max(MIN_QUANTUM));
        self.memory_limit = params.memory_limit.unwrap_or(self.memory_limit);
        self.ecn_prob = params.ecn_prob.unwrap_or(self.ecn_prob);
    }

    fn bucket(&self, cx: &mut Context<'_>, own: QdiscState, pkt: &Pkt) -> u32 {
        let priority = cx.pool.meta(pkt).priority_class();
        let flows = self.flows.len() as u32;
        if priority.qdisc() == own.handle && (1..=flows).contains(&u32::from(priority.minor())) {
            return u32::from(priority.minor()) - 1;
        }
        ((u64::from(cx.pool.hash(pkt)) * u64::from(flows)) >> 32) as u32
    }

    /// Is the packet taken in, marked if need be?
    fn admits(&mut self, cx: &mut Context<'_>, own: QdiscState, bucket: u32, pkt: &Pkt) -> bool {
        if own.qlen >= self.limit {
            self.stats.overlimit += 1;
            return false;
        }
        let meta = cx.pool.meta(pkt);
        // Linux adds the packet to the limit, not to the backlog, and its sum has 32 bits.
        if self.memory as u32 > self.memory_limit.wrapping_add(meta.truesize) {
            self.stats.overmemory += 1;
        }
        let flow = &mut self.flows[bucket as usize];
        let backlog = flow.queue.bytes() as u32;
        if !flow.state.drops(&self.params, cx.random.source, backlog, meta.frame_len, cx.device.max_frame) {
            return true;
        }
        let most = CERTAIN / 100 * u64::from(self.ecn_prob);
        let mark = self.ecn && flow.state.probability <= most && cx.pool.meta_mut(pkt).set_ce();
        if mark {
            self.stats.ecn_mark += 1;
        }
        mark
    }
}

fn check(params: &FqPieParams) -> Result<(), TcError> {
    if params.quantum.is_some_and(|bytes| bytes > MAX_QUANTUM) {
        return Err(TcError::new(Errno::Range, "integer out of range"));
    }
    Ok(())
}

impl Discipline for FqPie {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        self.catch_up(cx.now, own);
        let bucket = self.bucket(cx, own, &pkt);
        cx.pool.note_queue(&pkt, bucket + 1);
        if !self.admits(cx, own, bucket, &pkt) {
            self.stats.dropped += 1;
            self.flows[bucket as usize].state.dropped();
            cx.drop(own.handle, pkt, DropReason::Early);
            return Enqueue::Congested;
        }
        let meta = cx.pool.meta_mut(&pkt);
        if !self.params.rate_estimator {
            meta.scratch.0 = cx.now.psched();
        }
        self.stats.packets_in += 1;
        self.memory += u64::from(meta.truesize);
        let flow = &mut self.flows[bucket as usize];
        flow.queue.push_back(cx.pool, pkt);
        if !flow.link.is_linked() {
            flow.deficit = self.quantum as i32;
            self.stats.new_flow_count += 1;
            self.new_flows.push(&mut self.flows, bucket);
        }
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        self.catch_up(cx.now, own);
        loop {
            let from_new = !self.new_flows.is_empty();
            let list = if from_new { &mut self.new_flows } else { &mut self.old_flows };
            let Some(at) = list.first() else { return Dequeue::Empty };
            let flow = &mut self.flows[at as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum as i32;
                list.remove(&mut self.flows, at);
                self.old_flows.push(&mut self.flows, at);
                continue;
            }
            if let Some(pkt) = flow.queue.pop_front(cx.pool) {
                let meta = cx.pool.meta(&pkt);
                flow.deficit -= meta.len as i32;
                self.memory -= u64::from(meta.truesize);
                let left = flow.queue.bytes() as u32;
                flow.state.sent(&self.params, cx.now, meta.scratch.0, meta.frame_len, left);
                return Dequeue::Packet(pkt);
            }
            list.remove(&mut self.flows, at);
            if from_new && !self.old_flows.is_empty() {
                self.old_flows.push(&mut self.flows, at);
            }
        }
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let params = match params {
            Some(QdiscParams::FqPie(params)) => params,
            _ => return Err(TcError::bare(Errno::Inval)),
        };
        check(params)?;
        // A refused change has taken over the limit by then.
        self.limit = params.pie.limit.unwrap_or(self.limit);
        if params.flows.is_some() {
            return Err(TcError::new(Errno::Inval, "sch_fq_pie: Number of flows cannot be changed"));
        }
        self.catch_up(cx.now, own);
        self.set(cx.device.jiffies, params);
        Ok(())
    }

    fn trim(&mut self, cx: &mut Context<'_>, own: QdiscState, peeked: &mut Option<Pkt>) -> Trimmed {
        if own.qlen <= self.limit {
            return Trimmed::Nothing;
        }
        if let Some(pkt) = peeked.take() {
            return Trimmed::Sent(pkt);
        }
        match self.dequeue(cx, own) {
            Dequeue::Packet(pkt) => Trimmed::Sent(pkt),
            _ => Trimmed::Nothing,
        }
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        self.catch_up(cx.now, own);
        for flow in &mut self.flows {
            purge_queue(cx, own.handle, &mut flow.queue);
            flow.link = ListLink::default();
            flow.state = State::default();
        }
        self.new_flows = IndexList::default();
        self.old_flows = IndexList::default();
        // The memory of what was dropped stays counted (recorded: down-up-fq_pie).
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::FqPie(FqPieParams {
            pie: PieParams {
                limit: Some(self.limit),
                target_us: Some((self.params.target << 6) as u32 / 1000),
                tupdate_us: Some(self.timer.jiffies().micros(self.update_ticks)),
                alpha: Some(self.params.alpha),
                beta: Some(self.params.beta),
                ecn: Some(self.ecn),
                bytemode: Some(self.params.bytemode),
                rate_estimator: Some(self.params.rate_estimator),
            },
            flows: Some(self.flows.len() as u32),
            quantum: Some(self.quantum),
            memory_limit: Some(self.memory_limit),
            ecn_prob: Some(self.ecn_prob),
        })
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        Xstats::FqPie(FqPieStats {
            new_flows_len: self.new_flows.len(),
            old_flows_len: self.old_flows.len(),
            memory_used: self.memory as u32,
            ..self.stats.clone()
        })
    }
}

impl BuiltIn for FqPie {
    fn catch_up(&mut self, now: Time, _own: QdiscState) {
        loop {
            let last = self.cursor + BATCH >= self.flows.len();
            // The next batch's turn comes at the next tick; without an interval there is none.
            let fired = match (self.update_ticks, last) {
                (0, _) | (_, true) => self.timer.fired(now, self.update_ticks),
                (_, false) => self.timer.fired_until(now, |present| present),
            };
            if fired.is_none() {
                return;
            }
            let end = (self.cursor + BATCH).min(self.flows.len());
            for flow in &mut self.flows[self.cursor..end] {
                flow.state.update(&self.params, flow.queue.bytes() as u32);
            }
            self.cursor = if last { 0 } else { end };
        }
    }
}

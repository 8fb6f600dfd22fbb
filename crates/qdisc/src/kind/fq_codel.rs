//! fq_codel: flow queueing with controlled delay (RFC 8290).
//!
//! Packets are hashed into flows. A flow that gets its first packet joins the list of new flows, which are
//! served before the old ones; each sends a quantum of bytes in its turn, deficit round robin, and each has
//! its own CoDel. When the qdisc is full the flow with the most bytes pays, from its head, for all. A new
//! flow that runs empty passes through the old list once, so that none can stay new.

use super::codel::{CodelFifo, set_times};
use super::purge_queue;
use crate::algo::codel::{Params, State, Stats, micros};
use crate::algo::{IndexList, Linked, ListLink};
use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::classify::{ClassifyResult, Consumed, classify};
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Trimmed};
use crate::kind::classful;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Handle, LinuxChange, Pkt, Time};
use tidegate_policy::dump::{ClassDump, FqCodelStats, QueueStats, Xstats};
use tidegate_policy::{ClassParams, Errno, FqCodelParams, Kind, QdiscParams, TcError};

/// Memory that a fresh fq_codel may use, bytes.
const MEMORY_LIMIT: u32 = 32 << 20;
/// The least quantum that a change accepts as it is.
const MIN_QUANTUM: u32 = 256;
const MAX_QUANTUM: u32 = 1 << 20;

pub(crate) struct FqCodel {
    limit: u32,
    flow_count: u32,
    quantum: u32,
    memory_limit: u32,
    drop_batch: u32,
    /// Only the memory of forwarded packets counts.
    forwarded_only: bool,
    params: Params,
    counts: Stats,
    /// By bucket of the hash: 0, or one more than the place of its flow among those that were ever used. Most
    /// buckets never are, so a qdisc is small and its flows lie together. Made when the first packet comes.
    places: Vec<u32>,
    flows: Vec<Flow>,
    /// The bucket of each flow, and the bytes waiting in it: close together for the search of the fattest.
    buckets: Vec<u32>,
    backlogs: Vec<u32>,
    new_flows: IndexList,
    old_flows: IndexList,
    new_flow_count: u32,
    memory: u64,
    drop_overlimit: u32,
    drop_overmemory: u32,
}

/// One flow: a line of the cache.
#[derive(Default)]
#[repr(align(64))]
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

impl FqCodel {
    pub(crate) fn new(device: DeviceInfo, params: Option<&FqCodelParams>) -> Result<FqCodel, TcError> {
        let mut law = Params::of(device.switches.linux, device.max_frame);
        law.ecn = true;
        let mut fq = FqCodel {
            limit: 10 * 1024,
            flow_count: 1024,
            quantum: device.max_frame,
            memory_limit: MEMORY_LIMIT,
            drop_batch: 64,
            forwarded_only: device.switches.linux.has(LinuxChange::FqCodelForwarded),
            params: law,
            counts: Stats::default(),
            places: Vec::new(),
            flows: Vec::new(),
            buckets: Vec::new(),
            backlogs: Vec::new(),
            new_flows: IndexList::default(),
            old_flows: IndexList::default(),
            new_flow_count: 0,
            memory: 0,
            drop_overlimit: 0,
            drop_overmemory: 0,
        };
        if let Some(params) = params {
            if let Some(flows) = params.flows {
                if flows == 0 || flows > 65536 {
                    return Err(TcError::bare(Errno::Inval));
                }
                fq.flow_count = flows;
            }
            fq.set(params)?;
        }
        Ok(fq)
    }

    fn set(&mut self, params: &FqCodelParams) -> Result<(), TcError> {
        if let Some(quantum) = params.quantum {
            let quantum = quantum.max(MIN_QUANTUM);
            if quantum > MAX_QUANTUM {
                return Err(TcError::new(Errno::Inval, "Invalid quantum"));
            }
            self.quantum = quantum;
        }
        set_times(&mut self.params, params.target_us, params.interval_us, params.ce_threshold_us);
        if let Some((value, mask)) = params.ce_selector {
            self.params.ce_selector = (value, mask);
        }
        if let Some(ecn) = params.ecn {
            self.params.ecn = ecn;
        }
        if let Some(limit) = params.limit {
            self.limit = limit;
        }
        if let Some(batch) = params.drop_batch {
            self.drop_batch = batch.max(1);
        }
        if let Some(bytes) = params.memory_limit {
            self.memory_limit = bytes.min(1 << 31);
        }
        Ok(())
    }

    /// The bucket of a packet; `None` when a filter sends it nowhere.
    fn choose(
        &self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: &Pkt,
    ) -> Result<Option<u32>, Consumed> {
        let priority = cx.pool.meta(pkt).priority_class();
        let named = |class: Handle| (1..=self.flow_count).contains(&u32::from(class.minor()));
        if priority.qdisc() == own.handle && named(priority) {
            return Ok(Some(u32::from(priority.minor()) - 1));
        }
        if filters.is_empty() {
            let hash = cx.pool.hash(pkt);
            return Ok(Some(((u64::from(hash) * u64::from(self.flow_count)) >> 32) as u32));
        }
        match classify(filters, cx, own.handle, pkt) {
            ClassifyResult::Nothing => Ok(None),
            ClassifyResult::Class(class) => Ok(named(class).then(|| u32::from(class.minor()) - 1)),
            ClassifyResult::Consumed(gone) => Err(gone),
        }
    }

    /// The flow of a bucket, begun if it was never used.
    #[inline]
    fn flow_of(&mut self, bucket: u32) -> u32 {
        if self.places.is_empty() {
            self.places = vec![0; self.flow_count as usize];
        }
        match self.places[bucket as usize] {
            0 => self.begin_flow(bucket),
            place => place - 1,
        }
    }

    #[cold]
    fn begin_flow(&mut self, bucket: u32) -> u32 {
        self.flows.push(Flow::default());
        self.buckets.push(bucket);
        self.backlogs.push(0);
        self.places[bucket as usize] = self.flows.len() as u32;
        self.flows.len() as u32 - 1
    }

    /// The flows that were used, with their buckets, in the order of these.
    fn in_order(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let mut order: Vec<(usize, usize)> = self.buckets.iter().map(|b| *b as usize).zip(0..).collect();
        order.sort_unstable();
        order.into_iter()
    }

    /// Drops from the head of the fattest flow until half of its bytes are gone, or a batch; returns which
    /// flow.
    fn drop_from_fattest(&mut self, cx: &mut Context<'_>, at: Handle) -> (u32, u32) {
        // Of several the one with the lowest bucket.
        let (mut index, mut most) = (0, 0);
        for (at, bytes) in self.backlogs.iter().enumerate() {
            if *bytes > most || *bytes == most && self.buckets[at] < self.buckets[index] {
                (index, most) = (at, *bytes);
            }
        }
        let flow = &mut self.flows[index];
        let (mut packets, mut bytes) = (0, 0);
        while let Some(pkt) = flow.queue.pop_front(cx.pool) {
            let meta = cx.pool.meta(&pkt);
            bytes += meta.len;
            self.memory -= u64::from(meta.scratch.second());
            cx.drop(at, pkt, DropReason::Overflow);
            packets += 1;
            if packets >= self.drop_batch || bytes >= most >> 1 {
                break;
            }
        }
        flow.state.count = flow.state.count.wrapping_add(packets);
        self.backlogs[index] -= bytes;
        (index as u32, packets)
    }
}

impl Discipline for FqCodel {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let chosen = match self.choose(cx, own, filters, &pkt) {
            Ok(chosen) => chosen,
            Err(gone) => return gone.carry_out(cx, own.handle, pkt),
        };
        let Some(bucket) = chosen else {
            cx.drop(own.handle, pkt, DropReason::Unclassified);
            return Enqueue::Dropped;
        };
        let index = self.flow_of(bucket);
        cx.pool.note_queue(&pkt, bucket + 1);
        let meta = cx.pool.meta_mut(&pkt);
        let memory = if self.forwarded_only && meta.came_in == 0 { 0 } else { meta.truesize };
        meta.scratch.set(cx.now.codel(), memory);
        self.backlogs[index as usize] += meta.len;
        self.memory += u64::from(memory);
        let flow = &mut self.flows[index as usize];
        flow.queue.push_back(cx.pool, pkt);
        if !flow.link.is_linked() {
            flow.deficit = self.quantum as i32;
            self.new_flow_count += 1;
            self.new_flows.push(&mut self.flows, index);
        }
        let over_memory = self.memory > u64::from(self.memory_limit);
        if own.qlen < self.limit && !over_memory {
            return Enqueue::Queued;
        }
        let (victim, packets) = self.drop_from_fattest(cx, own.handle);
        self.drop_overlimit += packets;
        if over_memory {
            self.drop_overmemory += packets;
        }
        if victim == index { Enqueue::Congested } else { Enqueue::Queued }
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        let now = cx.now.codel();
        let mut backlog = own.backlog;
        loop {
            let from_new = !self.new_flows.is_empty();
            let list = if from_new { &mut self.new_flows } else { &mut self.old_flows };
            let Some(index) = list.first() else { return Dequeue::Empty };
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum as i32;
                list.remove(&mut self.flows, index);
                self.old_flows.push(&mut self.flows, index);
                continue;
            }
            let mut verdict = CodelFifo { cx, at: own.handle, queue: &mut flow.queue, backlog, memory: 0 };
            let packet = flow.state.dequeue(&self.params, &mut self.counts, now, &mut verdict);
            self.memory -= verdict.memory;
            backlog = verdict.backlog;
            self.backlogs[index as usize] = flow.queue.bytes() as u32;
            if let Some(pkt) = packet {
                flow.deficit -= cx.pool.meta(&pkt).len as i32;
                return Dequeue::Packet(pkt);
            }
            list.remove(&mut self.flows, index);
            if from_new && !self.old_flows.is_empty() {
                self.old_flows.push(&mut self.flows, index);
            }
        }
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let params = match params {
            Some(QdiscParams::FqCodel(params)) => params,
            None => return Ok(()),
            Some(_) => return Err(TcError::bare(Errno::Inval)),
        };
        // The flow table cannot be resized: even the same number is refused (recorded:
        // answers/fq_codel-change-with-flows).
        if params.flows.is_some() {
            return Err(TcError::bare(Errno::Inval));
        }
        self.set(params)
    }

    fn trim(&mut self, cx: &mut Context<'_>, own: QdiscState, peeked: &mut Option<Pkt>) -> Trimmed {
        if !(own.qlen > self.limit || self.memory > u64::from(self.memory_limit)) {
            return Trimmed::Nothing;
        }
        // Packets that no longer fit count as sent (recorded: answers/fq_codel-change-counts-as-sent).
        if let Some(pkt) = peeked.take() {
            return Trimmed::Sent(pkt);
        }
        match self.dequeue(cx, own) {
            Dequeue::Packet(pkt) => Trimmed::Sent(pkt),
            _ => Trimmed::Nothing,
        }
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        for (_, index) in self.in_order() {
            let flow = &mut self.flows[index];
            purge_queue(cx, own.handle, &mut flow.queue);
            flow.link = ListLink::default();
            flow.state = State::default();
        }
        self.backlogs.fill(0);
        self.new_flows = IndexList::default();
        self.old_flows = IndexList::default();
        self.memory = 0;
    }

    fn params(&self) -> QdiscParams {
        let (value, mask) = self.params.ce_selector;
        QdiscParams::FqCodel(FqCodelParams {
            limit: Some(self.limit),
            flows: Some(self.flow_count),
            quantum: Some(self.quantum),
            target_us: Some(micros(self.params.target)),
            interval_us: Some(micros(self.params.interval)),
            ecn: Some(self.params.ecn),
            ce_threshold_us: (self.params.ce_threshold != Params::OFF)
                .then(|| micros(self.params.ce_threshold)),
            ce_selector: (self.params.ce_threshold != Params::OFF && mask != 0).then_some((value, mask)),
            memory_limit: Some(self.memory_limit),
            drop_batch: Some(self.drop_batch),
        })
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        Xstats::FqCodel(FqCodelStats {
            maxpacket: self.counts.maxpacket,
            drop_overlimit: self.drop_overlimit,
            ecn_mark: self.counts.ecn_mark,
            new_flow_count: self.new_flow_count,
            new_flows_len: self.new_flows.len(),
            old_flows_len: self.old_flows.len(),
            ce_mark: self.counts.ce_mark,
            memory_used: self.memory as u32,
            drop_overmemory: self.drop_overmemory,
        })
    }

    classful!();
}

impl Classful for FqCodel {
    fn classes(&mut self, now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (bucket, index) in self.in_order() {
            let flow = &self.flows[index];
            if !flow.link.is_linked() {
                continue;
            }
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::FqCodel,
                classid: qdisc.class((bucket as u16).wrapping_add(1)),
                parent: qdisc,
                leaf: Handle::NONE,
                params: ClassParams::None,
                stats: Some(QueueStats {
                    qlen: flow.queue.len(),
                    backlog: flow.queue.bytes() as u32,
                    ..QueueStats::default()
                }),
                xstats: Xstats::FqCodelClass { deficit: flow.deficit, codel: flow.state.stats(now.codel()) },
            });
        }
    }
}

impl BuiltIn for FqCodel {}

//! codel: controlled delay on a single queue (RFC 8289). The law is in [`crate::algo::codel`].

use super::purge_queue;
use crate::algo::codel::{CodelQueue, Params, State, Stats, micros, units};
use crate::batch::BuiltIn;
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Trimmed};
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Handle, Pkt, Time};
use tidegate_policy::dump::{CodelStats, Xstats};
use tidegate_policy::{CodelParams, Errno, QdiscParams, TcError};

pub(crate) struct Codel {
    limit: u32,
    params: Params,
    state: State,
    counts: Stats,
    drop_overlimit: u32,
    queue: Fifo,
}

impl Codel {
    pub(crate) fn new(device: DeviceInfo, params: Option<&CodelParams>) -> Codel {
        let mut codel = Codel {
            limit: 1000,
            params: Params::of(device.switches.linux, device.max_frame),
            state: State::default(),
            counts: Stats::default(),
            drop_overlimit: 0,
            queue: Fifo::new(),
        };
        if let Some(params) = params {
            codel.set(params);
        }
        codel
    }

    fn set(&mut self, params: &CodelParams) {
        if let Some(limit) = params.limit {
            self.limit = limit;
        }
        set_times(&mut self.params, params.target_us, params.interval_us, params.ce_threshold_us);
        if let Some(ecn) = params.ecn {
            self.params.ecn = ecn;
        }
    }
}

/// Takes over the times that were given, in µs.
pub(crate) fn set_times(
    params: &mut Params,
    target: Option<u32>,
    interval: Option<u32>,
    ce_threshold: Option<u32>,
) {
    if let Some(us) = target {
        params.target = units(us);
    }
    if let Some(us) = interval {
        params.interval = units(us);
    }
    if let Some(us) = ce_threshold {
        params.ce_threshold = units(us);
    }
}

/// A [`Fifo`] under CoDel's law.
pub(crate) struct CodelFifo<'q, 'c, 'd> {
    pub(crate) cx: &'c mut Context<'d>,
    pub(crate) at: Handle,
    pub(crate) queue: &'q mut Fifo,
    /// Bytes still waiting in the qdisc.
    pub(crate) backlog: u64,
    /// Memory of the packets taken.
    pub(crate) memory: u64,
}

impl CodelQueue for CodelFifo<'_, '_, '_> {
    type Packet = Pkt;
    fn pop(&mut self) -> Option<Pkt> {
        let pkt = self.queue.pop_front(self.cx.pool)?;
        let meta = self.cx.pool.meta(&pkt);
        self.backlog -= u64::from(meta.len);
        self.memory += u64::from(meta.scratch.second());
        Some(pkt)
    }
    fn drop_packet(&mut self, pkt: Pkt) {
        self.cx.drop(self.at, pkt, DropReason::Codel);
    }
    fn mark(&mut self, pkt: &Pkt) -> bool {
        self.cx.pool.meta_mut(pkt).set_ce()
    }
    fn seen(&self, pkt: &Pkt) -> (u32, u32) {
        let meta = self.cx.pool.meta(pkt);
        (meta.scratch.first(), meta.len)
    }
    fn dsfield(&self, pkt: &Pkt) -> u8 {
        self.cx.pool.meta(pkt).dsfield
    }
    fn backlog(&self) -> u64 {
        self.backlog
    }
}

impl Discipline for Codel {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        if own.qlen >= self.limit {
            self.drop_overlimit += 1;
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        cx.pool.meta_mut(&pkt).scratch.set_first(cx.now.codel());
        self.queue.push_back(cx.pool, pkt);
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        let now = cx.now.codel();
        let mut verdict =
            CodelFifo { cx, at: own.handle, queue: &mut self.queue, backlog: own.backlog, memory: 0 };
        let packet = self.state.dequeue(&self.params, &mut self.counts, now, &mut verdict);
        packet.map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Codel(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        self.set(params);
        Ok(())
    }

    fn trim(&mut self, cx: &mut Context<'_>, own: QdiscState, peeked: &mut Option<Pkt>) -> Trimmed {
        if own.qlen <= self.limit {
            return Trimmed::Nothing;
        }
        // The peeked packet goes first (recorded: answers/codel-change-drops-the-held-packet-first).
        peeked.take().or_else(|| self.queue.pop_front(cx.pool)).map_or(Trimmed::Nothing, Trimmed::Dropped)
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        purge_queue(cx, own.handle, &mut self.queue);
        self.state = State::default();
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Codel(CodelParams {
            limit: Some(self.limit),
            target_us: Some(micros(self.params.target)),
            interval_us: Some(micros(self.params.interval)),
            ecn: Some(self.params.ecn),
            ce_threshold_us: (self.params.ce_threshold != Params::OFF)
                .then(|| micros(self.params.ce_threshold)),
        })
    }

    fn xstats(&mut self, now: Time) -> Xstats {
        Xstats::Codel(CodelStats {
            maxpacket: self.counts.maxpacket,
            drop_overlimit: self.drop_overlimit,
            ecn_mark: self.counts.ecn_mark,
            ce_mark: self.counts.ce_mark,
            ..self.state.stats(now.codel())
        })
    }
}

impl BuiltIn for Codel {}

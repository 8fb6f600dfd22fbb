//! pie: proportional integral controller enhanced, on a single queue (RFC 8033). The law is in
//! [`crate::algo::pie`].

use super::purge_queue;
use crate::algo::pie::{CERTAIN, Params, State};
use crate::batch::BuiltIn;
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState, Trimmed};
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Jiffies, PeriodicTimer, Pkt, Time};
use tidegate_policy::dump::{PieStats, Xstats};
use tidegate_policy::{Errno, PieParams, QdiscParams, TcError};

pub(crate) struct Pie {
    limit: u32,
    params: Params,
    /// Between updates, jiffies.
    update_ticks: u32,
    ecn: bool,
    state: State,
    timer: PeriodicTimer,
    stats: PieStats,
    queue: Fifo,
}

impl Pie {
    pub(crate) fn new(cx: &Context<'_>, params: Option<&PieParams>) -> Pie {
        let jiffies = cx.device.jiffies;
        let mut pie = Pie {
            limit: 1000,
            params: Params::default(),
            update_ticks: jiffies.of_micros(15_000),
            ecn: false,
            state: State::default(),
            timer: PeriodicTimer::after(jiffies, cx.now, jiffies.hz / 2),
            stats: PieStats::default(),
            queue: Fifo::new(),
        };
        if let Some(params) = params {
            pie.set(jiffies, params);
        }
        pie
    }

    fn set(&mut self, jiffies: Jiffies, params: &PieParams) {
        self.params.set(params);
        if let Some(us) = params.tupdate_us {
            self.update_ticks = jiffies.of_micros(us);
        }
        self.limit = params.limit.unwrap_or(self.limit);
        self.ecn = params.ecn.unwrap_or(self.ecn);
    }

    /// Is the packet taken in, marked if need be?
    fn admits(&mut self, cx: &mut Context<'_>, own: QdiscState, pkt: &Pkt) -> bool {
        if own.qlen >= self.limit {
            self.stats.overlimit += 1;
            return false;
        }
        let (len, mtu) = (cx.pool.meta(pkt).frame_len, cx.device.max_frame);
        if !self.state.drops(&self.params, cx.random.source, own.backlog as u32, len, mtu) {
            return true;
        }
        let mark = self.ecn && self.state.probability <= CERTAIN / 10 && cx.pool.meta_mut(pkt).set_ce();
        if mark {
            self.stats.ecn_mark += 1;
        }
        mark
    }
}

impl Discipline for Pie {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        self.catch_up(cx.now, own);
        if !self.admits(cx, own, &pkt) {
            self.stats.dropped += 1;
            self.state.dropped();
            cx.drop(own.handle, pkt, DropReason::Early);
            return Enqueue::Dropped;
        }
        if !self.params.rate_estimator {
            cx.pool.meta_mut(&pkt).scratch.0 = cx.now.psched();
        }
        self.stats.packets_in += 1;
        self.stats.maxq = self.stats.maxq.max(own.qlen);
        self.queue.push_back(cx.pool, pkt);
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        self.catch_up(cx.now, own);
        let Some(pkt) = self.queue.pop_front(cx.pool) else { return Dequeue::Empty };
        let meta = cx.pool.meta(&pkt);
        let left = own.backlog - u64::from(meta.len);
        self.state.sent(&self.params, cx.now, meta.scratch.0, meta.frame_len, left as u32);
        Dequeue::Packet(pkt)
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Pie(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        self.catch_up(cx.now, own);
        self.set(cx.device.jiffies, params);
        Ok(())
    }

    fn trim(&mut self, cx: &mut Context<'_>, own: QdiscState, peeked: &mut Option<Pkt>) -> Trimmed {
        if own.qlen <= self.limit {
            return Trimmed::Nothing;
        }
        peeked.take().or_else(|| self.queue.pop_front(cx.pool)).map_or(Trimmed::Nothing, Trimmed::Dropped)
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        self.catch_up(cx.now, own);
        purge_queue(cx, own.handle, &mut self.queue);
        self.state.restart();
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Pie(PieParams {
            limit: Some(self.limit),
            // The dump has 32 bits of nanoseconds, so times beyond 4.29 s wrap.
            target_us: Some((self.params.target << 6) as u32 / 1000),
            tupdate_us: Some(self.timer.jiffies().micros(self.update_ticks)),
            alpha: Some(self.params.alpha),
            beta: Some(self.params.beta),
            ecn: Some(self.ecn),
            bytemode: Some(self.params.bytemode),
            rate_estimator: Some(self.params.rate_estimator),
        })
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        Xstats::Pie(PieStats {
            prob: self.state.probability << 8,
            delay_us: (self.state.delay << 6) as u32 / 1000,
            avg_dq_rate: if self.params.rate_estimator { self.state.rate() } else { 0 },
            dq_rate_estimating: self.params.rate_estimator,
            ..self.stats.clone()
        })
    }
}

impl BuiltIn for Pie {
    fn catch_up(&mut self, now: Time, own: QdiscState) {
        while self.timer.fired(now, self.update_ticks).is_some() {
            self.state.update(&self.params, own.backlog as u32);
        }
    }
}

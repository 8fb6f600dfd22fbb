//! tbf: a token bucket filter.
//!
//! Tokens are time: a bucket holds at most `buffer` nanoseconds, a packet costs its transmission time at
//! `rate`. A packet may go when both the bucket and, if there is one, the peak bucket can pay; otherwise the
//! watchdog is set for the moment when they can. Over any interval the bytes sent are at most burst + rate ×
//! time. The queue itself is a child: a byte-limited fifo until another is put there.

use super::only_class;
use crate::algo::Cost;
use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Visit};
use crate::kind::classful;
use crate::node::QdiscNode;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Nanos, Pkt, Time};
use tidegate_policy::dump::{ClassDump, QueueStats};
use tidegate_policy::{Errno, Kind, QdiscParams, RateSpec, TbfParams, TcError, Ticks};

pub(crate) struct Tbf {
    params: TbfParams,
    rate: Cost,
    peak: Option<Cost>,
    /// The bucket, ns.
    buffer: i64,
    /// The peak bucket, ns.
    peak_buffer: i64,
    /// The longest packet that can ever be paid for, bytes.
    max_size: u32,
    tokens: i64,
    peak_tokens: i64,
    checkpoint: Time,
    overlimits: u32,
    child: QdiscNode,
    handle: Handle,
}

/// What a set of parameters comes to.
struct Buckets {
    rate: Cost,
    peak: Option<Cost>,
    buffer: i64,
    peak_buffer: i64,
    max_size: u32,
}

fn buckets(params: &TbfParams) -> Result<Buckets, TcError> {
    const INVALID: TcError = TcError::bare(Errno::Inval);
    if params.rate.rate.0 == 0 {
        return Err(INVALID);
    }
    let rate = Cost::new(params.rate);
    let buffer = if params.burst > 0 { rate.ns(params.burst) } else { params.buffer.duration().0 };
    let mut max_size = if params.burst > 0 { params.burst } else { bytes_in(&rate, buffer) };
    let (mut peak, mut peak_buffer) = (None, 0);
    if let Some(spec) = params.peak.filter(|p| p.rate.0 > 0) {
        if spec.rate.0 <= params.rate.rate.0 {
            return Err(INVALID);
        }
        let cost = Cost::new(spec);
        peak_buffer =
            if params.peak_burst > 0 { cost.ns(params.peak_burst) } else { params.peak_buffer.duration().0 };
        let most = if params.peak_burst > 0 { params.peak_burst } else { bytes_in(&cost, peak_buffer) };
        max_size = max_size.min(most);
        peak = Some(cost);
    }
    if max_size == 0 {
        return Err(INVALID);
    }
    Ok(Buckets { rate, peak, buffer: buffer as i64, peak_buffer: peak_buffer as i64, max_size })
}

/// The longest packet that `ns` pay for.
fn bytes_in(cost: &Cost, ns: u64) -> u32 {
    let (mut low, mut high) = (0u32, u32::MAX);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if cost.ns(middle) <= ns { low = middle } else { high = middle - 1 }
    }
    low
}

impl Tbf {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        handle: Handle,
        params: Option<&TbfParams>,
    ) -> Result<Tbf, TcError> {
        let params = params.ok_or(TcError::bare(Errno::Inval))?;
        let b = buckets(params)?;
        let child = if params.limit > 0 {
            QdiscNode::hidden_bfifo(cx, params.limit, handle.class(1))
        } else {
            QdiscNode::noop(cx, handle.class(1))
        };
        Ok(Tbf {
            params: params.clone(),
            rate: b.rate,
            peak: b.peak,
            buffer: b.buffer,
            peak_buffer: b.peak_buffer,
            max_size: b.max_size,
            tokens: b.buffer,
            peak_tokens: b.peak_buffer,
            checkpoint: cx.now,
            overlimits: 0,
            child,
            handle,
        })
    }

    /// The two buckets after paying for `len` bytes; negative where they cannot.
    fn after(&self, now: Time, len: u32) -> (i64, i64) {
        let earned = (now.since(self.checkpoint).0 as i64).min(self.buffer);
        let peak = match &self.peak {
            Some(peak) => (earned + self.peak_tokens).min(self.peak_buffer) - peak.ns(len) as i64,
            None => 0,
        };
        ((earned + self.tokens).min(self.buffer) - self.rate.ns(len) as i64, peak)
    }
}

impl Discipline for Tbf {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        if cx.pool.meta(&pkt).len > self.max_size {
            cx.drop(own.handle, pkt, DropReason::TooLong);
            return Enqueue::Dropped;
        }
        self.child.enqueue(cx, pkt)
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        let len = match self.child.peek(cx) {
            Peek::Packet(len) => len,
            Peek::Empty => return Dequeue::Empty,
            Peek::Throttled => return Dequeue::Throttled,
        };
        let (tokens, peak_tokens) = self.after(cx.now, len);
        if tokens < 0 || peak_tokens < 0 {
            let wait = (-tokens).max(-peak_tokens);
            cx.wake(own, cx.now + Nanos(wait as u64));
            self.overlimits = self.overlimits.wrapping_add(1);
            return Dequeue::Throttled;
        }
        let result = self.child.dequeue(cx);
        if matches!(result, Dequeue::Packet(_)) {
            self.checkpoint = cx.now;
            self.tokens = tokens;
            self.peak_tokens = peak_tokens;
        }
        result
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Tbf(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        let b = buckets(params)?;
        if !self.child.is_noop() {
            self.child.set_fifo_limit(params.limit);
        } else if params.limit > 0 {
            self.child = QdiscNode::hidden_bfifo(cx, params.limit, self.handle.class(1));
        }
        self.params = params.clone();
        (self.rate, self.peak, self.max_size) = (b.rate, b.peak, b.max_size);
        (self.buffer, self.peak_buffer) = (b.buffer, b.peak_buffer);
        (self.tokens, self.peak_tokens) = (b.buffer, b.peak_buffer);
        self.checkpoint = cx.now;
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, _own: QdiscState) {
        self.child.purge(cx);
        self.checkpoint = cx.now;
        self.tokens = self.buffer;
        self.peak_tokens = self.peak_buffer;
    }

    fn params(&self) -> QdiscParams {
        let ticks = |ns: i64| Ticks((ns >> 6) as u32);
        QdiscParams::Tbf(TbfParams {
            rate: self.rate.spec(),
            peak: self.peak.as_ref().map(|p: &Cost| -> RateSpec { p.spec() }),
            limit: self.params.limit,
            burst: 0,
            peak_burst: 0,
            buffer: ticks(self.buffer),
            peak_buffer: ticks(self.peak_buffer),
        })
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.overlimits;
    }

    classful!();
}

impl Classful for Tbf {
    fn has_class(&self, _class: Handle) -> bool {
        // There is one class, and every name means it.
        true
    }

    fn child(&mut self, _class: Handle) -> Option<&mut QdiscNode> {
        Some(&mut self.child)
    }

    fn default_child(&self, cx: &mut Context<'_>, class: Handle) -> QdiscNode {
        QdiscNode::noop(cx, class)
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.node(&mut self.child);
    }

    fn classes(&mut self, _now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        out.push(only_class(Kind::Tbf, qdisc, &self.child));
    }
}

impl BuiltIn for Tbf {}

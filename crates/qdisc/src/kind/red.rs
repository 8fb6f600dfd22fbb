//! red: random early detection in front of a queue. The law is in [`crate::algo::red`].
//!
//! The queue is a child: a byte-limited fifo until another is put there. Its backlog, in bytes, is what is
//! averaged. A change makes a new fifo and drops what waited in the old queue, whatever that was.

use super::only_class;
use crate::algo::red::{Params, RedVerdict, State};
use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Visit};
use crate::kind::classful;
use crate::node::QdiscNode;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, PeriodicTimer, Pkt, Time};
use tidegate_policy::dump::{ClassDump, QueueStats, RedStats, Xstats};
use tidegate_policy::{Errno, Kind, QdiscParams, RedCurve, RedParams, TcError};

pub(crate) struct Red {
    limit: u32,
    params: Params,
    flags: Flags,
    state: State,
    /// Every half second, when it adapts itself: see [`crate::Switches::adaptive_red`].
    timer: PeriodicTimer,
    stats: RedStats,
    overlimits: u32,
    child: QdiscNode,
    handle: Handle,
}

/// What happens to packets that are to be marked.
#[derive(Clone, Copy)]
pub(crate) struct Flags {
    pub(crate) ecn: bool,
    pub(crate) harddrop: bool,
    pub(crate) adaptive: bool,
    pub(crate) nodrop: bool,
}

impl Flags {
    /// As a dump brings them.
    pub(crate) fn params(self, limit: u32, curve: RedCurve) -> RedParams {
        let Flags { ecn, harddrop, adaptive, nodrop } = self;
        RedParams { limit, curve, idle: None, ecn, harddrop, adaptive, nodrop }
    }

    pub(crate) fn of(params: &RedParams) -> Flags {
        Flags { ecn: params.ecn, harddrop: params.harddrop, adaptive: params.adaptive, nodrop: params.nodrop }
    }
}

/// The law that a set of parameters comes to.
fn check(params: &RedParams) -> Result<(Params, Flags), TcError> {
    if params.nodrop && !params.ecn {
        return Err(TcError::new(Errno::Inval, "sch_red: nodrop mode is only meaningful with ECN"));
    }
    let law = Params::new(params.curve, params.idle.clone()).ok_or(TcError::bare(Errno::Inval))?;
    Ok((law, Flags::of(params)))
}

impl Red {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        handle: Handle,
        params: Option<&RedParams>,
    ) -> Result<Red, TcError> {
        let params = params.ok_or(TcError::bare(Errno::Inval))?;
        let (law, flags) = check(params)?;
        let mut red = Red {
            limit: params.limit,
            params: law,
            flags,
            state: State::default(),
            timer: PeriodicTimer::never(cx.device.jiffies),
            stats: RedStats::default(),
            overlimits: 0,
            child: queue(cx, handle, params.limit),
            handle,
        };
        red.begin(cx);
        Ok(red)
    }

    /// Takes up the law: the average begins at nothing, in an idle queue.
    fn begin(&mut self, cx: &Context<'_>) {
        self.state = State::default();
        self.timer = if self.flags.adaptive && cx.device.switches.adaptive_red {
            PeriodicTimer::after(cx.device.jiffies, cx.now, half_second(cx))
        } else {
            PeriodicTimer::never(cx.device.jiffies)
        };
        if self.child.qlen() == 0 {
            self.state.idle(cx.now);
        }
    }

    /// Marks a packet that is to be marked, if that can be; else returns whether it is dropped.
    fn must_drop(&self, cx: &mut Context<'_>, pkt: &Pkt, hard: bool) -> Option<bool> {
        if !self.flags.ecn || hard && self.flags.harddrop {
            return Some(true);
        }
        if cx.pool.meta_mut(pkt).set_ce() { None } else { Some(!self.flags.nodrop) }
    }
}

fn queue(cx: &mut Context<'_>, handle: Handle, limit: u32) -> QdiscNode {
    if limit > 0 {
        QdiscNode::hidden_bfifo(cx, limit, handle.class(1))
    } else {
        QdiscNode::noop(cx, handle.class(1))
    }
}

fn half_second(cx: &Context<'_>) -> u32 {
    cx.device.jiffies.hz / 2
}

impl Discipline for Red {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        self.catch_up(cx.now, own);
        self.state.arrival(&self.params, self.child.stats.backlog as u32, cx.now);
        let verdict = self.state.decide(&self.params, cx.random.source);
        if verdict != RedVerdict::Pass {
            self.overlimits = self.overlimits.wrapping_add(1);
            match self.must_drop(cx, &pkt, verdict == RedVerdict::Hard) {
                None => self.stats.marked += 1,
                Some(false) => {}
                Some(true) => {
                    self.stats.early += 1;
                    cx.drop(own.handle, pkt, DropReason::Early);
                    return Enqueue::Congested;
                }
            }
        }
        let result = self.child.enqueue(cx, pkt);
        if !matches!(result, Enqueue::Queued | Enqueue::Taken) {
            self.stats.pdrop += 1;
        }
        result
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        self.catch_up(cx.now, own);
        let result = self.child.dequeue(cx);
        if !matches!(result, Dequeue::Packet(_)) {
            self.state.idle(cx.now);
        }
        result
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Red(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        let (law, flags) = check(params)?;
        self.catch_up(cx.now, own);
        (self.params, self.flags, self.limit) = (law, flags, params.limit);
        if params.limit > 0 {
            let fresh = queue(cx, self.handle, params.limit);
            core::mem::replace(&mut self.child, fresh).destroy(cx);
        }
        self.begin(cx);
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, _own: QdiscState) {
        self.child.purge(cx);
        self.state.restart();
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Red(self.flags.params(self.limit, self.params.curve()))
    }

    fn xstats(&mut self, _now: Time) -> Xstats {
        Xstats::Red(self.stats.clone())
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.overlimits;
    }

    classful!();
}

impl Classful for Red {
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
        out.push(only_class(Kind::Red, qdisc, &self.child));
    }
}

impl BuiltIn for Red {
    fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        Some(self.child.peek(cx))
    }

    fn peek_slot(&self) -> Option<usize> {
        self.child.peek_slot()
    }

    fn catch_up(&mut self, now: Time, _own: QdiscState) {
        let ticks = self.timer.jiffies().hz / 2;
        while let Some(at) = self.timer.fired(now, ticks) {
            self.params.adapt(&self.state, at);
        }
    }
}

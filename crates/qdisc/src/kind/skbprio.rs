//! skbprio: strict priorities in one queue of limited length.
//!
//! The packet with the highest priority leaves first. When the queue is full, an arrival takes the place of
//! the newest packet of the lowest priority there is, if that is lower than its own; otherwise it is refused.

use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState};
use crate::kind::classful;
use alloc::vec::Vec;
use core::array;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Handle, Pkt, Pool, Time};
use tidegate_policy::dump::{ClassDump, QueueStats, Xstats};
use tidegate_policy::{ClassParams, Errno, Kind, QdiscParams, SkbprioParams, TcError};

const PRIORITIES: usize = 64;
const LIMIT: u32 = 64;

pub(crate) struct Skbprio {
    limit: u32,
    levels: [Level; PRIORITIES],
    /// Levels with packets, a bit each.
    busy: u64,
}

/// The packets of one priority, with what it counts.
#[derive(Default)]
struct Level {
    queue: Fifo,
    drops: u32,
    overlimits: u32,
}

impl Skbprio {
    pub(crate) fn new(params: Option<&SkbprioParams>) -> Skbprio {
        let limit = params.and_then(|params| params.limit).unwrap_or(LIMIT);
        Skbprio { limit, levels: array::from_fn(|_| Level::default()), busy: 0 }
    }

    fn push(&mut self, pool: &mut Pool, level: usize, pkt: Pkt) {
        self.levels[level].queue.push_back(pool, pkt);
        self.busy |= 1 << level;
    }

    fn note_empty(&mut self, level: usize) {
        if self.levels[level].queue.is_empty() {
            self.busy &= !(1 << level);
        }
    }

    fn highest(&self) -> Option<usize> {
        self.busy.checked_ilog2().map(|level| level as usize)
    }

    /// A packet of this level is dropped for lack of space.
    fn note_loss(&mut self, level: usize) {
        let level = &mut self.levels[level];
        level.drops += 1;
        level.overlimits += 1;
    }
}

impl Discipline for Skbprio {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let level = cx.pool.meta(&pkt).priority.min(PRIORITIES as u32 - 1) as usize;
        if own.qlen < self.limit {
            self.push(cx.pool, level, pkt);
            return Enqueue::Queued;
        }
        let lowest = self.busy.trailing_zeros() as usize;
        if level <= lowest.min(PRIORITIES - 1) {
            self.note_loss(level);
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        let len = cx.pool.meta(&pkt).len;
        self.push(cx.pool, level, pkt);
        if let Some(newest) = self.levels[lowest].queue.pop_back(cx.pool) {
            self.note_loss(lowest);
            cx.drop_instead(own.handle, newest, DropReason::Overflow, len);
        }
        self.note_empty(lowest);
        Enqueue::Congested
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        let Some(level) = self.highest() else { return Dequeue::Empty };
        let taken = self.levels[level].queue.pop_front(cx.pool);
        self.note_empty(level);
        taken.map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        match params {
            Some(QdiscParams::Skbprio(params)) => self.limit = params.limit.unwrap_or(self.limit),
            _ => return Err(TcError::bare(Errno::Inval)),
        }
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        for level in &mut self.levels {
            while let Some(pkt) = level.queue.pop_front(cx.pool) {
                cx.drop(own.handle, pkt, DropReason::PurgedAtOnce);
            }
            (level.drops, level.overlimits) = (0, 0);
        }
        self.busy = 0;
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Skbprio(SkbprioParams { limit: Some(self.limit) })
    }

    classful!();
}

impl Classful for Skbprio {
    fn classes(&mut self, _now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (n, level) in self.levels.iter().enumerate() {
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Skbprio,
                classid: qdisc.class(n as u16 + 1),
                parent: qdisc,
                leaf: Handle::NONE,
                params: ClassParams::None,
                // How many packets wait Linux does not count per priority.
                stats: Some(QueueStats {
                    drops: level.drops,
                    overlimits: level.overlimits,
                    backlog: level.queue.bytes() as u32,
                    ..QueueStats::default()
                }),
                xstats: Xstats::None,
            });
        }
    }
}

impl BuiltIn for Skbprio {}

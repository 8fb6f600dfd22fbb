#![no_std]
#![forbid(unsafe_code)]
//! deadline: two strict bands in which no packet waits longer than a deadline. A qdisc that is not part of
//! tidegate.
//!
//! Packets of priority 6 and 7 (interactive traffic, `TC_PRIO_INTERACTIVE` and above) go first, all others
//! after them. A packet that has waited longer than the deadline when its turn comes is dropped, and the next
//! one is tried: it would arrive too late to be of use, and its sender learns of the congestion from the
//! loss. The last packet of a band is sent however long it waited, so that a slow link does not starve.
//!
//! ```
//! use tidegate_custom_qdisc::Deadline;
//! use tidegate_packet::Nanos;
//! use tidegate_qdisc::{CustomKind, custom};
//!
//! let kind = Deadline { limit: 100, deadline: Nanos::millis(20) };
//! assert_eq!(kind.words(), "limit 100 deadline 20000us");
//! // This goes into `QdiscOp::params`.
//! let params = custom(kind);
//! ```

extern crate alloc;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Handle, Nanos, Pkt, Pool, Time};
use tidegate_policy::dump::QueueStats;
use tidegate_policy::{Errno, QdiscParams, TcError};
use tidegate_qdisc::{
    Context, CustomKind, Dequeue, Discipline, DropReason, Enqueue, QdiscState, Trimmed, custom, custom_params,
};

/// Packets of this priority and above go into the first band.
const INTERACTIVE: u32 = 6;

/// The parameters of the qdisc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Packets that may wait, in both bands together; at least 1.
    pub limit: u32,
    /// How long a packet may wait. Counted in microseconds, up to 35 minutes.
    pub deadline: Nanos,
}

impl CustomKind for Deadline {
    fn name(&self) -> &str {
        "deadline"
    }

    fn words(&self) -> String {
        format!("limit {} deadline {}us", self.limit, self.deadline.0 / 1000)
    }

    fn make(&self, _cx: &mut Context<'_>, _handle: Handle) -> Result<Box<dyn Discipline>, TcError> {
        self.check()?;
        Ok(Box::new(Bands { params: *self, bands: [Fifo::new(), Fifo::new()], expired: 0 }))
    }
}

impl Deadline {
    /// The longest deadline: the clock of [`micros`] must not come round before.
    const MAX_DEADLINE: Nanos = Nanos::secs(35 * 60);

    fn check(&self) -> Result<(), TcError> {
        if self.limit == 0 {
            return Err(TcError::new(Errno::Inval, "deadline: limit must be at least 1"));
        }
        if self.deadline > Deadline::MAX_DEADLINE {
            return Err(TcError::new(Errno::Range, "deadline: at most 35 minutes"));
        }
        Ok(())
    }
}

/// The qdisc.
struct Bands {
    params: Deadline,
    bands: [Fifo; 2],
    /// Packets dropped because they waited too long.
    expired: u32,
}

/// The time in microseconds, modulo 2^32: what fits into a packet's scratch word.
fn micros(now: Time) -> u32 {
    (now.0 / 1000) as u32
}

impl Bands {
    /// Whether the packet at the head of this band has waited too long. The last one never has.
    fn is_expired(&self, band: &Fifo, pool: &Pool, now: Time) -> bool {
        let Some(head) = band.front(pool).filter(|_| band.len() > 1) else { return false };
        u64::from(micros(now).wrapping_sub(head.scratch.first())) > self.params.deadline.0 / 1000
    }
}

impl Discipline for Bands {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        if own.qlen >= self.params.limit {
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        let now = micros(cx.now);
        let meta = cx.pool.meta_mut(&pkt);
        meta.scratch.set_first(now);
        let band = usize::from(meta.priority < INTERACTIVE);
        self.bands[band].push_back(cx.pool, pkt);
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        for band in 0..self.bands.len() {
            while self.is_expired(&self.bands[band], cx.pool, cx.now) {
                let Some(late) = self.bands[band].pop_front(cx.pool) else { break };
                self.expired += 1;
                cx.drop(own.handle, late, DropReason::Early);
            }
            if let Some(pkt) = self.bands[band].pop_front(cx.pool) {
                return Dequeue::Packet(pkt);
            }
        }
        Dequeue::Empty
    }

    fn change(
        &mut self,
        _: &mut Context<'_>,
        _: QdiscState,
        to: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let params = to.and_then(custom_params::<Deadline>).ok_or(TcError::bare(Errno::Inval))?;
        params.check()?;
        self.params = *params;
        Ok(())
    }

    fn trim(&mut self, cx: &mut Context<'_>, own: QdiscState, held: &mut Option<Pkt>) -> Trimmed {
        if own.qlen <= self.params.limit {
            return Trimmed::Nothing;
        }
        let [first, second] = &mut self.bands;
        let oldest = held.take().or_else(|| second.pop_front(cx.pool)).or_else(|| first.pop_front(cx.pool));
        oldest.map_or(Trimmed::Nothing, Trimmed::Dropped)
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        for band in &mut self.bands {
            while let Some(pkt) = band.pop_front(cx.pool) {
                cx.purge(own.handle, pkt);
            }
        }
    }

    fn params(&self) -> QdiscParams {
        custom(self.params)
    }

    /// Those that waited too long also count as `overlimits`, to tell them from those that found the queue
    /// full.
    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.expired;
    }
}

//! pfifo, bfifo, pfifo_head_drop: first in, first out.
//!
//! pfifo takes a packet while fewer than `limit` wait, bfifo while it fits into `limit` bytes;
//! pfifo_head_drop, when full, drops the oldest to take the newest, and returns that it is congested.

use super::NO_CHANGE;
use crate::batch::{Budget, BuiltIn};
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState};
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{IntrusiveList, Pkt, Pool};
use tidegate_policy::{FifoParams, Kind, QdiscParams, TcError};

/// What waits in it is counted by its Node.
pub(crate) struct Fifo {
    queue: IntrusiveList,
    limit: u32,
    kind: Kind,
}

impl Fifo {
    pub(crate) fn new(device: DeviceInfo, kind: Kind, params: Option<&FifoParams>) -> Fifo {
        let limit = params.and_then(|p| p.limit).unwrap_or_else(|| default_limit(device, kind));
        Fifo { queue: IntrusiveList::default(), limit, kind }
    }

    /// Returns whether a packet of `len` bytes fits beside the backlog.
    #[inline]
    pub(crate) fn has_room(&self, qlen: u32, backlog: u64, len: u32) -> bool {
        match self.kind {
            Kind::Bfifo => backlog + u64::from(len) <= u64::from(self.limit),
            _ => qlen < self.limit,
        }
    }

    /// Takes a packet for which there is space.
    #[inline]
    pub(crate) fn push(&mut self, pool: &mut Pool, pkt: Pkt) {
        self.queue.push_back(pool, pkt);
    }

    /// The oldest packet, with its length.
    #[inline]
    pub(crate) fn take(&mut self, pool: &mut Pool) -> Option<(Pkt, u32)> {
        self.queue.take_front(pool)
    }

    /// As many of the oldest packets as the budget allows.
    #[inline]
    pub(crate) fn take_run(&mut self, pool: &mut Pool, budget: &mut Budget, out: &mut Vec<Pkt>) {
        while !budget.is_spent()
            && let Some((pkt, len)) = self.take(pool)
        {
            budget.take(len);
            out.push(pkt);
        }
    }

    /// The length of the oldest packet.
    #[inline]
    pub(crate) fn front(&self, pool: &Pool) -> Peek {
        self.queue.front(pool).map_or(Peek::Empty, |meta| Peek::Packet(meta.len))
    }

    /// Loads what taking in a packet will need.
    #[inline]
    pub(crate) fn touch_back(&self, pool: &mut Pool) {
        self.queue.touch_back(pool);
    }

    /// Loads what giving the packet in this place will need.
    #[inline]
    pub(crate) fn touch(&self, pool: &mut Pool, place: u32) {
        self.queue.touch(pool, place);
    }

    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }
}

fn default_limit(device: DeviceInfo, kind: Kind) -> u32 {
    match kind {
        Kind::Bfifo => device.tx_queue_len.saturating_mul(device.max_frame),
        _ => device.tx_queue_len,
    }
}

impl Discipline for Fifo {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        if self.has_room(own.qlen, own.backlog, cx.pool.meta(&pkt).len) {
            self.queue.push_back(cx.pool, pkt);
            return Enqueue::Queued;
        }
        if self.kind != Kind::PfifoHeadDrop || self.limit == 0 {
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        if let Some((oldest, _)) = self.queue.take_front(cx.pool) {
            cx.drop(own.handle, oldest, DropReason::Overflow);
        }
        self.queue.push_back(cx.pool, pkt);
        Enqueue::Congested
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        self.take(cx.pool).map_or(Dequeue::Empty, |(pkt, _)| Dequeue::Packet(pkt))
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        match params {
            Some(QdiscParams::Fifo(FifoParams { limit: Some(limit) })) => self.limit = *limit,
            None | Some(QdiscParams::Fifo(_)) => self.limit = default_limit(cx.device, self.kind),
            Some(_) => return Err(NO_CHANGE),
        }
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        cx.next_purge_group();
        while let Some((pkt, _)) = self.queue.take_front(cx.pool) {
            cx.purge(own.handle, pkt);
        }
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Fifo(FifoParams { limit: Some(self.limit) })
    }
}

impl BuiltIn for Fifo {
    fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        Some(self.front(cx.pool))
    }

    fn peek_slot(&self) -> Option<usize> {
        self.queue.front_slot()
    }
}

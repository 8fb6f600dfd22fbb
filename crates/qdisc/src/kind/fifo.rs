//! pfifo, bfifo, pfifo_head_drop: first in, first out.
//!
//! pfifo takes a packet while fewer than `limit` wait, bfifo while it fits into `limit` bytes; pfifo_head_drop, when full, drops the
//! oldest to take the newest, and says so (congested).

use super::{NO_CHANGE, purge_queue};
use crate::cx::{Cx, Device, Why};
use crate::node::{Dequeue, Discipline, Enqueue, Own, Peek};
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo as Queue, Pkt};
use tidegate_policy::{FifoParams, Kind, QdiscParams, TcError};

pub(crate) struct Fifo {
    kind: Kind,
    limit: u32,
    queue: Queue,
}

impl Fifo {
    pub(crate) fn new(device: Device, kind: Kind, params: Option<&FifoParams>) -> Fifo {
        let limit = params.and_then(|p| p.limit).unwrap_or_else(|| default_limit(device, kind));
        Fifo { kind, limit, queue: Queue::new() }
    }

    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }
}

fn default_limit(device: Device, kind: Kind) -> u32 {
    match kind {
        Kind::Bfifo => device.tx_queue_len.max(1).saturating_mul(device.max_frame),
        Kind::PfifoHeadDrop | Kind::Pfifo => device.tx_queue_len.max(1),
        _ => device.tx_queue_len,
    }
}

impl Discipline for Fifo {
    fn enqueue(&mut self, cx: &mut Cx<'_>, own: Own, _filters: &mut FilterList, pkt: Pkt) -> Enqueue {
        let room = match self.kind {
            Kind::Bfifo => own.backlog + u64::from(cx.pool.meta(&pkt).len) <= u64::from(self.limit),
            _ => own.qlen < self.limit,
        };
        if room {
            self.queue.push_back(cx.pool, pkt);
            return Enqueue::Queued;
        }
        if self.kind != Kind::PfifoHeadDrop || self.limit == 0 {
            cx.drop(own.handle, pkt, Why::Full);
            return Enqueue::Dropped;
        }
        if let Some(oldest) = self.queue.pop_front(cx.pool) {
            cx.drop(own.handle, oldest, Why::Overflow);
        }
        self.queue.push_back(cx.pool, pkt);
        Enqueue::Congested
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, _own: Own) -> Dequeue {
        self.queue.pop_front(cx.pool).map_or(Dequeue::Empty, Dequeue::Packet)
    }

    fn look(&mut self, cx: &mut Cx<'_>) -> Option<Peek> {
        Some(self.queue.front(cx.pool).map_or(Peek::Empty, |meta| Peek::Packet(meta.len)))
    }

    fn seen_slot(&self) -> Option<usize> {
        self.queue.front_slot()
    }

    fn change(&mut self, cx: &mut Cx<'_>, _own: Own, params: Option<&QdiscParams>) -> Result<(), TcError> {
        match params {
            Some(QdiscParams::Fifo(FifoParams { limit: Some(limit) })) => self.limit = *limit,
            None | Some(QdiscParams::Fifo(_)) => self.limit = default_limit(cx.device, self.kind),
            Some(_) => return Err(NO_CHANGE),
        }
        Ok(())
    }

    fn purge(&mut self, cx: &mut Cx<'_>, own: Own) {
        purge_queue(cx, own.handle, &mut self.queue);
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Fifo(FifoParams { limit: Some(self.limit) })
    }
}

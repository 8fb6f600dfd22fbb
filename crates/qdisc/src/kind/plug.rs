//! plug: packets wait until a command lets them go.
//!
//! Made for check-points of virtual machines: what a machine sends may leave only when its state up to then
//! is safe elsewhere. `block` closes an epoch, `release` lets the last closed epoch go, `release_indefinite`
//! lets everything go until the next `block`. The order of arrival is kept, so a release counts packets from
//! the front of the queue. Only one closed epoch is remembered: packets of one that was not released before
//! the next `block` go with later ones, or at `release_indefinite` (as Linux 6.1 does it; recorded).

use crate::batch::BuiltIn;
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, QdiscState};
use tidegate_classify::FilterList;
use tidegate_packet::{IntrusiveList, Pkt};
use tidegate_policy::{PlugCommand, PlugParams, QdiscParams, TcError};

pub(crate) struct Plug {
    queue: IntrusiveList,
    /// Bytes that may wait.
    limit: u32,
    /// Does everything go?
    open: bool,
    /// Packets that came since the last `block`.
    current: u32,
    /// Packets of the epoch that it closed.
    closed: u32,
    /// Packets that were released and have not left.
    released: u32,
}

impl Plug {
    /// The parameters given at creation always set the limit; the qdisc begins plugged.
    pub(crate) fn new(device: DeviceInfo, params: Option<&PlugParams>) -> Plug {
        let limit = params
            .map_or_else(|| device.tx_queue_len.saturating_mul(device.max_frame), |params| params.limit);
        Plug { queue: IntrusiveList::default(), limit, open: false, current: 0, closed: 0, released: 0 }
    }

    fn is_plugged(&self) -> bool {
        !self.open && self.released == 0
    }
}

impl Discipline for Plug {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        if own.backlog + u64::from(cx.pool.meta(&pkt).len) > u64::from(self.limit) {
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        if !self.open {
            self.current += 1;
        }
        self.queue.push_back(cx.pool, pkt);
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        if self.is_plugged() {
            return if own.qlen == 0 { Dequeue::Empty } else { Dequeue::Throttled };
        }
        if !self.open {
            self.released -= 1;
        }
        self.queue.take_front(cx.pool).map_or(Dequeue::Empty, |(pkt, _)| Dequeue::Packet(pkt))
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Plug(PlugParams { command: Some(command), limit })) = params else {
            return Ok(());
        };
        match command {
            PlugCommand::Block => {
                self.closed = core::mem::take(&mut self.current);
                self.open = false;
            }
            PlugCommand::Release => {
                self.released += core::mem::take(&mut self.closed);
                cx.wake(own, cx.now);
            }
            PlugCommand::ReleaseIndefinite => {
                self.open = true;
                (self.released, self.closed, self.current) = (0, 0, 0);
                cx.wake(own, cx.now);
            }
            PlugCommand::Limit => self.limit = *limit,
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
        QdiscParams::Plug(PlugParams::default())
    }
}

impl BuiltIn for Plug {}

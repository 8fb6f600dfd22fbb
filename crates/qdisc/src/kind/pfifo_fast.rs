//! pfifo_fast: three first-in-first-out bands by priority, strictly in order; what most devices begin with.
//!
//! Each band holds the device's transmit queue length; an arrival is dropped if its own band is full.

use super::NO_CHANGE;
use crate::cx::{Cx, Device, Why};
use crate::node::{Dequeue, Discipline, Enqueue, Own, Peek};
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Pkt};
use tidegate_policy::{PrioParams, QdiscParams, TcError};

pub(crate) struct PfifoFast {
    limit: u32,
    bands: [Fifo; 3],
}

impl PfifoFast {
    pub(crate) fn new(device: Device) -> PfifoFast {
        PfifoFast { limit: device.tx_queue_len, bands: Default::default() }
    }
}

impl Discipline for PfifoFast {
    fn enqueue(&mut self, cx: &mut Cx<'_>, own: Own, _filters: &mut FilterList, pkt: Pkt) -> Enqueue {
        let band = PrioParams::MAP[cx.pool.meta(&pkt).priority as usize & 15];
        let queue = &mut self.bands[usize::from(band)];
        if queue.len() >= self.limit {
            cx.drop(own.handle, pkt, Why::Full);
            return Enqueue::Dropped;
        }
        queue.push_back(cx.pool, pkt);
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, _own: Own) -> Dequeue {
        for band in &mut self.bands {
            if let Some(pkt) = band.pop_front(cx.pool) {
                return Dequeue::Packet(pkt);
            }
        }
        Dequeue::Empty
    }

    fn look(&mut self, cx: &mut Cx<'_>) -> Option<Peek> {
        let first = self.bands.iter().find_map(|band| band.front(cx.pool));
        Some(first.map_or(Peek::Empty, |meta| Peek::Packet(meta.len)))
    }

    fn change(&mut self, _cx: &mut Cx<'_>, _own: Own, _params: Option<&QdiscParams>) -> Result<(), TcError> {
        Err(NO_CHANGE)
    }

    fn purge(&mut self, cx: &mut Cx<'_>, own: Own) {
        for band in &mut self.bands {
            // The kernel frees these at once and not with the others.
            while let Some(pkt) = band.pop_front(cx.pool) {
                cx.drop(own.handle, pkt, Why::PurgedAtOnce);
            }
        }
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::PfifoFast
    }
}

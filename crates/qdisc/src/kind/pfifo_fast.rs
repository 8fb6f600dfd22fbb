//! pfifo_fast: three first-in-first-out bands by priority, strictly in order; what most devices begin with.
//!
//! Each band is a ring as long as the device's transmit queue; an arrival is dropped if its own band's ring
//! is full. As in Linux, places that were left are free again only in batches (of 16, in rings of 32 places
//! or more, and at the ring's end), so a band may refuse a packet although fewer wait.

use super::NO_CHANGE;
use crate::batch::BuiltIn;
use crate::context::{Context, DeviceInfo, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState};
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Handle, LinuxChange, Pkt};
use tidegate_policy::{PrioParams, QdiscParams, TcError};

pub(crate) struct PfifoFast {
    bands: [Ring; 3],
    /// It is there because there is no queue: what the device does not take at once waits here, whatever
    /// the length of the transmit queue.
    noqueue: bool,
}

struct Ring {
    queue: Fifo,
    size: u32,
    /// The place that is left next.
    head: u32,
    /// Places left and not yet free.
    stale: u32,
}

/// Places that are freed together.
const BATCH: u32 = 16;

impl Ring {
    fn is_full(&self) -> bool {
        self.queue.len() + self.stale >= self.size
    }

    fn pop(&mut self, cx: &mut Context<'_>) -> Option<Pkt> {
        let pkt = self.queue.pop_front(cx.pool)?;
        let batch = if BATCH > self.size / 2 { 1 } else { BATCH };
        self.head += 1;
        self.stale += 1;
        if self.stale >= batch || self.head >= self.size {
            self.stale = 0;
        }
        if self.head >= self.size {
            self.head = 0;
        }
        Some(pkt)
    }
}

impl PfifoFast {
    pub(crate) fn new(device: DeviceInfo, noqueue: bool) -> PfifoFast {
        PfifoFast { bands: PfifoFast::rings(device, noqueue), noqueue }
    }

    /// The rings get the length of the device's transmit queue. What has no place in them is dropped, and
    /// counted as waiting for ever.
    pub(crate) fn shrink(&mut self, cx: &mut Context<'_>, at: Handle) {
        let old = core::mem::replace(&mut self.bands, PfifoFast::rings(cx.device, self.noqueue));
        for (mut old, new) in old.into_iter().zip(&mut self.bands) {
            while let Some(pkt) = old.queue.pop_front(cx.pool) {
                match new.queue.len() < new.size {
                    true => new.queue.push_back(cx.pool, pkt),
                    false => cx.drop_uncounted(at, pkt),
                }
            }
        }
    }

    fn rings(device: DeviceInfo, noqueue: bool) -> [Ring; 3] {
        // Without places, what finds the device busy waits beside the rings, one packet at a time; the next
        // is refused.
        let beside = u32::from(noqueue || !device.switches.no_bypass);
        let size = device.tx_queue_len.max(beside);
        [(); 3].map(|()| Ring { queue: Fifo::new(), size, head: 0, stale: 0 })
    }
}

impl Discipline for PfifoFast {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let band = PrioParams::MAP[cx.pool.meta(&pkt).priority as usize & 15];
        let ring = &mut self.bands[usize::from(band)];
        if ring.is_full() {
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        }
        ring.queue.push_back(cx.pool, pkt);
        Enqueue::Queued
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        for band in &mut self.bands {
            if let Some(pkt) = band.pop(cx) {
                return Dequeue::Packet(pkt);
            }
        }
        Dequeue::Empty
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        _params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        Err(NO_CHANGE)
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        let listed = cx.device.switches.linux.has(LinuxChange::PfifoFastPurge);
        for band in &mut self.bands {
            while let Some(pkt) = band.pop(cx) {
                if listed {
                    // Each is put off on its own, so the last is freed first (recorded: fast-*-7.2).
                    cx.next_purge_group();
                    cx.purge(own.handle, pkt);
                } else {
                    // The kernel frees these at once and not with the others (recorded:
                    // answers/pfifo_fast-purged-at-once).
                    cx.drop(own.handle, pkt, DropReason::PurgedAtOnce);
                }
            }
        }
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::PfifoFast
    }
}

impl BuiltIn for PfifoFast {
    fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        let first = self.bands.iter().find_map(|band| band.queue.front(cx.pool));
        Some(first.map_or(Peek::Empty, |meta| Peek::Packet(meta.len)))
    }

    fn peek_slot(&self) -> Option<usize> {
        self.bands.iter().find_map(|band| band.queue.front_slot())
    }

    fn resize(&mut self, device: DeviceInfo) {
        debug_assert!(self.bands.iter().all(|band| band.queue.is_empty()), "it was emptied before");
        self.bands = PfifoFast::rings(device, self.noqueue);
    }
}

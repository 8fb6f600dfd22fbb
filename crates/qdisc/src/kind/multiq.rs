//! multiq: a band for each of the device's transmit queues, which take turns.
//!
//! A packet goes to the band of the queue that it was put into: by a hash of its flow, or by an action
//! (`skbedit queue_mapping`) of a filter here or where it left. The class that a filter chooses is ignored.
//! Devices with one queue refuse it.

use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::classify::{ClassifyResult, Consumed, classify};
use crate::context::Context;
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Visit};
use crate::kind::classful;
use crate::node::QdiscNode;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Pool, Time};
use tidegate_policy::dump::{ClassDump, QueueStats, Xstats};
use tidegate_policy::{ClassParams, Errno, Kind, MultiqParams, QdiscParams, TcError};

pub(crate) struct Multiq {
    handle: Handle,
    bands: Vec<QdiscNode>,
    /// The band that was polled last.
    turn: usize,
    /// The band whose packet was looked at last.
    seen: usize,
    /// Bytes taken in and sent: multiq does not count its backlog.
    taken: u32,
    sent: u32,
}

impl Multiq {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        handle: Handle,
        params: Option<&MultiqParams>,
    ) -> Result<Multiq, TcError> {
        params.ok_or(TcError::bare(Errno::Inval))?;
        let queues = cx.device.tx_queues;
        if queues < 2 {
            return Err(TcError::bare(Errno::OpNotSupp));
        }
        let bands =
            (1..=queues as u16).map(|n| QdiscNode::hidden(cx, Kind::Pfifo, handle.class(n))).collect();
        Ok(Multiq { handle, bands, turn: 0, seen: 0, taken: 0, sent: 0 })
    }

    fn band(&self, cx: &mut Context<'_>, filters: &mut FilterList, pkt: &Pkt) -> Result<usize, Consumed> {
        let count = self.bands.len();
        let before = own_queue(cx.pool, pkt, count).unwrap_or_else(|| flow_queue(cx.pool, pkt, count));
        if let ClassifyResult::Consumed(gone) = classify(filters, cx, self.handle, pkt) {
            return Err(gone);
        }
        Ok(own_queue(cx.pool, pkt, count).unwrap_or(before))
    }

    fn index(&self, class: Handle) -> Option<usize> {
        let band = usize::from(class.minor()).wrapping_sub(1);
        (band < self.bands.len()).then_some(band)
    }
}

/// The transmit queue that a packet was put into, if a device with so many has it.
pub(super) fn own_queue(pool: &Pool, pkt: &Pkt, count: usize) -> Option<usize> {
    pool.meta(pkt).tx_queue().map(|queue| queue as usize).filter(|queue| *queue < count)
}

/// The transmit queue that the hash of a packet's flow chooses among so many.
pub(super) fn flow_queue(pool: &mut Pool, pkt: &Pkt, count: usize) -> usize {
    let hash = pool.hash(pkt);
    ((u64::from(hash) * count as u64) >> u32::BITS) as usize
}

/// So many queues, the one after `turn` first.
pub(super) fn in_turn(turn: usize, count: usize) -> impl Iterator<Item = usize> {
    (1..=count).map(move |step| (turn + step) % count)
}

impl Discipline for Multiq {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let band = match self.band(cx, filters, &pkt) {
            Ok(band) => band,
            Err(gone) => return gone.carry_out(cx, own.handle, pkt),
        };
        let len = cx.pool.meta(&pkt).len;
        let result = self.bands[band].enqueue(cx, pkt);
        if result == Enqueue::Queued {
            self.taken = self.taken.wrapping_add(len);
        }
        result
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        let mut none = Dequeue::Empty;
        for band in in_turn(self.turn, self.bands.len()) {
            match self.bands[band].dequeue(cx) {
                Dequeue::Packet(pkt) => {
                    self.turn = band;
                    self.sent = self.sent.wrapping_add(cx.pool.meta(&pkt).len);
                    return Dequeue::Packet(pkt);
                }
                Dequeue::Throttled if cx.is_interrupted() => return Dequeue::Throttled,
                Dequeue::Throttled => none = Dequeue::Throttled,
                Dequeue::Empty => {}
            }
        }
        none
    }

    /// The bands are the device's queues, whatever the parameters; their number cannot change here.
    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        match params {
            Some(QdiscParams::Multiq(_)) => Ok(()),
            _ => Err(TcError::bare(Errno::Inval)),
        }
    }

    fn purge(&mut self, cx: &mut Context<'_>, _own: QdiscState) {
        for band in &mut self.bands {
            band.purge(cx);
        }
        (self.turn, self.taken, self.sent) = (0, 0, 0);
    }

    fn params(&self) -> QdiscParams {
        let bands = self.bands.len() as u16;
        QdiscParams::Multiq(MultiqParams { bands, max_bands: bands })
    }

    /// Linux 6.1 counts its packets and not their bytes; what is dropped below it takes off all the same.
    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.backlog = stats.backlog.wrapping_sub(self.taken).wrapping_add(self.sent);
    }

    classful!();
}

impl Classful for Multiq {
    fn has_class(&self, class: Handle) -> bool {
        self.index(class).is_some()
    }

    fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        self.index(class).map(|band| &mut self.bands[band])
    }

    fn default_child(&self, cx: &mut Context<'_>, class: Handle) -> QdiscNode {
        QdiscNode::noop(cx, class)
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        for band in &mut self.bands {
            visit.node(band);
        }
    }

    fn classes(&mut self, _now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (n, band) in self.bands.iter().enumerate() {
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Multiq,
                classid: qdisc.class(n as u16 + 1),
                parent: qdisc,
                leaf: band.handle(),
                params: ClassParams::None,
                // What drops everything where a child was deleted does not count.
                stats: Some(if band.is_noop() { QueueStats::default() } else { band.stats() }),
                xstats: Xstats::None,
            });
        }
    }
}

impl BuiltIn for Multiq {
    fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        let mut none = Peek::Empty;
        for band in in_turn(self.turn, self.bands.len()) {
            match self.bands[band].peek(cx) {
                Peek::Packet(len) => {
                    self.seen = band;
                    return Some(Peek::Packet(len));
                }
                Peek::Throttled => none = Peek::Throttled,
                Peek::Empty => {}
            }
        }
        Some(none)
    }

    fn peek_slot(&self) -> Option<usize> {
        self.bands.get(self.seen)?.peek_slot()
    }
}

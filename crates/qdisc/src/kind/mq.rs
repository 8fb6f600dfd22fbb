//! mq: a qdisc for each of the device's transmit queues.
//!
//! A packet goes to the qdisc of the queue that it was put into, by a hash of its flow or by `skbedit
//! queue_mapping` where it left. That queue's qdisc is then run, and no other, until it has nothing to send
//! or a watchdog of its own runs it again. In Linux each queue sends as the card allows; here the queues that
//! have something to send share one link and take turns.

use super::NO_CHANGE;
use super::multiq::{flow_queue, in_turn, own_queue};
use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::context::Context;
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Visit};
use crate::kind::classful;
use crate::node::QdiscNode;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Time};
use tidegate_policy::dump::{ClassDump, QueueStats, Xstats};
use tidegate_policy::{ClassParams, Errno, Kind, QdiscParams, TcError};

pub(crate) struct Mq {
    queues: Vec<QdiscNode>,
    /// Which queues are run.
    running: Vec<bool>,
    /// The queue that sent last.
    turn: usize,
    /// Whose watchdog each is, by number; empty: to be looked for.
    owners: Vec<Option<usize>>,
}

impl Mq {
    pub(crate) fn new(cx: &mut Context<'_>, handle: Handle, parent: Handle) -> Result<Mq, TcError> {
        let count = cx.device.tx_queues;
        if count < 2 || parent != Handle::ROOT {
            return Err(TcError::bare(Errno::OpNotSupp));
        }
        if cx.device.tx_queue_len == 0 {
            // No pfifo_fast can be made for its queues (6.1 and 7.2 were asked).
            return Err(TcError::bare(Errno::NoMem));
        }
        let queues = (1..=count as u16).map(|n| QdiscNode::of_queue(cx, handle.class(n))).collect();
        Ok(Mq { queues, running: alloc::vec![false; count as usize], turn: 0, owners: Vec::new() })
    }

    /// These watchdogs have fired: the queues that they belong to are run.
    pub(crate) fn wake(&mut self, fired: &[u32]) {
        if self.owners.is_empty() {
            for (queue, node) in self.queues.iter_mut().enumerate() {
                node.watchdogs(&mut |watchdog| {
                    let watchdog = watchdog as usize;
                    if watchdog >= self.owners.len() {
                        self.owners.resize(watchdog + 1, None);
                    }
                    self.owners[watchdog] = Some(queue);
                });
            }
        }
        for watchdog in fired {
            if let Some(Some(queue)) = self.owners.get(*watchdog as usize) {
                self.running[*queue] = true;
            }
        }
    }

    /// Qdiscs may have come and gone below it.
    pub(crate) fn forget_watchdogs(&mut self) {
        self.owners.clear();
    }

    fn index(&self, class: Handle) -> Option<usize> {
        let queue = usize::from(class.minor()).wrapping_sub(1);
        (queue < self.queues.len()).then_some(queue)
    }
}

impl Discipline for Mq {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let count = self.queues.len();
        let queue = own_queue(cx.pool, &pkt, count).unwrap_or_else(|| flow_queue(cx.pool, &pkt, count));
        self.running[queue] = true;
        self.queues[queue].enqueue(cx, pkt)
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        let mut none = Dequeue::Empty;
        for queue in in_turn(self.turn, self.queues.len()) {
            if !self.running[queue] {
                continue;
            }
            match self.queues[queue].dequeue(cx) {
                Dequeue::Packet(pkt) => {
                    self.turn = queue;
                    return Dequeue::Packet(pkt);
                }
                Dequeue::Throttled => none = Dequeue::Throttled,
                Dequeue::Empty => {}
            }
            self.running[queue] = false;
        }
        none
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        _params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        Err(NO_CHANGE)
    }

    fn purge(&mut self, cx: &mut Context<'_>, _own: QdiscState) {
        for queue in &mut self.queues {
            queue.purge(cx);
        }
        self.turn = 0;
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Mq
    }

    /// It counts nothing: its listing adds up the qdiscs of the queues, and forgets what a replaced one
    /// counted.
    fn amend_stats(&self, stats: &mut QueueStats) {
        let mut sum = QueueStats { rate: stats.rate, ..QueueStats::default() };
        for own in self.queues.iter().filter(|queue| !queue.is_noop()).map(QdiscNode::stats) {
            sum.bytes += own.bytes;
            sum.packets = sum.packets.wrapping_add(own.packets);
            sum.drops = sum.drops.wrapping_add(own.drops);
            sum.overlimits = sum.overlimits.wrapping_add(own.overlimits);
            sum.requeues = sum.requeues.wrapping_add(own.requeues);
            sum.qlen = sum.qlen.wrapping_add(own.qlen);
            sum.backlog = sum.backlog.wrapping_add(own.backlog);
        }
        *stats = sum;
    }

    classful!();
}

impl Classful for Mq {
    fn has_class(&self, class: Handle) -> bool {
        self.index(class).is_some()
    }

    fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        self.index(class).map(|queue| &mut self.queues[queue])
    }

    fn default_child(&self, cx: &mut Context<'_>, class: Handle) -> QdiscNode {
        QdiscNode::noop(cx, class)
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        for queue in &mut self.queues {
            visit.node(queue);
        }
    }

    fn classes(&mut self, _now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (n, queue) in self.queues.iter().enumerate() {
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Mq,
                classid: qdisc.class(n as u16 + 1),
                parent: Handle::ROOT,
                leaf: queue.handle(),
                params: ClassParams::None,
                // What drops everything where a child was deleted does not count.
                stats: Some(if queue.is_noop() { QueueStats::default() } else { queue.stats() }),
                xstats: Xstats::None,
            });
        }
    }
}

/// It is a device's root and nothing else, so that nothing peeks at its packets.
impl BuiltIn for Mq {
    fn peek(&mut self, _cx: &mut Context<'_>) -> Option<Peek> {
        None
    }
}

//! gred: generic random early detection: one queue, several virtual queues in it, each with a curve of its
//! own (after Clark and Fang's RIO, 1998). The law is in [`crate::algo::red`].
//!
//! Which virtual queue a packet belongs to is in its traffic-control index; 0 where nothing set that. A
//! packet of a virtual queue that is not set up belongs to the default one; if that is not set up either, it
//! meets a plain queue. With `grio` a queue's average has those of the queues of lower `prio` added; if two
//! have the same `prio`, all share one average instead.

use super::purge_queue;
use crate::algo::red::{Params, RedVerdict, State};
use crate::batch::BuiltIn;
use crate::context::{Context, DropReason};
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState};
use alloc::boxed::Box;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Fifo, Pkt, Time};
use tidegate_policy::dump::{QueueStats, Xstats};
use tidegate_policy::{
    Errno, GredFlags, GredParams, GredQueue, GredQueueDump, GredSetup, QdiscParams, TcError,
};

const MAX_QUEUES: usize = 16;
/// A queue's place in the order where none is given.
const USUAL_PRIO: u8 = 8;

pub(crate) struct Gred {
    setup: GredSetup,
    limit: u32,
    /// All virtual queues share one average.
    shared: Option<Box<State>>,
    virtuals: [Option<Box<Virtual>>; MAX_QUEUES],
    queue: Fifo,
    overlimits: u32,
    now: Time,
}

/// A virtual queue.
struct Virtual {
    prio: u8,
    limit: u32,
    flags: GredFlags,
    params: Params,
    state: State,
    stats: GredQueueDump,
}

fn refused(words: &'static str) -> TcError {
    TcError::new(Errno::Inval, words)
}

fn check(setup: &GredSetup) -> Result<(), TcError> {
    if setup.vqs as usize > MAX_QUEUES {
        return Err(refused("sch_gred: number of virtual queues too high"));
    }
    if setup.vqs == 0 {
        return Err(refused("sch_gred: number of virtual queues can't be 0"));
    }
    if setup.default >= setup.vqs {
        return Err(refused("sch_gred: default virtual queue above virtual queue count"));
    }
    Ok(())
}

impl Gred {
    pub(crate) fn new(cx: &Context<'_>, params: Option<&GredParams>) -> Result<Gred, TcError> {
        let setup = match params {
            Some(GredParams::Setup(setup)) => *setup,
            Some(_) => {
                return Err(refused(
                    "sch_gred: virtual queue configuration can't be specified at initialization time",
                ));
            }
            None => return Err(TcError::bare(Errno::Inval)),
        };
        check(&setup)?;
        Ok(Gred {
            setup,
            limit: setup.limit.unwrap_or(cx.device.tx_queue_len.wrapping_mul(cx.device.max_frame)),
            shared: None,
            virtuals: [const { None }; MAX_QUEUES],
            queue: Fifo::new(),
            overlimits: 0,
            now: cx.now,
        })
    }

    fn set_up(&mut self, setup: GredSetup) -> Result<(), TcError> {
        // The limit is taken before anything can be refused.
        self.limit = setup.limit.unwrap_or(self.limit);
        check(&setup)?;
        let own_flags = self.virtuals.iter().flatten().any(|queue| queue.flags != self.setup.flags);
        if setup.flags != GredFlags::default() && own_flags {
            return Err(refused(
                "sch_gred: can't set per-Qdisc RED flags when per-virtual queue flags are used",
            ));
        }
        if setup.flags != self.setup.flags {
            self.virtuals.iter_mut().flatten().for_each(|queue| queue.flags = setup.flags);
        }
        self.setup = setup;
        self.share_if_equal();
        self.virtuals[setup.vqs as usize..].fill_with(|| None);
        Ok(())
    }

    /// Of two queues with the same place in the order neither comes first: then they share their average.
    fn share_if_equal(&mut self) {
        let mut prios: Vec<u8> = self.virtuals.iter().flatten().map(|queue| queue.prio).collect();
        prios.sort_unstable();
        let equal = self.setup.grio && prios.windows(2).any(|pair| pair[0] == pair[1]);
        self.shared = equal.then(|| self.shared.take().unwrap_or_default());
    }

    fn set_queue(&mut self, now: Time, queue: &GredQueue) -> Result<(), TcError> {
        if queue.vq >= self.setup.vqs {
            return Err(refused("sch_gred: virtual queue index above virtual queue count"));
        }
        if queue.flags.is_some_and(|flags| flags != self.setup.flags)
            && self.setup.flags != GredFlags::default()
        {
            return Err(refused(
                "sch_gred: can't change per-virtual queue RED flags when per-Qdisc flags are used",
            ));
        }
        let of_default =
            self.virtuals[self.setup.default as usize].as_ref().map_or(USUAL_PRIO, |queue| queue.prio);
        let prio = match queue.prio {
            _ if !self.setup.grio => USUAL_PRIO,
            0 => of_default,
            prio => prio,
        };
        let params = Params::new(queue.curve, queue.idle.clone())
            .ok_or(refused("sch_gred: invalid RED parameters"))?;
        let (limit, flags) = (queue.limit.min(self.limit), self.setup.flags);
        let place = &mut self.virtuals[queue.vq as usize];
        match place {
            None => {
                let (state, stats) = (State::default(), GredQueueDump::default());
                let mut made = Virtual { prio, limit, flags, params, state, stats };
                made.state.idle(now);
                made.state.forget(true);
                *place = Some(Box::new(made));
            }
            Some(there) => {
                (there.prio, there.limit, there.params) = (prio, limit, params);
                there.state.forget(there.stats.backlog == 0);
            }
        }
        if let (Some(there), Some(flags)) = (place, queue.flags) {
            there.flags = flags;
        }
        self.share_if_equal();
        Ok(())
    }

    /// The virtual queue of a packet with this index.
    fn virtual_of(&self, index: u8) -> Option<usize> {
        let own = usize::from(index) % MAX_QUEUES;
        let set_up = |at: &usize| self.virtuals[*at].is_some();
        Some(own).filter(set_up).or(Some(self.setup.default as usize).filter(set_up))
    }

    /// What the averages of the queues before this one come to.
    fn averages_before(&self, at: usize) -> u64 {
        if !self.setup.grio || self.shared.is_some() {
            return 0;
        }
        let prio = self.virtuals[at].as_ref().map_or(0, |queue| queue.prio);
        let before =
            self.virtuals.iter().flatten().filter(|queue| queue.prio < prio && !queue.state.is_idle());
        before.map(|queue| queue.state.average()).sum()
    }
}

impl Virtual {
    /// Enqueues the packet, marked if necessary; otherwise returns the reason for the drop.
    fn admits(
        &mut self,
        cx: &mut Context<'_>,
        pkt: &Pkt,
        verdict: RedVerdict,
        backlog: u32,
    ) -> Result<(), Refused> {
        if verdict != RedVerdict::Pass {
            let hard = verdict == RedVerdict::Hard;
            let marks = self.flags.ecn && !(hard && self.flags.harddrop) && cx.pool.meta_mut(pkt).set_ce();
            let stats = &mut self.stats;
            *match (hard, marks) {
                (true, true) => &mut stats.forced_mark,
                (true, false) => &mut stats.forced_drop,
                (false, true) => &mut stats.prob_mark,
                (false, false) => &mut stats.prob_drop,
            } += 1;
            if !marks {
                return Err(Refused::Early);
            }
        }
        let len = cx.pool.meta(pkt).len;
        if u64::from(backlog) + u64::from(len) > u64::from(self.limit) {
            self.stats.pdrop += 1;
            return Err(Refused::Full);
        }
        self.stats.backlog = self.stats.backlog.wrapping_add(len);
        Ok(())
    }
}

/// Why a packet is not taken in.
enum Refused {
    Early,
    Full,
}

impl Discipline for Gred {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        self.now = cx.now;
        let meta = cx.pool.meta(&pkt);
        let (len, index) = (meta.len, meta.tc_index);
        let Some(at) = self.virtual_of(index) else {
            if own.backlog + u64::from(len) <= u64::from(self.limit) {
                self.queue.push_back(cx.pool, pkt);
                return Enqueue::Queued;
            }
            cx.drop(own.handle, pkt, DropReason::Full);
            return Enqueue::Dropped;
        };
        cx.pool.meta_mut(&pkt).tc_index = at as u8;
        let before = self.averages_before(at);
        let Some(queue) = &mut self.virtuals[at] else { return Enqueue::Dropped };
        queue.stats.packets = queue.stats.packets.wrapping_add(1);
        queue.stats.bytes += u64::from(len);
        if let Some(shared) = &self.shared {
            queue.state.take_average_of(shared);
        }
        let backlog = if self.shared.is_some() { own.backlog as u32 } else { queue.stats.backlog };
        queue.state.arrival(&queue.params, backlog, cx.now);
        if let Some(shared) = &mut self.shared {
            shared.take_average_of(&queue.state);
        }
        let verdict = queue.state.decide_beside(&queue.params, cx.random.source, before);
        if verdict != RedVerdict::Pass {
            self.overlimits = self.overlimits.wrapping_add(1);
        }
        match queue.admits(cx, &pkt, verdict, backlog) {
            Ok(()) => {
                self.queue.push_back(cx.pool, pkt);
                Enqueue::Queued
            }
            Err(Refused::Early) => {
                cx.drop(own.handle, pkt, DropReason::Early);
                Enqueue::Congested
            }
            Err(Refused::Full) => {
                cx.drop(own.handle, pkt, DropReason::Full);
                Enqueue::Dropped
            }
        }
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        let Some(pkt) = self.queue.pop_front(cx.pool) else { return Dequeue::Empty };
        let meta = cx.pool.meta(&pkt);
        if let Some(queue) = &mut self.virtuals[usize::from(meta.tc_index) % MAX_QUEUES] {
            // What came before the queue was set up was never counted: the sum falls below zero, as in Linux.
            queue.stats.backlog = queue.stats.backlog.wrapping_sub(meta.len);
            match &mut self.shared {
                Some(shared) if self.queue.is_empty() => shared.idle(cx.now),
                None if queue.stats.backlog == 0 => queue.state.idle(cx.now),
                _ => {}
            }
        }
        Dequeue::Packet(pkt)
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        match params {
            Some(QdiscParams::Gred(GredParams::Setup(setup))) => self.set_up(*setup),
            Some(QdiscParams::Gred(GredParams::Queue(queue))) => self.set_queue(cx.now, queue),
            _ => Err(TcError::bare(Errno::Inval)),
        }
    }

    fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
        purge_queue(cx, own.handle, &mut self.queue);
        for queue in self.virtuals.iter_mut().flatten() {
            queue.state.restart();
            queue.stats.backlog = 0;
        }
    }

    fn params(&self) -> QdiscParams {
        let queues = self.virtuals.iter().zip(0..).filter_map(|(queue, vq)| {
            let queue = queue.as_ref()?;
            let state = self.shared.as_deref().unwrap_or(&queue.state);
            Some(GredQueueDump {
                queue: GredQueue {
                    vq,
                    prio: queue.prio,
                    limit: queue.limit,
                    curve: queue.params.curve(),
                    idle: None,
                    flags: Some(queue.flags),
                },
                average: state.average_at(&queue.params, self.now) as u32,
                backlog: if self.shared.is_some() { self.queue.bytes() as u32 } else { queue.stats.backlog },
                ..queue.stats.clone()
            })
        });
        QdiscParams::Gred(GredParams::InForce(
            GredSetup { limit: Some(self.limit), ..self.setup },
            queues.collect(),
        ))
    }

    fn xstats(&mut self, now: Time) -> Xstats {
        self.now = now;
        Xstats::None
    }

    fn amend_stats(&self, stats: &mut QueueStats) {
        stats.overlimits = self.overlimits;
    }
}

impl BuiltIn for Gred {
    fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        Some(self.queue.front(cx.pool).map_or(Peek::Empty, |meta| Peek::Packet(meta.len)))
    }

    fn peek_slot(&self) -> Option<usize> {
        self.queue.front_slot()
    }
}

//! prio: bands in strict order, each with a qdisc of its own (pfifo until another is put there).
//!
//! A packet's band is the minor number of its priority or of the first filter that matches, less one;
//! otherwise the priority map's.

use crate::batch::{Batch, Budget, BuiltIn, ParentQdisc};
use crate::classful::Classful;
use crate::classify::{ClassifyResult, Consumed, classify};
use crate::context::Context;
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Visit};
use crate::kind::classful;
use crate::node::QdiscNode;
use alloc::vec::Vec;
use core::hint::black_box;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Pool, Time};
use tidegate_policy::dump::{ClassDump, Xstats};
use tidegate_policy::{ClassParams, Errno, Kind, PrioParams, QdiscParams, TcError};

pub(crate) struct Prio {
    map: [u8; 16],
    /// The band whose packet was looked at last.
    seen: u8,
    handle: Handle,
    /// The bands that must be requested a packet, a bit each: all but fifos in which nothing waits.
    polled_bands: u16,
    bands: Vec<QdiscNode>,
}

const ALL: u16 = u16::MAX;

fn check(params: &PrioParams) -> Result<(), TcError> {
    let bands_fit = (2..=16).contains(&params.bands);
    if bands_fit && params.priomap.iter().all(|band| u32::from(*band) < params.bands) {
        Ok(())
    } else {
        Err(TcError::bare(Errno::Inval))
    }
}

impl Prio {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        handle: Handle,
        params: Option<&PrioParams>,
    ) -> Result<Prio, TcError> {
        let params = params.ok_or(TcError::bare(Errno::Inval))?;
        check(params)?;
        let bands =
            (1..=params.bands as u16).map(|n| QdiscNode::hidden(cx, Kind::Pfifo, handle.class(n))).collect();
        Ok(Prio { map: params.priomap, seen: 0, handle, polled_bands: ALL, bands })
    }

    fn band(&self, cx: &mut Context<'_>, filters: &mut FilterList, pkt: &Pkt) -> Result<usize, Consumed> {
        let priority = cx.pool.meta(pkt).priority_class();
        let class = if priority.qdisc() == self.handle {
            priority
        } else {
            match classify(filters, cx, self.handle, pkt) {
                ClassifyResult::Class(class) => class,
                ClassifyResult::Consumed(gone) => return Err(gone),
                ClassifyResult::Nothing => return Ok(self.mapped(priority)),
            }
        };
        let band = usize::from(class.minor()).wrapping_sub(1);
        Ok(if band < self.bands.len() { band } else { usize::from(self.map[0]) })
    }

    /// The band that the map gives a priority.
    #[inline]
    fn mapped(&self, priority: Handle) -> usize {
        let small = if priority.major() == 0 { priority.0 } else { 0 };
        usize::from(self.map[small as usize & 15])
    }

    fn index(&self, class: Handle) -> Option<usize> {
        let band = usize::from(class.minor()).wrapping_sub(1);
        (band < self.bands.len()).then_some(band)
    }
}

impl Discipline for Prio {
    #[inline]
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        match self.band(cx, filters, &pkt) {
            Ok(band) => {
                self.polled_bands |= 1 << band;
                self.bands[band].enqueue(cx, pkt)
            }
            Err(gone) => gone.carry_out(cx, own.handle, pkt),
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        let (mut none, mut rest) = (Dequeue::Empty, self.polled_bands);
        while rest != 0 {
            let Some(band) = self.bands.get_mut(rest.trailing_zeros() as usize) else { break };
            let result = band.dequeue(cx);
            if band.is_idle_fifo() {
                self.polled_bands &= !(rest & rest.wrapping_neg());
            }
            match result {
                Dequeue::Packet(pkt) => return Dequeue::Packet(pkt),
                // It goes on where it stopped, before the bands below are asked.
                Dequeue::Throttled if cx.is_interrupted() => return Dequeue::Throttled,
                Dequeue::Throttled => none = Dequeue::Throttled,
                Dequeue::Empty => {}
            }
            rest &= rest - 1;
        }
        none
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Prio(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        check(params)?;
        self.map = params.priomap;
        self.polled_bands = ALL;
        let kept = self.bands.len().min(params.bands as usize);
        for band in self.bands.split_off(kept) {
            band.destroy(cx);
        }
        for n in self.bands.len() as u16 + 1..=params.bands as u16 {
            self.bands.push(QdiscNode::hidden(cx, Kind::Pfifo, self.handle.class(n)));
        }
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, _own: QdiscState) {
        for band in &mut self.bands {
            band.purge(cx);
        }
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Prio(PrioParams { bands: self.bands.len() as u32, priomap: self.map })
    }

    classful!();
}

impl Classful for Prio {
    fn has_class(&self, class: Handle) -> bool {
        self.index(class).is_some()
    }

    fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        self.polled_bands = ALL;
        self.index(class).map(|band| &mut self.bands[band])
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        self.polled_bands = ALL;
        for band in &mut self.bands {
            visit.node(band);
        }
    }

    fn classes(&mut self, _now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (n, band) in self.bands.iter().enumerate() {
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Prio,
                classid: qdisc.class(n as u16 + 1),
                parent: qdisc,
                leaf: band.handle(),
                params: ClassParams::None,
                stats: Some(band.stats()),
                xstats: Xstats::None,
            });
        }
    }
}

impl Batch for Prio {
    fn enqueue_plain(&mut self, pool: &mut Pool, at: ParentQdisc<'_>, pkt: Pkt, len: u32) -> Result<(), Pkt> {
        let priority = pool.meta(&pkt).priority_class();
        if priority.qdisc() == self.handle || !at.filters.is_empty() {
            return Err(pkt);
        }
        let band = self.mapped(priority);
        self.polled_bands |= 1 << band;
        self.bands[band].enqueue_plain(pool, pkt, len)
    }

    fn child_hint(
        &self,
        pool: &mut Pool,
        _qdisc: Handle,
        filters: &FilterList,
        pkt: &Pkt,
    ) -> Option<&QdiscNode> {
        let meta = pool.meta(pkt);
        let class = meta.priority_class();
        let band = if class.qdisc() == self.handle {
            usize::from(class.minor()).wrapping_sub(1)
        } else {
            match filters.guess(meta.mark, self.handle) {
                Some(class) => usize::from(class.minor()).wrapping_sub(1),
                None => self.mapped(class),
            }
        };
        self.bands.get(band)
    }

    fn prefetch(&self, pool: &mut Pool, depth: u32, room: u32) {
        if depth == 0 {
            black_box(self.polled_bands);
            return;
        }
        let (mut rest, mut room) = (self.polled_bands, room);
        while room > 0
            && let Some(band) = self.bands.get(rest.trailing_zeros() as usize)
        {
            band.prefetch(pool, depth - 1, room);
            room = room.saturating_sub(if depth > 1 { band.qlen() } else { 1 });
            rest &= rest - 1;
        }
    }

    fn dequeue_run(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        budget: &mut Budget,
        out: &mut Vec<Pkt>,
    ) -> bool {
        let mut ran = false;
        while !budget.is_spent()
            && let Some(band) = self.bands.get_mut(self.polled_bands.trailing_zeros() as usize)
        {
            // A band that may give nothing while it has a backlog must be polled before each of another
            // band's packets.
            let runs = band.dequeue_run(cx, budget, out);
            ran |= runs;
            if band.is_idle_fifo() {
                self.polled_bands &= self.polled_bands - 1;
            } else if !runs {
                break;
            }
        }
        ran
    }
}

impl BuiltIn for Prio {
    fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        let mut none = Peek::Empty;
        for (at, band) in self.bands.iter_mut().enumerate() {
            match band.peek(cx) {
                Peek::Packet(len) => {
                    self.seen = at as u8;
                    return Some(Peek::Packet(len));
                }
                Peek::Throttled => none = Peek::Throttled,
                Peek::Empty => {}
            }
        }
        Some(none)
    }

    fn peek_slot(&self) -> Option<usize> {
        self.bands.get(usize::from(self.seen))?.peek_slot()
    }
}

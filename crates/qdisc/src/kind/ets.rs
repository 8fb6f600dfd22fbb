//! ets: enhanced transmission selection (IEEE 802.1Qaz): strict bands first, then bands that share what is
//! left by deficit round robin.
//!
//! Classification is prio's, but for what nothing is reported about: a priority without a band of its own
//! takes the last one. Bands come and go with changes of the qdisc only; a band that becomes strict or stops
//! being so keeps its packets.

use crate::algo::{IndexList, Linked, ListLink};
use crate::batch::BuiltIn;
use crate::classful::Classful;
use crate::classify::{ClassifyResult, Consumed, classify};
use crate::context::Context;
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState, Visit};
use crate::kind::classful;
use crate::node::QdiscNode;
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Time};
use tidegate_policy::dump::{ClassDump, Xstats};
use tidegate_policy::{
    ClassOp, ClassParams, Errno, EtsClassParams, EtsParams, Kind, MAX_BANDS, QdiscParams, TcError, Verb,
};

/// What a quantum is held to, bytes.
const MIN_QUANTUM: u32 = 256;
const MAX_QUANTUM: u32 = 1 << 20;

pub(crate) struct Ets {
    map: [u8; 16],
    strict: usize,
    bands: Vec<Band>,
    /// Bands that share and have something to send.
    active: IndexList,
    handle: Handle,
}

struct Band {
    link: ListLink,
    quantum: u32,
    deficit: u32,
    child: QdiscNode,
}

impl Linked for Band {
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

fn refused(words: &'static str) -> TcError {
    TcError::new(Errno::Inval, words)
}

fn check(params: &EtsParams) -> Result<(), TcError> {
    let bands = usize::from(params.bands);
    if !(1..=MAX_BANDS).contains(&bands) {
        return Err(refused("sch_ets: Invalid number of bands"));
    }
    if usize::from(params.strict) > bands {
        return Err(refused("sch_ets: Invalid number of strict bands"));
    }
    if usize::from(params.strict) + params.quanta.len() > bands {
        return Err(refused("sch_ets: ETS quanta has more values than bands"));
    }
    if params.priomap.len() > 16 {
        return Err(refused("sch_ets: Too many priorities in ETS priomap"));
    }
    if params.priomap.iter().any(|band| *band >= params.bands) {
        return Err(refused("sch_ets: Invalid band number in ETS priomap"));
    }
    Ok(())
}

impl Ets {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        handle: Handle,
        params: Option<&EtsParams>,
    ) -> Result<Ets, TcError> {
        let params = params.ok_or(TcError::bare(Errno::Inval))?;
        check(params)?;
        let mut ets =
            Ets { map: [0; 16], strict: 0, bands: Vec::new(), active: IndexList::default(), handle };
        ets.set(cx, params);
        Ok(ets)
    }

    /// Takes checked parameters; bands that are no more drop what they have.
    fn set(&mut self, cx: &mut Context<'_>, params: &EtsParams) {
        let (bands, strict) = (usize::from(params.bands), usize::from(params.strict));
        for n in 0..self.bands.len() {
            let shares = (strict..bands).contains(&n);
            if self.bands[n].link.is_linked() && !shares {
                self.active.remove(&mut self.bands, n as u32);
            }
        }
        // Strict until now: from here on they share, and those that have packets take their turns.
        for n in strict..self.strict.min(self.bands.len()) {
            if n < bands && self.bands[n].child.qlen() > 0 && !self.bands[n].link.is_linked() {
                self.active.push(&mut self.bands, n as u32);
                self.bands[n].deficit = quantum_of(params, n, cx.device.max_frame);
            }
        }
        for band in self.bands.split_off(bands.min(self.bands.len())) {
            band.child.destroy(cx);
        }
        for n in self.bands.len()..bands {
            let child = QdiscNode::hidden(cx, Kind::Pfifo, self.handle.class(n as u16 + 1));
            self.bands.push(Band { link: ListLink::default(), quantum: 0, deficit: 0, child });
        }
        for (n, band) in self.bands.iter_mut().enumerate() {
            band.quantum = if n < strict { 0 } else { quantum_of(params, n, cx.device.max_frame) };
        }
        self.strict = strict;
        self.map = [params.bands - 1; 16];
        for (slot, band) in self.map.iter_mut().zip(&params.priomap) {
            *slot = *band;
        }
    }

    fn band(&self, cx: &mut Context<'_>, filters: &mut FilterList, pkt: &Pkt) -> Result<usize, Consumed> {
        let priority = cx.pool.meta(pkt).priority_class();
        let class = if priority.qdisc() == self.handle {
            priority
        } else {
            match classify(filters, cx, self.handle, pkt) {
                ClassifyResult::Class(class) => class,
                ClassifyResult::Consumed(gone) => return Err(gone),
                ClassifyResult::Nothing => {
                    let small = if priority.major() == 0 { priority.0 } else { 0 };
                    return Ok(usize::from(self.map[small as usize & 15]));
                }
            }
        };
        Ok(self.index(class).unwrap_or(usize::from(self.map[0])))
    }

    fn index(&self, class: Handle) -> Option<usize> {
        let band = usize::from(class.minor()).wrapping_sub(1);
        (band < self.bands.len()).then_some(band)
    }

    fn deactivate(&mut self, band: usize) {
        if self.bands[band].link.is_linked() {
            self.active.remove(&mut self.bands, band as u32);
        }
    }

    /// The bands that are served before the others.
    fn serve_strict(&mut self, cx: &mut Context<'_>) -> Dequeue {
        let mut held_back = false;
        for band in &mut self.bands[..self.strict] {
            match band.child.dequeue(cx) {
                Dequeue::Packet(pkt) => return Dequeue::Packet(pkt),
                Dequeue::Throttled if cx.is_interrupted() => return Dequeue::Throttled,
                Dequeue::Throttled => held_back = true,
                Dequeue::Empty => {}
            }
        }
        if held_back { Dequeue::Throttled } else { Dequeue::Empty }
    }

    /// The first of the bands that share; none if it may not send yet, and is the last of them now.
    fn serve_first(&mut self, cx: &mut Context<'_>) -> Option<Dequeue> {
        let Some(at) = self.active.first() else { return Some(Dequeue::Empty) };
        let band = &mut self.bands[at as usize];
        let had = band.child.qlen() > 0;
        let len = match band.child.peek(cx) {
            Peek::Packet(len) => len,
            // A child with a backlog that may not leave yet stops all of them, as in Linux; so does one whose
            // packets vanished.
            nothing => {
                if had && band.child.qlen() == 0 {
                    self.deactivate(at as usize);
                }
                return Some(if nothing == Peek::Empty { Dequeue::Empty } else { Dequeue::Throttled });
            }
        };
        if len > band.deficit {
            band.deficit = band.deficit.wrapping_add(band.quantum);
            self.active.remove(&mut self.bands, at);
            self.active.push(&mut self.bands, at);
            return None;
        }
        band.deficit -= len;
        let result = band.child.dequeue(cx);
        if band.child.qlen() == 0 {
            self.deactivate(at as usize);
        }
        Some(result)
    }
}

/// The quantum of a band: the largest frame where none was given.
fn quantum_of(params: &EtsParams, band: usize, max_frame: u32) -> u32 {
    let given = params.quanta.get(band.wrapping_sub(usize::from(params.strict)));
    given.map_or(max_frame, |bytes| (*bytes).clamp(MIN_QUANTUM, MAX_QUANTUM))
}

impl Discipline for Ets {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        let at = match self.band(cx, filters, &pkt) {
            Ok(band) => band,
            Err(gone) => return gone.carry_out(cx, own.handle, pkt),
        };
        let band = &mut self.bands[at];
        let result = band.child.enqueue(cx, pkt);
        if band.child.qlen() == 0 {
            self.deactivate(at);
        } else if result == Enqueue::Queued && at >= self.strict && !band.link.is_linked() {
            band.deficit = band.quantum;
            self.active.push(&mut self.bands, at as u32);
        }
        result
    }

    fn dequeue(&mut self, cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        loop {
            // Asked again before each turn, as in Linux: one that shapes counts how often.
            let strict = self.serve_strict(cx);
            if let Dequeue::Packet(pkt) = strict {
                return Dequeue::Packet(pkt);
            }
            if strict == Dequeue::Throttled && cx.is_interrupted() {
                return strict;
            }
            match self.serve_first(cx) {
                None => {}
                Some(Dequeue::Empty) => return strict,
                Some(result) => return result,
            }
        }
    }

    fn change(
        &mut self,
        cx: &mut Context<'_>,
        _own: QdiscState,
        params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        let Some(QdiscParams::Ets(params)) = params else { return Err(TcError::bare(Errno::Inval)) };
        check(params)?;
        self.set(cx, params);
        Ok(())
    }

    fn purge(&mut self, cx: &mut Context<'_>, _own: QdiscState) {
        for at in 0..self.bands.len() {
            self.deactivate(at);
        }
        for band in &mut self.bands {
            band.child.purge(cx);
        }
    }

    fn params(&self) -> QdiscParams {
        QdiscParams::Ets(EtsParams {
            bands: self.bands.len() as u8,
            strict: self.strict as u8,
            quanta: self.bands[self.strict..].iter().map(|band| band.quantum).collect(),
            priomap: self.map.into(),
        })
    }

    classful!();
}

impl Classful for Ets {
    fn has_class(&self, class: Handle) -> bool {
        self.index(class).is_some()
    }

    fn class_op(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        _filters: &mut FilterList,
        op: &ClassOp,
    ) -> Result<Option<String>, TcError> {
        const FIXED: TcError =
            TcError::new(Errno::OpNotSupp, "Fine-grained class addition and removal is not supported");
        if op.verb == Verb::Delete {
            return Err(TcError::bare(Errno::OpNotSupp));
        }
        let at = self.index(op.classid).ok_or(FIXED)?;
        let Some(ClassParams::Ets(params)) = &op.params else { return Err(TcError::bare(Errno::Inval)) };
        let Some(quantum) = params.quantum else { return Ok(None) };
        if at < self.strict {
            return Err(refused("Strict bands do not have a configurable quantum"));
        }
        self.bands[at].quantum = quantum.clamp(MIN_QUANTUM, MAX_QUANTUM);
        Ok(None)
    }

    fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        self.index(class).map(|band| &mut self.bands[band].child)
    }

    fn child_emptied(&mut self, _cx: &mut Context<'_>, class: Handle) {
        if let Some(at) = self.index(class) {
            self.deactivate(at);
        }
    }

    fn visit(&mut self, visit: &mut dyn Visit) {
        for band in &mut self.bands {
            visit.node(&mut band.child);
        }
    }

    fn classes(&mut self, _now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        for (n, band) in self.bands.iter().enumerate() {
            out.push(ClassDump {
                dev: Default::default(),
                kind: Kind::Ets,
                classid: qdisc.class(n as u16 + 1),
                parent: Handle::ROOT,
                leaf: band.child.handle(),
                params: ClassParams::Ets(EtsClassParams {
                    quantum: (n >= self.strict).then_some(band.quantum),
                }),
                stats: Some(band.child.stats()),
                xstats: Xstats::None,
            });
        }
    }
}

impl BuiltIn for Ets {}

//! fw: by firewall mark (tc-fw(8)).

use crate::context::{Bound, ClassifyContext, DumpContext};
use crate::filters::Filters;
use crate::query::{FilterResult, FilterVerdict};
use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::{FwMark, Handle};
use tidegate_policy::dump::FilterEntry;
use tidegate_policy::{Errno, FilterParams, FwParams, Indev, TcError};

/// The fw filters of one preference.
#[derive(Debug, Default)]
pub(crate) struct Fw {
    /// Bits compared; the first filter's mask holds for all.
    mask: u32,
    /// Oldest first.
    entries: Vec<Entry>,
    /// Entries by mark: open addressing, at most half full; 0 = free, otherwise the entry's place plus one.
    index: Vec<u32>,
}

/// The class that a mark is the name of.
#[inline]
fn named(mark: FwMark, qdisc: Handle) -> Option<Handle> {
    let class = Handle(mark.0);
    let ours = class.major() == 0 || class.qdisc() == qdisc;
    (mark.0 != 0 && ours).then_some(class)
}

#[derive(Debug)]
struct Entry {
    mark: u32,
    classid: Option<Handle>,
    indev: Option<Indev>,
    bound: bool,
    actions: Bound,
}

impl Fw {
    pub(crate) fn new() -> Fw {
        Fw { mask: u32::MAX, ..Fw::default() }
    }

    /// The place of a mark's entry.
    fn find(&self, mark: u32) -> Option<usize> {
        let wrap = self.index.len().checked_sub(1)?;
        let mut at = spread(mark) & wrap;
        loop {
            let entry = (*self.index.get(at)? as usize).checked_sub(1)?;
            if self.entries.get(entry)?.mark == mark {
                return Some(entry);
            }
            at = (at + 1) & wrap;
        }
    }

    /// Enters what is missing from `from` on, or everything where there is no space for it.
    fn index_from(&mut self, from: usize) {
        let mut from = from;
        if self.index.len() < 2 * self.entries.len() || from == 0 {
            self.index = vec![0; (4 * self.entries.len()).next_power_of_two()];
            from = 0;
        }
        let wrap = self.index.len() - 1;
        for (place, entry) in self.entries.iter().enumerate().skip(from) {
            let mut at = spread(entry.mark) & wrap;
            while self.index[at] != 0 {
                at = (at + 1) & wrap;
            }
            self.index[at] = place as u32 + 1;
        }
    }

    /// The class that a mark leads to, without its actions.
    #[inline]
    pub(crate) fn guess(&self, mark: FwMark, qdisc: Handle) -> Option<Handle> {
        if self.entries.is_empty() {
            return named(mark, qdisc);
        }
        self.entries[self.find(mark.0 & self.mask)?].classid
    }

    /// Without any filter (`fw` alone) the mark itself names the class.
    #[inline]
    pub(crate) fn classify(&mut self, qdisc: Handle, context: &mut ClassifyContext<'_>) -> FilterResult {
        let mark = context.pool.meta(context.pkt).mark;
        if self.entries.is_empty() {
            return named(mark, qdisc)
                .map_or(FilterResult::No, |class| FilterResult::Decided(FilterVerdict::Class(class)));
        }
        let Some(at) = self.find(mark.0 & self.mask) else { return FilterResult::No };
        let entry = &self.entries[at];
        if entry.indev.as_ref().is_some_and(|indev| !indev.is(context.pool.meta(context.pkt).came_in)) {
            return FilterResult::No;
        }
        entry.actions.run(entry.classid.unwrap_or(Handle::NONE), context)
    }

    pub(crate) fn add(
        &mut self,
        mark: u32,
        params: &FwParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        if mark == 0 && params.classid.is_none() && actions.is_empty() {
            // Only the first, empty one may come without a handle.
            return if self.entries.is_empty() { Ok(()) } else { Err(TcError::bare(Errno::Inval)) };
        }
        if mark == 0 {
            return Err(TcError::bare(Errno::Inval));
        }
        let mask = params.mask.unwrap_or(u32::MAX);
        if self.entries.is_empty() {
            self.mask = mask;
        } else if params.mask.is_some() && mask != self.mask || params.mask.is_none() && self.mask != u32::MAX
        {
            return Err(TcError::bare(Errno::Inval));
        }
        self.entries.push(Entry {
            mark,
            classid: params.classid,
            indev: params.indev.clone(),
            bound,
            actions,
        });
        self.index_from(self.entries.len() - 1);
        Ok(())
    }

    pub(crate) fn change(
        &mut self,
        mark: u32,
        params: &FwParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        if params.mask.is_some_and(|mask| mask != self.mask) {
            return Err(TcError::bare(Errno::Inval));
        }
        let at = self.find(mark).ok_or(TcError::bare(Errno::NoEnt))?;
        let entry = &mut self.entries[at];
        if params.classid.is_some() {
            entry.classid = params.classid;
            entry.bound = bound;
        }
        if params.indev.is_some() {
            entry.indev.clone_from(&params.indev);
        }
        entry.actions = actions;
        Ok(())
    }

    /// In the order of a dump: by the mark's low byte after folding, newest first among equals.
    fn in_dump_order(&self) -> Vec<&Entry> {
        let mut all: Vec<&Entry> = self.entries.iter().rev().collect();
        all.sort_by_key(|e| bucket(e.mark));
        all
    }

    fn mask(&self) -> Option<u32> {
        (self.mask != u32::MAX).then_some(self.mask)
    }

    /// Has it none, so that the mark itself names the class?
    pub(crate) fn is_bare(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Filters for Fw {
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    fn has(&self, mark: u32) -> bool {
        self.find(mark).is_some()
    }
    fn remove(&mut self, mark: u32) -> bool {
        let Some(at) = self.find(mark) else { return false };
        self.entries.remove(at);
        self.index_from(0);
        true
    }
    fn binds(&self, class: Handle) -> bool {
        self.entries.iter().any(|entry| entry.bound && entry.classid == Some(class))
    }
    fn rebind(&mut self, class: Handle, bound: bool) {
        for entry in self.entries.iter_mut().filter(|entry| entry.classid == Some(class)) {
            entry.bound = bound;
        }
    }
    fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.entries.iter().for_each(|entry| show(entry.actions.places()));
    }
    fn dump(&self, context: DumpContext<'_>, line: &mut dyn FnMut(FilterEntry)) {
        for entry in self.in_dump_order() {
            let params = FwParams { classid: entry.classid, mask: self.mask(), indev: entry.indev.clone() };
            let params = FilterParams::Fw(params);
            line(FilterEntry::Filter {
                handle: entry.mark,
                params,
                hits: None,
                actions: entry.actions.dump(context),
            });
        }
    }
}

/// A mark's place in the index, before wrapping.
fn spread(mark: u32) -> usize {
    (mark.wrapping_mul(0x9e37_79b1) >> 7) as usize
}

/// The bucket of a mark among 256.
fn bucket(mark: u32) -> u32 {
    let folded = mark ^ (mark >> 16);
    (folded ^ (folded >> 8)) & 0xff
}

//! fw: by firewall mark (tc-fw(8)).

use crate::context::{Bound, ClassifyContext};
use crate::entries::{Entries, Entry, EntryList, FilterData};
use crate::query::{FilterResult, FilterVerdict};
use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::{FwMark, Handle};
use tidegate_policy::{Errno, FilterParams, FwParams, Indev, TcError};

/// The fw filters of one preference.
#[derive(Debug, Default)]
pub(crate) struct Fw {
    /// Bits compared; the first filter's mask holds for all.
    mask: u32,
    /// Oldest first; a filter's handle is its mark.
    entries: Entries<MarkTarget>,
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

/// Where a mark leads.
#[derive(Debug)]
pub(crate) struct MarkTarget {
    classid: Option<Handle>,
    /// Only packets that came in by this device.
    indev: Option<Indev>,
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
            if self.entries.list.get(entry)?.handle == mark {
                return Some(entry);
            }
            at = (at + 1) & wrap;
        }
    }

    /// Enters what is missing from `from` on, or everything where there is no space for it.
    fn index_from(&mut self, from: usize) {
        let mut from = from;
        if self.index.len() < 2 * self.entries.list.len() || from == 0 {
            self.index = vec![0; (4 * self.entries.list.len()).next_power_of_two()];
            from = 0;
        }
        let wrap = self.index.len() - 1;
        for (place, entry) in self.entries.list.iter().enumerate().skip(from) {
            let mut at = spread(entry.handle) & wrap;
            while self.index[at] != 0 {
                at = (at + 1) & wrap;
            }
            self.index[at] = place as u32 + 1;
        }
    }

    /// The class that a mark leads to, without its actions.
    #[inline]
    pub(crate) fn guess(&self, mark: FwMark, qdisc: Handle) -> Option<Handle> {
        if self.entries.list.is_empty() {
            return named(mark, qdisc);
        }
        self.entries.list[self.find(mark.0 & self.mask)?].data.classid
    }

    /// Without any filter (`fw` alone) the mark itself names the class.
    #[inline]
    pub(crate) fn classify(&mut self, qdisc: Handle, context: &mut ClassifyContext<'_>) -> FilterResult {
        let mark = context.pool.meta(context.pkt).mark;
        if self.entries.list.is_empty() {
            return named(mark, qdisc)
                .map_or(FilterResult::No, |class| FilterResult::Decided(FilterVerdict::Class(class)));
        }
        let Some(at) = self.find(mark.0 & self.mask) else { return FilterResult::No };
        let entry = &self.entries.list[at];
        let came_in = || context.pool.meta(context.pkt).came_in;
        if entry.data.indev.as_ref().is_some_and(|indev| !indev.is(came_in())) {
            return FilterResult::No;
        }
        entry.actions.run(entry.data.classid.unwrap_or(Handle::NONE), context)
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
            return if self.entries.list.is_empty() { Ok(()) } else { Err(TcError::bare(Errno::Inval)) };
        }
        if mark == 0 {
            return Err(TcError::bare(Errno::Inval));
        }
        let mask = params.mask.unwrap_or(u32::MAX);
        if self.entries.list.is_empty() {
            self.mask = mask;
        } else if params.mask.is_some() && mask != self.mask || params.mask.is_none() && self.mask != u32::MAX
        {
            return Err(TcError::bare(Errno::Inval));
        }
        let data = MarkTarget { classid: params.classid, indev: params.indev.clone() };
        self.entries.list.push(Entry { handle: mark, data, bound, actions });
        self.index_from(self.entries.list.len() - 1);
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
        let entry = &mut self.entries.list[at];
        if params.classid.is_some() {
            entry.data.classid = params.classid;
            entry.bound = bound;
        }
        if params.indev.is_some() {
            entry.data.indev.clone_from(&params.indev);
        }
        entry.actions = actions;
        Ok(())
    }

    /// Has it none, so that the mark itself names the class?
    pub(crate) fn is_bare(&self) -> bool {
        self.entries.list.is_empty()
    }
}

impl MarkTarget {
    /// Its parameters with the mask of the list.
    fn under(&self, mask: Option<u32>) -> FilterParams {
        FilterParams::Fw(FwParams { classid: self.classid, mask, indev: self.indev.clone() })
    }
}

impl FilterData for MarkTarget {
    fn classid(&self) -> Option<Handle> {
        self.classid
    }
    fn params(&self) -> FilterParams {
        self.under(None)
    }
}

impl EntryList for Fw {
    type Data = MarkTarget;

    fn entries(&self) -> &Entries<MarkTarget> {
        &self.entries
    }
    fn entries_mut(&mut self) -> &mut Entries<MarkTarget> {
        &mut self.entries
    }
    fn has(&self, mark: u32) -> bool {
        self.find(mark).is_some()
    }
    fn remove(&mut self, mark: u32) -> bool {
        let Some(at) = self.find(mark) else { return false };
        self.entries.list.remove(at);
        self.index_from(0);
        true
    }
    /// By the mark's low byte after folding, newest first among equals.
    fn in_dump_order(&self) -> Vec<&Entry<MarkTarget>> {
        let mut all: Vec<&Entry<MarkTarget>> = self.entries.list.iter().rev().collect();
        all.sort_by_key(|entry| bucket(entry.handle));
        all
    }
    fn params(&self, target: &MarkTarget) -> FilterParams {
        let mask = (self.mask != u32::MAX).then_some(self.mask);
        target.under(mask)
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

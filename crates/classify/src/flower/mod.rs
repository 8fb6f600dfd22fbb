//! flower: by fields of the headers (tc-flower(8)).
//!
//! Filters that compare the same bits of the same fields form a group; groups are evaluated in the order in
//! which they were made, and the first that contains the packet decides, however many bits it compares.

mod fields;

use crate::context::{Bound, ClassifyContext, DumpContext};
use crate::filters::Filters;
use crate::query::FilterResult;
use alloc::vec::Vec;
use fields::Fields;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterEntry, U32Hits};
use tidegate_policy::{Errno, FilterParams, FlowerField, FlowerKey, FlowerParams, TcError};

/// The flower filters of one preference.
#[derive(Debug, Default)]
pub(crate) struct Flower {
    /// By handle.
    entries: Vec<Entry>,
    /// The groups in the order in which they are evaluated.
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Entry {
    handle: u32,
    params: FlowerParams,
    bound: bool,
    actions: Bound,
    /// What it counted: packets that came to it, that came in by its device, that its keys held for, that it
    /// took.
    hits: U32Hits,
}

/// Filters that compare the same bits.
#[derive(Debug)]
struct Group {
    bits: Vec<(FlowerField, u128)>,
    /// They compare the device that packets came in by.
    indev: bool,
    /// The handles of its filters, oldest first.
    handles: Vec<u32>,
}

impl Group {
    fn compares(&self, bits: &[(FlowerField, u128)], indev: bool) -> bool {
        self.bits == bits && self.indev == indev
    }
}

impl Flower {
    pub(crate) fn classify(&mut self, context: &mut ClassifyContext<'_>) -> FilterResult {
        let mut fields = Fields::default();
        let Flower { entries, groups } = self;
        for group in groups {
            for handle in &group.handles {
                let Ok(at) = entries.binary_search_by_key(handle, |entry| entry.handle) else { continue };
                let Some(entry) = entries.get_mut(at) else { continue };
                let came_in = context.pool.meta(context.pkt).came_in;
                let elsewhere = entry.params.indev.as_ref().is_some_and(|indev| !indev.is(came_in));
                let hits = &mut entry.hits;
                hits.lookups += 1;
                hits.mark += u64::from(!elsewhere);
                let matches = |(key, waiting): (&FlowerKey, &mut u64)| {
                    let matches = fields.compare(key, context);
                    *waiting += u64::from(matches);
                    matches
                };
                if !elsewhere && entry.params.keys.iter().zip(&mut hits.keys).all(matches) {
                    hits.matched += 1;
                    return entry.actions.run(entry.params.classid.unwrap_or(Handle::NONE), context);
                }
            }
        }
        FilterResult::No
    }

    fn find(&self, handle: u32) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&handle, |entry| entry.handle).ok()?;
        self.entries.get(at)
    }

    pub(crate) fn add(
        &mut self,
        handle: u32,
        params: &FlowerParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        self.must_be_new(params, None)?;
        let handle = if handle == 0 { (1..).find(|handle| !self.has(*handle)).unwrap_or(0) } else { handle };
        self.join(handle, params);
        let at = self.entries.partition_point(|entry| entry.handle < handle);
        self.entries
            .insert(at, Entry { handle, params: params.clone(), bound, actions, hits: no_hits(params) });
        Ok(())
    }

    /// What a change does not give is removed, actions too.
    pub(crate) fn change(
        &mut self,
        handle: u32,
        params: &FlowerParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        let old = self.entries.iter().find(|e| e.handle == handle).ok_or(TcError::bare(Errno::NoEnt))?;
        // It must continue comparing the same bits.
        let bits = |params: &FlowerParams| params.keys.iter().map(compared).collect::<Vec<_>>();
        if bits(&old.params) != bits(params) || old.params.indev.is_some() != params.indev.is_some() {
            return Err(TcError::bare(Errno::Inval));
        }
        let moved = old.params.skip_sw != params.skip_sw;
        self.must_be_new(params, Some(handle))?;
        if moved {
            self.leave(handle);
            self.join(handle, params);
        }
        let entry =
            self.entries.iter_mut().find(|e| e.handle == handle).ok_or(TcError::bare(Errno::NoEnt))?;
        *entry = Entry { handle, params: params.clone(), bound, actions, hits: no_hits(params) };
        Ok(())
    }

    /// Two filters that compare the same with the same cannot be distinguished.
    fn must_be_new(&self, params: &FlowerParams, but: Option<u32>) -> Result<(), TcError> {
        let same = |entry: &Entry| {
            entry.params.keys == params.keys
                && entry.params.indev == params.indev
                && Some(entry.handle) != but
        };
        if !params.skip_sw && self.entries.iter().any(same) {
            Err(TcError::bare(Errno::Exist))
        } else {
            Ok(())
        }
    }

    /// A filter takes its place at the end of the group that compares the same bits.
    fn join(&mut self, handle: u32, params: &FlowerParams) {
        if params.skip_sw {
            return;
        }
        let bits: Vec<_> = params.keys.iter().map(compared).collect();
        let indev = params.indev.is_some();
        match self.groups.iter_mut().find(|group| group.compares(&bits, indev)) {
            Some(group) => group.handles.push(handle),
            None => self.groups.push(Group { bits, indev, handles: alloc::vec![handle] }),
        }
    }

    fn leave(&mut self, handle: u32) {
        self.groups.iter_mut().for_each(|group| group.handles.retain(|known| *known != handle));
        self.groups.retain(|group| !group.handles.is_empty());
    }
}

/// Counters that begin, one for each key.
fn no_hits(params: &FlowerParams) -> U32Hits {
    U32Hits { keys: alloc::vec![0; params.keys.len()], ..U32Hits::default() }
}

/// The bits that a key compares; a range compares all.
fn compared(key: &FlowerKey) -> (FlowerField, u128) {
    (key.field, if key.range { u128::MAX } else { key.mask })
}

impl Filters for Flower {
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    fn has(&self, handle: u32) -> bool {
        self.find(handle).is_some()
    }
    fn remove(&mut self, handle: u32) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.handle != handle);
        self.leave(handle);
        self.entries.len() < before
    }
    fn binds(&self, class: Handle) -> bool {
        self.entries.iter().any(|entry| entry.bound && entry.params.classid == Some(class))
    }
    fn rebind(&mut self, class: Handle, bound: bool) {
        for entry in self.entries.iter_mut().filter(|entry| entry.params.classid == Some(class)) {
            entry.bound = bound;
        }
    }
    fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.entries.iter().for_each(|entry| show(entry.actions.places()));
    }
    fn dump(&self, context: DumpContext<'_>, line: &mut dyn FnMut(FilterEntry)) {
        for entry in &self.entries {
            let params = FilterParams::Flower(entry.params.clone());
            let hits = Some(entry.hits.clone());
            line(FilterEntry::Filter {
                handle: entry.handle,
                params,
                hits,
                actions: entry.actions.dump(context),
            });
        }
    }
}

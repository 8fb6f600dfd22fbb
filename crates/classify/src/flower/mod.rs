//! flower: by fields of the headers (tc-flower(8)).
//!
//! Filters that compare the same bits of the same fields form a group; groups are evaluated in the order in
//! which they were made, and the first that contains the packet decides, however many bits it compares.

mod fields;

use crate::context::{Bound, ClassifyContext};
use crate::entries::{Counted, Entries, Entry, EntryList, FilterData};
use crate::query::FilterResult;
use alloc::vec::Vec;
use fields::Fields;
use tidegate_packet::Handle;
use tidegate_policy::{Errno, FilterParams, FlowerField, FlowerKey, FlowerParams, TcError};

/// The flower filters of one preference.
#[derive(Debug, Default)]
pub(crate) struct Flower {
    /// By handle.
    entries: Entries<Counted<FlowerParams>>,
    /// The groups in the order in which they are evaluated.
    groups: Vec<Group>,
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
                let Ok(at) = entries.list.binary_search_by_key(handle, |entry| entry.handle) else {
                    continue;
                };
                let Some(entry) = entries.list.get_mut(at) else { continue };
                let Counted { params, hits } = &mut entry.data;
                let came_in = context.pool.meta(context.pkt).came_in;
                let elsewhere = params.indev.as_ref().is_some_and(|indev| !indev.is(came_in));
                hits.lookups += 1;
                hits.mark += u64::from(!elsewhere);
                let matches = |(key, waiting): (&FlowerKey, &mut u64)| {
                    let matches = fields.compare(key, context);
                    *waiting += u64::from(matches);
                    matches
                };
                if !elsewhere && params.keys.iter().zip(&mut hits.keys).all(matches) {
                    hits.matched += 1;
                    return entry.actions.run(params.classid.unwrap_or(Handle::NONE), context);
                }
            }
        }
        FilterResult::No
    }

    pub(crate) fn add(
        &mut self,
        handle: u32,
        params: &FlowerParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        self.must_be_new(params, None)?;
        let handle = if handle == 0 { self.entries.free_handle() } else { handle };
        self.join(handle, params);
        let at = self.entries.list.partition_point(|entry| entry.handle < handle);
        self.entries.list.insert(at, Entry { handle, data: counted(params), bound, actions });
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
        let old = &self.entries.find_mut(handle)?.data.params;
        // It must continue comparing the same bits.
        let bits = |params: &FlowerParams| params.keys.iter().map(compared).collect::<Vec<_>>();
        if bits(old) != bits(params) || old.indev.is_some() != params.indev.is_some() {
            return Err(TcError::bare(Errno::Inval));
        }
        let moved = old.skip_sw != params.skip_sw;
        self.must_be_new(params, Some(handle))?;
        if moved {
            self.leave(handle);
            self.join(handle, params);
        }
        *self.entries.find_mut(handle)? = Entry { handle, data: counted(params), bound, actions };
        Ok(())
    }

    /// Two filters that compare the same with the same cannot be distinguished.
    fn must_be_new(&self, params: &FlowerParams, but: Option<u32>) -> Result<(), TcError> {
        let same = |entry: &Entry<Counted<FlowerParams>>| {
            let known = &entry.data.params;
            known.keys == params.keys && known.indev == params.indev && Some(entry.handle) != but
        };
        if !params.skip_sw && self.entries.list.iter().any(same) {
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

/// Counters that begin; `mark` counts packets that came in by the filter's device.
fn counted(params: &FlowerParams) -> Counted<FlowerParams> {
    Counted::new(params, params.keys.len())
}

/// The bits that a key compares; a range compares all.
fn compared(key: &FlowerKey) -> (FlowerField, u128) {
    (key.field, if key.range { u128::MAX } else { key.mask })
}

impl FilterData for FlowerParams {
    fn classid(&self) -> Option<Handle> {
        self.classid
    }
    fn params(&self) -> FilterParams {
        FilterParams::Flower(self.clone())
    }
}

impl EntryList for Flower {
    type Data = Counted<FlowerParams>;

    fn entries(&self) -> &Entries<Self::Data> {
        &self.entries
    }
    fn entries_mut(&mut self) -> &mut Entries<Self::Data> {
        &mut self.entries
    }
    fn remove(&mut self, handle: u32) -> bool {
        self.leave(handle);
        self.entries.remove(handle)
    }
    fn has(&self, handle: u32) -> bool {
        self.entries.list.binary_search_by_key(&handle, |entry| entry.handle).is_ok()
    }
}

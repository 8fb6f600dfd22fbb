//! The filters of one preference, as every kind but u32 keeps them: a list of entries.
//!
//! A kind says what its filters have of their own ([`FilterData`]) and, if it keeps more than the list, in
//! what the list differs ([`EntryList`]); what lists ask of filters of any kind ([`Filters`]) follows from
//! that. Classifying, making and changing filters are the kinds' own.

use crate::context::{Bound, DumpContext};
use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterEntry, U32Hits};
use tidegate_policy::{Errno, FilterParams, TcError};

/// A filter.
#[derive(Debug)]
pub(crate) struct Entry<D> {
    pub(crate) handle: u32,
    /// What its kind knows of it: its parameters, and what it counted or drew.
    pub(crate) data: D,
    /// It holds its class, which was there when the filter was made.
    pub(crate) bound: bool,
    pub(crate) actions: Bound,
}

/// What a kind knows of one of its filters.
pub(crate) trait FilterData {
    /// The class that the filter names; none if it computes classes.
    fn classid(&self) -> Option<Handle>;
    /// Its parameters, as a dump shows them.
    fn params(&self) -> FilterParams;
    /// Its counters, where the kind has some.
    fn hits(&self) -> Option<U32Hits> {
        None
    }
}

/// A filter's parameters with what it counted.
#[derive(Debug)]
pub(crate) struct Counted<P> {
    pub(crate) params: P,
    /// Packets that came to it, that each of its conditions held for, that it took.
    pub(crate) hits: U32Hits,
}

impl<P: Clone> Counted<P> {
    /// Counters that begin, one for each condition.
    pub(crate) fn new(params: &P, conditions: usize) -> Counted<P> {
        Counted { params: params.clone(), hits: U32Hits { keys: vec![0; conditions], ..U32Hits::default() } }
    }
}

impl<P: FilterData> FilterData for Counted<P> {
    fn classid(&self) -> Option<Handle> {
        self.params.classid()
    }
    fn params(&self) -> FilterParams {
        self.params.params()
    }
    fn hits(&self) -> Option<U32Hits> {
        Some(self.hits.clone())
    }
}

/// The filters of one preference.
#[derive(Debug)]
pub(crate) struct Entries<D> {
    pub(crate) list: Vec<Entry<D>>,
}

impl<D> Default for Entries<D> {
    fn default() -> Entries<D> {
        Entries { list: Vec::new() }
    }
}

impl<D> Entries<D> {
    fn has(&self, handle: u32) -> bool {
        self.list.iter().any(|entry| entry.handle == handle)
    }

    pub(crate) fn find_mut(&mut self, handle: u32) -> Result<&mut Entry<D>, TcError> {
        self.list.iter_mut().find(|entry| entry.handle == handle).ok_or(TcError::bare(Errno::NoEnt))
    }

    /// The lowest handle from 1 on that no filter has.
    pub(crate) fn free_handle(&self) -> u32 {
        (1..).find(|handle| !self.has(*handle)).unwrap_or(0)
    }

    /// Removes a filter; false: there is none of this handle.
    pub(crate) fn remove(&mut self, handle: u32) -> bool {
        let before = self.list.len();
        self.list.retain(|entry| entry.handle != handle);
        self.list.len() < before
    }
}

/// A kind's filters: the list itself, or what the kind keeps around it.
pub(crate) trait EntryList {
    type Data: FilterData;

    fn entries(&self) -> &Entries<Self::Data>;
    fn entries_mut(&mut self) -> &mut Entries<Self::Data>;

    fn has(&self, handle: u32) -> bool {
        self.entries().has(handle)
    }
    fn remove(&mut self, handle: u32) -> bool {
        self.entries_mut().remove(handle)
    }
    /// The filters in the order of a dump.
    fn in_dump_order(&self) -> Vec<&Entry<Self::Data>> {
        self.entries().list.iter().collect()
    }
    /// A filter's parameters, as a dump shows them.
    fn params(&self, data: &Self::Data) -> FilterParams {
        data.params()
    }
}

impl<D: FilterData> EntryList for Entries<D> {
    type Data = D;

    fn entries(&self) -> &Entries<D> {
        self
    }
    fn entries_mut(&mut self) -> &mut Entries<D> {
        self
    }
}

/// What lists ask of filters of any kind.
pub(crate) trait Filters {
    fn is_empty(&self) -> bool;
    /// Is there one of this handle?
    fn has(&self, handle: u32) -> bool;
    /// Removes it; false: there is none.
    fn remove(&mut self, handle: u32) -> bool;
    /// Does one hold a class?
    fn binds(&self, class: Handle) -> bool;
    /// Those that name a class hold it, or no longer.
    fn rebind(&mut self, class: Handle, bound: bool);
    /// Shows the places of each one's actions.
    fn each_action(&self, show: &mut dyn FnMut(&[u32]));
    /// Shows each, in the kernel's order.
    fn dump(&self, context: DumpContext<'_>, line: &mut dyn FnMut(FilterEntry));
}

impl<L: EntryList> Filters for L {
    fn is_empty(&self) -> bool {
        self.entries().list.is_empty()
    }

    fn has(&self, handle: u32) -> bool {
        EntryList::has(self, handle)
    }

    fn remove(&mut self, handle: u32) -> bool {
        EntryList::remove(self, handle)
    }

    fn binds(&self, class: Handle) -> bool {
        self.entries().list.iter().any(|entry| entry.bound && entry.data.classid() == Some(class))
    }

    fn rebind(&mut self, class: Handle, bound: bool) {
        let mut all = self.entries_mut().list.iter_mut();
        all.by_ref()
            .filter(|entry| entry.data.classid() == Some(class))
            .for_each(|entry| entry.bound = bound);
    }

    fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.entries().list.iter().for_each(|entry| show(entry.actions.places()));
    }

    fn dump(&self, context: DumpContext<'_>, line: &mut dyn FnMut(FilterEntry)) {
        for entry in self.in_dump_order() {
            let params = EntryList::params(self, &entry.data);
            let (hits, actions) = (entry.data.hits(), entry.actions.dump(context));
            line(FilterEntry::Filter { handle: entry.handle, params, hits, actions });
        }
    }
}

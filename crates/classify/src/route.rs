//! route: by the realms of the packet's route (tc-route(8)).
//!
//! Routes have realms only where somebody gives them some; here none has. So only filters that ask for a
//! realm are taken (see the parser), and none of them matches.

use crate::context::{Bound, DumpContext};
use crate::filters::Filters;
use alloc::vec::Vec;
use tidegate_packet::Handle;
use tidegate_policy::dump::FilterEntry;
use tidegate_policy::{Errno, FilterParams, RouteParams, TcError};

/// The route filters of one preference, in the order of a dump.
#[derive(Debug, Default)]
pub(crate) struct Route {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    handle: u32,
    params: RouteParams,
    bound: bool,
    actions: Bound,
}

impl Entry {
    /// Where it is listed: by the destination's realm, by the source's or the device in 16 buckets, the rest
    /// last, and then by handle.
    fn place(&self) -> (u32, u32, u32) {
        let above = self.handle >> 16;
        let inner = match above {
            0xffff => 32,
            0x8000.. => 16 + (above & 0xf),
            _ => above & 0xf,
        };
        (self.params.to.map_or(256, u32::from), inner, self.handle)
    }
}

impl Route {
    /// Makes a filter.
    pub(crate) fn add(
        &mut self,
        handle: u32,
        params: &RouteParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        self.put(handle, None, params, bound, actions)
    }

    /// A change of a filter's realms moves it; without one, it is in its own way.
    pub(crate) fn change(
        &mut self,
        handle: u32,
        params: &RouteParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        self.put(handle, Some(handle), params, bound, actions)
    }

    fn put(
        &mut self,
        named: u32,
        old: Option<u32>,
        params: &RouteParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        if params.from.is_some() && params.fromif.is_some() {
            return Err(TcError::bare(Errno::Inval));
        }
        // The kernel counts devices from 1.
        let device = params.fromif.as_ref().map_or(0, |indev| indev.device.wrapping_add(1));
        let handle = params.handle_at(device);
        if old.is_none() && named != 0 && named != handle {
            return Err(TcError::bare(Errno::Inval));
        }
        if self.has(handle) {
            return Err(TcError::bare(Errno::Exist));
        }
        if let Some(old) = old {
            self.remove(old);
        }
        let entry = Entry { handle, params: params.clone(), bound, actions };
        let at = self.entries.partition_point(|other| other.place() < entry.place());
        self.entries.insert(at, entry);
        Ok(())
    }
}

impl Filters for Route {
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    fn has(&self, handle: u32) -> bool {
        self.entries.iter().any(|entry| entry.handle == handle)
    }
    fn remove(&mut self, handle: u32) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.handle != handle);
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
            line(FilterEntry::Filter {
                handle: entry.handle,
                params: FilterParams::Route(entry.params.clone()),
                hits: None,
                actions: entry.actions.dump(context),
            });
        }
    }
}

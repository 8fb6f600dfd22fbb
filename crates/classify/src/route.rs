//! route: by the realms of the packet's route (tc-route(8)).
//!
//! Routes have realms only where somebody gives them some; here none has. So only filters that ask for a
//! realm are taken (see the parser), and none of them matches.

use crate::context::Bound;
use crate::entries::{Entries, Entry, EntryList, FilterData};
use tidegate_packet::Handle;
use tidegate_policy::{Errno, FilterParams, RouteParams, TcError};

/// The route filters of one preference, in the order of a dump.
pub(crate) type Route = Entries<RouteParams>;

impl Entry<RouteParams> {
    /// Where it is listed: by the destination's realm, by the source's or the device in 16 buckets, the rest
    /// last, and then by handle.
    fn place(&self) -> (u32, u32, u32) {
        let above = self.handle >> 16;
        let inner = match above {
            0xffff => 32,
            0x8000.. => 16 + (above & 0xf),
            _ => above & 0xf,
        };
        (self.data.to.map_or(256, u32::from), inner, self.handle)
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
        let entry = Entry { handle, data: params.clone(), bound, actions };
        let at = self.list.partition_point(|other| other.place() < entry.place());
        self.list.insert(at, entry);
        Ok(())
    }
}

impl FilterData for RouteParams {
    fn classid(&self) -> Option<Handle> {
        self.classid
    }
    fn params(&self) -> FilterParams {
        FilterParams::Route(self.clone())
    }
}

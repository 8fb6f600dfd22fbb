//! cgroup: by the control group of the process that sent the packet (tc-cgroup(8)).
//!
//! The class comes from the group (`net_cls.classid`). A packet without one, such as any that is forwarded,
//! does not match, whatever the conditions. Here no packet has one.

use crate::context::Bound;
use crate::entries::{Entries, Entry, EntryList, FilterData};
use tidegate_packet::Handle;
use tidegate_policy::{CgroupParams, Errno, FilterParams, TcError};

/// The cgroup filter of one preference: there is one at most.
#[derive(Debug, Default)]
pub(crate) struct Cgroup {
    entries: Entries<CgroupParams>,
}

impl Cgroup {
    /// Makes the filter; one of the same handle is replaced, since the kernel finds none by its handle.
    pub(crate) fn set(&mut self, handle: u32, params: &CgroupParams, actions: Bound) -> Result<(), TcError> {
        match self.entries.list.first() {
            None if handle == 0 => return Err(TcError::bare(Errno::Inval)),
            Some(entry) if entry.handle != handle => return Err(TcError::bare(Errno::NoEnt)),
            _ => {}
        }
        self.entries.list.clear();
        self.entries.list.push(Entry { handle, data: params.clone(), bound: false, actions });
        Ok(())
    }
}

impl FilterData for CgroupParams {
    fn classid(&self) -> Option<Handle> {
        None
    }
    fn params(&self) -> FilterParams {
        FilterParams::Cgroup(self.clone())
    }
}

impl EntryList for Cgroup {
    type Data = CgroupParams;

    fn entries(&self) -> &Entries<CgroupParams> {
        &self.entries
    }
    fn entries_mut(&mut self) -> &mut Entries<CgroupParams> {
        &mut self.entries
    }
    /// Linux's cgroup filters cannot be named by their handle: `get`, `change` and `del` find none.
    fn has(&self, _: u32) -> bool {
        false
    }
    fn remove(&mut self, _: u32) -> bool {
        false
    }
}

//! cgroup: by the control group of the process that sent the packet (tc-cgroup(8)).
//!
//! The class comes from the group (`net_cls.classid`). A packet without one, such as any that is forwarded,
//! does not match, whatever the conditions. Here no packet has one.

use crate::context::{Bound, DumpContext};
use crate::filters::Filters;
use tidegate_packet::Handle;
use tidegate_policy::dump::FilterEntry;
use tidegate_policy::{CgroupParams, Errno, FilterParams, TcError};

/// The cgroup filter of one preference: there is one at most.
#[derive(Debug, Default)]
pub(crate) struct Cgroup(Option<Entry>);

#[derive(Debug)]
struct Entry {
    handle: u32,
    params: CgroupParams,
    actions: Bound,
}

impl Cgroup {
    /// Makes the filter; one of the same handle is replaced, since the kernel finds none by its handle.
    pub(crate) fn set(&mut self, handle: u32, params: &CgroupParams, actions: Bound) -> Result<(), TcError> {
        if handle == 0 && self.0.is_none() {
            return Err(TcError::bare(Errno::Inval));
        }
        if self.0.as_ref().is_some_and(|entry| entry.handle != handle) {
            return Err(TcError::bare(Errno::NoEnt));
        }
        self.0 = Some(Entry { handle, params: params.clone(), actions });
        Ok(())
    }
}

impl Filters for Cgroup {
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    /// Linux's cgroup filters cannot be named by their handle: `get`, `change` and `del` find none.
    fn has(&self, _: u32) -> bool {
        false
    }
    fn remove(&mut self, _: u32) -> bool {
        false
    }
    fn binds(&self, _: Handle) -> bool {
        false
    }
    fn rebind(&mut self, _: Handle, _: bool) {}
    fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.0.iter().for_each(|entry| show(entry.actions.places()));
    }
    fn dump(&self, context: DumpContext<'_>, line: &mut dyn FnMut(FilterEntry)) {
        let Some(entry) = &self.0 else { return };
        line(FilterEntry::Filter {
            handle: entry.handle,
            params: FilterParams::Cgroup(entry.params.clone()),
            hits: None,
            actions: entry.actions.dump(context),
        });
    }
}

//! basic: by an expression of several conditions (tc-basic(8), tc-ematch(8)).

mod ematch;

pub(crate) use ematch::holds;

use crate::actions::{Bound, Said, Told};
use crate::list::Asked;
use crate::pref::Filters;
use alloc::vec::Vec;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterEntry, U32Hits};
use tidegate_policy::{BasicParams, Errno, FilterParams, TcError};

/// The basic filters of one preference; the newest is asked first.
#[derive(Debug, Default)]
pub(crate) struct Basic {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    handle: u32,
    params: BasicParams,
    bound: bool,
    actions: Bound,
    /// Packets for which the expression held.
    matched: u64,
}

impl Basic {
    pub(crate) fn classify(&mut self, asked: &mut Asked<'_>) -> Said {
        for entry in &mut self.entries {
            if !holds(&entry.params.terms, asked) {
                continue;
            }
            entry.matched += 1;
            match entry.actions.run(entry.params.classid.unwrap_or(Handle::NONE), asked) {
                Said::No => {}
                said => return said,
            }
        }
        Said::No
    }

    pub(crate) fn add(
        &mut self,
        handle: u32,
        params: &BasicParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        let handle = if handle == 0 { self.free_handle() } else { handle };
        self.entries.insert(0, Entry { handle, params: params.clone(), bound, actions, matched: 0 });
        Ok(())
    }

    /// What is not said anew is gone, actions too.
    pub(crate) fn change(
        &mut self,
        handle: u32,
        params: &BasicParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        let entry = self.entries.iter_mut().find(|e| e.handle == handle).ok_or(TcError::bare(Errno::NoEnt))?;
        *entry = Entry { handle, params: params.clone(), bound, actions, matched: 0 };
        Ok(())
    }

    fn free_handle(&self) -> u32 {
        (1..).find(|handle| !self.has(*handle)).unwrap_or(0)
    }
}

impl Filters for Basic {
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
    fn dump(&self, told: Told<'_>, line: &mut dyn FnMut(FilterEntry)) {
        for entry in &self.entries {
            let params = FilterParams::Basic(entry.params.clone());
            let hits = Some(U32Hits { matched: entry.matched, ..U32Hits::default() });
            line(FilterEntry::Filter { handle: entry.handle, params, hits, actions: entry.actions.dump(told) });
        }
    }
}

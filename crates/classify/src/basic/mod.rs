//! basic: by an expression of several conditions (tc-basic(8), tc-ematch(8)).

mod ematch;

pub(crate) use ematch::matches;
use ematch::matches_counted;

use crate::context::{Bound, ClassifyContext, DumpContext};
use crate::filters::Filters;
use crate::query::FilterResult;
use alloc::vec::Vec;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterEntry, U32Hits};
use tidegate_policy::{BasicParams, Errno, FilterParams, TcError};

/// The basic filters of one preference; the newest is evaluated first.
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
    /// What it counted: packets that came to it, that each condition held for, that the expression held for.
    hits: U32Hits,
}

impl Basic {
    pub(crate) fn classify(&mut self, context: &mut ClassifyContext<'_>) -> FilterResult {
        for entry in &mut self.entries {
            entry.hits.lookups += 1;
            if !matches_counted(&entry.params.terms, context, &mut entry.hits.keys) {
                continue;
            }
            entry.hits.matched += 1;
            match entry.actions.run(entry.params.classid.unwrap_or(Handle::NONE), context) {
                FilterResult::No => {}
                said => return said,
            }
        }
        FilterResult::No
    }

    pub(crate) fn add(
        &mut self,
        handle: u32,
        params: &BasicParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        let handle = if handle == 0 { self.free_handle() } else { handle };
        self.entries
            .insert(0, Entry { handle, params: params.clone(), bound, actions, hits: no_hits(params) });
        Ok(())
    }

    /// What a change does not give is removed, actions too.
    pub(crate) fn change(
        &mut self,
        handle: u32,
        params: &BasicParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        let entry =
            self.entries.iter_mut().find(|e| e.handle == handle).ok_or(TcError::bare(Errno::NoEnt))?;
        *entry = Entry { handle, params: params.clone(), bound, actions, hits: no_hits(params) };
        Ok(())
    }

    fn free_handle(&self) -> u32 {
        (1..).find(|handle| !self.has(*handle)).unwrap_or(0)
    }
}

/// Counters that begin, one for each condition.
fn no_hits(params: &BasicParams) -> U32Hits {
    U32Hits { keys: alloc::vec![0; params.terms.len()], ..U32Hits::default() }
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
    fn dump(&self, context: DumpContext<'_>, line: &mut dyn FnMut(FilterEntry)) {
        for entry in &self.entries {
            let params = FilterParams::Basic(entry.params.clone());
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

//! matchall: every packet (tc-matchall(8)).

use crate::context::{Bound, ClassifyContext, DumpContext};
use crate::filters::Filters;
use crate::query::FilterResult;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterEntry, U32Hits};
use tidegate_policy::{Errno, FilterParams, MatchallParams, TcError};

/// The matchall filter of one preference: there is one at most.
#[derive(Debug, Default)]
pub(crate) struct Matchall(Option<Entry>);

#[derive(Debug)]
struct Entry {
    handle: u32,
    params: MatchallParams,
    bound: bool,
    /// Packets that came to it.
    lookups: u64,
    actions: Bound,
}

impl Matchall {
    pub(crate) fn classify(&mut self, context: &mut ClassifyContext<'_>) -> FilterResult {
        match &mut self.0 {
            Some(entry) => {
                entry.lookups += 1;
                entry.actions.run(entry.params.classid.unwrap_or(Handle::NONE), context)
            }
            None => FilterResult::No,
        }
    }

    pub(crate) fn add(
        &mut self,
        handle: u32,
        params: &MatchallParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        if self.0.is_some() {
            return Err(TcError::bare(Errno::Exist));
        }
        let handle = if handle == 0 { 1 } else { handle };
        self.0 = Some(Entry { handle, params: *params, bound, lookups: 0, actions });
        Ok(())
    }
}

impl Filters for Matchall {
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    fn has(&self, handle: u32) -> bool {
        self.0.as_ref().is_some_and(|entry| entry.handle == handle)
    }
    fn remove(&mut self, handle: u32) -> bool {
        self.0.take_if(|entry| entry.handle == handle).is_some()
    }
    fn binds(&self, class: Handle) -> bool {
        self.0.as_ref().is_some_and(|entry| entry.bound && entry.params.classid == Some(class))
    }
    fn rebind(&mut self, class: Handle, bound: bool) {
        if let Some(entry) = self.0.as_mut().filter(|entry| entry.params.classid == Some(class)) {
            entry.bound = bound;
        }
    }
    fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.0.iter().for_each(|entry| show(entry.actions.places()));
    }
    fn dump(&self, context: DumpContext<'_>, line: &mut dyn FnMut(FilterEntry)) {
        let Some(entry) = &self.0 else { return };
        line(FilterEntry::Filter {
            handle: entry.handle,
            params: FilterParams::Matchall(entry.params),
            hits: Some(U32Hits { lookups: entry.lookups, ..U32Hits::default() }),
            actions: entry.actions.dump(context),
        });
    }
}

//! matchall: every packet (tc-matchall(8)).

use crate::context::{Bound, ClassifyContext};
use crate::entries::{Counted, Entries, Entry, FilterData};
use crate::query::FilterResult;
use tidegate_packet::Handle;
use tidegate_policy::{Errno, FilterParams, MatchallParams, TcError};

/// The matchall filter of one preference: there is one at most.
pub(crate) type Matchall = Entries<Counted<MatchallParams>>;

impl Matchall {
    #[inline]
    pub(crate) fn classify(&mut self, context: &mut ClassifyContext<'_>) -> FilterResult {
        let Some(Entry { data, actions, .. }) = self.list.first_mut() else { return FilterResult::No };
        data.hits.lookups += 1;
        actions.run(data.params.classid.unwrap_or(Handle::NONE), context)
    }

    pub(crate) fn add(
        &mut self,
        handle: u32,
        params: &MatchallParams,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        if !self.list.is_empty() {
            return Err(TcError::bare(Errno::Exist));
        }
        let handle = if handle == 0 { 1 } else { handle };
        self.list.push(Entry { handle, data: Counted::new(params, 0), bound, actions });
        Ok(())
    }
}

impl FilterData for MatchallParams {
    fn classid(&self) -> Option<Handle> {
        self.classid
    }
    fn params(&self) -> FilterParams {
        FilterParams::Matchall(*self)
    }
}

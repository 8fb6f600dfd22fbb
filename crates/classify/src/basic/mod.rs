//! basic: by an expression of several conditions (tc-basic(8), tc-ematch(8)).

mod ematch;

pub(crate) use ematch::matches;
use ematch::matches_counted;

use crate::context::{Bound, ClassifyContext};
use crate::entries::{Counted, Entries, Entry, FilterData};
use crate::query::FilterResult;
use tidegate_packet::Handle;
use tidegate_policy::{BasicParams, FilterParams, TcError};

/// The basic filters of one preference; the newest is evaluated first.
pub(crate) type Basic = Entries<Counted<BasicParams>>;

impl Basic {
    pub(crate) fn classify(&mut self, context: &mut ClassifyContext<'_>) -> FilterResult {
        for entry in &mut self.list {
            let Counted { params, hits } = &mut entry.data;
            hits.lookups += 1;
            if !matches_counted(&params.terms, context, &mut hits.keys) {
                continue;
            }
            hits.matched += 1;
            match entry.actions.run(params.classid.unwrap_or(Handle::NONE), context) {
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
        self.list.insert(0, Entry { handle, data: counted(params), bound, actions });
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
        *self.find_mut(handle)? = Entry { handle, data: counted(params), bound, actions };
        Ok(())
    }
}

fn counted(params: &BasicParams) -> Counted<BasicParams> {
    Counted::new(params, params.terms.len())
}

impl FilterData for BasicParams {
    fn classid(&self) -> Option<Handle> {
        self.classid
    }
    fn params(&self) -> FilterParams {
        FilterParams::Basic(self.clone())
    }
}

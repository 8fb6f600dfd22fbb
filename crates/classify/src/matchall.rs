//! matchall: every packet (tc-matchall(8)).

use crate::actions::{Actions, Meter, Said};
use tidegate_packet::Handle;
use tidegate_policy::{Errno, MatchallParams, TcError};

/// The matchall filter of one preference: there is one at most.
#[derive(Debug, Default)]
pub(crate) struct Matchall(Option<Entry>);

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) handle: u32,
    pub(crate) classid: Option<Handle>,
    pub(crate) bound: bool,
    /// Packets that came to it.
    pub(crate) asked: u64,
    pub(crate) actions: Actions,
}

impl Matchall {
    pub(crate) fn classify(&mut self, meter: &mut Meter) -> Said {
        match &mut self.0 {
            Some(entry) => {
                entry.asked += 1;
                entry.actions.run(entry.classid.unwrap_or(Handle::NONE), meter)
            }
            None => Said::No,
        }
    }

    pub(crate) fn add(
        &mut self,
        handle: u32,
        params: &MatchallParams,
        bound: bool,
        actions: Actions,
    ) -> Result<(), TcError> {
        if self.0.is_some() {
            return Err(TcError::bare(Errno::Exist));
        }
        let handle = if handle == 0 { 1 } else { handle };
        self.0 = Some(Entry { handle, classid: params.classid, bound, asked: 0, actions });
        Ok(())
    }

    pub(crate) fn has(&self, handle: u32) -> bool {
        self.0.as_ref().is_some_and(|entry| entry.handle == handle)
    }

    pub(crate) fn remove(&mut self, handle: u32) -> bool {
        let had = self.has(handle);
        if had {
            self.0 = None;
        }
        had
    }

    pub(crate) fn entry(&self) -> Option<&Entry> {
        self.0.as_ref()
    }

    pub(crate) fn entry_mut(&mut self) -> Option<&mut Entry> {
        self.0.as_mut()
    }
}

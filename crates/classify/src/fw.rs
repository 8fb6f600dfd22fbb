//! fw: by firewall mark (tc-fw(8)).

use alloc::vec::Vec;
use tidegate_packet::{Handle, Mark};
use tidegate_policy::{Errno, FwParams, TcError};

/// The fw filters of one preference.
#[derive(Debug, Default)]
pub(crate) struct Fw {
    /// Bits compared; the first filter's mask holds for all.
    mask: u32,
    entries: Vec<Entry>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) mark: u32,
    pub(crate) classid: Option<Handle>,
    pub(crate) bound: bool,
}

impl Fw {
    pub(crate) fn new() -> Fw {
        Fw { mask: u32::MAX, entries: Vec::new() }
    }

    /// Without any filter (`fw` alone) the mark itself names the class.
    pub(crate) fn classify(&self, mark: Mark, qdisc: Handle) -> Option<Handle> {
        if self.entries.is_empty() {
            let class = Handle(mark.0);
            let ours = class.major() == 0 || class.qdisc() == qdisc;
            return (mark.0 != 0 && ours).then_some(class);
        }
        let wanted = mark.0 & self.mask;
        self.entries.iter().find(|e| e.mark == wanted).map(|e| e.classid.unwrap_or(Handle::NONE))
    }

    pub(crate) fn add(&mut self, mark: u32, params: &FwParams, bound: bool) -> Result<(), TcError> {
        if mark == 0 {
            // Only the first, empty one may come without a handle.
            return if self.entries.is_empty() { Ok(()) } else { Err(TcError::bare(Errno::Inval)) };
        }
        let mask = params.mask.unwrap_or(u32::MAX);
        if self.entries.is_empty() {
            self.mask = mask;
        } else if params.mask.is_some() && mask != self.mask || params.mask.is_none() && self.mask != u32::MAX {
            return Err(TcError::bare(Errno::Inval));
        }
        // Newest first, as a hash chain keeps them; marks are unique, so only a dump can tell.
        self.entries.insert(0, Entry { mark, classid: params.classid, bound });
        Ok(())
    }

    pub(crate) fn change(&mut self, mark: u32, params: &FwParams, bound: bool) -> Result<(), TcError> {
        if params.mask.is_some_and(|mask| mask != self.mask) {
            return Err(TcError::bare(Errno::Inval));
        }
        let entry = self.entries.iter_mut().find(|e| e.mark == mark).ok_or(TcError::bare(Errno::NoEnt))?;
        if params.classid.is_some() {
            entry.classid = params.classid;
            entry.bound = bound;
        }
        Ok(())
    }

    pub(crate) fn has(&self, mark: u32) -> bool {
        self.entries.iter().any(|e| e.mark == mark)
    }

    pub(crate) fn remove(&mut self, mark: u32) -> bool {
        let before = self.entries.len();
        self.entries.retain(|e| e.mark != mark);
        self.entries.len() < before
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// In the order of a dump: by the mark's low byte after folding, newest first among equals.
    pub(crate) fn in_dump_order(&self) -> Vec<&Entry> {
        let mut all: Vec<&Entry> = self.entries.iter().collect();
        all.sort_by_key(|e| bucket(e.mark));
        all
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn mask(&self) -> Option<u32> {
        (self.mask != u32::MAX).then_some(self.mask)
    }
}

/// The bucket of a mark among 256.
fn bucket(mark: u32) -> u32 {
    let folded = mark ^ (mark >> 16);
    (folded ^ (folded >> 8)) & 0xff
}

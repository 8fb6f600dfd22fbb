//! The tools of the machine, with what each call came to.

use std::ops::Range;
use std::path::PathBuf;

use tidegate_shims::ToolShim;
use tidegate_shims::{Answer, Call, Reply};

/// What one call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Came {
    /// Operations of the machine's log.
    pub(super) ops: Range<usize>,
    /// Commands of what the machine carried out.
    pub(super) carried: Range<usize>,
}

/// Answers as the shims do, and keeps count.
pub(super) struct Traced<'m> {
    shim: ToolShim<'m>,
    /// One for each call that was answered, in order.
    pub(super) came: Vec<Came>,
}

impl<'m> Traced<'m> {
    pub(super) fn new(shim: ToolShim<'m>) -> Traced<'m> {
        Traced { shim, came: Vec::new() }
    }

    /// Gives what the last call carried out the lines of the file that the lines of its input come from.
    pub(super) fn relabel(&mut self, lines: &[usize]) {
        if let Some(came) = self.came.last() {
            self.shim.relabel(came.carried.clone(), lines);
        }
    }
}

impl Answer for Traced<'_> {
    fn answer(&mut self, call: &Call) -> Reply {
        let (ops, carried) = self.shim.counts();
        let reply = self.shim.answer(call);
        let (ops_now, carried_now) = self.shim.counts();
        self.came.push(Came { ops: ops..ops_now, carried: carried..carried_now });
        reply
    }

    fn begin(&mut self, is_over: Box<dyn Fn() -> bool>) {
        self.shim.begin(is_over);
    }

    fn world(&mut self, devices: &[String]) -> Vec<(PathBuf, String)> {
        self.shim.world(devices)
    }

    fn files_written(&mut self, files: &[(String, String)]) {
        self.shim.files_written(files);
    }
}

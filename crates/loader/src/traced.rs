//! The tools of the machine, with what each call came to.

use std::ops::Range;
use std::path::PathBuf;

use crate::nothing::has_policy;
use tidegate_shims::{Answer, Call, Namespace, Namespaces, Reply, ToolShim, Wiring};

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
    namespaces: Namespaces<'m>,
    /// One for each call that was answered, in order, with the number of its machine.
    came: Vec<(usize, Came)>,
}

impl<'m> Traced<'m> {
    pub(super) fn new(shim: ToolShim<'m>) -> Traced<'m> {
        Traced { namespaces: Namespaces::new(shim), came: Vec::new() }
    }

    /// Gives what the last call carried out the lines of the file that the lines of its input come from.
    pub(super) fn relabel(&mut self, lines: &[usize]) {
        if let Some((Namespaces::FIRST, came)) = self.came.last() {
            self.namespaces.first().relabel(came.carried.clone(), lines);
        }
    }

    /// How the machines are wired.
    pub(super) fn wiring(&self) -> Wiring {
        self.namespaces.wiring()
    }

    /// What the calls came to, whether the first machine has traffic control, and the others.
    pub(super) fn finish(mut self) -> (Vec<(usize, Came)>, bool, Vec<Namespace>) {
        let has_policy = has_policy(self.namespaces.first().machine());
        (self.came, has_policy, self.namespaces.into_others())
    }
}

impl Answer for Traced<'_> {
    fn answer(&mut self, call: &Call) -> Reply {
        let found = self.namespaces.machine_of(call);
        // A namespace that is not there is an answer of the tool where it was called.
        let machine = *found.as_ref().unwrap_or(&Namespaces::FIRST);
        let (ops, carried) = self.namespaces.counts(machine);
        let reply = match found {
            Ok(machine) => self.namespaces.answer_on(machine, call),
            Err(reply) => reply,
        };
        let (ops_now, carried_now) = self.namespaces.counts(machine);
        self.came.push((machine, Came { ops: ops..ops_now, carried: carried..carried_now }));
        reply
    }

    fn begin(&mut self, is_over: Box<dyn Fn() -> bool>) {
        self.namespaces.begin(is_over);
    }

    fn world(&mut self, devices: &[String]) -> Vec<(PathBuf, String)> {
        self.namespaces.world(devices)
    }

    fn files_written(&mut self, files: &[(String, String)]) {
        self.namespaces.files_written(files);
    }
}

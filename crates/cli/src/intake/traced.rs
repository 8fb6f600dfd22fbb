//! The tools of the machine, with what each call came to.

use crate::capture::{Answer, Call, Reply};
use crate::faces::Face;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

/// What one call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Came {
    /// Operations of the machine's log.
    pub(super) ops: Range<usize>,
    /// Commands of what the machine carried out.
    pub(super) carried: Range<usize>,
}

/// Answers as the faces do, and keeps count.
pub(super) struct Traced<'m> {
    face: Face<'m>,
    /// One for each call that was answered, in order.
    pub(super) came: Vec<Came>,
}

impl<'m> Traced<'m> {
    pub(super) fn new(face: Face<'m>) -> Traced<'m> {
        Traced { face, came: Vec::new() }
    }

    /// Gives what the last call carried out the lines of the file that the lines of its input come from.
    pub(super) fn relabel(&mut self, lines: &[usize]) {
        if let Some(came) = self.came.last() {
            self.face.relabel(came.carried.clone(), lines);
        }
    }
}

impl Answer for Traced<'_> {
    fn answer(&mut self, call: &Call) -> Reply {
        let (ops, carried) = self.face.counts();
        let reply = self.face.answer(call);
        let (ops_now, carried_now) = self.face.counts();
        self.came.push(Came { ops: ops..ops_now, carried: carried..carried_now });
        reply
    }

    fn begin(&mut self, deadline: Instant) {
        self.face.begin(deadline);
    }

    fn world(&mut self, devices: &[String]) -> Vec<(PathBuf, String)> {
        self.face.world(devices)
    }

    fn told(&mut self, files: &[(String, String)]) {
        self.face.told(files);
    }
}

//! Links change while packets cross them.

use super::Net;
use crate::event::Kind;
use crate::link::impair::ImpairmentState;
use crate::link::trace::Replay;
use crate::link::{Impairment, LinkAdjustment, LinkId, Trace};
use crate::machine::Forwarder;
use tidegate_packet::Time;

impl<M: Forwarder> Net<M> {
    /// Changes a link, now. What does not belong to such a link (a ring where there is no device) changes
    /// nothing.
    pub fn change_link(&mut self, link: LinkId, change: LinkAdjustment) {
        let at = link.0 as usize;
        let now = self.now;
        self.links[at].change(now, change);
        if self.links[at].has_own_events() {
            self.schedule_all(at, 0);
        }
        self.serve(at);
    }

    /// Makes a line lose or reorder packets from now on.
    pub fn impair(&mut self, link: LinkId, what: Impairment) {
        let at = link.0 as usize;
        let had = self.links[at].has_own_events();
        // A stream of its own, so that what else is drawn stays as it was.
        let random = self.random.fork(u64::from(link.0) | 1 << 40);
        self.links[at].impairment = Some(ImpairmentState::new(what, random));
        if !had {
            self.schedule_all(at, 1);
        }
    }

    /// Makes a link follow a trace from now on, in what that recorded: rate, delay, loss.
    pub fn follow(&mut self, link: LinkId, trace: Trace) {
        self.follow_since(link, trace, self.now);
    }

    /// The same with a trace that began at a time before: its first part is over.
    pub fn follow_since(&mut self, link: LinkId, trace: Trace, began: Time) {
        let at = link.0 as usize;
        // A stream of its own, so that what else is drawn stays as it was.
        let random = self.random.fork(u64::from(link.0) | 1 << 41);
        self.links[at].follow(Replay::new(trace, began, random));
    }

    /// An arrival event for each packet in line, those before `from` excepted. One too many does no harm
    /// there.
    fn schedule_all(&mut self, at: usize, from: usize) {
        for place in from..self.links[at].line.len() {
            let (arrives, _) = self.links[at].line[place];
            self.events.push(arrives, Kind::Arrival, at);
        }
    }
}

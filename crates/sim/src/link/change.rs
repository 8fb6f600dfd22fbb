//! What may change about a link while it carries packets.

use super::impair::Hazard;
use super::trace::Opportunities;
use super::{Impairment, Link, LinkId, Trace, Waiting};
use crate::event::Kind;
use crate::machine::{Limit, Machine};
use crate::net::Net;
use tidegate_packet::{Span, Time};

/// A change of a link in the middle of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// Another rate, in bits per second. The packet on the wire keeps its pace, those behind it take the new one.
    Rate(Option<u64>),
    /// Another cap on packets per second.
    PacketRate(Option<u64>),
    /// Another delay, for packets that come from then on; none overtakes those before it.
    Delay(Span),
    /// Another size of a queue of its own; what is in it stays.
    Limit(Limit),
    /// Another transmit ring of the device before it, in frames.
    Ring(u32),
    /// Another byte queue limit of that device.
    QueueLimit(Option<u32>),
}

impl Link {
    pub(crate) fn change(&mut self, now: Time, change: LinkChange) {
        match change {
            LinkChange::Rate(rate) => {
                self.spec.bits_per_second = rate;
                self.reschedule(now);
            }
            LinkChange::PacketRate(rate) => {
                self.spec.packet_rate = rate;
                self.reschedule(now);
            }
            LinkChange::Delay(delay) => {
                self.spec.delay = delay;
                self.uneven = true;
            }
            LinkChange::Limit(limit) => {
                if let Waiting::DropTail(of) = &mut self.spec.waiting {
                    *of = limit;
                }
            }
            LinkChange::Ring(frames) => {
                if let Waiting::Port { ring, .. } = &mut self.spec.waiting {
                    *ring = frames;
                }
            }
            LinkChange::QueueLimit(limit) => {
                if let Waiting::Port { bytes, .. } = &mut self.spec.waiting {
                    *bytes = limit;
                }
            }
        }
    }

    /// Gives every frame that has not begun its time at the pace of now, and its packet in line too. A line that others' events rely on
    /// ends with these packets, in their order; one that scrambles keeps the arrivals it has given out.
    fn reschedule(&mut self, now: Time) {
        self.known = (u32::MAX, 0);
        self.backlog(now);
        let begun = usize::from(matches!(self.spec.waiting, Waiting::Port { .. }));
        if self.frames.len() <= begun || self.opportunities.is_some() {
            return;
        }
        let mut free_at = match begun {
            0 => self.frames[0].start,
            _ => self.frames[0].left,
        };
        let in_line = self.frames.range(begun..).filter(|frame| !frame.lost).count();
        let in_order = self.hazard.as_ref().is_none_or(|hazard| !hazard.what.scrambles());
        let mut place = self.line.len().saturating_sub(in_line);
        for at in begun..self.frames.len() {
            let frame = self.frames[at];
            let left = free_at + Span(self.transmission(frame.len));
            self.frames[at].start = free_at;
            self.frames[at].left = left;
            free_at = left;
            if frame.lost || !in_order {
                continue;
            }
            let before = place.checked_sub(1).map_or(Time(0), |before| self.line[before].0);
            if let Some((arrives, _)) = self.line.get_mut(place) {
                *arrives = (left + arrives.since(frame.left)).max(before);
            }
            place += 1;
        }
        self.free_at = free_at;
    }
}

impl<M: Machine> Net<M> {
    /// Changes a link, now. What does not belong to such a link (a ring where there is no device) changes nothing.
    pub fn change_link(&mut self, link: LinkId, change: LinkChange) {
        let at = link.0 as usize;
        let now = self.now;
        self.links[at].change(now, change);
        if self.links[at].has_own_events() {
            self.schedule_all(at, 0);
        }
        self.serve(at);
    }

    /// Makes a line lose packets, or deliver them in another order, from now on.
    pub fn impair(&mut self, link: LinkId, what: Impairment) {
        let at = link.0 as usize;
        let had = self.links[at].has_own_events();
        // A stream of its own, so that what else is drawn stays as it was.
        let draws = self.draws.fork(u64::from(link.0) | 1 << 40);
        self.links[at].hazard = Some(Hazard::new(what, draws));
        if !had {
            self.schedule_all(at, 1);
        }
    }

    /// Lets a link carry what a trace says from now on, instead of its rate.
    pub fn follow(&mut self, link: LinkId, trace: Trace) {
        let now = self.now;
        self.links[link.0 as usize].opportunities = Some(Opportunities::new(trace, now));
    }

    /// An arrival event for each packet in line, those before `from` excepted. One too many does no harm there.
    fn schedule_all(&mut self, at: usize, from: usize) {
        for place in from..self.links[at].line.len() {
            let (arrives, _) = self.links[at].line[place];
            self.events.push(arrives, Kind::Arrival, at);
        }
    }
}

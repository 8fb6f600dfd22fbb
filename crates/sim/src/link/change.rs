//! What may change about a link while it carries packets.

use super::line::{Link, LinkQueue};
use super::trace::Replay;
use crate::machine::Limit;
use tidegate_packet::{Nanos, Time};

/// A change of a link in the middle of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkAdjustment {
    /// Another rate, in bits per second. The packet on the wire keeps its pace, those behind it take the new
    /// one.
    Rate(Option<u64>),
    /// Another cap on packets per second.
    PacketRate(Option<u64>),
    /// Another delay, for packets that come from then on; none overtakes those before it.
    Delay(Nanos),
    /// Another size of a queue of its own; what is in it stays.
    Limit(Limit),
    /// Another transmit ring of the device before it, in frames.
    Ring(u32),
    /// Another byte queue limit of that device.
    QueueLimit(Option<u32>),
}

impl Link {
    pub(crate) fn change(&mut self, now: Time, change: LinkAdjustment) {
        match change {
            LinkAdjustment::Rate(rate) => {
                self.spec.bits_per_second = rate;
                self.reschedule(now);
            }
            LinkAdjustment::PacketRate(rate) => {
                self.spec.packet_rate = rate;
                self.reschedule(now);
            }
            LinkAdjustment::Delay(delay) => {
                self.spec.delay = delay;
                self.uneven = true;
            }
            LinkAdjustment::Limit(limit) => {
                if let LinkQueue::DropTail(of) = &mut self.spec.waiting {
                    *of = limit;
                }
            }
            LinkAdjustment::Ring(frames) => {
                if let LinkQueue::Port { ring, .. } = &mut self.spec.waiting {
                    *ring = frames;
                }
            }
            LinkAdjustment::QueueLimit(limit) => {
                if let LinkQueue::Port { bytes, .. } = &mut self.spec.waiting {
                    *bytes = limit;
                }
            }
        }
    }

    /// Lets a recording say what the line is like from now on.
    pub(crate) fn follow(&mut self, replay: Replay) {
        self.uneven |= replay.varies_delay();
        self.replay = Some(replay);
    }

    /// Gives every frame that has not begun its time at the pace of now, and its packet in line too. A line
    /// that others' events rely on ends with these packets, in their order; one that scrambles keeps the
    /// arrivals it has given out.
    pub(crate) fn reschedule(&mut self, now: Time) {
        self.known = (u32::MAX, 0);
        self.backlog(now);
        let begun = usize::from(matches!(self.spec.waiting, LinkQueue::Port { .. }));
        if self.frames.len() <= begun || self.is_recorded() {
            return;
        }
        let mut free_at = match begun {
            0 => self.frames[0].start,
            _ => self.frames[0].left,
        };
        let in_line = self.frames.range(begun..).filter(|frame| !frame.lost).count();
        let in_order = self.impairment.as_ref().is_none_or(|hazard| !hazard.what.scrambles());
        let mut place = self.line.len().saturating_sub(in_line);
        for at in begun..self.frames.len() {
            let frame = self.frames[at];
            let left = free_at + Nanos(self.transmission(frame.len));
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

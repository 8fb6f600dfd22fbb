//! A reduction that may turn out to be needless: what was before it, and what shows it.

use crate::tcp::clock::stamp;
use crate::tcp::receiver::AckSegment;
use tidegate_packet::Time;

/// What a reduction might give back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The first segment not acknowledged when it came; nothing where there is nothing to give back.
    pub(super) marker: Option<u32>,
    /// Retransmissions that were not reported as duplicates; nothing before the first.
    pub(super) open: Option<u32>,
    /// The window and the threshold before it; no threshold, no change.
    pub(super) window: u32,
    pub(super) threshold: Option<u32>,
    /// The timestamp of the first retransmission.
    pub(super) first: Option<u32>,
}

impl Undo {
    pub(super) fn on_resend(&mut self, now: Time) {
        self.open = Some(self.open.unwrap_or(0) + 1);
        self.first.get_or_insert(stamp(now));
    }

    /// A segment came twice.
    pub(super) fn on_twice(&mut self, seq: u32) {
        if self.marker.is_some_and(|marker| seq >= marker) {
            self.open = self.open.map(|open| open.saturating_sub(1));
        }
    }

    /// The answer is to something sent before the first retransmission.
    pub(super) fn is_late(&self, ack: &AckSegment) -> bool {
        self.marker.is_some() && ack.echo > 0 && self.first.is_some_and(|first| ack.echo < first)
    }

    /// Every retransmission was needless.
    pub(super) fn all_twice(&self) -> bool {
        self.marker.is_some() && self.open == Some(0)
    }
}

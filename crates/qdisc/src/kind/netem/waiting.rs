//! Packets that wait for their time, in the order of these times; of equal ones the first that came is first.

use crate::context::{Context, DropReason};
use alloc::collections::VecDeque;
use tidegate_packet::{Handle, Pkt};

#[derive(Default)]
pub(super) struct Waiting {
    timed: VecDeque<Timed>,
    /// Those that leave at once, the newest first, with when they came.
    first: VecDeque<(u64, Pkt)>,
}

struct Timed {
    at: u64,
    /// It came after others that leave later.
    overtook: bool,
    pkt: Pkt,
}

impl Waiting {
    pub(super) fn insert(&mut self, at: u64, pkt: Pkt) {
        let overtook = self.timed.back().is_some_and(|last| at < last.at);
        let place = if overtook { self.timed.partition_point(|one| one.at <= at) } else { self.timed.len() };
        self.timed.insert(place, Timed { at, overtook, pkt });
    }

    pub(super) fn put_first(&mut self, now: u64, pkt: Pkt) {
        self.first.push_front((now, pkt));
    }

    /// When the last of all may leave.
    pub(super) fn last(&self) -> Option<u64> {
        let timed = self.timed.back().map(|one| one.at);
        timed.max(self.first.back().map(|(at, _)| *at))
    }

    /// When the next may leave.
    pub(super) fn next(&self) -> Option<u64> {
        self.timed.front().map(|one| one.at)
    }

    /// One of those that leave at once.
    pub(super) fn take_first(&mut self) -> Option<Pkt> {
        self.first.pop_front().map(|(_, pkt)| pkt)
    }

    /// The next of the others.
    pub(super) fn take(&mut self) -> Option<Pkt> {
        self.timed.pop_front().map(|one| one.pkt)
    }

    /// Drops all: those that overtook one by one, the others together.
    pub(super) fn purge(&mut self, cx: &mut Context<'_>, at: Handle) {
        cx.next_purge_group();
        for (_, pkt) in self.first.drain(..) {
            cx.purge(at, pkt);
        }
        let (overtook, rest): (VecDeque<Timed>, VecDeque<Timed>) =
            self.timed.drain(..).partition(|one| one.overtook);
        for one in overtook {
            cx.drop(at, one.pkt, DropReason::PurgedUnseen);
        }
        cx.next_purge_group();
        for one in rest {
            cx.purge(at, one.pkt);
        }
    }
}

/// A tree may end with packets in it, their pool with them: the tickets are then no loss.
impl Drop for Waiting {
    fn drop(&mut self) {
        self.first.drain(..).for_each(|(_, pkt)| core::mem::forget(pkt));
        self.timed.drain(..).for_each(|one| core::mem::forget(one.pkt));
    }
}

//! Which aggregate is next: virtual time, and groups of aggregates whose turns are about as long.
//!
//! An aggregate that is given its budget may start at virtual time S and is due at F = S + budget / weight.
//! Those with turns of about 2ⁱ are in group i, sorted by S into slots of that width; so a group needs only
//! one S and F, rounded, for all. A group is *eligible* when its S has come, and *blocked* while a later
//! group is due before it; four bitmaps distinguish them, and the next aggregate is at the head of the
//! first group that is eligible and not blocked. Nothing here is sorted or searched.
//!
//! Virtual time wraps, so it is compared by the sign of differences.

use super::aggregates::{Aggregate, PLACES};
use crate::algo::IndexList;

/// Groups, and slots in each.
const GROUPS: usize = 25;
const SLOTS: u64 = 32;
/// The longest packet, as a shift.
const LONGEST: u32 = 16;

/// States of a group, and their bitmaps.
const READY: usize = 0;
const INELIGIBLE: usize = 1;
const BLOCKED: usize = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    start: u64,
    finish: u64,
    /// The slot of `start`, and which of those from there on have aggregates.
    front: u64,
    full: u64,
    slots: [IndexList; SLOTS as usize],
}

pub(super) struct Schedule {
    /// Virtual time, and what it was when the last aggregate was taken.
    pub(super) v: u64,
    old_v: u64,
    /// Ready, ineligible, blocked, both: a bit for each group.
    state: [u64; 4],
    groups: [Group; GROUPS],
    /// The width of group 0's slots, as a shift.
    shift: u32,
}

/// Is `a` later than `b`?
fn later(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}

fn round_down(time: u64, shift: u32) -> u64 {
    time & !((1 << shift) - 1)
}

/// The bits from `from` on.
fn bits_from(bitmap: u64, from: usize) -> u64 {
    bitmap & !((1 << from) - 1)
}

impl Schedule {
    /// For aggregates of at most 2^`most` classes.
    pub(super) fn new(most: u32) -> Schedule {
        Schedule {
            v: 0,
            old_v: 0,
            state: [0; 4],
            groups: [Group::default(); GROUPS],
            shift: PLACES + LONGEST + most - (GROUPS as u32 - 1),
        }
    }

    /// The group for turns of this much virtual time: the logarithm, rounded up.
    pub(super) fn group_of(&self, turn: u64) -> usize {
        let units = turn >> self.shift;
        if units == 0 {
            return 0;
        }
        let group = units.ilog2() + 1;
        (group - u32::from(turn == 1 << (group + self.shift - 1))) as usize
    }

    fn slot_shift(&self, group: usize) -> u32 {
        self.shift + group as u32
    }

    /// An aggregate is served while no other waits: virtual time continues at its start.
    pub(super) fn begin_at(&mut self, start: u64) {
        self.v = start;
        self.old_v = start;
    }

    /// Where an aggregate that becomes active starts: where it left off, unless that is past or too far
    /// ahead.
    pub(super) fn start_of(&self, aggregate: &Aggregate) -> u64 {
        let shift = self.slot_shift(aggregate.group);
        let finish = round_down(aggregate.finish, shift);
        let limit = round_down(self.v, shift).wrapping_add(1 << shift);
        if later(aggregate.finish, self.v) && !later(finish, limit) {
            return aggregate.finish;
        }
        match self.first(bits_from(self.state[READY], aggregate.group)) {
            Some(next) if later(finish, self.groups[next].finish) => {
                let next = self.groups[next].finish;
                if later(limit, next) { next } else { limit }
            }
            _ => self.v,
        }
    }

    fn first(&self, bitmap: u64) -> Option<usize> {
        (bitmap != 0).then(|| bitmap.trailing_zeros() as usize)
    }

    /// Puts an aggregate in line at its start; `idle`: none is being served.
    pub(super) fn insert(&mut self, aggregates: &mut [Aggregate], at: u32, idle: bool) {
        let Aggregate { group: index, start, .. } = aggregates[at as usize];
        let shift = self.slot_shift(index);
        let rounded = round_down(start, shift);
        let group = &mut self.groups[index];
        if group.full == 0 || later(group.start, start) {
            if group.full != 0 {
                // The group starts earlier now: its slots turn back. It was surely not eligible.
                let slots = group.start.wrapping_sub(rounded) >> shift;
                group.full = group.full.checked_shl(slots as u32).unwrap_or(0);
                group.front = group.front.wrapping_sub(slots) % SLOTS;
                self.state[INELIGIBLE] &= !(1 << index);
                self.state[INELIGIBLE | BLOCKED] &= !(1 << index);
            } else if self.state[READY] == 0 && later(rounded, self.v) && idle {
                self.v = rounded;
            }
            self.set_start(index, rounded);
        }
        self.put_into_slot(aggregates, at, rounded);
    }

    fn set_start(&mut self, index: usize, start: u64) {
        let group = &mut self.groups[index];
        group.start = start;
        group.finish = start.wrapping_add(2 << (self.shift + index as u32));
        let state = self.state_of(index);
        self.state[state] |= 1 << index;
    }

    fn state_of(&self, index: usize) -> usize {
        let group = &self.groups[index];
        let eligible = if later(group.start, self.v) { INELIGIBLE } else { READY };
        let next = self.first(bits_from(self.state[READY], index));
        let blocked = next.is_some_and(|next| later(group.finish, self.groups[next].finish));
        if blocked { eligible | BLOCKED } else { eligible }
    }

    fn put_into_slot(&mut self, aggregates: &mut [Aggregate], at: u32, rounded: u64) {
        let index = aggregates[at as usize].group;
        let shift = self.slot_shift(index);
        let group = &mut self.groups[index];
        let mut slot = rounded.wrapping_sub(group.start) >> shift;
        if slot > SLOTS - 2 {
            // Weights have changed, and it is too far ahead for the slots there are.
            let over = rounded.wrapping_sub(group.start).wrapping_sub((SLOTS - 2) << shift);
            let aggregate = &mut aggregates[at as usize];
            aggregate.start = aggregate.start.wrapping_sub(over);
            aggregate.finish = aggregate.finish.wrapping_sub(over);
            slot = SLOTS - 2;
        }
        group.slots[(group.front.wrapping_add(slot) % SLOTS) as usize].push_front(aggregates, at);
        group.full |= 1 << slot;
    }

    /// Takes an aggregate out of line.
    pub(super) fn remove(&mut self, aggregates: &mut [Aggregate], at: u32) {
        let Aggregate { group: index, start, .. } = aggregates[at as usize];
        let shift = self.slot_shift(index);
        let group = &mut self.groups[index];
        let slot = round_down(start, shift).wrapping_sub(group.start) >> shift;
        let place = (group.front.wrapping_add(slot) % SLOTS) as usize;
        group.slots[place].remove(aggregates, at);
        if group.slots[place].is_empty() {
            group.full &= !1u64.checked_shl(slot as u32).unwrap_or(0);
        }
        if group.full == 0 {
            // Groups that were blocked by this one stay so until another is served, as in Linux.
            self.forget(index);
        } else if group.slots[group.front as usize].is_empty() {
            let Some(head) = self.advance(index) else { return };
            let rounded = round_down(aggregates[head as usize].start, shift);
            if self.groups[index].start != rounded {
                self.forget(index);
                self.set_start(index, rounded);
            }
        }
    }

    fn forget(&mut self, index: usize) {
        self.state.iter_mut().for_each(|bitmap| *bitmap &= !(1 << index));
    }

    /// Moves a group's front to its first slot that is not empty; gives the aggregate there.
    fn advance(&mut self, index: usize) -> Option<u32> {
        let group = &mut self.groups[index];
        if group.full == 0 {
            return None;
        }
        let slots = group.full.trailing_zeros();
        group.front = (group.front + u64::from(slots)) % SLOTS;
        group.full >>= slots;
        group.slots[group.front as usize].first()
    }

    /// What holds between two operations: a group is in one of the four states, or in two, while it has
    /// aggregates and in none otherwise, and its first slot is not empty.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let [ready, ineligible, blocked, both] = self.state;
            let any = ready | ineligible | blocked | both;
            let full = self.groups.iter().rev().fold(0, |bits, group| bits << 1 | u64::from(group.full != 0));
            debug_assert_eq!(any, full, "groups with aggregates are in a state, others are not");
            let front = self.groups.iter().all(|group| group.full == 0 || group.full & 1 == 1);
            debug_assert!(front, "a group begins with its first aggregate");
        }
    }

    /// Takes the next aggregate out of line.
    pub(super) fn take_next(&mut self, aggregates: &mut [Aggregate]) -> Option<u32> {
        self.check();
        self.update_eligible();
        self.old_v = self.v;
        let index = self.first(self.state[READY])?;
        let group = &mut self.groups[index];
        let old_finish = group.finish;
        let front = &mut group.slots[group.front as usize];
        let next = front.first()?;
        front.remove(aggregates, next);
        if front.is_empty() {
            group.full &= !1;
        }
        match self.advance(index) {
            None => self.state[READY] &= !(1 << index),
            Some(head) => {
                let rounded = round_down(aggregates[head as usize].start, self.slot_shift(index));
                if self.groups[index].start == rounded {
                    return Some(next);
                }
                self.state[READY] &= !(1 << index);
                self.set_start(index, rounded);
            }
        }
        self.unblock(index, old_finish);
        Some(next)
    }

    /// Groups whose start has come are eligible; when there is none, virtual time continues to the first
    /// start.
    fn update_eligible(&mut self) {
        let ineligible = self.state[INELIGIBLE] | self.state[INELIGIBLE | BLOCKED];
        let Some(first) = self.first(ineligible) else { return };
        if self.state[READY] == 0 && later(self.groups[first].start, self.v) {
            self.v = self.groups[first].start;
        }
        // Group i can only have become eligible if bit i of the slot's number, or a higher one, has changed.
        let changed = ((self.v >> self.shift) ^ (self.old_v >> self.shift)) as u32;
        if changed != 0 {
            let mask = if changed.ilog2() >= 31 { u64::MAX } else { (2 << changed.ilog2()) - 1 };
            self.shift_groups(mask, INELIGIBLE, READY);
            self.shift_groups(mask, INELIGIBLE | BLOCKED, BLOCKED);
        }
    }

    /// A group is due later than before: earlier groups that it blocked are free, unless another still does.
    fn unblock(&mut self, index: usize, old_finish: u64) {
        if let Some(next) = self.first(bits_from(self.state[READY], index + 1))
            && !later(self.groups[next].finish, old_finish)
        {
            return;
        }
        let mask = (1 << index) - 1;
        self.shift_groups(mask, BLOCKED, READY);
        self.shift_groups(mask, INELIGIBLE | BLOCKED, INELIGIBLE);
    }

    fn shift_groups(&mut self, mask: u64, from: usize, to: usize) {
        self.state[to] |= self.state[from] & mask;
        self.state[from] &= !mask;
    }
}

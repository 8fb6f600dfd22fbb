//! Aggregates: up to eight classes of the same weight and longest packet, scheduled as one and served in
//! turns among themselves.

use crate::algo::{IndexList, Linked, ListLink};
use alloc::vec::Vec;

/// Binary places of virtual time per byte and weight.
pub(super) const PLACES: u32 = 30;
/// 1 in the fixed point of inverse weights.
pub(super) const ONE: u32 = 1 << PLACES;

/// Classes that are scheduled together. Its budget is what it may send in its turn, its start and finish are
/// in virtual time.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregate {
    link: ListLink,
    pub(super) group: usize,
    pub(super) start: u64,
    pub(super) finish: u64,
    /// What all its classes have: their weight, and their longest packet in bytes.
    pub(super) weight: u32,
    pub(super) longest: u32,
    pub(super) classes: u32,
    /// 1 / (weight of all its classes).
    inverse: u32,
    /// Bytes: what it gets for a turn, what it got for this one, what is left of that.
    most: u32,
    initial: u32,
    pub(super) budget: u32,
    /// Its classes that have packets, in order of their turns.
    pub(super) active: IndexList,
}

impl Linked for Aggregate {
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

impl Aggregate {
    /// Has now so many classes.
    pub(super) fn resize(&mut self, classes: u32) {
        debug_assert!(classes > 0 && self.weight > 0, "an aggregate has classes, and a class a weight");
        self.classes = classes;
        self.most = classes * self.longest;
        self.inverse = ONE / (self.weight * classes);
    }

    /// How much virtual time a turn takes.
    pub(super) fn turn(&self) -> u64 {
        u64::from(self.most) * u64::from(self.inverse)
    }

    /// Gets the budget of a turn.
    pub(super) fn recharge(&mut self) {
        self.initial = self.most;
        self.budget = self.most;
    }

    /// Its turn is over: it is due when the bytes it sent are paid for. (Classes that left may have made the
    /// budget smaller meanwhile.)
    pub(super) fn charge(&mut self) {
        let sent = self.most.min(self.initial.wrapping_sub(self.budget));
        self.finish = self.start.wrapping_add(u64::from(sent) * u64::from(self.inverse));
    }

    /// Its next turn starts there.
    pub(super) fn start_at(&mut self, start: u64) {
        self.start = start;
        self.finish = start.wrapping_add(self.turn());
    }
}

/// All aggregates, by slot; those that could take another class are found by what their classes have.
#[derive(Default)]
pub(super) struct Aggregates {
    pub(super) list: Vec<Aggregate>,
    free: Vec<u32>,
    /// The newest last.
    with_room: Vec<u32>,
}

impl Aggregates {
    /// One with space for such a class; a new one has no classes yet.
    pub(super) fn find_or_make(&mut self, longest: u32, weight: u32) -> u32 {
        let fits = |at: &&u32| {
            let aggregate = &self.list[**at as usize];
            aggregate.longest == longest && aggregate.weight == weight
        };
        if let Some(at) = self.with_room.iter().rev().find(fits) {
            return *at;
        }
        let new = Aggregate { longest, weight, ..Aggregate::default() };
        let at = match self.free.pop() {
            Some(at) => {
                self.list[at as usize] = new;
                at
            }
            None => {
                self.list.push(new);
                self.list.len() as u32 - 1
            }
        };
        self.with_room.push(at);
        at
    }

    /// Changes how many classes one has, of at most `most`.
    pub(super) fn resize(&mut self, at: u32, classes: u32, most: u32) {
        let before = self.list[at as usize].classes;
        debug_assert!(
            classes <= most && before.abs_diff(classes) <= 1,
            "classes come and go one by one, up to the most"
        );
        if classes == most {
            self.with_room.retain(|other| *other != at);
        } else if before == most {
            self.with_room.push(at);
        }
        self.list[at as usize].resize(classes);
    }

    /// The last class left.
    pub(super) fn end(&mut self, at: u32) {
        self.with_room.retain(|other| *other != at);
        debug_assert!(!self.free.contains(&at), "an aggregate ends once");
        self.free.push(at);
    }
}

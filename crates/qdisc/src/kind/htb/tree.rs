//! The scheduler: modes, feeds and rows, turns, charging.
//!
//! A leaf with packets is *active* at its priority. An active class that may send is in the *row* of its
//! level and priority; one that may only borrow is in its parent's *feed* of that priority, and so makes
//! the parent active there. Serving walks from the lowest level and best priority of any row down through
//! feeds to a leaf; each row and feed remembers whose turn it is.

use super::{Class, LEVELS, MAX_DEBT, Mode, PRIOS};
use crate::algo::{BitTree, Price, WaitHeap};
use crate::batch::Budget;
use crate::context::Context;
use crate::discipline::Dequeue;
use crate::node::QdiscNode;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::black_box;
use tidegate_packet::{Handle, Nanos, Pkt, Pool, Time};
use tidegate_policy::Kind;

/// How many steps a search for a leaf may take.
const MAX_STEPS: usize = 65_535;
/// How far down the qdiscs of the next leaves in turn are looked at ahead, the next one first.
const AHEAD: [core::ops::Range<u32>; 3] = [4..6, 2..4, 0..2];
/// With fewer active classes than these everything is near anyway.
const MANY: u32 = 64;
/// How many classes' modes are looked at in one go.
const MAX_EVENTS: usize = 100_000;

/// Whose turn it is among classes in order of their ids.
#[derive(Clone, Copy, Debug, Default)]
enum Turn {
    /// No leaf's: the end was reached, or nothing was served yet.
    #[default]
    End,
    /// This class's.
    Of(u32),
    /// The class with this id, which left: the next one at or after it.
    From(Handle),
}

/// Classes that take turns.
#[derive(Debug, Default)]
pub(super) struct Feed {
    members: BitTree,
    turn: Turn,
}

/// What only inner classes have.
#[derive(Debug, Default)]
pub(super) struct Inner {
    feeds: [Feed; PRIOS],
    /// Children by id.
    kids: Vec<u32>,
}

/// Whose feed: a level's row, or an inner class's.
#[derive(Clone, Copy)]
enum Holder {
    Row(usize),
    Class(u32),
}

/// The result of polling a leaf.
#[derive(PartialEq)]
enum LeafOutcome {
    Packet(Pkt),
    /// It has nothing.
    Idle,
    /// Its backlog may not leave yet.
    HeldBack,
}

pub(super) struct Tree {
    /// By slot. A deleted class keeps its slot, marked by an id of none, until another takes it.
    pub(super) classes: Vec<Class>,
    free: Vec<u32>,
    rows: [[Feed; PRIOS]; LEVELS],
    /// Priorities that have members, per level.
    row_mask: [u8; LEVELS],
    waiting: [WaitHeap; LEVELS],
    /// No event of a level is due before this.
    near_event: [Time; LEVELS],
    now: Time,
    /// Modes change late: see [`crate::Switches::htb_hysteresis`].
    hysteresis: bool,
    /// All classes by id; valid while `ranked`.
    sorted: Vec<u32>,
    ranked: bool,
    active: u32,
    pub(super) overlimits: u32,
}

impl Tree {
    pub(super) fn new() -> Tree {
        Tree {
            classes: Vec::new(),
            free: Vec::new(),
            rows: Default::default(),
            row_mask: [0; LEVELS],
            waiting: Default::default(),
            near_event: [Time(0); LEVELS],
            now: Time(0),
            hysteresis: false,
            sorted: Vec::new(),
            ranked: false,
            active: 0,
            overlimits: 0,
        }
    }

    fn class(&self, at: u32) -> &Class {
        &self.classes[at as usize]
    }
    fn class_mut(&mut self, at: u32) -> &mut Class {
        &mut self.classes[at as usize]
    }

    // --- configuration

    pub(super) fn add(&mut self, class: Class) -> u32 {
        self.settle_ranks();
        if let Some(parent) = class.parent() {
            self.class_mut(parent).children += 1;
        }
        self.ranked = false;
        match self.free.pop() {
            Some(at) => {
                self.classes[at as usize] = class;
                at
            }
            None => {
                self.classes.push(class);
                self.classes.len() as u32 - 1
            }
        }
    }

    /// A leaf gets its first child: its queue is dropped, its debt of waiting forgotten.
    pub(super) fn leaf_to_inner(&mut self, cx: &mut Context<'_>, at: u32) {
        self.settle_ranks();
        self.class_mut(at).child.leave(cx);
        self.deactivate(at);
        self.stop_waiting(at);
        let level = self.class(at).parent().map_or(LEVELS as u8, |p| self.class(p).level) - 1;
        let class = self.class_mut(at);
        class.mode = Mode::Send;
        class.level = level;
        class.inner = Some(Box::default());
        debug_assert!(level > 0, "a class with children stands above leaves");
    }

    /// Deletes a leaf or a childless class; the last child's parent becomes a leaf again, with full buckets
    /// and an empty queue.
    pub(super) fn remove(&mut self, cx: &mut Context<'_>, at: u32) {
        debug_assert_eq!(self.class(at).children, 0, "only classes without children are deleted");
        self.settle_ranks();
        self.class_mut(at).child.leave(cx);
        self.deactivate(at);
        self.stop_waiting(at);
        self.ranked = false;
        let parent = self.class(at).parent();
        let gone = self.class_mut(at);
        gone.id = Handle::NONE;
        gone.inner = None;
        gone.filters = Default::default();
        self.free.push(at);
        let Some(p) = parent else { return };
        self.class_mut(p).children -= 1;
        if self.class(p).children > 0 {
            return;
        }
        self.stop_waiting(p);
        let (id, now) = (self.class(p).id, cx.now);
        let child = QdiscNode::hidden(cx, Kind::Pfifo, id);
        let class = self.class_mut(p);
        class.level = 0;
        class.inner = None;
        class.child = child;
        class.deficit = [0; LEVELS];
        class.tokens = class.buffer;
        class.ctokens = class.cbuffer;
        class.checkpoint = now;
        class.mode = Mode::Send;
    }

    /// Every queue was emptied: no class is active or waits.
    pub(super) fn forget_activity(&mut self) {
        for class in &mut self.classes {
            class.activity = 0;
            class.in_feed = 0;
            class.in_row = 0;
            class.mode = Mode::Send;
            class.inner = class.inner.take().map(|_| Box::default());
        }
        self.rows = Default::default();
        self.row_mask = [0; LEVELS];
        self.waiting = Default::default();
        self.active = 0;
        self.ranked = false;
    }

    fn stop_waiting(&mut self, at: u32) {
        let level = usize::from(self.class(at).level);
        if self.class(at).mode != Mode::Send {
            self.waiting[level].remove(at);
            self.class_mut(at).mode = Mode::Send;
        }
    }

    /// Ranks are needed while anything is active; a script that only adds classes never pays for them.
    fn settle_ranks(&mut self) {
        if self.active > 0 {
            self.rank();
        }
    }

    /// Gives every class its place by id, and puts feeds and rows together again from what each class knows
    /// of itself.
    #[inline]
    fn rank(&mut self) {
        if !self.ranked {
            self.rerank();
        }
    }

    #[cold]
    fn rerank(&mut self) {
        self.ranked = true;
        let live = |c: &Class| !c.id.is_none();
        self.sorted = (0..self.classes.len() as u32).filter(|at| live(self.class(*at))).collect();
        let classes = &self.classes;
        self.sorted.sort_unstable_by_key(|at| classes[*at as usize].id.0);
        for feed in self.rows.iter_mut().flatten() {
            feed.members.clear();
        }
        for class in &mut self.classes {
            if let Some(inner) = &mut class.inner {
                inner.kids.clear();
                inner.feeds.iter_mut().for_each(|feed| feed.members.clear());
            }
        }
        for rank in 0..self.sorted.len() {
            let at = self.sorted[rank];
            self.class_mut(at).rank = rank as u32;
            let Some(parent) = self.class(at).parent() else { continue };
            let Some(inner) = self.class_mut(parent).inner.as_mut() else { continue };
            inner.kids.push(at);
            let sibling_rank = inner.kids.len() as u32 - 1;
            self.class_mut(at).sibling_rank = sibling_rank;
        }
        for at in self.sorted.clone() {
            let (in_feed, in_row) = (self.class(at).in_feed, self.class(at).in_row);
            for prio in bits(in_feed) {
                if let Some(parent) = self.class(at).parent() {
                    self.join(Holder::Class(parent), prio, at);
                }
            }
            for prio in bits(in_row) {
                self.join(Holder::Row(usize::from(self.class(at).level)), prio, at);
            }
        }
    }

    // --- feeds and rows

    fn feed(&mut self, holder: Holder, prio: usize) -> &mut Feed {
        match holder {
            Holder::Row(level) => &mut self.rows[level][prio],
            Holder::Class(at) => {
                let Some(inner) = self.classes[at as usize].inner.as_mut() else {
                    unreachable!("only inner classes have feeds")
                };
                &mut inner.feeds[prio]
            }
        }
    }

    /// A class's place in the feeds of `holder`.
    fn rank_in(&self, holder: Holder, at: u32) -> u32 {
        match holder {
            Holder::Row(_) => self.class(at).rank,
            Holder::Class(_) => self.class(at).sibling_rank,
        }
    }

    /// All classes that could are in the feeds of `holder`, by place.
    fn order(&self, holder: Holder) -> &[u32] {
        match holder {
            Holder::Row(_) => &self.sorted,
            Holder::Class(at) => self.class(at).inner.as_ref().map_or(&[], |inner| &inner.kids),
        }
    }

    fn join(&mut self, holder: Holder, prio: usize, at: u32) {
        let (rank, size) = (self.rank_in(holder, at), self.order(holder).len());
        let members = &mut self.feed(holder, prio).members;
        members.reserve(size.max(rank as usize + 1));
        members.insert(rank);
    }

    /// The member at or after a place.
    fn member_from(&mut self, holder: Holder, prio: usize, rank: u32) -> Option<u32> {
        let rank = self.feed(holder, prio).members.next(rank)?;
        self.order(holder).get(rank as usize).copied()
    }

    /// Whose turn it is; a turn that waits for a class that left is given to the next one.
    fn turn(&mut self, holder: Holder, prio: usize) -> Option<u32> {
        match self.feed(holder, prio).turn {
            Turn::Of(at) => Some(at),
            Turn::End => None,
            Turn::From(id) => {
                let order = self.order(holder);
                let rank = order.partition_point(|at| self.class(*at).id.0 < id.0) as u32;
                let next = self.member_from(holder, prio, rank);
                self.feed(holder, prio).turn = next.map_or(Turn::End, Turn::Of);
                next
            }
        }
    }

    /// Passes the turn on; after the last member comes the end.
    fn pass(&mut self, holder: Holder, prio: usize) {
        if let Turn::Of(at) = self.feed(holder, prio).turn {
            let rank = self.rank_in(holder, at) + 1;
            let next = self.member_from(holder, prio, rank);
            self.feed(holder, prio).turn = next.map_or(Turn::End, Turn::Of);
        }
    }

    /// The leaf whose turn it is in a row. A feed whose end was reached begins again, and the one above
    /// passes its turn.
    #[inline]
    fn leaf(&mut self, level: usize, prio: usize) -> Option<u32> {
        if self.row_mask[level] & 1 << prio == 0 {
            return None;
        }
        if let (0, Turn::Of(at)) = (level, self.rows[0][prio].turn) {
            return Some(at);
        }
        self.search_leaf(level, prio)
    }

    #[inline(never)]
    fn search_leaf(&mut self, level: usize, prio: usize) -> Option<u32> {
        let mut path = [Holder::Row(level); LEVELS + 1];
        let mut depth = 0;
        for _ in 0..MAX_STEPS {
            let holder = path[depth];
            match self.turn(holder, prio) {
                Some(at) if self.class(at).level == 0 => return Some(at),
                Some(at) => {
                    depth += 1;
                    path[depth] = Holder::Class(at);
                }
                None => {
                    let first = self.member_from(holder, prio, 0);
                    self.feed(holder, prio).turn = first.map_or(Turn::End, Turn::Of);
                    if depth > 0 {
                        depth -= 1;
                        self.pass(path[depth], prio);
                    } else if first.is_none() {
                        return None;
                    }
                }
            }
        }
        None
    }

    // --- activity

    /// A leaf has something to send.
    #[inline]
    pub(super) fn activate(&mut self, at: u32) {
        let class = self.class_mut(at);
        debug_assert!(class.inner.is_none(), "packets wait in leaves only");
        if class.activity == 0 {
            class.activity = 1 << class.prio;
            self.active += 1;
            self.rank();
            self.enter(at);
        }
    }

    /// A leaf has nothing to send any more.
    #[inline(never)]
    pub(super) fn deactivate(&mut self, at: u32) {
        if self.class(at).activity != 0 && self.class(at).inner.is_none() {
            self.rank();
            self.leave(at);
            self.class_mut(at).activity = 0;
            debug_assert!(self.active > 0, "a leaf that falls silent was counted");
            self.active -= 1;
            self.check_place(at);
        }
    }

    /// Marks an inner class as having nothing to send, though classes below it may: it leaves its row, and is
    /// back only when a class below becomes active at a priority that no other class below it has.
    pub(super) fn silence(&mut self, at: u32) {
        if self.class(at).activity != 0 && self.class(at).inner.is_some() {
            self.rank();
            self.leave(at);
            self.class_mut(at).activity = 0;
        }
    }

    /// Puts an active class where its mode requires: upwards through feeds, as far as ancestors become active
    /// by it, into a row.
    fn enter(&mut self, mut at: u32) {
        let mut mask = self.class(at).activity;
        while mask != 0 && self.class(at).mode == Mode::Borrow {
            let Some(parent) = self.class(at).parent() else { break };
            let holder = Holder::Class(parent);
            let mut newly = mask;
            for prio in bits(mask) {
                if !self.feed(holder, prio).members.is_empty() {
                    newly &= !(1 << prio);
                }
                self.join(holder, prio, at);
            }
            self.class_mut(at).in_feed |= mask;
            self.class_mut(parent).activity |= newly;
            mask = newly;
            at = parent;
        }
        if mask != 0 && self.class(at).mode == Mode::Send {
            let level = usize::from(self.class(at).level);
            self.row_mask[level] |= mask;
            for prio in bits(mask) {
                self.join(Holder::Row(level), prio, at);
            }
            self.class_mut(at).in_row |= mask;
        }
        self.check_place(at);
    }

    /// Takes an active class out of where its mode had put it.
    fn leave(&mut self, mut at: u32) {
        let mut mask = self.class(at).activity;
        while mask != 0 && self.class(at).mode == Mode::Borrow {
            let Some(parent) = self.class(at).parent() else { break };
            let holder = Holder::Class(parent);
            let (id, rank) = (self.class(at).id, self.class(at).sibling_rank);
            let mut emptied = 0;
            for prio in bits(mask) {
                let feed = self.feed(holder, prio);
                if matches!(feed.turn, Turn::Of(whose) if whose == at) {
                    feed.turn = Turn::From(id);
                }
                feed.members.remove(rank);
                if feed.members.is_empty() {
                    emptied |= 1 << prio;
                }
            }
            self.class_mut(at).in_feed &= !mask;
            self.class_mut(parent).activity &= !emptied;
            mask = emptied;
            at = parent;
        }
        if mask != 0 && self.class(at).mode == Mode::Send {
            let (level, rank) = (usize::from(self.class(at).level), self.class(at).rank);
            let holder = Holder::Row(level);
            for prio in bits(mask) {
                if matches!(self.feed(holder, prio).turn, Turn::Of(whose) if whose == at) {
                    self.pass(holder, prio);
                }
                let feed = self.feed(holder, prio);
                feed.members.remove(rank);
                if feed.members.is_empty() {
                    self.row_mask[level] &= !(1 << prio);
                }
            }
            self.class_mut(at).in_row &= !mask;
        }
    }

    /// What holds of a class between two operations: it is in its level's row only while it may send, in
    /// its parent's feed only while it may borrow, and in neither without activity.
    #[inline]
    fn check_place(&self, at: u32) {
        let class = self.class(at);
        debug_assert!(class.in_row == 0 || class.mode == Mode::Send, "a class in a row may send");
        debug_assert!(class.in_feed == 0 || class.mode == Mode::Borrow, "a class in a feed may borrow");
        debug_assert!(class.in_feed == 0 || class.parent().is_some(), "a class in a feed has a parent");
        debug_assert_eq!(
            (class.in_row | class.in_feed) & !class.activity,
            0,
            "only active classes take turns"
        );
    }

    /// What holds between two operations: a level's mask has the priorities whose rows have members.
    #[inline]
    fn check_row(&self, level: usize) {
        if cfg!(debug_assertions) {
            let busy = self.rows[level]
                .iter()
                .rev()
                .fold(0u8, |bits, row| bits << 1 | u8::from(!row.members.is_empty()));
            debug_assert_eq!(
                self.row_mask[level], busy,
                "a priority is in the mask while its row has members"
            );
        }
    }

    // --- modes

    /// Sets a class's mode from its tokens, `elapsed` ns after its checkpoint; returns how long until it can
    /// be better.
    fn update_mode(&mut self, at: u32, elapsed: i64) -> i64 {
        let class = self.class(at);
        let (mode, wait) = class.affordable(elapsed, self.hysteresis);
        let (old, activity) = (class.mode, class.activity);
        if mode == old {
            return wait;
        }
        if mode == Mode::Wait {
            self.overlimits = self.overlimits.wrapping_add(1);
            let class = self.class_mut(at);
            class.overlimits = class.overlimits.wrapping_add(1);
        }
        if activity != 0 && old != Mode::Wait {
            self.leave(at);
        }
        self.class_mut(at).mode = mode;
        if activity != 0 && mode != Mode::Wait {
            self.enter(at);
        }
        self.check_place(at);
        wait
    }

    fn wait(&mut self, at: u32, delay: i64) {
        debug_assert!(self.class(at).mode != Mode::Send, "who may send waits for nothing");
        let level = usize::from(self.class(at).level);
        let key = self.now + Nanos(delay.max(1) as u64);
        self.near_event[level] = self.near_event[level].min(key);
        self.waiting[level].insert(at, key);
    }

    /// Looks at the classes of a level whose time has come; returns when the next one's comes.
    #[inline(never)]
    fn events(&mut self, level: usize) -> Time {
        for _ in 0..MAX_EVENTS {
            let Some((key, at)) = self.waiting[level].first() else { return self.now + Nanos::secs(1) };
            if key > self.now {
                return key;
            }
            self.waiting[level].remove(at);
            let elapsed = (self.now.since(self.class(at).checkpoint).0 as i64).min(MAX_DEBT);
            let wait = self.update_mode(at, elapsed);
            if self.class(at).mode != Mode::Send {
                self.wait(at, wait);
            }
        }
        self.now
    }

    // --- sending

    /// The next packet, or when to ask again.
    pub(super) fn dequeue(&mut self, cx: &mut Context<'_>) -> Result<Pkt, Time> {
        self.rank();
        self.now = cx.now;
        self.hysteresis = cx.device.switches.htb_hysteresis;
        let mut next_event = self.now + Nanos::secs(5);
        for level in 0..LEVELS {
            if self.now >= self.near_event[level] {
                self.near_event[level] = self.events(level);
            }
            next_event = next_event.min(self.near_event[level]);
            self.check_row(level);
            // Priorities that become busy meanwhile wait for the next round, those that fall idle are passed
            // over.
            let mut prios = self.row_mask[level];
            while prios != 0 {
                if let Some(pkt) = self.serve(cx, level, prios.trailing_zeros() as usize) {
                    return Ok(pkt);
                }
                if cx.is_interrupted() {
                    return Err(next_event);
                }
                prios &= prios - 1;
            }
        }
        Err(next_event)
    }

    /// Packets in a row from the leaf whose turn it is, within its turn, while neither it nor an ancestor
    /// changes its mode: then all that happens between them is counting, and can be done at once.
    pub(super) fn dequeue_run(
        &mut self,
        cx: &mut Context<'_>,
        budget: &mut Budget,
        out: &mut Vec<Pkt>,
    ) -> bool {
        if !self.ranked || cx.now >= self.near_event[0] || self.row_mask[0] == 0 {
            return false;
        }
        let prio = self.row_mask[0].trailing_zeros() as usize;
        let Turn::Of(at) = self.rows[0][prio].turn else { return false };
        let left = self.class(at).deficit[0];
        if left < 0 || !self.class(at).child.knows_runs() || !self.can_pay(cx.now, at, left as u32) {
            return false;
        }
        self.now = cx.now;
        self.hysteresis = cx.device.switches.htb_hysteresis;
        let from = out.len();
        let turn = Budget { packets: budget.packets, bytes: budget.bytes.min(i64::from(left) + 1) };
        let mut rest = turn;
        let class = &mut self.classes[at as usize];
        if !class.child.dequeue_run(cx, &mut rest, out) {
            return false;
        }
        let bytes = turn.bytes - rest.bytes;
        budget.packets = rest.packets;
        budget.bytes -= bytes;
        class.bytes += bytes as u64;
        class.packets += (out.len() - from) as u64;
        class.deficit[0] = class.deficit[0].wrapping_sub(bytes as i32);
        let emptied = class.child.qlen() == 0;
        if class.deficit[0] < 0 {
            class.deficit[0] = class.deficit[0].wrapping_add(class.quantum);
            self.pass(Holder::Row(0), prio);
        }
        if emptied {
            self.deactivate(at);
        }
        if self.active > MANY && !matches!(self.rows[0][prio].turn, Turn::Of(same) if same == at) {
            self.touch_ahead(cx.pool, prio, (bytes / (out.len() - from) as i64) as u32);
        }
        self.charge_run(cx, at, &out[from..], bytes as u64);
        true
    }

    /// Can a leaf and all its ancestors pay for this many bytes, in packets of any number, without changing
    /// their modes?
    fn can_pay(&self, now: Time, leaf: u32, bytes: u32) -> bool {
        let mut next = Some(leaf);
        while let Some(at) = next {
            let class = self.class(at);
            let elapsed = (now.since(class.checkpoint).0 as i64).min(MAX_DEBT);
            let rests = class.rate.ns(bytes) as i64 <= (class.tokens + elapsed).min(class.buffer)
                && class.ceil.ns(bytes) as i64 <= (class.ctokens + elapsed).min(class.cbuffer);
            if !rests || class.mode != Mode::Send || !class.rate.is_plain() || !class.ceil.is_plain() {
                return false;
            }
            next = class.parent();
        }
        true
    }

    /// Charges packets that a leaf sent on its own at once.
    fn charge_run(&mut self, cx: &Context<'_>, leaf: u32, packets: &[Pkt], bytes: u64) {
        let mut next = Some(leaf);
        let hysteresis = self.hysteresis;
        while let Some(at) = next {
            let class = self.class_mut(at);
            next = class.parent();
            let elapsed = (cx.now.since(class.checkpoint).0 as i64).min(MAX_DEBT);
            let (mut cost, mut ceil_cost) = (0, 0);
            for pkt in packets {
                let len = cx.pool.meta(pkt).len;
                cost += class.rate.ns(len) as i64;
                ceil_cost += class.ceil.ns(len) as i64;
            }
            class.tokens = after(class.tokens + elapsed, class.buffer, cost);
            class.ctokens = after(class.ctokens + elapsed, class.cbuffer, ceil_cost);
            class.checkpoint = cx.now;
            if class.level > 0 {
                class.bytes += bytes;
                class.packets += packets.len() as u64;
            } else {
                class.lends = class.lends.wrapping_add(packets.len() as u32);
            }
            if class.affordable(0, hysteresis).0 != class.mode {
                self.change_mode(at);
            }
        }
    }

    /// The turn among leaves that send on their own was just passed on: loads what the ones after it need,
    /// the nearer the more, so that each line has been on its way for a turn when it is needed. `len` is that
    /// of the packets sent lately.
    fn touch_ahead(&self, pool: &mut Pool, prio: usize, len: u32) {
        let feed = &self.rows[0][prio];
        let Turn::Of(at) = feed.turn else { return };
        let mut from = self.class(at).rank + 1;
        for depths in AHEAD {
            let Some(rank) = feed.members.next(from) else { return };
            let class = self.class(self.sorted[rank as usize]);
            let room = if depths.start == 0 {
                black_box(class.mode);
                1
            } else {
                class.quantum as u32 / len.max(1) + 1
            };
            if let Some(child) = class.child.there() {
                depths.for_each(|depth| child.prefetch(pool, depth, room));
            }
            from = rank + 1;
        }
    }

    /// The feed that holds a leaf's turn when it is served at `level`.
    fn turn_holder(&self, at: u32, level: usize) -> Holder {
        match self.class(at).parent() {
            Some(parent) if level > 0 => Holder::Class(parent),
            _ => Holder::Row(0),
        }
    }

    #[inline]
    fn serve(&mut self, cx: &mut Context<'_>, level: usize, prio: usize) -> Option<Pkt> {
        let first = self.leaf(level, prio)?;
        match self.dequeue_leaf(cx, first, level, prio) {
            LeafOutcome::Packet(pkt) => Some(pkt),
            failed => self.serve_others(cx, level, prio, first, failed),
        }
    }

    /// The first leaf gave nothing: polls the others.
    #[cold]
    fn serve_others(
        &mut self,
        cx: &mut Context<'_>,
        level: usize,
        prio: usize,
        first: u32,
        mut failed: LeafOutcome,
    ) -> Option<Pkt> {
        let (mut start, mut at) = (first, first);
        for _ in 0..MAX_STEPS {
            if cx.is_interrupted() {
                // The same leaf continues.
                return None;
            }
            if failed == LeafOutcome::Idle {
                // Its qdisc dropped everything meanwhile.
                self.deactivate(at);
                let next = self.leaf(level, prio)?;
                if at == start {
                    start = next;
                }
                at = next;
            } else {
                // The leaf's backlog may not leave yet: the next leaf's turn.
                self.pass(self.turn_holder(at, level), prio);
                at = self.leaf(level, prio)?;
                if at == start {
                    return None;
                }
            }
            match self.dequeue_leaf(cx, at, level, prio) {
                LeafOutcome::Packet(pkt) => return Some(pkt),
                again => failed = again,
            }
        }
        None
    }

    /// Asks a leaf for a packet.
    #[inline]
    fn dequeue_leaf(&mut self, cx: &mut Context<'_>, at: u32, level: usize, prio: usize) -> LeafOutcome {
        let child = &mut self.classes[at as usize].child;
        if child.qlen() == 0 {
            return LeafOutcome::Idle;
        }
        let lost = cx.dropped.packets;
        let result = child.dequeue_fresh(cx);
        let emptied = child.qlen() == 0;
        if emptied && cx.dropped.packets != lost {
            // It dropped its backlog: it becomes idle before its turn is counted.
            self.deactivate(at);
        }
        let Dequeue::Packet(pkt) = result else { return LeafOutcome::HeldBack };
        let len = cx.pool.meta(&pkt).len;
        let class = &mut self.classes[at as usize];
        debug_assert!(class.inner.is_none(), "leaves send");
        class.bytes += u64::from(len);
        class.packets += 1;
        // It wraps, as in Linux: with packets longer than the quantum it falls with each of them.
        class.deficit[level] = class.deficit[level].wrapping_sub(len as i32);
        if class.deficit[level] < 0 {
            class.deficit[level] = class.deficit[level].wrapping_add(class.quantum);
            self.end_turn(cx.pool, at, level, prio, len);
        }
        if emptied {
            self.deactivate(at);
        }
        self.charge(cx.now, at, level, len);
        LeafOutcome::Packet(pkt)
    }

    /// A leaf has sent its quantum.
    #[inline(never)]
    fn end_turn(&mut self, pool: &mut Pool, at: u32, level: usize, prio: usize, len: u32) {
        self.pass(self.turn_holder(at, level), prio);
        if level == 0 && self.active > MANY {
            self.touch_ahead(pool, prio, len);
        }
    }

    /// Charges a leaf's packet to it and its ancestors; those below the level that lent only borrow.
    #[inline]
    fn charge(&mut self, now: Time, leaf: u32, level: usize, len: u32) {
        let mut next = Some(leaf);
        let hysteresis = self.hysteresis;
        while let Some(at) = next {
            let class = self.class_mut(at);
            next = class.parent();
            class.pay(now, level, len);
            if class.level > 0 {
                class.bytes += u64::from(len);
                class.packets += 1;
            }
            if class.affordable(0, hysteresis).0 != class.mode {
                self.change_mode(at);
            }
        }
    }

    /// A class that was just charged can afford another mode than it has.
    #[inline(never)]
    fn change_mode(&mut self, at: u32) {
        let (old, level) = (self.class(at).mode, usize::from(self.class(at).level));
        let wait = self.update_mode(at, 0);
        if old != Mode::Send {
            self.waiting[level].remove(at);
        }
        if self.class(at).mode != Mode::Send {
            self.wait(at, wait);
        }
    }
}

impl Class {
    /// Pays for `len` bytes sent at `level`, on its own or, below that, on what it borrowed.
    #[inline]
    fn pay(&mut self, now: Time, level: usize, len: u32) {
        let elapsed = (now.since(self.checkpoint).0 as i64).min(MAX_DEBT);
        let own = usize::from(self.level);
        if own >= level {
            self.lends = self.lends.wrapping_add(u32::from(own == level));
            self.tokens = pay(self.tokens + elapsed, self.buffer, &self.rate, len);
        } else {
            self.borrows = self.borrows.wrapping_add(1);
            self.tokens += elapsed;
        }
        self.ctokens = pay(self.ctokens + elapsed, self.cbuffer, &self.ceil, len);
        debug_assert!(self.ctokens <= self.cbuffer, "a bucket holds no more than its burst");
        debug_assert!(self.tokens > -MAX_DEBT && self.ctokens > -MAX_DEBT, "a debt has a bound");
        self.checkpoint = now;
    }

    /// The mode that its tokens allow `elapsed` ns after its checkpoint, and how long until it can be better.
    #[inline]
    fn affordable(&self, elapsed: i64, hysteresis: bool) -> (Mode, i64) {
        let (tokens, ctokens) = (self.tokens + elapsed, self.ctokens + elapsed);
        let (floor, high) = if hysteresis { self.late_thresholds() } else { (0, 0) };
        if ctokens < floor {
            (Mode::Wait, -ctokens)
        } else if tokens >= high {
            (Mode::Send, elapsed)
        } else {
            (Mode::Borrow, -tokens)
        }
    }

    /// How few ceiling tokens it may have before it must wait, and how few tokens to send on its own, where
    /// modes change late.
    #[cold]
    fn late_thresholds(&self) -> (i64, i64) {
        let floor = if self.mode == Mode::Wait { 0 } else { -self.cbuffer };
        (floor, if self.mode == Mode::Send { -self.buffer } else { 0 })
    }
}

/// Tokens after paying: first capped at the bucket, never below the greatest debt.
#[inline]
fn after(tokens: i64, bucket: i64, cost: i64) -> i64 {
    (tokens.min(bucket) - cost).max(1 - MAX_DEBT)
}

/// Tokens after paying for `len` bytes.
#[inline]
fn pay(tokens: i64, bucket: i64, price: &Price, len: u32) -> i64 {
    after(tokens, bucket, price.ns(len) as i64)
}

/// The numbers of the bits set, ascending.
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (bit < 8).then_some(bit)
    })
}

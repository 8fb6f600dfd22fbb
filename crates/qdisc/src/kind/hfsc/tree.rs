//! The scheduler: by the real-time curves what is due, by the link-sharing curves what is left.
//!
//! A leaf with a real-time curve is *eligible* from when it must be served so that no deadline is missed
//! later; of the eligible ones the earliest deadline goes first. When none is eligible the walk goes from the
//! root down, at each class to the child with the least virtual time that *fits*, that is, whose upper limits
//! (its own, and one below it) let it send now. What real time gave counts in link sharing too. Times are
//! ticks of 64 ns; 0 as a fit means that nothing holds the class back.

use super::{Class, Curves};
use crate::algo::{Curve, Ordered, Orders};
use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::Handle;

/// The class at the top, which is the qdisc itself.
pub(super) const ROOT: u32 = 0;

/// What a class remembers of its service.
#[derive(Default)]
pub(super) struct State {
    /// Bytes sent, and those of them sent by the real-time curve.
    pub(super) work: u64,
    pub(super) rtwork: u64,
    deadline: Curve,
    eligible: Curve,
    virtual_curve: Curve,
    limit: Curve,
    /// When it may and when it must be served next by real time.
    eligible_at: u64,
    due: u64,
    /// Its virtual time, and what was added to keep it level with its siblings.
    vt: u64,
    vt_added: u64,
    /// When it fits its own upper limit, and that or a later one below it.
    own_fit: u64,
    fit: u64,
    /// Of its active children: the virtual time that was served last, and the latest at which one fell
    /// silent.
    kids_vt: u64,
    kids_left: u64,
    /// It waited for its deadline when the qdisc was reset: it counts as served for ever.
    stranded: bool,
    /// Times it became active, and its parent's count when it did last.
    pub(super) period: u32,
    parent_period: u32,
    /// Active children; of a leaf: 1 while it is active.
    active: u32,
    /// Active children in order of virtual time, each with its fit.
    kids: Ordered,
}

pub(super) struct Tree {
    /// By slot, the root first. A deleted class keeps its slot, marked by an id of none, until another takes
    /// it.
    pub(super) classes: Vec<Class>,
    free: Vec<u32>,
    /// Places among siblings.
    turns: Orders,
    /// Places among those that wait for real-time service, with their deadlines.
    waits: Orders,
    waiting: Ordered,
}

impl Tree {
    pub(super) fn new(root: Class) -> Tree {
        Tree {
            classes: vec![root],
            free: Vec::new(),
            turns: Orders::default(),
            waits: Orders::default(),
            waiting: Ordered::default(),
        }
    }

    pub(super) fn class(&self, at: u32) -> &Class {
        &self.classes[at as usize]
    }
    pub(super) fn class_mut(&mut self, at: u32) -> &mut Class {
        &mut self.classes[at as usize]
    }
    fn state(&mut self, at: u32) -> &mut State {
        &mut self.classes[at as usize].state
    }

    // --- configuration

    /// Puts a class in; all above it may rise by a level.
    pub(super) fn add(&mut self, class: Class) -> u32 {
        let mut above = class.parent;
        let mut level = class.level;
        let at = match self.free.pop() {
            Some(at) => {
                self.classes[at as usize] = class;
                at
            }
            None => {
                self.classes.push(class);
                self.classes.len() as u32 - 1
            }
        };
        while let Some(parent) = above {
            let class = self.class_mut(parent);
            if class.level > level {
                break;
            }
            class.level = level + 1;
            (level, above) = (class.level, class.parent);
        }
        at
    }

    /// Takes a silent leaf out; all above it may sink by a level.
    pub(super) fn remove(&mut self, at: u32) -> Option<Class> {
        let mut above = self.class(at).parent;
        let mut gone = Class::empty_slot();
        core::mem::swap(&mut gone, self.class_mut(at));
        self.free.push(at);
        while let Some(parent) = above {
            let levels =
                self.classes.iter().filter(|class| class.parent == Some(parent)).map(|class| class.level + 1);
            let level = levels.max().unwrap_or(0);
            let class = self.class_mut(parent);
            if class.level == level {
                break;
            }
            class.level = level;
            above = class.parent;
        }
        (!gone.id.is_none()).then_some(gone)
    }

    /// Gives a class new curves; those that are not given stay.
    pub(super) fn set_curves(&mut self, at: u32, new: &Curves, now: u64) {
        let Class { curves, state, .. } = self.class_mut(at);
        if let Some(rt) = &new.rt {
            curves.rt = Some(*rt);
            state.deadline = Curve::from(rt, now, state.rtwork);
            state.eligible = if rt.is_convex() { state.deadline.straight() } else { state.deadline };
        }
        if let Some(ls) = &new.ls {
            curves.ls = Some(*ls);
            state.virtual_curve = Curve::from(ls, state.vt, state.work);
        }
        if let Some(ul) = &new.ul {
            curves.ul = Some(*ul);
            state.limit = Curve::from(ul, now, state.work);
        }
    }

    /// Every queue was emptied: all begin again, but those that waited for their deadline. Linux takes them
    /// out of the tree and not the tree out of them: it holds them to be served, and so they never are
    /// (recorded: down-up-hfsc).
    pub(super) fn forget(&mut self) {
        for at in 0..self.classes.len() as u32 {
            let stranded = self.class(at).state.stranded || self.waits.is_inside(at);
            let class = self.class_mut(at);
            class.state = State { stranded, ..State::default() };
            class.state.begin(&class.curves);
        }
        (self.turns, self.waits, self.waiting) = (Orders::default(), Orders::default(), Ordered::default());
    }

    // --- activity

    /// Is the class served, by whichever curve?
    pub(super) fn is_active(&self, at: u32) -> bool {
        let class = self.class(at);
        let shares = class.curves.ls.is_some() && class.state.active > 0;
        shares || class.state.stranded || self.waits.is_inside(at)
    }

    /// A leaf has its first packet, of `len` bytes.
    pub(super) fn activate(&mut self, at: u32, len: u32, now: u64) {
        if self.class(at).curves.rt.is_some() {
            self.begin_real_time(at, len, now);
        }
        if self.class(at).curves.ls.is_some() {
            self.begin_sharing(at, now);
        }
    }

    /// A leaf has curves that it had not, or others, while packets wait in it; the next has `len` bytes.
    pub(super) fn curves_changed(&mut self, at: u32, len: u32, now: u64, (had_rt, had_ls): (bool, bool)) {
        let (rt, ls) = (self.class(at).curves.rt.is_some(), self.class(at).curves.ls.is_some());
        if rt && had_rt {
            self.next_real_time(at, len);
        } else if rt {
            self.begin_real_time(at, len, now);
        }
        if ls && had_ls {
            self.account(at, 0, false);
        } else if ls {
            self.begin_sharing(at, now);
        }
    }

    /// A leaf has nothing to send any more, and not by sending it.
    pub(super) fn silence(&mut self, at: u32) {
        self.hear(at, true);
    }

    /// Sets whether a leaf has anything to send. If it is marked idle with a backlog, it stays among its
    /// siblings, but no longer waits for its deadline.
    pub(super) fn hear(&mut self, at: u32, is_so: bool) {
        if self.class(at).state.active > 0 {
            self.account(at, 0, is_so);
        }
        self.waits.remove(&mut self.waiting, at);
        self.class_mut(at).state.stranded = false;
    }

    fn begin_real_time(&mut self, at: u32, len: u32, now: u64) {
        let Class { curves, state, .. } = self.class_mut(at);
        let Some(rt) = &curves.rt else { return };
        state.deadline.at_most(rt, now, state.rtwork);
        // With a convex curve it would be too late to wait for the deadline: all later ones must be met as
        // well.
        state.eligible = if rt.is_convex() { state.deadline.straight() } else { state.deadline };
        self.next_real_time(at, len);
    }

    /// When the next packet, of `len` bytes, may and must be served by real time.
    pub(super) fn next_real_time(&mut self, at: u32, len: u32) {
        let state = self.state(at);
        state.eligible_at = state.eligible.time_of(state.rtwork);
        state.due = state.deadline.time_of(state.rtwork.wrapping_add(u64::from(len)));
        let (eligible_at, due) = (state.eligible_at, state.due);
        self.waits.remove(&mut self.waiting, at);
        self.waits.insert(&mut self.waiting, at, eligible_at, due);
    }

    /// When it must: it was served by link sharing, so nothing else has changed.
    pub(super) fn next_deadline(&mut self, at: u32, len: u32) {
        let state = self.state(at);
        state.due = state.deadline.time_of(state.rtwork.wrapping_add(u64::from(len)));
        let due = state.due;
        self.waits.set_value(&mut self.waiting, at, due);
    }

    /// A leaf takes part in link sharing, and with it those above it that did not yet.
    fn begin_sharing(&mut self, leaf: u32, now: u64) {
        let (mut at, mut newly) = (leaf, true);
        while let Some(parent) = self.class(at).parent {
            if newly {
                let state = self.state(at);
                state.active += 1;
                newly = state.active == 1;
            }
            if newly {
                self.enter(at, parent, now);
            }
            self.refit(at, parent);
            at = parent;
        }
    }

    /// A class comes to its siblings: in the middle of those that are served, so that it neither gains nor
    /// drops by having been away.
    fn enter(&mut self, at: u32, parent: u32, now: u64) {
        let kids = self.class(parent).state.kids;
        let latest = self.turns.last(kids).map(|last| self.class(last).state.vt);
        let above = &mut self.classes[parent as usize].state;
        let (period, idle, served, left) = (above.period, above.active == 0, above.kids_vt, above.kids_left);
        if latest.is_none() {
            above.kids_vt = 0;
        }
        let Class { curves, state, .. } = self.class_mut(at);
        match latest {
            Some(latest) => {
                let middle = if served == 0 { latest } else { served.wrapping_add(latest) / 2 };
                if state.parent_period != period || middle > state.vt {
                    state.vt = middle;
                }
            }
            None => state.vt = left,
        }
        if let Some(ls) = &curves.ls {
            state.virtual_curve.at_most(ls, state.vt, state.work);
        }
        state.vt_added = 0;
        state.period = state.period.wrapping_add(1);
        state.parent_period = period.wrapping_add(u32::from(idle));
        state.fit = 0;
        let vt = state.vt;
        if let Some(ul) = &curves.ul {
            state.limit.at_most(ul, now, state.work);
            state.own_fit = state.limit.time_of(state.work);
        }
        self.turns.insert(&mut self.classes[parent as usize].state.kids, at, vt, 0);
    }

    /// Sets when a class fits, by its own limit and those below it.
    fn refit(&mut self, at: u32, parent: u32) {
        let state = &self.class(at).state;
        let fit = state.own_fit.max(self.turns.least(state.kids).unwrap_or(0));
        if fit != state.fit {
            self.state(at).fit = fit;
            self.turns.set_value(&mut self.classes[parent as usize].state.kids, at, fit);
        }
    }

    /// A leaf sent `len` bytes: counts them all the way up, and moves the virtual times on. `last`: nothing
    /// waits in it any more.
    pub(super) fn account(&mut self, leaf: u32, len: u32, last: bool) {
        let mut leaving = last && self.class(leaf).curves.ls.is_some();
        let mut at = leaf;
        while let Some(parent) = self.class(at).parent {
            let served = self.class(parent).state.kids_vt;
            let Class { curves, state, .. } = self.class_mut(at);
            state.work = state.work.wrapping_add(u64::from(len));
            if curves.ls.is_none() || state.active == 0 {
                at = parent;
                continue;
            }
            if leaving {
                state.active -= 1;
                leaving = state.active == 0;
            }
            state.vt = state.virtual_curve.time_of(state.work).wrapping_add(state.vt_added);
            if state.vt < served {
                // It was passed over for its upper limit, and does not catch up.
                state.vt_added = state.vt_added.wrapping_add(served - state.vt);
                state.vt = served;
            }
            debug_assert!(state.vt >= served, "no class lags behind what its siblings were served at");
            let (vt, fit) = (state.vt, state.fit);
            if curves.ul.is_some() && !leaving {
                state.own_fit = state.limit.time_of(state.work);
            }
            let above = &mut self.classes[parent as usize].state;
            self.turns.remove(&mut above.kids, at);
            if leaving {
                above.kids_left = above.kids_left.max(vt);
            } else {
                self.turns.insert(&mut above.kids, at, vt, fit);
                self.refit(at, parent);
            }
            at = parent;
        }
    }

    // --- serving

    /// The class to serve at `now`, and whether by its real-time curve.
    pub(super) fn choose(&mut self, now: u64) -> Option<(u32, bool)> {
        if let Some(at) = self.waits.least_up_to(self.waiting, now) {
            debug_assert!(
                self.class(at).state.eligible_at <= now,
                "real time serves those whose time has come"
            );
            return Some((at, true));
        }
        let mut at = ROOT;
        while self.class(at).level > 0 {
            let next = self.turns.first_within(self.class(at).state.kids, now)?;
            debug_assert!(
                self.class(next).state.fit <= now,
                "link sharing serves those whose limits allow it"
            );
            debug_assert!(self.class(next).level < self.class(at).level, "levels fall on the way down");
            debug_assert!(self.class(next).state.active > 0, "only the active take turns");
            let vt = self.class(next).state.vt;
            let state = self.state(at);
            state.kids_vt = state.kids_vt.max(vt);
            at = next;
        }
        Some((at, false))
    }

    /// When a class can next be served, if none can be now.
    pub(super) fn next_event(&self) -> Option<u64> {
        let eligible = self.waits.first(self.waiting).map(|at| self.class(at).state.eligible_at);
        let fits = self.turns.least(self.class(ROOT).state.kids).filter(|fit| *fit != 0);
        eligible.into_iter().chain(fits).min()
    }
}

impl State {
    /// Curves that begin at time 0, as those of a new class do.
    fn begin(&mut self, curves: &Curves) {
        if let Some(rt) = &curves.rt {
            self.deadline = Curve::from(rt, 0, 0);
            self.eligible = if rt.is_convex() { self.deadline.straight() } else { self.deadline };
        }
        if let Some(ls) = &curves.ls {
            self.virtual_curve = Curve::from(ls, 0, 0);
        }
        if let Some(ul) = &curves.ul {
            self.limit = Curve::from(ul, 0, 0);
        }
    }
}

impl Class {
    /// What is left of a deleted class.
    fn empty_slot() -> Class {
        Class {
            id: Handle::NONE,
            parent: None,
            level: 0,
            packets: 0,
            bytes: 0,
            drops: 0,
            filters: Default::default(),
            curves: Curves::default(),
            state: State::default(),
            child: None,
        }
    }
}

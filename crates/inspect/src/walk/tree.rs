//! All packets at once through the queueing tree of a device: which come to each class, and why.

use crate::reading::{CLSACT_EGRESS, PolicyModel};
use crate::sets::bdd::{Set, TooLarge};
use crate::sets::set::Space;
use crate::walk::list::{Coming, List, Lists};
use crate::walk::outcome::Verdict;
use crate::walk::state::{Parts, Priority, States};
use crate::walk::u32::U32Tables;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_packet::Handle;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{Kind, PrioParams, QdiscParams};

/// How often HTB and HFSC ask filters for one packet, as the kernel does.
const MOST_HOPS: usize = 9;
/// How deep qdiscs may be nested.
const DEEPEST_TREE: usize = 16;
/// The handle of ingress and clsact.
pub(crate) const HOOKS: Handle = Handle::new(0xffff, 0);

/// What is known of a filter.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterSeen {
    /// Packets that came to its list and meet its conditions.
    pub(crate) eligible: Parts,
    /// Those that it got.
    pub(crate) matched: Parts,
    /// Both may be fewer: whether it matches is not known of some.
    pub(crate) open: bool,
}

/// How packets come to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    /// By a filter, a priority or a map.
    Word,
    /// By a hash: which packets these are is chance.
    Hash,
    /// By default.
    Default,
}

/// A class or an end like it.
pub(crate) type Place = (String, Handle);

/// What was seen, over all ways.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Of each filter, by its number in the reading.
    pub(crate) filters: BTreeMap<usize, FilterSeen>,
    /// Packets that came to each list.
    pub(crate) lists: BTreeMap<Place, Parts>,
    /// Packets that came to each leaf class.
    pub(crate) classes: BTreeMap<(Place, By), Parts>,
    /// Packets that HTB sent past all its classes.
    pub(crate) direct: BTreeMap<(Place, By), Parts>,
    /// Packets that a qdisc dropped for want of a class: a filter named one that is not there, or none did.
    pub(crate) unclassified: BTreeMap<(Place, By), Parts>,
    /// Devices where what a filter or a hash makes of a packet is not known.
    pub(crate) guessed: BTreeSet<String>,
    /// Packets that filters redirected to another device and that were not followed there yet.
    pub(crate) led: Vec<Led>,
}

/// Packets that filters redirected from one device to another.
#[derive(Clone, Debug)]
pub(crate) struct Led {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) way: usize,
    pub(crate) set: Set,
    pub(crate) coming: Coming,
    /// They were on their way out.
    pub(crate) out: bool,
}

/// The classes of each device; true: it has none below it.
pub(crate) type Classes = BTreeMap<String, BTreeMap<Handle, bool>>;

/// The classes of a policy.
pub(crate) fn classes_of(reading: &PolicyModel) -> Classes {
    let mut classes = Classes::new();
    for dump in &reading.classes {
        classes.entry(dump.dev.clone()).or_default().insert(dump.classid, true);
    }
    for dump in &reading.classes {
        if let Some(above) = classes.get_mut(&dump.dev).and_then(|device| device.get_mut(&dump.parent)) {
            *above = false;
        }
    }
    classes
}

/// The place of packets in a tree.
#[derive(Clone, Copy)]
struct Within<'a> {
    dev: &'a str,
    qdisc: &'a QdiscDump,
    depth: usize,
}

/// A walk through one device's tree.
pub(crate) struct Tree<'a> {
    pub(crate) lists: Lists<'a>,
    pub(crate) reading: &'a PolicyModel,
    pub(crate) all_lists: &'a BTreeMap<Place, List>,
    pub(crate) classes: &'a Classes,
    pub(crate) seen: &'a mut Seen,
    pub(crate) way: usize,
    /// How packets come to the next list, as filters have left it so far.
    pub(crate) coming: Coming,
}

impl Tree<'_> {
    /// Sends packets into the root of a device.
    pub(crate) fn enter(&mut self, dev: &str, set: Set) -> Result<(), TooLarge> {
        let root = self.reading.qdiscs.iter().find(|qdisc| qdisc.dev == dev && qdisc.parent == Handle::ROOT);
        let Some(root) = root else { return Ok(()) };
        self.qdisc(Within { dev, qdisc: root, depth: 0 }, set)
    }

    /// Sends packets through the filters of a hook, `ffff:` or one of clsact's; those that continue are
    /// returned.
    pub(crate) fn hook(&mut self, dev: &str, parent: Handle, set: Set) -> Result<Set, TooLarge> {
        let (verdicts, rest) = self.ask(dev, parent, HOOKS, set)?;
        let mut passed = rest;
        for (verdict, part) in verdicts {
            match verdict {
                Verdict::Class(_) | Verdict::Spread(..) => passed = self.space().store.or(passed, part)?,
                Verdict::Drop => {}
                Verdict::Redirect(to) => self.lead(dev, to, part, parent == CLSACT_EGRESS),
            }
        }
        Ok(passed)
    }

    fn space(&mut self) -> &mut Space {
        self.lists.space
    }

    fn lead(&mut self, from: &str, to: String, set: Set, out: bool) {
        let (way, coming) = (self.way, self.coming);
        self.seen.led.push(Led { from: from.to_owned(), to, way, set, coming, out });
    }

    fn qdisc(&mut self, at: Within<'_>, set: Set) -> Result<(), TooLarge> {
        if set.is_empty() {
            return Ok(());
        }
        if at.depth > DEEPEST_TREE {
            return Err(TooLarge);
        }
        match &at.qdisc.params {
            QdiscParams::Htb(_) | QdiscParams::Hfsc(_) => self.hierarchy(at, set),
            QdiscParams::Prio(params) => self.prio(at, params, set),
            QdiscParams::Ets(params) => {
                let mut map = PrioParams { bands: params.bands.into(), ..PrioParams::default() };
                map.priomap.iter_mut().zip(&params.priomap).for_each(|(slot, band)| *slot = *band);
                self.prio(at, &map, set)
            }
            _ if at.qdisc.kind.classes_are_made() => self.flat(at, set),
            _ => {
                // Filters share out among flows, or there is one class.
                for (verdict, part) in self.ask(at.dev, at.qdisc.handle, at.qdisc.handle, set)?.0 {
                    self.leaves(at.dev, verdict, part);
                }
                if at.qdisc.kind.classes() != tidegate_policy::ClassLayout::One {
                    return Ok(());
                }
                let below = self
                    .reading
                    .qdiscs
                    .iter()
                    .filter(|qdisc| qdisc.dev == at.dev && hangs_on(qdisc, at.qdisc));
                let below: Vec<&QdiscDump> = below.collect();
                below
                    .into_iter()
                    .try_for_each(|qdisc| self.qdisc(Within { qdisc, depth: at.depth + 1, ..at }, set))
            }
        }
    }

    /// HTB and HFSC: by priority, else by filters from the root down, else the default.
    fn hierarchy(&mut self, at: Within<'_>, set: Set) -> Result<(), TooLarge> {
        let own = at.qdisc.handle;
        let htb = at.qdisc.kind == Kind::Htb;
        let mut heads: BTreeMap<Handle, Set> = BTreeMap::new();
        for (class, part) in self.by_priority(at, set)? {
            if class == own && htb {
                self.end(At::Direct(By::Word), at, part)?;
            } else if self.is_leaf(at.dev, class) {
                self.leaf(at, class, By::Word, part)?;
            } else {
                // HTB continues from an inner class; HFSC ignores such a priority.
                let head = if htb && self.has(at.dev, class) { class } else { own };
                let known = heads.entry(head).or_insert(Set::NONE);
                *known = self.lists.space.store.or(*known, part)?;
            }
        }
        let mut undecided = Set::NONE;
        for _ in 0..MOST_HOPS {
            let mut next = BTreeMap::new();
            for (head, part) in std::mem::take(&mut heads) {
                let rest = self.below_head(at, head, part, &mut next)?;
                undecided = self.space().store.or(undecided, rest)?;
            }
            heads = next;
            if heads.is_empty() {
                break;
            }
        }
        for part in heads.into_values() {
            self.end(At::Unclassified(By::Word), at, part)?;
        }
        self.default(at, undecided)
    }

    /// Evaluates the filters of the root or of an inner class; unmatched packets are returned, for the
    /// default.
    fn below_head(
        &mut self,
        at: Within<'_>,
        head: Handle,
        set: Set,
        next: &mut BTreeMap<Handle, Set>,
    ) -> Result<Set, TooLarge> {
        let own = at.qdisc.handle;
        let (verdicts, mut rest) = self.ask(at.dev, head, own, set)?;
        for (verdict, part) in verdicts {
            for (class, by) in self.named(at, &verdict) {
                if class == own && at.qdisc.kind == Kind::Htb {
                    self.end(At::Direct(by), at, part)?;
                } else if self.is_leaf(at.dev, class) && class.qdisc() == own {
                    self.leaf(at, class, by, part)?;
                } else if self.has(at.dev, class) && class.qdisc() == own {
                    let known = next.entry(class).or_insert(Set::NONE);
                    *known = self.lists.space.store.or(*known, part)?;
                } else {
                    rest = self.space().store.or(rest, part)?;
                }
            }
            self.leaves(at.dev, verdict, part);
        }
        Ok(rest)
    }

    fn default(&mut self, at: Within<'_>, set: Set) -> Result<(), TooLarge> {
        let minor = match &at.qdisc.params {
            QdiscParams::Htb(htb) => htb.default as u16,
            QdiscParams::Hfsc(hfsc) => hfsc.default,
            _ => 0,
        };
        let class = at.qdisc.handle.class(minor);
        match (self.is_leaf(at.dev, class), at.qdisc.kind) {
            (true, _) => self.leaf(at, class, By::Default, set),
            (false, Kind::Htb) => self.end(At::Direct(By::Default), at, set),
            _ => self.end(At::Unclassified(By::Default), at, set),
        }
    }

    /// DRR and QFQ: by priority, else by filters; without a class a packet is dropped.
    fn flat(&mut self, at: Within<'_>, set: Set) -> Result<(), TooLarge> {
        let own = at.qdisc.handle;
        let mut to_filters = Set::NONE;
        for (class, part) in self.by_priority(at, set)? {
            if self.has(at.dev, class) {
                self.leaf(at, class, By::Word, part)?;
            } else {
                to_filters = self.space().store.or(to_filters, part)?;
            }
        }
        let (verdicts, rest) = self.ask(at.dev, own, own, to_filters)?;
        let mut nowhere = Set::NONE;
        for (verdict, part) in verdicts {
            for (class, by) in self.named(at, &verdict) {
                if self.has(at.dev, class) && class.qdisc() == own {
                    self.leaf(at, class, by, part)?;
                } else {
                    nowhere = self.space().store.or(nowhere, part)?;
                }
            }
            self.leaves(at.dev, verdict, part);
        }
        self.end(At::Unclassified(By::Word), at, nowhere)?;
        self.end(At::Unclassified(By::Default), at, rest)
    }

    /// prio: by priority if that names a band, else by filters, else by the map.
    fn prio(&mut self, at: Within<'_>, params: &PrioParams, set: Set) -> Result<(), TooLarge> {
        let own = at.qdisc.handle;
        let band = |class: Handle| match u32::from(class.minor()).wrapping_sub(1) {
            band if band < params.bands => own.class(class.minor()),
            _ => own.class(u16::from(params.priomap[0]) + 1),
        };
        let mut to_filters = Set::NONE;
        for (class, part) in self.by_priority(at, set)? {
            if class.qdisc() == own {
                self.leaf(at, band(class), By::Word, part)?;
            } else {
                to_filters = self.space().store.or(to_filters, part)?;
            }
        }
        let (verdicts, rest) = self.ask(at.dev, own, own, to_filters)?;
        for (verdict, part) in verdicts {
            for (class, by) in self.named(at, &verdict) {
                self.leaf(at, band(class), by, part)?;
            }
            self.leaves(at.dev, verdict, part);
        }
        self.mapped(at, params, rest)
    }

    /// What prio's map makes of priorities.
    fn mapped(&mut self, at: Within<'_>, params: &PrioParams, set: Set) -> Result<(), TooLarge> {
        let states = &*self.lists.states;
        let own = at.qdisc.handle;
        let small = |n: u32| match states.get(n).priority {
            Priority::Is(number) if Handle(number).major() == 0 => number & 15,
            Priority::Is(_) => 0,
            Priority::OfDs(rewrite) => 1 << 16 | u32::from(rewrite.keep) << 8 | u32::from(rewrite.flip),
        };
        let parts = self.lists.space.store.split(self.coming.states, set, &small)?;
        for (group, part) in parts {
            let of = |priority: u32| own.class(u16::from(params.priomap[priority as usize & 15]) + 1);
            if group < 16 {
                self.leaf(at, of(group), By::Default, part)?;
                continue;
            }
            let rewrite = crate::sets::set::Rewrite { keep: (group >> 8) as u8, flip: group as u8 };
            for ds in [0x00, 0x08, 0x10, 0x18] {
                let named = self.space().ds(ds, 0x18, rewrite)?;
                let part = self.space().store.and(part, named)?;
                self.leaf(at, of(tidegate_gateway::tos_priority(ds)), By::Default, part)?;
            }
        }
        Ok(())
    }

    /// A set by the class that the priority names, if that is one of this qdisc's; [`Handle::NONE`]
    /// otherwise.
    fn by_priority(&mut self, at: Within<'_>, set: Set) -> Result<Vec<(Handle, Set)>, TooLarge> {
        let states = &*self.lists.states;
        let own = at.qdisc.handle;
        let class = |n: u32| {
            let class = states.get(n).priority.class();
            if class.qdisc() == own && !class.is_none() { class.0 } else { 0 }
        };
        let parts = self.lists.space.store.split(self.coming.states, set, &class)?;
        Ok(parts.into_iter().map(|(class, part)| (Handle(class), part)).collect())
    }

    fn ask(
        &mut self,
        dev: &str,
        parent: Handle,
        qdisc: Handle,
        set: Set,
    ) -> Result<(Vec<(Verdict, Set)>, Set), TooLarge> {
        let place = (dev.to_owned(), parent);
        let Some(list) = self.all_lists.get(&place) else { return Ok((Vec::new(), set)) };
        self.seen.lists.entry(place).or_default().add(self.lists.space, self.way, set)?;
        let listed = self.lists.ask(dev, list, qdisc, set, self.coming)?;
        (self.coming.states, self.coming.unsure) = (listed.states, listed.unsure);
        let mut guessed = listed.guessed;
        for (_, part) in listed.verdicts.iter().filter(|(verdict, _)| matches!(verdict, Verdict::Spread(..)))
        {
            self.coming.unsure = self.lists.space.store.or(self.coming.unsure, *part)?;
            guessed = true;
        }
        if guessed {
            self.seen.guessed.insert(dev.to_owned());
        }
        for (at, met) in listed.filters {
            let seen = self.seen.filters.entry(at).or_default();
            seen.eligible.add(self.lists.space, self.way, met.eligible)?;
            seen.matched.add(self.lists.space, self.way, met.matched)?;
            seen.open |= met.open;
        }
        Ok((listed.verdicts, listed.rest))
    }

    /// The classes that a verdict may mean.
    fn named(&self, at: Within<'_>, verdict: &Verdict) -> Vec<(Handle, By)> {
        match verdict {
            Verdict::Class(class) => vec![(*class, By::Word)],
            Verdict::Spread(base, count) => {
                let own = self.classes.get(at.dev).into_iter().flat_map(BTreeMap::keys);
                let among = |class: &&Handle| {
                    class.qdisc() == base.qdisc()
                        && u32::from(class.minor().wrapping_sub(base.minor())) < *count
                };
                let mut named: Vec<_> = own.filter(among).map(|class| (*class, By::Hash)).collect();
                if (named.len() as u32) < *count {
                    // Some of the numbers name no class.
                    named.push((Handle::NONE, By::Hash));
                }
                named
            }
            Verdict::Drop | Verdict::Redirect(_) => Vec::new(),
        }
    }

    /// What leaves the device by a verdict.
    fn leaves(&mut self, dev: &str, verdict: Verdict, set: Set) {
        if let Verdict::Redirect(to) = verdict {
            self.lead(dev, to, set, true);
        }
    }

    /// Packets come to a class without classes below it, and continue to its qdisc.
    fn leaf(&mut self, at: Within<'_>, class: Handle, by: By, set: Set) -> Result<(), TooLarge> {
        if set.is_empty() {
            return Ok(());
        }
        let place = (at.dev.to_owned(), class);
        self.seen.classes.entry((place, by)).or_default().add(self.lists.space, self.way, set)?;
        let below = self.reading.index.hung(at.dev, class).map(|at| &self.reading.qdiscs[at]);
        match below {
            Some(qdisc) if !qdisc.handle.is_none() => {
                self.qdisc(Within { qdisc, depth: at.depth + 1, ..at }, set)
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, end: At, at: Within<'_>, set: Set) -> Result<(), TooLarge> {
        if set.is_empty() {
            return Ok(());
        }
        let place = (at.dev.to_owned(), at.qdisc.handle);
        let parts = match end {
            At::Direct(by) => self.seen.direct.entry((place, by)).or_default(),
            At::Unclassified(by) => self.seen.unclassified.entry((place, by)).or_default(),
        };
        parts.add(self.lists.space, self.way, set)
    }

    fn has(&self, dev: &str, class: Handle) -> bool {
        self.classes.get(dev).is_some_and(|device| device.contains_key(&class))
    }

    fn is_leaf(&self, dev: &str, class: Handle) -> bool {
        self.classes.get(dev).and_then(|device| device.get(&class)).copied().unwrap_or(false)
    }
}

/// Where packets end that come to no class.
#[derive(Clone, Copy)]
enum At {
    Direct(By),
    Unclassified(By),
}

/// Whether a qdisc is attached to a class of another, or to the other itself.
fn hangs_on(qdisc: &QdiscDump, above: &QdiscDump) -> bool {
    !above.handle.is_none() && qdisc.parent != Handle::ROOT && qdisc.parent.qdisc() == above.handle
}

/// A walk through the lists of a policy.
pub(crate) fn lists_of<'a>(
    space: &'a mut Space,
    states: &'a mut States,
    reading: &'a PolicyModel,
    tables: &'a U32Tables,
) -> Lists<'a> {
    Lists { space, states, filters: &reading.filters, tables, marked: BTreeMap::new() }
}

#![forbid(unsafe_code)]
//! From the traffic control that a device has to the one that is wanted there: the smallest sequence of
//! operations, and what it comes to for people.
//!
//! ```text
//! live (dumps of the kernel) ──┐
//!                              ├─▶ compare place by place ─▶ ChangePlan { steps } ─▶ operations, each after what it needs
//! wanted (dumps of the model) ─┘                                 └─▶ lines: `+` made, `~` changed, `-` taken away
//! ```
//! What is equal is not touched: a queue that need not change keeps its packets. Both sides are dumps, so the
//! same function plans the change to a policy, the change back, and, with nothing left to do, shows that the
//! kernel did what was requested.
//!
//! [`text`] shows a plan as commands of tc, [`rebind`] binds a policy to another device than it names,
//! [`essential`] finds what keeps the network alive and would be cut off. Pure: no clock, no IO.
//!
//! ```
//! use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
//! use tidegate_packet::{Pool, Seeded, Time};
//! use tidegate_plan::{installed, plan, text};
//!
//! let machine = |commands: &[&str]| {
//!     let mut gateway = Gateway::new();
//!     gateway.add_device("eth0", DeviceSpec::default());
//!     let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
//!     for command in commands {
//!         let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
//!         let parsed = tidegate_syntax::tc::parse(&words, &tidegate_syntax::Env::default()).unwrap();
//!         let tidegate_syntax::tc::TcCommand::Apply(op) = parsed.command else { unreachable!() };
//!         gateway.apply(GatewayContext { now: Time(0), pool: &mut pool, random: &mut draws }, &op).unwrap();
//!     }
//!     installed(&mut gateway, Time(0), "eth0")
//! };
//! let htb = "qdisc add dev eth0 root handle 1: htb";
//! let now = machine(&[htb, "class add dev eth0 parent 1: classid 1:1 htb rate 1mbit"]);
//! let wanted = machine(&[htb, "class add dev eth0 parent 1: classid 1:1 htb rate 2mbit"]);
//! let plan = plan(&now, &wanted, &[]).unwrap();
//! assert_eq!((plan.steps.len(), plan.kept), (1, 1));
//! assert!(text::line(&plan.steps[0]).starts_with("tc class change dev eth0 parent 1: classid 1:1 htb"));
//! ```

pub mod essential;
mod filters;
mod model;
pub mod rebind;
mod remake;
mod settled;
mod steps;
pub mod text;

pub use model::{installed, rule_tables};
pub use remake::Incomplete;
pub use steps::{ChangePlan, HIDDEN, Item, PlanStep, SHARED, Sign};

use filters::Lists;
use remake::Makers;
use std::collections::{BTreeMap, BTreeSet};
use steps::Same;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, Installed, QdiscDump};
use tidegate_policy::{ClassOp, ClassParams, Kind, Op, QdiscOp, SharedBlocks, Verb};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The changes from what a device has (`live`) to what it should have (`wanted`). `log` holds the operations
/// that made the wanted state, if they are known: dumps do not report everything (tables, distributions).
///
/// # Errors
/// Something that is wanted cannot be made from its dump.
pub fn plan(live: &Installed, wanted: &Installed, log: &[Op]) -> Result<ChangePlan, Incomplete> {
    for installed in [live, wanted] {
        hidden(installed)?;
        filters::shared(installed)?;
    }
    let makers = Makers::new(log);
    let mut planner = Planner {
        live,
        wanted,
        above: [parents(live), parents(wanted)],
        hung: hung(live),
        named: named(wanted),
        makers: &makers,
        plan: ChangePlan::default(),
        same: Same::default(),
    };
    planner.trees()?;
    Ok(planner.plan)
}

/// Linux does not report the classes of qdiscs below one that drops early (red, sfb, choke, gred): those
/// cannot be compared.
fn hidden(installed: &Installed) -> Result<(), Incomplete> {
    let classes: BTreeSet<Handle> = installed.classes.iter().map(|class| class.classid).collect();
    let kinds: BTreeMap<u16, Kind> =
        installed.qdiscs.iter().map(|qdisc| (qdisc.handle.major(), qdisc.kind)).collect();
    let made = |parent: Handle| kinds.get(&parent.major()).is_some_and(|kind| kind.classes_are_made());
    let lost = installed.qdiscs.iter().find(|qdisc| made(qdisc.parent) && !classes.contains(&qdisc.parent));
    lost.map_or(Ok(()), |qdisc| Err(Incomplete { missing: HIDDEN, ..Incomplete::of(qdisc) }))
}

/// Everything on a device, as operations that make it on an empty device.
///
/// # Errors
/// As for [`plan`].
pub fn remade(installed: &Installed) -> Result<Vec<Op>, Incomplete> {
    Ok(plan(&Installed::default(), installed, &[])?.ops().cloned().collect())
}

/// A qdisc that was requested: the others come on their own.
fn is_explicit(qdisc: &QdiscDump) -> bool {
    !qdisc.handle.is_none()
}

/// A class that was requested: those of other kinds come with their qdisc.
fn is_made(class: &ClassDump) -> bool {
    class.kind.classes_are_made() && class.classid.minor() != 0
}

/// A handle that the kernel gave.
fn is_automatic(handle: Handle) -> bool {
    handle.major() >= 0x8000 && handle.major() < 0xff00
}

struct Planner<'p> {
    live: &'p Installed,
    wanted: &'p Installed,
    /// The classes that have others below them, of what is installed and of what is wanted.
    above: [BTreeSet<Handle>; 2],
    /// The installed qdiscs by their parents, the first of each.
    hung: BTreeMap<Handle, &'p QdiscDump>,
    /// The numbers of the wanted qdiscs to which anything is attached.
    named: BTreeSet<u16>,
    makers: &'p Makers<'p>,
    plan: ChangePlan,
    same: Same,
}

impl<'p> Planner<'p> {
    fn trees(&mut self) -> Result<(), Incomplete> {
        for place in [Handle::ROOT, Handle::INGRESS] {
            self.root(place)?;
        }
        for place in [Handle::ROOT, Handle::INGRESS] {
            self.below(place)?;
        }
        let (live, wanted, same) = (self.live, self.wanted, &self.same);
        filters::plan(&mut Lists { live, wanted, same, plan: &mut self.plan })?;
        self.removals();
        Ok(())
    }

    /// What is at a place where only one qdisc can be.
    fn root(&mut self, place: Handle) -> Result<(), Incomplete> {
        let at = |installed: &'p Installed| {
            installed.qdiscs.iter().find(|qdisc| qdisc.parent == place && is_explicit(qdisc))
        };
        let (live, wanted) = (at(self.live), at(self.wanted));
        match (live, wanted) {
            (Some(live), Some(wanted)) if self.stays(live, wanted) => self.keep_or_change(live, wanted),
            (live, wanted) => {
                if let Some(live) = live {
                    self.remove_qdisc(live);
                }
                wanted.map_or(Ok(()), |wanted| self.make_qdisc(wanted))
            }
        }
    }

    /// Whether the installed qdisc can become the wanted one without being recreated.
    fn stays(&self, live: &QdiscDump, wanted: &QdiscDump) -> bool {
        let handle = live.handle == wanted.handle || is_automatic(live.handle) && is_automatic(wanted.handle);
        let table = settled::size_table(live.stab.as_ref()) == settled::size_table(wanted.stab.as_ref());
        let alike = settled::same_qdisc(&live.params, &wanted.params);
        let classes = !matches!(live.parent, Handle::ROOT)
            || self.all_stay_in_place() && self.classes_can_stay(live, wanted);
        live.kind == wanted.kind
            && handle
            && table
            && classes
            && (alike || self.makers.change(live, wanted).is_some())
    }

    /// Whether every wanted qdisc with a handle is already at its parent. One cannot be made while another
    /// has its handle.
    fn all_stay_in_place(&self) -> bool {
        let places = |installed: &'p Installed| {
            installed
                .qdiscs
                .iter()
                .filter(|qdisc| below(qdisc) && !is_automatic(qdisc.handle))
                .map(|qdisc| (qdisc.handle, qdisc.parent))
        };
        let wanted: BTreeMap<Handle, Handle> = places(self.wanted).collect();
        places(self.live).all(|(handle, parent)| wanted.get(&handle).is_none_or(|place| *place == parent))
    }

    /// A class cannot be moved, a curve not be taken from it, and what is attached to it makes it another: a
    /// queue, or classes.
    fn classes_can_stay(&self, live: &QdiscDump, wanted: &QdiscDump) -> bool {
        let mine = |class: &&&ClassDump| class.classid.major() == live.handle.major() && is_made(class);
        let known: BTreeMap<u16, &ClassDump> = self
            .wanted
            .classes
            .iter()
            .filter(|class| class.classid.major() == wanted.handle.major())
            .map(|class| (class.classid.minor(), class))
            .collect();
        self.live.classes.iter().collect::<Vec<_>>().iter().filter(mine).all(|class| {
            known.get(&class.classid.minor()).is_none_or(|other| {
                class.parent.minor() == other.parent.minor()
                    && (class.parent == Handle::ROOT) == (other.parent == Handle::ROOT)
                    && can_change(&class.params, &other.params)
                    && self.above[0].contains(&class.classid) == self.above[1].contains(&other.classid)
            })
        })
    }

    fn keep_or_change(&mut self, live: &QdiscDump, wanted: &QdiscDump) -> Result<(), Incomplete> {
        self.same.0.insert(live.handle.major(), wanted.handle.major());
        if settled::same_qdisc(&live.params, &wanted.params) {
            self.plan.kept += 1;
            return Ok(());
        }
        let ops = self.makers.change(live, wanted).ok_or_else(|| Incomplete::of(wanted))?;
        self.plan.step(Sign::Change, Item::Qdisc(wanted.clone()), ops);
        Ok(())
    }

    fn make_qdisc(&mut self, wanted: &QdiscDump) -> Result<(), Incomplete> {
        let parent = self.same.live(wanted.parent);
        let handle = if is_automatic(wanted.handle) && !self.named.contains(&wanted.handle.major()) {
            Handle::NONE
        } else {
            wanted.handle
        };
        let ops = self.makers.make(wanted, parent, handle)?;
        self.plan.step(Sign::Make, Item::Qdisc(wanted.clone()), ops);
        Ok(())
    }

    fn remove_qdisc(&mut self, live: &QdiscDump) {
        let op = QdiscOp {
            verb: Verb::Delete,
            dev: live.dev.clone(),
            parent: live.parent,
            handle: live.handle,
            kind: None,
            params: None,
            stab: None,
            estimator: None,
            blocks: SharedBlocks::default(),
        };
        self.plan.step(Sign::Remove, Item::Qdisc(live.clone()), vec![Op::Qdisc(op)]);
    }

    /// What is attached to the qdisc at a place: its classes, those above before those below, then the qdiscs
    /// on them with what is attached to those.
    fn below(&mut self, place: Handle) -> Result<(), Incomplete> {
        let live: BTreeMap<Handle, &'p ClassDump> = self
            .live
            .classes
            .iter()
            .filter(|class| is_made(class))
            .map(|class| (class.classid, class))
            .collect();
        let mut waiting: Vec<&'p QdiscDump> =
            self.wanted.qdiscs.iter().filter(|qdisc| qdisc.parent == place && is_explicit(qdisc)).collect();
        let mut ordered = ordered(self.wanted);
        let mut children: BTreeMap<u16, Vec<&'p QdiscDump>> = BTreeMap::new();
        for qdisc in self.wanted.qdiscs.iter().filter(|qdisc| below(qdisc)) {
            children.entry(qdisc.parent.major()).or_default().push(qdisc);
        }
        // Each is visited once, whatever hierarchy the dumps give.
        let mut met: BTreeSet<Handle> = BTreeSet::new();
        while let Some(qdisc) = waiting.pop() {
            if !met.insert(qdisc.handle) {
                continue;
            }
            for class in ordered.remove(&qdisc.handle).unwrap_or_default() {
                self.class(class, &live);
            }
            let children = children.get(&qdisc.handle.major()).map_or(&[][..], Vec::as_slice);
            for child in children {
                self.leaf(child)?;
            }
            waiting.extend(children);
        }
        Ok(())
    }

    fn class(&mut self, class: &ClassDump, live: &BTreeMap<Handle, &ClassDump>) {
        let known = self.same.live(class.classid);
        let found = live.get(&known).filter(|_| self.same.wanted(known).is_some());
        // Of a class with others below it the kernel neither uses nor changes turn and rank.
        let inner = self.above[1].contains(&class.classid);
        let same =
            |live: &&ClassDump| settled::class(&live.params, inner) == settled::class(&class.params, inner);
        if found.is_some_and(same) {
            self.plan.kept += 1;
            return;
        }
        let (sign, verb) = match found {
            Some(_) => (Sign::Change, Verb::Change),
            None => (Sign::Make, Verb::Add),
        };
        let op = self.class_op(verb, class);
        self.plan.step(sign, Item::Class(class.clone()), vec![Op::Class(op)]);
    }

    fn class_op(&self, verb: Verb, class: &ClassDump) -> ClassOp {
        ClassOp {
            verb,
            dev: class.dev.clone(),
            parent: match class.parent {
                // Filters of the qdisc itself are listed as the root's.
                Handle::ROOT => self.same.live(class.classid.qdisc()),
                parent => self.same.live(parent),
            },
            classid: self.same.live(class.classid),
            kind: Some(class.kind.name().to_owned()),
            params: Some(class.params.clone()),
            estimator: self.makers.class_estimator(class.classid),
        }
    }

    /// A qdisc at its class.
    fn leaf(&mut self, wanted: &'p QdiscDump) -> Result<(), Incomplete> {
        let parent = self.same.live(wanted.parent);
        let exists = self.same.wanted(parent).is_some();
        let live = self.hung.get(&parent).copied().filter(|_| exists);
        match live {
            Some(live) if self.stays(live, wanted) => self.keep_or_change(live, wanted),
            Some(live) => {
                self.remove_qdisc(live);
                self.make_qdisc(wanted)
            }
            None => self.make_qdisc(wanted),
        }
    }

    /// What is installed and not wanted, lower levels first. Filters that led there are removed already.
    fn removals(&mut self) {
        let wanted_places: BTreeSet<Handle> =
            self.wanted.qdiscs.iter().filter(|qdisc| is_explicit(qdisc)).map(|qdisc| qdisc.parent).collect();
        let wanted_classes: BTreeSet<Handle> =
            self.wanted.classes.iter().map(|class| class.classid).collect();
        let gone = |class: &ClassDump| {
            is_made(class) && self.same.wanted(class.classid).is_some_and(|id| !wanted_classes.contains(&id))
        };
        let above = above(self.live);
        let mut classes: Vec<(usize, &ClassDump)> = self
            .live
            .classes
            .iter()
            .filter(|class| gone(class))
            .map(|class| (steps_up(&above, class), class))
            .collect();
        classes.sort_by_key(|(depth, class)| (std::cmp::Reverse(*depth), class.classid));
        let with_class: BTreeSet<Handle> = classes.iter().map(|(_, class)| class.classid).collect();
        let leaves: Vec<&QdiscDump> = self
            .live
            .qdiscs
            .iter()
            .filter(|qdisc| below(qdisc) && !with_class.contains(&qdisc.parent))
            .filter(|qdisc| {
                self.same.wanted(qdisc.parent).is_some_and(|place| !wanted_places.contains(&place))
            })
            .collect();
        for qdisc in leaves {
            self.remove_qdisc(qdisc);
        }
        for (_, class) in classes {
            let op = ClassOp {
                verb: Verb::Delete,
                dev: class.dev.clone(),
                parent: Handle::NONE,
                classid: class.classid,
                kind: None,
                params: None,
                estimator: None,
            };
            self.plan.step(Sign::Remove, Item::Class(class.clone()), vec![Op::Class(op)]);
        }
    }
}

/// Whether it is attached to a class, and was requested.
fn below(qdisc: &QdiscDump) -> bool {
    is_explicit(qdisc) && !matches!(qdisc.parent, Handle::ROOT | Handle::INGRESS)
}

/// How many classes are above one.
fn steps_up(parents: &BTreeMap<Handle, Handle>, class: &ClassDump) -> usize {
    std::iter::successors(Some(class.parent), |parent| parents.get(parent).copied())
        .take(parents.len())
        .count()
}

/// The parent of each class.
fn above(installed: &Installed) -> BTreeMap<Handle, Handle> {
    installed.classes.iter().map(|class| (class.classid, class.parent)).collect()
}

/// The wanted classes of each qdisc, those above first.
fn ordered(installed: &Installed) -> BTreeMap<Handle, Vec<&ClassDump>> {
    let parents = above(installed);
    let made = installed.classes.iter().filter(|class| is_made(class));
    let mut all: Vec<(usize, &ClassDump)> = made.map(|class| (steps_up(&parents, class), class)).collect();
    // Equal ones keep the order of the dump.
    all.sort_by_key(|(depth, _)| *depth);
    let mut of: BTreeMap<Handle, Vec<&ClassDump>> = BTreeMap::new();
    for (_, class) in all {
        of.entry(class.classid.qdisc()).or_default().push(class);
    }
    of
}

/// The classes that have others below them.
fn parents(installed: &Installed) -> BTreeSet<Handle> {
    installed.classes.iter().filter(|class| is_made(class)).map(|class| class.parent).collect()
}

/// The qdiscs by their parents, the first of each.
fn hung(installed: &Installed) -> BTreeMap<Handle, &QdiscDump> {
    let explicit = installed.qdiscs.iter().filter(|qdisc| is_explicit(qdisc));
    explicit.rev().map(|qdisc| (qdisc.parent, qdisc)).collect()
}

/// The numbers of the qdiscs to which anything is attached.
fn named(installed: &Installed) -> BTreeSet<u16> {
    let qdiscs = installed.qdiscs.iter().filter(|qdisc| is_explicit(qdisc)).map(|qdisc| qdisc.parent);
    let classes = installed.classes.iter().filter(|class| is_made(class)).map(|class| class.classid);
    let filters = installed.filters.iter().map(|filter| filter.parent);
    qdiscs.chain(classes).chain(filters).map(|place| place.major()).collect()
}

/// Whether a class can get other values without being recreated.
fn can_change(live: &ClassParams, wanted: &ClassParams) -> bool {
    match (live, wanted) {
        // A curve that is not given stays.
        (ClassParams::Hfsc(live), ClassParams::Hfsc(wanted)) => {
            [(live.rt, wanted.rt), (live.ls, wanted.ls), (live.ul, wanted.ul)]
                .iter()
                .all(|(live, wanted)| live.is_none() || wanted.is_some())
        }
        _ => std::mem::discriminant(live) == std::mem::discriminant(wanted),
    }
}

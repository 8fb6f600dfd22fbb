//! What a plan is made of.

use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump};
use tidegate_policy::{Op, Verb};

/// What a step does to what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It is made.
    Make,
    /// It gets other values; its backlog stays.
    Change,
    /// It is taken away.
    Remove,
}

/// What a step is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A qdisc, with all that is attached to it.
    Qdisc(QdiscDump),
    /// A class.
    Class(ClassDump),
    /// A filter.
    Filter(FilterDump),
}

/// A part of the way.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanStep {
    /// What is done
    pub sign: Sign,
    /// to what, as it is afterwards (before, where it is taken away),
    pub item: Item,
    /// by these operations. What goes with something else has none of its own.
    pub ops: Vec<Op>,
}

/// The whole way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangePlan {
    /// Its parts, in order.
    pub steps: Vec<PlanStep>,
    /// How many qdiscs, classes and filters stay as they are.
    pub kept: usize,
}

impl ChangePlan {
    /// Is nothing to be done?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// One step more.
    pub(crate) fn step(&mut self, sign: Sign, item: Item, ops: Vec<Op>) {
        let deletes = |op: &Op| {
            let verb = match op {
                Op::Qdisc(op) => op.verb,
                Op::Class(op) => op.verb,
                Op::Filter(op) => op.verb,
                _ => return false,
            };
            verb == Verb::Delete
        };
        debug_assert!(sign == Sign::Remove || !ops.is_empty(), "what is made or changed takes a command");
        debug_assert!(
            ops.iter().all(|op| deletes(op) == (sign == Sign::Remove)),
            "a step does what its sign says"
        );
        self.steps.push(PlanStep { sign, item, ops });
    }

    /// All operations, in order.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.steps.iter().flat_map(|step| &step.ops)
    }
}

/// What is not reported of filters that use one table of u32 from several lists.
pub const SHARED: &str = "to which list of filters a shared table belongs";

/// What is not reported of a qdisc on such a class.
pub const HIDDEN: &str = "the classes below a qdisc that drops early";

/// Qdiscs that stay: what each is called there, by what it is called here. Automatic handles differ from
/// machine to machine.
#[derive(Debug, Default)]
pub(crate) struct Same(pub(crate) BTreeMap<u16, u16>);

impl Same {
    /// A handle or class as it is called in what is wanted; `None`: its qdisc goes.
    pub(crate) fn wanted(&self, live: Handle) -> Option<Handle> {
        match live {
            Handle::ROOT | Handle::INGRESS | Handle::NONE => Some(live),
            live => self.0.get(&live.major()).map(|major| Handle::new(*major, live.minor())),
        }
    }

    /// The other way round; what is made again is called as it is wanted.
    pub(crate) fn live(&self, wanted: Handle) -> Handle {
        let found = self.0.iter().find(|(_, known)| **known == wanted.major());
        found.map_or(wanted, |(live, _)| Handle::new(*live, wanted.minor()))
    }
}

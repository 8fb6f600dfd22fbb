//! Places in a reading by subject, so that no rule searches thousands of operations for each class.

use std::collections::{BTreeMap, BTreeSet};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump};
use tidegate_policy::{Kind, Op, Verb};

/// A qdisc or class of a device, the devices numbered.
pub(crate) type Key = (usize, Handle);

/// Numbers of operations, qdiscs and classes by what they are about.
#[derive(Debug, Default)]
pub(crate) struct Index {
    devices: Vec<String>,
    /// Those with an ingress qdisc, whose filters are one list whatever class of it they name.
    ingress: BTreeSet<usize>,
    /// The operation that last gave a class its values.
    class_makers: BTreeMap<Key, usize>,
    /// The operation that last made a qdisc, by handle, and by parent where no handle was given.
    qdisc_makers: BTreeMap<Key, usize>,
    place_makers: BTreeMap<Key, usize>,
    /// The operations on filters of a qdisc or class; those that name no parent under [`Handle::NONE`].
    filter_ops: BTreeMap<Key, Vec<usize>>,
    classes: BTreeMap<Key, usize>,
    /// The classes below a class or qdisc.
    below: BTreeMap<Key, Vec<usize>>,
    /// The qdisc that is attached to a class.
    hung: BTreeMap<Key, usize>,
}

impl Index {
    pub(crate) fn new(ops: &[Op], qdiscs: &[QdiscDump], classes: &[ClassDump]) -> Index {
        let mut index = Index::default();
        for qdisc in qdiscs.iter().filter(|qdisc| qdisc.kind == Kind::Ingress) {
            let dev = index.number(&qdisc.dev);
            index.ingress.insert(dev);
        }
        for (at, op) in ops.iter().enumerate() {
            index.note(at, op);
        }
        for (at, qdisc) in qdiscs.iter().enumerate() {
            let dev = index.number(&qdisc.dev);
            index.hung.insert((dev, qdisc.parent), at);
        }
        for (at, class) in classes.iter().enumerate() {
            let dev = index.number(&class.dev);
            index.classes.insert((dev, class.classid), at);
            index.below.entry((dev, class.parent)).or_default().push(at);
        }
        index
    }

    fn note(&mut self, at: usize, op: &Op) {
        match op {
            Op::Class(op) if op.verb != Verb::Delete && op.params.is_some() => {
                let dev = self.number(&op.dev);
                self.class_makers.insert((dev, op.classid), at);
            }
            Op::Qdisc(op) if op.verb != Verb::Delete => {
                let dev = self.number(&op.dev);
                if op.handle.is_none() {
                    self.place_makers.insert((dev, op.parent), at);
                } else {
                    self.qdisc_makers.insert((dev, op.handle), at);
                }
            }
            Op::Filter(op) if op.verb != Verb::Delete => {
                let (dev, parent) = match op.block {
                    0 => (op.dev.as_str(), op.parent),
                    block => of_block(block),
                };
                let dev = self.number(dev);
                let arriving = Handle::INGRESS.qdisc();
                let one_list = self.ingress.contains(&dev) && parent.qdisc() == arriving;
                let parent = if one_list { arriving } else { parent };
                self.filter_ops.entry((dev, parent)).or_default().push(at);
            }
            _ => {}
        }
    }

    fn number(&mut self, dev: &str) -> usize {
        self.known(dev).unwrap_or_else(|| {
            self.devices.push(dev.to_owned());
            self.devices.len() - 1
        })
    }

    pub(crate) fn known(&self, dev: &str) -> Option<usize> {
        self.devices.iter().position(|name| name == dev)
    }

    pub(crate) fn maker_of_class(&self, dev: &str, class: Handle) -> Option<usize> {
        self.class_makers.get(&(self.known(dev)?, class)).copied()
    }

    pub(crate) fn maker_of_qdisc(&self, dev: &str, handle: Handle, parent: Handle) -> Option<usize> {
        let dev = self.known(dev)?;
        let by_place = self.place_makers.get(&(dev, parent));
        by_place.max(self.qdisc_makers.get(&(dev, handle))).copied()
    }

    /// The operations on filters, by where they put them, in order.
    pub(crate) fn filter_lists(&self) -> impl Iterator<Item = (Key, &[usize])> {
        self.filter_ops.iter().map(|(place, ops)| (*place, ops.as_slice()))
    }

    /// Where the operations on a filter's list are noted: those that name its parent, then those that name
    /// none.
    pub(crate) fn filter_places(&self, dump: &FilterDump) -> impl Iterator<Item = Key> {
        let (dev, parents) = match dump.block {
            0 => (dump.dev.as_str(), [Some(dump.parent), Some(Handle::NONE)]),
            block => (of_block(block).0, [Some(of_block(block).1), None]),
        };
        let dev = self.known(dev);
        parents.into_iter().flatten().filter_map(move |parent| Some((dev?, parent)))
    }

    pub(crate) fn class(&self, dev: &str, class: Handle) -> Option<usize> {
        self.classes.get(&(self.known(dev)?, class)).copied()
    }

    pub(crate) fn below(&self, dev: &str, class: Handle) -> &[usize] {
        self.known(dev).and_then(|dev| self.below.get(&(dev, class))).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn hung(&self, dev: &str, class: Handle) -> Option<usize> {
        self.hung.get(&(self.known(dev)?, class)).copied()
    }
}

/// Where the operations on a block's filters are noted: no device has an empty name.
fn of_block(block: u32) -> (&'static str, Handle) {
    ("", Handle(block))
}

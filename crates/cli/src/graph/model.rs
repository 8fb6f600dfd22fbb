//! A policy as boxes: devices, qdiscs, classes, the filters that lead to each, and redirects between devices.

use super::lead::Lead;
use super::tree::{self, Tree};
use tidegate_gateway::Gateway;
use tidegate_inspect::{ClassNames, Uses, shown_class_name};
use tidegate_packet::{Handle, Rate, Time};
use tidegate_policy::ClassParams;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_syntax::units::print_rate;

/// How deep trees are followed: deeper than any that a packet can pass.
const MAX_DEPTH: usize = 64;

/// A device with its boxes, each after the one it hangs on.
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) note: String,
    pub(crate) boxes: Vec<Box>,
}

/// A qdisc or a class.
pub(crate) struct Box {
    /// The place in the list of the one it hangs on.
    pub(crate) parent: Option<usize>,
    pub(crate) id: Handle,
    /// What the policy calls it.
    pub(crate) title: Option<String>,
    pub(crate) is_class: bool,
    /// `htb 1: default 0x20`, or the options of a class.
    pub(crate) words: String,
    /// The qdisc in a class, where that has no classes of its own.
    pub(crate) leaf: Option<String>,
    pub(crate) rate: Option<Rate>,
    pub(crate) ceil: Option<Rate>,
    /// What it may send while all others are idle: no class lends more than it may send itself.
    pub(crate) most: Option<Rate>,
    pub(crate) prio: Option<u32>,
    /// What leads there; at a qdisc, the filters that lead to none of its classes.
    pub(crate) leads: Vec<Lead>,
}

/// Packets that a filter leads to another device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) what: String,
}

/// The devices on which something is configured, and the redirects between them.
pub(crate) struct Model {
    pub(crate) devices: Vec<Device>,
    pub(crate) redirects: Vec<Redirect>,
}

impl Model {
    /// What is installed on a machine, with the filters and redirects.
    pub(crate) fn of(gateway: &mut Gateway, now: Time, uses: &Uses, names: &ClassNames) -> Model {
        let mut model = Model { devices: Vec::new(), redirects: Vec::new() };
        let ids: Vec<_> = gateway.devices().collect();
        for id in ids {
            let spec = gateway.spec(id);
            let name = gateway.name(id).to_owned();
            let tree = Tree::of(gateway, now, id, uses);
            let mut boxes = Vec::new();
            for qdisc in tree.tops() {
                tree.qdisc_box(qdisc, None, 0, &mut boxes);
            }
            for one in boxes.iter_mut().filter(|one| one.is_class) {
                one.title = names.get(&(name.clone(), one.id)).cloned();
            }
            if !boxes.is_empty() {
                let redirects = tree.redirects.iter();
                model.redirects.extend(redirects.map(|(to, what)| Redirect {
                    from: name.clone(),
                    to: to.clone(),
                    what: what.clone(),
                }));
                let note = format!("mtu {}, txqueuelen {}", spec.mtu, spec.tx_queue_len);
                model.devices.push(Device { name, note, boxes });
            }
        }
        model
    }

    /// Keeps one device, and what it leads to.
    pub(crate) fn only(&mut self, name: &str) {
        let led: Vec<String> =
            self.redirects.iter().filter(|r| r.from == name).map(|r| r.to.clone()).collect();
        self.devices.retain(|device| device.name == name || led.contains(&device.name));
        self.redirects.retain(|redirect| redirect.from == name);
    }
}

impl Tree {
    fn qdisc_box(&self, qdisc: &QdiscDump, parent: Option<usize>, depth: usize, boxes: &mut Vec<Box>) {
        let at = boxes.len();
        boxes.push(Box {
            parent,
            id: qdisc.handle,
            title: None,
            is_class: false,
            words: self.qdisc_text(qdisc),
            leaf: None,
            rate: None,
            ceil: None,
            most: None,
            prio: None,
            leads: self.leads(qdisc.handle).to_vec(),
        });
        if depth < MAX_DEPTH {
            self.classes_under(qdisc.handle, at, depth + 1, boxes);
        }
    }

    fn classes_under(&self, above: Handle, parent: usize, depth: usize, boxes: &mut Vec<Box>) {
        for class in self.classes(above) {
            self.class_box(class, parent, depth, boxes);
        }
    }

    fn class_box(&self, class: &ClassDump, parent: usize, depth: usize, boxes: &mut Vec<Box>) {
        let at = boxes.len();
        let leaf = self.qdisc_on(class.classid);
        // What its own filters look at would be seen nowhere on the class's line.
        let is_deep = |leaf: &QdiscDump| self.has_classes(leaf.handle) || !self.leads(leaf.handle).is_empty();
        let deep = leaf.is_some_and(is_deep);
        let (rate, ceil, prio) = match &class.params {
            ClassParams::Htb(htb) => (Some(htb.rate.rate), Some(htb.ceil.rate), Some(htb.prio)),
            // Its curves are in the words: none of them is a rate that it has whatever the others do.
            _ => (None, None, None),
        };
        let lent = boxes.get(parent).filter(|above| above.is_class).and_then(|above| above.most);
        let most = rate.zip(ceil).map(|(rate, ceil)| rate.min(ceil).max(lent.unwrap_or(Rate(0)).min(ceil)));
        boxes.push(Box {
            parent: Some(parent),
            id: class.classid,
            title: None,
            is_class: true,
            words: tree::class_text(class),
            leaf: leaf.filter(|_| !deep).map(|leaf| self.qdisc_text(leaf)),
            rate,
            ceil,
            most,
            prio,
            leads: self.leads(class.classid).to_vec(),
        });
        if depth >= MAX_DEPTH {
            return;
        }
        if let Some(leaf) = leaf.filter(|_| deep) {
            self.qdisc_box(leaf, Some(at), depth + 1, boxes);
        }
        // What hangs on a class without a number of its own hangs on its qdisc.
        if class.classid.minor() != 0 {
            self.classes_under(class.classid, at, depth + 1, boxes);
        }
    }
}

impl Box {
    /// `1:10`, or the qdisc's words.
    pub(crate) fn name(&self) -> String {
        match (self.is_class, &self.title) {
            (true, Some(title)) => format!("{} ({})", self.id, shown_class_name(title)),
            (true, None) => self.id.to_string(),
            (false, _) => self.words.clone(),
        }
    }

    /// `sure of 300Kbit, borrows up to 1Mbit`.
    pub(crate) fn rates(&self) -> Option<String> {
        let rate = print_rate(self.rate?, false);
        Some(match self.ceil {
            Some(_) if self.most > self.rate => {
                format!("guaranteed {rate}, borrows up to {}", print_rate(self.most?, false))
            }
            Some(ceil) if Some(ceil) < self.rate => {
                format!("rate {rate}, held to {}", print_rate(ceil, false))
            }
            _ => format!("{rate}, borrows nothing"),
        })
    }
}

//! Back again: what a machine holds, as a short policy where it fits, and in plain words what does not.

use super::compile::LOCAL;
use super::found::{Conversion, Counterpart, Found, Misfit, RATES, Rules, Tree};
use super::leads::{at_rate, takes_everything};
use super::left::{filter_text, names};
use super::machine::Back;
use super::numbers::{Curves, Numbers, framing_of};
use super::policy::{Fair, Queue};
use crate::units::rate_in_words;
use tidegate_packet::{Handle, Rate};
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::{Act, FilterParams, FlowKeySet, Kind, QdiscParams};

/// What a machine holds as a short policy, as far as it fits, and what does not.
pub fn from_machine(
    qdiscs: &[QdiscDump],
    classes: &[ClassDump],
    filters: &[FilterDump],
    rules: &[Rules],
) -> Conversion {
    let mut back = Back::new(qdiscs, classes, filters, rules);
    back.directions();
    let text = back.policy();
    back.wrong_way();
    if text.is_some() {
        back.misfits.extend(back.accounts.left(qdiscs, classes, filters, rules));
    }
    let mut misfits: Vec<Misfit> = Vec::new();
    for misfit in back.misfits {
        if !misfits.contains(&misfit) {
            misfits.push(misfit);
        }
    }
    Conversion { text, misfits, classes: back.counterparts, devices: back.devices }
}

impl Back<'_> {
    fn policy(&mut self) -> Option<String> {
        let roots: Vec<&QdiscDump> =
            self.qdiscs.iter().filter(|q| q.parent == Handle::ROOT && !q.handle.is_none()).collect();
        let (mut trees, mut mixed) = (Vec::new(), false);
        for root in roots {
            match self.is_mixed(&root.dev) {
                true => mixed = true,
                false => trees.extend(self.root(root)),
            }
        }
        trees.retain(|tree: &Tree| {
            let fits = RATES.contains(&tree.rate);
            if !fits {
                self.misfits.push(Misfit::new(
                    format!("the rate of {}, {} bit/s", tree.dev, tree.rate),
                    "the device is left out: a short policy's rates go from 8kbit to 100gbit",
                ));
                self.accounts.device(&tree.dev);
            }
            fits
        });
        self.arriving();
        if trees.is_empty() {
            let other = if mixed { "no other" } else { "no" };
            self.miss(
                format!(
                    "{other} device has at its root what shapes to a rate (htb, hfsc, tbf, cake with \
                    bandwidth)"
                ),
                "there is nothing that a short policy could say of it",
            );
            return None;
        }
        Some(self.write(&trees))
    }

    /// What a device's root comes to.
    fn root(&mut self, root: &QdiscDump) -> Option<Tree> {
        self.accounts.qdisc(root);
        let framing = framing_of(root);
        let on = self.on(&root.dev);
        let single = |rate, framing, fair| Tree {
            dev: root.dev.clone(),
            on,
            rate,
            classes: Vec::new(),
            framing,
            fair,
        };
        match &root.params {
            QdiscParams::Htb(params) => self.tree(root, params.default as u16),
            QdiscParams::Hfsc(params) => self.tree(root, params.default),
            QdiscParams::Tbf(tbf) => {
                if let Some(peak) = &tbf.peak {
                    self.miss(
                        format!(
                            "the peak rate {} of tbf {} on {}",
                            rate_in_words(peak.rate),
                            root.handle,
                            root.dev
                        ),
                        "it is left out",
                    );
                }
                let fair = self.beneath_tbf(root);
                Some(single(tbf.rate.rate.0 * 8, framing, fair))
            }
            QdiscParams::Cake(cake) => {
                let rate = cake.bandwidth.filter(|rate| rate.0 > 0);
                if rate.is_none() {
                    self.miss(
                        format!("the cake at the root of {}, which has no bandwidth", root.dev),
                        "it is left out",
                    );
                }
                let fair = self.cake(root, cake);
                rate.map(|rate| single(rate.0 * 8, framing, fair))
            }
            // What the kernel attaches on its own, and qdiscs that neither shape nor classify.
            _ if matches!(root.kind, Kind::PfifoFast | Kind::Noqueue) => None,
            _ => {
                let why = match root.kind {
                    Kind::Prio => {
                        "its bands have an order and no rates; a short policy shapes the link to a rate, \
                        and each class has a guaranteed share"
                    }
                    _ => "a short policy shapes the link to a rate",
                };
                self.miss(
                    format!("the {} {} at the root of {}", root.kind.name(), root.handle, root.dev),
                    format!("the device is left out: {why}"),
                );
                self.accounts.device(&root.dev);
                None
            }
        }
    }

    /// The queue below a tbf: the only one of its device.
    fn beneath_tbf(&mut self, root: &QdiscDump) -> Fair {
        let class = root.handle.class(1);
        let below = |q: &&QdiscDump| {
            q.dev == root.dev && !q.handle.is_none() && (q.parent == class || q.parent == root.handle)
        };
        let Some(inner) = self.qdiscs.iter().find(below) else { return Fair::None };
        self.accounts.qdisc(inner);
        match inner.kind {
            Kind::FqCodel => Fair::Flow,
            Kind::Pfifo | Kind::Bfifo | Kind::PfifoFast => Fair::None,
            kind => {
                let bands = match kind {
                    Kind::Prio => " with its order of bands",
                    _ => "",
                };
                self.miss(
                    format!(
                        "the {} {} below tbf {} on {}{bands}",
                        kind.name(),
                        inner.handle,
                        root.handle,
                        root.dev
                    ),
                    "a fair queue (fq_codel) replaces it",
                );
                Fair::Flow
            }
        }
    }

    /// What is done to packets that arrive, but for leading them to a device that shapes them.
    fn arriving(&mut self) {
        let mut unsupported = Vec::new();
        let hooks =
            self.qdiscs.iter().filter(|q| q.kind.is_hook()).map(|q| q.dev.as_str()).collect::<Vec<_>>();
        for (at, filter) in self.filters.iter().enumerate() {
            let hook = filter.parent.sees_arriving();
            let FilterEntry::Filter { params, actions, .. } = &filter.entry else { continue };
            if !hook || !hooks.contains(&filter.dev.as_str()) {
                continue;
            }
            self.accounts.filter(at);
            let name = filter_text(filter);
            for dump in actions {
                unsupported.push(match &dump.action.act {
                    act if act.redirects_to().is_some() && takes_everything(params) => continue,
                    act if act.redirects_to().is_some() => Misfit::new(
                        format!("{name}, which redirects only what it matches"),
                        "a short policy shapes all that arrives",
                    ),
                    Act::Police(police) => Misfit::new(
                        format!(
                            "the policer of what arrives by {}{} ({name})",
                            filter.dev,
                            at_rate(police.rate.as_ref())
                        ),
                        "it is left out; `down = RATE` shapes downloads instead",
                    ),
                    other => Misfit::new(
                        format!("the action {} on what arrives by {} ({name})", other.kind(), filter.dev),
                        "it is left out",
                    ),
                });
            }
            if actions.is_empty() {
                unsupported.push(Misfit::new(name, "it is left out"));
            }
        }
        self.misfits.extend(unsupported);
    }

    /// A link's class with its leaves.
    fn tree(&mut self, root: &QdiscDump, default: u16) -> Option<Tree> {
        let dev = &root.dev;
        let mut all: Vec<&ClassDump> = self
            .classes
            .iter()
            .filter(|class| {
                class.dev == *dev && class.classid.qdisc() == root.handle && class.classid.minor() != 0
            })
            .collect();
        // The kernel lists classes by a hash.
        all.sort_by_key(|class| class.classid);
        let curves = Curves::new(&all);
        let on_top = curves.below(root.handle);
        let parents: Vec<&ClassDump> =
            on_top.iter().copied().filter(|class| !curves.below(class.classid).is_empty()).collect();
        if on_top.is_empty() {
            self.miss(
                format!("the {} {} at the root of {dev}, which has no class", root.kind.name(), root.handle),
                "it is left out",
            );
            return None;
        }
        let framing = self.framing(root, &all);
        let flat = parents.is_empty() && on_top.len() > 1 && !(on_top.len() == 2 && default == LOCAL);
        let (rate, classes) = match flat {
            true => self.flat(root, &curves, default),
            false => self.nested(root, &curves, parents.first().copied().unwrap_or(on_top[0]), default)?,
        };
        let named = root.handle.class(default);
        if !classes.is_empty() && (default == 0 || !all.iter().any(|class| class.classid == named)) {
            let becomes = if root.kind == Kind::Hfsc { "dropped" } else { "not shaped" };
            let what = match default {
                0 => format!("no default class on {dev}, so that what no filter takes is {becomes}"),
                _ => format!(
                    "the default class {named} of {dev}, which is not there, so that what no filter takes \
                    is {becomes}"
                ),
            };
            self.miss(what, "a short policy has a class for what no other takes");
        }
        self.leading_nowhere(dev, root.handle);
        Some(Tree { dev: dev.clone(), on: self.on(dev), rate, classes, framing, fair: Fair::Flow })
    }

    /// Classes without a common parent: each sends at its own rate, and none borrows.
    fn flat(&mut self, root: &QdiscDump, curves: &Curves<'_>, default: u16) -> (u64, Vec<Found>) {
        let on_top = curves.below(root.handle);
        let whole: u64 = on_top.iter().map(|class| curves.alone(class)).sum();
        let mut classes = Vec::new();
        for class in &on_top {
            let own = curves.alone(class);
            let numbers = Numbers { rate: own, ceil: own, prio: curves.prio(class) };
            self.slopes(class, curves);
            classes.extend(self.class(class, numbers, default));
        }
        let ids = names(on_top.iter().map(|class| class.classid));
        self.miss(
            format!("the classes {ids} of {} have no common parent", root.dev),
            format!("the link's rate is taken to be the sum of theirs, {}", rate_in_words(Rate(whole / 8))),
        );
        (whole, classes)
    }

    /// The link's class with its leaves, and its rate.
    fn nested(
        &mut self,
        root: &QdiscDump,
        curves: &Curves<'_>,
        link: &ClassDump,
        default: u16,
    ) -> Option<(u64, Vec<Found>)> {
        let dev = &root.dev;
        let on_top = curves.below(root.handle);
        self.accounts.class(link);
        let rate = match curves.limit(link) {
            Some(rate) => rate,
            None => {
                let rate = curves.alone(link);
                self.miss(
                    format!(
                        "class {} of {dev} has no upper limit (ul), and hfsc sends as fast as the device",
                        link.classid
                    ),
                    format!("the link is held to {}", rate_in_words(Rate(rate / 8))),
                );
                rate
            }
        };
        for other in on_top.iter().filter(|other| other.classid != link.classid) {
            self.accounts.class(other);
            // A short policy makes one for what does not come from the provider.
            if other.classid.minor() == LOCAL && default == LOCAL {
                if let Some(queue) = self.qdiscs.iter().find(|q| q.dev == *dev && q.parent == other.classid) {
                    self.accounts.qdisc(queue);
                }
                self.counterpart(dev, other.classid, "not from the provider");
            } else {
                let what = format!(
                    "class {} of {dev} is beside the link's class and does not borrow from it",
                    other.classid
                );
                self.miss(what, "it is left out; a short policy has one link on each device");
            }
        }
        let mut classes = Vec::new();
        let children = |class: &ClassDump| curves.below(class.classid);
        let mut open: Vec<(&ClassDump, Numbers)> = curves.shared(link, Numbers { rate, ceil: rate, prio: 0 });
        while let Some((class, numbers)) = open.pop() {
            self.slopes(class, curves);
            let below = children(class);
            if below.is_empty() {
                classes.extend(self.class(class, numbers, default));
            } else {
                self.inner(class, (rate, numbers.ceil), &below);
                open.extend(curves.shared(class, numbers));
            }
        }
        if on_top.len() == 1 && children(link).is_empty() {
            // It is the only class, and what belongs to none takes it.
            let numbers = Numbers { rate, ceil: rate, prio: curves.prio(link) };
            self.slopes(link, curves);
            classes.extend(self.class(link, numbers, default).map(|only| Found { is_default: true, ..only }));
        }
        Some((rate, classes))
    }

    /// Says that a class is so called in the short policy.
    pub(super) fn counterpart(&mut self, dev: &str, class: Handle, name: &str) {
        self.counterparts.push(Counterpart { device: dev.to_owned(), class, name: name.to_owned() });
    }

    /// A class between the link's and its leaves.
    fn inner(&mut self, class: &ClassDump, (link, most): (u64, u64), below: &[&ClassDump]) {
        self.accounts.class(class);
        let mut below: Vec<Handle> = below.iter().map(|class| class.classid).collect();
        below.sort_unstable();
        let below = names(below);
        let together = match most < link {
            true => format!(", and nothing holds them to {} together", rate_in_words(Rate(most / 8))),
            false => String::new(),
        };
        self.miss(
            format!("class {} of {}, from which {below} borrow", class.classid, class.dev),
            format!(
                "it is left out, as a short policy has one level of classes: they keep their rates and \
                ceilings and borrow from the link{together}"
            ),
        );
    }

    /// Filters to classes that are not there.
    fn leading_nowhere(&mut self, dev: &str, root: Handle) {
        let mut unsupported = Vec::new();
        for (at, filter) in self.filters.iter().enumerate() {
            if filter.dev != dev || filter.parent != root {
                continue;
            }
            let FilterEntry::Filter { params, .. } = &filter.entry else { continue };
            let Some(to) = params.classid().filter(|to| to.minor() != 0) else { continue };
            if !self.classes.iter().any(|class| class.dev == dev && class.classid == to) {
                self.accounts.filter(at);
                unsupported.push(Misfit::new(
                    format!("the {} filter to {to} of {dev}, a class that is not there", filter.kind),
                    "it is left out",
                ));
            }
        }
        self.misfits.extend(unsupported);
    }

    /// A leaf with its numbers: its guaranteed rate, and the least ceiling from it up to the link's class.
    fn class(&mut self, class: &ClassDump, numbers: Numbers, default: u16) -> Option<Found> {
        let Numbers { rate, ceil, prio } = numbers;
        let mut notes = Vec::new();
        if ceil < rate {
            notes.push(Misfit::new(
                format!("class {} of {} may send less than its own rate", class.classid, class.dev),
                "its rate is taken for both: a short policy's ceil is no less than its share",
            ));
        }
        let (queue, fair) = self.leaf(class, &mut notes);
        Some(Found {
            id: class.classid,
            rate,
            ceil,
            prio,
            queue,
            fair,
            matching: self.class_match(class),
            is_default: class.classid.minor() == default,
            notes,
        })
    }

    /// How a class's packets wait.
    fn leaf(&mut self, class: &ClassDump, notes: &mut Vec<Misfit>) -> (Queue, Fair) {
        let here = |q: &&QdiscDump| q.dev == class.dev && q.parent == class.classid;
        let Some(leaf) = self.qdiscs.iter().find(here) else { return (Queue::Plain, Fair::None) };
        match (&leaf.params, leaf.kind) {
            (QdiscParams::FqCodel(params), _) if params.limit.is_some_and(|limit| limit <= 256) => {
                (Queue::Short, Fair::Flow)
            }
            (_, Kind::FqCodel) => (Queue::Fair, Fair::Flow),
            (_, Kind::Pfifo | Kind::Bfifo | Kind::PfifoHeadDrop | Kind::PfifoFast) => {
                (Queue::Plain, Fair::None)
            }
            (_, Kind::Drr | Kind::Qfq) if self.is_by_host(leaf) => (Queue::Fair, Fair::Host),
            _ => {
                notes.push(Misfit::new(
                    format!("the {} in class {} of {}", leaf.kind.name(), class.classid, class.dev),
                    "a fair queue (fq_codel) replaces it",
                ));
                (Queue::Fair, Fair::Flow)
            }
        }
    }

    /// Takes over a class's queue, or names what has no key, with the qdiscs below it.
    pub(super) fn note_queue(&mut self, dev: &str, class: &Found) {
        let here = |q: &&QdiscDump| q.dev == dev && q.parent == class.id && !q.handle.is_none();
        let Some(leaf) = self.qdiscs.iter().find(here) else { return };
        self.accounts.qdisc(leaf);
        if matches!(leaf.kind, Kind::Drr | Kind::Qfq) && class.fair == Fair::Host {
            self.accounts.all_of(leaf, self.classes, self.filters);
            for queue in self.qdiscs.iter().filter(|q| q.dev == dev && q.parent.qdisc() == leaf.handle) {
                self.accounts.qdisc(queue);
            }
        }
    }

    /// Do hosts share it?
    fn is_by_host(&self, qdisc: &QdiscDump) -> bool {
        let hosts = ["src", "dst", "nfct-src", "nfct-dst"];
        self.filters.iter().filter(|f| f.dev == qdisc.dev && f.parent == qdisc.handle).any(|f| {
            match &f.entry {
                FilterEntry::Filter { params: FilterParams::Flow(flow), .. } => {
                    let names =
                        FlowKeySet::NAMES.iter().enumerate().filter(|(bit, _)| flow.keys.has(*bit as u32));
                    names.map(|(_, name)| *name).all(|name| hosts.contains(&name))
                }
                _ => false,
            }
        })
    }
}

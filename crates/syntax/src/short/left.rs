//! What of a machine a short policy took up or named, and the names of all that is left.

use super::found::{Misfit, Rules};
use crate::iptables;
use crate::nft;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{ConnmarkTarget, Family, NetfilterRule, NetfilterTarget};
use tidegate_policy::{ClassParams, Kind};

/// What was taken up or named so far.
#[derive(Default)]
pub(super) struct Accounts {
    classes: BTreeSet<(String, Handle)>,
    qdiscs: BTreeSet<(String, Handle)>,
    /// Devices that are left out as a whole.
    devices: BTreeSet<String>,
    /// Filters by their number.
    filters: BTreeSet<usize>,
    /// Rules by their chain's number and their own.
    rules: BTreeSet<(usize, usize)>,
}

impl Accounts {
    pub(super) fn class(&mut self, class: &ClassDump) {
        self.id(&class.dev, class.classid);
    }

    pub(super) fn id(&mut self, dev: &str, class: Handle) {
        self.classes.insert((dev.to_owned(), class));
    }

    pub(super) fn qdisc(&mut self, qdisc: &QdiscDump) {
        self.qdiscs.insert((qdisc.dev.clone(), qdisc.handle));
    }

    /// Leaves out a device with all that is installed there.
    pub(super) fn device(&mut self, dev: &str) {
        self.devices.insert(dev.to_owned());
    }

    /// A class's queue with all below it.
    pub(super) fn beneath(
        &mut self,
        qdiscs: &[QdiscDump],
        classes: &[ClassDump],
        filters: &[FilterDump],
        dev: &str,
        class: Handle,
    ) {
        let mut open: Vec<Handle> = vec![class];
        while let Some(parent) = open.pop() {
            let below = qdiscs.iter().filter(|q| q.dev == dev && q.parent == parent && !q.handle.is_none());
            for qdisc in below {
                self.qdisc(qdisc);
                self.all_of(qdisc, classes, filters);
                // A qdisc's classes are its own: none comes twice.
                let own = classes.iter().filter(|c| c.dev == dev && c.classid.qdisc() == qdisc.handle);
                open.extend(own.map(|class| class.classid).filter(|id| id.minor() != 0));
            }
        }
    }

    pub(super) fn filter(&mut self, at: usize) {
        self.filters.insert(at);
    }

    pub(super) fn rule(&mut self, chain: usize, at: usize) {
        self.rules.insert((chain, at));
    }

    /// A qdisc with its classes and filters.
    pub(super) fn all_of(&mut self, qdisc: &QdiscDump, classes: &[ClassDump], filters: &[FilterDump]) {
        for class in classes.iter().filter(|c| c.dev == qdisc.dev && c.classid.qdisc() == qdisc.handle) {
            self.class(class);
        }
        let own = |filter: &FilterDump| filter.dev == qdisc.dev && filter.parent == qdisc.handle;
        self.filters.extend(filters.iter().enumerate().filter(|(_, filter)| own(filter)).map(|(at, _)| at));
    }

    /// What was neither taken up nor named: qdiscs, classes, filters, rules that mark.
    pub(super) fn left(
        &self,
        qdiscs: &[QdiscDump],
        classes: &[ClassDump],
        filters: &[FilterDump],
        rules: &[Rules],
    ) -> Vec<Misfit> {
        let mut left = Vec::new();
        let is_gone = |dev: &str| self.devices.contains(dev);
        let by_itself = |q: &QdiscDump| {
            q.handle.is_none() || q.kind.is_hook() || q.kind == Kind::Noqueue || q.kind == Kind::PfifoFast
        };
        for qdisc in qdiscs.iter().filter(|qdisc| !by_itself(qdisc) && !is_gone(&qdisc.dev)) {
            if !self.qdiscs.contains(&(qdisc.dev.clone(), qdisc.handle)) {
                let at = match qdisc.parent {
                    Handle::ROOT => "at the root".to_owned(),
                    parent => format!("below {parent}"),
                };
                let what = format!("the {} {} {at} of {}", qdisc.kind.name(), qdisc.handle, qdisc.dev);
                left.push(Misfit::new(what, "it is left out"));
            }
        }
        let mut by_qdisc: BTreeMap<(&str, &str, Handle), Vec<Handle>> = BTreeMap::new();
        // Bands and flows are their qdisc's own: that is named.
        let made = |class: &&ClassDump| class.params != ClassParams::None && class.classid.minor() != 0;
        for class in classes.iter().filter(made).filter(|class| !is_gone(&class.dev)) {
            if !self.classes.contains(&(class.dev.clone(), class.classid)) {
                by_qdisc
                    .entry((&class.dev, class.kind.name(), class.classid.qdisc()))
                    .or_default()
                    .push(class.classid);
            }
        }
        for ((dev, kind, qdisc), mut ids) in by_qdisc {
            ids.sort_unstable();
            let (word, instead) = match ids.len() {
                1 => ("class", "it is left out"),
                _ => ("the classes", "they are left out"),
            };
            left.push(Misfit::new(format!("{word} {} of {kind} {qdisc} on {dev}", names(ids)), instead));
        }
        for (at, filter) in filters.iter().enumerate() {
            let counts = matches!(filter.entry, FilterEntry::Filter { .. }) && !is_gone(&filter.dev);
            if counts && !self.filters.contains(&at) {
                left.push(Misfit::new(filter_text(filter), "it is left out"));
            }
        }
        for (number, chain) in rules.iter().enumerate() {
            for (at, rule) in chain.rules.iter().enumerate() {
                if rule.targets().any(writes) && !self.rules.contains(&(number, at)) {
                    let what =
                        format!("the rule `{}` in {} {}", rule_text(chain, rule), chain.table, chain.chain);
                    left.push(Misfit::new(what, "it is left out"));
                }
            }
        }
        left
    }
}

/// Does a target write what a qdisc or filter may look at?
fn writes(target: &NetfilterTarget) -> bool {
    match target {
        NetfilterTarget::Mark { .. }
        | NetfilterTarget::Classify(_)
        | NetfilterTarget::Dscp(_)
        | NetfilterTarget::Tos(..) => true,
        NetfilterTarget::Connmark(connmark) => matches!(connmark, ConnmarkTarget::Set { .. }),
        _ => false,
    }
}

/// `1:10, 1:11 and 1:12`.
pub(super) fn names(ids: impl IntoIterator<Item = Handle>) -> String {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    match ids.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

/// `the u32 filter of preference 10 at 1: of eth0 to 1:20`.
pub fn filter_text(filter: &FilterDump) -> String {
    let to = match &filter.entry {
        FilterEntry::Filter { params, .. } => {
            params.classid().filter(|to| to.minor() != 0 && !filter_arrives(filter))
        }
        _ => None,
    };
    let to = to.map_or(String::new(), |to| format!(" to {to}"));
    format!(
        "the {} filter of preference {} at {} of {}{to}",
        filter.kind, filter.pref, filter.parent, filter.dev
    )
}

/// What a filter of arriving packets calls a class is none.
fn filter_arrives(filter: &FilterDump) -> bool {
    filter.parent.major() == u16::MAX
}

/// A rule in the words of its tool.
pub fn rule_text(chain: &Rules, rule: &NetfilterRule) -> String {
    let text = match chain.is_nft {
        true => nft::print_rule(rule, chain.family, None),
        false => iptables::print_rule(rule, chain.family == Family::Ipv6),
    };
    text.trim().to_owned()
}

//! The hierarchy of a device's classes and qdiscs, with the lookups that rules need.

use crate::finding::Finding;
use crate::reading::{CLSACT_EGRESS, PolicyModel};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Handle, Rate};
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, NetfilterRule, NetfilterTarget};
use tidegate_policy::{
    ClassLayout, ClassParams, FilterParams, HtbClassParams, Kind, QdiscParams, ServiceCurve,
};
use tidegate_syntax::short::acknowledgements;

/// A class of HTB with its values.
#[derive(Clone, Copy)]
pub(crate) struct HtbClass<'r> {
    pub(crate) class: &'r ClassDump,
    pub(crate) params: &'r HtbClassParams,
}

/// A class that packets wait in, with the rates that it is given.
#[derive(Clone, Copy)]
pub(crate) struct Leaf<'r> {
    pub(crate) class: &'r ClassDump,
    /// What it gets while all others are busy; `None`: HFSC's link sharing gives a share by weight, which is
    /// no rate.
    pub(crate) rate: Option<Rate>,
    /// What it may get while they are idle.
    pub(crate) ceil: Rate,
}

/// How many queues a qdisc has that its filters name by number, from 1 on, and the word that sets it;
/// `None`: its filters name classes, or none are evaluated.
pub fn numbered_queues(params: &QdiscParams) -> Option<(&'static str, u32)> {
    /// Queues of an fq_codel that names no number.
    const FLOWS: u32 = 1024;
    match params {
        QdiscParams::Sfq(sfq) => Some(("divisor of sfq", sfq.divisor)),
        QdiscParams::FqCodel(fq_codel) => Some(("flows of fq_codel", fq_codel.flows.unwrap_or(FLOWS))),
        _ => None,
    }
}

/// No tree is deeper.
pub(crate) const MOST_DEEP: usize = 64;

/// The steady rate of a curve of HFSC, bytes per second.
fn steady(curve: Option<ServiceCurve>) -> u64 {
    curve.map_or(0, |curve| u64::from(curve.m2))
}

impl PolicyModel {
    /// The leaf classes of HTB and HFSC.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = Leaf<'_>> {
        let leaves = self.classes.iter().filter(|class| self.is_leaf(class));
        leaves.filter_map(|class| match &class.params {
            ClassParams::Htb(htb) => {
                let ceil = self.reachable(class)?;
                Some(Leaf { class, rate: Some(htb.rate.rate.min(htb.ceil.rate)), ceil })
            }
            ClassParams::Hfsc(hfsc) => {
                let real = steady(hfsc.rt);
                // Without an upper limit on the way to the root nothing waits for HFSC's sake; real time
                // knows none.
                let (rate, ceil) = match steady(hfsc.ls) {
                    // Without link sharing it has nothing but its real time.
                    0 => (Some(Rate(real)), real),
                    _ => (None, self.upper_limit(class)?.max(real)),
                };
                (ceil > 0).then_some(Leaf { class, rate, ceil: Rate(ceil) })
            }
            _ => None,
        })
    }

    /// What a class of HTB may send while all others are idle: its own rate, or what it may borrow, which is
    /// no more than its ceil, nor than what the class above may send so; the topmost cannot borrow.
    pub(crate) fn reachable(&self, class: &ClassDump) -> Option<Rate> {
        let line: Vec<&ClassDump> = self.and_above(class).collect();
        let mut most = None;
        for class in line.into_iter().rev() {
            let ClassParams::Htb(own) = &class.params else { continue };
            let lent = most.map_or(Rate(0), |most: Rate| most.min(own.ceil.rate));
            most = Some(own.rate.rate.min(own.ceil.rate).max(lent));
        }
        most
    }

    /// The least of HFSC's upper limits from a class to the root, bytes per second.
    pub(crate) fn upper_limit(&self, class: &ClassDump) -> Option<u64> {
        let curves = self.and_above(class).map_while(|class| match &class.params {
            ClassParams::Hfsc(curves) => Some(curves),
            _ => None,
        });
        curves.map(|curves| steady(curves.ul)).filter(|limit| *limit > 0).min()
    }

    /// The leaves below a class of HFSC; a leaf's own is itself.
    pub(crate) fn hfsc_leaves<'r>(&'r self, class: &'r ClassDump) -> Vec<&'r ClassDump> {
        let (mut leaves, mut above) = (Vec::new(), vec![class]);
        while let Some(class) = above.pop() {
            let below = self.index.below(&class.dev, class.classid);
            if below.is_empty() {
                leaves.push(class);
            }
            // The root is listed as a class of that name.
            above.extend(
                below.iter().map(|at| &self.classes[*at]).filter(|below| below.classid != class.classid),
            );
        }
        leaves
    }

    /// Does a qdisc hold any rate of its own?
    pub(crate) fn has_own_rate(&self, qdisc: &QdiscDump) -> bool {
        match &qdisc.params {
            QdiscParams::Htb(_) | QdiscParams::Tbf(_) => true,
            QdiscParams::Cake(cake) => {
                cake.bandwidth.is_some_and(|rate| rate.0 > 0) || cake.autorate == Some(true)
            }
            QdiscParams::Netem(netem) => netem.rate.is_some(),
            QdiscParams::Hfsc(_) => {
                let own =
                    |class: &&ClassDump| class.dev == qdisc.dev && class.classid.qdisc() == qdisc.handle;
                let mut curves = self.classes.iter().filter(own).filter_map(|class| match &class.params {
                    ClassParams::Hfsc(hfsc) => Some(hfsc),
                    _ => None,
                });
                // Real time alone is a rate; link sharing takes what there is, up to an upper limit.
                let shares = curves.clone().any(|hfsc| steady(hfsc.ls) > 0);
                !shares || curves.any(|hfsc| steady(hfsc.ul) > 0)
            }
            _ => false,
        }
    }

    /// May a qdisc keep packets waiting while the link could send them?
    pub(crate) fn may_hold_back(&self, qdisc: &QdiscDump) -> bool {
        // A plug waits to be released, fq paces flows, and blackhole sends nothing.
        let by_kind = matches!(
            qdisc.kind,
            Kind::Netem | Kind::Plug | Kind::Fq | Kind::Blackhole | Kind::Custom | Kind::Noqueue
        );
        by_kind || self.has_own_rate(qdisc)
    }

    /// The longest frame of a device, bytes.
    pub(crate) fn frame(&self, dev: &str) -> u32 {
        self.gateway
            .device(dev)
            .map_or(1514, |id| self.gateway.spec(id).mtu + self.gateway.spec(id).link_header)
    }

    /// The classes of HTB.
    pub(crate) fn htb_classes(&self) -> impl Iterator<Item = HtbClass<'_>> {
        self.classes.iter().filter_map(|class| match &class.params {
            ClassParams::Htb(params) => Some(HtbClass { class, params }),
            _ => None,
        })
    }

    /// A class of HTB by its number.
    pub(crate) fn htb_class(&self, dev: &str, classid: Handle) -> Option<HtbClass<'_>> {
        let class = self.class(dev, classid)?;
        let ClassParams::Htb(params) = &class.params else { return None };
        Some(HtbClass { class, params })
    }

    /// The classes of HTB right below one.
    pub(crate) fn htb_children<'r>(&'r self, class: &ClassDump) -> impl Iterator<Item = HtbClass<'r>> {
        self.index.below(&class.dev, class.classid).iter().filter_map(|at| match &self.classes[*at].params {
            ClassParams::Htb(params) => Some(HtbClass { class: &self.classes[*at], params }),
            _ => None,
        })
    }

    /// A class by its number.
    pub(crate) fn class(&self, dev: &str, classid: Handle) -> Option<&ClassDump> {
        self.index.class(dev, classid).map(|at| &self.classes[at])
    }

    /// Is it proved that no packet comes to a class?
    pub(crate) fn is_idle(&self, class: &ClassDump) -> bool {
        self.idle.contains(&(class.dev.clone(), class.classid))
    }

    /// A finding about a class, with a remark where no packet comes to it yet.
    pub(crate) fn if_idle(&self, class: &ClassDump, mut finding: Finding) -> Finding {
        if self.is_idle(class) {
            finding.because.push_str(&format!(" (no packet comes to {} yet)", class.classid));
        }
        finding
    }

    /// Has a class no class below it?
    pub(crate) fn is_leaf(&self, class: &ClassDump) -> bool {
        self.index.below(&class.dev, class.classid).is_empty()
    }

    /// The qdisc that was attached to a class; `None`: the kernel's own fifo.
    pub(crate) fn child(&self, class: &ClassDump) -> Option<&QdiscDump> {
        self.index.hung(&class.dev, class.classid).map(|at| &self.qdiscs[at])
    }

    /// The qdisc at a device's root.
    pub(crate) fn root(&self, dev: &str) -> Option<&QdiscDump> {
        self.qdiscs
            .iter()
            .find(|qdisc| qdisc.dev == dev && qdisc.parent == Handle::ROOT && !qdisc.handle.is_none())
    }

    /// The qdiscs that a qdisc hangs in, from the inside out.
    pub(crate) fn above<'r>(&'r self, qdisc: &'r QdiscDump) -> impl Iterator<Item = &'r QdiscDump> {
        let outer = |inner: &&'r QdiscDump| {
            // clsact has its own number for a parent's.
            let is_it = |one: &&QdiscDump| {
                one.dev == inner.dev && one.handle == inner.parent.qdisc() && one.handle != inner.handle
            };
            self.qdiscs
                .iter()
                .find(is_it)
                .filter(|outer| inner.parent != Handle::ROOT && !outer.handle.is_none())
        };
        std::iter::successors(outer(&qdisc), move |inner| outer(inner)).take(MOST_DEEP)
    }

    /// The qdisc of a device with this handle, and those that it hangs in.
    pub(crate) fn upward<'r>(&'r self, dev: &'r str, handle: Handle) -> impl Iterator<Item = &'r QdiscDump> {
        let is_it = move |one: &&QdiscDump| one.dev == dev && one.handle == handle && !handle.is_none();
        let first = self.qdiscs.iter().find(is_it);
        first.into_iter().chain(first.into_iter().flat_map(|first| self.above(first)))
    }

    /// A class and those above it in its qdisc.
    pub(crate) fn and_above<'r>(&'r self, class: &'r ClassDump) -> impl Iterator<Item = &'r ClassDump> {
        let parent = |inner: &&'r ClassDump| {
            self.class(&inner.dev, inner.parent).filter(|above| above.classid != inner.classid)
        };
        std::iter::successors(Some(class), parent).take(MOST_DEEP)
    }

    /// Does the number of a class of this qdisc, as a priority, lead a packet there? It does at the root, and
    /// below qdiscs of one class; elsewhere filters and defaults decide.
    pub(crate) fn is_led_by_number(&self, dev: &str, handle: Handle) -> bool {
        let line: Vec<&QdiscDump> = self.upward(dev, handle).collect();
        line.last().is_some_and(|top| top.parent == Handle::ROOT)
            && line.iter().skip(1).all(|above| above.kind.classes() == ClassLayout::One)
    }

    /// Does a filter see what arrives? (A root qdisc may have the number of an ingress.)
    pub(crate) fn arrives(&self, filter: &FilterDump) -> bool {
        filter.parent.qdisc() == Handle::INGRESS.qdisc()
            && filter.parent != CLSACT_EGRESS
            && self.qdiscs.iter().any(|q| q.dev == filter.dev && q.kind.is_hook())
    }

    /// The devices with a policy on what leaves them.
    pub(crate) fn shaped(&self) -> Vec<&str> {
        let mut devices: Vec<&str> = Vec::new();
        for qdisc in &self.qdiscs {
            let arrives = qdisc.kind.is_hook();
            if !qdisc.handle.is_none() && !arrives && !devices.contains(&qdisc.dev.as_str()) {
                devices.push(&qdisc.dev);
            }
        }
        devices
    }

    /// The rules of netfilter whose mark leads to a class.
    pub(crate) fn rules_to(&self, class: &ClassDump) -> Vec<&NetfilterRule> {
        let marks: Vec<u32> = self
            .filters
            .iter()
            .filter(|filter| filter.dev == class.dev)
            .filter_map(|filter| match &filter.entry {
                FilterEntry::Filter { handle, params: FilterParams::Fw(fw), .. }
                    if fw.classid == Some(class.classid) =>
                {
                    Some(*handle)
                }
                _ => None,
            })
            .collect();
        let leads = |target: &NetfilterTarget| match target {
            NetfilterTarget::Mark { value, .. }
            | NetfilterTarget::Connmark(ConnmarkTarget::Set { value, .. }) => marks.contains(value),
            NetfilterTarget::Classify(id) => *id == class.classid,
            _ => false,
        };
        self.rules().filter(|rule| rule.targets().any(leads)).collect()
    }

    /// The rules of all tables.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &NetfilterRule> {
        self.gateway
            .all_tables()
            .iter()
            .flat_map(|table| table.chains())
            .flat_map(|chain| chain.rules.iter().map(|counted| &counted.rule))
    }

    /// Whether a class is meant for acknowledgements without data.
    pub(crate) fn takes_acks(&self, class: &ClassDump) -> bool {
        let short = |rule: &NetfilterRule| {
            rule.matches.iter().any(|m| matches!(m.what, Condition::Length(_, high) if high < 128))
        };
        let ack = |rule: &NetfilterRule| {
            rule.matches.iter().any(|m| matches!(m.what, Condition::TcpFlags(mask, 0x10) if mask & 0x10 != 0))
        };
        let of_filters = |filter: &FilterDump| match &filter.entry {
            FilterEntry::Filter { params: FilterParams::U32(u32), .. } => {
                filter.protocol == ethertype::IPV4 && u32.mark.is_none() && acknowledgements(u32).is_some()
            }
            // Their packets are known by the rules that write their marks.
            FilterEntry::Filter { params, .. } => matches!(params, FilterParams::Fw(_)),
            _ => true,
        };
        let leading: Vec<&FilterDump> = self.leading_to(class).collect();
        let by_header = leading.iter().any(|filter| filter.kind == "u32");
        let rules = self.rules_to(class);
        (by_header || !rules.is_empty())
            && leading.into_iter().all(of_filters)
            && rules.into_iter().all(|rule| short(rule) && ack(rule))
    }

    /// The filters that name a class.
    fn leading_to(&self, class: &ClassDump) -> impl Iterator<Item = &FilterDump> {
        self.filters.iter().filter(move |filter| match &filter.entry {
            FilterEntry::Filter { params, .. } => {
                filter.dev == class.dev && params.classid() == Some(class.classid)
            }
            _ => false,
        })
    }
}

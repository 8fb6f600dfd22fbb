//! What leads to the installed classes: filters, rules by their marks, rules that name them.

use super::class_match::{
    BEHIND_PROVIDER, ClassMatch, Way, by_keys, by_rule, hosts_of_other_way, never_waits,
};
use super::compile::{LOCAL, REST};
use super::direction::leaves_elsewhere;
use super::found::{Misfit, Rules, WrongWay};
use super::left::{filter_text, rule_text};
use super::machine::Back;
use crate::units::rate_in_words;
use tidegate_packet::Handle;
use tidegate_packet::header::ethertype;
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry};
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, Family, NetfilterRule, NetfilterTarget};
use tidegate_policy::{Act, FilterOp, FilterParams, QdiscParams, RateSpec, Skbedit};

impl Back<'_> {
    /// What leads to a class: rules by priority, rules by mark with a filter for it, filters that ask the
    /// packet.
    pub(super) fn class_match(&mut self, class: &ClassDump) -> ClassMatch {
        let mut matching = ClassMatch::default();
        let way = self.way(&class.dev);
        let mut marks = Vec::new();
        let own = class.classid.qdisc();
        let filters = self.filters;
        for (at, filter) in filters.iter().enumerate() {
            let FilterEntry::Filter { handle, params, actions, .. } = &filter.entry else {
                if filter.dev == class.dev && filter.parent == own && is_bare_fw(filter, filters) {
                    self.accounts.filter(at);
                    let names = [class.classid.0, u32::from(class.classid.minor())];
                    marks.extend(names.map(|mark| (mark, u32::MAX, filter.protocol)));
                }
                continue;
            };
            let here = filter.dev == class.dev && filter.parent.major() == own.major();
            if !here || params.classid() != Some(class.classid) {
                continue;
            }
            self.accounts.filter(at);
            for dump in actions {
                let what = match &dump.action.act {
                    Act::Police(police) => {
                        format!("the policer{} of {}", at_rate(police.rate.as_ref()), filter_text(filter))
                    }
                    other => format!("the action {} of {}", other.kind(), filter_text(filter)),
                };
                self.miss(what, "it is left out");
            }
            // A short policy's built-in class has ARP.
            if filter.protocol == ethertype::ARP {
                matching.control = true;
                continue;
            }
            let above = if filter.parent == own { Above::Everything } else { self.above(filter, own) };
            match (filter_match(filter, params, way), above) {
                (FilterMatch::Mark(mask), Above::Everything) => marks.push((*handle, mask, filter.protocol)),
                (FilterMatch::Match(found), Above::Everything)
                | (FilterMatch::Everything, Above::Match(found)) => matching.take(found),
                // What is left has its place in a short policy.
                (FilterMatch::Everything, _) if class.classid.minor() == self.default_of(class) => {}
                (FilterMatch::Everything, Above::Everything) => {
                    self.miss(format!("{}, which takes everything", filter_text(filter)), "it is left out");
                }
                (FilterMatch::Other(what), Above::Everything) => {
                    self.miss(format!("{}, which matches {what}", filter_text(filter)), "it is left out");
                }
                (_, Above::Nothing) => self.miss(
                    format!(
                        "{}, which is never evaluated, because nothing leads to {}",
                        filter_text(filter),
                        filter.parent
                    ),
                    "it is left out",
                ),
                _ => self.miss(
                    format!(
                        "{}, which sees only what other filters lead to {}",
                        filter_text(filter),
                        filter.parent
                    ),
                    "it is left out: a class of a short policy matches one thing at a time",
                ),
            }
        }
        self.by_rules(class, &marks, &mut matching, way);
        matching
    }

    /// What rules lead to a class, by their marks or by its name.
    fn by_rules(
        &mut self,
        class: &ClassDump,
        marks: &[(u32, u32, u16)],
        class_match: &mut ClassMatch,
        way: Way,
    ) {
        let fits = |family: Family, value: u32, written: u32, (mark, mask, protocol): (u32, u32, u16)| {
            let common = written & mask;
            let of_protocol = match protocol {
                ethertype::IPV4 => family != Family::Ipv6,
                ethertype::IPV6 => family != Family::Ipv4,
                _ => true,
            };
            of_protocol && common != 0 && (value ^ mark) & common == 0
        };
        let (chains, on) = (self.rules, self.on(&class.dev));
        let sets = |wanted: (u32, u32, u16)| {
            let of_chain = |chain: &Rules| {
                chain.rules.iter().flat_map(NetfilterRule::targets).any(|target| match target {
                    NetfilterTarget::Mark { value, mask, .. } => fits(chain.family, *value, *mask, wanted),
                    NetfilterTarget::Connmark(_) => true,
                    _ => false,
                })
            };
            chains.iter().any(of_chain)
        };
        for wanted in marks.iter().filter(|wanted| !sets(**wanted)) {
            let mark = wanted.0;
            let acting = self.filters.iter().enumerate();
            let acting = acting.filter_map(|(at, filter)| Some((at, writes_mark(filter, *wanted)?))).next();
            if let Some((at, writes)) = acting {
                self.accounts.filter(at);
                let what = format!(
                    "the filter to {} for mark {mark:#x}, which an action of {} {writes}",
                    class.classid,
                    filter_text(&self.filters[at])
                );
                self.miss(
                    what,
                    "both are left out: a short policy has no words for actions that write marks",
                );
                continue;
            }
            // A mark that would name the class need not be set.
            if mark != class.classid.0 && mark != u32::from(class.classid.minor()) {
                let what = format!(
                    "the filter to {} for mark {mark:#x}, which no rule that is taken up sets",
                    class.classid
                );
                self.miss(what, "it is left out");
            }
        }
        for (chain, at, rule) in chains.iter().enumerate().flat_map(|(chain, rules)| {
            rules.rules.iter().enumerate().map(move |(at, rule)| (chain, at, rule))
        }) {
            let leads = rule.targets().any(|target| match target {
                NetfilterTarget::Classify(to) => *to == class.classid,
                NetfilterTarget::Mark { value, mask }
                | NetfilterTarget::Connmark(ConnmarkTarget::Set { value, mask }) => {
                    let family = chains[chain].family;
                    *value != 0 && marks.iter().any(|mark| fits(family, *value, *mask, *mark))
                }
                _ => false,
            });
            if !leads || leaves_elsewhere(rule, &on) {
                continue;
            }
            self.accounts.rule(chain, at);
            match by_rule(rule, way) {
                Ok(found) => class_match.take(found),
                // The classification that a short policy does on its own, and what remains.
                Err(_) if never_waits(rule) => class_match.control = true,
                Err(_) if is_bare(rule) && self.is_rest(class) => {}
                Err(_) if is_bare(rule) => {
                    let (condition, rule) = (taken_by(rule), rule_text(&chains[chain], rule));
                    self.miss(
                        format!(
                            "the rule `{rule}` to {}, which takes {condition} that no later rule marks",
                            class.classid
                        ),
                        "it is left out: a class of a short policy matches something, and what belongs to \
                        none is the rest",
                    );
                }
                Err(condition) => {
                    let what = format!(
                        "the rule `{}` to {}, which matches {condition}",
                        rule_text(&chains[chain], rule),
                        class.classid
                    );
                    let hosts = match condition == BEHIND_PROVIDER {
                        true => hosts_of_other_way(rule, way),
                        false => Vec::new(),
                    };
                    let misfit = Misfit::new(what, "it is left out");
                    match hosts.is_empty() {
                        true => self.misfits.push(misfit),
                        false => {
                            self.wrong_way.push(WrongWay { class: class.classid.minor(), hosts, misfit })
                        }
                    }
                }
            }
        }
    }

    /// What is left out of rules for hosts, if the class does not have them by the device of the other
    /// direction.
    pub(super) fn wrong_way(&mut self) {
        for one in std::mem::take(&mut self.wrong_way) {
            let has = |(class, hosts): &(u16, Vec<String>)| {
                *class == one.class && one.hosts.iter().all(|host| hosts.contains(host))
            };
            if !self.hosts.iter().any(has) {
                self.misfits.push(one.misfit);
            }
        }
    }

    /// What comes to the inner class whose filter this is.
    fn above(&mut self, filter: &FilterDump, own: Handle) -> Above {
        let leads = |other: &FilterDump| match &other.entry {
            FilterEntry::Filter { params, .. } => {
                other.dev == filter.dev && params.classid() == Some(filter.parent)
            }
            _ => false,
        };
        let (filters, way) = (self.filters, self.way(&filter.dev));
        let mut found = Above::Nothing;
        let named = self.rules.iter().flat_map(|chain| &chain.rules).flat_map(NetfilterRule::targets);
        if named
            .into_iter()
            .any(|target| matches!(target, NetfilterTarget::Classify(class) if *class == filter.parent))
        {
            found = Above::Some;
        }
        let mut at_all = Vec::new();
        for (at, other) in filters.iter().enumerate().filter(|(_, other)| leads(other)) {
            let FilterEntry::Filter { params, .. } = &other.entry else { continue };
            at_all.push(at);
            found = match (found, filter_match(other, params, way)) {
                _ if other.parent != own => Above::Some,
                (Above::Nothing | Above::Everything, FilterMatch::Everything) => Above::Everything,
                (Above::Nothing, FilterMatch::Match(asks)) => Above::Match(asks),
                (Above::Match(mut all), FilterMatch::Match(asks)) => {
                    all.take(asks);
                    Above::Match(all)
                }
                _ => Above::Some,
            };
        }
        let own = match &filter.entry {
            FilterEntry::Filter { params, .. } => takes_everything(params),
            _ => false,
        };
        // They are taken over where their conditions become the class's keys.
        if matches!(found, Above::Everything) || own && matches!(found, Above::Match(_)) {
            at_all.into_iter().for_each(|at| self.accounts.filter(at));
        }
        found
    }

    /// Does a class get what belongs to none: the default class, or the one that a short policy makes beside
    /// its default?
    fn is_rest(&self, class: &ClassDump) -> bool {
        let default = self.default_of(class);
        class.classid.minor() == default || default == LOCAL && class.classid.minor() == REST
    }

    /// The minor number of the default class at a class's qdisc.
    pub(super) fn default_of(&self, class: &ClassDump) -> u16 {
        let own = self.qdiscs.iter().find(|q| q.dev == class.dev && q.handle == class.classid.qdisc());
        match own.map(|qdisc| &qdisc.params) {
            Some(QdiscParams::Htb(htb)) => htb.default as u16,
            Some(QdiscParams::Hfsc(hfsc)) => hfsc.default,
            _ => 0,
        }
    }
}

/// What comes to an inner class.
enum Above {
    Nothing,
    Everything,
    Match(ClassMatch),
    /// Something that is not read.
    Some,
}

/// What a filter matches.
enum FilterMatch {
    Everything,
    Match(ClassMatch),
    /// Its handle, under this mask.
    Mark(u32),
    /// Something that a short policy has no words for.
    Other(String),
}

fn filter_match(filter: &FilterDump, params: &FilterParams, way: Way) -> FilterMatch {
    match params {
        FilterParams::Fw(fw) => FilterMatch::Mark(fw.mask.unwrap_or(u32::MAX)),
        _ if takes_everything(params) => FilterMatch::Everything,
        FilterParams::U32(u32) if u32.mark.is_some() => FilterMatch::Other("a mark".into()),
        FilterParams::U32(u32) => match by_keys(u32, filter.protocol == ethertype::IPV6, way) {
            Ok(class_match) => FilterMatch::Match(class_match),
            Err(what) => FilterMatch::Other(what),
        },
        _ => FilterMatch::Other("what a short policy has no words for".into()),
    }
}

/// Does a rule ask for nothing but devices?
fn is_bare(rule: &NetfilterRule) -> bool {
    let bare = |what: &Condition| {
        matches!(what, Condition::In(_) | Condition::Out(_) | Condition::Comment(_) | Condition::Version6(_))
    };
    rule.matches.iter().all(|found| bare(&found.what))
}

/// What a rule takes whose only conditions are devices.
fn taken_by(rule: &NetfilterRule) -> String {
    let came_in = rule.matches.iter().find_map(|found| match &found.what {
        Condition::In(pattern) if found.not => {
            Some(format!("everything that did not come in by {pattern} and"))
        }
        Condition::In(pattern) => Some(format!("everything that came in by {pattern} and")),
        _ => None,
    });
    came_in.unwrap_or_else(|| "everything".to_owned())
}

/// How an action of a filter writes a mark that is matched, in a word; `None`: none does.
fn writes_mark(filter: &FilterDump, (mark, mask, protocol): (u32, u32, u16)) -> Option<&'static str> {
    let FilterEntry::Filter { actions, .. } = &filter.entry else { return None };
    let writes = |act: &Act| match act {
        Act::Skbedit(Skbedit { mark: Some((value, written)), .. }) => {
            let common = written.unwrap_or(u32::MAX) & mask;
            (common != 0 && (value ^ mark) & common == 0).then_some("writes")
        }
        // No listing shows the mark of a connection.
        Act::Connmark(_) | Act::Ctinfo(_) => Some("may bring from the connection"),
        _ => None,
    };
    let of_protocol = filter.protocol == protocol || [filter.protocol, protocol].contains(&FilterOp::ALL);
    if of_protocol { actions.iter().find_map(|dump| writes(&dump.action.act)) } else { None }
}

/// Does a filter take every packet of its protocol?
pub(super) fn takes_everything(params: &FilterParams) -> bool {
    match params {
        FilterParams::Matchall(_) => true,
        FilterParams::U32(u32) => u32.mark.is_none() && u32.keys.iter().all(|key| key.mask == 0),
        _ => false,
    }
}

/// `fw` without any filter of its preference: the mark names the class.
fn is_bare_fw(heading: &FilterDump, filters: &[FilterDump]) -> bool {
    let same = |other: &&FilterDump| {
        (&other.dev, other.parent, other.pref) == (&heading.dev, heading.parent, heading.pref)
            && matches!(other.entry, FilterEntry::Filter { .. })
    };
    heading.kind == "fw"
        && matches!(heading.entry, FilterEntry::Heading)
        && !filters.iter().any(|other| same(&other))
}

/// ` at 40 Mbit/s`.
pub(super) fn at_rate(rate: Option<&RateSpec>) -> String {
    rate.map_or(String::new(), |spec| format!(" at {}", rate_in_words(spec.rate)))
}

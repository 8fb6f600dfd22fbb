//! Back again: what a machine holds, as a short policy where it fits, and in plain words what does not.

use super::asks::{Asks, by_keys, by_rule, never_waits};
use super::compile::{CONTROL, LOCAL, REST, REST_PRIO};
use super::left::{Accounts, filter_text, names, rule_text};
use super::read::MAX_CLASSES;
use super::text::{fair_word, list};
use super::{Fair, Queue};
use crate::units::print_rate;
use std::fmt::Write as _;
use tidegate_packet::header::ethertype;
use tidegate_packet::{Handle, Rate};
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{Connmark, Family, Rule, Target};
use tidegate_policy::{Act, ClassParams, FilterParams, FlowKeySet, HtbClassParams, Kind, QdiscParams, RateSpec};

/// Rates that a short policy knows, bit/s.
const RATES: core::ops::RangeInclusive<u64> = 8_000..=100_000_000_000;
/// Per cent of the link that its classes may be promised together.
const MOST_PROMISED: u64 = 95;

/// The rules of a chain, with the hook it stands at where it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Its table's family.
    pub family: Family,
    /// Its table.
    pub table: String,
    /// The table is nft's, not one of iptables'.
    pub is_nft: bool,
    /// The chain's name.
    pub chain: String,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// What a short policy has no words for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What it is.
    pub what: String,
    /// What becomes of it.
    pub instead: String,
}

impl Misfit {
    pub(super) fn new(what: impl Into<String>, instead: impl Into<String>) -> Misfit {
        Misfit { what: what.into(), instead: instead.into() }
    }
}

/// A class found.
#[derive(Debug)]
struct Found {
    id: Handle,
    percent: u64,
    ceil: u64,
    prio: u32,
    queue: Queue,
    fair: Fair,
    asks: Asks,
    is_default: bool,
}

/// A device found.
struct Tree {
    dev: String,
    rate: u64,
    classes: Vec<Found>,
}

struct Back<'m> {
    qdiscs: &'m [QdiscDump],
    classes: &'m [ClassDump],
    filters: &'m [FilterDump],
    rules: &'m [Rules],
    misfits: Vec<Misfit>,
    accounts: Accounts,
}

/// What a machine holds as a short policy, as far as it fits, and what does not. `None`: there is no tree of that shape.
pub fn from_machine(
    qdiscs: &[QdiscDump],
    classes: &[ClassDump],
    filters: &[FilterDump],
    rules: &[Rules],
) -> (Option<String>, Vec<Misfit>) {
    let accounts = Accounts::default();
    let mut back = Back { qdiscs, classes, filters, rules, misfits: Vec::new(), accounts };
    let text = back.policy();
    if text.is_some() {
        back.misfits.extend(back.accounts.left(classes, filters, rules));
    }
    let mut misfits: Vec<Misfit> = Vec::new();
    for misfit in back.misfits {
        if !misfits.contains(&misfit) {
            misfits.push(misfit);
        }
    }
    (text, misfits)
}

impl Back<'_> {
    fn miss(&mut self, what: impl Into<String>, instead: impl Into<String>) {
        self.misfits.push(Misfit::new(what, instead));
    }

    fn policy(&mut self) -> Option<String> {
        let roots: Vec<&QdiscDump> =
            self.qdiscs.iter().filter(|q| q.parent == Handle::ROOT && !q.handle.is_none()).collect();
        let mut trees = Vec::new();
        for root in roots {
            match &root.params {
                QdiscParams::Htb(params) => {
                    let default = params.default as u16;
                    trees.extend(self.tree(root, default));
                }
                _ if root.kind == Kind::Htb => {}
                QdiscParams::Tbf(tbf) => {
                    let rate = tbf.rate.rate.0 * 8;
                    trees.push(Tree { dev: root.dev.clone(), rate, classes: Vec::new() });
                }
                _ if matches!(root.kind, Kind::PfifoFast | Kind::Noqueue | Kind::FqCodel | Kind::Pfifo | Kind::Sfq) => {
                }
                _ => self.miss(
                    format!("the {} at the root of {}", root.kind.name(), root.dev),
                    "a short policy is HTB with its classes; write what they are for anew",
                ),
            }
        }
        trees.retain(|tree: &Tree| {
            let fits = RATES.contains(&tree.rate);
            if !fits {
                self.misfits.push(Misfit::new(
                    format!("the rate of {}, {} bit/s", tree.dev, tree.rate),
                    "the device is left out: a short policy's rates go from 8kbit to 100gbit",
                ));
            }
            fits
        });
        self.arriving();
        if trees.is_empty() {
            self.miss(
                "no device has an HTB or TBF at its root",
                "there is nothing that a short policy could say of it",
            );
            return None;
        }
        Some(self.write(&trees))
    }

    /// What is done to packets that arrive, but for leading them to a device that shapes them.
    fn arriving(&mut self) {
        let mut told = Vec::new();
        let hooks = self.qdiscs.iter().filter(|q| q.kind.is_hook()).map(|q| q.dev.as_str()).collect::<Vec<_>>();
        for (at, filter) in self.filters.iter().enumerate() {
            let hook = filter.parent.major() == u16::MAX && filter.parent != Handle::CLSACT_EGRESS;
            let FilterEntry::Filter { params, actions, .. } = &filter.entry else { continue };
            if !hook || !hooks.contains(&filter.dev.as_str()) {
                continue;
            }
            self.accounts.filter(at);
            let name = filter_text(filter);
            for dump in actions {
                told.push(match &dump.action.act {
                    act if act.redirects_to().is_some() && takes_everything(params) => continue,
                    act if act.redirects_to().is_some() => Misfit::new(
                        format!("{name}, which redirects only what it asks for"),
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
                told.push(Misfit::new(name, "it is left out"));
            }
        }
        self.misfits.extend(told);
    }

    fn params(class: &ClassDump) -> Option<&HtbClassParams> {
        match &class.params {
            ClassParams::Htb(params) => Some(params),
            _ => None,
        }
    }

    /// A link's class with its leaves.
    fn tree(&mut self, root: &QdiscDump, default: u16) -> Option<Tree> {
        let dev = &root.dev;
        let mut all: Vec<&ClassDump> = self
            .classes
            .iter()
            .filter(|class| class.dev == *dev && class.classid.qdisc() == root.handle && Self::params(class).is_some())
            .collect();
        // The kernel lists classes by a hash.
        all.sort_by_key(|class| class.classid);
        let inside = |class: &ClassDump| all.iter().copied().filter(|c| c.parent == class.classid).collect::<Vec<_>>();
        let on_top: Vec<&ClassDump> =
            all.iter().copied().filter(|class| class.parent == Handle::ROOT || class.parent == root.handle).collect();
        let link = on_top.iter().copied().find(|class| !inside(class).is_empty()).or_else(|| on_top.first().copied());
        let Some(link) = link else {
            self.miss(format!("the htb {} at the root of {dev}, which has no class", root.handle), "it is left out");
            return None;
        };
        self.accounts.class(link);
        let rate = Self::params(link)?.ceil.rate.0 * 8;
        for other in on_top.iter().filter(|other| other.classid != link.classid) {
            self.accounts.class(other);
            // A short policy makes one for what does not come from the provider.
            if other.classid.minor() != LOCAL || default != LOCAL {
                let what = format!(
                    "class {} of {dev} stands beside the link's class and does not borrow from it",
                    other.classid
                );
                self.miss(what, "it is left out; a short policy has one link on each device");
            }
        }
        let mut classes = Vec::new();
        let mut open: Vec<(&ClassDump, u64)> = inside(link).into_iter().rev().map(|class| (class, rate)).collect();
        while let Some((class, most)) = open.pop() {
            let Some(params) = Self::params(class) else { continue };
            let most = most.min(params.ceil.rate.0 * 8);
            let below = inside(class);
            if below.is_empty() {
                classes.extend(self.class(class, (rate, most), default));
            } else {
                self.inner(class, (rate, most), &below);
                open.extend(below.into_iter().rev().map(|class| (class, most)));
            }
        }
        if on_top.len() == 1 && inside(link).is_empty() {
            // It is the only class, and what belongs to none takes it.
            classes.extend(self.class(link, (rate, rate), default).map(|only| Found { is_default: true, ..only }));
        }
        let named = root.handle.class(default);
        if !classes.is_empty() && (default == 0 || !all.iter().any(|class| class.classid == named)) {
            let what = match default {
                0 => format!("no default class on {dev}, so that what no filter takes is not shaped"),
                _ => format!("the default class {named} of {dev}, which is not there"),
            };
            self.miss(what, "a short policy has a class for what no other takes");
        }
        self.leading_nowhere(dev, root.handle);
        if classes.is_empty() && on_top.len() > 1 {
            self.miss(
                format!("the classes of {dev} have no common parent"),
                format!("the link's rate is taken to be that of {}", link.classid),
            );
        }
        Some(Tree { dev: dev.clone(), rate, classes })
    }

    /// A class between the link's and its leaves.
    fn inner(&mut self, class: &ClassDump, (link, most): (u64, u64), below: &[&ClassDump]) {
        self.accounts.class(class);
        let mut below: Vec<Handle> = below.iter().map(|class| class.classid).collect();
        below.sort_unstable();
        let below = names(below);
        let together = match most < link {
            true => format!(", and nothing holds them to {} together", print_rate(Rate(most / 8), false)),
            false => String::new(),
        };
        self.miss(
            format!("class {} of {}, from which {below} borrow", class.classid, class.dev),
            format!(
                "it is left out, as a short policy has one level of classes: they keep their rates and ceilings and borrow from \
                 the link{together}"
            ),
        );
    }

    /// Filters to classes that are not there.
    fn leading_nowhere(&mut self, dev: &str, root: Handle) {
        let mut told = Vec::new();
        for (at, filter) in self.filters.iter().enumerate() {
            if filter.dev != dev || filter.parent != root {
                continue;
            }
            let FilterEntry::Filter { params, .. } = &filter.entry else { continue };
            let Some(to) = params.classid().filter(|to| to.minor() != 0) else { continue };
            if !self.classes.iter().any(|class| class.dev == dev && class.classid == to) {
                self.accounts.filter(at);
                told.push(Misfit::new(
                    format!("the {} filter to {to} of {dev}, a class that is not there", filter.kind),
                    "it is left out",
                ));
            }
        }
        self.misfits.extend(told);
    }

    /// A leaf with its numbers: of the link's rate, and of the least ceiling from it up to the link's class.
    fn class(&mut self, class: &ClassDump, (link, most): (u64, u64), default: u16) -> Option<Found> {
        let params = Self::params(class)?;
        let rate = params.rate.rate.0 * 8;
        if most < rate {
            self.miss(
                format!("class {} of {} may send less than its own rate", class.classid, class.dev),
                "its rate is taken for both: a short policy's ceil is no less than its share",
            );
        }
        let (queue, fair) = self.leaf(class);
        Some(Found {
            id: class.classid,
            percent: (rate * 100 + link / 2) / link.max(1),
            ceil: (most * 100 + link / 2) / link.max(1),
            prio: params.prio,
            queue,
            fair,
            asks: self.asks(class),
            is_default: class.classid.minor() == default,
        })
    }

    /// How a class's packets wait.
    fn leaf(&mut self, class: &ClassDump) -> (Queue, Fair) {
        let Some(leaf) = self.qdiscs.iter().find(|q| q.dev == class.dev && q.parent == class.classid) else {
            return (Queue::Plain, Fair::None);
        };
        match (&leaf.params, leaf.kind) {
            (QdiscParams::FqCodel(params), _) if params.limit.is_some_and(|limit| limit <= 256) => {
                (Queue::Short, Fair::Flow)
            }
            (_, Kind::FqCodel) => (Queue::Fair, Fair::Flow),
            (_, Kind::Pfifo | Kind::Bfifo | Kind::PfifoHeadDrop | Kind::PfifoFast) => (Queue::Plain, Fair::None),
            (_, Kind::Drr | Kind::Qfq) if self.is_by_host(leaf) => {
                self.accounts.all_of(leaf, self.classes, self.filters);
                (Queue::Fair, Fair::Host)
            }
            _ => {
                self.miss(
                    format!("the {} in class {} of {}", leaf.kind.name(), class.classid, class.dev),
                    "a fair queue (fq_codel) stands in its place",
                );
                (Queue::Fair, Fair::Flow)
            }
        }
    }

    /// Do hosts share it?
    fn is_by_host(&self, qdisc: &QdiscDump) -> bool {
        let hosts = ["src", "dst", "nfct-src", "nfct-dst"];
        self.filters.iter().filter(|f| f.dev == qdisc.dev && f.parent == qdisc.handle).any(|f| match &f.entry {
            FilterEntry::Filter { params: FilterParams::Flow(flow), .. } => {
                let names = FlowKeySet::NAMES.iter().enumerate().filter(|(bit, _)| flow.keys.has(*bit as u32));
                names.map(|(_, name)| *name).all(|name| hosts.contains(&name))
            }
            _ => false,
        })
    }

    /// What leads to a class: rules by priority, rules by mark with a filter for it, filters that ask the packet.
    fn asks(&mut self, class: &ClassDump) -> Asks {
        let mut asks = Asks::default();
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
            // Who looks for a neighbour's address never waits in a short policy.
            if filter.protocol == ethertype::ARP {
                continue;
            }
            let above = if filter.parent == own { Above::Everything } else { self.above(filter, own) };
            match (said(filter, params), above) {
                (Said::Mark(mask), Above::Everything) => marks.push((*handle, mask, filter.protocol)),
                (Said::Asks(found), Above::Everything) | (Said::Everything, Above::Asks(found)) => asks.take(found),
                // What is left has its place in a short policy.
                (Said::Everything, _) if class.classid.minor() == self.default_of(class) => {}
                (Said::Everything, Above::Everything) => {
                    self.miss(format!("{}, which takes everything", filter_text(filter)), "it is left out");
                }
                (Said::Other(what), Above::Everything) => {
                    self.miss(format!("{}, which asks {what}", filter_text(filter)), "it is left out");
                }
                (_, Above::Nothing) => self.miss(
                    format!(
                        "{}, which is never asked, because nothing leads to {}",
                        filter_text(filter),
                        filter.parent
                    ),
                    "it is left out",
                ),
                _ => self.miss(
                    format!(
                        "{}, which is asked only of what other filters lead to {}",
                        filter_text(filter),
                        filter.parent
                    ),
                    "it is left out: a class of a short policy asks for one thing at a time",
                ),
            }
        }
        self.by_rules(class, &marks, &mut asks);
        asks
    }

    /// What rules lead to a class, by their marks or by its name.
    fn by_rules(&mut self, class: &ClassDump, marks: &[(u32, u32, u16)], asks: &mut Asks) {
        let fits = |family: Family, value: u32, written: u32, (mark, mask, protocol): (u32, u32, u16)| {
            let common = written & mask;
            let of_protocol = match protocol {
                ethertype::IPV4 => family != Family::Ipv6,
                ethertype::IPV6 => family != Family::Ipv4,
                _ => true,
            };
            of_protocol && common != 0 && (value ^ mark) & common == 0
        };
        let chains = self.rules;
        let sets = |wanted: (u32, u32, u16)| {
            let of_chain = |chain: &Rules| {
                chain.rules.iter().flat_map(Rule::targets).any(|target| match target {
                    Target::Mark { value, mask, .. } => fits(chain.family, *value, *mask, wanted),
                    Target::Connmark(_) => true,
                    _ => false,
                })
            };
            chains.iter().any(of_chain)
        };
        for (mark, ..) in marks.iter().filter(|wanted| wanted.0 > u32::from(u16::MAX) || !sets(**wanted)) {
            // A mark that would name the class need not be set.
            if *mark != class.classid.0 && *mark != u32::from(class.classid.minor()) {
                let what = format!("the filter to {} for mark {mark:#x}, which no rule here sets", class.classid);
                self.miss(what, "it is left out");
            }
        }
        for (chain, at, rule) in chains
            .iter()
            .enumerate()
            .flat_map(|(chain, rules)| rules.rules.iter().enumerate().map(move |(at, rule)| (chain, at, rule)))
        {
            let leads = rule.targets().any(|target| match target {
                Target::Classify(to) => *to == class.classid,
                Target::Mark { value, mask } | Target::Connmark(Connmark::Set { value, mask }) => {
                    let family = chains[chain].family;
                    *value != 0 && marks.iter().any(|mark| fits(family, *value, *mask, *mark))
                }
                _ => false,
            });
            if !leads {
                continue;
            }
            self.accounts.rule(chain, at);
            match by_rule(rule) {
                Ok(found) => asks.take(found),
                // What is left, and what a short policy sees to by itself.
                Err(_) if rule.matches.is_empty() || never_waits(rule) => {}
                Err(what) => {
                    let what = format!(
                        "the rule `{}` to {}, which asks {what}",
                        rule_text(&chains[chain], rule),
                        class.classid
                    );
                    self.miss(what, "it is left out");
                }
            }
        }
    }

    /// What comes to the inner class whose filter this is.
    fn above(&mut self, filter: &FilterDump, own: Handle) -> Above {
        let leads = |other: &FilterDump| match &other.entry {
            FilterEntry::Filter { params, .. } => other.dev == filter.dev && params.classid() == Some(filter.parent),
            _ => false,
        };
        let filters = self.filters;
        let mut found = Above::Nothing;
        let named = self.rules.iter().flat_map(|chain| &chain.rules).flat_map(Rule::targets);
        if named.into_iter().any(|target| matches!(target, Target::Classify(class) if *class == filter.parent)) {
            found = Above::Some;
        }
        let mut at_all = Vec::new();
        for (at, other) in filters.iter().enumerate().filter(|(_, other)| leads(other)) {
            let FilterEntry::Filter { params, .. } = &other.entry else { continue };
            at_all.push(at);
            found = match (found, said(other, params)) {
                _ if other.parent != own => Above::Some,
                (Above::Nothing | Above::Everything, Said::Everything) => Above::Everything,
                (Above::Nothing, Said::Asks(asks)) => Above::Asks(asks),
                (Above::Asks(mut all), Said::Asks(asks)) => {
                    all.take(asks);
                    Above::Asks(all)
                }
                _ => Above::Some,
            };
        }
        let own = match &filter.entry {
            FilterEntry::Filter { params, .. } => takes_everything(params),
            _ => false,
        };
        // They are taken up where what they ask becomes what the class asks.
        if matches!(found, Above::Everything) || own && matches!(found, Above::Asks(_)) {
            at_all.into_iter().for_each(|at| self.accounts.filter(at));
        }
        found
    }

    /// The minor number of the default class where a class stands.
    fn default_of(&self, class: &ClassDump) -> u16 {
        let own = self.qdiscs.iter().find(|q| q.dev == class.dev && q.handle == class.classid.qdisc());
        match own.map(|qdisc| &qdisc.params) {
            Some(QdiscParams::Htb(htb)) => htb.default as u16,
            _ => 0,
        }
    }

    /// Whole per cent of the link that the classes may be promised together.
    fn shares(&mut self, classes: &[(&Found, Asks)], dev: &str) -> Vec<u64> {
        let sum: u64 = classes.iter().map(|(class, _)| class.percent.max(1)).sum();
        if sum > MOST_PROMISED {
            self.miss(
                format!("the classes of {dev} are promised {sum} % of the link together"),
                format!("their shares are made smaller in proportion, to {MOST_PROMISED} %"),
            );
        }
        let fitting = |percent: u64| percent.max(1) * MOST_PROMISED / sum.max(MOST_PROMISED);
        classes.iter().map(|(class, _)| fitting(class.percent).clamp(1, MOST_PROMISED)).collect()
    }

    /// The trees as a text: the one towards the modem, and the one for downloads.
    fn write(&mut self, trees: &[Tree]) -> String {
        let led_to = |dev: &str| {
            self.filters.iter().find_map(|filter| match &filter.entry {
                FilterEntry::Filter { actions, .. } => {
                    let to = |shown: &tidegate_policy::dump::ActionDump| shown.action.act.redirects_to() == Some(dev);
                    actions.iter().any(to).then(|| filter.dev.clone())
                }
                _ => None,
            })
        };
        let is_lan = |dev: &str| dev.starts_with("br") || dev.starts_with("lan") || dev.starts_with("wl");
        let down = trees
            .iter()
            .find(|tree| tree.dev.starts_with("ifb"))
            .or_else(|| trees.iter().find(|tree| is_lan(&tree.dev)));
        let up = trees.iter().find(|tree| down.is_none_or(|down| down.dev != tree.dev));
        let device = up
            .map(|tree| tree.dev.clone())
            .or_else(|| down.and_then(|tree| led_to(&tree.dev)))
            .unwrap_or_else(|| "eth0".into());
        if up.is_none() && down.is_none_or(|tree| led_to(&tree.dev).is_none()) {
            self.misfits.push(Misfit::new(
                "the device towards the modem, of which nothing is configured",
                format!("device = \"{device}\" is a guess; correct it"),
            ));
        }
        let others: Vec<String> = trees
            .iter()
            .map(|tree| tree.dev.clone())
            .filter(|dev| Some(dev) != up.map(|tree| &tree.dev) && Some(dev) != down.map(|tree| &tree.dev))
            .collect();
        for other in others {
            self.miss(format!("the tree on {other}"), "it is left out; a short policy has one device each way");
        }
        let mut out = format!("device = \"{device}\"\n");
        if let Some(lan) = down.filter(|tree| !tree.dev.starts_with("ifb")) {
            let _ = writeln!(out, "lan = \"{}\"", lan.dev);
        }
        // What is configured is what shall be used: all of it.
        out.push_str("shape = \"100%\"\n");
        for (key, tree) in [("up", up), ("down", down)] {
            if let Some(tree) = tree {
                let _ = writeln!(out, "{key} = \"{}kbit\"", tree.rate / 1000);
            }
        }
        let has_classes = |tree: &&Tree| !tree.classes.is_empty();
        let Some(main) = up.filter(has_classes).or(down.filter(has_classes)).or(up).or(down) else { return out };
        if let Some(rest) = main.classes.iter().find(|class| class.is_default) {
            let _ = writeln!(out, "fair = \"{}\"", fair_word(rest.fair));
        }
        let elsewhere = down.filter(|tree| tree.dev != main.dev);
        for tree in up.into_iter().chain(down) {
            self.defaults(tree);
        }
        self.sections(main, elsewhere, &mut out);
        out
    }

    /// The class of what belongs to none.
    fn defaults(&mut self, tree: &Tree) {
        // Towards the LAN the default class of a short policy is that of what does not come from the provider.
        let own = |class: &&Found| class.id.minor() == REST && class.prio == REST_PRIO;
        let rest = tree.classes.iter().find(|class| class.is_default).or_else(|| tree.classes.iter().find(own));
        let Some(rest) = rest else { return };
        self.accounts.id(&tree.dev, rest.id);
        if rest.ceil < 100 {
            self.miss(
                format!("the default class {} of {} may send {} % of the link at most", rest.id, tree.dev, rest.ceil),
                "what belongs to no class of a short policy may have all that is free",
            );
        }
    }

    fn sections(&mut self, main: &Tree, other: Option<&Tree>, out: &mut String) {
        let rest = main.classes.iter().find(|class| class.is_default).map_or(u32::MAX, |class| class.prio);
        let mut classes: Vec<&Found> = main.classes.iter().filter(|class| !class.is_default).collect();
        classes.sort_by_key(|class| class.prio);
        let mut said: Vec<(&Found, Asks)> = Vec::new();
        for class in classes {
            let (id, dev) = (class.id, &main.dev);
            self.accounts.id(dev, id);
            let mut asks = class.asks.clone();
            let is_twin = |twin: &&Found| twin.id.minor() == id.minor() && !twin.is_default;
            let twin = other.and_then(|tree| tree.classes.iter().find(is_twin));
            if let (Some(twin), Some(other)) = (twin, other) {
                asks.take(twin.asks.clone());
                self.twins((class, dev), (twin, &other.dev));
            }
            if asks.is_control() {
                if id.minor() != CONTROL {
                    self.miss(
                        format!("class {id} of {dev}, for {}", asks.port_texts().join(", ")),
                        "it is left out: DNS, DHCP and clocks have a class of their own in a short policy",
                    );
                }
            } else if asks.is_empty() {
                self.miss(
                    format!("class {id} of {dev}, to which nothing leads that a short policy can say"),
                    "it is left out; DNS, DHCP and short acknowledgements have a class of their own in a short policy",
                );
            } else if said.len() == MAX_CLASSES {
                self.miss(
                    format!("class {id} of {dev}"),
                    format!("it is left out: a short policy has {MAX_CLASSES} classes at most"),
                );
            } else {
                said.push((class, asks));
            }
        }
        let shares = self.shares(&said, &main.dev);
        let mut used: Vec<String> = Vec::new();
        for ((class, asks), share) in said.iter().zip(shares) {
            let name = asks.name.clone().filter(|name| !used.contains(name));
            let name = name.unwrap_or_else(|| format!("class{:x}", class.id.minor()));
            used.push(name.clone());
            let _ = writeln!(out, "\n[classes.{name}]");
            list(out, "ports", &asks.port_texts());
            list(out, "dscp", &asks.dscp.iter().map(u8::to_string).collect::<Vec<_>>());
            list(out, "hosts", &asks.hosts);
            if let Some(after) = asks.after {
                let _ = writeln!(out, "after = \"{}kB\"", after.saturating_sub(1).div_ceil(1000).max(1));
            }
            if class.prio > rest {
                out.push_str("last = true\n");
            } else if class.queue == Queue::Short {
                out.push_str("first = true\n");
            }
            let _ = writeln!(out, "share = \"{share}%\"");
            if class.ceil < 100 {
                let _ = writeln!(out, "ceil = \"{}%\"", class.ceil.clamp(share, 99));
            }
            let queue = match class.queue {
                Queue::Short => "short",
                Queue::Fair => "fair",
                Queue::Plain => "plain",
            };
            let _ = writeln!(out, "queue = \"{queue}\"");
            if class.queue == Queue::Fair {
                let _ = writeln!(out, "fair = \"{}\"", fair_word(class.fair));
            }
        }
    }
}

impl Back<'_> {
    /// A class of the same number each way, where a short policy has one for both.
    fn twins(&mut self, (class, dev): (&Found, &str), (twin, other): (&Found, &str)) {
        self.accounts.id(other, twin.id);
        // A per cent may be what rounding makes of one share on two links.
        let differ = class.percent.abs_diff(twin.percent) > 1 || class.ceil.abs_diff(twin.ceil) > 1;
        if differ {
            self.miss(
                format!(
                    "class {} of {other} has {} % of its link and {} % at most, {} of {dev} {} % and {} %",
                    twin.id, twin.percent, twin.ceil, class.id, class.percent, class.ceil
                ),
                format!("those of {dev} are taken for both: a short policy has one share each way"),
            );
        }
        if (class.queue, class.fair) != (twin.queue, twin.fair) {
            self.miss(
                format!("the queue in class {} of {other}, which differs from that in {} of {dev}", twin.id, class.id),
                format!("that of {dev} is taken for both"),
            );
        }
    }
}

/// What comes to an inner class.
enum Above {
    Nothing,
    Everything,
    Asks(Asks),
    /// Something that is not read.
    Some,
}

/// What a filter asks.
enum Said {
    Everything,
    Asks(Asks),
    /// Its handle, under this mask.
    Mark(u32),
    /// Something that a short policy has no words for.
    Other(String),
}

fn said(filter: &FilterDump, params: &FilterParams) -> Said {
    match params {
        FilterParams::Fw(fw) => Said::Mark(fw.mask.unwrap_or(u32::MAX)),
        _ if takes_everything(params) => Said::Everything,
        FilterParams::U32(u32) if u32.mark.is_some() => Said::Other("for a mark".into()),
        FilterParams::U32(u32) => match by_keys(u32, filter.protocol == ethertype::IPV6) {
            Ok(asks) => Said::Asks(asks),
            Err(what) => Said::Other(what),
        },
        _ => Said::Other("what a short policy has no words for".into()),
    }
}

/// Does a filter take every packet of its protocol?
fn takes_everything(params: &FilterParams) -> bool {
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
    heading.kind == "fw" && matches!(heading.entry, FilterEntry::Heading) && !filters.iter().any(|other| same(&other))
}

/// ` at 40Mbit`.
fn at_rate(rate: Option<&RateSpec>) -> String {
    rate.map_or(String::new(), |spec| format!(" at {}", print_rate(spec.rate, false)))
}

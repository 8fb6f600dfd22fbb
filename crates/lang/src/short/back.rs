//! Back again: what a machine holds, as a short policy where it fits, and in plain words what does not.

use super::compile::CONTROL_PORTS;
use super::read::{Share, bits};
use super::{Class, Fair, Queue, Rank, Short};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::{Condition, Connmark, CountMode, Rule, Target};
use tidegate_policy::{Act, ClassParams, FilterParams, FlowKeySet, HtbClassParams, Kind, QdiscParams, U32Params};

/// Rates that a short policy knows, bit/s.
const RATES: core::ops::RangeInclusive<u64> = 8_000..=100_000_000_000;
/// Per cent of the link that its classes may be promised together.
const MOST_PROMISED: u64 = 95;

/// The rules of a chain, with the hook it stands at where it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
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
    fn new(what: impl Into<String>, instead: impl Into<String>) -> Misfit {
        Misfit { what: what.into(), instead: instead.into() }
    }
}

/// What a class is for.
#[derive(Clone, Debug, Default, PartialEq)]
struct Asks {
    /// Protocol, from one to another.
    ports: Vec<(Option<u8>, u16, u16)>,
    dscp: Vec<u8>,
    hosts: Vec<String>,
    after: Option<u64>,
    /// What the rules call it.
    name: Option<String>,
}

impl Asks {
    fn is_empty(&self) -> bool {
        *self == Asks::default()
    }

    /// Is it nothing but what a short policy lets never wait anyway?
    fn is_control(&self) -> bool {
        let of_control = |(_, low, high): &(Option<u8>, u16, u16)| {
            CONTROL_PORTS.iter().any(|(first, last)| (*first..=*last).contains(low) && high <= last)
        };
        let others = self.dscp.is_empty() && self.hosts.is_empty() && self.after.is_none();
        others && !self.ports.is_empty() && self.ports.iter().all(of_control)
    }

    /// The ports, those of one protocol together.
    fn port_texts(&self) -> Vec<String> {
        let mut ports = self.ports.clone();
        ports.sort_unstable();
        let mut merged: Vec<(Option<u8>, u16, u16)> = Vec::new();
        for (protocol, low, high) in ports {
            match merged.last_mut() {
                Some(last) if last.0 == protocol && low <= last.2.saturating_add(1) => last.2 = last.2.max(high),
                _ => merged.push((protocol, low, high)),
            }
        }
        merged.into_iter().map(|(protocol, low, high)| port_text(protocol, low, high)).collect()
    }

    fn take(&mut self, other: Asks) {
        for port in other.ports {
            if !self.ports.contains(&port) {
                self.ports.push(port);
            }
        }
        for dscp in other.dscp {
            if !self.dscp.contains(&dscp) {
                self.dscp.push(dscp);
            }
        }
        for host in other.hosts {
            if !self.hosts.contains(&host) {
                self.hosts.push(host);
            }
        }
        self.after = self.after.or(other.after);
        self.name = self.name.take().or(other.name);
    }
}

/// A class found.
#[derive(Debug)]
struct Found {
    minor: u16,
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
}

/// What a machine holds as a short policy, as far as it fits, and what does not. `None`: there is no tree of that shape.
pub fn from_machine(
    qdiscs: &[QdiscDump],
    classes: &[ClassDump],
    filters: &[FilterDump],
    rules: &[Rules],
) -> (Option<String>, Vec<Misfit>) {
    let mut back = Back { qdiscs, classes, filters, rules, misfits: Vec::new() };
    let text = back.policy();
    back.misfits.dedup();
    (text, back.misfits)
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
        let arrives =
            |filter: &&FilterDump| filter.parent.major() == u16::MAX && filter.parent != Handle::CLSACT_EGRESS;
        for filter in self.filters.iter().filter(arrives) {
            let FilterEntry::Filter { actions, .. } = &filter.entry else { continue };
            for dump in actions.iter().filter(|dump| dump.action.act.redirects_to().is_none()) {
                told.push(match &dump.action.act {
                    Act::Police(_) => Misfit::new(
                        format!("the policer of what arrives by {}", filter.dev),
                        "it is left out; `down = RATE` shapes downloads instead",
                    ),
                    other => Misfit::new(
                        format!("the action {} on what arrives by {}", other.kind(), filter.dev),
                        "it is left out",
                    ),
                });
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
        let all: Vec<&ClassDump> = self
            .classes
            .iter()
            .filter(|class| class.dev == *dev && class.classid.qdisc() == root.handle && Self::params(class).is_some())
            .collect();
        let is_parent = |class: &ClassDump| all.iter().any(|other| other.parent == class.classid);
        let on_top: Vec<&&ClassDump> =
            all.iter().filter(|class| class.parent == Handle::ROOT || class.parent == root.handle).collect();
        let link = on_top.iter().find(|class| is_parent(class)).or_else(|| on_top.first())?;
        let rate = Self::params(link)?.ceil.rate.0 * 8;
        for other in on_top.iter().filter(|other| other.classid != link.classid) {
            let wide = Self::params(other).is_some_and(|params| params.rate.rate.0 * 8 >= 1_000_000_000);
            if !wide {
                self.miss(
                    format!(
                        "class {} of {dev} stands beside the link's class and does not borrow from it",
                        other.classid
                    ),
                    "it is left out; a short policy has one link on each device",
                );
            }
        }
        let mut classes = Vec::new();
        for class in all.iter().filter(|class| class.parent == link.classid) {
            if is_parent(class) {
                self.miss(
                    format!("class {} of {dev} has classes of its own", class.classid),
                    "they are taken as one: a short policy has one level of classes",
                );
            }
            classes.extend(self.class(class, rate, default));
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

    /// Filters to classes that are not there.
    fn leading_nowhere(&mut self, dev: &str, root: Handle) {
        let mut told = Vec::new();
        for filter in self.filters.iter().filter(|filter| filter.dev == dev && filter.parent == root) {
            let FilterEntry::Filter { params, .. } = &filter.entry else { continue };
            let Some(to) = params.classid().filter(|to| to.minor() != 0) else { continue };
            if !self.classes.iter().any(|class| class.dev == dev && class.classid == to) {
                told.push(Misfit::new(
                    format!("the {} filter to {to} of {dev}, a class that is not there", filter.kind),
                    "it is left out",
                ));
            }
        }
        self.misfits.extend(told);
    }

    fn class(&mut self, class: &ClassDump, link: u64, default: u16) -> Option<Found> {
        let params = Self::params(class)?;
        let (rate, ceil) = (params.rate.rate.0 * 8, params.ceil.rate.0 * 8);
        if ceil < rate {
            self.miss(
                format!("class {} of {} may send less than its own rate", class.classid, class.dev),
                "its rate is taken for both: a short policy's ceil is no less than its share",
            );
        }
        let (queue, fair) = self.leaf(class);
        Some(Found {
            minor: class.classid.minor(),
            percent: (rate * 100 + link / 2) / link.max(1),
            ceil: (ceil * 100 + link / 2) / link.max(1),
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
            (_, Kind::Drr | Kind::Qfq) if self.is_by_host(leaf) => (Queue::Fair, Fair::Host),
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
        let mut marks = vec![class.classid.0];
        let lead = |classid: Option<Handle>| classid.is_some_and(|to| to == class.classid);
        for filter in self.filters.iter().filter(|f| f.dev == class.dev && f.parent == class.classid.qdisc()) {
            let FilterEntry::Filter { handle, params, .. } = &filter.entry else { continue };
            match params {
                FilterParams::Fw(fw) if lead(fw.classid) => marks.push(*handle),
                FilterParams::U32(u32) if lead(u32.classid) => match by_keys(u32, filter.protocol == 0x86dd) {
                    Ok(found) => asks.take(found),
                    Err(what) => {
                        self.miss(format!("the filter to {} that asks {what}", class.classid), "it is left out")
                    }
                },
                FilterParams::Basic(basic) if lead(basic.classid) => self.unsaid("basic", class),
                FilterParams::Flower(flower) if lead(flower.classid) => self.unsaid("flower", class),
                FilterParams::Flow(flow) if lead(flow.baseclass) => self.unsaid("flow", class),
                _ => {}
            }
        }
        let rules: Vec<&Rule> = self.rules.iter().flat_map(|chain| &chain.rules).collect();
        let sets = |wanted: u32| {
            let mut targets = rules.iter().flat_map(|rule| rule.targets());
            targets.any(|target| match target {
                Target::Mark { value, mask, .. } => (value ^ wanted) & mask == 0,
                Target::Connmark(_) => true,
                _ => false,
            })
        };
        let unset: Vec<u32> = marks[1..].iter().copied().filter(|mark| !sets(*mark)).collect();
        for mark in unset {
            let what = format!("the filter to {} for mark {mark:#x}, which no rule here sets", class.classid);
            self.miss(what, "it is left out");
        }
        for rule in rules {
            let leads = rule.targets().any(|target| match target {
                Target::Classify(to) => *to == class.classid,
                Target::Mark { value, .. } | Target::Connmark(Connmark::Set { value, .. }) => {
                    marks[1..].contains(value)
                }
                _ => false,
            });
            if leads {
                match by_rule(rule) {
                    Ok(found) => asks.take(found),
                    // What is left, and what a short policy sees to by itself.
                    Err(_) if rule.matches.is_empty() || never_waits(rule) => {}
                    Err(what) => self.miss(format!("a rule to {} that asks {what}", class.classid), "it is left out"),
                }
            }
        }
        asks
    }

    /// A filter of a kind that is not read.
    fn unsaid(&mut self, kind: &str, class: &ClassDump) {
        self.miss(format!("the {kind} filter to {} of {}", class.classid, class.dev), "it is left out");
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
        let Some(main) = up.or(down) else { return out };
        if let Some(rest) = main.classes.iter().find(|class| class.is_default) {
            let _ = writeln!(out, "fair = \"{}\"", fair_word(rest.fair));
        }
        let elsewhere = down.filter(|tree| tree.dev != main.dev);
        self.sections(main, elsewhere, &mut out);
        out
    }

    fn sections(&mut self, main: &Tree, other: Option<&Tree>, out: &mut String) {
        let rest = main.classes.iter().find(|class| class.is_default).map_or(u32::MAX, |class| class.prio);
        let mut classes: Vec<&Found> = main.classes.iter().filter(|class| !class.is_default).collect();
        classes.sort_by_key(|class| class.prio);
        let mut said: Vec<(&Found, Asks)> = Vec::new();
        for class in classes {
            let mut asks = class.asks.clone();
            let twin = other.and_then(|tree| tree.classes.iter().find(|twin| twin.minor == class.minor));
            if let Some(twin) = twin {
                asks.take(twin.asks.clone());
            }
            if asks.is_control() {
                continue;
            }
            if asks.is_empty() {
                self.miss(
                    format!("nothing that a short policy can say leads to class {:x} of {}", class.minor, main.dev),
                    "it is left out; DNS, DHCP and short acknowledgements have a class of their own in a short policy",
                );
                continue;
            }
            said.push((class, asks));
        }
        let shares = self.shares(&said, &main.dev);
        for ((class, asks), share) in said.iter().zip(shares) {
            let name = asks.name.clone().unwrap_or_else(|| format!("class{:x}", class.minor));
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

fn list(out: &mut String, key: &str, values: &[String]) {
    if !values.is_empty() {
        let values: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        let _ = writeln!(out, "{key} = [{}]", values.join(", "));
    }
}

const fn fair_word(fair: Fair) -> &'static str {
    match fair {
        Fair::Host => "host",
        Fair::Flow => "flow",
        Fair::None => "none",
    }
}

fn port_text(protocol: Option<u8>, low: u16, high: u16) -> String {
    let range = if low == high { low.to_string() } else { format!("{low}-{high}") };
    match protocol {
        Some(6) => format!("tcp {range}"),
        Some(17) => format!("udp {range}"),
        _ => range,
    }
}

fn host_text(octets: &[u8; 16], bits: u8) -> String {
    let v4 = octets[..12].iter().all(|octet| *octet == 0) && bits <= 32;
    let (address, most) = match v4 {
        true => (IpAddr::V4(Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15])), 32),
        false => (IpAddr::V6(Ipv6Addr::from(*octets)), 128),
    };
    if bits == most { address.to_string() } else { format!("{address}/{bits}") }
}

/// Does a rule lead what a short policy lets never wait: short acknowledgements, neighbours looking for one another?
fn never_waits(rule: &Rule) -> bool {
    let asks = |wanted: fn(&Condition) -> bool| rule.matches.iter().any(|m| wanted(&m.what));
    let acknowledges = asks(|what| matches!(what, Condition::TcpFlags(mask, 0x10) if mask & 0x17 == 0x17));
    let is_short = asks(|what| matches!(what, Condition::Length(_, high) if *high <= 128));
    acknowledges && is_short || asks(|what| matches!(what, Condition::Protocol(58)))
}

/// What a rule asks, in a short policy's words; what has none is named.
fn by_rule(rule: &Rule) -> Result<Asks, String> {
    let mut asks = Asks::default();
    let protocol = rule.matches.iter().find_map(|m| match m.what {
        Condition::Protocol(number) if !m.not => Some(number),
        _ => None,
    });
    // What stands on one line must hold together; a short policy's words each hold alone.
    let mut said = 0;
    for found in &rule.matches {
        let single = std::slice::from_ref(&found.what);
        let all = if let Condition::Any(several) = &found.what { several.as_slice() } else { single };
        if found.not {
            return Err("for what is not so".into());
        }
        let mut counts = true;
        for what in all {
            match what {
                Condition::Protocol(6 | 17) | Condition::Version6(_) => counts = false,
                Condition::Comment(text) => {
                    let fits = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
                    asks.name = fits.then(|| text.clone());
                    counts = false;
                }
                Condition::In(_) | Condition::Out(_) => counts = false,
                Condition::SourcePort((low, high)) | Condition::DestinationPort((low, high)) => {
                    asks.ports.push((protocol, *low, *high));
                }
                Condition::SourcePorts(ranges) | Condition::DestinationPorts(ranges) | Condition::Ports(ranges) => {
                    asks.ports.extend(ranges.iter().map(|(low, high)| (protocol, *low, *high)));
                }
                Condition::Dscp(dscp) => asks.dscp.push(*dscp),
                Condition::Tos(value, mask) if mask & 0xfc == 0xfc => asks.dscp.push(value >> 2),
                Condition::Source(octets, bits) | Condition::Destination(octets, bits) => {
                    asks.hosts.push(host_text(octets, *bits))
                }
                Condition::Connbytes(bytes) if bytes.mode == CountMode::Bytes && bytes.to == u64::MAX => {
                    asks.after = Some(bytes.from)
                }
                // The first packet of a connection is marked, and with it the connection.
                Condition::TcpFlags(_, 2) if rule.targets().any(|t| matches!(t, Target::Connmark(_))) => counts = false,
                other => return Err(named(other)),
            }
        }
        said += usize::from(counts);
    }
    match said {
        0 => match protocol {
            Some(6 | 17) => {
                asks.ports.push((protocol, 1, u16::MAX));
                Ok(asks)
            }
            Some(number) => Err(format!("for all of protocol {number}")),
            None => Err("nothing".into()),
        },
        1 => Ok(asks),
        _ => Err("for several things at once".into()),
    }
}

fn named(what: &Condition) -> String {
    match what {
        Condition::TcpFlags(..) => "for TCP's flags".into(),
        Condition::Length(..) => "for the length".into(),
        Condition::IcmpType(..) => "for messages of ICMP".into(),
        Condition::Protocol(number) => format!("for all of protocol {number}"),
        Condition::Connstate(_) | Condition::State(_) => "for the connection's state".into(),
        Condition::Mark(..) | Condition::Connmark(..) => "for a mark".into(),
        _ => "for something else".into(),
    }
}

/// The same for a filter of u32.
fn by_keys(params: &U32Params, v6: bool) -> Result<Asks, String> {
    let mut asks = Asks::default();
    let (mut protocol, mut said) = (None, 0);
    let at = if v6 { 40 } else { 20 };
    for key in params.keys.iter().filter(|key| key.mask != 0) {
        let (value, mask) = (key.value, key.mask);
        match (key.offset, mask, v6) {
            (8, 0x00ff_0000, false) => protocol = Some((value >> 16) as u8),
            (4, 0x0000_ff00, true) => protocol = Some((value >> 8) as u8),
            (0, mask, false) if mask & 0xff00_ffff == 0 && mask >> 16 & 0xfc == 0xfc => {
                asks.dscp.push((value >> 18) as u8);
                said += 1;
            }
            (0, mask, true) if mask & 0xf00f_ffff == 0 && mask >> 20 & 0xfc == 0xfc => {
                asks.dscp.push((value >> 22) as u8);
                said += 1;
            }
            // Neighbours looking for one another never wait anyway.
            (40, _, true) if protocol == Some(58) => return Ok(Asks::default()),
            (offset, mask, _) if offset == at && (mask & 0xffff == 0 || mask >> 16 == 0) => {
                let (low, bits) = if mask & 0xffff == 0 { (value >> 16, mask >> 16) } else { (value, mask) };
                let open = !bits & 0xffff;
                if open & (open + 1) != 0 {
                    return Err(format!("for ports by the bits {bits:#x}, which are no range"));
                }
                asks.ports.push((protocol, low as u16, (low | !bits & 0xffff) as u16));
                said += 1;
            }
            (12 | 16, mask, false) if mask.leading_ones() + mask.trailing_zeros() == 32 => {
                let address = Ipv4Addr::from(value);
                let bits = mask.leading_ones();
                asks.hosts.push(if bits == 32 { address.to_string() } else { format!("{address}/{bits}") });
                said += 1;
            }
            _ => return Err(format!("{value:#x}/{mask:#x} at {}", key.offset)),
        }
    }
    match said {
        1 => Ok(asks),
        0 => Err(match protocol {
            Some(number) => format!("for all of protocol {number}"),
            None => "nothing, and takes everything".into(),
        }),
        _ => Err("for several things at once".into()),
    }
}

impl Short {
    /// As a file says it, presets filled in.
    pub fn text(&self) -> String {
        let mut out = format!("device = \"{}\"\n", self.device.value);
        if let Some(lan) = &self.lan {
            let _ = writeln!(out, "lan = \"{}\"", lan.value);
        }
        for (key, rate) in [("up", &self.up), ("down", &self.down)] {
            if let Some(rate) = rate {
                let _ = writeln!(out, "{key} = \"{}\"", rate_text(rate.value));
            }
        }
        let _ = writeln!(out, "shape = \"{}%\"", self.shape);
        let known = super::links::LINKS.iter().find(|kind| {
            (kind.overhead, kind.mpu, kind.atm, kind.ptm)
                == (self.link.overhead, self.link.mpu, self.link.atm, self.link.ptm)
        });
        match known {
            Some(kind) => drop(writeln!(out, "link = \"{}\"", kind.name)),
            None => drop(writeln!(out, "overhead = {}\nmpu = {}", self.link.overhead, self.link.mpu)),
        }
        let _ = writeln!(out, "fair = \"{}\"", fair_word(self.fair));
        if self.buckets != 16 {
            let _ = writeln!(out, "buckets = {}", self.buckets);
        }
        self.classes.iter().for_each(|class| section(class, &mut out));
        out
    }
}

fn section(class: &Class, out: &mut String) {
    let _ = writeln!(out, "\n[classes.{}]", class.name.value);
    list(out, "apps", &class.apps.iter().map(|app| app.value.name.to_owned()).collect::<Vec<_>>());
    let ports = class.ports.iter().map(|said| port_text(said.value.protocol, said.value.range.0, said.value.range.1));
    list(out, "ports", &ports.collect::<Vec<_>>());
    list(out, "dscp", &class.dscp.iter().map(|dscp| dscp.value.to_string()).collect::<Vec<_>>());
    list(out, "hosts", &class.hosts.iter().map(|host| super::compile::network(&host.value)).collect::<Vec<_>>());
    if let Some(after) = &class.after {
        let _ = writeln!(out, "after = \"{}kB\"", after.value / 1000);
    }
    match class.rank {
        Rank::First => out.push_str("first = true\n"),
        Rank::Last => out.push_str("last = true\n"),
        Rank::Middle => {}
    }
    for (key, share) in [("share", &class.share), ("ceil", &class.ceil)] {
        match share.as_ref().map(|share| share.value) {
            Some(Share::Percent(percent)) => drop(writeln!(out, "{key} = \"{percent}%\"")),
            Some(Share::Rate(rate)) => drop(writeln!(out, "{key} = \"{}\"", rate_text(rate))),
            None => {}
        }
    }
    if let Some(queue) = &class.queue {
        let word = match queue.value {
            Queue::Short => "short",
            Queue::Fair => "fair",
            Queue::Plain => "plain",
        };
        let _ = writeln!(out, "queue = \"{word}\"");
    }
    if let Some(fair) = &class.fair {
        let _ = writeln!(out, "fair = \"{}\"", fair_word(fair.value));
    }
}

/// A rate as it is written.
fn rate_text(rate: u64) -> String {
    bits(rate).replace(" Gbit/s", "gbit").replace(" Mbit/s", "mbit").replace(" kbit/s", "kbit")
}

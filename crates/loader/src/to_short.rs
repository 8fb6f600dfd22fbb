//! The installed policy as a short policy, and all that differs: the resulting policy is compiled and
//! compared with its source.
//!
//! The packets of each class of the one are compared with those of each class of the other, all of them at
//! once; and the queues with one another. So what is not named has the same class and the same queue in both.

use crate::short::understand;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_inspect::{ClassPair, PacketKind, PolicyModel, Uses, assumed_speeds, pairs};
use tidegate_packet::Handle;
use tidegate_policy::dump::QdiscDump;

use tidegate_policy::{Kind, QdiscParams};
use tidegate_syntax::short::{CONTROL_NAME, Conversion, Misfit, Rules, Short, from_machine, rule_text};
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat};
use tidegate_syntax::units::rate_in_words;

/// Pairs of classes that are named one by one.
const MOST_PAIRS: usize = 12;

/// The classes that every short policy has.
const REST: &str = "the rest";
const CONTROL: &str = CONTROL_NAME;
const LOCAL: &str = "not from the provider";

/// A policy as a short one, and what that leaves out or does otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShortPolicy {
    /// The text; `None`: there is nothing to make it of.
    pub text: Option<String>,
    /// What does not fit.
    pub misfits: Vec<Misfit>,
}

/// How the text that comes out is loaded.
pub(crate) type Load<'l> = &'l dyn Fn(&str) -> Result<PolicyModel, String>;

/// The installed policy as a short policy.
pub(crate) fn to_short(reading: &PolicyModel, load: Load<'_>) -> ShortPolicy {
    let mut misfits = Vec::new();
    let uses = Uses::of(reading);
    let mut rules = chains(reading);
    for chain in &mut rules {
        let whole = chain.clone();
        chain.rules.retain(|rule| {
            let why = match (uses.is_received(rule), uses.is_overwritten(rule)) {
                (true, _) => "which takes only packets for this machine itself",
                (_, true) => "whose mark no packet has that comes to a queue",
                _ => return true,
            };
            let (text, table, chain) = (rule_text(&whole, rule), &whole.table, &whole.chain);
            misfits.push(misfit(format!("the rule `{text}` in {table} {chain}, {why}"), "it is left out"));
            false
        });
    }
    for (dev, speed) in assumed_speeds(reading) {
        misfits.push(misfit(
            format!("rates in per cent of the speed of {dev}, which only {dev} knows"),
            format!(
                "they are computed for {}; write the link's rate where that is another",
                rate_in_words(speed)
            ),
        ));
    }
    let converted = from_machine(&reading.qdiscs, &reading.classes, &reading.filters, &rules);
    misfits.extend(converted.misfits.iter().cloned());
    let Some(text) = converted.text.clone() else { return ShortPolicy { text: None, misfits } };
    match laid_beside(reading, &converted, &text, load) {
        Ok(found) => misfits.extend(found),
        Err(why) => {
            // It is a bug of tidegate's, and better reported than printed.
            misfits.push(misfit("the short policy that comes out", why));
            return ShortPolicy { text: None, misfits };
        }
    }
    ShortPolicy { text: Some(text), misfits }
}

fn misfit(what: impl Into<String>, instead: impl Into<String>) -> Misfit {
    Misfit { what: what.into(), instead: instead.into() }
}

fn chains(reading: &PolicyModel) -> Vec<Rules> {
    let mut rules = Vec::new();
    for table in reading.gateway.all_tables() {
        rules.extend(table.chains().iter().map(|chain| Rules {
            family: table.family(),
            table: table.name().to_owned(),
            is_nft: table.is_free(),
            chain: chain.name.clone(),
            rules: chain.rules.iter().map(|rule| rule.rule.clone()).collect(),
        }));
    }
    rules
}

/// The differences between the installed policy and the short one.
fn laid_beside(
    reading: &PolicyModel,
    converted: &Conversion,
    text: &str,
    load: Load<'_>,
) -> Result<Vec<Misfit>, String> {
    let (short, _) = understand(text).map_err(|problems| format!("cannot be read: {}", problems[0].what))?;
    let mut beside = Beside::new(reading, load(text)?, converted, &short);
    beside.packets();
    beside.queues();
    Ok(beside.misfits)
}

type Place = (String, Handle);

/// Both policies, and which class of the one is which of the other.
struct Beside<'r> {
    first: &'r PolicyModel,
    second: PolicyModel,
    /// The devices of the first, with what they are called in the second.
    devices: Vec<(String, String)>,
    /// The classes of the first that have a place in the second, by its name.
    names: BTreeMap<Place, String>,
    /// The classes of the second by their numbers.
    called: BTreeMap<Place, String>,
    misfits: Vec<Misfit>,
}

impl<'r> Beside<'r> {
    fn new(first: &'r PolicyModel, second: PolicyModel, converted: &Conversion, short: &Short) -> Beside<'r> {
        let called: BTreeMap<Place, String> =
            short.class_names().into_iter().map(|(dev, class, name)| ((dev, class), name)).collect();
        let shaped: BTreeSet<&String> = called.keys().map(|(dev, _)| dev).collect();
        let up = converted.devices[0].iter().map(|dev| (dev.clone(), short.device.value.clone()));
        let towards_lan = shaped.iter().find(|dev| ***dev != short.device.value || short.up.is_none());
        let down = converted.devices[1].iter().zip(towards_lan).map(|(dev, to)| (dev.clone(), (*to).clone()));
        let devices = up.chain(down).collect();
        let names =
            converted.classes.iter().map(|one| ((one.device.clone(), one.class), one.name.clone())).collect();
        Beside { first, second, devices, names, called, misfits: Vec::new() }
    }

    /// Packets whose class is another.
    fn packets(&mut self) {
        // Where all packets share one queue nothing is classified.
        let with_classes = |dev: &&(String, String)| {
            let tells_apart = |kind: Kind| matches!(kind, Kind::Htb | Kind::Hfsc);
            self.first.classes.iter().any(|class| class.dev == dev.0 && tells_apart(class.kind))
        };
        let devices: Vec<(String, String)> = self.devices.iter().filter(with_classes).cloned().collect();
        if devices.is_empty() {
            return;
        }
        let Some(found) = pairs(self.first, &self.second, &devices) else {
            self.misfits.push(misfit(
                "which packets go to which class",
                "it was not decided (sets of packets too intricate, or frames of devices on top of this one): \
                what is said above is all that is known",
            ));
            return;
        };
        let of_root = |place: &Place| {
            let root = |q: &&QdiscDump| q.dev == place.0 && q.parent == Handle::ROOT;
            self.first.qdiscs.iter().find(root).is_some_and(|root| root.handle == place.1.qdisc())
        };
        let found: Vec<ClassPair> = found.into_iter().filter(|pair| of_root(&pair.from)).collect();
        let differs = |pair: &&ClassPair| match (self.names.get(&pair.from), self.called.get(&pair.to)) {
            (Some(own), Some(other)) => own != other,
            // The class is reported as left out; its packets then have no class.
            (None, Some(other)) => other != REST,
            (_, None) => false,
        };
        let differing: Vec<&ClassPair> = found.iter().filter(differs).collect();
        let misfits = self.unsupported(&differing);
        self.misfits.extend(misfits);
    }

    fn unsupported(&self, differing: &[&ClassPair]) -> Vec<Misfit> {
        let mut unsupported = Vec::new();
        let to =
            |pair: &&&ClassPair, name: &str| self.called.get(&pair.to).is_some_and(|called| called == name);
        let never_wait: Vec<&ClassPair> =
            differing.iter().filter(|pair| to(pair, CONTROL)).copied().collect();
        if !never_wait.is_empty() {
            let what = "DNS, DHCP, clocks, ARP, neighbours looking for one another and, on uploads, short \
            acknowledgements";
            unsupported.push(misfit(
                format!("{what}, of {}", self.from(&never_wait)),
                format!("they go to the class of {CONTROL}, which every short policy has"),
            ));
        }
        let local: Vec<&ClassPair> = differing.iter().filter(|pair| to(pair, LOCAL)).copied().collect();
        if let Some(first) = local.first() {
            unsupported.push(misfit(
                format!(
                    "what leaves by {} and did not come in by the device towards the provider, of {}",
                    first.from.0,
                    self.from(&local)
                ),
                "it goes to a class of its own at 10 Gbit/s: a short policy shapes what comes from the \
                provider",
            ));
        }
        let mut single = Vec::new();
        for kind in [PacketKind::Transport, PacketKind::Other, PacketKind::Ipv6] {
            let here =
                differing.iter().filter(|pair| pair.among == kind && !to(pair, CONTROL) && !to(pair, LOCAL));
            let here: Vec<&ClassPair> = here.copied().collect();
            match kind {
                PacketKind::Transport => single = here,
                _ if here.is_empty() => {}
                _ => {
                    let what = match kind {
                        PacketKind::Ipv6 => "packets of IPv6",
                        _ => {
                            "packets that are neither TCP nor UDP, or are fragments, have options, belong \
                            to no connection, or leave by the device they came in by"
                        }
                    };
                    let instead = format!("they go to other classes: {}", self.moves(&here));
                    unsupported.push(misfit(format!("{what}, of {}", self.from(&here)), instead));
                }
            }
        }
        for pair in single.iter().take(MOST_PAIRS) {
            let packet = pair.packet.as_ref().map_or(String::new(), |packet| format!(", `{packet}` for one"));
            unsupported.push(misfit(
                format!("packets of class {} of {}{packet}", pair.from.1, pair.from.0),
                format!("they go to {}", self.name(&pair.to)),
            ));
        }
        if let Some(more) = single.get(MOST_PAIRS..).filter(|more| !more.is_empty()) {
            unsupported.push(misfit(
                format!("packets of {}", self.from(more)),
                format!("they go to other classes: {}", self.moves(more)),
            ));
        }
        unsupported
    }

    /// `classes 1:10 and 1:20 of eth0`.
    fn from(&self, pairs: &[&ClassPair]) -> String {
        let mut by_device: BTreeMap<&str, BTreeSet<Handle>> = BTreeMap::new();
        for pair in pairs {
            by_device.entry(&pair.from.0).or_default().insert(pair.from.1);
        }
        let text = |(device, classes): (&str, BTreeSet<Handle>)| {
            let word = if classes.len() == 1 { "class" } else { "classes" };
            let ids: Vec<String> = classes.iter().map(Handle::to_string).collect();
            format!("{word} {} of {device}", ids.join(", "))
        };
        by_device.into_iter().map(text).collect::<Vec<_>>().join(" and ")
    }

    /// `1:10 to the rest, 1:20 to voip`.
    fn moves(&self, pairs: &[&ClassPair]) -> String {
        let mut moves: Vec<String> =
            pairs.iter().map(|pair| format!("{} to {}", pair.from.1, self.name(&pair.to))).collect();
        moves.dedup();
        moves.join(", ")
    }

    fn name(&self, place: &Place) -> String {
        self.called.get(place).cloned().unwrap_or_else(|| place.1.to_string())
    }

    /// Queues of one kind with other parameters.
    fn queues(&mut self) {
        let mut differing: BTreeMap<(String, String), Vec<Place>> = BTreeMap::new();
        for (place, name) in &self.names {
            let Some((_, device)) = self.devices.iter().find(|(first, _)| *first == place.0) else {
                continue;
            };
            let Some(class) = self.called.iter().find(|((dev, _), called)| dev == device && *called == name)
            else {
                continue;
            };
            let queue = |reading: &PolicyModel, at: &Place| {
                reading
                    .qdiscs
                    .iter()
                    .find(|q| q.dev == at.0 && q.parent == at.1 && !q.handle.is_none())
                    .cloned()
            };
            let (Some(own), Some(other)) = (queue(self.first, place), queue(&self.second, class.0)) else {
                continue;
            };
            if own.kind == other.kind && own.kind != Kind::Drr && !alike(&own.params, &other.params) {
                differing.entry((words(&own), words(&other))).or_default().push(place.clone());
            }
        }
        for ((own, other), places) in differing {
            let ids: Vec<String> = places.iter().map(|(dev, class)| format!("{class} of {dev}")).collect();
            self.misfits.push(misfit(
                format!("the parameters of {own}, in {}", ids.join(", ")),
                format!("a short policy computes them from the class's rate: {other}"),
            ));
        }
    }
}

/// Are the parameters of two queues of one kind the same, but for what rounding a rate makes of times?
fn alike(own: &QdiscParams, other: &QdiscParams) -> bool {
    match (own, other) {
        (QdiscParams::FqCodel(a), QdiscParams::FqCodel(b)) => {
            let near = |a: Option<u32>, b: Option<u32>| {
                a.unwrap_or(0).abs_diff(b.unwrap_or(0)) <= a.unwrap_or(0) / 20
            };
            near(a.target_us, b.target_us)
                && near(a.interval_us, b.interval_us)
                && (a.limit, a.ecn) == (b.limit, b.ecn)
        }
        (QdiscParams::Fifo(a), QdiscParams::Fifo(b)) => a == b,
        _ => own == other,
    }
}

/// A queue in tc's words, without its place.
fn words(queue: &QdiscDump) -> String {
    let line =
        tc::show_qdiscs(std::slice::from_ref(queue), &ShowWhat::of(Object::Qdisc), &ShowFlags::default());
    let words: Vec<&str> = line.lines().next().unwrap_or_default().split_whitespace().collect();
    let from = words.iter().position(|word| *word == "parent").map_or(0, |at| at + 2);
    let options = words.get(from..).unwrap_or_default();
    format!("{} {}", queue.kind.name(), options.join(" "))
}

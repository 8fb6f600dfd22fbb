//! The trees that were found, as the text of a short policy.

use super::class_match::{ClassMatch, Way};
use super::compile::{CONTROL, CONTROL_NAME, REST, REST_PRIO};
use super::found::{Found, Framing, Misfit, RATES, Tree};
use super::left::names;
use super::machine::Back;
use super::numbers::header_of;
use super::policy::{Fair, Queue};
use super::read::MAX_CLASSES;
use super::text::{fair_word, list};
use crate::units::rate_in_words;
use std::fmt::Write as _;
use tidegate_packet::{Handle, Rate};
use tidegate_policy::FilterParams;
use tidegate_policy::dump::{FilterEntry, QdiscDump};

/// The most of the link, per cent, that its classes may be guaranteed together.
const MOST_PROMISED: u64 = 95;
/// The part of the link that the class of DNS, clocks and short acknowledgements has.
const CONTROL_PART: f64 = 0.05;
/// The part of the link by which shares, which are rounded to per cent, may miss a rate.
const ROUNDED: f64 = 0.02;
/// How many hosts a short policy can distinguish; the greatest is the default.
const BUCKETS: core::ops::RangeInclusive<u32> = 2..=64;
const BUCKETS_BY_ITSELF: u32 = 16;
/// The most bytes of overhead, and of the least frame, that a short policy may give.
const MOST_OVERHEAD: i64 = 256;
/// HTB's priority of classes that are last, and the last one that the order of the file gives.
const LAST_PRIO: u32 = 7;
const MOST_ORDERED: u32 = 5;
/// What the classes are called that every short policy has.
const NAMES: [&str; 4] = ["the link", "the rest", CONTROL_NAME, "not from the provider"];

impl Back<'_> {
    /// The trees as a text: the one towards the modem, and the one for downloads.
    pub(super) fn write(&mut self, trees: &[Tree]) -> String {
        let down = trees
            .iter()
            .find(|tree| tree.on.starts_with("ifb"))
            .or_else(|| trees.iter().find(|tree| self.way(&tree.dev) == Way::Lan));
        let is_up =
            |tree: &&Tree| !tree.on.starts_with("ifb") && down.is_none_or(|down| down.dev != tree.dev);
        let up = trees.iter().find(is_up);
        let led_from = down.and_then(|tree| self.feeds(&tree.dev).arriving.into_iter().next());
        let is_guess = up.is_none() && led_from.is_none();
        let device = up.map(|tree| tree.on.clone()).or(led_from).unwrap_or_else(|| "eth0".into());
        if is_guess {
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
            self.accounts.device(&other);
            self.miss(
                format!("the tree on {other}"),
                "it is left out; a short policy has one device each way",
            );
        }
        for tree in up.into_iter().chain(down) {
            self.taken_for_lan(&tree.dev);
            self.leading_out(tree);
        }
        if let Some(down) = down.filter(|tree| tree.on.starts_with("ifb")) {
            self.arriving_elsewhere(&down.dev, &device);
        }
        let mut out = format!("device = \"{device}\"\n");
        if let Some(lan) = down.filter(|tree| !tree.on.starts_with("ifb")) {
            let _ = writeln!(out, "lan = \"{}\"", lan.on);
        }
        // What is configured is what shall be used: all of it.
        out.push_str("shape = \"100%\"\n");
        for (key, tree) in [("up", up), ("down", down)] {
            if let Some(tree) = tree {
                let _ = writeln!(out, "{key} = \"{}kbit\"", tree.rate / 1000);
            }
        }
        let dev_of = |tree: Option<&Tree>| tree.map(|tree| tree.dev.clone());
        self.devices = [dev_of(up), dev_of(down)];
        self.link(up.or(down), down, &mut out);
        let has_classes = |tree: &&Tree| !tree.classes.is_empty();
        let Some(main) = up.filter(has_classes).or(down.filter(has_classes)) else {
            let fair = up.or(down).map_or(Fair::Flow, |tree| tree.fair);
            let _ = writeln!(out, "fair = \"{}\"", fair_word(fair));
            return out;
        };
        if let Some(rest) = main.classes.iter().find(|class| class.is_default) {
            let _ = writeln!(out, "fair = \"{}\"", fair_word(rest.fair));
        }
        self.buckets(up, down, &mut out);
        let elsewhere = down.filter(|tree| tree.dev != main.dev);
        for tree in up.into_iter().chain(down) {
            self.defaults(tree);
        }
        self.sections(main, elsewhere, &mut out);
        out
    }

    /// Writes how many hosts are distinguished.
    fn buckets(&mut self, up: Option<&Tree>, down: Option<&Tree>, out: &mut String) {
        let trees = up.into_iter().chain(down);
        let by_host = trees.flat_map(|tree| tree.classes.iter().map(|class| (&tree.dev, class)));
        let by_host = by_host.filter(|(_, class)| class.fair == Fair::Host);
        let counts: Vec<(String, u32)> = by_host
            .filter_map(|(dev, class)| {
                Some((format!("{} of {dev}", class.id), self.hosts_in(dev, class.id)?))
            })
            .collect();
        let Some((_, first)) = counts.first().cloned() else { return };
        let first = if BUCKETS.contains(&first) { first } else { BUCKETS_BY_ITSELF };
        if first != BUCKETS_BY_ITSELF {
            let _ = writeln!(out, "buckets = {first}");
        }
        for (class, count) in counts.into_iter().filter(|(_, count)| *count != first) {
            self.miss(
                format!("class {class}, which has {count} buckets for hosts"),
                format!("it has {first} buckets, as the other classes of a short policy"),
            );
        }
    }

    /// The buckets of the qdisc in a class that hosts share.
    fn hosts_in(&self, dev: &str, class: Handle) -> Option<u32> {
        let leaf = self.qdiscs.iter().find(|q| q.dev == dev && q.parent == class)?;
        self.filters.iter().filter(|f| f.dev == dev && f.parent == leaf.handle).find_map(|f| match &f.entry {
            FilterEntry::Filter { params: FilterParams::Flow(flow), .. } => Some(flow.divisor),
            _ => None,
        })
    }

    /// What the link adds to each packet.
    fn link(&mut self, main: Option<&Tree>, other: Option<&Tree>, out: &mut String) {
        let Some(main) = main else { return };
        let framing = main.framing;
        if let Some(other) = other.filter(|other| other.framing != framing) {
            self.miss(
                format!("the overhead of {}, which differs from that of {}", other.dev, main.dev),
                format!("that of {} is taken for both", main.dev),
            );
        }
        if framing == Framing::default() {
            return;
        }
        let overhead = framing.overhead + i64::from(header_of(&main.on));
        let fits = (0..=MOST_OVERHEAD).contains(&overhead) && i64::from(framing.mpu) <= MOST_OVERHEAD;
        if !fits || framing.overhead < 0 {
            self.miss(
                format!(
                    "overhead {} and mpu {} on each frame of {}",
                    framing.overhead, framing.mpu, main.dev
                ),
                "they are left out: a short policy counts at least the frame, and at most 256 bytes more \
                than its IP packet",
            );
        }
        let kind = match (framing.atm, framing.ptm) {
            (true, _) => Some("adsl"),
            (_, true) => Some("vdsl2"),
            _ => None,
        };
        if let Some(kind) = kind {
            let _ = writeln!(out, "link = \"{kind}\"");
        }
        let (overhead, mpu) = match fits && framing.overhead >= 0 {
            true => (overhead, framing.mpu),
            false => (i64::from(header_of(&main.on)), 0),
        };
        if kind.is_some() || fits && framing.overhead >= 0 {
            let _ = writeln!(out, "overhead = {overhead}\nmpu = {mpu}");
        }
    }

    /// The class of what belongs to none.
    fn defaults(&mut self, tree: &Tree) {
        // Towards the LAN the default class of a short policy is that of what does not come from the
        // provider.
        let own = |class: &&Found| class.id.minor() == REST && class.prio == REST_PRIO;
        let rest =
            tree.classes.iter().find(|class| class.is_default).or_else(|| tree.classes.iter().find(own));
        let Some(rest) = rest else { return };
        self.taken_up(&tree.dev, rest, "the rest");
        if rest.ceil < tree.rate {
            self.miss(
                format!(
                    "the default class {} of {} may send {} at most",
                    rest.id,
                    tree.dev,
                    rate_in_words(Rate(rest.ceil / 8))
                ),
                "what belongs to no class of a short policy may have all that is free",
            );
        }
        if !rest.matching.is_empty() {
            self.miss(
                format!("what filters lead to the default class {} of {}", rest.id, tree.dev),
                "it is left out: what belongs to no class of a short policy needs none",
            );
        }
    }

    /// A class has a place in the short policy.
    fn taken_up(&mut self, dev: &str, class: &Found, name: &str) {
        self.accounts.id(dev, class.id);
        self.note_queue(dev, class);
        self.misfits.extend(class.notes.iter().cloned());
        self.counterpart(dev, class.id, name);
    }

    /// A class has none; its queue goes with it.
    fn left_out(&mut self, dev: &str, class: &Found, what: &str, instead: &str) {
        self.accounts.id(dev, class.id);
        self.note_queue(dev, class);
        self.accounts.beneath(self.qdiscs, self.classes, self.filters, dev, class.id);
        let here = |q: &&QdiscDump| q.dev == dev && q.parent == class.id && !q.handle.is_none();
        let queue =
            self.qdiscs.iter().find(here).map_or(String::new(), |q| format!(" with its {}", q.kind.name()));
        self.miss(format!("class {} of {dev}{queue}{what}", class.id), instead);
    }

    fn sections(&mut self, main: &Tree, other: Option<&Tree>, out: &mut String) {
        let rest = main.classes.iter().find(|class| class.is_default).map_or(u32::MAX, |class| class.prio);
        let mut classes: Vec<&Found> = main.classes.iter().filter(|class| !class.is_default).collect();
        classes.sort_by_key(|class| class.prio);
        let mut written: Vec<(&Found, ClassMatch)> = Vec::new();
        for class in classes {
            if let Some(class_match) = self.section(class, main, other, &written) {
                written.push((class, class_match));
            }
        }
        if written.is_empty() {
            // Without any class a policy is one queue unless it says otherwise.
            out.push_str("kind = \"classes\"\n");
        }
        self.lonely(main, other);
        self.order(&written, main, rest);
        let shares = self.shares(&written, main);
        for tree in std::iter::once(main).chain(other) {
            self.rest_rate(tree, shares.iter().sum::<u64>() as f64 / main.rate as f64);
        }
        let rounded: u64 = shares.iter().map(|share| percent(*share, main.rate).max(1)).sum();
        let rounds = rounded <= MOST_PROMISED;
        let mut used: Vec<String> = Vec::new();
        for ((class, class_match), share) in written.iter().zip(shares) {
            let name = name_of(class, class_match, &used);
            used.push(name.clone());
            self.taken_up(&main.dev, class, &name);
            self.hosts.push((class.id.minor(), class_match.hosts.clone()));
            if let Some((twin, tree)) = twin_of(class, other) {
                self.taken_up(&tree.dev, twin, &name);
            }
            print((class, class_match), &name, (share, rounds), (main, other), rest, out);
        }
    }

    /// The keys of a class in the short policy; `None`: it has no place there, which is reported.
    fn section(
        &mut self,
        class: &Found,
        main: &Tree,
        other: Option<&Tree>,
        written: &[(&Found, ClassMatch)],
    ) -> Option<ClassMatch> {
        let dev = &main.dev;
        let mut class_match = class.matching.clone();
        let twin = twin_of(class, other);
        if let Some((twin, tree)) = twin {
            class_match.take(twin.matching.clone());
            self.twins((class, main), (twin, tree));
        }
        let before: Vec<&ClassMatch> = written.iter().map(|(_, class_match)| class_match).collect();
        let matching = class_match.clone();
        class_match.without(&before);
        if !class_match.is_empty() && written.len() < MAX_CLASSES {
            return Some(class_match);
        }
        let own = (class, dev.as_str());
        for (class, dev) in std::iter::once(own).chain(twin.map(|(twin, tree)| (twin, tree.dev.as_str()))) {
            if class_match.control && (matching.is_empty() || class.id.minor() == CONTROL) {
                self.taken_up(dev, class, CONTROL_NAME);
                self.control_rate(class, dev, if dev == main.dev { main } else { other.unwrap_or(main) });
            } else if class_match.control && class_match.is_empty() {
                self.left_out(
                    dev,
                    class,
                    &format!(", for {}", matching.port_texts().join(", ")),
                    "it is left out: DNS, DHCP and clocks have a class of their own in a short policy",
                );
            } else if matching.is_empty() {
                self.left_out(
                    dev,
                    class,
                    ", to which nothing leads that a short policy can say",
                    "it is left out; DNS, DHCP and short acknowledgements have a class of their own in a \
                    short policy",
                );
            } else if class_match.is_empty() {
                self.left_out(
                    dev,
                    class,
                    ", to which only that leads which classes before it match, too",
                    "it is left out: in a short policy the first class that matches a packet has it",
                );
            } else {
                let instead = format!("it is left out: a short policy has {MAX_CLASSES} classes at most");
                self.left_out(dev, class, "", &instead);
            }
        }
        None
    }

    /// The class of DNS, clocks and short acknowledgements has a rate of its own in a short policy.
    fn control_rate(&mut self, class: &Found, dev: &str, tree: &Tree) {
        let built_in = (tree.rate / 20).max(*RATES.start());
        // A per mille is what rounding to kbit makes.
        if class.rate.abs_diff(built_in) > tree.rate / 1000 + 1000 || class.ceil < tree.rate {
            self.miss(
                format!("the rate of class {} of {dev}, {}", class.id, rate_in_words(Rate(class.rate / 8))),
                "in a short policy DNS, DHCP, clocks, ARP and short acknowledgements together have 5 % of \
                the link guaranteed, and may borrow all that is free",
            );
        }
    }

    /// The default class has guaranteed what the others leave. `given`: their part of the link.
    fn rest_rate(&mut self, tree: &Tree, given: f64) {
        let Some(rest) = tree.classes.iter().find(|class| class.is_default) else { return };
        let left = tree.rate as f64 * (1.0 - CONTROL_PART - given);
        // A smaller difference may be what rounding makes.
        if (rest.rate as f64 - left).abs() > tree.rate as f64 * ROUNDED {
            self.miss(
                format!(
                    "the guaranteed rate of class {} of {}, {}",
                    rest.id,
                    tree.dev,
                    rate_in_words(Rate(rest.rate / 8))
                ),
                format!(
                    "what belongs to no class of a short policy has guaranteed what the others leave: {}",
                    rate_in_words(Rate(left.max(0.0) as u64 / 8))
                ),
            );
        }
    }

    /// Classes of the other tree that have no twin in the main one.
    fn lonely(&mut self, main: &Tree, other: Option<&Tree>) {
        let Some(other) = other else { return };
        let rest = |class: &Found| class.is_default || class.id.minor() == REST && class.prio == REST_PRIO;
        let has_twin = |class: &Found| {
            main.classes.iter().any(|twin| twin.id.minor() == class.id.minor() && !twin.is_default)
        };
        for class in other.classes.iter().filter(|class| !rest(class) && !has_twin(class)) {
            let what = format!(", which has no class of its number on {}", main.dev);
            self.left_out(
                &other.dev,
                class,
                &what,
                "it is left out: the classes of a short policy are on both devices",
            );
        }
    }

    /// Orders the classes by priority for borrowing.
    fn order(&mut self, written: &[(&Found, ClassMatch)], main: &Tree, rest: u32) {
        // As the short policy will have them: in the order of the file, then the rest, then what is last.
        let planned = |(at, (class, _)): (usize, &(&Found, ClassMatch))| {
            (
                class.id,
                class.prio,
                if class.prio > rest { LAST_PRIO } else { (at as u32 + 1).min(MOST_ORDERED) },
                class.ceil > class.rate,
            )
        };
        let mut all: Vec<(Handle, u32, u32, bool)> = written.iter().enumerate().map(planned).collect();
        let default = main.classes.iter().find(|class| class.is_default);
        all.extend(default.map(|class| (class.id, class.prio, REST_PRIO, class.ceil > class.rate)));
        // The class of DNS and short acknowledgements is before all others.
        let controls =
            self.counterparts.iter().filter(|one| one.device == main.dev && one.name == CONTROL_NAME);
        let is_control: Vec<Handle> = controls.map(|one| one.class).collect();
        let controls = main.classes.iter().filter(|class| is_control.contains(&class.id));
        all.extend(controls.map(|class| (class.id, class.prio, 0, class.ceil > class.rate)));
        all.retain(|(.., borrows)| *borrows);
        let differs =
            |a: &(Handle, u32, u32, bool)| all.iter().any(|b| a.0 != b.0 && a.1.cmp(&b.1) != a.2.cmp(&b.2));
        let mut ids: Vec<Handle> = all.iter().filter(|a| differs(a)).map(|a| a.0).collect();
        ids.sort_unstable();
        if !ids.is_empty() {
            self.miss(
                format!(
                    "the priorities by which the classes {} of {} get what is left",
                    names(ids),
                    main.dev
                ),
                "in a short policy a class has priority over those behind it in the file and over the rest, and the \
                class of DNS and short acknowledgements over all",
            );
        }
    }

    /// The guaranteed rate of each class in bits per second: less than before where the sum would exceed the
    /// link.
    fn shares(&mut self, classes: &[(&Found, ClassMatch)], main: &Tree) -> Vec<u64> {
        let sum: u64 = classes.iter().map(|(class, _)| class.rate).sum();
        let most = main.rate / 100 * MOST_PROMISED;
        if sum > most {
            self.miss(
                format!(
                    "the guaranteed rates of the classes of {}{} are {} % of the link together",
                    main.dev,
                    if main.classes.iter().any(|class| class.is_default) {
                        ", the default aside,"
                    } else {
                        ""
                    },
                    percent(sum, main.rate)
                ),
                format!("their shares are made smaller in proportion, to {MOST_PROMISED} %"),
            );
        }
        let fitting = |rate: u64| {
            if sum > most { (u128::from(rate) * u128::from(most) / u128::from(sum)) as u64 } else { rate }
        };
        classes.iter().map(|(class, _)| fitting(class.rate)).collect()
    }

    /// A class of the same number each way, where a short policy has one for both.
    fn twins(&mut self, (class, main): (&Found, &Tree), (twin, other): (&Found, &Tree)) {
        let of =
            |class: &Found, tree: &Tree| (percent(class.rate, tree.rate), percent(class.ceil, tree.rate));
        let ((rate, ceil), (twin_rate, twin_ceil)) = (of(class, main), of(twin, other));
        // A per cent may be what rounding makes of one share on two links.
        if rate.abs_diff(twin_rate) > 1 || ceil.abs_diff(twin_ceil) > 1 {
            self.miss(
                format!(
                    "class {} of {} has {twin_rate} % of its link and {twin_ceil} % at most, {} of {} \
                    {rate} % and {ceil} %",
                    twin.id, other.dev, class.id, main.dev
                ),
                format!("those of {} are taken for both: a short policy has one share each way", main.dev),
            );
        }
        if (class.queue, class.fair) != (twin.queue, twin.fair) {
            self.miss(
                format!(
                    "the queue in class {} of {}, which differs from that in {} of {}",
                    twin.id, other.dev, class.id, main.dev
                ),
                format!("that of {} is taken for both", main.dev),
            );
        }
    }
}

/// The class of the same number on the other device.
fn twin_of<'t>(class: &Found, other: Option<&'t Tree>) -> Option<(&'t Found, &'t Tree)> {
    let other = other?;
    let is_twin = |twin: &&Found| twin.id.minor() == class.id.minor() && !twin.is_default;
    other.classes.iter().find(is_twin).map(|twin| (twin, other))
}

fn percent(part: u64, whole: u64) -> u64 {
    (part * 100 + whole / 2) / whole.max(1)
}

fn name_of(class: &Found, class_match: &ClassMatch, used: &[String]) -> String {
    let own = class_match.name.clone().filter(|name| !used.contains(name) && !NAMES.contains(&name.as_str()));
    own.unwrap_or_else(|| format!("class{:x}", class.id.minor()))
}

/// A share of the link as a policy writes it: per cent where that is exact or there are two links, else a
/// rate. `rounds`: the shares fit together even if all are rounded up.
fn share_text(bits: u64, rounds: bool, (main, other): (&Tree, Option<&Tree>)) -> String {
    let exact = bits > 0 && (bits * 100).is_multiple_of(main.rate);
    if exact || other.is_some() {
        let whole = if rounds { percent(bits, main.rate) } else { bits * 100 / main.rate };
        return format!("{}%", whole.max(1));
    }
    match bits < *RATES.start() {
        true => format!("{}%", (bits * 100 / main.rate).max(1)),
        false => format!("{}kbit", bits / 1000),
    }
}

/// A class with its words.
fn print(
    (class, class_match): (&Found, &ClassMatch),
    name: &str,
    (share, rounds): (u64, bool),
    (main, other): (&Tree, Option<&Tree>),
    rest: u32,
    out: &mut String,
) {
    let _ = writeln!(out, "\n[classes.{name}]");
    list(out, "ports", &class_match.port_texts());
    list(out, "dscp", &class_match.dscp.iter().map(u8::to_string).collect::<Vec<_>>());
    list(out, "hosts", &class_match.hosts);
    if let Some(after) = class_match.after {
        let _ = writeln!(out, "after = \"{}kB\"", after.saturating_sub(1).div_ceil(1000).max(1));
    }
    if class.prio > rest {
        out.push_str("last = true\n");
    } else if class.queue == Queue::Short {
        out.push_str("first = true\n");
    }
    let _ = writeln!(out, "share = \"{}\"", share_text(share, rounds, (main, other)));
    if class.ceil < main.rate {
        let _ = writeln!(out, "ceil = \"{}\"", share_text(class.ceil.max(share), true, (main, other)));
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

//! From a file's values to a short policy: all errors are reported at once.

use super::apps::{APPS, App, app_named};
use super::keys::{self, Key, Section, Takes, key};
use super::links::{LINKS, LinkKind, link_named};
use super::policy::{
    Class, Fair, LinkOverhead, Network, PortEnd, Ports, Queue, Rank, Share, Short, Spanned, TreeKind,
    TreeReason,
};
use super::presets::{PRESETS, Preset, PresetClass, preset_named};
use super::problem::{Problem, listed};
use super::tree::{Entry, SpannedValue, TomlValue};
use crate::nearest;
use crate::nft::{Span, dscp_number};
use crate::quantity;
use std::net::IpAddr;

/// Classes at most: HTB's numbers 1:10 to 1:e0.
pub(super) const MAX_CLASSES: usize = 13;

/// Per cent of the upload rate that are used unless the file says otherwise.
const SHAPE_UP: u32 = 95;

/// Reads a short policy.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file.
pub fn read(entries: &[Entry]) -> Result<Short, Vec<Problem>> {
    let mut reader = Reader { problems: Vec::new() };
    let short = reader.policy(entries);
    let mut problems = reader.problems;
    problems.sort_by_key(|problem| (problem.span.line, problem.span.from));
    match short {
        Some(short) if problems.is_empty() => Ok(short),
        _ => Err(problems),
    }
}

struct Reader {
    problems: Vec<Problem>,
}

impl Reader {
    fn say(&mut self, span: Span, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem::new(span, what, remedy));
    }

    /// Keeps what is right, notes what is wrong.
    fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    fn policy(&mut self, entries: &[Entry]) -> Option<Short> {
        let find = |name: &str| entries.iter().find(|entry| entry.key == name);
        self.unknown(entries, Section::Top);
        let preset = find("preset").and_then(|entry| self.keep(preset(entry)));
        let device = find("device").and_then(|entry| self.device(entry));
        let lan = find("lan").and_then(|entry| self.device(entry));
        let up = find("up").and_then(|entry| self.keep(rate_of(entry)));
        let down = find("down").and_then(|entry| self.keep(rate_of(entry)));
        let shape = find("shape").and_then(|entry| self.keep(percent_of(entry)));
        let shape_down = find("shape_down").and_then(|entry| self.keep(percent_of(entry)));
        let shape_down = shape_down.or(shape);
        let shape = shape.unwrap_or(SHAPE_UP);
        let link = self.link(entries);
        let fair = find("fair").and_then(|entry| self.keep(fair_of(entry))).map(|spanned| spanned.value);
        let buckets = find("buckets").and_then(|entry| self.number(entry)).unwrap_or(16);
        let written = find("kind").and_then(|entry| self.keep(kind_of(entry)));
        let has_classes = find("classes").is_some() || find("buckets").is_some();
        let (kind, reason) = match written {
            Some(kind) => (kind, TreeReason::Written),
            None if has_classes => (TreeKind::Classes, TreeReason::HasClasses),
            None => (TreeKind::Cake, TreeReason::NothingAsked),
        };
        let classes = match (kind, find("classes")) {
            (TreeKind::Classes, classes) => self.classes(classes, preset),
            (_, None) => Some(Vec::new()),
            (_, Some(classes)) => {
                self.say(
                    classes.span,
                    format!("{} has no classes", kind.one()),
                    "Leave the classes out, or write kind = \"classes\".",
                );
                None
            }
        };
        if let (TreeKind::Cake | TreeKind::FqCodel, Some(buckets)) = (kind, find("buckets")) {
            let what = format!("{} has no buckets for hosts to set", kind.one());
            self.say(buckets.span, what, "Leave buckets out, or write kind = \"classes\".");
        }
        let begin = entries.first().map_or(Span { line: 1, from: 1, to: 1 }, |entry| entry.span);
        if find("device").is_none() {
            self.say(begin, "no device is named", "Write device = \"eth0\" (`ip link` lists the devices).");
        }
        if find("up").is_none() && find("down").is_none() {
            let span = find("device").map_or(begin, |entry| entry.span);
            self.say(
                span,
                "neither up nor down is given, so nothing is shaped",
                "Write up = \"38mbit\" and down = \"95mbit\", as the modem reports them.",
            );
        }
        if let (Some(device), Some(lan)) = (&device, &lan)
            && device.value == lan.value
        {
            self.say(
                lan.span,
                "lan and device are the same",
                "Name the device towards the LAN, or leave lan out.",
            );
        }
        let short = Short {
            device: device?,
            lan,
            up,
            down,
            shape,
            shape_down,
            link,
            kind,
            reason,
            fair: fair.or(preset.map(|spanned| spanned.value.fair)).unwrap_or_default(),
            buckets,
            classes: classes?,
        };
        self.sums(&short);
        Some(short)
    }

    /// Reports unknown keys, and those in the wrong section.
    fn unknown(&mut self, entries: &[Entry], section: Section) {
        for entry in entries {
            let name = entry.key.as_str();
            if key(section, name).is_some() || section == Section::Top && name == "classes" {
                continue;
            }
            let other = if section == Section::Top { Section::Class } else { Section::Top };
            if key(other, name).is_some() {
                let remedy = match other {
                    Section::Class => format!("Write it in a class: [classes.NAME], and below it {name} = …"),
                    Section::Top => {
                        "Write it at the top of the file, before the first [classes.NAME].".to_owned()
                    }
                };
                self.say(entry.span, format!("\"{name}\" is not allowed here"), remedy);
                continue;
            }
            let known =
                keys::keys(section).map(|key| key.name).chain((section == Section::Top).then_some("classes"));
            let known: Vec<&str> = known.collect();
            let remedy = match nearest(name, known.iter().copied()) {
                Some(near) => {
                    format!("Did you mean \"{near}\"? `tidegate policy help {near}` says what it takes.")
                }
                None => format!("Known are {}.", listed(known)),
            };
            self.say(entry.span, format!("unknown key \"{name}\""), remedy);
        }
    }

    fn device(&mut self, entry: &Entry) -> Option<Spanned<String>> {
        let text = self.keep(text(&entry.node, &entry.key))?;
        let fits = !text.is_empty()
            && text.len() <= 15
            && !text.contains(|c: char| c.is_whitespace() || "/:\"'*{}".contains(c));
        if !fits {
            self.say(
                entry.node.span,
                format!("\"{text}\" is not a name of a device"),
                "Write it as `ip link` shows it, 15 letters at most.",
            );
            return None;
        }
        Some(Spanned { value: text.to_owned(), span: entry.node.span })
    }

    fn number(&mut self, entry: &Entry) -> Option<u32> {
        let Some(Key { takes: Takes::Number(low, high), .. }) = key(Section::Top, &entry.key) else {
            return None;
        };
        match entry.node.value {
            TomlValue::Whole(number) if (i64::from(*low)..=i64::from(*high)).contains(&number) => {
                u32::try_from(number).ok()
            }
            _ => {
                self.say(
                    entry.node.span,
                    format!("{} takes a whole number from {low} to {high}", entry.key),
                    format!("Write {} = {low}, for example.", entry.key),
                );
                None
            }
        }
    }

    fn link(&mut self, entries: &[Entry]) -> LinkOverhead {
        let find = |name: &str| entries.iter().find(|entry| entry.key == name);
        let kind = find("link").and_then(|entry| self.keep(link(entry)));
        let of = kind.map_or_else(LinkOverhead::default, |kind| LinkOverhead {
            overhead: kind.overhead,
            mpu: kind.mpu,
            atm: kind.atm,
            ptm: kind.ptm,
        });
        let overhead = find("overhead").and_then(|entry| self.number(entry));
        let mpu = find("mpu").and_then(|entry| self.number(entry));
        LinkOverhead { overhead: overhead.unwrap_or(of.overhead), mpu: mpu.unwrap_or(of.mpu), ..of }
    }

    fn classes(
        &mut self,
        entry: Option<&Entry>,
        preset: Option<Spanned<&'static Preset>>,
    ) -> Option<Vec<Class>> {
        let sections: &[Entry] = match entry.map(|entry| &entry.node.value) {
            Some(TomlValue::Table(sections)) => sections,
            None => &[],
            Some(other) => {
                let span = entry.map(|entry| entry.node.span).unwrap_or_default();
                self.say(
                    span,
                    format!("classes is {}", other.name()),
                    "Write a section for each class: [classes.calls].",
                );
                &[]
            }
        };
        let mut classes = Vec::new();
        let of_preset =
            preset.iter().flat_map(|spanned| spanned.value.classes.iter().map(|class| (class, spanned.span)));
        for (class, span) in of_preset {
            let section = sections.iter().find(|section| section.key == class.name);
            let begun = preset_class(class, span);
            match section {
                Some(section) => classes.extend(self.class(section, begun)),
                None => classes.push(begun),
            }
        }
        for section in sections {
            if preset
                .is_none_or(|spanned| spanned.value.classes.iter().all(|class| class.name != section.key))
            {
                let begun = empty(Spanned { value: section.key.clone(), span: section.span });
                let class = self.class(section, begun);
                if class.is_none() {
                    self.not_of_preset(section, preset.map(|spanned| spanned.value));
                }
                classes.extend(class);
            }
        }
        if let Some(class) = classes.get(MAX_CLASSES) {
            let span = class.name.span;
            self.say(
                span,
                format!("more than {MAX_CLASSES} classes"),
                "Join some: a link is seldom shared better by more than five.",
            );
        }
        classes.sort_by_key(|class| class.rank);
        Some(classes)
    }

    /// A class of which nothing is said but that it is left out, and that is none of the preset's: its name
    /// is mistyped.
    fn not_of_preset(&mut self, section: &Entry, preset: Option<&'static Preset>) {
        let TomlValue::Table(entries) = &section.node.value else { return };
        if entries.len() > 1 {
            return;
        }
        let is_off =
            |entry: &&Entry| entry.key == "off" && matches!(entry.node.value, TomlValue::Truth(true));
        let Some(off) = entries.iter().find(is_off) else { return };
        let names: Vec<&str> =
            preset.iter().flat_map(|preset| preset.classes.iter().map(|class| class.name)).collect();
        let (what, remedy) = match preset {
            Some(preset) => (
                format!("the preset \"{}\" has no class \"{}\" to leave out", preset.name, section.key),
                format!("Its classes are {}.", listed(names)),
            ),
            None => (
                format!("there is no preset whose class \"{}\" could be left out", section.key),
                "Leave the section out.".to_owned(),
            ),
        };
        self.say(off.span, what, remedy);
    }

    /// A section's keys over what the class has already; `None`: it is left out.
    fn class(&mut self, section: &Entry, begun: Class) -> Option<Class> {
        let mut class = begun;
        class.name.span = section.span;
        let TomlValue::Table(entries) = &section.node.value else {
            let what = format!("the class \"{}\" is {}", section.key, section.node.value.name());
            self.say(section.node.span, what, format!("Write [classes.{}] and its keys below.", section.key));
            return None;
        };
        self.unknown(entries, Section::Class);
        let (mut off, mut first, mut last) = (false, None, None);
        for entry in entries {
            match entry.key.as_str() {
                "apps" => class.apps = self.list(entry, app),
                "ports" => class.ports = self.list(entry, ports),
                "dscp" => class.dscp = self.list(entry, dscp),
                "hosts" => class.hosts = self.list(entry, network),
                "after" => class.after = self.keep(size_of(entry)),
                "first" => first = self.keep(truth(entry)),
                "last" => last = self.keep(truth(entry)),
                "share" => class.share = self.keep(share_of(entry)),
                "ceil" => class.ceil = self.keep(share_of(entry)),
                "queue" => class.queue = self.keep(queue_of(entry)),
                "fair" => class.fair = self.keep(fair_of(entry)),
                "off" => off = self.keep(truth(entry)).unwrap_or(false),
                _ => {}
            }
        }
        if first == Some(true) && last == Some(true) {
            self.say(section.span, "a class cannot be first and last", "Leave one of them out.");
        }
        class.rank = match (first, last) {
            (Some(true), _) => Rank::First,
            (_, Some(true)) => Rank::Last,
            (Some(false), _) | (_, Some(false)) => Rank::Middle,
            _ => class.rank,
        };
        if !off && class.after.is_none() && !has_members(&class) && !entries.iter().any(names_members) {
            let what = format!("nothing belongs to the class \"{}\"", section.key);
            self.say(section.span, what, "Say what does: apps, ports, dscp, hosts or after.");
        }
        (!off).then_some(class)
    }

    fn list<T>(&mut self, entry: &Entry, one: fn(&str, Span) -> Result<T, Problem>) -> Vec<Spanned<T>> {
        let single = std::slice::from_ref(&entry.node);
        let nodes: &[SpannedValue] = match &entry.node.value {
            TomlValue::List(nodes) => nodes,
            _ => single,
        };
        let mut all = Vec::new();
        for node in nodes {
            let text = match &node.value {
                TomlValue::Text(text) => text.clone(),
                TomlValue::Whole(number) => number.to_string(),
                other => {
                    let example = key(Section::Class, &entry.key).map_or("", |key| key.example);
                    self.say(
                        node.span,
                        format!("{} takes texts, not {}", entry.key, other.name()),
                        format!("Write {example}."),
                    );
                    continue;
                }
            };
            let value = self.keep(one(&text, node.span));
            all.extend(value.map(|value| Spanned { value, span: node.span }));
        }
        all
    }

    /// Checks that the guaranteed rates fit the link.
    fn sums(&mut self, short: &Short) {
        let given = short.classes.iter().filter_map(|class| class.share.as_ref());
        for (way, rate) in [("up", &short.up), ("down", &short.down)] {
            let Some(rate) = rate else { continue };
            let link = rate.value * u64::from(short.shape) / 100;
            let of_link = |share: Share| match share {
                Share::Percent(percent) => link * u64::from(percent) / 100,
                Share::Rate(rate) => rate,
            };
            for class in &short.classes {
                let (Some(share), Some(ceil)) = (&class.share, &class.ceil) else { continue };
                if of_link(ceil.value) < of_link(share.value) {
                    let (least, most) = (bits(of_link(share.value)), bits(of_link(ceil.value)));
                    let what = format!(
                        "the ceil of \"{}\", {most} {way}, is less than its share, {least}",
                        class.name.value
                    );
                    self.say(ceil.span, what, "Raise the ceil, or lower the share.");
                    return;
                }
            }
            let mut sum = 0;
            for share in given.clone() {
                sum += of_link(share.value);
                if sum > link * 95 / 100 {
                    let what = format!(
                        "with this the classes have {} of {} {way} guaranteed, more than 95 %",
                        bits(sum),
                        bits(link)
                    );
                    self.say(
                        share.span,
                        what,
                        "Give some of them less: what one does not need the others have.",
                    );
                    return;
                }
            }
        }
    }
}

/// A rate in words.
pub(super) fn bits(rate: u64) -> String {
    match rate {
        rate if rate >= 1_000_000_000 => format!("{} Gbit/s", rate as f64 / 1e9),
        rate if rate >= 1_000_000 => format!("{} Mbit/s", rate as f64 / 1e6),
        rate => format!("{} kbit/s", rate as f64 / 1e3),
    }
}

fn empty(name: Spanned<String>) -> Class {
    Class {
        name,
        rank: Rank::Middle,
        apps: Vec::new(),
        ports: Vec::new(),
        dscp: Vec::new(),
        hosts: Vec::new(),
        after: None,
        share: None,
        ceil: None,
        queue: None,
        fair: None,
    }
}

fn preset_class(class: &PresetClass, span: Span) -> Class {
    let apps = class.apps.iter().filter_map(|name| app_named(name)).map(|value| Spanned { value, span });
    Class {
        rank: class.rank,
        apps: apps.collect(),
        dscp: class.dscp.iter().map(|value| Spanned { value: *value, span }).collect(),
        after: class.after.map(|value| Spanned { value, span }),
        share: Some(Spanned { value: Share::Percent(class.share), span }),
        queue: Some(Spanned { value: class.queue, span }),
        ..empty(Spanned { value: class.name.to_owned(), span })
    }
}

fn has_members(class: &Class) -> bool {
    !(class.apps.is_empty() && class.ports.is_empty() && class.dscp.is_empty() && class.hosts.is_empty())
}

/// A key that says what belongs to a class, and is not empty. Its mistakes are reported at the key itself.
fn names_members(entry: &Entry) -> bool {
    let is_empty = matches!(&entry.node.value, TomlValue::List(nodes) if nodes.is_empty());
    ["apps", "ports", "dscp", "hosts", "after"].contains(&entry.key.as_str()) && !is_empty
}

fn text<'n>(node: &'n SpannedValue, key: &str) -> Result<&'n str, Problem> {
    match &node.value {
        TomlValue::Text(text) => Ok(text),
        other => {
            let example = keys::KEYS.iter().find(|known| known.name == key).map_or("", |known| known.example);
            Err(Problem::new(
                node.span,
                format!("{key} takes a text, not {}", other.name()),
                format!("Write {example}."),
            ))
        }
    }
}

fn truth(entry: &Entry) -> Result<bool, Problem> {
    match entry.node.value {
        TomlValue::Truth(truth) => Ok(truth),
        _ => Err(Problem::new(
            entry.node.span,
            format!("{} takes true or false", entry.key),
            format!("Write {} = true.", entry.key),
        )),
    }
}

/// A word of a few, or what is near.
fn unknown(what: &str, text: &str, span: Span, known: &[&str]) -> Problem {
    let remedy = match nearest(text, known.iter().copied()) {
        Some(near) => format!("Did you mean \"{near}\"? Known are {}.", listed(known.iter().copied())),
        None => format!("Known are {}.", listed(known.iter().copied())),
    };
    Problem::new(span, format!("unknown {what} \"{text}\""), remedy)
}

fn preset(entry: &Entry) -> Result<Spanned<&'static Preset>, Problem> {
    let (text, span) = (text(&entry.node, "preset")?, entry.node.span);
    let value = preset_named(text)
        .ok_or_else(|| unknown("preset", text, span, &PRESETS.map(|preset| preset.name)))?;
    Ok(Spanned { value, span })
}

fn link(entry: &Entry) -> Result<&'static LinkKind, Problem> {
    let text = text(&entry.node, "link")?;
    link_named(text)
        .ok_or_else(|| unknown("kind of link", text, entry.node.span, &LINKS.map(|link| link.name)))
}

fn fair_of(entry: &Entry) -> Result<Spanned<Fair>, Problem> {
    let (text, span) = (text(&entry.node, "fair")?, entry.node.span);
    let value = match text {
        "host" | "hosts" => Fair::Host,
        "flow" | "flows" => Fair::Flow,
        "none" => Fair::None,
        _ => return Err(unknown("word for fair", text, span, &["host", "flow", "none"])),
    };
    Ok(Spanned { value, span })
}

fn kind_of(entry: &Entry) -> Result<TreeKind, Problem> {
    let text = text(&entry.node, "kind")?;
    let known = TreeKind::WORDS.map(|(word, _)| word);
    let found = TreeKind::WORDS.iter().find(|(word, _)| *word == text);
    found.map(|(_, kind)| *kind).ok_or_else(|| unknown("kind", text, entry.node.span, &known))
}

fn queue_of(entry: &Entry) -> Result<Spanned<Queue>, Problem> {
    let (text, span) = (text(&entry.node, "queue")?, entry.node.span);
    let value = match text {
        "short" => Queue::Short,
        "fair" => Queue::Fair,
        "plain" => Queue::Plain,
        _ => return Err(unknown("word for queue", text, span, &["short", "fair", "plain"])),
    };
    Ok(Spanned { value, span })
}

fn app(text: &str, span: Span) -> Result<&'static App, Problem> {
    app_named(text).ok_or_else(|| unknown("application", text, span, &APPS.map(|app| app.name)))
}

/// `udp 5060-5061`, `tcp 22`, `tcp remote 443`, `22`.
fn ports(text: &str, span: Span) -> Result<Ports, Problem> {
    let wrong = || {
        Problem::new(
            span,
            format!("\"{text}\" names no ports"),
            "Write \"udp 5060-5061\", \"tcp 22\", or \"22\" for both; \"tcp remote 443\" and \"local 22\" \
            name one end; ports go from 1 to 65535.",
        )
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let (protocol, rest) = match words.as_slice() {
        ["udp", rest @ ..] => (Some(17), rest),
        ["tcp", rest @ ..] => (Some(6), rest),
        rest => (None, rest),
    };
    let (end, range) = match rest {
        ["remote", range] => (PortEnd::Remote, range),
        ["local", range] => (PortEnd::Local, range),
        [range] => (PortEnd::Either, range),
        _ => return Err(wrong()),
    };
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    match (low.parse::<u16>(), high.parse::<u16>()) {
        (Ok(low), Ok(high)) if low > 0 && low <= high => Ok(Ports { protocol, end, range: (low, high) }),
        _ => Err(wrong()),
    }
}

fn dscp(text: &str, span: Span) -> Result<u8, Problem> {
    dscp_number(text).ok_or_else(|| {
        Problem::new(
            span,
            format!("unknown DSCP \"{text}\""),
            "Write CS0 to CS7, AF11 to AF43, EF, VA, LE, or a number from 0 to 63.",
        )
    })
}

fn network(text: &str, span: Span) -> Result<Network, Problem> {
    let wrong = || {
        Problem::new(
            span,
            format!("\"{text}\" is not an address"),
            "Write \"192.168.1.50\", \"192.168.1.0/24\" or \"2001:db8::/64\"; names are not looked up.",
        )
    };
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(most);
    if bits == 0 || bits > most { Err(wrong()) } else { Ok(Network { address, bits }) }
}

fn rate(text: &str, span: Span) -> Result<u64, Problem> {
    let value = quantity::rate(text).map_err(|wrong| {
        let quoted = wrong.reason.replace('`', "\"");
        Problem::new(span, quoted, capital(&wrong.remedy))
    })?;
    if !(8_000..=100_000_000_000).contains(&value) {
        let what = format!("\"{text}\" is out of range");
        return Err(Problem::new(span, what, "Rates go from 8kbit to 100gbit."));
    }
    Ok(value)
}

/// A sentence begins with a capital letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn percent(text: &str) -> Option<u32> {
    let number = quantity::percent(text)?;
    (1.0..=100.0).contains(&number).then_some(number as u32)
}

fn rate_of(entry: &Entry) -> Result<Spanned<u64>, Problem> {
    let text = match &entry.node.value {
        TomlValue::Whole(number) => {
            let remedy = format!("Write {} = \"{number}mbit\" if megabits a second are meant.", entry.key);
            return Err(Problem::new(entry.node.span, format!("{} needs a unit", entry.key), remedy));
        }
        _ => text(&entry.node, &entry.key)?,
    };
    Ok(Spanned { value: rate(text, entry.node.span)?, span: entry.node.span })
}

fn percent_of(entry: &Entry) -> Result<u32, Problem> {
    if let TomlValue::Whole(number @ 1..=100) = &entry.node.value {
        let remedy = format!("Write {} = \"{number}%\".", entry.key);
        return Err(Problem::new(entry.node.span, format!("{} needs its unit, %", entry.key), remedy));
    }
    let text = text(&entry.node, &entry.key)?;
    percent(text).ok_or_else(|| {
        Problem::new(entry.node.span, format!("\"{text}\" is not from 1% to 100%"), "Write \"95%\".")
    })
}

fn share_of(entry: &Entry) -> Result<Spanned<Share>, Problem> {
    let (text, span) = (text(&entry.node, &entry.key)?, entry.node.span);
    if !text.contains('%') {
        return Ok(Spanned { value: Share::Rate(rate(text, span)?), span });
    }
    let value = percent(text).ok_or_else(|| {
        Problem::new(
            span,
            format!("\"{text}\" is not from 1% to 100%"),
            "Write \"20%\", or a rate such as \"500kbit\".",
        )
    })?;
    Ok(Spanned { value: Share::Percent(value), span })
}

fn size_of(entry: &Entry) -> Result<Spanned<u64>, Problem> {
    let (text, span) = (text(&entry.node, &entry.key)?, entry.node.span);
    let value = quantity::size(text).map_err(|wrong| {
        let quoted = wrong.reason.replace('`', "\"");
        Problem::new(span, quoted, capital(&wrong.remedy))
    })?;
    if (1_000..=1_000_000_000_000_000).contains(&value) {
        return Ok(Spanned { value, span });
    }
    Err(Problem::new(span, format!("\"{text}\" is out of range"), "Write \"500kB\", \"10MB\" or \"1GB\"."))
}

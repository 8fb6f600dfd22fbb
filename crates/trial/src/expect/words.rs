//! An expectation, read: `voip: p99 < 20 ms while 4 uploads`, `packet 'udp …': class 1:10`.

use crate::loads::{LAST_HOST, Transfers, Workload};
use crate::settings::TrialLoad;
use std::collections::BTreeMap;
use tidegate_inspect::Packet;
use tidegate_measure::outcome;
use tidegate_scenario::tables::Diagnostic;
use tidegate_syntax::units;

/// What is expected.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Expected {
    /// A figure, measured under a load.
    Measured(Measured),
    /// Where a packet ends.
    Packet(Box<Packet>, Vec<Ending>),
}

/// A figure and its bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Whose figure.
    pub subject: Subject,
    /// Which figure.
    pub figure: Figure,
    /// How it is compared.
    pub compare: Compare,
    /// With what.
    pub bound: Bound,
    /// Under which load.
    pub workload: Workload,
}

/// Whose figure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// Something that is waited for: `ping`, `voip`, `dns`, `ssh`, `web`.
    Probe(String),
    /// A class by its id.
    Class(String),
    /// All transfers of a computer.
    Host(char),
    /// All uploads, or all downloads.
    Flows {
        /// Uploads?
        up: bool,
    },
}

/// Which figure.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Figure {
    /// A percentile of the times, 0 to 100.
    Percentile(f64),
    /// The mean of the times.
    Mean,
    /// The share that was lost.
    Loss,
    /// Throughput, bits per second.
    Rate,
    /// A share of all payload.
    Share,
    /// Packets dropped.
    Drops,
    /// Quality of Outcome for one of tidegate's applications, 0 to 100.
    Outcome(&'static str),
}

/// How the figure is compared with its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Less than the bound.
    Less,
    /// The bound or less.
    AtMost,
    /// More than the bound.
    More,
    /// The bound or more.
    AtLeast,
}

impl Compare {
    const ALL: [(&'static str, Compare); 6] = [
        ("<=", Compare::AtMost),
        (">=", Compare::AtLeast),
        ("≤", Compare::AtMost),
        ("≥", Compare::AtLeast),
        ("<", Compare::Less),
        (">", Compare::More),
    ];

    /// Does it hold?
    pub fn is_met(self, value: f64, bound: f64) -> bool {
        match self {
            Compare::Less => value < bound,
            Compare::AtMost => value <= bound,
            Compare::More => value > bound,
            Compare::AtLeast => value >= bound,
        }
    }
}

/// A bound, in ns, as a part of 1, in bits per second, or as a number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Bound {
    /// Nanoseconds.
    Time(f64),
    /// A part of 1.
    Part(f64),
    /// Bits per second.
    Rate(f64),
    /// A part of the link's rate.
    Link(f64),
    /// A plain number.
    Count(f64),
}

/// Something that is so where a packet ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It takes the class of this id.
    Class(String),
    /// It waits in a queue of this kind.
    Queue(String),
    /// It leaves by this device.
    Device(String),
    /// It has this mark.
    Mark(u32),
    /// It is dropped.
    Lost,
}

type Read<T> = Result<T, Diagnostic>;

const FORM: &str =
    "write `ping: p95 < 50 ms while 2 uploads`, or `packet 'udp 10.0.0.2 > 1.1.1.1:53': class 1:10`";
const FIGURES: &str = "figures are p50, p95, p99 (any pN), mean, max, loss, rate, share, drops, \
    qoo-call (qoo-meeting, qoo-game, qoo-browsing)";
const LOADS: &str = "write `2 uploads and 3 downloads`, `4 uploads of host b`, `nothing`, or a load of \
`tidegate try` (rrul, udp_flood, hosts, …)";
const SUBJECTS: &str =
    "there are ping, voip, dns, ssh, web, class 1:10, host b, upload, download, packet '…'";

/// A part of the text, with where it begins.
#[derive(Clone, Copy)]
struct Part<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Part<'t> {
    fn trim(self) -> Part<'t> {
        let begin = self.text.len() - self.text.trim_start().len();
        Part { text: self.text.trim(), at: self.at + begin }
    }

    fn split_once(self, sign: &str) -> Option<(Part<'t>, Part<'t>)> {
        let (before, after) = self.text.split_once(sign)?;
        let then = self.at + before.len() + sign.len();
        Some((Part { text: before, at: self.at }.trim(), Part { text: after, at: then }.trim()))
    }

    fn wrong<T>(self, reason: impl Into<String>, remedy: impl Into<String>) -> Read<T> {
        Err(Diagnostic {
            at: self.at..self.at + self.text.len(),
            reason: reason.into(),
            remedy: remedy.into(),
        })
    }
}

/// The classes that a policy names, with their ids.
pub type Classes = BTreeMap<String, String>;

/// Reads an expectation: `ping: p95 < 50 ms while rrul`, `packet '…': class 1:10`.
///
/// # Errors
/// The part that cannot be read, why, and what to write instead.
pub fn parse(text: &str, classes: &Classes) -> Read<Expected> {
    let whole = Part { text, at: 0 }.trim();
    if whole.text.starts_with("packet") {
        return packet(whole, classes);
    }
    // Classes have colons in their ids: the one that ends the subject has a blank behind it.
    let Some((subject, rest)) = whole.split_once(": ") else {
        return whole.wrong("whose figure it is about does not end with `: `", FORM);
    };
    let (claim, workload) = match rest.split_once(" while ") {
        Some((claim, workload)) => (claim, self::workload(workload)?),
        None => (rest, Workload::Transfers(Vec::new())),
    };
    let (subject_, place) = (self::subject(subject, classes)?, claim);
    let Some((sign, compare)) = Compare::ALL.iter().find(|(sign, _)| claim.text.contains(sign)) else {
        return place.wrong("there is no bound", "write < or > and a value: p95 < 50 ms");
    };
    let (figure, bound) = claim.split_once(sign).unwrap_or((claim, claim));
    let measured = Measured {
        figure: self::figure(figure)?,
        bound: self::bound(bound)?,
        compare: *compare,
        workload,
        subject: subject_,
    };
    if !fits(&measured) {
        return claim.wrong("that figure is not measured so for this subject", FITS);
    }
    Ok(Expected::Measured(measured))
}

const FITS: &str = "times for ping, voip, dns, ssh, web and classes; loss in % for them; rate for classes, \
hosts, upload and download, as 1.2mbit or 0.9 link; share in % for hosts; drops for classes; qoo-… for ping and \
voip, 0 to 100";

fn fits(measured: &Measured) -> bool {
    use Figure::{Drops, Loss, Mean, Outcome, Percentile, Rate, Share};
    let is_packets = |probe: &str| probe == "ping" || probe.starts_with("voip");
    if let (Subject::Probe(probe), Outcome(_)) = (&measured.subject, measured.figure) {
        return is_packets(probe) && matches!(measured.bound, Bound::Count(_));
    }
    let what = (&measured.subject, measured.figure, measured.bound);
    matches!(
        what,
        (Subject::Probe(_) | Subject::Class(_), Percentile(_) | Mean, Bound::Time(_))
            | (Subject::Probe(_) | Subject::Class(_), Loss, Bound::Part(_))
            | (Subject::Class(_), Drops, Bound::Count(_))
            | (Subject::Host(_), Share, Bound::Part(_))
            | (
                Subject::Class(_) | Subject::Host(_) | Subject::Flows { .. },
                Rate,
                Bound::Rate(_) | Bound::Link(_)
            )
    )
}

fn subject(part: Part<'_>, classes: &Classes) -> Read<Subject> {
    let words: Vec<&str> = part.text.split_whitespace().collect();
    Ok(match words[..] {
        ["ping" | "dns" | "ssh" | "web"] => Subject::Probe(part.text.to_owned()),
        // What they hear is what the uplink does.
        ["voip" | "voip-up"] => Subject::Probe("voip-up".into()),
        ["voip-down"] => Subject::Probe("voip-down".into()),
        ["class", id] | ["class", _, id] if units::parse_classid(id).is_some() => {
            Subject::Class(words[1..].join(" "))
        }
        ["class", name] if classes.contains_key(name) => Subject::Class(classes[name].clone()),
        ["class", ..] => return part.wrong("that is not a class", no_class(classes)),
        ["host", name] => Subject::Host(host(name).map_or_else(|| part.wrong("no such host", HOSTS), Ok)?),
        ["upload" | "uploads"] => Subject::Flows { up: true },
        ["download" | "downloads"] => Subject::Flows { up: false },
        _ => return part.wrong("unknown name", SUBJECTS),
    })
}

/// What to write for a class.
fn no_class(classes: &Classes) -> String {
    let ids = "write its id, `class 1:10`; on another device `class ifb0 1:10`";
    let names: Vec<&str> = classes.keys().map(String::as_str).collect();
    if names.is_empty() {
        ids.to_owned()
    } else {
        format!("the policy's classes are {}; or {ids}", names.join(", "))
    }
}

const HOSTS: &str = "hosts are a, who sends unless another is named, to h";

fn host(name: &str) -> Option<char> {
    let mut letters = name.chars();
    let letter = letters.next().filter(|letter| ('a'..=LAST_HOST).contains(letter))?;
    letters.next().is_none().then_some(letter)
}

fn figure(part: Part<'_>) -> Read<Figure> {
    Ok(match part.text {
        "mean" => Figure::Mean,
        "max" => Figure::Percentile(100.0),
        "median" => Figure::Percentile(50.0),
        "loss" => Figure::Loss,
        "rate" => Figure::Rate,
        "share" => Figure::Share,
        "drops" => Figure::Drops,
        other if other.starts_with("qoo-") => {
            match outcome::application_named(other.trim_start_matches("qoo-")) {
                Some(application) => Figure::Outcome(application.name()),
                None => return part.wrong("unknown figure", FIGURES),
            }
        }
        other => match other.strip_prefix('p').and_then(|number| number.parse::<f64>().ok()) {
            Some(percent) if (0.0..=100.0).contains(&percent) => Figure::Percentile(percent),
            _ => return part.wrong("unknown figure", FIGURES),
        },
    })
}

fn bound(part: Part<'_>) -> Read<Bound> {
    let digits = part.text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.text.len());
    let (number, unit) = part.text.split_at(digits);
    let Ok(value) = number.parse::<f64>() else {
        return part.wrong("the bound is not a number", "write 20 ms, 45 %, 1.2mbit, 0.9 link or 5");
    };
    Ok(match unit.trim().to_ascii_lowercase().as_str() {
        "s" => Bound::Time(value * 1e9),
        "ms" => Bound::Time(value * 1e6),
        "us" | "µs" => Bound::Time(value * 1e3),
        "%" => Bound::Part(value / 100.0),
        "link" => Bound::Link(value),
        "" => Bound::Count(value),
        "bit" | "bit/s" => Bound::Rate(value),
        "kbit" | "kbit/s" => Bound::Rate(value * 1e3),
        "mbit" | "mbit/s" => Bound::Rate(value * 1e6),
        "gbit" | "gbit/s" => Bound::Rate(value * 1e9),
        _ => return part.wrong("unknown unit", "write 20 ms, 45 %, 1.2mbit, 0.9 link or 5"),
    })
}

/// `2 uploads and 3 downloads of host b`.
fn workload(part: Part<'_>) -> Read<Workload> {
    match part.text {
        "nothing" | "idle" => return Ok(Workload::Transfers(Vec::new())),
        "hosts" => {
            let up = |count, host| Transfers { up: true, count, host };
            return Ok(Workload::Transfers(vec![up(4, 'a'), up(1, 'b')]));
        }
        _ => {}
    }
    if let Some(name) = TrialLoad::named(part.text) {
        return Ok(Workload::Named(name));
    }
    let mut transfers = Vec::new();
    let mut rest = Some(part);
    while let Some(left) = rest {
        let (one, more) = match left.split_once(" and ").or_else(|| left.split_once(",")) {
            Some((one, more)) => (one, Some(more)),
            None => (left, None),
        };
        transfers.push(self::transfers(one)?);
        rest = more;
    }
    Ok(Workload::Transfers(transfers))
}

fn transfers(part: Part<'_>) -> Read<Transfers> {
    let words: Vec<&str> = part.text.split_whitespace().filter(|word| *word != "tcp").collect();
    let (head, of) = match words[..] {
        [count, what] => ([count, what], Some('a')),
        [count, what, "of", "host", name] | [count, what, "of", name] => ([count, what], host(name)),
        _ => return part.wrong("that is not a load", LOADS),
    };
    let up = match head[1] {
        "upload" | "uploads" => true,
        "download" | "downloads" => false,
        _ => return part.wrong("that is not a load", LOADS),
    };
    let Some(host) = of else { return part.wrong("no such host", HOSTS) };
    match head[0].parse() {
        Ok(count @ 1..=100) => Ok(Transfers { up, count, host }),
        _ => part.wrong("the number of transfers goes from 1 to 100", LOADS),
    }
}

/// `packet 'WORDS': class 1:10, mark 7`.
fn packet(whole: Part<'_>, classes: &Classes) -> Read<Expected> {
    let quote = whole.text.chars().find(|letter| matches!(letter, '\'' | '"'));
    let parts = quote.and_then(|quote| {
        let (_, rest) = whole.split_once(&quote.to_string())?;
        let (words, rest) = rest.split_once(&quote.to_string())?;
        Some((words, rest))
    });
    let Some((words, rest)) = parts else { return whole.wrong("the packet is not in quotes", FORM) };
    let packet = match Packet::parse(words.text) {
        Ok(packet) => packet,
        Err(error) => {
            let at = words.text.find(&error.word).filter(|_| !error.word.is_empty());
            let part = at
                .map_or(words, |at| Part { text: &words.text[at..at + error.word.len()], at: words.at + at });
            return part.wrong(error.reason, error.remedy);
        }
    };
    let Some(claims) = rest.text.strip_prefix(':') else { return rest.wrong("here `:` was expected", FORM) };
    let mut endings = Vec::new();
    let mut at = rest.at + 1;
    for claim in claims.split(',') {
        endings.push(ending(Part { text: claim, at }.trim(), classes)?);
        at += claim.len() + 1;
    }
    Ok(Expected::Packet(Box::new(packet), endings))
}

fn ending(part: Part<'_>, classes: &Classes) -> Read<Ending> {
    const ENDINGS: &str = "write class 1:10, queue fq_codel, device eth0, mark 7 or dropped";
    let words: Vec<&str> = part.text.split_whitespace().collect();
    Ok(match words[..] {
        ["class", id] if units::parse_classid(id).is_some() => Ending::Class(id.to_owned()),
        ["class", name] if classes.contains_key(name) => Ending::Class(classes[name].clone()),
        ["queue", kind] => Ending::Queue(kind.to_owned()),
        ["device", name] => Ending::Device(name.to_owned()),
        ["mark", number] => {
            let value = match number.strip_prefix("0x") {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => number.parse().ok(),
            };
            match value {
                Some(mark) => Ending::Mark(mark),
                None => return part.wrong("that is not a mark", ENDINGS),
            }
        }
        ["lost" | "dropped"] => Ending::Lost,
        _ => return part.wrong("unknown packet result", ENDINGS),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(text: &str) -> Measured {
        match parse(text, &Classes::new()) {
            Ok(Expected::Measured(measured)) => measured,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn expectations_are_read() {
        let up = |count, host| Transfers { up: true, count, host };
        let down = |count| Transfers { up: false, count, host: 'a' };
        let of = |subject, figure, compare, bound, workload| Measured {
            subject,
            figure,
            compare,
            bound,
            workload,
        };
        let table = [
            (
                "ping: p95 < 50 ms while 2 uploads and 3 downloads",
                of(
                    Subject::Probe("ping".into()),
                    Figure::Percentile(95.0),
                    Compare::Less,
                    Bound::Time(50e6),
                    Workload::Transfers(vec![up(2, 'a'), down(3)]),
                ),
            ),
            (
                "class 1:10: p99 <= 0.02s while 4 tcp uploads",
                of(
                    Subject::Class("1:10".into()),
                    Figure::Percentile(99.0),
                    Compare::AtMost,
                    Bound::Time(20e6),
                    Workload::Transfers(vec![up(4, 'a')]),
                ),
            ),
            (
                "host b: share >= 45% while hosts",
                of(
                    Subject::Host('b'),
                    Figure::Share,
                    Compare::AtLeast,
                    Bound::Part(0.45),
                    Workload::Transfers(vec![up(4, 'a'), up(1, 'b')]),
                ),
            ),
            (
                "upload: rate >= 0.9 link while 1 upload of host c, 2 uploads of host b",
                of(
                    Subject::Flows { up: true },
                    Figure::Rate,
                    Compare::AtLeast,
                    Bound::Link(0.9),
                    Workload::Transfers(vec![up(1, 'c'), up(2, 'b')]),
                ),
            ),
            (
                "ping: qoo-game >= 80 while rrul",
                of(
                    Subject::Probe("ping".into()),
                    Figure::Outcome("game"),
                    Compare::AtLeast,
                    Bound::Count(80.0),
                    Workload::Named(TrialLoad::Rrul),
                ),
            ),
            (
                "voip: loss < 1 % while rrul",
                of(
                    Subject::Probe("voip-up".into()),
                    Figure::Loss,
                    Compare::Less,
                    Bound::Part(0.01),
                    Workload::Named(TrialLoad::Rrul),
                ),
            ),
        ];
        for (text, wanted) in table {
            assert_eq!(measured(text), wanted, "{text}");
        }
        let words = "udp 10.0.0.2 > 1.1.1.1:53";
        let packet = Packet::parse(words).expect(words);
        assert_eq!(
            parse(&format!("packet '{words}': class 1:10, mark 0x7"), &Classes::new()),
            Ok(Expected::Packet(Box::new(packet), vec![Ending::Class("1:10".into()), Ending::Mark(7)]))
        );
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        let table = [
            ("ping p95 < 50 ms", "ping p95 < 50 ms", "whose figure it is about does not end with `: `"),
            ("pong: p95 < 50 ms", "pong", "unknown name"),
            ("ping: q95 < 50 ms", "q95", "unknown figure"),
            ("voip: qoo-chess > 5", "qoo-chess", "unknown figure"),
            ("dns: qoo-call > 5", "qoo-call > 5", "that figure is not measured so for this subject"),
            ("ping: p95 50 ms", "p95 50 ms", "there is no bound"),
            ("ping: p95 < 50 miles", "50 miles", "unknown unit"),
            ("ping: p95 < fast", "fast", "the bound is not a number"),
            ("ping: p95 < 5 %", "p95 < 5 %", "that figure is not measured so for this subject"),
            (
                "ping: p95 < 5 ms while two uploads",
                "two uploads",
                "the number of transfers goes from 1 to 100",
            ),
            ("ping: p95 < 5 ms while 2 uploads and storms", "storms", "that is not a load"),
            ("host z: share > 5 % while hosts", "host z", "no such host"),
            ("packet 'udp 10.0.0.2 > x:53': class 1:10", "x:53", "it is not an address"),
            ("packet 'udp 10.0.0.2 > 1.1.1.1:53': clas 1:10", "clas 1:10", "unknown packet result"),
            ("packet udp: class 1:10", "packet udp: class 1:10", "the packet is not in quotes"),
        ];
        for (text, at, reason) in table {
            let wrong = parse(text, &Classes::new()).expect_err(text);
            assert_eq!((&text[wrong.at], wrong.reason.as_str()), (at, reason));
        }
    }
}

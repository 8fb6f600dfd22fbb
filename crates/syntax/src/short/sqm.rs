//! SQM's settings as short policies: OpenWrt's `/etc/config/sqm`, and `IF.iface.conf` elsewhere.
//!
//! SQM's recipes are known by their names: the simple ones share between flows, `simple.qos` and
//! `layer_cake.qos` put three tiers by DSCP above that. Settings of CoDel and the firewall are not taken
//! over, and are reported.

use super::problem::Problem;
use super::tree::{Entry, SpannedValue, TomlValue};
use crate::nft::Span;

/// A policy that settings come to, and what of them it leaves out.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The policy, as the file of a short policy would have it.
    pub entries: Vec<Entry>,
    /// What is not taken over.
    pub notes: Vec<Problem>,
}

/// A setting with its place.
struct Setting {
    name: String,
    value: String,
    /// Of the name and the value.
    spans: (Span, Span),
}

/// The policies of an `/etc/config/sqm`: one for each interface that is enabled.
///
/// # Errors
/// Lines that are none of UCI's, and settings without which there is no policy.
pub fn read_uci(text: &str) -> Result<Vec<Imported>, Vec<Problem>> {
    let mut sections: Vec<Vec<Setting>> = Vec::new();
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words = words(line, number);
        let Some((first, rest)) = words.split_first() else { continue };
        match (first.0.as_str(), rest, sections.last_mut()) {
            ("config" | "package", ..) => sections.push(Vec::new()),
            ("option" | "list", [name, value], Some(section)) => {
                section.push(Setting {
                    name: name.0.clone(),
                    value: value.0.clone(),
                    spans: (name.1, value.1),
                });
            }
            ("option" | "list", [_, _], None) => {
                problems.push(Problem::new(
                    first.1,
                    "an option before any section",
                    "begin with: config queue 'eth0'",
                ));
            }
            _ => problems.push(Problem::new(
                first.1,
                format!("\"{}\" is not a line of UCI", line.trim()),
                "lines are: config TYPE 'NAME', option NAME 'VALUE'",
            )),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let sections =
        sections.iter().filter(|section| !section.is_empty() && value(section, "enabled") != Some("0"));
    collect(sections.map(|section| policy(section, None)))
}

/// The policy of an `IF.iface.conf`; `file` names the interface.
///
/// # Errors
/// Lines that set nothing, and settings without which there is no policy.
pub fn read_iface_conf(text: &str, file: &str) -> Result<Vec<Imported>, Vec<Problem>> {
    let mut settings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.trim_start().strip_prefix("export ").unwrap_or(line.trim_start());
        let Some((name, rest)) = code.split_once('=').filter(|_| !code.starts_with('#')) else { continue };
        let name_from = line.chars().count() - code.chars().count() + 1;
        let value_from = name_from + name.chars().count() + 1;
        let bare = rest.split_whitespace().next().unwrap_or("");
        let text = if rest.starts_with(['"', '\'']) {
            rest[1..].split(&rest[..1]).next().unwrap_or("")
        } else {
            bare
        };
        let span = |from: usize, length: usize| Span { line: number, from, to: from + length.max(1) - 1 };
        // UCI's names are these in small letters, but for some.
        let name = match name {
            "IFACE" => "interface".to_owned(),
            "UPLINK" => "upload".into(),
            "DOWNLINK" => "download".into(),
            "LLAM" => "linklayer_adaptation_mechanism".into(),
            "STAB_MPU" => "tcMPU".into(),
            "EQDISC_OPTS" => "eqdisc_opts".into(),
            other => other.to_lowercase(),
        };
        settings.push(Setting {
            name,
            value: text.to_owned(),
            spans: (span(name_from, 1), span(value_from, text.chars().count())),
        });
    }
    let named = file.rsplit('/').next().and_then(|name| name.strip_suffix(".iface.conf"));
    collect(std::iter::once(policy(&settings, named)))
}

fn collect(
    policies: impl Iterator<Item = Result<Imported, Vec<Problem>>>,
) -> Result<Vec<Imported>, Vec<Problem>> {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for policy in policies {
        match policy {
            Ok(policy) => good.push(policy),
            Err(problems) => bad.extend(problems),
        }
    }
    let nothing = || {
        vec![Problem::new(
            Span { line: 1, from: 1, to: 1 },
            "no interface is enabled",
            "set: option enabled '1'",
        )]
    };
    match (good.is_empty(), bad.is_empty()) {
        (_, false) => Err(bad),
        (true, true) => Err(nothing()),
        (false, true) => Ok(good),
    }
}

fn find<'s>(settings: &'s [Setting], name: &str) -> Option<&'s Setting> {
    settings.iter().rfind(|setting| setting.name.eq_ignore_ascii_case(name))
}

fn value<'s>(settings: &'s [Setting], name: &str) -> Option<&'s str> {
    find(settings, name).map(|setting| setting.value.as_str())
}

/// Settings that are taken over, or that change nothing here.
const KNOWN: [&str; 14] = [
    "enabled",
    "interface",
    "upload",
    "download",
    "qdisc",
    "script",
    "linklayer",
    "overhead",
    "tcMPU",
    "linklayer_adaptation_mechanism",
    "debug_logging",
    "verbosity",
    "qdisc_advanced",
    "qdisc_really_really_advanced",
];
/// Settings whose usual values change nothing.
const USUAL: [(&str, &str); 9] = [
    ("ingress_ecn", "ECN"),
    ("egress_ecn", "ECN"),
    ("iecn", "ECN"),
    ("squash_dscp", "0"),
    ("squash_ingress", "0"),
    ("tcMTU", "2047"),
    ("tcTSIZE", "512"),
    ("stab_mtu", "2047"),
    ("stab_tsize", "512"),
];

fn policy(settings: &[Setting], named: Option<&str>) -> Result<Imported, Vec<Problem>> {
    let start = settings.first().map_or(Span { line: 1, from: 1, to: 1 }, |setting| setting.spans.0);
    let device = value(settings, "interface").or(named);
    let Some(device) = device.filter(|device| !device.is_empty()) else {
        return Err(vec![Problem::new(
            start,
            "the interface is not named",
            "say it: option interface 'eth0', or IFACE=eth0",
        )]);
    };
    let device_span = find(settings, "interface").map_or(start, |setting| setting.spans.1);
    let mut policy = Imported { entries: vec![text("device", device, device_span)], notes: Vec::new() };
    let mut problems = Vec::new();
    for (key, name) in [("up", "upload"), ("down", "download")] {
        let Some(setting) =
            find(settings, name).filter(|setting| setting.value != "0" && !setting.value.is_empty())
        else {
            continue;
        };
        match setting.value.parse::<u64>() {
            Ok(kbit) => policy.entries.push(text(key, &format!("{kbit}kbit"), setting.spans.1)),
            Err(_) => problems.push(Problem::new(
                setting.spans.1,
                format!("{name} is \"{}\", not a number", setting.value),
                "write kilobits per second: 38000",
            )),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if policy.entries.len() == 1 {
        let span =
            ["download", "upload"].iter().find_map(|name| find(settings, name)).map(|rate| rate.spans.1);
        return Err(vec![Problem::new(
            span.unwrap_or(device_span),
            "download and upload are 0 or not given: SQM shapes nothing then",
            "write the rates in kilobits per second: option download '85000', option upload '10000'",
        )]);
    }
    // SQM's rates are what is used, not what the link has.
    policy.entries.push(text("shape", "100%", start));
    framing(settings, device, &mut policy);
    recipe(settings, start, &mut policy);
    leftovers(settings, &mut policy);
    Ok(policy)
}

/// Overhead: cake counts it from the IP packet, tc's size tables from the frame, whose header Ethernet has
/// already.
fn framing(settings: &[Setting], device: &str, policy: &mut Imported) {
    let layer = find(settings, "linklayer");
    let kind = layer.map_or("none", |setting| setting.value.as_str());
    if let Some(setting) = layer.filter(|_| matches!(kind, "atm" | "adsl")) {
        policy.entries.push(text("link", "adsl", setting.spans.1));
    }
    if kind == "none" {
        return;
    }
    let by_cake = value(settings, "linklayer_adaptation_mechanism").unwrap_or("default") == "cake"
        || value(settings, "qdisc").unwrap_or("") == "cake";
    let header = if by_cake || device.starts_with("ppp") || device.starts_with("tun") { 0 } else { 14 };
    for (key, name, more) in [("overhead", "overhead", header), ("mpu", "tcMPU", 0)] {
        let Some(setting) = find(settings, name) else { continue };
        if let Ok(bytes) = setting.value.parse::<i64>()
            && bytes + more > 0
        {
            policy.entries.push(Entry {
                key: key.into(),
                span: setting.spans.0,
                node: SpannedValue {
                    span: setting.spans.1,
                    value: TomlValue::Whole((bytes + more).min(256)),
                },
            });
        }
    }
}

/// Adds the classes of the recipe with this name.
fn recipe(settings: &[Setting], start: Span, policy: &mut Imported) {
    let script = find(settings, "script");
    let name = script.map_or("simple.qos", |setting| setting.value.as_str());
    let span = script.map_or(start, |setting| setting.spans.1);
    let by_host = ["eqdisc_opts", "iqdisc_opts"].iter().any(|key| {
        value(settings, key)
            .is_some_and(|words| ["host", "triple-isolate"].iter().any(|word| words.contains(word)))
    });
    // CAKE shares between hosts by default.
    let cake = name.contains("cake");
    let fair = if by_host || cake { "host" } else { "flow" };
    let kind = match name {
        "simple.qos" => {
            policy.entries.push(text("preset", "sqm", span));
            "classes"
        }
        "layer_cake.qos" | "piece_of_cake.qos" => "cake",
        _ => "fq_codel",
    };
    policy.entries.push(text("kind", kind, span));
    match name {
        "simple.qos" | "simplest.qos" | "simplest_tbf.qos" => {}
        "layer_cake.qos" => policy.notes.push(Problem::new(
            span,
            "layer_cake.qos has three tins for uploads, and by squash_ingress and squash_dscp three or one for \
            downloads, whose DSCPs it keeps or clears; this cake has four tins both ways and changes no DSCP",
            "write `diffserv3`, or `besteffort wash`, in a script of tc where that matters",
        )),
        "piece_of_cake.qos" => policy.notes.push(Problem::new(
            span,
            "piece_of_cake.qos has one tin; this cake has four, which DSCPs choose",
            "where hosts set DSCPs that must not count, clear them before",
        )),
        other => policy.notes.push(Problem::new(
            span,
            format!("the recipe {other} is not known; a fair queue is taken"),
            "name classes in the short policy that this comes to (tidegate policy help)",
        )),
    }
    policy.entries.push(text("fair", fair, span));
}

/// What is left out.
fn leftovers(settings: &[Setting], policy: &mut Imported) {
    for setting in settings {
        let known = KNOWN.iter().any(|name| setting.name.eq_ignore_ascii_case(name));
        let usual = USUAL
            .iter()
            .any(|(name, value)| setting.name.eq_ignore_ascii_case(name) && setting.value == *value);
        let cake_words = ["eqdisc_opts", "iqdisc_opts"].contains(&setting.name.as_str())
            && setting
                .value
                .split_whitespace()
                .all(|word| word.contains("host") || matches!(word, "nat" | "triple-isolate"));
        if !known && !usual && !cake_words && !setting.value.is_empty() {
            policy.notes.push(Problem::new(
                setting.spans.0,
                format!("{} is not taken over", setting.name),
                "the short policy has its own queues; see tidegate policy help",
            ));
        }
    }
}

fn text(key: &str, value: &str, span: Span) -> Entry {
    Entry { key: key.into(), span, node: SpannedValue { span, value: TomlValue::Text(value.into()) } }
}

/// The words of a line of UCI, quoted or not, with their places; what follows a # is none.
fn words(line: &str, number: usize) -> Vec<(String, Span)> {
    let letters: Vec<char> = line.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        if letter.is_whitespace() {
            at += 1;
            continue;
        }
        if letter == '#' {
            break;
        }
        let quote = matches!(letter, '\'' | '"').then_some(letter);
        let from = if quote.is_some() { at + 1 } else { at };
        let ends = |letter: char| quote.map_or(letter.is_whitespace(), |quote| letter == quote);
        let to = (from..letters.len()).find(|at| ends(letters[*at])).unwrap_or(letters.len());
        words.push((
            letters[from..to].iter().collect(),
            Span { line: number, from: from + 1, to: to.max(from + 1) },
        ));
        at = to + 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy as `key = value`, one a line.
    fn toml_lines(imported: &Imported) -> Vec<String> {
        let value = |node: &SpannedValue| match &node.value {
            TomlValue::Text(text) => text.clone(),
            TomlValue::Whole(number) => number.to_string(),
            other => other.name().to_owned(),
        };
        imported.entries.iter().map(|entry| format!("{} = {}", entry.key, value(&entry.node))).collect()
    }

    #[test]
    fn uci_comes_to_a_policy_for_each_interface() {
        let text = "# SQM\nconfig queue 'one'\n\toption enabled '1'\n\toption interface \
        'pppoe-wan'\n\toption download '85000'\n\toption upload '10000'\n\
                    \toption qdisc 'fq_codel'\n\toption script 'simple.qos'\n\toption linklayer \
                    'atm'\n\toption overhead '44'\n\
                    config queue 'two'\n\toption enabled '0'\n\toption interface 'eth9'\n\
                    config queue\n\toption interface \"eth1\"\n\toption upload '5000'\n\toption download \
                    '0'\n\toption script 'piece_of_cake.qos'\n\
                    \toption qdisc 'cake'\n\toption linklayer 'ethernet'\n\toption overhead '22'\n\toption \
                    itarget '5ms'\n";
        let policies = read_uci(text).expect("is read");
        let all: Vec<Vec<String>> = policies.iter().map(toml_lines).collect();
        assert_eq!(
            all,
            [
                vec![
                    "device = pppoe-wan",
                    "up = 10000kbit",
                    "down = 85000kbit",
                    "shape = 100%",
                    "link = adsl",
                    "overhead = 44",
                    "preset = sqm",
                    "kind = classes",
                    "fair = flow"
                ],
                vec![
                    "device = eth1",
                    "up = 5000kbit",
                    "shape = 100%",
                    "overhead = 22",
                    "kind = cake",
                    "fair = host"
                ],
            ]
        );
        let notes: Vec<(usize, &str)> =
            policies.iter().flat_map(|p| &p.notes).map(|note| (note.span.line, note.what.as_str())).collect();
        let tins = "piece_of_cake.qos has one tin; this cake has four, which DSCPs choose";
        assert_eq!(notes, [(18, tins), (22, "itarget is not taken over")]);
        let entry = &policies[0].entries[1];
        assert_eq!((entry.span.line, entry.span.from, entry.span.to), (6, 17, 21));
    }

    #[test]
    fn iface_conf_names_its_interface_by_its_file() {
        let policies = read_iface_conf(
            "# rates\nUPLINK=1000\nDOWNLINK=85000\nSCRIPT=simplest.qos\nLINKLAYER=ethernet\nOVERHEAD=8\n",
            "/etc/sqm/eth0.iface.conf",
        );
        let policies = policies.expect("is read");
        assert_eq!(
            toml_lines(&policies[0]),
            [
                "device = eth0",
                "up = 1000kbit",
                "down = 85000kbit",
                "shape = 100%",
                "overhead = 22",
                "kind = fq_codel",
                "fair = flow"
            ]
        );
    }

    #[test]
    fn wrong_settings_are_reported_with_their_place() {
        let wrong = |text: &str| {
            read_uci(text)
                .expect_err("is wrong")
                .into_iter()
                .map(|p| (p.span.line, p.what))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            wrong("config queue\n option interface 'eth0'\n option upload 'fast'\n"),
            [(3, "upload is \"fast\", not a number".to_owned())]
        );
        assert_eq!(
            wrong("config queue\n option upload '5'\n"),
            [(2, "the interface is not named".to_owned())]
        );
        assert_eq!(wrong("config queue\n option enabled '0'\n"), [(1, "no interface is enabled".to_owned())]);
        assert_eq!(
            wrong("config queue\n option interface eth1\n option download '0'\n option upload 0\n"),
            [(3, "download and upload are 0 or not given: SQM shapes nothing then".to_owned())]
        );
        assert_eq!(wrong("config queue\n upload 5\n"), [(2, "\"upload 5\" is not a line of UCI".to_owned())]);
    }
}

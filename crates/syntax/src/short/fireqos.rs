//! FireQOS's configuration as short policies, as far as it maps: interfaces with their rates and links,
//! classes with guaranteed rates and ceilings, matches by port, protocol, DSCP and host.
//!
//! What would put packets elsewhere is an error; what changes how classes are served, or is left out, is
//! reported.

use super::problem::Problem;
use super::sqm::Imported;
use super::tree::{Entry, SpannedValue, TomlValue};
use super::variables::Variables;
use crate::nft::Span;

/// A word and its place.
type Word<'t> = (&'t str, Span);

/// The policies of a configuration: one for each interface.
///
/// # Errors
/// What has no place in a short policy, each with its line; nothing is left out in silence.
pub fn read_fireqos(text: &str) -> Result<Vec<Imported>, Vec<Problem>> {
    let mut reader = Reader::default();
    let mut variables = Variables::default();
    for command in commands(text) {
        if let Some((word, span)) = command.first().filter(|(word, _)| is_of_bash(word)) {
            let what = format!("the configuration is a program of bash here (`{word}`), which is not run");
            return Err(vec![Problem::new(*span, what, "write out what it comes to")]);
        }
        let words = variables.carry_out(&command);
        let words: Vec<Word<'_>> = words.iter().map(|(word, span)| (word.as_str(), *span)).collect();
        let Some(((first, span), rest)) = words.split_first().map(|(first, rest)| (*first, rest)) else {
            continue;
        };
        match first {
            "interface" | "interface4" | "interface46" | "interface6" => {
                reader.interface(span, rest);
                reader.families(first, span);
            }
            "class" | "class4" | "class46" | "class6" => reader.class(span, rest),
            "match" | "match4" | "match46" | "match6" => reader.matches(span, rest),
            other => reader.wrong(
                span,
                format!("{other} has no place in a short policy"),
                "keep what it does in a script of its own",
            ),
        }
    }
    // What follows from a value that is not known is no other cause.
    let unknown = variables.problems();
    if !unknown.is_empty() {
        Err(unknown)
    } else if reader.problems.is_empty() {
        Ok(reader.interfaces.into_iter().map(Interface::policy).collect())
    } else {
        Err(reader.problems)
    }
}

/// Does a word begin what only bash can carry out?
fn is_of_bash(word: &str) -> bool {
    const WORDS: [&str; 11] =
        ["if", "for", "while", "until", "case", "function", "{", "[", "[[", "eval", "source"];
    WORDS.contains(&word) || word.ends_with("()") || word.starts_with("((")
}

#[derive(Default)]
struct Reader {
    interfaces: Vec<Interface>,
    problems: Vec<Problem>,
}

struct Interface {
    /// What is shaped on it: `input`, `output` or `bidirectional`.
    way: String,
    entries: Vec<Entry>,
    notes: Vec<Problem>,
    classes: Vec<Class>,
}

struct Class {
    name: String,
    span: Span,
    entries: Vec<Entry>,
    ports: Vec<SpannedValue>,
    dscp: Vec<SpannedValue>,
    hosts: Vec<SpannedValue>,
}

impl Interface {
    fn policy(self) -> Imported {
        let Interface { way: _, mut entries, mut notes, classes } = self;
        // What belongs to no class needs none of its own.
        let defaults = classes.iter().filter(|class| class.name == "default" && !class.entries.is_empty());
        notes.extend(defaults.map(|class| {
            left_out(
                class.span,
                "what is said of the class default",
                "the rest has what the other classes leave",
            )
        }));
        let table: Vec<Entry> = classes
            .into_iter()
            .filter(|class| class.name != "default")
            .map(|class| {
                let Class { name, span, mut entries, ports, dscp, hosts } = class;
                for (key, nodes) in [("ports", ports), ("dscp", dscp), ("hosts", hosts)] {
                    if let Some(first) = nodes.first() {
                        let span = first.span;
                        entries.push(Entry {
                            key: key.into(),
                            span,
                            node: SpannedValue { span, value: TomlValue::List(nodes) },
                        });
                    }
                }
                Entry { key: name, span, node: SpannedValue { span, value: TomlValue::Table(entries) } }
            })
            .collect();
        if let Some(first) = table.first() {
            let span = first.span;
            entries.push(Entry {
                key: "classes".into(),
                span,
                node: SpannedValue { span, value: TomlValue::Table(table) },
            });
        }
        Imported { entries, notes }
    }
}

impl Reader {
    /// Which packets an interface's classes are for, where it is not all.
    fn families(&mut self, keyword: &str, span: Span) {
        let only = match keyword {
            "interface" | "interface4" => "IPv4",
            "interface6" => "IPv6",
            _ => return,
        };
        if let Some(interface) = self.interfaces.last_mut() {
            interface.notes.push(Problem::new(
                span,
                format!("FireQOS's matches are for {only} alone here; those of a short policy are for both"),
                "write interface46 where both are meant",
            ));
        }
    }

    fn wrong(&mut self, span: Span, what: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem::new(span, what, remedy));
    }

    /// `interface DEV NAME input|output|bidirectional [LINK…] [rate R] [input rate R] [output rate R]`
    fn interface(&mut self, span: Span, words: &[Word<'_>]) {
        let [(dev, dev_span), _, (way, way_span), rest @ ..] = words else {
            self.wrong(
                span,
                "an interface without device, name and direction",
                "write: interface eth0 world bidirectional rate 10mbit",
            );
            return;
        };
        let mut entries =
            vec![text("device", dev, *dev_span), text("shape", "100%", span), text("fair", "flow", span)];
        let sides: &[&str] = match *way {
            "bidirectional" => &["up", "down"],
            "output" => &["up"],
            "input" => &["down"],
            other => {
                self.wrong(
                    *way_span,
                    format!("{other} is not a direction"),
                    "write input, output or bidirectional",
                );
                return;
            }
        };
        let mut notes = Vec::new();
        let mut side = sides;
        let mut link: Vec<&str> = Vec::new();
        let mut link_span = span;
        let mut at = 0;
        while let Some((word, span)) = rest.get(at).copied() {
            at += 1;
            match word {
                "input" => side = &["down"],
                "output" => side = &["up"],
                "rate" => {
                    let Some((rate, span)) = rest.get(at).copied() else {
                        self.wrong(span, "a rate without a value", "write: rate 10mbit");
                        return;
                    };
                    at += 1;
                    for key in side {
                        entries.retain(|entry| entry.key != *key);
                        entries.push(text(key, &rate.to_lowercase(), span));
                    }
                    side = sides;
                }
                // Whose side the encapsulation is on is nothing to us: the link has it.
                "local" | "remote" => {}
                "balanced" => notes.push(balanced(span)),
                "pppoe-llcsnap" | "pppoe-snap" | "pppoa-llcsnap" | "pppoa-snap" | "bridged-llcsnap"
                | "bridged-snap" | "ipoa-llcsnap" | "ipoa-snap" => {
                    // FireQOS has three names for LLC.
                    link.push(match word.split('-').next() {
                        Some("pppoe") => "pppoe-llc",
                        Some("pppoa") => "pppoa-llc",
                        Some("bridged") => "bridged-llc",
                        _ => "ipoa-llc",
                    });
                    link_span = span;
                }
                "adsl" | "ethernet" | "pppoe-llc" | "pppoe-vcmux" | "pppoa-llc" | "pppoa-vcmux"
                | "bridged-llc" | "bridged-vcmux" | "ipoa-llc" | "ipoa-vcmux" => {
                    link.push(word);
                    link_span = span;
                }
                "qdisc" | "minrate" | "mtu" | "r2q" | "burst" | "cburst" | "quantum" => {
                    at += 1;
                    notes.push(left_out(span, word, OWN));
                }
                other => self.wrong(
                    span,
                    format!("\"{other}\" has no place in a short policy"),
                    "see tidegate policy help link",
                ),
            }
        }
        if let [first, ..] = link[..] {
            let known = |word: &&&str| word.starts_with("ppp") || word.starts_with("bridged");
            let kind = match (first, link.iter().find(known)) {
                ("adsl", Some(kind)) => format!("adsl {kind}"),
                ("adsl", None) => "adsl".to_owned(),
                _ => "ethernet".to_owned(),
            };
            entries.push(text("link", &kind, link_span));
        }
        self.interfaces.push(Interface { way: (*way).to_owned(), entries, notes, classes: Vec::new() });
    }

    /// `class NAME [commit R] [max R] [kind…]`; FireQOS gives unclassified traffic no class, so `default` is
    /// none.
    fn class(&mut self, span: Span, words: &[Word<'_>]) {
        let Some(interface) = self.interfaces.last_mut() else {
            self.wrong(
                span,
                "a class before any interface",
                "begin with: interface eth0 world bidirectional rate 10mbit",
            );
            return;
        };
        let Some(((name, name_span), rest)) = words.split_first().map(|(first, rest)| (*first, rest)) else {
            return;
        };
        let mut class = Class {
            name: name.to_lowercase(),
            span: name_span,
            entries: Vec::new(),
            ports: Vec::new(),
            dscp: Vec::new(),
            hosts: Vec::new(),
        };
        let first = interface.classes.is_empty();
        let mut at = 0;
        let mut strange = Vec::new();
        while let Some((word, span)) = rest.get(at).copied() {
            at += 1;
            match word {
                "commit" | "rate" | "min" | "max" | "ceil" => {
                    let key = if matches!(word, "max" | "ceil") { "ceil" } else { "share" };
                    let Some((value, span)) = rest.get(at).copied() else { continue };
                    at += 1;
                    class.entries.push(text(key, &value.to_lowercase(), span));
                }
                "input" | "output" => interface.notes.push(Problem::new(
                    span,
                    "a class has the same share both ways in a short policy",
                    "what is said last counts",
                )),
                "pfifo" | "bfifo" => class.entries.push(text("queue", "plain", span)),
                "fq_codel" => {}
                "balanced" => interface.notes.push(balanced(span)),
                "codel" | "sfq" | "htb" => interface.notes.push(left_out(span, word, OWN)),
                "prio" | "priority" | "quantum" | "r2q" | "burst" | "cburst" | "qdisc" | "options" => {
                    at += 1;
                    interface.notes.push(left_out(span, word, OWN));
                }
                other => strange.push((other.to_owned(), span)),
            }
        }
        if name != "default" {
            // FireQOS guarantees a class that says nothing a hundredth of the interface's rate.
            if !class.entries.iter().any(|entry| entry.key == "share") {
                class.entries.push(text("share", "1%", name_span));
            }
            // The first class goes first, as in FireQOS by its order.
            if first {
                class.entries.push(Entry {
                    key: "first".into(),
                    span: name_span,
                    node: SpannedValue { span: name_span, value: TomlValue::Truth(true) },
                });
            }
            interface.classes.push(class);
        } else {
            interface.classes.push(Class { name: "default".into(), ..class });
        }
        for (word, span) in strange {
            self.wrong(
                span,
                format!("\"{word}\" has no place in a class of a short policy"),
                "see tidegate policy help share",
            );
        }
    }

    /// `match [tcp|udp|icmp] [port|ports P,Q:R] [dscp D] [src|dst|host A]`
    fn matches(&mut self, span: Span, words: &[Word<'_>]) {
        let Some(Interface { way, notes, classes, .. }) = self.interfaces.last_mut() else {
            self.wrong(span, "a match before any class", "begin with: class NAME");
            return;
        };
        // The host of the LAN sends uploads and receives downloads; for both directions at once FireQOS
        // exchanges the two.
        let (own, far) = if way == "input" { ("dst", "sport") } else { ("src", "dport") };
        let Some(class) = classes.last_mut() else {
            self.wrong(span, "a match before any class", "begin with: class NAME");
            return;
        };
        let mut protocol = "";
        let mut at = 0;
        let mut wrong = Vec::new();
        let mut requested = 0;
        while let Some((word, span)) = words.get(at).copied() {
            at += 1;
            let value = words.get(at).copied();
            let node = |text: String, span: Span| SpannedValue { span, value: TomlValue::Text(text) };
            match (word, value) {
                ("tcp" | "udp", _) => protocol = word,
                ("all", None) if class.name == "default" => requested += 1,
                ("port" | "ports" | "sport" | "sports" | "dport" | "dports", Some((ports, span))) => {
                    at += 1;
                    requested += 1;
                    let end = match word {
                        "port" | "ports" => "",
                        _ if word.starts_with(far) => "remote",
                        _ => "local",
                    };
                    for range in ports.split(',') {
                        let range = range.replace(':', "-");
                        let words = [protocol, end, &range].into_iter().filter(|word| !word.is_empty());
                        class.ports.push(node(words.collect::<Vec<_>>().join(" "), span));
                    }
                }
                ("dscp", Some((dscp, span))) => {
                    at += 1;
                    requested += 1;
                    class.dscp.extend(dscp.split(',').map(|one| node(one.to_uppercase(), span)));
                }
                (key, Some((hosts, span))) if key == own || matches!(key, "host" | "ip") => {
                    at += 1;
                    requested += 1;
                    class.hosts.extend(hosts.split(',').map(|one| node(one.to_owned(), span)));
                }
                ("prio", Some(_)) => {
                    at += 1;
                    notes.push(left_out(
                        span,
                        "a match's prio",
                        "classes are tried in the order of the file",
                    ));
                }
                // The word behind it is its value.
                ("src" | "dst", Some(_)) => {
                    at += 1;
                    wrong.push((format!("{word}, an address beyond the link"), span));
                }
                _ => wrong.push((word.to_owned(), span)),
            }
        }
        if requested > 1 {
            wrong.push(("several conditions that must hold together".into(), span));
        } else if requested == 0 && wrong.is_empty() {
            wrong.push((format!("{protocol} without a port"), span));
        }
        for (what, span) in wrong {
            self.wrong(
                span,
                format!("a short policy cannot match this: {what}"),
                "it matches ports (`ports`), DSCPs and hosts of the LAN, each alone; keep the rest in a script",
            );
        }
    }
}

/// Where a short policy has something of its own.
const OWN: &str = "a short policy has its own; see tidegate policy help";

fn left_out(span: Span, what: &str, instead: &str) -> Problem {
    Problem::new(span, format!("{what} is not taken over"), instead)
}

fn balanced(span: Span) -> Problem {
    left_out(span, "balanced", "the classes of a short policy are served in the order of the file")
}

fn text(key: &str, value: &str, span: Span) -> Entry {
    Entry { key: key.into(), span, node: SpannedValue { span, value: TomlValue::Text(value.into()) } }
}

/// The file's commands, each the words of a line and of those that continue it.
fn commands(text: &str) -> Vec<Vec<Word<'_>>> {
    let mut commands: Vec<Vec<Word<'_>>> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let whole = line.trim_end();
        let text = whole.strip_suffix('\\').unwrap_or(whole);
        let words = words(text, number);
        match commands.last_mut().filter(|_| goes_on) {
            Some(command) => command.extend(words),
            None => commands.push(words),
        }
        goes_on = text.len() < whole.len();
    }
    commands
}

/// The words of a line with their places; what follows a # is none.
fn words(line: &str, number: usize) -> Vec<Word<'_>> {
    let code = line.split('#').next().unwrap_or("");
    let mut words = Vec::new();
    let mut column = 1;
    let mut rest = code;
    while let Some(start) = rest.find(|letter: char| !letter.is_whitespace()) {
        column += rest[..start].chars().count();
        let word = rest[start..].split(char::is_whitespace).next().unwrap_or("");
        let length = word.chars().count();
        words.push((word, Span { line: number, from: column, to: column + length - 1 }));
        column += length;
        rest = &rest[start + word.len()..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_text(node: &SpannedValue) -> String {
        match &node.value {
            TomlValue::Text(text) => text.clone(),
            TomlValue::Truth(truth) => truth.to_string(),
            TomlValue::List(items) => items.iter().map(value_text).collect::<Vec<_>>().join(", "),
            TomlValue::Table(entries) => {
                let all: Vec<String> = entries
                    .iter()
                    .map(|entry| format!("{} = {}", entry.key, value_text(&entry.node)))
                    .collect();
                format!("{{ {} }}", all.join("; "))
            }
            other => other.name().to_owned(),
        }
    }

    #[test]
    fn interfaces_classes_and_matches_map() {
        let text = "# the line\ninterface eth0 world bidirectional adsl local pppoe-llc input rate \
        10500kbit output rate 800kbit\n\
                    \x20 class voip commit 100kbit pfifo\n    match udp ports 5060,10000:10100\n    match \
                    dscp ef\n\
                    \x20 class bulk max 90%\n    match host 192.168.1.50\n  class default\n    match all\n";
        let policies = read_fireqos(text).expect("is read");
        let lines: Vec<String> = policies[0]
            .entries
            .iter()
            .map(|entry| format!("{} = {}", entry.key, value_text(&entry.node)))
            .collect();
        assert_eq!(
            lines,
            [
                "device = eth0",
                "shape = 100%",
                "fair = flow",
                "down = 10500kbit",
                "up = 800kbit",
                "link = adsl pppoe-llc",
                "classes = { voip = { share = 100kbit; queue = plain; first = true; ports = udp 5060, udp 10000-10100; dscp = EF }; bulk = { ceil = 90%; share = 1%; hosts = 192.168.1.50 } }",
            ]
        );
    }

    /// What leaves goes to the remote port; what comes is from it.
    #[test]
    fn ports_of_one_end_map() {
        let ports = |way: &str, words: &str| {
            let text = format!("interface eth0 world {way} rate 1mbit\n class a\n  match {words}\n");
            let policies = read_fireqos(&text).expect("is read");
            let classes =
                policies[0].entries.iter().find(|entry| entry.key == "classes").expect("has classes");
            let text = value_text(&classes.node);
            text.split("ports = ").nth(1).map(|rest| rest.trim_end_matches([' ', '}']).to_owned())
        };
        let is = |way: &str, words: &str, expected: &str| {
            assert_eq!(ports(way, words).as_deref(), Some(expected), "{way} {words}");
        };
        is("output", "tcp dport 22", "tcp remote 22");
        is("output", "udp sports 53,5000:5010", "udp local 53, udp local 5000-5010");
        is("bidirectional", "dports 80", "remote 80");
        is("input", "tcp dport 22", "tcp local 22");
        is("input", "tcp sport 443", "tcp remote 443");
    }

    #[test]
    fn unmapped_settings_are_reported_with_their_place() {
        let text = "interface eth0 world output rate 1mbit\n class a\n  match tcp syn\n  match tcp port 22 \
        dscp EF\nserver_mode on\n class b\n  match tcp sports 80\n  match dst 192.0.2.1\n  match all\n";
        let problems: Vec<(usize, String)> = read_fireqos(text)
            .expect_err("does not map")
            .into_iter()
            .map(|p| (p.span.line, p.what))
            .collect();
        assert_eq!(problems.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4, 5, 8, 9]);
    }

    #[test]
    fn variables_and_continued_lines_are_read_as_bash_does() {
        let text = "DEV=eth0\nUP=900kbit; DOWN=5mbit # bought\ninterface46 $DEV world bidirectional \\\n input rate \
                    ${DOWN} output rate $UP\n class a\n  match udp port 53\n";
        let text = text.replace("; DOWN", "\nDOWN");
        let policies = read_fireqos(&text).expect("is read");
        let of = |key: &str| {
            let entry = policies[0].entries.iter().find(|entry| entry.key == key);
            entry.map(|entry| value_text(&entry.node))
        };
        assert_eq!(
            ["device", "up", "down"].map(of),
            ["eth0", "900kbit", "5mbit"].map(|value| Some(value.to_owned()))
        );
        // One cause, one problem.
        let what = |text: &str| -> Vec<String> {
            read_fireqos(text).expect_err("is not").into_iter().map(|problem| problem.what).collect()
        };
        let unset = "interface46 $DEV world output rate $UP\n class a\n  match udp port 53\n  match odd\n";
        assert_eq!(what(unset), ["nothing in this file gives $DEV a value"]);
        let loops = "for port in 80 443; do\n match port $port\ndone\n";
        assert_eq!(what(loops), ["the configuration is a program of bash here (`for`), which is not run"]);
    }

    #[test]
    fn what_is_left_out_is_reported() {
        let text = "interface eth0 world input rate 10mbit balanced minrate 10kbit\n class a sfq prio 3\n  \
                    match dst 192.168.1.2 prio 4\n class default commit 1mbit\n";
        let policies = read_fireqos(text).expect("is read");
        let notes: Vec<(usize, &str)> =
            policies[0].notes.iter().map(|note| (note.span.line, note.what.as_str())).collect();
        assert_eq!(
            notes,
            [
                (1, "balanced is not taken over"),
                (1, "minrate is not taken over"),
                (1, "FireQOS's matches are for IPv4 alone here; those of a short policy are for both"),
                (2, "sfq is not taken over"),
                (2, "prio is not taken over"),
                (3, "a match's prio is not taken over"),
                (4, "what is said of the class default is not taken over"),
            ]
        );
        let both = read_fireqos("interface46 eth0 world output rate 1mbit\n class a\n  match port 22\n");
        assert!(both.is_ok_and(|policies| policies[0].notes.is_empty()));
    }
}

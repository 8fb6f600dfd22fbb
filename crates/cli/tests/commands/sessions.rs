//! tc's shim compared with the real tc: every command of recorded sessions answered with the same output,
//! messages and exit code.
//!
//! `data/sessions.tar.gz` holds sessions that a real tc had with real kernels: some 6,000 commands, the
//! options of every kind with good, odd and wrong values among them. Usage texts are in our own words.
//! `data/sessions-differ.txt` names every answer that is not the same, with the reason; a line there that is
//! not needed any more fails the test too. `data/commands.tar.gz` and `data/commands-differ.txt` are the same
//! for filters, actions and the words of commands, by tc 6.1 with Linux 6.1: time passes between two commands
//! there, as it does not between two commands of a script.

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read as _;
use tidegate_gateway::DeviceSpec;
use tidegate_packet::{Pool, Seeded, Time};
use tidegate_policy::Kind;
use tidegate_shims::Machine;
use tidegate_shims::{Answer, Call};

/// A command of a session, and what the real tc answered.
#[derive(Default)]
struct Exchange {
    /// Its line in the file.
    line: usize,
    command: String,
    stdout: String,
    stderr: String,
    /// A usage text followed.
    usage: bool,
    /// The exit code; `None`: not recorded.
    code: Option<u8>,
}

/// Commands that one machine was given.
struct Session {
    /// Its devices, joined by `+`.
    devices: String,
    hz: u32,
    queueless: bool,
    warns: bool,
    exchanges: Vec<Exchange>,
}

fn sessions(text: &str) -> Vec<Session> {
    let mut all: Vec<Session> = Vec::new();
    let mut codes = false;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with("# ")) {
        if let Some(spec) = line.strip_prefix("@ ") {
            let words: Vec<&str> = spec.split(' ').collect();
            codes = words.contains(&"codes");
            let hz = words[2].parse().expect("hz");
            all.push(Session {
                devices: words[0].into(),
                hz,
                queueless: words.contains(&"queueless"),
                warns: words.contains(&"warns"),
                exchanges: Vec::new(),
            });
            continue;
        }
        let exchanges = &mut all.last_mut().expect("a session begins with its machine").exchanges;
        if let Some(command) = line.strip_prefix("$ ") {
            let code = codes.then_some(0);
            exchanges.push(Exchange {
                line: number + 1,
                command: command.trim().into(),
                code,
                ..Exchange::default()
            });
            continue;
        }
        let exchange = exchanges.last_mut().expect("answers follow a command");
        if line == "! ~" {
            exchange.usage = true;
        } else if let Some(text) = line.strip_prefix("! ") {
            exchange.stderr += &format!("{text}\n");
        } else if let Some(code) = line.strip_prefix("= ") {
            exchange.code = code.parse().ok();
        } else {
            exchange.stdout += &format!("{line}\n");
        }
    }
    all
}

/// Where in its file a command is answered otherwise, and how.
fn differences(session: &Session) -> Vec<(usize, String)> {
    let spec = DeviceSpec {
        hz: session.hz,
        queueless: session.queueless,
        speed_mbit: None,
        ..DeviceSpec::default()
    };
    let mut machine = Machine::new(session.devices.split('+'), spec);
    machine.now = Time(1_000_000_000);
    // The kernels that were asked are built so.
    machine.gateway.without_zones();
    (machine.warns, machine.classes_in_json) = (session.warns, session.warns);
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let mut face = machine.shim(&mut pool, &mut draws);
    let mut found = Vec::new();
    for exchange in &session.exchanges {
        let mut words = words_of(&exchange.command).into_iter();
        let tool = words.next().expect("a tool");
        let reply =
            face.answer(&Call { tool, args: words.collect(), stdin: None, cwd: "/".into(), netns: None });
        let lines = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
        };
        let (stdout, stderr) = (lines(&reply.stdout), lines(&reply.stderr));
        // tc 6.1 takes no notice of `-j` in listings of classes; for later kernels there is a shape of our
        // own.
        let of_classes = exchange.command.contains(" class ");
        let in_json =
            words_of(&exchange.command).iter().skip(1).take_while(|w| w.starts_with('-')).any(|w| w == "-j");
        if in_json && reply.code == 0 && (session.warns || !of_classes) {
            let value: Result<serde_json::Value, _> = serde_json::from_str(&stdout);
            assert!(value.is_ok(), "{}: {stdout}", exchange.command);
            if of_classes {
                continue;
            }
        }
        let complained =
            if exchange.usage { stderr.starts_with(&exchange.stderr) } else { stderr == exchange.stderr };
        let code_right = exchange.code.is_none_or(|code| code == reply.code);
        if stdout != exchange.stdout || !complained || !code_right {
            let theirs =
                format!("{}{}= {}\n", exchange.stdout, exchange.stderr, exchange.code.unwrap_or(reply.code));
            let ours = format!("{stdout}{stderr}= {}\n", reply.code);
            let (theirs, ours) = first_difference(&theirs, &ours);
            found.push((
                exchange.line,
                format!("{}\n    tc       {theirs}\n    tidegate {ours}", exchange.command),
            ));
        }
    }
    found
}

/// The words of a command, as a shell splits them: at blanks outside quotes.
fn words_of(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == ' ' => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The first lines that are not the same.
fn first_difference<'t>(theirs: &'t str, ours: &'t str) -> (&'t str, &'t str) {
    let same = theirs.lines().zip(ours.lines()).take_while(|(a, b)| a == b).count();
    (theirs.lines().nth(same).unwrap_or_default(), ours.lines().nth(same).unwrap_or_default())
}

/// What is known to differ: `FILE:LINE | REASON`, `FILE:FROM-TO | REASON` or `FILE | REASON`.
struct Known {
    file: String,
    from: usize,
    to: usize,
    entry: &'static str,
    needed: bool,
}

fn known(text: &'static str) -> Vec<Known> {
    let lines = text.lines();
    let entries = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    let known = entries.map(|entry| {
        let (place, _) = entry.split_once(" | ").unwrap_or_else(|| panic!("`FILE:LINE | REASON`: {entry}"));
        let (file, lines) = place.split_once(':').unwrap_or((place, "0-1000000"));
        let (from, to) = lines.split_once('-').unwrap_or((lines, lines));
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("a line's number: {entry}"));
        Known { file: file.into(), from: number(from), to: number(to), entry, needed: false }
    });
    known.collect()
}

/// The files of an archive: their names without endings, and their texts.
fn texts(archive: &[u8]) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for entry in tar::Archive::new(GzDecoder::new(archive)).entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        if entry.header().entry_type().is_file() {
            let path = entry.path().expect("a path").into_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("a session");
            texts.insert(path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), text);
        }
    }
    texts
}

/// How many answers are the same, and of how many, by kind. `differ`: those that are known not to be.
fn compare(archive: &[u8], differ: &'static str) -> BTreeMap<String, (usize, usize)> {
    let mut known = known(differ);
    let (mut wrong, mut same, mut total) = (String::new(), 0, 0);
    let mut by_kind: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (name, text) in texts(archive) {
        for session in sessions(&text) {
            let found = differences(&session);
            total += session.exchanges.len();
            same += session.exchanges.len() - found.len();
            let counts = by_kind.entry(kind_of(&name)).or_default();
            counts.0 += session.exchanges.len() - found.len();
            counts.1 += session.exchanges.len();
            for (line, output) in found {
                match known.iter_mut().find(|k| k.file == name && (k.from..=k.to).contains(&line)) {
                    Some(known) => known.needed = true,
                    None => wrong += &format!("{name}:{line} {output}\n"),
                }
            }
        }
    }
    println!("{same} of {total} answers the same");
    for known in known.iter().filter(|known| !known.needed) {
        wrong += &format!("known to differ: `{}` is answered the same\n", known.entry);
    }
    assert!(wrong.is_empty(), "{wrong}");
    by_kind
}

#[test]
fn tc_answers_about_filters_and_actions_as_the_real_one() {
    let by_kind =
        compare(include_bytes!("../data/commands.tar.gz"), include_str!("../data/commands-differ.txt"));
    assert!(by_kind.values().map(|(same, _)| same).sum::<usize>() > 6_000, "{by_kind:?}");
}

/// Shared blocks, `tc filter get` and `tc chain`, by tc 6.1 with Linux 6.1.
#[test]
fn tc_answers_about_shared_blocks_as_the_real_one() {
    let by_kind = compare(include_bytes!("../data/blocks.tar.gz"), include_str!("../data/blocks-differ.txt"));
    assert!(by_kind.values().map(|(same, _)| same).sum::<usize>() > 300, "{by_kind:?}");
}

/// Qdiscs at every place that a command can name, invisible ones, mq and noqueue, by tc 6.1 with Linux 6.1.
#[test]
fn tc_answers_about_places_as_the_real_one() {
    let by_kind = compare(include_bytes!("../data/qdiscs.tar.gz"), include_str!("../data/qdiscs-differ.txt"));
    assert!(by_kind.values().map(|(same, _)| same).sum::<usize>() > 3_000, "{by_kind:?}");
}

/// The commands of every policy of the gallery (`gallery.rs`), and the listings of what they leave, by tc 6.1
/// with Linux 6.1.
#[test]
fn tc_answers_to_the_gallery_as_the_real_one() {
    let by_kind = compare(
        include_bytes!("../data/gallery-sessions.tar.gz"),
        include_str!("../data/gallery-differ.txt"),
    );
    assert!(by_kind.values().map(|(same, _)| same).sum::<usize>() > 900, "{by_kind:?}");
}

/// Kernels of distributions have zones and labels of connections, which the recorded one lacks: the listing
/// of their tc.
#[test]
fn ct_is_about_a_zone() {
    let listed = [
        ("ct", "ct zone 0 pipe"),
        ("ct clear", "ct clear pipe"),
        ("ct zone 404 commit mark 0x42", "ct commit mark 66 zone 404 pipe"),
        ("ct commit nat src addr 192.0.2.1 pipe", "ct commit zone 0 nat src addr 192.0.2.1 pipe"),
        ("ct label 123123", "ct zone 0 label 12312300000000000000000000000000 pipe"),
        (
            "ct label 01/0f",
            "ct zone 0 label 01000000000000000000000000000000/0f000000000000000000000000000000 pipe",
        ),
    ];
    for (action, expected) in listed {
        let mut machine = Machine::new(["link0"], DeviceSpec::default());
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let mut face = machine.shim(&mut pool, &mut draws);
        let mut answer = |command: String| {
            let args = words_of(&command);
            let reply =
                face.answer(&Call { tool: "tc".into(), args, stdin: None, cwd: "/".into(), netns: None });
            assert_eq!(reply.code, 0, "{command}: {}", String::from_utf8_lossy(&reply.stderr));
            String::from_utf8_lossy(&reply.stdout).into_owned()
        };
        answer(format!("actions add action {action} index 4"));
        let text = answer("actions ls action ct".into());
        assert!(text.contains(&format!("action order 0: {expected}\n")), "{action}: {text}");
    }
}

#[test]
fn tc_answers_as_the_real_one() {
    let by_kind =
        compare(include_bytes!("../data/sessions.tar.gz"), include_str!("../data/sessions-differ.txt"));
    // `syntax` and `shims` replay these sessions beside their own code; the page of fidelity needs them once.
    if env!("CARGO_PKG_NAME") != "tidegate" {
        return;
    }
    for kind in Kind::ALL.iter().map(|kind| kind.name()).filter(|name| !by_kind.contains_key(*name)) {
        println!(
            "fidelity: qdiscs: commands | {kind} | unverified | not in any recorded session of the real tc"
        );
    }
    for (kind, (same, total)) in by_kind {
        let verdict = if same == total { "exact" } else { "differs" };
        let why =
            if same == total { "" } else { "; the others are listed with reasons in sessions-differ.txt" };
        println!(
            "fidelity: qdiscs: commands | {kind} | {verdict} | {same} of {total} replies of the real tc \
            identical{why}"
        );
    }
}

/// The kind that a file of sessions is about: `face-class-htb`, `qdisc-htb` and `face-htb` are about htb.
fn kind_of(name: &str) -> String {
    let mut name = name;
    for prefix in ["face-class-", "face-", "qdisc-"] {
        name = name.strip_prefix(prefix).unwrap_or(name);
    }
    match name {
        "fifo" => "pfifo".to_owned(),
        name => name.to_owned(),
    }
}

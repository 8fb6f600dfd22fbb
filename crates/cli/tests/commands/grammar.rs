//! Command lines: those of the docs and of the program's own advice are understood, script arguments follow
//! `--` in every command, and exit codes mean the same in every command.

use crate::common;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use common::{Place, TIDEGATE, papers, skip};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tidegate::command_line::parse;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The words of a line up to what the shell does with its output; `None` where it is not complete.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if word.is_none() => break,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Why a line is not understood. `whole`: it is meant to be typed literally; others may leave out what is
/// required, and have names such as FILE as placeholders.
fn wrong(line: &str, whole: bool) -> Option<String> {
    let words = words(line)?;
    let error = parse(&words).err().filter(clap::Error::use_stderr)?;
    let is_placeholder = |value: &ContextValue| {
        let text = value.to_string();
        let name = text.split([',', '=', '.', ':']).next().unwrap_or_default();
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '-')
    };
    let unfinished = match error.kind() {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::TooFewValues => true,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => error
            .get(ContextKind::InvalidValue)
            .is_some_and(|value| is_placeholder(value) || value.to_string().is_empty()),
        _ => false,
    };
    (whole || !unfinished).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

/// The lines of a paper that are commands: whole ones of its blocks, and others of its sentences.
fn commands(text: &str) -> Vec<(usize, String, bool)> {
    let mut found = Vec::new();
    let (mut block, mut before) = (None::<String>, String::new());
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in (1..).zip(lines.iter().copied()) {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            block = if block.is_some() { None } else { Some(kind.to_owned()) };
            before.clear();
            continue;
        }
        let line = before.clone() + line.trim();
        before.clear();
        if line.ends_with('\\') && block.is_some() {
            before = line.trim_end_matches('\\').to_owned();
            continue;
        }
        match &block {
            Some(kind) => {
                let is_shell = ["", "console", "sh", "bash", "shell"].contains(&kind.as_str());
                let typed = line.strip_prefix("$ ").or(line.strip_prefix("# ")).unwrap_or(&line);
                let typed = typed.strip_prefix("sudo ").unwrap_or(typed);
                // What a command printed is no command.
                let is_typed = kind != "console" || line.starts_with("$ ");
                // What is shown to be refused is no example.
                let is_refused = lines.get(number).is_some_and(|next| next.starts_with("error: "));
                if is_shell && is_typed && !is_refused && typed.starts_with("tidegate ") {
                    found.push((number, typed.to_owned(), true));
                }
            }
            None => {
                let spans = line.split('`').skip(1).step_by(2);
                found.extend(
                    spans
                        .filter(|span| span.starts_with("tidegate "))
                        .map(|span| (number, span.to_owned(), false)),
                );
            }
        }
    }
    found
}

/// Is this a pattern of commands, and no command?
fn is_pattern(line: &str) -> bool {
    ["…", "...", "[", "COMMAND", "NAME"].iter().any(|sign| line.contains(sign))
        || ["tidegate 1", "tidegate \\"].contains(&line)
}

fn all_papers() -> Vec<PathBuf> {
    let root = root();
    let mut folders = vec![root.clone(), root.join("examples"), root.join("packaging")];
    let mut found = Vec::new();
    let mut below = vec![root.join("docs")];
    while let Some(folder) = below.pop() {
        let entries =
            std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        below.extend(entries.filter(|path| path.is_dir()));
        folders.push(folder);
    }
    for entry in std::fs::read_dir(root.join("crates")).expect("the crates") {
        folders.push(entry.expect("an entry").path());
    }
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        found.extend(papers::of(folder));
    }
    // What was true of a version is not true of another.
    found.retain(|path| !path.ends_with("CHANGELOG.md"));
    found
}

#[test]
fn every_command_line_of_the_docs_is_understood() {
    let (mut errors, mut count) = (String::new(), 0);
    for paper in all_papers() {
        let text = std::fs::read_to_string(&paper).expect("a paper");
        for (number, line, whole) in commands(&text).into_iter().filter(|(_, line, _)| !is_pattern(line)) {
            count += 1;
            if let Some(why) = wrong(&line, whole) {
                let _ = writeln!(errors, "{}:{number}: {line}\n    {why}", paper.display());
            }
        }
    }
    assert!(count > 200, "{count} command lines are too few: are they still found?");
    assert!(errors.is_empty(), "{errors}");
}

/// Advice in the source: text in backticks in a string, with 1 in place of inserted values.
fn advice(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for span in line.split('`').skip(1).step_by(2).filter(|span| span.starts_with("tidegate ")) {
            let mut filled = String::new();
            let mut depth = 0;
            for letter in span.chars() {
                match letter {
                    '{' => depth += 1,
                    '}' => {
                        depth -= 1;
                        filled.push('1');
                    }
                    _ if depth == 0 => filled.push(letter),
                    _ => {}
                }
            }
            found.push((number, filled.replace("\\\"", "\"")));
        }
    }
    found
}

#[test]
fn every_command_line_that_the_program_advises_is_understood() {
    let (mut errors, mut count) = (String::new(), 0);
    let mut below = vec![root().join("crates")];
    while let Some(folder) = below.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
                below.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                for (number, line) in advice(&text).into_iter().filter(|(_, line)| !is_pattern(line)) {
                    count += 1;
                    if let Some(why) = wrong(&line, false) {
                        let _ = writeln!(errors, "{}:{number}: {line}\n    {why}", path.display());
                    }
                }
            }
        }
    }
    assert!(count > 100, "{count} command lines are too few: are they still found?");
    assert!(errors.is_empty(), "{errors}");
}

#[test]
fn a_command_that_is_wrong_is_found() {
    let rows = [
        ("tidegate chekc a.sh", "unrecognized subcommand 'chekc'"),
        ("tidegate check a.sh --no-such", "unexpected argument '--no-such'"),
        ("tidegate try a.sh --up 20Mbps --down 1mbit", "invalid value '20Mbps'"),
        ("tidegate sim a.toml -o a.pdf | cat", "invalid value 'a.pdf'"),
    ];
    for (line, why) in rows {
        assert!(wrong(line, false).is_some_and(|found| found.contains(why)), "{line}");
    }
    for line in ["tidegate measure HOST --duration TIME", "tidegate apply", "tidegate check a.sh -- -x > y"] {
        assert_eq!(wrong(line, false), None, "{line}");
    }
    assert!(wrong("tidegate apply", true).is_some());
}

const GATEWAY: &str = "#!/bin/sh\n\
    [ $# -eq 2 ] || { echo \"Usage: $0 start DEV\" >&2; exit 64; }\n\
    tc qdisc add dev \"$2\" root tbf rate 1mbit burst 10k latency 50ms\n";

fn tidegate(place: &Place, line: &str) -> Output {
    let words = words(line).expect("a whole line");
    Command::new(TIDEGATE).args(&words[1..]).current_dir(&place.0).output().expect("tidegate runs")
}

fn stderr(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const LINK: &str = "--up 2mbit --down 9mbit --duration 1s --load idle -o none";

#[test]
fn a_script_gets_its_arguments_behind_two_hyphens_in_every_command() {
    if skip() {
        return;
    }
    let place = Place::new("grammar-arguments");
    place.script("gw.sh", GATEWAY);
    place.file(
        "t.toml",
        "policy = \"gw.sh\"\nup = \"2mbit\"\ndown = \"9mbit\"\nduration = \"1s\"\n\
        expect = [\"packet 'udp 192.168.1.7 > 1.1.1.1:53 out eth0': queue bfifo\"]\n",
    );
    for line in [
        "tidegate check gw.sh --fail-on never -- start eth0",
        "tidegate explain gw.sh 'udp 192.168.1.7 > 1.1.1.1:53' -- start eth0",
        "tidegate graph gw.sh -- start eth0",
        "tidegate import gw.sh -- start eth0",
        "tidegate run gw.sh --print tc -- start eth0",
        &format!("tidegate try gw.sh {LINK} -- start eth0"),
        "tidegate test t.toml -- start eth0",
    ] {
        let output = tidegate(&place, line);
        assert_eq!(output.status.code(), Some(0), "{line}\n{}", stderr(&output));
        let without = line.split(" -- ").next().unwrap_or_default();
        let output = tidegate(&place, without);
        assert_ne!(output.status.code(), Some(0), "{without}\n{}", stderr(&output));
    }
    // `policy from` needs more of a policy than this; its arguments arrive all the same.
    let output = tidegate(&place, "tidegate policy from gw.sh -- start eth0");
    assert!(!stderr(&output).contains("Usage"), "{}", stderr(&output));
}

#[test]
fn what_a_failed_script_writes_is_shown_with_a_hint() {
    if skip() {
        return;
    }
    let place = Place::new("grammar-usage");
    place.script("gw.sh", GATEWAY);
    for line in [
        "tidegate check gw.sh",
        "tidegate explain gw.sh 'udp 192.168.1.7 > 1.1.1.1:53'",
        "tidegate graph gw.sh",
        "tidegate import gw.sh",
        "tidegate policy from gw.sh",
        &format!("tidegate try gw.sh {LINK}"),
    ] {
        let output = tidegate(&place, line);
        assert_eq!(output.status.code(), Some(2), "{line}\n{}", stderr(&output));
        let text = stderr(&output);
        assert!(text.contains("standard error of the script:\n  | Usage: "), "{line}\n{text}");
        assert_eq!(text.matches("FILE -- ARGS").count(), 1, "{line}\n{text}");
        assert_eq!(text.matches("`--`").count(), 1, "said once: {line}\n{text}");
    }
}

#[test]
fn the_line_that_repeats_a_trial_can_be_pasted() {
    if skip() {
        return;
    }
    let place = Place::new("grammar-again");
    place.script("my gw.sh", GATEWAY);
    let line = format!(
        "tidegate try 'my gw.sh' {LINK} --buffer 24kB --down-buffer 100ms --rtt 20ms --bql 3000 --json -- start eth0"
    );
    let first = tidegate(&place, &line);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let document: serde_json::Value = serde_json::from_slice(&first.stdout).expect("JSON");
    let again = document["command"].as_str().expect("a command line").to_owned();
    assert!(
        again.ends_with(" -- start eth0") && again.contains("--buffer 24000B --down-buffer 100ms"),
        "{again}"
    );
    let (before, args) = again.split_once(" -- ").expect("arguments");
    let second = tidegate(&place, &format!("{before} --json -- {args}"));
    assert_eq!(second.stdout, first.stdout, "{again}\n{}", stderr(&second));
}

#[test]
fn the_lines_that_show_a_failed_assertion_can_be_pasted() {
    if skip() {
        return;
    }
    let place = Place::new("grammar-see");
    place.script("gw.sh", GATEWAY);
    place.file(
        "my tests.toml",
        "policy = \"gw.sh\"\nargs = [\"start\", \"eth0\"]\nup = \"2mbit\"\ndown = \"9mbit\"\n\
        duration = \"1s\"\nexpect = [\n\"packet 'udp 192.168.1.7 > 1.1.1.1:53 out eth0': queue sfq\",\n\
        \"ping: p50 < 1 us while idle\",\n]\n",
    );
    let output = tidegate(&place, "tidegate test 'my tests.toml'");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stderr(&output);
    let lines: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("; see: ")).map(|(_, see)| see).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for line in lines {
        let output = tidegate(&place, line);
        assert!(output.status.code().is_some_and(|code| code < 2), "{line}\n{}", stderr(&output));
    }
}

/// Words that no one asked for are refused, with where they belong.
#[test]
fn words_without_two_hyphens_are_no_arguments() {
    if skip() {
        return;
    }
    let place = Place::new("grammar-words");
    place.script("gw.sh", GATEWAY);
    place.file("t.toml", "policy = \"gw.sh\"\nup = \"2mbit\"\ndown = \"9mbit\"\nexpect = []\n");
    place.file("args.toml", "policy = \"gw.sh start\"\nup = \"2mbit\"\ndown = \"9mbit\"\nexpect = [\"x\"]\n");
    let rows = [
        (
            "try gw.sh start eth0 --up 1mbit --down 1mbit",
            "arguments for the script come after `--`: `-- start`",
        ),
        ("try gw.sh 'b c.sh' --up 1mbit --down 1mbit", "`-- 'b c.sh'`"),
        ("run gw.sh start", "`-- start`"),
        ("shell ping server", "the program comes after `--`: `-- ping`"),
        ("sim s.toml t.toml", "one scenario file at a time"),
        ("lab s.toml t.toml", "one scenario file at a time"),
        (
            "replay --capture a.pcap --policy gw.sh start",
            "arguments for the script come after `--`: `-- start`",
        ),
        ("policy show gw.toml start", "unexpected argument 'start'"),
        ("check gw.sh start", "gw.sh -- start"),
        ("graph gw.sh start", "gw.sh -- start"),
        ("import gw.sh start", "gw.sh -- start"),
        ("policy from gw.sh start", "gw.sh -- start"),
        ("apply gw.sh start --dry-run", "gw.sh -- start"),
        ("daemon gw.sh start", "gw.sh -- start"),
        ("test t.toml start", "arguments for the policies' scripts come after `--`"),
        ("explain gw.sh start eth0", "arguments for a script come after `--`"),
        ("explain gw.sh gw.sh", "more files of the policy are given with --also"),
    ];
    for (line, remedy) in rows {
        let output = tidegate(&place, &format!("tidegate {line}"));
        assert_eq!(output.status.code(), Some(2), "{line}\n{}", stderr(&output));
        assert!(stderr(&output).contains(remedy), "{line}\n{}", stderr(&output));
        assert!(output.stdout.is_empty(), "{line}\n{}", stderr(&output));
    }
}

/// What results say is the command that makes them again, makes them again, whatever is in its words.
#[test]
fn the_command_of_a_result_can_be_pasted() {
    if skip() {
        return;
    }
    let place = Place::new("grammar-paste");
    let odd = "it's a\n\"gate\u{1b}way\u{202e}\\$HOME.sh";
    place.script(odd, "#!/bin/sh\ntc qdisc add dev eth0 root tbf rate \"$1\" burst 10k latency 50ms\n");
    place.script("-gw.sh", "#!/bin/sh\ntc qdisc add dev eth0 root sfq\n");
    let same = |words: &[&str]| {
        let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let first = Command::new(TIDEGATE)
            .args(&words[..at])
            .arg("--json")
            .args(&words[at..])
            .current_dir(&place.0)
            .output()
            .expect("it runs");
        assert_eq!(first.status.code(), Some(0), "{words:?} {}", stderr(&first));
        let document: serde_json::Value = serde_json::from_slice(&first.stdout).expect("JSON");
        let line = document["command"].as_str().expect("a command");
        assert!(line.chars().all(tidegate_text::is_visible), "{line}");
        let (before, after) = line.split_once(" -- ").unwrap_or((line, ""));
        let after = if after.is_empty() { String::new() } else { format!(" -- {after}") };
        let shell = format!("tidegate() {{ '{TIDEGATE}' \"$@\"; }}; {before} --json{after}");
        let again = Command::new("bash").args(["-c", &shell]).current_dir(&place.0).output().expect("bash");
        assert_eq!(stderr(&again), stderr(&first), "{line}");
    };
    let link = ["--up", "2mbit", "--down", "9mbit", "--duration", "1s", "--load", "idle"];
    let arguments = ["--rtt", "1500ns", "--buffer", "1ms", "--timeout", "9.5s", "--", "1mbit"];
    same(&[&["try", odd][..], &link, &arguments].concat());
    same(&[&["try", "--rtt", "30000001ns"][..], &link, &["./-gw.sh"]].concat());
    place.file(
        "s it.toml",
        "duration = \"1s\"\n[home]\nup = \"2mbit\"\ndown = \"9mbit\"\n[policies.\"it's\"]\n\
        [[traffic]]\nping = \"a -> server\"\n",
    );
    let at = ["--at", "1000001ns", "--", "iptables", "-A", "INPUT", "-m", "comment", "--comment", "it's 50%"];
    same(&[&["sim", "s it.toml", "--policy", "it's", "--duration", "1000000001ns"][..], &at].concat());
}

#[test]
fn a_short_policy_supplies_the_rates_of_its_link() {
    let place = Place::new("grammar-rates");
    place.file("home.toml", "device = \"eth0\"\nup = \"4mbit\"\ndown = \"20mbit\"\npreset = \"home\"\n");
    place.file("half.toml", "device = \"eth0\"\nup = \"4mbit\"\npreset = \"home\"\n");
    let rest = "--duration 1s --load idle -o none --json";
    let output = tidegate(&place, &format!("tidegate try home.toml {rest}"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let again = document["command"].as_str().expect("a command line");
    assert!(again.contains("--up 4mbit --down 20mbit"), "{again}");
    let output = tidegate(&place, &format!("tidegate try half.toml {rest}"));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("missing: --down RATE"), "{}", stderr(&output));
    let output = tidegate(&place, &format!("tidegate try half.toml {rest} --down 9mbit"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn quantities_with_two_readings_are_refused_everywhere() {
    let place = Place::new("grammar-units");
    place.file("p.batch", "qdisc add dev eth0 root sfq\n");
    place.file("s.toml", "[home]\nup = \"20Mbps\"\ndown = \"9mbit\"\n");
    let rows = [
        ("tidegate try p.batch --up 20Mbps --down 1mbit", "20mbit (20 megabits per second) or 160mbit"),
        (
            "tidegate try p.batch --up 1600 --down 1mbit",
            "1600mbit, 1600kbit or 1600bit (1600 bits per second, as tc reads it)",
        ),
        ("tidegate try p.batch --up 10M --down 1mbit", "10mbit (10 megabits per second) or 80mbit"),
        ("tidegate try p.batch --up 1mbit --down 1mbit --rtt 30", "30ms (milliseconds) or 30s (seconds)"),
        ("tidegate try p.batch --up 1mbit --down 1mbit --buffer 1500", "1500B (bytes) or 1500ms"),
        ("tidegate try p.batch --up 1mbit --down 1mbit --buffer 24k", "24kB (24000 bytes) or 24KiB"),
        ("tidegate quick host --max-rate 20Mbps", "20mbit (20 megabits"),
        ("tidegate measure host --duration 60", "60ms (milliseconds) or 60s"),
        ("tidegate measure host --duration 1m", "1min (minutes) or 1ms"),
        ("tidegate apply p.batch --confirm 60", "60ms (milliseconds) or 60s"),
        ("tidegate sim s.toml", "20mbit (20 megabits"),
    ];
    for (line, readings) in rows {
        let output = tidegate(&place, line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains(readings), "{line}\n{}", stderr(&output));
    }
}

#[test]
fn an_unknown_extension_is_refused_before_anything_runs() {
    let place = Place::new("grammar-extension");
    for line in [
        "tidegate try none.sh --up 1mbit --down 1mbit -o a.pdf",
        "tidegate sim none.toml -o a.pdf",
        "tidegate compare a.json b.json -o a.pdf",
        "tidegate graph none.sh -o a.pdf",
        "tidegate check none.sh -o a.pdf",
        "tidegate explain none.sh 'arp' -o a.pdf",
        "tidegate test none.toml -o a.pdf",
        "tidegate replay --capture none.pcap -o a.pdf",
        "tidegate quick host.invalid -o a.pdf",
        "tidegate ping host.invalid -o a.pdf",
        "tidegate measure host.invalid -o a.pdf",
        "tidegate verify host.invalid --policy none.sh -o a.pdf",
        "tidegate loss host.invalid -o a.pdf",
        "tidegate overhead host.invalid -o a.pdf",
        "tidegate calibrate host.invalid -o a.pdf",
        "tidegate record host.invalid -o a.pdf",
        "tidegate doctor -o a.pdf",
    ] {
        let output = tidegate(&place, line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains("the name must end in ."), "{line}\n{}", stderr(&output));
    }
}

#[test]
fn a_missing_file_is_wrong_input_in_every_command() {
    let place = Place::new("grammar-missing");
    for line in [
        "tidegate check none.sh",
        "tidegate explain none.sh arp",
        "tidegate graph none.sh",
        "tidegate import none.sh",
        "tidegate test none.toml",
        "tidegate policy show none.toml",
        "tidegate policy from none.sh",
        "tidegate try none.sh --up 1mbit --down 1mbit",
        "tidegate sim none.toml",
        "tidegate compare none.json other.json",
        "tidegate replay none",
        "tidegate replay --capture none.pcap --policy none.sh",
        "tidegate ping -r none.json",
        "tidegate loss --received none.pcap",
        "tidegate overhead --from none.txt",
        "tidegate apply none.sh --dry-run",
        "tidegate daemon none.sh",
    ] {
        let output = tidegate(&place, line);
        assert_eq!(output.status.code(), Some(2), "{line}\n{}", stderr(&output));
    }
}

#[test]
fn half_a_script_is_wrong_input_in_every_command() {
    if skip() {
        return;
    }
    let place = Place::new("grammar-half");
    place.script("half.sh", "#!/bin/sh\ntc qdisc add dev eth0 root fq_codel\nwhile :; do :; done\n");
    for command in [
        "check half.sh",
        "explain half.sh 'udp 192.168.1.7 > 1.1.1.1:53'",
        "graph half.sh",
        "import half.sh",
        "policy from half.sh",
        "try half.sh --up 1mbit --down 1mbit -o none --keep-going",
        "apply half.sh --dry-run",
    ] {
        let output = tidegate(&place, &format!("tidegate {command} --timeout 1s"));
        assert_eq!(output.status.code(), Some(2), "{command}\n{}", stderr(&output));
    }
}

#[test]
fn quiet_and_color_are_options_of_every_command() {
    let place = Place::new("grammar-color");
    place.file(
        "bad.batch",
        "qdisc add dev eth0 root handle 1: htb default 99\n\
        class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n",
    );
    let check = |options: &str| tidegate(&place, &format!("tidegate check bad.batch {options}"));
    let plain = check("--quiet");
    assert_eq!(plain.status.code(), Some(1), "{}", stderr(&plain));
    assert!(!stderr(&plain).contains('\u{1b}'), "a pipe gets no colours");
    assert_eq!(check("--color never").stdout, plain.stdout);
    let colored = stderr(&check("--color always"));
    assert!(colored.contains("\u{1b}[1;3"), "{colored}");
    let stripped = ["\u{1b}[1;31m", "\u{1b}[1;33m", "\u{1b}[1;36m", "\u{1b}[0m"];
    let stripped = stripped.iter().fold(colored, |text, code| text.replace(code, ""));
    assert_eq!(stripped, stderr(&plain), "only colours differ");
}

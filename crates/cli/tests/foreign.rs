//! Bytes from strangers do not reach a terminal raw: a canary of control and invisible characters goes in by
//! every way there is.

mod common;

use common::{Place, TIDEGATE, skip};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tidegate_probe_wire::ControlMessage;

/// Sets a title, clears the screen, colours (8-bit CSI), turns text round, hides, deletes.
const CANARY: &str = "\x1b]0;pwned\x07\x1b[2J\u{9b}31m\u{202e}\u{200b}\u{7f}";

/// A packet in words.
const PACKET: &str = "udp 192.168.1.7:5000 > 1.1.1.1:53";

fn tidegate(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(TIDEGATE);
    command.args(words).current_dir(dir).env_remove("TIDEGATE_TOKEN").env("TIDEGATE_RUN", dir.join("run"));
    command.stdin(Stdio::null()).output().expect("tidegate runs")
}

/// What was printed, if nothing of it would be obeyed by a terminal.
fn harmless(words: &[&str], output: &Output) -> String {
    let all = [output.stdout.as_slice(), &output.stderr].concat();
    let text = String::from_utf8(all).unwrap_or_else(|error| panic!("{words:?}: no UTF-8: {error}"));
    let raw =
        text.chars().find(|letter| !matches!(letter, '\n' | '\t') && !tidegate_text::is_visible(*letter));
    assert_eq!(raw, None, "{words:?} printed it raw: {text:?}");
    assert!(!text.contains("panicked"), "{words:?}: {text}");
    text
}

/// Is the canary to be seen, in one notation or the other?
fn shows(text: &str) -> bool {
    text.contains("\\x1b") || text.contains("\\u001b") || text.contains("\\u{1b}")
}

#[test]
fn in_words_of_the_command_line() {
    let place = Place::new("foreign-words");
    let name = format!("no{CANARY}such");
    let file = name.as_str();
    let cases: [&[&str]; 33] = [
        &["check", file],
        &["explain", file, PACKET],
        &["graph", file],
        &["test", file],
        &["policy", "show", file],
        &["policy", "from", file],
        &["import", file],
        &["run", file],
        &["replay", file],
        &["replay", "--capture", file],
        &["try", file, "--up", "10mbit", "--down", "50mbit"],
        &["sim", file],
        &["compare", file, file],
        &["tune", file, "--set", "a=1..2", "--objective", "ping.p95"],
        &["bundle", file, "-o", "b"],
        &["bundle", "--check", file],
        &["ping", "-r", file],
        &["ping", "-c", "1", file],
        &["overhead", "--from", file],
        &["loss", "--received", file, "-c", "3"],
        &["measure", file],
        &["calibrate", file],
        &["record", file],
        &["quick", file],
        &["serve", "--token", file],
        &["apply", "--dry-run", file],
        &["daemon", file],
        &["top", file, "--once"],
        &["metrics", file, "--once"],
        &["tc", "qdisc", "show", "dev", file],
        &["capture", file],
        &["status", file],
        &[file],
    ];
    for words in cases {
        let output = tidegate(&place.0, words);
        let text = harmless(words, &output);
        // `status` of a device without a policy is no error; all others fail, and name what is missing.
        assert!(words[0] == "status" || !output.status.success(), "{words:?}: {text}");
        // Of an unknown command clap itself leaves sequences out.
        let names_it =
            words.len() > 1 && !matches!(words[0], "quick" | "top" | "metrics" | "capture" | "daemon");
        assert!(!names_it || shows(&text), "{words:?} does not show what it was asked for: {text}");
    }
}

#[test]
fn in_scripts_and_their_devices_comments_and_output() {
    if skip() {
        return;
    }
    let place = Place::new("foreign-script");
    let script = format!(
        "#!/bin/sh\n# {CANARY}\nprintf '%s\\n' '{CANARY}'\nprintf '%s\\n' '{CANARY}' >&2\nprintf \
        '\\033[31m\\377\\233\\n'\n\
         tc qdisc add dev eth0 root handle 1: htb default 99 # {CANARY}\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit ceil 5mbit # {CANARY}\n\
         tc qdisc add dev 'e{CANARY}' root fq_codel\n\
         tc qdisc add dev eth0 parent 1:1 '{CANARY}'\n\
         tc filter add dev eth0 parent 1: protocol '{CANARY}' u32\n\
         iptables -t mangle -A POSTROUTING -m comment --comment '{CANARY}' -j MARK --set-mark 1\n\
         iptables -A '{CANARY}' -j ACCEPT\nip link add '{CANARY}' type ifb\nnft add table inet '{CANARY}'\n\
         ethtool -K '{CANARY}' gso off\nsysctl -w '{CANARY}=1'\nmodprobe '{CANARY}'\nnosuchtool \
         '{CANARY}'\ntrue\n"
    );
    let name = format!("a{CANARY}.sh");
    place.script(&name, &script);
    let file = name.as_str();
    let cases: [(&[&str], bool); 19] = [
        (&["run", file], false),
        (&["run", "--print", "tc", file], false),
        (&["run", "--print", "batch", file], false),
        (&["run", "--print", "json", file], true),
        (&["run", "--print", "tree", file], false),
        (&["check", file], false),
        (&["check", "--json", file], true),
        (&["check", "--sarif", file], true),
        (&["explain", file, PACKET], false),
        (&["explain", "--json", file, PACKET], true),
        (&["graph", file], false),
        (&["graph", "--format", "svg", file], false),
        (&["graph", "--format", "dot", file], false),
        (&["graph", "--format", "mermaid", file], false),
        (&["import", file], false),
        (&["policy", "from", file], false),
        (&["try", file, "--up", "10mbit", "--down", "50mbit", "--report", "none", "--load", "idle"], false),
        (&["apply", "--dry-run", file], false),
        (&["verify", "127.0.0.1", "--policy", file], false),
    ];
    let mut shown = 0;
    for (words, is_json) in cases {
        let output = tidegate(&place.0, words);
        shown += usize::from(shows(&harmless(words, &output)));
        if is_json {
            let read = serde_json::from_slice::<serde_json::Value>(&output.stdout);
            assert!(read.is_ok(), "{words:?}: {read:?}\n{}", String::from_utf8_lossy(&output.stdout));
        }
    }
    assert!(shown >= 12, "the canary is to be seen in {shown} outputs only: does it get there?");
}

#[test]
fn in_lists_tests_scenarios_and_results() {
    if skip() {
        return;
    }
    let place = Place::new("foreign-files");
    place.file("a.batch", format!("qdisc add dev 'e{CANARY}' root '{CANARY}'\n"));
    place.file("a.nft", format!("table inet '{CANARY}' {{ chain '{CANARY}' {{ }} }}\n"));
    place.file("a.rules", format!("*mangle\n:{CANARY} - [0:0]\n-A {CANARY} -j {CANARY}\nCOMMIT\n"));
    place.file(
        "a.json",
        format!("[{{\"kind\":\"{}\"}}]", CANARY.replace('\x1b', "\\u001b").replace('\x07', "")),
    );
    let toml = CANARY.chars().map(|letter| format!("\\u{:04x}", letter as u32)).collect::<String>();
    place.file("policy.toml", format!("up = \"{toml}\"\n\"{toml}\" = 1\n"));
    place.file("a.test.toml", format!("policy = \"{toml}\"\n\"{toml}\" = 1\n"));
    // Titles with control characters are refused; those that only turn text round or hide are read.
    let unseen = "\\u202e\\u200b";
    place.file("titled.toml", format!("title = \"t {toml}\"\n{SCENARIO}"));
    place.file(
        "scenario.toml",
        format!(
            "title = \"t {unseen}\"\nabout = \"{toml}\"\nduration = \"2s\"\nwarm-up = \"1s\"\n\
             [links.l]\nbetween = [\"a:eth0\", \"b\"]\nrate = \"1mbit\"\ndelay = \"5ms\"\n\
             [policies.\"p{unseen}\"]\na = [\"tc qdisc add dev eth0 root fq_codel\"]\n\
             [loads.x]\ntitle = \"load {unseen}\"\ntraffic = \
             [{{ id = \"flow\", title = \"f {unseen}\", tcp = \"a -> b\" }}]\n"
        ),
    );
    place.file("named.toml", format!("{SCENARIO}[policies.\"p{toml}\"]\n"));
    place.file("broken.toml", format!("title = \"x\"\n[links.\"{toml}\"]\nbetween = [\"{toml}\"]\n"));
    let cases: [&[&str]; 16] = [
        &["check", "a.batch"],
        &["run", "a.batch"],
        &["import", "a.batch"],
        &["check", "a.nft"],
        &["import", "a.nft"],
        &["check", "a.rules"],
        &["import", "a.rules"],
        &["import", "a.json"],
        &["policy", "show", "policy.toml"],
        &["check", "policy.toml"],
        &["test", "a.test.toml"],
        &["sim", "broken.toml"],
        &["sim", "titled.toml"],
        &["sim", "named.toml"],
        &["sim", "scenario.toml", "-o", "result.json"],
        &["sim", "scenario.toml", "--json"],
    ];
    let mut shown = Vec::new();
    for words in cases {
        let output = tidegate(&place.0, words);
        let text = harmless(words, &output);
        shown.push((words, shows(&text), text));
    }
    let silent: Vec<_> = shown.iter().filter(|(_, shows, _)| !shows).collect();
    assert!(silent.len() <= 3, "the canary does not get through: {silent:#?}");
    let result = fs::read_to_string(place.0.join("result.json"));
    let result = result.unwrap_or_else(|error| panic!("the scenario is carried out: {error}: {shown:#?}"));
    // A result may come from a stranger, with any titles and names.
    let theirs =
        result.replace("load ", &format!("load {toml}")).replace("p\u{202e}\u{200b}", &format!("p{toml}"));
    place.file("theirs.json", theirs);
    for words in
        [&["compare", "theirs.json", "theirs.json"][..], &["compare", "--json", "theirs.json", "theirs.json"]]
    {
        let output = tidegate(&place.0, words);
        let text = harmless(words, &output);
        assert!(output.status.success() && shows(&text), "{text}");
    }
}

#[test]
fn in_the_messages_of_a_hostile_server() {
    let place = Place::new("foreign-server");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut first = [0; 64];
        let _ = stream.read(&mut first);
        let _ = stream.write_all(&ControlMessage::Refused(format!("because {CANARY}")).encode());
        // Until the client has read it and gone.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let words = ["measure", "127.0.0.1", "--port", &port];
    let output = tidegate(&place.0, &words);
    let text = harmless(&words, &output);
    assert!(!output.status.success() && text.contains("because") && shows(&text), "{text}");
    server.join().expect("it has ended");
}

const SCENARIO: &str =
    "[links.l]\nbetween = [\"a:eth0\", \"b\"]\nrate = \"1mbit\"\n[[traffic]]\ntcp = \"a -> b\"\n";

#[test]
fn a_full_standard_output_is_an_error_in_every_command() {
    if skip() {
        return;
    }
    let place = Place::new("foreign-full");
    place.script("a.sh", "#!/bin/sh\necho hello\ntc qdisc add dev eth0 root fq_codel\n");
    place.file("a.toml", SCENARIO);
    let result = tidegate(&place.0, &["sim", "a.toml", "-o", "a.json"]);
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    let cases: [&[&str]; 14] = [
        &["run", "a.sh"],
        &["run", "--print", "json", "a.sh"],
        &["check", "a.sh"],
        &["check", "--rules"],
        &["explain", "a.sh", PACKET],
        &["graph", "a.sh"],
        &["graph", "a.sh", "-o", "-"],
        &["import", "a.sh"],
        &["policy", "list"],
        &["sim", "a.toml"],
        &["compare", "a.json", "a.json"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ];
    for words in cases {
        let full = File::options().write(true).open("/dev/full").expect("the device");
        let mut command = Command::new(TIDEGATE);
        let output = command.args(words).current_dir(&place.0).stdout(full).output().expect("tidegate runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(i32::from(u8::from(tidegate::exit::CliExit::NotWritten))),
            "{words:?}: {stderr}"
        );
        assert!(
            stderr.contains("standard output") && stderr.contains("No space left"),
            "{words:?}: {stderr}"
        );
        // A reader that has seen enough is none.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(TIDEGATE);
        let output =
            command.args(words).current_dir(&place.0).stdout(writer).output().expect("tidegate runs");
        assert_ne!(
            output.status.code(),
            Some(i32::from(u8::from(tidegate::exit::CliExit::NotWritten))),
            "{words:?}"
        );
    }
}

/// A file that does not take everything is no wrong usage and no verdict.
#[test]
fn a_file_that_does_not_take_everything_has_a_code_of_its_own() {
    if skip() {
        return;
    }
    let place = Place::new("foreign-full-file");
    place.script("a.sh", "#!/bin/sh\ntc qdisc add dev eth0 root fq_codel\n");
    place.file("a.toml", SCENARIO);
    let cases: [&[&str]; 2] = [&["graph", "a.sh", "-o", "/dev/full"], &["sim", "a.toml", "-o", "/dev/full"]];
    for words in cases {
        let output =
            Command::new(TIDEGATE).args(words).current_dir(&place.0).output().expect("tidegate runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(i32::from(u8::from(tidegate::exit::CliExit::NotWritten))),
            "{words:?}: {stderr}"
        );
        assert_eq!(stderr.matches("No space left").count(), 1, "{words:?}: {stderr}");
        assert!(stderr.contains("cannot write /dev/full"), "{words:?}: {stderr}");
        // One that cannot be begun is wrong usage.
        let words: Vec<&str> =
            words.iter().map(|word| if *word == "/dev/full" { "/nowhere/at/all" } else { word }).collect();
        let output =
            Command::new(TIDEGATE).args(&words).current_dir(&place.0).output().expect("tidegate runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn files_that_are_written_are_whole_and_go_where_they_are_sent() {
    if skip() {
        return;
    }
    let place = Place::new("foreign-files-out");
    place.script("a.sh", "#!/bin/sh\ntc qdisc add dev eth0 root fq_codel\n");
    let graph = |to: &str| tidegate(&place.0, &["graph", "--format", "dot", "a.sh", "-o", to]);
    let wanted = tidegate(&place.0, &["graph", "--format", "dot", "a.sh"]).stdout;
    assert!(wanted.starts_with(b"digraph"), "{}", String::from_utf8_lossy(&wanted));
    assert!(graph("a.dot").status.success());
    assert_eq!(fs::read(place.0.join("a.dot")).expect("written"), wanted);
    for stdout in ["-", "/dev/stdout", "/proc/self/fd/1"] {
        assert_eq!(graph(stdout).stdout, wanted, "{stdout}");
    }
    assert!(graph("/dev/null").status.success());
    let failed = graph("no/such/dir.dot");
    assert!(
        !failed.status.success()
            && String::from_utf8_lossy(&failed.stderr).contains("cannot write no/such/dir.dot")
    );
    let left: Vec<_> =
        fs::read_dir(&place.0).expect("there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "no temporary file stays: {left:?}");
}

/// Memory that reading a hostile file may take, KiB of address space; the program itself takes some 100 MB of
/// it.
const BOMB_MEMORY: &str = "600000";

#[test]
fn small_files_that_unpack_to_large_ones_are_refused() {
    let place = Place::new("foreign-bomb");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let piece = vec![b' '; 1 << 20];
    (0..80).for_each(|_| packed.write_all(&piece).expect("packed"));
    place.file("spaces.flent.gz", packed.finish().expect("packed"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(format!("[{}0]", "[],".repeat(20_000_000)).as_bytes()).expect("packed");
    place.file("lists.flent.gz", packed.finish().expect("packed"));
    place.file("lists.json", format!("[{}0]", "[],".repeat(20_000_000)));
    for (file, why) in [
        ("spaces.flent.gz", "unpacks to more than 64 MiB"),
        ("lists.flent.gz", "more than 16000000 values"),
        ("lists.json", "more than 16000000 values"),
    ] {
        let line = format!("ulimit -v {BOMB_MEMORY}; exec {TIDEGATE} compare {file} {file}");
        let output = Command::new("sh").args(["-c", &line]).current_dir(&place.0).output().expect("sh runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{file}: {stderr}");
        assert!(stderr.contains(why) && stderr.contains(file), "{file}: {stderr}");
    }
}

#[test]
fn pipes_and_devices_do_not_block_a_command() {
    let place = Place::new("foreign-pipe");
    let fifo = place.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    let cases: [&[&str]; 15] = [
        &["check"],
        &["run"],
        &["graph"],
        &["import"],
        &["try"],
        &["test"],
        &["sim"],
        &["policy", "show"],
        &["policy", "from"],
        &["compare"],
        &["ping", "-r"],
        &["overhead", "--from"],
        &["replay", "--capture"],
        &["apply", "--dry-run"],
        &["explain"],
    ];
    for words in cases {
        for input in ["fifo", "/dev/zero"] {
            let mut words = words.to_vec();
            words.push(input);
            match words[0] {
                "explain" => words.push(PACKET),
                "try" => words.extend(["--up", "10mbit", "--down", "50mbit"]),
                "compare" => words.push(input),
                _ => {}
            }
            let output = tidegate(&place.0, &words);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success(), "{words:?}: {stderr}");
            assert!(
                stderr.contains("named pipe") || stderr.contains("this is a device"),
                "{words:?}: {stderr}"
            );
        }
    }
    // What a shell hands over is read.
    let line = format!("{TIDEGATE} check <(echo 'qdisc add dev eth0 root fq_codel') </dev/null && echo fine");
    let output = Command::new("bash").args(["-c", &line]).current_dir(&place.0).output().expect("bash runs");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("fine\n"), "{output:?}");
}

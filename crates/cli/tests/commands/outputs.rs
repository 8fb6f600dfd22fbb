//! Files of results: none replaces what its command has read, or another result; what cannot be written is
//! refused.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit code and standard error.
fn run(place: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(TIDEGATE).args(words).current_dir(place).output().expect("tidegate runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A script that reads in two files, reads one by redirection and one by its argument.
const SCRIPT: &str = "#!/bin/sh
. ./rates.conf
. \"$(dirname \"$0\")/lib/names.sh\"
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate $RATE
while read -r host; do
    tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst $host flowid 1:10
done < hosts.list
[ -z \"$1\" ] || cat \"$1\" > /dev/null
";

const TEST: &str =
    "policy = 'x.sh'\nup = '1mbit'\ndown = '1mbit'\nexpect = ['upload: rate >= 0.1 link while 1 uploads']\n";
const SCENARIO: &str = include_str!("../../../scenario/tests/data/line.toml");
const LOADS: &str = "[policies.none]\n[loads.one]\ntraffic = [{ tcp = 'a -> server' }]\n";

/// A pcap of one UDP packet over IPv4, as tcpdump writes it.
fn capture() -> Vec<u8> {
    let mut packet = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 8, 0];
    packet.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 168, 1, 2, 8, 8, 8, 8]);
    packet.extend([0, 53, 0, 53, 0, 8, 0, 0]);
    let header: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1];
    let length = u32::try_from(packet.len()).expect("short");
    let numbers = header.into_iter().chain([1_700_000_000, 0, length, length]);
    numbers.flat_map(u32::to_le_bytes).chain(packet).collect()
}

/// The place with all that is read, other names of it included.
fn inputs(name: &str) -> Place {
    let place = Place::new(name);
    fs::create_dir_all(place.0.join("lib")).expect("a directory");
    place.script("x.sh", SCRIPT);
    place.file("rates.conf", "RATE=1mbit\n");
    place.file("lib/names.sh", "NAME=x\n");
    place.file("hosts.list", "10.0.0.1\n");
    place.file("argument", "x\n");
    place.file("t.toml", TEST);
    place.file("s.toml", format!("{SCENARIO}{LOADS}"));
    place.file("c.pcap", capture());
    symlink("../x.sh", place.0.join("lib/link")).expect("a link");
    fs::hard_link(place.0.join("x.sh"), place.0.join("hard.sh")).expect("a link");
    place
}

#[test]
fn no_result_replaces_what_the_command_has_read() {
    if skip() {
        return;
    }
    let place = inputs("outputs-inputs");
    let graph =
        ["x.sh", "./x.sh", "lib/../x.sh", "lib/link", "hard.sh", "rates.conf", "lib/names.sh", "hosts.list"];
    let mut cases: Vec<(Vec<&str>, &str)> =
        graph.map(|to| (vec!["graph", "x.sh", "--format", "dot", "-o", to], to)).to_vec();
    let short = ["--up", "1mbit", "--down", "1mbit", "--duration", "1s", "--load", "idle"];
    cases.push((vec!["graph", "x.sh", "--format", "dot", "-o", "argument", "--", "argument"], "argument"));
    cases.push(([&["try", "x.sh", "-o", "hard.html"], &short[..]].concat(), "hard.html"));
    cases.push((vec!["test", "t.toml", "--junit", "t.toml"], "t.toml"));
    cases.push((vec!["test", "t.toml", "--junit", "x.sh"], "x.sh"));
    fs::hard_link(place.0.join("x.sh"), place.0.join("hard.html")).expect("a link");
    fs::hard_link(place.0.join("s.toml"), place.0.join("hard.json")).expect("a link");
    for (option, to) in [("-o", "hard.json"), ("--html", "s.toml")] {
        cases.push((vec!["sim", "s.toml", "--duration", "1s", option, to], to));
    }
    for option in ["--write", "--html"] {
        for to in ["c.pcap", "x.sh", "hosts.list"] {
            cases.push((vec!["replay", "--capture", "c.pcap", "--policy", "x.sh", option, to], to));
        }
    }
    let content = |to: &str| fs::read(place.0.join(to)).expect("it is there");
    for (words, to) in cases {
        let before = content(to);
        let (code, output) = run(&place.0, &words);
        assert!(code.is_some_and(|code| code != 0), "{words:?}: {output}");
        assert!(output.contains(&format!("cannot write {to}: that file")), "{words:?}: {output}");
        assert!(
            output.contains("is an input of this command; name another for the result"),
            "{words:?}: {output}"
        );
        assert_eq!(content(to), before, "{words:?}");
    }
    // Other files beside them are written, also for the second time.
    for _ in 0..2 {
        assert_eq!(run(&place.0, &["graph", "x.sh", "--format", "dot", "-o", "lib/x.sh"]).0, Some(0));
    }
}

#[test]
fn standard_input_is_an_input_too() {
    let place = Place::new("outputs-stdin");
    let batch = "qdisc add dev eth0 root sfq\n";
    let file = place.file("x.batch", batch);
    let input = fs::File::open(&file).expect("open");
    let words = ["graph", "-", "--format", "dot", "-o", "x.batch"];
    let output = Command::new(TIDEGATE).args(words).current_dir(&place.0).stdin(Stdio::from(input)).output();
    let output = output.expect("tidegate runs");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(file).expect("there"), batch);
}

#[test]
fn two_results_do_not_share_a_file() {
    if skip() {
        return;
    }
    let place = inputs("outputs-twice");
    let (code, output) =
        run(&place.0, &["sim", "s.toml", "--duration", "1s", "-o", "r.json", "-o", "./r.json"]);
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("cannot write ./r.json: it is named twice"), "{output}");
    assert!(!place.0.join("r.json").exists(), "nothing ran");
    assert_eq!(
        run(&place.0, &["sim", "s.toml", "--duration", "1s", "-o", "/dev/null", "--html", "/dev/null"]).0,
        Some(0)
    );
    // Of files of one name in two directories, two copies.
    for dir in ["a", "b"] {
        fs::create_dir_all(place.0.join(dir)).expect("a directory");
        place.file(&format!("{dir}/y.batch"), format!("qdisc add dev eth{dir} root pfifo limit 3\n"));
    }
    let (code, output) = run(&place.0, &["check", "a/y.batch", "b/y.batch", "--fix", "copies"]);
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("--fix would write a/y.batch and b/y.batch to copies/y.batch"), "{output}");
    assert!(!place.0.join("copies").exists(), "nothing is written");
    let (code, output) = run(&place.0, &["check", "a/y.batch", "x.sh", "--fix", "a"]);
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("cannot write a/y.batch: that file"), "{output}");
}

#[test]
fn what_cannot_be_written_is_refused_with_its_remedy() {
    let place = Place::new("outputs-kinds");
    place.file("x.batch", "qdisc add dev eth0 root sfq\n");
    fs::create_dir(place.0.join("dir")).expect("a directory");
    assert!(Command::new("mkfifo").arg(place.0.join("pipe")).status().expect("mkfifo runs").success());
    let graph = |to: &str| run(&place.0, &["graph", "x.batch", "-o", to]);
    for (to, why) in [
        ("dir", "it is a directory; name a file in it"),
        ("dir/", "it is a directory; name a file in it"),
        ("new/", "it is a directory; name a file in it"),
        ("none/x.svg", "there is no directory none; make it first"),
        ("pipe", "refused: it is a named pipe without a reader; start its reader first, or name a file"),
    ] {
        assert_eq!(graph(to), (Some(2), format!("tidegate graph: cannot write {to}: {why}\n")), "{to}");
    }
    for to in ["/dev/null", "/dev/stdout", "-"] {
        assert_eq!(graph(to), (Some(0), String::new()), "{to}");
    }
    // Who reads the pipe gets the result. Opened for both, it waits for no one.
    let mut reader = fs::File::options().read(true).write(true).open(place.0.join("pipe")).expect("open");
    assert_eq!(graph("pipe"), (Some(0), String::new()));
    let mut read = [0; 4];
    reader.read_exact(&mut read).expect("read");
    assert_eq!(&read, b"eth0");
}

/// A directory is refused before anything is simulated, and named once.
#[test]
fn a_directory_is_no_report() {
    let place = Place::new("outputs-directory");
    place.file("policy.tc", "qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 10k latency 50ms\n");
    let words = ["try", "policy.tc", "--up", "2mbit", "--down", "9mbit", "--report", "."];
    let (code, output) = run(&place.0, &words);
    assert_eq!(code, Some(2));
    assert_eq!(output, "tidegate try: cannot write .: it is a directory; name a file in it\n");
}

/// Errors of the command line quote its words; in colour, too, none of their control sequences is printed.
#[test]
fn a_word_that_is_no_option_moves_no_cursor() {
    let place = Place::new("outputs-colour");
    for words in [["sim", "a", "b\u{1b}]0;owned\u{7}\u{1b}[2J"], ["status", "a", "\u{1b}[2Jx"]] {
        let (code, output) = run(&place.0, &[&["--color", "always"], &words[..]].concat());
        assert_eq!(code, Some(2), "{output:?}");
        assert!(!output.contains("\u{1b}]0;") && !output.contains("\u{1b}[2J"), "{output:?}");
        assert!(output.contains("unexpected argument"), "{output:?}");
    }
}

/// Nor does a word begin a line of its own, which could look like tidegate's.
#[test]
fn a_wrong_word_with_a_line_break_stays_in_its_line() {
    let place = Place::new("outputs-lines");
    let rows: [(&[&str], &str); 6] = [
        (&["status", "a", "b\nc"], "error: unexpected argument 'b\\nc' found"),
        (&["record", "x", "-d", "2\nc"], "error: invalid value '2\\nc' for '--duration <TIME>': `2\\nc`"),
        (&["record", "x", "-o", "a\nc.x"], "error: invalid value 'a\\nc.x' for '--output <FILE>'"),
        (&["record", "x", "-d", "-1\nms"], "error: invalid value '-1\\nms' for '-d'"),
        (
            &["record", "x", "-o", "no\nc/x.csv"],
            "cannot write no\\nc/x-up.csv: there is no directory no\\nc;",
        ),
        (&["record", "x\nc.invalid"], "no address is known for `x\\nc.invalid`"),
    ];
    for (words, expected) in rows {
        let (code, output) = run(&place.0, words);
        assert!(code == Some(2) && output.contains(expected), "{words:?}: {code:?} {output:?}");
    }
}

/// A page is sent by mail and opened on telephones. This policy has 111 classes on two devices.
#[test]
fn the_page_of_a_trial_has_at_most_400_kilobytes() {
    let place = Place::new("outputs-size");
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/home.toml");
    let (code, output) = run(&place.0, &["try", policy, "-o", "page.html"]);
    assert_eq!(code, Some(0), "{output}");
    let size = fs::metadata(place.0.join("page.html")).expect("it was written").len();
    assert!((100_000..=400_000).contains(&size), "{size} bytes");
}

#[test]
fn directories_of_results_are_checked_before_the_work() {
    if skip() {
        return;
    }
    let place = inputs("outputs-directories");
    place.file("file", "");
    for option in ["--svg", "--png", "--flent", "--mahimahi"] {
        for directory in ["file", "file/below"] {
            let (code, errors) = run(&place.0, &["sim", "s.toml", option, directory]);
            let expected = "file is a file, and several files are to be written; name a directory";
            // Nothing was simulated: no result is printed, and no seed to repeat it.
            assert!(code == Some(2) && errors.contains(expected), "{option} {directory}: {code:?} {errors}");
        }
    }
}

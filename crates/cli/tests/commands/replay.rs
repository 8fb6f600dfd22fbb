//! Replays recorded runs of a real kernel: identical, or listed by name with what they wait for.
//!
//! `data/traces.tar.gz` holds the public recordings of whole situations; `data/answers.tar.gz` short ones,
//! each of a case that was once wrong here; `data/translated.tar.gz` connections whose
//! addresses and ports were translated; `data/routed.tar.gz` routed conversations behind rules of iptables;
//! `data/redirects.tar.gz` packets led through an ifb, arriving and leaving, and listings of actions;
//! `data/answers-rewrite.tar.gz` packets rewritten by actions, with the frames that left.

use crate::common;

use common::{TIDEGATE, Unpacked};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use tidegate_policy::Kind;

/// What must be the same, byte for byte.
const FILES: [&str; 5] = ["egress.csv", "frames.csv", "stats.txt", "filters.txt", "snap.txt"];

/// Answers of a real kernel, and what they are about.
const ARCHIVES: &[(&str, &str)] = &[
    ("answers.tar.gz", "trees, filters, changes and deletions during a run"),
    ("answers-A.tar.gz", "trees with hfsc and qfq"),
    ("answers-filters.tar.gz", "u32 tables, flower, policers, chains, actions without filters"),
    ("answers-B.tar.gz", "red, choke, sfb, pie, sfq with RED, rate estimators, hysteresis"),
    ("translated.tar.gz", "connections with NAT"),
    ("redirects.tar.gz", "packets redirected through an ifb, listings of actions"),
    (
        "answers-kinds.tar.gz",
        "netem: limits, duplicates, marks, drops below other qdiscs; trees with ets, fq, fq_pie, gred, hhf, \
        skbprio",
    ),
    (
        "answers-fuzz.tar.gz",
        "cases found by the fuzzer: peeked packets, backlogs of ancestors, options of another kind, refused \
        fq, devices that refuse redirected packets, wrong checksums, hop limits",
    ),
    (
        "answers-around.tar.gz",
        "actions that use conntrack, packets redirected to ingress, input devices, samples, resets",
    ),
    ("routed.tar.gz", "routed connections behind iptables rules"),
    (
        "answers-rewrite.tar.gz",
        "actions that rewrite packets: nat, pedit, csum, vlan, skbmod, their options, and the frames that \
        leave, byte by byte",
    ),
    (
        "answers-blocks.tar.gz",
        "filter blocks shared by devices: one bucket for all, changes during a run; counters of hooks \
        without filters; numeric verdicts",
    ),
    (
        "answers-cake.tar.gz",
        "cake: tins, flows, hosts, framing, overflow, ACK filter, NAT, changes during a run",
    ),
    (
        "answers-limits.tar.gz",
        "transmit queues of 0 and 1 packets, resets, copies of a netem beside others, pages of CAKE's flows, \
        under both releases",
    ),
    (
        "answers-redirected.tar.gz",
        "packets redirected or copied to other devices: below a netem, to devices that are down or gone, \
        several at one time, back through one ifb or two; under both releases",
    ),
    (
        "answers-fragments.tar.gz",
        "fragments of IPv6 as flower, flow and the queues of sfq, fq_codel and cake read them, under both \
        releases",
    ),
    (
        "dualpi2.tar.gz",
        "dualpi2 under Linux 7.2 with tc 7.2: the law and its timer, steps, credit, limits, filters, changes \
        during a run, words",
    ),
];

fn count(archive: &str) -> usize {
    Unpacked::new(archive).folders().len()
}

/// What differs between a recording and its replay; empty when nothing does.
fn differences(dir: &Path) -> Vec<String> {
    let out = dir.join("replayed");
    let run =
        Command::new(TIDEGATE).arg("replay").arg(dir).arg("--out").arg(&out).output().expect("tidegate runs");
    let mut found = Vec::new();
    if !run.status.success() {
        found.push(String::from_utf8_lossy(&run.stderr).trim().replace('\n', " / "));
    }
    for name in FILES {
        let (Ok(wanted), ours) = (fs::read_to_string(dir.join(name)), fs::read_to_string(out.join(name)))
        else {
            continue;
        };
        found.extend(first_difference(name, &wanted, &ours.unwrap_or_default()));
    }
    // The recording names the kernel's function that freed the packet; that is for people.
    let (wanted, ours) = (drops(&dir.join("drops.csv")), drops(&out.join("drops.csv")));
    found.extend(first_difference("drops.csv", &wanted, &ours));
    found
}

fn drops(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .skip(1)
        .map(|line| line.rsplit_once(',').map_or(line, |(rest, _)| rest).to_owned() + "\n")
        .collect()
}

fn first_difference(name: &str, wanted: &str, ours: &str) -> Option<String> {
    if wanted == ours {
        return None;
    }
    let mut pairs = wanted.lines().zip(ours.lines()).enumerate();
    Some(match pairs.find(|(_, (a, b))| a != b) {
        Some((n, (a, b))) => format!("{name}:{}: kernel `{a}`, tidegate `{b}`", n + 1),
        None => format!("{name}: kernel {} lines, tidegate {}", wanted.lines().count(), ours.lines().count()),
    })
}

/// Replays every folder of an archive and returns, by name, the differences.
fn replay_all(archive: &str) -> BTreeMap<String, Vec<String>> {
    let unpacked = Unpacked::new(archive);
    let name = |dir: &Path| dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    unpacked.folders().iter().map(|dir| (name(dir), differences(dir))).collect()
}

#[test]
fn recordings_are_identical_or_wait_by_name() {
    let waiting: BTreeMap<&str, &str> = include_str!("../data/waiting.txt")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| line.split_once(": ").expect("`name: what it waits for`"))
        .collect();
    let mut wrong = String::new();
    let results = replay_all("traces.tar.gz");
    for (name, found) in &results {
        match (waiting.get(name.as_str()), found.is_empty()) {
            (None, false) => wrong += &format!("{name}: {}\n", found.join("\n    ")),
            (Some(_), true) => wrong += &format!("{name} is identical now: take it out of waiting.txt\n"),
            _ => {}
        }
    }
    for name in waiting.keys().filter(|name| !results.contains_key(**name)) {
        wrong += &format!("{name} is in waiting.txt and not among the recordings\n");
    }
    assert!(wrong.is_empty(), "{wrong}");
    let (identical, all) = (results.len() - waiting.len(), results.len());
    let verdict = if identical == all { "exact" } else { "differs" };
    println!(
        "fidelity: recordings | public recordings of whole situations: every departure, drop, mark, counter \
        and random draw | {verdict} | {identical} of {all} identical"
    );
    tell_kinds(&waiting);
}

/// A row of the fidelity page for each kind: how many recordings it takes part in, and how many are
/// identical.
fn tell_kinds(waiting: &BTreeMap<&str, &str>) {
    let scripts = scripts_of("traces.tar.gz");
    let kept: Vec<String> =
        ARCHIVES.iter().flat_map(|(archive, _)| scripts_of(archive).into_values()).collect();
    for kind in Kind::ALL.iter().map(|kind| kind.name()) {
        let all: Vec<&str> =
            scripts.iter().filter(|(_, text)| has_kind(text, kind)).map(|(name, _)| name.as_str()).collect();
        let later: Vec<&&str> = all.iter().filter(|name| waiting.contains_key(**name)).collect();
        let questions = kept.iter().filter(|text| has_kind(text, kind)).count();
        let identical = all.len() - later.len();
        let rest = match later.len() {
            0 => String::new(),
            more => format!("; {more} recordings wait for qdiscs, filters or actions that are not supported"),
        };
        println!(
            "fidelity: qdiscs: packets | {kind} | exact | {identical} recordings, {questions} short \
            recordings{rest}"
        );
    }
}

/// The commands of every recording in an archive, by its name.
fn scripts_of(archive: &str) -> BTreeMap<String, String> {
    let unpacked = Unpacked::new(archive);
    let read = |dir: &Path, file| fs::read_to_string(dir.join(file)).unwrap_or_default();
    let name = |dir: &Path| dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let script = |dir: &Path| read(dir, "script.tc") + &read(dir, "schedule.csv");
    unpacked.folders().iter().map(|dir| (name(dir), script(dir))).collect()
}

/// Whether there is a qdisc of this kind. pfifo_fast is every device's, so no command need name it.
fn has_kind(script: &str, kind: &str) -> bool {
    let named = |line: &str| line.contains("qdisc") && line.split_whitespace().any(|word| word == kind);
    script.lines().any(named) || kind == "pfifo_fast" && !script.contains(" root ")
}

#[test]
fn answers_are_kept() {
    let results = ARCHIVES.iter().flat_map(|(archive, _)| replay_all(archive));
    let wrong: String =
        results.filter(|(_, f)| !f.is_empty()).map(|(n, f)| format!("{n}: {}\n", f.join("\n    "))).collect();
    assert!(wrong.is_empty(), "{wrong}");
    for (archive, what) in ARCHIVES {
        println!(
            "fidelity: fixed bugs, kept as recordings | {what} | exact | {} short recordings identical",
            count(archive)
        );
    }
}

/// The same qdiscs under Linux 7.2: the public recordings asked again, and what differs (a file `linux` names
/// the release).
#[test]
fn recordings_of_linux_7_2_are_identical() {
    const ARCHIVE: &str = "linux-7.2.tar.gz";
    let wrong: String = replay_all(ARCHIVE)
        .into_iter()
        .filter(|(_, found)| !found.is_empty())
        .map(|(name, found)| format!("{name}: {}\n", found.join("\n    ")))
        .collect();
    assert!(wrong.is_empty(), "{wrong}");
    println!(
        "fidelity: recordings | the same under Linux 7.2, and what differs there | exact | {} recordings identical",
        count(ARCHIVE)
    );
}

/// The page of what differs has the program's rows.
#[test]
fn differences_of_releases_are_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/linux-versions.md");
    let page: &'static str = std::fs::read_to_string(path).expect("the page").leak();
    let (of_linux, of_tc) = page.split_once("## Releases of tc").expect("two tables");
    let rows = |text: &'static str| -> Vec<&str> {
        text.lines().filter(|line| line.starts_with("| ")).skip(1).collect()
    };
    let kinds = |kinds: &[&str]| if kinds.is_empty() { "all".to_owned() } else { kinds.join(", ") };
    let told = tidegate_packet::LinuxChange::TABLE
        .map(|row| format!("| {} | {} | {} |", kinds(row.kinds), row.before, row.after));
    assert_eq!(rows(of_linux), told);
    let told = tidegate_syntax::TcChange::TABLE
        .map(|row| format!("| {} | {} | {} |", kinds(row.kinds), row.before, row.after));
    assert_eq!(rows(of_tc), told);
}

#[test]
fn bad_recordings_are_refused_with_their_place() {
    let good = [
        ("link", "0 0 1500 1000\n"),
        ("script.tc", "tc qdisc add dev link0 root pfifo\n"),
        (
            "schedule.csv",
            "time_ns,id,size,src,dst,proto,sport,dport,dsfield,mark\n0,1,100,10.0.0.1,10.9.0.1,udp,1,2,0,0\n",
        ),
        ("draws.csv", "time_ns,width,value,where\n"),
    ];
    let cases = [
        ("link", "fast\n", "expected `rate overhead mtu txqueuelen [forward]`"),
        ("schedule.csv", "time_ns,id,size,src,dst,proto\n0,1,100,10.0.0.1,nowhere,udp\n", "schedule.csv:2:"),
        ("schedule.csv", "", "schedule.csv is empty"),
        ("draws.csv", "time_ns,width,value,where\n0,x,1,y\n", "draws.csv:2:"),
        ("linux", "6.6\n", "linux: what Linux 6.6 does is not known exactly: recordings are of 6.1 or 7.2"),
        ("linux", "5.10\n", "linux: Linux from 6.1 to 7.2 is modelled"),
        ("tc", "6.6\n", "tc: words are known of tc 6.1 and 7.2"),
        ("draws.csv", "time_ns,width,value,where\n0,32,1,nobody\n", "1 of 1 recorded draws were not used"),
    ];
    for (n, (name, text, expected)) in cases.iter().enumerate() {
        let dir = std::env::temp_dir().join(format!("tidegate-bad-recording-{}-{n}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        for (file, content) in good.iter().chain([&(*name, *text)]) {
            fs::write(dir.join(file), content).expect("a file");
        }
        let run = Command::new(TIDEGATE).arg("replay").arg(&dir).output().expect("tidegate runs");
        let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
        let _ = fs::remove_dir_all(&dir);
        // That random draws are left over is an answer, and no wrong input.
        let code = if expected.contains("not used") { 1 } else { 2 };
        assert!(stderr.contains(expected) && run.status.code() == Some(code), "{name}: {stderr}");
    }
}

/// The recordings' scripts run as `sh -e` does: commands after one that fails are not carried out, even when
/// the failure is not read. A kernel was asked with this very script.
#[test]
fn a_script_stops_at_its_first_failure() {
    let dir = std::env::temp_dir().join(format!("tidegate-replay-test-{}-stops", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let files = [
        ("link", "0 0 1500 1000\n"),
        (
            "script.tc",
            "tc qdisc add dev link0 root handle 1: pfifo limit 3\ntc qdisc del dev link0 parent 9: \
            2>/dev/null\n\
             tc qdisc replace dev link0 root handle 2: pfifo limit 5\n",
        ),
        (
            "schedule.csv",
            "time_ns,id,size,src,dst,proto,sport,dport,dsfield,mark\n0,1,1514,10.0.0.1,10.9.0.1,udp,1,2,0,0\n",
        ),
        ("draws.csv", "time_ns,width,value,where\n"),
        (
            "stats.txt",
            "qdisc pfifo 1: root refcnt 2 limit 3p\n Sent 1514 bytes 1 pkt (dropped 0, overlimits 0 \
            requeues 0) \n backlog 0b 0p requeues 0\n",
        ),
        ("egress.csv", "time_ns,id,len,dsfield\n0,1,1514,0\n"),
        ("drops.csv", "time_ns,id,len,dsfield,where\n"),
    ];
    for (name, text) in files {
        fs::write(dir.join(name), text).expect("a file");
    }
    let found = differences(&dir);
    let _ = fs::remove_dir_all(&dir);
    assert_eq!(found, Vec::<String>::new());
}

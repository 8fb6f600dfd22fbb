//! `tidegate try`, end to end: the examples, and scripts that are wrong.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tidegate_measure::trial::{TrialDocument, TrialRun};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn run(script: &Path, options: &[&str]) -> Output {
    Command::new(TIDEGATE).arg("try").arg(script).args(options).output().expect("tidegate runs")
}

/// The document of a run with these options.
fn document(script: &Path, options: &[&str]) -> TrialDocument {
    let output = run(script, &[options, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    tidegate_analysis::trial::from_json(&String::from_utf8_lossy(&output.stdout))
        .expect("what try writes can be read")
}

/// The document of a short run, on 4 Mbit/s, of an HTB with the default class 1:10 and what `body` adds.
fn brief(name: &str, body: &str) -> TrialDocument {
    let place = Place::new(name);
    let script =
        place.file("policy.sh", format!("tc qdisc add dev eth0 root handle 1: htb default 10\n{body}"));
    document(&script, &["--up", "4mbit", "--down", "4mbit", "--duration", "2s"])
}

/// `[without, with]` the policy, under a load.
fn pair<'t>(trial: &'t TrialDocument, load: &str) -> [&'t TrialRun; 2] {
    [false, true].map(|policy| {
        let found = trial.runs.iter().find(|run| run.load == load && run.policy == policy);
        found.unwrap_or_else(|| panic!("no run under {load}"))
    })
}

/// The 95th percentile of a probe in ms.
fn p95(run: &TrialRun, probe: &str) -> f64 {
    let probe = run.probes.iter().find(|p| p.id == probe).unwrap_or_else(|| panic!("no probe {probe}"));
    probe.figures(run.window).rtt.percentile(95.0).unwrap_or(u64::MAX) as f64 / 1e6
}

/// kbit/s of payload of all transfers that go up.
fn sent_up(run: &TrialRun) -> f64 {
    run.flows.iter().filter(|flow| flow.up).map(|flow| flow.rate(run.window)).sum::<f64>() / 1000.0
}

/// The classes that only conversations take which were made for them, each at work in the run that is there
/// for that.
fn made_for_classes(trial: &TrialDocument) -> Vec<&str> {
    let run = trial.runs.iter().find(|run| run.witnesses).expect("a run for the classes");
    let made = run.flows.iter().filter(|flow| flow.title.contains("(for class "));
    let made: Vec<&str> = made.filter_map(|flow| flow.class.as_deref()).collect();
    let idle =
        |id: &&str| run.classes.iter().any(|class| class.id == *id && class.sent.iter().sum::<u64>() == 0);
    assert_eq!(made.iter().find(|id| idle(id)), None);
    let judged = trial.runs.iter().filter(|run| !run.witnesses);
    assert!(judged.flat_map(|run| &run.flows).all(|flow| !flow.title.contains("(for class ")));
    made
}

/// Kettlewell's measurement (2004): a bloated 128 kbit/s uplink, and his token bucket: 8.35 times shorter on
/// average, no slower.
#[test]
fn the_modem_example_tells_kettlewells_story() {
    if skip() {
        return;
    }
    let options = ["--up", "128kbit", "--down", "2mbit", "--load", "tcp_1up", "--probes", "ping"];
    let script = example("modem.sh");
    let trial = document(&script, &options);
    let [without, with] = pair(&trial, "tcp_1up");
    let (before, after) = (p95(without, "ping"), p95(with, "ping"));
    let (sent, shaped) = (sent_up(without), sent_up(with));
    assert!((1350.0..1650.0).contains(&before) && after < 200.0, "{before} ms, {after} ms");
    assert!((shaped / sent - 1.0).abs() < 0.05, "{sent} kbit/s, {shaped} kbit/s");
    let again = [&options[..], &["--json"]].concat();
    assert_eq!(
        run(&script, &again).stdout,
        run(&script, &again).stdout,
        "the same seed gives the same bytes"
    );
}

/// The web server's class is held to its 300 kbit/s of frames: 1448 bytes of payload in each 1514.
#[test]
fn the_web_limit_example_limits_the_server() {
    if skip() {
        return;
    }
    let options = ["--up", "2mbit", "--down", "20mbit", "--load", "server", "--probes", "ping"];
    let trial = document(&example("web-limit.sh"), &options);
    let [without, with] = pair(&trial, "server");
    let (limit, goodput) = (300.0 * 1448.0 / 1514.0, sent_up(with));
    assert!((goodput / limit - 1.0).abs() < 0.005, "{goodput} kbit/s of {limit}");
    let (before, after) = (p95(without, "ping"), p95(with, "ping"));
    assert!(before > 1000.0 && after < 50.0, "{before} ms, {after} ms");
}

/// The home gateway: every class carries something, none is out of reach, and people notice nothing of the
/// uploads.
#[test]
fn the_home_gateway_example_keeps_people_out_of_the_queue() {
    if skip() {
        return;
    }
    let trial =
        document(&example("home-gateway.sh"), &["--up", "1600kbit", "--down", "20mbit", "--duration", "30s"]);
    let [without, with] = pair(&trial, "both");
    let idle: Vec<&str> = with
        .classes
        .iter()
        .filter(|c| c.leaf && c.sent.iter().sum::<u64>() == 0)
        .map(|c| c.id.as_str())
        .collect();
    let unreached: Vec<&str> =
        trial.tree.iter().filter(|n| n.unreachable.is_some()).map(|n| n.id.as_str()).collect();
    assert_eq!((with.classes.len(), idle, unreached), (6, vec![], vec![]));
    let taken: Vec<_> =
        with.probes.iter().map(|p| (p.id.as_str(), p.class.as_deref().unwrap_or("none"))).collect();
    let expected = [
        ("ping", "1:10"),
        ("voip-up", "1:10"),
        ("voip-down", "none"),
        ("dns", "1:10"),
        ("ssh", "1:30"),
        ("web", "1:20"),
    ];
    assert_eq!(taken, expected);
    let (before, after) = (p95(without, "voip-up"), p95(with, "voip-up"));
    assert!(before > 1000.0 && after < 60.0, "{before} ms, {after} ms");
    let [without, with] = pair(&trial, "up");
    let (before, after) = (p95(without, "ssh"), p95(with, "ssh"));
    assert!(before > 5000.0 && after < 1000.0, "{before} ms, {after} ms");
}

/// Each host gets its share, however many connections the other one has.
#[test]
fn the_per_host_example_shares_between_hosts() {
    if skip() {
        return;
    }
    let options = ["--up", "6mbit", "--down", "50mbit", "--load", "hosts", "--probes", "ping"];
    let trial = document(&example("per-host.sh"), &options);
    let share = |run: &TrialRun| {
        let other: f64 =
            run.flows.iter().filter(|f| f.title.contains("other")).map(|f| f.rate(run.window)).sum();
        other / 1000.0 / sent_up(run)
    };
    let [without, with] = pair(&trial, "hosts").map(share);
    assert!(without < 0.3 && (0.45..0.55).contains(&with), "{without}, {with}");
}

/// IPv6 takes the same classes as IPv4, by rules of its own.
#[test]
fn the_dual_stack_example_treats_both_alike() {
    if skip() {
        return;
    }
    let options = ["--up", "5mbit", "--down", "40mbit", "--load", "up", "--duration", "10s"];
    let classes = |more: &[&str]| {
        let trial = document(&example("dual-stack.sh"), &[&options[..], more].concat());
        let [_, with] = pair(&trial, "up");
        let probes = with.probes.iter().map(|p| (p.id.clone(), p.class.clone()));
        probes.chain(with.flows.iter().map(|f| (f.title.clone(), f.class.clone()))).collect::<Vec<_>>()
    };
    let mut v4 = classes(&[]);
    // ICMPv6 goes first, ICMP has no such rule.
    assert_eq!(v4[0].1.replace("1:10".into()), Some("1:20".into()));
    assert_eq!(v4, classes(&["--ipv6"]));
}

/// Classes that no packet can reach are named, each with its reason.
#[test]
fn classes_out_of_reach_are_named() {
    if skip() {
        return;
    }
    let trial = brief(
        "out-of-reach",
        "for n in 10 20 30 40; do tc class add dev eth0 parent 1: classid 1:$n htb rate 1mbit; done\n\
         iptables -t mangle -A POSTROUTING -p tcp --dport 8080 -j MARK --set-mark 4\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 handle 2 fw classid 1:20\n\
         tc filter add dev eth0 parent 1: protocol ip prio 2 handle 4 fw classid 1:40\n",
    );
    let unreached: Vec<_> =
        trial.tree.iter().filter_map(|n| Some((n.id.as_str(), n.unreachable.as_deref()?))).collect();
    let expected = [
        ("1:20", "its filter matches mark 2, which no rule that was carried out sets"),
        ("1:30", "no filter, mark or default that was carried out leads to it"),
    ];
    assert_eq!(unreached, expected);
    assert!(made_for_classes(&trial).contains(&"1:40"), "a conversation was made for 1:40");
}

/// Packets come to a class, as `check` shows: only which conversation would is not known.
#[test]
fn a_class_that_packets_come_to_is_not_unknown() {
    if skip() {
        return;
    }
    let trial = brief(
        "unsent",
        "for n in 10 20; do tc class add dev eth0 parent 1: classid 1:$n htb rate 1mbit; done\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match u8 1 0xff at 8 flowid 1:20\n",
    );
    let note = trial.notes.iter().find(|note| note.contains("leaves through 1:20"));
    let note = note.expect("the class is named");
    let end = "packets come there by the rules and filters, but no conversation that was tried here does";
    assert!(note.ends_with(end), "{note}");
}

/// A class is named by the mark that packets have in the end, not by one that a later rule writes over.
#[test]
fn a_class_has_the_name_of_the_mark_that_lasts() {
    if skip() {
        return;
    }
    let place = Place::new("last-mark");
    let policy = |last: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10
for n in 10 20 30; do tc class add dev eth0 parent 1: classid 1:$n htb rate 1mbit; done
tc filter add dev eth0 parent 1: protocol ip prio 1 handle 2 fw classid 1:20
tc filter add dev eth0 parent 1: protocol ip prio 2 handle 3 fw classid 1:30
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 2
iptables -t mangle -A POSTROUTING -o eth0 -p tcp {last}-j MARK --set-mark 3
"
        )
    };
    let sentences_of = |name: &str, last: &str| -> Vec<(String, String)> {
        let script = place.file(name, policy(last));
        let trial = document(&script, &["--up", "4mbit", "--down", "4mbit", "--duration", "5s"]);
        let of = |id: &str| {
            let node = trial.tree.iter().find(|node| node.id == id).expect("it is there");
            (node.title.clone(), node.unreachable.clone().unwrap_or_default())
        };
        vec![of("1:20"), of("1:30")]
    };
    let gone = sentences_of("gone.sh", "");
    assert_eq!(gone[0].1, "its filter matches mark 2, which no packet has any more when it comes to a queue");
    assert!(!gone[0].0.contains("22"), "{gone:?}");
    let kept = sentences_of("kept.sh", "! --dport 22 ");
    assert_eq!(kept[0].1, "");
    assert!(kept[0].0.contains("22"), "{kept:?}");
}

/// A class that only a packet out of the exact set finds: its rules exclude ports instead of naming them.
#[test]
fn a_class_that_rules_describe_by_what_they_leave_out() {
    if skip() {
        return;
    }
    let place = Place::new("left-out");
    let script = place.file(
        "left-out.sh",
        "tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 2mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1mbit ceil 2mbit
tc filter add dev eth0 parent 1: protocol ip pref 1 handle 2 fw flowid 1:20
iptables -t mangle -A FORWARD -o eth0 -p udp -j RETURN
iptables -t mangle -A FORWARD -o eth0 -p tcp -m tcp ! --dport 1:60000 -j MARK --set-mark 2
",
    );
    let options = ["--up", "2mbit", "--down", "10mbit", "--duration", "5s"];
    let trial = document(&script, &options);
    let unreached: Vec<_> =
        trial.tree.iter().filter(|node| node.unreachable.is_some()).map(|node| &node.id).collect();
    assert_eq!(unreached, Vec::<&String>::new());
    assert!(made_for_classes(&trial).contains(&"1:20"), "a conversation was made for 1:20");
}

#[test]
fn the_text_ends_with_a_verdict_and_the_line_that_does_it_again() {
    if skip() {
        return;
    }
    let options = ["--up", "128kbit", "--down", "2mbit", "--duration", "10s", "--seed", "7", "-o", "none"];
    let output = run(&example("modem.sh"), &options);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("Again: tidegate try ") && last.ends_with("--duration 10s -o none --seed 7"),
        "{last}"
    );
    assert!(text.contains("the policy cuts the ping's 95th percentile"), "{text}");
    assert!(output.stderr.is_empty(), "quiet in a pipe: {}", String::from_utf8_lossy(&output.stderr));
}

/// Scripts that first undo what an earlier run left are refused that on a fresh machine; and a script's own
/// options stay its own.
#[test]
fn what_was_not_there_to_delete_stops_nothing() {
    if skip() {
        return;
    }
    let place = Place::new("undoes");
    let script = place.0.join("undoes.sh");
    let text = "tc qdisc del dev eth0 root\niptables -t mangle -X QOS\ninsmod sch_htb\ntc q d dev ifb0 \
    root\nip link set dev ifb0 down\nip link del ifb0\nrmmod ifb\n[ \"$1\" = -r ] && tc qdisc add dev eth0 \
    root tbf rate $2 burst 5k latency 50ms\n";
    std::fs::write(&script, format!("#!/bin/sh\n{text}")).expect("a script");
    let link = ["--up", "1mbit", "--down", "10mbit", "--duration", "5s", "--load", "up", "-o", "none"];
    let output = run(&script, &[&link[..], &["--", "-r", "900kbit"]].concat());
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let last = stdout.lines().last().unwrap_or_default();
    assert!(last.ends_with("--load up -o none --seed 1 -- -r 900kbit"), "{last}");
}

/// A device that the user names and no command is about is a mistake, not a line without policy.
#[test]
fn a_device_that_no_command_is_about_is_refused() {
    if skip() {
        return;
    }
    let place = Place::new("eth9");
    let script = place.script("one.sh", "tc qdisc add dev eth0 root tbf rate 5mbit burst 10k latency 50ms\n");
    let tried = run(&script, &["--up", "6mbit", "--down", "10mbit", "--dev", "eth9"]);
    let checked =
        Command::new(TIDEGATE).args(["check", "--dev", "eth9"]).arg(&script).output().expect("it runs");
    for output in [tried, checked] {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            stderr.contains("--dev eth9: no command of the policy is about that device; they are about eth0"),
            "{stderr}"
        );
        assert!(!output.status.success());
    }
}

/// After a load the machine answers as it would on its shell: counters of rules and classes.
#[test]
fn the_machine_shows_its_counters_after_a_load() {
    if skip() {
        return;
    }
    let shows = ["--show", "iptables -t mangle -L POSTROUTING -v -n", "--show", "tc -s class show dev eth0"];
    let link = ["--up", "1600kbit", "--down", "20mbit", "--duration", "5s", "--load", "up", "-o", "none"];
    let output = run(&example("home-gateway.sh"), &[&link[..], &shows[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let shown = &text[text.find("$ iptables").expect("the first command")..];
    let restored =
        shown.lines().find(|line| line.ends_with("CONNMARK restore")).expect("the rule that restores");
    let packets: u64 = restored.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a counter");
    assert!(packets > 1000, "{restored}");
    let sent =
        shown.lines().skip_while(|line| !line.starts_with("class htb 1:1 ")).nth(1).expect("its counters");
    assert!(sent.starts_with(" Sent 1") && sent.contains(" pkt (dropped "), "{sent}");
}

#[test]
fn wrong_scripts_get_place_reason_and_remedy() {
    if skip() {
        return;
    }
    let root = "tc qdisc add dev eth0 root handle 1: htb default 10\n";
    let cases = [
        (
            "unknown-kind",
            "tc qdisc add dev eth0 root htbb\n".to_owned(),
            "unknown-kind.sh:2: tc:",
            "did you mean htb",
        ),
        (
            "bad-unit",
            format!("{root}tc class add dev eth0 parent 1: classid 1:10 htb rate 5kbt\n"),
            "bad-unit.sh:3: tc: Illegal \"rate\"",
            "500kbit",
        ),
        (
            "nothing-above",
            "tc class add dev eth0 parent 1: classid 1:10 htb rate 5kbit\n".to_owned(),
            "nothing-above.sh:2:",
            "add it first",
        ),
        (
            "no-class",
            format!("{root}tc qdisc add dev eth0 parent 1:77 sfq\n"),
            "no-class.sh:3:",
            "There is no class 1:77",
        ),
        (
            "half-way",
            format!("set -e\n{root}false\ntc qdisc add dev eth0 parent 1:1 sfq\n"),
            "half-way.sh:3:",
            "ended with code 1",
        ),
        ("endless", format!("{root}sleep 1000\n"), "endless.sh:3:", "did not end within"),
        ("not-yet", "tc qdisc add dev eth0 root cbs\n".to_owned(), "not-yet.sh:2: tc:", "cbs is not built"),
        (
            "nothing-at-all",
            "echo hello\n".to_owned(),
            "nothing-at-all.sh",
            "no traffic control command was run",
        ),
    ];
    let dir = Place::new("wrong-scripts");
    let mut wrong = String::new();
    for (name, body, place, advice) in cases {
        let script = dir.file(&format!("{name}.sh"), format!("#!/bin/sh\n{body}"));
        let output = run(&script, &["--up", "1mbit", "--down", "1mbit", "--timeout", "2s", "-o", "none"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(2)
            || !stderr.contains(place)
            || !stderr.contains(advice)
            || stderr.contains("panicked")
        {
            wrong += &format!("{name}: {:?}\n{stderr}\n", output.status.code());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // What is not read needs no rates.
    let page = dir.file("netem.yaml", "apiVersion: apps/v1\nkind: Deployment\n");
    let stderr = run(&page, &["-o", "none"]).stderr;
    assert!(String::from_utf8_lossy(&stderr).contains("is YAML"), "{}", String::from_utf8_lossy(&stderr));
}

/// tcset's output: IPv6 goes past the limit of 1 Mbit/s, and nothing that `try` sends to show it is counted
/// as the uploads'.
#[test]
fn extra_traffic_for_a_class_is_not_reported_as_uploads() {
    if skip() {
        return;
    }
    let place = Place::new("tcset");
    let script = place.file(
        "tcset.sh",
        "tc qdisc add dev eth0 root handle 1a1a: htb default 1
tc class add dev eth0 parent 1a1a: classid 1a1a:1 htb rate 32000000kbit
tc class add dev eth0 parent 1a1a: classid 1a1a:2 htb rate 1000Kbit ceil 1000Kbit burst 12.5KB cburst 12.5KB
tc qdisc add dev eth0 parent 1a1a:2 handle 2a2a: netem delay 1ms
tc filter add dev eth0 protocol ip parent 1a1a: prio 5 u32 match ip dst 0.0.0.0/0 match ip src 0.0.0.0/0 \
flowid 1a1a:2
",
    );
    let trial = document(&script, &["--up", "10mbit", "--down", "50mbit", "--duration", "10s"]);
    assert_eq!(made_for_classes(&trial), ["1a1a:1"]);
    let [_, with] = pair(&trial, "up");
    assert!((850.0..1000.0).contains(&sent_up(with)), "{} kbit/s", sent_up(with));
    assert!(!trial.verdict.iter().any(|output| output.contains("modem")), "{:?}", trial.verdict);
}

/// Shorter than a second there are hardly any replies, and tc's bare numbers are microseconds.
#[test]
fn a_duration_in_which_nothing_can_be_measured_is_refused() {
    for (duration, why) in [("5", "5ms (milliseconds) or 5s (seconds)"), ("5us", "shorter than a second")] {
        let output = run(&example("modem.sh"), &["--up", "1mbit", "--down", "2mbit", "--duration", duration]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(why));
    }
}

//! `--linux`: the release whose behaviour is shown.

use crate::common::{Place, TIDEGATE};
use std::path::Path;
use std::process::Command;

/// A command's exit code, its output and what it says beside it.
fn of(args: &[&str], policy: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(TIDEGATE).args(args).arg(policy).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A batch, which needs no sandbox.
fn batch(place: &Place, name: &str, line: &str) -> std::path::PathBuf {
    place.file(name, format!("{line}\n"))
}

#[test]
fn a_check_says_what_changes_between_two_releases() {
    let place = Place::new("kernel-check");
    let shaped = batch(&place, "cake.batch", "qdisc add dev eth0 root cake bandwidth 20mbit");
    let plain = batch(&place, "pfifo.batch", "qdisc add dev eth0 root pfifo limit 100");
    let (code, told, said) = of(&["check", "--linux", "6.1..7.2"], &shaped);
    assert_eq!(code, Some(0), "{said}");
    assert!(told.contains("cake differs between Linux 6.1 and 7.2 in 4 ways"), "{told}");
    assert!(told.contains("7.2: those of 2, 3 and 6 are exact"), "{told}");
    let (_, told, said) = of(&["check", "--linux", "6.1..7.2"], &plain);
    assert!(!told.contains("differs between"), "{told}");
    assert!(said.contains("nothing concerns what these qdiscs do with packets"), "{said}");
    // In which release between the two each of it changed is not known.
    for linux in ["6.12..7.2", "6.1..6.12", "6.6..6.12"] {
        let (_, told, _) = of(&["check", "--linux", linux], &shaped);
        let (from, until) = linux.split_once("..").expect("two");
        assert!(
            told.contains(&format!("cake may differ between Linux {from} and {until} in 4 ways")),
            "{told}"
        );
        assert!(
            told.contains("in which release between Linux 6.1 and 7.2 is not known; 6.1: BLUE"),
            "{told}"
        );
    }
    let (_, told, said) = of(&["check"], &shaped);
    assert!(!told.contains("differs between") && !said.contains("concerns"), "{told}{said}");
}

/// A release between the recorded ones is shown as the older, which is said where it may be wrong.
#[test]
fn what_is_not_known_of_a_release_is_said() {
    let place = Place::new("kernel-between");
    let shaped = batch(&place, "cake.batch", "qdisc add dev eth0 root cake bandwidth 20mbit");
    let plain = batch(&place, "pfifo.batch", "qdisc add dev eth0 root pfifo limit 100");
    let caveat = "cake: of what changed between Linux 6.1 and 7.2 it is not known whether 6.12 has it";
    for command in ["run", "check", "graph"] {
        let (_, _, said) = of(&[command, "--linux", "6.12"], &shaped);
        assert!(said.contains(caveat), "{command}: {said}");
        for (linux, policy) in [("6.12", &plain), ("6.1", &shaped), ("7.2", &shaped)] {
            let (_, _, said) = of(&[command, "--linux", linux], policy);
            assert!(!said.contains("not known whether"), "{command} {linux}: {said}");
        }
    }
    // What a release does not have is shown as that of a later one.
    let coupled = batch(&place, "dualpi2.batch", "qdisc add dev eth0 root dualpi2");
    for (linux, told) in [("6.1", true), ("6.12", true), ("6.17", false), ("7.2", false)] {
        let (_, _, said) = of(&["run", "--linux", linux], &coupled);
        assert_eq!(
            said.contains(&format!("dualpi2: Linux {linux} has none (it came with 6.17)")),
            told,
            "{said}"
        );
    }
    let fq = batch(&place, "fq.batch", "qdisc add dev eth0 root fq maxrate 1mbit");
    let (_, told, _) = of(&["check", "--linux", "6.1..7.2"], &fq);
    assert!(told.contains("fq differs between Linux 6.1 and 7.2 in 2 ways"), "{told}");
    // Bands are words of the newer kernel's.
    let bands = "qdisc add dev eth0 root fq weights 20000 20000 20000 bands 3 priomap 0 0 0 0 0 0 0 0 1 1 1 1 2 2 2 2";
    let bands = batch(&place, "bands.batch", bands);
    for (linux, is_read) in [("6.1", false), ("6.12", false), ("7.2", true)] {
        let (_, _, said) = of(&["run", "--linux", linux], &bands);
        assert_eq!(!said.contains("What is \"weights\"?"), is_read, "{linux}: {said}");
    }
    let args = ["try", "--json", "-d", "5s", "--load", "up", "--up", "10mbit", "--down", "10mbit"];
    let (_, document, said) = of(&[&args[..], &["--linux", "6.12"]].concat(), &shaped);
    assert!(document.contains(caveat) && document.contains("--linux 6.12"), "{said}{document}");
}

/// Draws of a netem come from elsewhere in 7.2, so the same seed loses other packets.
#[test]
fn a_trial_follows_the_release() {
    let place = Place::new("kernel-try");
    let lossy = batch(&place, "loss.batch", "qdisc add dev eth0 root netem loss 2% limit 1000");
    let args = ["try", "--json", "-d", "5s", "--load", "up", "--up", "10mbit", "--down", "10mbit"];
    let runs = ["6.1", "6.12", "7.2"].map(|linux| {
        let (_, document, said) = of(&[&args[..], &["--linux", linux]].concat(), &lossy);
        let document: serde_json::Value = serde_json::from_str(&document).expect(&said);
        document["runs"].clone()
    });
    assert!(!runs[0].is_null() && runs[0] == runs[1], "6.12 is shown as 6.1");
    assert_ne!(runs[0], runs[2]);
}

/// Linux 6.1 was asked: of a class's big quantum nothing reaches tc; Linux 7.2: it does.
#[test]
fn warnings_of_htb_reach_tc_where_the_release_says_them() {
    let place = Place::new("kernel-warnings");
    let lines =
        "qdisc add dev eth0 root handle 1: htb\nclass add dev eth0 parent 1: classid 1:1 htb rate 20mbit";
    let policy = batch(&place, "big.batch", lines);
    for (linux, told) in [("6.1", false), ("7.2", true)] {
        let (_, _, said) = of(&["run", "--linux", linux], &policy);
        assert_eq!(said.contains("Warning: sch_htb: quantum of class 10001 is big"), told, "{linux}: {said}");
        assert_eq!(said.contains("kernel: HTB: quantum of class 10001 is big"), !told, "{linux}: {said}");
    }
}

#[test]
fn a_scenario_names_the_release_of_a_machine() {
    let place = Place::new("kernel-scenario");
    let scenario = |linux: &str| {
        let text = format!(
            "duration = \"5s\"\n[links.lan]\nbetween = [\"a\", \"gw:eth0\"]\nrate = \"10mbit\"\n[machines.gw]\n\
             linux = \"{linux}\"\n"
        );
        of(&["sim"], &place.file("network.toml", text)).2
    };
    let said = scenario("5.10");
    assert!(said.contains("Linux from 6.1 to 7.2 is modelled"), "{said}");
    assert!(!scenario("7.2").contains("is modelled"));
}

#[test]
fn other_releases_are_refused() {
    let place = Place::new("kernel-refused");
    let plain = batch(&place, "pfifo.batch", "qdisc add dev eth0 root pfifo limit 100");
    for linux in ["5.10", "7.3", "new", ""] {
        let (code, told, said) = of(&["run", "--linux", linux], &plain);
        assert_eq!((code, told.as_str()), (Some(2), ""), "{linux}: {said}");
        assert!(said.contains("Linux from 6.1 to 7.2 is modelled"), "{said}");
    }
    for (linux, why) in [("7.2..6.1", "the earlier first"), ("6.1..6.6..7.2", "two releases at most")] {
        let (code, _, said) = of(&["check", "--linux", linux], &plain);
        assert!(code == Some(2) && said.contains(why), "{said}");
    }
}

/// tc 6.1 counts a burst in whole microseconds, tc 7.2 in ticks of 64 ns.
#[test]
fn the_release_of_tc_decides_what_a_burst_is() {
    let place = Place::new("kernel-tc");
    let policy =
        batch(&place, "tbf.batch", "qdisc add dev eth0 root tbf rate 333mbit burst 5000 latency 10ms");
    let (code, told, said) = of(&["check", "--tc", "6.1..7.2"], &policy);
    assert_eq!(code, Some(0), "{said}");
    assert!(told.contains("a bucket of tbf holds another time by tc 7.2 than by tc 6.1"), "{told}");
    assert!(told.contains("120 µs by tc 6.1, 120.064 µs by tc 7.2"), "{told}");
    let (_, told, _) = of(&["check", "--tc", "7.2"], &policy);
    assert!(!told.contains("another time"), "{told}");
    let plain = batch(&place, "fifo.batch", "qdisc add dev eth0 root pfifo limit 100");
    assert!(!of(&["check", "--tc", "6.1..7.2"], &plain).1.contains("another time"));
    let (code, _, said) = of(&["run", "--tc", "6.12"], &plain);
    assert!(code == Some(2) && said.contains("words are known of tc 6.1 and 7.2"), "{said}");
    let show = ["try", "-d", "5s", "--load", "up", "--up", "10mbit", "--down", "10mbit", "-o", "none"];
    let listed =
        |tc: &str| of(&[&show[..], &["--show", "tc qdisc show dev eth0", "--tc", tc]].concat(), &policy).1;
    let (older, newer) = (listed("6.1"), listed("7.2"));
    assert!(older.contains("burst 4995b") && !newer.contains("burst 4995b"), "{older}{newer}");
    assert!(newer.contains("--tc 7.2") || !newer.contains("Again:"), "{newer}");
}

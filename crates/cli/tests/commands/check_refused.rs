//! `tidegate check` of commands that are refused: what is said of them, and of what fails with them.

use super::check::{of_script, table};
use crate::common::skip;
use serde_json::Value;

/// Does the reason of a finding end so?
fn ends_with(finding: &Value, end: &str) {
    let because = finding["because"].as_str().expect("a reason");
    assert!(because.ends_with(end), "{because}");
}

/// Where a script ends, what it lacks and in which turn of a loop is said with the command that it is about.
#[test]
fn a_refusal_says_where_the_script_ends_and_what_to_do() {
    if skip() {
        return;
    }
    let of = |name: &str, lines: &str| -> String {
        let findings = of_script(name, lines);
        let refused = findings.iter().filter(|one| one["rule"] == "C1");
        let part = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        refused
            .map(|one| {
                format!(
                    "{} {} | {} | {}\n",
                    one["line"],
                    part(one, "what"),
                    part(one, "because"),
                    part(&one["fix"], "what")
                )
            })
            .collect()
    };
    let root = "tc qdisc add dev eth0 root handle 1: htb\n";
    let bad = "tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbitt\n";
    let good = "tc class add dev eth0 parent 1: classid 1:2 htb rate 1mbit\n";
    let ends = of("ends", &["set -e\n", root, bad, good].concat());
    assert!(ends.contains("; the script ends there, with code 1: what its other lines would do"), "{ends}");
    let goes_on = of("goes-on", &[root, bad, good].concat());
    assert!(goes_on.contains("1mbitt") || goes_on.contains("Illegal"), "{goes_on}");
    assert!(!goes_on.contains("the script ends there"), "{goes_on}");
    // A missing tool is reported in a script that fails, too.
    let without = of("without", &["nosuchtool1\n", "set -e\n", root, bad, good].concat());
    assert!(without.contains("nosuchtool1") && without.contains("the script ends there"), "{without}");
    let unnamed = of("unnamed", &[root, good, "tc class del dev eth0 parent 1:\n"].concat());
    assert!(unnamed.contains("name the class that it deletes: `classid 1:10`"), "{unnamed}");
    // In a loop the line that makes it stands above already.
    let looped = of(
        "looped",
        &format!(
            "{root}for i in 5 6; do\n{}\ntc qdisc add dev eth0 parent 1:$((i + 1)) sfq\ndone\n",
            good.trim()
        )
        .replace("1:2", "1:$i"),
    );
    assert!(looped.contains("made only after it, when line 4 runs again: make it before"), "{looped}");
}

#[test]
fn consequences_of_a_refusal_are_reported_with_it() {
    if skip() {
        return;
    }
    let tree = "tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 5mbit
tc qdisc add dev eth0 parent 1:10 fq_codel
tc qdisc add dev eth0 parent 1:20 fq_codel
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10
";
    let root = "tc qdisc add dev eth0 root handle 1: htb default 20\n";
    let refused = of_script("cascade", &(root.replace("htb", "htbb") + tree));
    assert_eq!(table(&refused), "2 error C1 htbb\n");
    ends_with(
        &refused[0],
        "6 other commands name the same object, and fail too (line 3, line 4, line 5 and 3 more)",
    );
    // One class of several: what names it is no mistake of its own, and the rest is looked into.
    let bad = tree.replace("1:10 htb rate 5mbit", "1:10 htb rate 5mbitt");
    let one = of_script("cascade-class", &(root.to_owned() + &bad));
    let output = table(&one);
    assert_eq!(output, "4 error C1 5mbitt\n8 note R7 dport\n");
    // The whole script is duplicated; a line's own error is reported besides.
    let twice = of_script(
        "cascade-twice",
        &[root, tree, root, tree, "tc class add dev eth1 parent 1: classid 1:1 drr x\n"].concat(),
    );
    let output = table(&twice);
    let refusals: Vec<&str> = output.lines().filter(|line| line.contains("C1")).collect();
    assert_eq!(refusals.len(), 2, "{output}");
    // Of a line that runs for several devices all that fails with it is counted.
    let loops = format!("for d in eth0 eth1 eth2; do\n{}{tree}done\n", root.replace("htb", "htbb"));
    let loops = of_script("cascade-loop", &loops.replace("dev eth0", "dev $d"));
    assert_eq!(table(&loops), "3 error C1 htbb\n");
    ends_with(
        &loops[0],
        "18 other commands name the same object, and fail too (line 4, line 5, line 6 and 3 more)",
    );
    // What tidegate lacks is said once.
    let owner = "iptables -t mangle -A OUTPUT -m owner --uid-owner 0 -j MARK --set-mark 1\n";
    let lacking = of_script("cascade-owner", &[root, tree, owner, "tc qdisc show\n", owner].concat());
    let of_owner: Vec<_> = lacking.iter().filter(|one| one["rule"] == "C1").collect();
    assert_eq!(of_owner.len(), 1, "{}", table(&lacking));
    ends_with(of_owner[0], "1 other command needs it, too (line 11)");
    // No device of the name: one finding, however many commands are about it.
    let unset = tree.replace("dev eth0", "dev $UNSET");
    let unset = of_script("cascade-unset", &unset);
    assert_eq!(unset.iter().filter(|one| one["rule"] == "C1").count(), 1, "{}", table(&unset));
}

/// It is not known where a refused filter would have led: no class is reported as unreachable.
#[test]
fn a_filter_that_is_refused_may_have_led_anywhere() {
    if skip() {
        return;
    }
    let policy = |name: &str, filter: &str| -> bool {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit
tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit
{filter}
"
        );
        of_script(&format!("idle-{name}"), &text).iter().any(|one| one["rule"] == "R23")
    };
    let bpf = "tc filter add dev eth0 parent 1: bpf da obj nothere.o sec cls";
    assert!(policy("none", ""));
    assert!(!policy("bpf", bpf));
    assert!(!policy("bpf-quiet", &format!("{bpf} 2>/dev/null")));
}

/// A deletion that names another kind or handle than the qdisc has leaves it: a mistake. Of a device without
/// any, Linux says the same, and it is a clean-up.
#[test]
fn a_deletion_of_another_kind_is_no_clean_up() {
    if skip() {
        return;
    }
    let of = |name: &str, lines: &str| table(&of_script(name, lines));
    assert_eq!(of("fresh", "tc qdisc del dev eth0 root htb\ntc qdisc add dev eth0 root fq_codel\n"), "");
    let root = "tc qdisc add dev eth0 root handle 1: prio\n";
    let refused = |lines: &str, name: &str| {
        let findings = of_script(name, &[root, lines].concat());
        let refused = findings.iter().find(|finding| finding["rule"] == "C1").cloned();
        refused.unwrap_or_else(|| panic!("{lines}"))
    };
    for (name, deletion, message) in [
        ("other-kind", "tc qdisc del dev eth0 root htb\n", "Invalid qdisc name"),
        ("other-handle", "tc qdisc del dev eth0 root handle 2:\n", "Invalid handle"),
    ] {
        let finding = refused(&[deletion, "tc qdisc add dev eth0 root handle 1: fq_codel\n"].concat(), name);
        assert_eq!(finding["what"], format!("the kernel refuses this: {message}"));
        assert_eq!(finding["level"], "error");
        ends_with(&finding, "1 other command would create it again, and fail too (line 4)");
        let fix = finding["fix"]["what"].as_str().expect("a remedy");
        assert!(fix.starts_with("What is there is prio 1: on eth0"), "{fix}");
    }
}

/// A misspelt object was to make what the commands after it name.
#[test]
fn a_misspelt_object_is_the_cause_of_what_fails_with_it() {
    if skip() {
        return;
    }
    let findings = of_script(
        "misspelt",
        "for i in 1 2; do\ntc qdsic add dev eth$i root handle 1: htb default 10\n\
         tc class add dev eth$i parent 1: classid 1:1 htb rate 1mbit\n\
         tc class change dev eth$i parent 1: classid 1:1 htb rate 2mbit\ndone\n",
    );
    assert_eq!(findings.len(), 1, "{}", table(&findings));
    assert_eq!(findings[0]["fix"]["what"], "Did you mean qdisc?");
}

/// A missing tool is told once, with how many lines call it.
#[test]
fn a_missing_tool_is_told_once() {
    if skip() {
        return;
    }
    let findings = of_script("tools", "nosuch a\nnosuch b\nnosuch c\ntc qdisc add dev eth0 root fq_codel\n");
    let missing: Vec<&Value> = findings.iter().filter(|one| one["rule"] == "C1").collect();
    assert_eq!(missing.len(), 1, "{}", table(&findings));
    let what = missing[0]["what"].as_str().expect("a sentence");
    assert!(what.starts_with("nosuch: ") && what.ends_with(" (2 other lines too)"), "{what}");
}

/// Of a class whose child was refused nothing is said as of one that keeps packets itself.
#[test]
fn a_class_whose_child_is_refused_is_no_leaf() {
    if skip() {
        return;
    }
    let findings = of_script(
        "childless",
        "tc qdisc add dev eth0 root handle 1: hfsc default 30\n\
         tc class add dev eth0 parent 1: classid 1:1 hfsc sc rate 10mbit ul rate 10mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:30 hfsc ls rate 6m\n",
    );
    assert!(findings.iter().all(|one| one["rule"] == "C1"), "{}", table(&findings));
    // Chains of two tables, and of two names, are different objects.
    let findings = of_script(
        "chains",
        "tc qdisc add dev eth0 root fq_codel\niptables -t mangle -A POSTROUTNG -j ACCEPT\n\
         iptables -A POSTROUTNG -j ACCEPT\niptables -t mangle -A POSTROUTNG -j RETURN\n",
    );
    let refused: Vec<&Value> = findings.iter().filter(|one| one["rule"] == "C1").collect();
    assert_eq!(refused.len(), 2, "{}", table(&findings));
    ends_with(refused[0], "1 other command names the same object, and fails too (line 5)");
}

/// Where a class is refused because its qdisc is of another kind, that is the reason.
#[test]
fn a_class_of_another_kind_is_told_which_qdisc_is_there() {
    if skip() {
        return;
    }
    for (root, expected) in [
        ("netem delay 1ms", "1: on eth0 is netem, which has no classes of htb."),
        ("pfifo", "1: on eth0 is pfifo, which has no classes of htb."),
    ] {
        let findings = of_script(
            "kinds",
            &format!(
                "tc qdisc add dev eth0 root handle 1: {root}\n\
                 tc class add dev eth0 parent 1: classid 1:7 htb rate 1mbit\n"
            ),
        );
        let refused = findings.iter().find(|one| one["rule"] == "C1").expect("is refused");
        assert_eq!(refused["fix"]["what"], expected);
    }
}

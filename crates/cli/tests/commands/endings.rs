//! How scripts end, and what they wait for, in the words of `check` and `run`.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::process::Command;

/// The code, standard output and standard error of a command on a script.
fn said(test: &str, (command, text): (&str, &str), args: &[&str]) -> (Option<i32>, String, String) {
    let place = Place::new(&format!("endings-{test}"));
    let script = place.script("policy.sh", format!("#!/bin/bash\n{text}"));
    let output = Command::new(TIDEGATE).arg(command).arg(&script).arg("--").args(args).output();
    let output = output.expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A script that only cleans up says so, with what it may wait for; that nothing is there to delete is no
/// error.
#[test]
fn a_script_that_only_deletes_says_so() {
    if skip() {
        return;
    }
    const ONLY: &str = "what was run only deletes and lists, and adds nothing";
    let (code, found, notes) = said("deletes", ("check", "tc qdisc del dev eth0 root\n"), &[]);
    assert_eq!((code, found.as_str()), (Some(0), "nothing found in 1 command\n"), "{notes}");
    assert!(notes.contains(ONLY) && !notes.contains("give it"), "{notes}");
    let asks = "tc qdisc del dev eth0 root 2>/dev/null\nif [ \"$1\" != start ]; then exit; fi\n\
                tc qdisc add dev eth0 root fq_codel\n";
    let (_, _, notes) = said("deletes", ("check", asks), &[]);
    assert!(notes.contains("it compares its first argument with `start`: give it one after `--`"), "{notes}");
    let (_, _, notes) = said("deletes", ("check", asks), &["start"]);
    assert!(!notes.contains(ONLY), "{notes}");
    // One that was given is not asked for again.
    let (_, _, notes) = said("deletes", ("check", asks), &["stop"]);
    assert!(notes.contains(ONLY) && !notes.contains("give it one"), "{notes}");
}

/// What a script that came to no tc waits for: arguments, an answer.
#[test]
fn what_a_script_waits_for_is_told() {
    if skip() {
        return;
    }
    let counts = "if [ $# -eq 0 ]; then echo no; exit; fi\ntc qdisc add dev eth0 root fq_codel\n";
    let (code, _, notes) = said("waits", ("check", counts), &[]);
    assert_eq!(code, Some(2), "{notes}");
    assert!(notes.contains("it looks at how many arguments it was given"), "{notes}");
    let asks = "read answer\ncase $answer in A) tc qdisc add dev eth0 root fq_codel ;; esac\n";
    let (_, _, notes) = said("waits", ("check", asks), &[]);
    assert!(notes.contains("line 2 asks a question (`read answer`)"), "{notes}");
    // Where it has made something, the question is a caveat.
    let goes_on = "read answer\ntc qdisc add dev eth0 root fq_codel\n";
    for command in ["check", "run"] {
        let (code, _, notes) = said("waits", (command, goes_on), &[]);
        assert!(code == Some(0) && notes.matches("here the answer is empty").count() == 1, "{notes}");
    }
    // With an answer it is none.
    let place = Place::new("endings-answer");
    let asks = "#!/bin/bash\nread -p 'rate? ' R\nread D\n\
                tc qdisc add dev $D root tbf rate ${R}mbit burst 10k limit 9k\n";
    let script = place.script("policy.sh", asks);
    let answers = ["--answer", "5", "--answer=eth7"];
    let output =
        Command::new(TIDEGATE).arg("run").args(answers).args(["--print", "tc"]).arg(&script).output();
    let output = output.expect("it runs");
    let (commands, notes) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(commands.contains("tc qdisc add dev eth7 root tbf rate 5mbit"), "{commands}{notes}");
    assert!(!notes.contains("question"), "{notes}");
    // What fails may fail for want of the answer; programs are told as people are.
    let fails = "read dev\ntc qdisc add dev $dev root fq_codel\n";
    let (code, _, notes) = said("waits", ("check", fails), &[]);
    assert!(code == Some(1) && notes.contains(":2: asks a question (`read dev`)"), "{notes}");
    let place = Place::new("endings-json");
    let script = place.script("policy.sh", format!("#!/bin/bash\n{fails}"));
    let output = Command::new(TIDEGATE).args(["check", "--json"]).arg(&script).output().expect("it runs");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    let caveat = document["caveats"][0].as_str().expect("a caveat");
    assert!(caveat.contains("asks a question (`read dev`)"), "{caveat}");
}

/// What a line cannot do without is asked for: an argument, or a variable.
#[test]
fn what_a_line_demands_is_told() {
    if skip() {
        return;
    }
    for (text, remedy) in [
        ("tc qdisc add dev ${1:?no device} root fq\n", "behind `--`: FILE -- ARGS"),
        ("set -u\ntc qdisc add dev $1 root fq\n", "behind `--`: FILE -- ARGS"),
        ("tc qdisc add dev ${LAN?} root fq\n", "set LAN in the environment"),
        ("set -u\ntc qdisc add dev ${LAN} root fq\n", "set LAN in the environment"),
        ("tc qdisc add dev eth0 root fq; ${}\n", "let the first line name bash"),
    ] {
        let (code, _, notes) = said("demands", ("run", text), &[]);
        assert!(code != Some(0) && notes.contains(remedy), "{text}: {notes}");
    }
}

/// A question that is answered no is no failure, and what `eval` runs is in its line.
#[test]
fn a_question_that_is_answered_no_is_no_error() {
    if skip() {
        return;
    }
    let asks = "iptables -t nat -C POSTROUTING -j MASQUERADE || iptables -t nat -A POSTROUTING -j MASQUERADE\n\
                ip link show ifb5 || ip link add ifb5 type ifb\nif ! nft list table inet q; then\n\
                nft add table inet q\nfi\ntc qdisc add dev ifb5 root fq_codel\n";
    let (code, found, notes) = said("asks", ("check", asks), &[]);
    assert_eq!((code, found.as_str()), (Some(0), "nothing found in 7 commands\n"), "{notes}");
    let runs = "cmd=\"tc qdisc add dev eth0 root handle 1: htb\"\necho \"$cmd\"\neval $cmd\n";
    let (_, found, notes) = said("asks", ("check", runs), &[]);
    assert!(found.contains("policy.sh:4: warning: htb 1: has no class"), "{found}{notes}");
}

/// A script that is written by another names its devices there.
#[test]
fn a_script_that_is_written_by_another_has_its_devices() {
    if skip() {
        return;
    }
    let text = "cat >q <<'EOF'\nDEV=\"br7\"\ntc qdisc add dev $DEV root fq_codel\nEOF\nsh ./q\n\
                cat <<EOF\nUsage: x dev eth9\nEOF\n";
    let (code, _, notes) = said("written", ("run", text), &[]);
    assert!(code == Some(0) && notes.contains("br7: fq_codel") && !notes.contains("eth9"), "{notes}");
}

/// A missing program is not why a script ended with the code of a later command.
#[test]
fn the_code_of_a_script_is_that_of_its_last_command() {
    if skip() {
        return;
    }
    let text = "no-such-program\ntc qdisc add dev eth0 root tbf rate foo\n";
    let (_, _, notes) = said("code", ("run", text), &[]);
    assert!(notes.contains("policy.sh:3: sh: the script ended with code 1, after `tc"), "{notes}");
    assert!(!notes.contains("code 1 (no-such-program"), "{notes}");
}

/// The devices of a machine are not words of the script.
#[test]
fn devices_are_those_that_the_script_names() {
    if skip() {
        return;
    }
    for (text, args) in [
        (
            "for dev in $(ls /sys/class/net | grep -v lo); do tc qdisc add dev $dev root fq_codel; done\n",
            &[][..],
        ),
        (
            "f() { tc qdisc add dev $1 root fq_codel; }\nf $(ip route show default | awk '{print $5}')\n",
            &["start"],
        ),
    ] {
        let (_, _, notes) = said("devices", ("run", text), args);
        assert!(notes.contains("eth0: fq_codel 8001: at the root"), "{text}: {notes}");
    }
}

/// A deletion that ends a script before it comes to its other commands is an error.
#[test]
fn a_clean_up_that_ends_a_script_early_is_an_error() {
    if skip() {
        return;
    }
    let text = "set -e\ntc qdisc del dev eth0 root\ntc qdisc add dev eth0 root cake bandwidth 5mbit\n";
    let (code, found, notes) = said("early", ("check", text), &[]);
    assert_eq!(code, Some(1), "{found}{notes}");
    assert!(found.contains("policy.sh:3") && found.contains("the script ends with code 2"), "{found}");
    assert!(!notes.contains("only deletes"), "{notes}");
}

/// Line breaks in words stay in their line, and no device has them in its name.
#[test]
fn line_breaks_in_words_forge_no_line() {
    if skip() {
        return;
    }
    let text = "tc qdisc add dev eth0 root handle 1: htb default 2\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                tc class add dev eth0 parent 1: classid 1:2 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1: handle 7 fw flowid 1:1\n\
                iptables -t mangle -A POSTROUTING -o eth0 -m comment --comment $'a\\nforged' -j MARK --set-mark 7\n";
    let (_, drawn, _) = said("forged", ("graph", text), &[]);
    assert!(drawn.contains("a\\nforged") && !drawn.contains("\nforged"), "{drawn}");
    let (_, _, notes) = said("named", ("run", "tc qdisc add dev $'e\\nth' root fq_codel\nexit 3\n"), &[]);
    assert!(notes.contains("Cannot find device") && !notes.contains("0 refused"), "{notes}");
}

/// Without its argument `eth$1` is another device, which nothing refuses: it is said, where the word is one
/// of tc's or a variable's.
#[test]
fn a_word_that_lacks_an_argument_is_said() {
    if skip() {
        return;
    }
    let is_told = |text: &str, args: &[&str]| {
        let (_, _, stderr) = said("joined", ("run", text), args);
        stderr.contains("uses $1 and was given no arguments")
    };
    let by_variable = "DEV=eth\"$1\"\ntc qdisc add dev $DEV root cake bandwidth 10mbit\n";
    assert!(is_told(by_variable, &[]));
    assert!(!is_told(by_variable, &["0"]));
    assert!(is_told("tc qdisc add dev eth$1 root cake bandwidth 10mbit\n", &[]));
    for fine in [
        "case \"x$1\" in xstop) exit;; esac\ntc qdisc add dev eth0 root cake bandwidth 10mbit\n",
        "DEV=eth${1:-0}\ntc qdisc add dev $DEV root cake bandwidth 10mbit\n",
        "echo \"shaping as user$1\"\ntc qdisc add dev eth0 root cake bandwidth 10mbit\n",
    ] {
        assert!(!is_told(fine, &[]), "{fine}");
    }
}

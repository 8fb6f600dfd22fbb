//! Killed at any message, `tidegate apply`, `revert` and `down` restore the previous state (or, in a revert,
//! finish it): the table of `docs/live.md`. strace sends the signal, before the message of the given number
//! is sent.
//!
//! CI tries a sample; `TIDEGATE_EVERY_MESSAGE=KILL,HUP,INT,TERM cargo test -p tidegate --test crash --
//! --nocapture` tries every message with each of these signals, and prints the table.

mod common;

use common::computer::{Computer, done, stderr};
use common::wire::{WIRE, Wire};
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tidegate_policy::dump::Installed;

/// How long a guardian may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Classes of the policy that is applied.
const CLASSES: usize = 130;
/// Renaming, by whichever call: a regular expression of strace's.
const RENAME: &str = "/^rename";
/// More messages than any command here sends.
const MOST: usize = 2000;
/// What is left out between two tries of a sample.
const STRIDE: usize = 41;
const SIGNALS: [&str; 4] = ["KILL", "HUP", "INT", "TERM"];

/// The configuration before anything was applied.
const MODEM: &str = "tc qdisc add dev eth0 root handle 7: htb default 1
tc class add dev eth0 parent 7: classid 7:1 htb rate 1mbit
tc class add dev eth0 parent 7: classid 7:2 htb rate 2mbit
tc qdisc add dev eth0 parent 7:2 handle 72: pfifo limit 9
tc filter add dev eth0 parent 7: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 7:2";

/// A policy of some 400 messages, and of a table of rules and a device beside them.
fn long_policy(dev: &str) -> String {
    let mut text = format!("qdisc add dev {dev} root handle 1: htb default 2\n");
    for class in 2..CLASSES + 2 {
        text += &format!("class add dev {dev} parent 1: classid 1:{class:x} htb rate {class}0kbit\n");
        text += &format!("qdisc add dev {dev} parent 1:{class:x} handle {class:x}: pfifo limit {class}\n");
        text += &format!(
            "filter add dev {dev} parent 1: protocol ip prio 1 u32 match ip dport {class} 0xffff flowid \
            1:{class:x}\n"
        );
    }
    text + &format!(
        "qdisc add dev {dev} handle ffff: ingress\nfilter add dev {dev} parent ffff: protocol ip u32 match \
        u32 0 0 action mirred egress redirect dev ifb0\nqdisc add dev ifb0 root handle 1: tbf rate 8mbit \
        burst 10k latency 50ms\n"
    )
}

const RULES: &str = "*mangle\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -o eth0 -p udp --dport 53 -j MARK \
--set-mark 10\nCOMMIT\n";

/// The signals to try at every message; none: a sample, with each signal in turn.
fn every() -> Vec<String> {
    let output = std::env::var("TIDEGATE_EVERY_MESSAGE").unwrap_or_default();
    output.split(',').filter(|signal| !signal.is_empty()).map(str::to_owned).collect()
}

/// Those to try at a message of one call.
fn signals_at(call: &str, at: usize) -> Vec<String> {
    match every() {
        all if call == "sendto" && !all.is_empty() => all,
        _ => vec![SIGNALS[at / if call == "sendto" { STRIDE } else { 1 } % SIGNALS.len()].to_owned()],
    }
}

/// How far it is to the next try.
fn stride(call: &str) -> usize {
    if every().is_empty() && call == "sendto" { STRIDE } else { 1 }
}

fn has_strace() -> bool {
    let found = Command::new("strace").arg("-V").output().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no strace, which sends the signals");
    }
    found
}

/// A command that gets a signal before its n-th call of this kind.
fn struck(words: &[&str], call: &str, signal: &str, at: usize) -> Vec<String> {
    let inject = format!("inject={call}:signal=SIG{signal}:when={at}");
    let strace = ["-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject, common::TIDEGATE];
    strace.iter().chain(words).map(|word| (*word).to_owned()).collect()
}

fn was_killed(output: &Output) -> bool {
    // strace dies of what its program died of.
    output.status.signal().is_some()
}

/// The tries of one kind: how many, and the longest time until everything was as it should be.
#[derive(Default)]
struct Row {
    tries: usize,
    longest: Duration,
}

impl Row {
    /// Waits until something is so.
    fn until(&mut self, what: &str, output: &str, is: impl Fn() -> Result<(), String>) {
        let begun = Instant::now();
        while let Err(why) = is() {
            assert!(begun.elapsed() < PATIENCE, "{what}: {why}\n{output}");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.tries += 1;
        self.longest = self.longest.max(begun.elapsed());
    }

    fn report(&self, what: &str) {
        println!(
            "{what}: {} tries, all as before, at most {} ms after the death",
            self.tries,
            self.longest.as_millis()
        );
    }
}

impl Computer {
    fn strike(&self, words: &[&str], call: &str, signal: &str, at: usize) -> Output {
        let mut command = Command::new("strace");
        command.args(struck(words, call, signal, at));
        command
            .env("TIDEGATE_RUN", self.files.0.join("run"))
            .env("TIDEGATE_STATE", self.files.0.join("kept"))
            .env("SSH_CONNECTION", "");
        self.place.go(move || command.output()).expect("the thread is there").expect("strace runs")
    }

    fn all(&self) -> (Option<Installed>, Option<Installed>, Vec<String>) {
        (self.installed("eth0"), self.installed("ifb0"), self.tables())
    }

    /// The stored states, each without what changes on its own.
    fn states(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for net in std::fs::read_dir(self.files.0.join("run")).into_iter().flatten().flatten() {
            for file in std::fs::read_dir(net.path()).into_iter().flatten().flatten() {
                if file.path().extension().is_some_and(|extension| extension == "json") {
                    let text = std::fs::read_to_string(file.path()).unwrap_or_default();
                    all.push(serde_json::from_str(&text).unwrap_or(Value::Null));
                }
            }
        }
        all
    }
}

/// Tries a command at its messages, or at another call, until there is no further one; it is to leave all as
/// it was before.
fn tries(computer: &Computer, words: &[&str], call: &str, undo: impl Fn()) {
    let (before, states) = (computer.all(), computer.states());
    let mut row = Row::default();
    let mut at = 1;
    loop {
        assert!(at < MOST, "{words:?} goes on and on");
        let mut ended = false;
        for signal in &signals_at(call, at) {
            let output = computer.strike(words, call, signal, at);
            let what = format!("{words:?}, SIG{signal} at {call} {at}");
            if !was_killed(&output) {
                done(&output);
                assert_ne!(computer.all(), before, "{what}: it was done");
                undo();
                assert_eq!(computer.all(), before, "{what}: it was undone");
                ended = true;
                break;
            }
            // Once the last state is written, the policy is applied, whichever process dies; no message is
            // sent afterwards.
            if call != "sendto"
                && computer.tidegate(&["status"]).status.code() == Some(0)
                && computer.states() != states
            {
                assert!(computer.states().iter().all(|state| state["job"].is_null()), "{what}");
                undo();
            }
            row.until(&what, &stderr(&output), || {
                if computer.states() != states {
                    return Err(format!("another state: {:?}", computer.states()));
                }
                if computer.all() == before {
                    Ok(())
                } else {
                    Err(format!("not as before: {:#?}", computer.all()))
                }
            });
        }
        if ended {
            break;
        }
        at += stride(call);
    }
    let signals = if every().is_empty() { "all in turn".to_owned() } else { every().join(", ") };
    row.report(&format!(
        "{} --backend kernel ({signals}) at `{call}`, which it does {} times",
        words[0],
        at - 1
    ));
}

#[test]
fn an_apply_that_dies_at_any_message_leads_back() {
    let Some(computer) = Computer::new("crash-apply") else { return };
    if !has_strace() {
        return;
    }
    computer.tc(MODEM);
    let policy = computer.policy("policy.batch", &long_policy("eth0"));
    let rules = computer.policy("rules", RULES);
    let words = ["apply", "--backend", "kernel", &policy, &rules];
    let down = || drop(done(&computer.tidegate(&["down"])));
    tries(&computer, &words, "sendto", down);
    // Between them: what is written down, renamed, and who is started.
    for call in [RENAME, "fsync", "clone"] {
        tries(&computer, &words, call, down);
    }
}

/// From one policy of tidegate's that waits to be confirmed to another: the first is what was there before,
/// and still waits (its state is compared whole).
#[test]
fn a_second_apply_that_dies_leads_back_to_the_first() {
    let Some(computer) = Computer::new("crash-second") else { return };
    if !has_strace() {
        return;
    }
    let first = computer.policy("first.batch", &MODEM.replace("tc ", ""));
    done(&computer.tidegate(&["apply", "--backend", "kernel", &first, "--confirm", "3600s"]));
    let policy = computer.policy("policy.batch", &long_policy("eth0"));
    let words = ["apply", "--backend", "kernel", &policy];
    tries(&computer, &words, "sendto", || drop(done(&computer.tidegate(&["revert"]))));
    done(&computer.tidegate(&["down"]));
}

/// Going back is gone on with by the guardian, to its end.
#[test]
fn a_revert_that_dies_at_any_message_goes_on() {
    let Some(computer) = Computer::new("crash-revert") else { return };
    if !has_strace() {
        return;
    }
    computer.tc(MODEM);
    let before = computer.all();
    let policy = computer.policy("policy.batch", &long_policy("eth0"));
    for command in ["revert", "down"] {
        let mut row = Row::default();
        let mut at = 1;
        loop {
            done(&computer.tidegate(&["apply", "--backend", "kernel", &policy]));
            let output = computer.strike(&[command, "eth0"], "sendto", "KILL", at);
            if !was_killed(&output) {
                done(&output);
                break;
            }
            let begun = |state: &Value| !state["job"].is_null();
            row.until(&format!("{command} at {at}"), &stderr(&output), || {
                let states = computer.states();
                if states.iter().any(begun) { Err(format!("in progress: {states:?}")) } else { Ok(()) }
            });
            // Before it had written down that it would, nothing was to be done.
            if !computer.states().is_empty() {
                done(&computer.tidegate(&["down"]));
            }
            assert_eq!(computer.all(), before, "{command} at {at}");
            at += stride("sendto");
        }
        assert_eq!((computer.all(), computer.states()), (before.clone(), vec![]));
        row.report(&format!("{command} (KILL), {at} messages"));
    }
}

/// Without a guardian too, the state records what was begun, and the commands finish or undo it.
#[test]
fn an_unguarded_job_is_finished_by_the_next_command() {
    let Some(computer) = Computer::new("crash-alone") else { return };
    if !has_strace() {
        return;
    }
    computer.tc(MODEM);
    let before = computer.all();
    let policy = computer.policy("policy.batch", &long_policy("eth0"));
    for next in ["revert", "down", "apply"] {
        // The guardian is stopped as soon as it is there, and killed when the apply is dead.
        let guardian = killed_with_its_guardian(&computer, &policy);
        assert_ne!(computer.all(), before, "the apply was in the middle of it");
        let status = computer.tidegate(&["status", "--json"]);
        assert_eq!(status.status.code(), Some(3), "{}", stderr(&status));
        let document: Value = serde_json::from_slice(&status.stdout).expect("JSON");
        let document = &document["policies"];
        assert_eq!(
            (&document[0]["condition"], &document[0]["job"]["does"]),
            (&json!("in progress"), &json!("apply")),
            "{guardian}: {document:#}"
        );
        assert_eq!(document[0]["job"]["alive"], false, "{document:#}");
        let words =
            if next == "apply" { vec!["apply", "--backend", "kernel", &policy] } else { vec![next, "eth0"] };
        let output = done(&computer.tidegate(&words));
        if next == "apply" {
            assert!(
                output.contains("`tidegate apply` was interrupted on `eth0`; that was put in order first"),
                "{output}"
            );
            assert_eq!(computer.tidegate(&["status"]).status.code(), Some(0));
            done(&computer.tidegate(&["down"]));
        }
        assert_eq!((computer.all(), computer.states()), (before.clone(), vec![]), "{next}");
    }
}

/// Kills an apply in the middle, and its guardian before it has seen that.
fn killed_with_its_guardian(computer: &Computer, policy: &str) -> u32 {
    let mut command = Command::new("strace");
    // It stops before a message in the middle; what is stopped is killed.
    command.args(struck(&["apply", "--backend", "kernel", policy], "sendto", "STOP", 200));
    command
        .env("TIDEGATE_RUN", computer.files.0.join("run"))
        .env("TIDEGATE_STATE", computer.files.0.join("kept"))
        .env("SSH_CONNECTION", "");
    let mut child =
        computer.place.go(move || command.spawn()).expect("the thread is there").expect("strace runs");
    let begun = Instant::now();
    let stopped = loop {
        assert!(begun.elapsed() < PATIENCE, "the apply does not come to its middle");
        let below = tidegate_sys::process::descendants(child.id());
        let of = |word: &str| {
            below.iter().find(|one| one.words.get(1).is_some_and(|known| known == word)).map(|one| one.pid)
        };
        if let (Some(apply), Some(guardian)) = (of("apply"), of("revert"))
            && state_of(apply).is_some_and(|state| matches!(state, 'T' | 't'))
            && computer.all().0.is_some_and(|installed| installed.classes.len() > 20)
        {
            break (apply, guardian);
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    for pid in [stopped.1, stopped.0] {
        tidegate_sys::process::kill_tree(pid);
    }
    child.wait().expect("it is ours");
    let begun = Instant::now();
    while state_of(stopped.1).is_some_and(|state| state != 'Z') {
        assert!(begun.elapsed() < PATIENCE, "the guardian is killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    stopped.1
}

/// How a process is, as `/proc` has it.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// The status of the wire's daemon, in the parts that a change of its policy changes.
fn runs(wire: &Wire) -> Option<Value> {
    let document = wire.ask(WIRE, &json!({"ask": "tc", "words": ["class", "show", "dev", WIRE]}))?;
    Some(document["stdout"].clone())
}

fn strike(wire: &Wire, words: &[&str], call: &str, at: usize) -> Output {
    let mut command = Command::new("strace");
    command
        .args(struck(words, call, "KILL", at))
        .env("TIDEGATE_RUN", &wire.room)
        .env("TIDEGATE_STATE", wire.room.join("kept"))
        .env("SSH_CONNECTION", "");
    wire.near.go(move || command.output()).expect("place").expect("strace runs")
}

/// Our own disciplines: no daemon before, or one with another policy.
#[test]
fn an_apply_to_user_space_that_dies_leads_back() {
    let Some(wire) = Wire::lay("crash-user") else { return };
    if !has_strace() {
        return;
    }
    let policy = wire.file("policy.batch", &long_policy(WIRE));
    let first = wire.file(
        "first.batch",
        &format!(
            "qdisc add dev {WIRE} root handle 1: htb default 2\nclass \
    add dev {WIRE} parent 1: classid 1:2 htb rate 50mbit\n"
        ),
    );
    let words = ["apply", "--backend", "user", &policy];
    for with_first in [false, true] {
        if with_first {
            let output = wire.tidegate(&["apply", "--backend", "user", &first]);
            assert!(output.status.success(), "{}", stderr(&output));
        }
        let before = runs(&wire);
        assert_eq!(before.is_some(), with_first);
        for call in ["sendto", "write", "connect", RENAME, "fsync", "clone", "clone3"] {
            let mut row = Row::default();
            for at in 1..MOST {
                let output = strike(&wire, &words, call, at);
                if !was_killed(&output) {
                    assert!(output.status.success(), "{}", stderr(&output));
                    assert_ne!(runs(&wire), before);
                    let back = wire.tidegate(&["revert"]);
                    assert!(back.status.success(), "{}", stderr(&back));
                    assert_eq!(runs(&wire), before);
                    break;
                }
                // Once the last state is written, the policy is applied, whichever process dies.
                let status = wire.tidegate(&["status", "--json"]);
                let document: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
                let document = &document["policies"];
                if status.status.code() == Some(0) && document[0]["policy"] == json!([policy]) {
                    assert!(
                        document[0]["job"].is_null() && runs(&wire) != before,
                        "{call} {at}: {document:#}"
                    );
                    let back = wire.tidegate(&["revert"]);
                    assert!(back.status.success(), "{call} {at}: {}", stderr(&back));
                }
                row.until(&format!("{call} {at}, first: {with_first}"), &stderr(&output), || {
                    let status = wire.tidegate(&["status", "--json"]);
                    let wanted = if with_first { 0 } else { 1 };
                    if status.status.code() != Some(wanted) {
                        return Err(stderr(&status));
                    }
                    if runs(&wire) == before { Ok(()) } else { Err(format!("{:?}", runs(&wire))) }
                });
            }
            row.report(&format!("apply --backend user at `{call}`, with a policy before: {with_first}"));
        }
    }
    assert!(wire.tidegate(&["down"]).status.success());
    assert!(wire.links().iter().all(|link| !link.starts_with("tidegate")), "{:?}", wire.links());
}

/// A daemon that dies at any of its own messages leaves nothing behind.
#[test]
fn a_daemon_that_dies_while_it_starts_leaves_nothing() {
    let Some(wire) = Wire::lay("crash-daemon") else { return };
    if !has_strace() {
        return;
    }
    let policy = wire.file("policy.batch", &long_policy(WIRE));
    let links = wire.links();
    for call in ["sendto", "bpf", "ioctl", "bind"] {
        let mut row = Row::default();
        for at in 1..MOST {
            let mut command = Command::new("strace");
            command
                .args(struck(&["daemon", &policy], call, "KILL", at))
                .env("TIDEGATE_RUN", &wire.room)
                .env("TIDEGATE_STATE", wire.room.join("kept"))
                .env("SSH_CONNECTION", "");
            let mut child = wire.near.go(move || command.spawn()).expect("place").expect("strace runs");
            let begun = Instant::now();
            let ready = loop {
                if let Some(ended) = child.try_wait().expect("it is ours") {
                    assert!(ended.signal().is_some(), "{call} {at}: {ended:?}");
                    break false;
                }
                if wire.ask(WIRE, &json!({"ask": "status"})).is_some_and(|status| status["openings"] == 1) {
                    break true;
                }
                assert!(begun.elapsed() < PATIENCE, "{call} {at}: it neither starts nor dies");
                std::thread::sleep(Duration::from_millis(2));
            };
            if ready {
                wire.tidegate(&["down"]);
                child.wait().expect("it is ours");
                break;
            }
            row.until(&format!("{call} {at}"), "", || {
                let now = wire.links();
                if now == links { Ok(()) } else { Err(format!("{now:?}")) }
            });
        }
        row.report(&format!("daemon at `{call}`"));
        wire.transfer(1000);
    }
}

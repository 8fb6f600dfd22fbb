//! The sentences of `try` are compared with the result document, each condition computed here again from the
//! raw series: for random policies, and for some of the gallery's.

use crate::common;

use common::policies::{PLAIN, Policy, Wording};
use common::{Place, TIDEGATE, skip};
use std::path::Path;
use std::process::Command;
use tidegate_measure::trial::{TrialDocument, TrialRun};

/// So many random policies.
const POLICIES: u64 = 12;

/// A sorted list's value at the share `p`, as the definition of a percentile has it: the smallest that is not
/// below so many of them.
fn percentile(mut values: Vec<u64>, p: f64) -> Option<u64> {
    values.sort_unstable();
    let rank = (p / 100.0 * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

/// The ping's 95th percentile, and the share of its losses.
fn ping(run: &TrialRun) -> (Option<u64>, f64) {
    let probe = run.probes.iter().find(|probe| probe.id == "ping").expect("a ping");
    let samples: Vec<Option<u64>> = probe
        .answers
        .iter()
        .filter(|(at, _)| (run.window.0..run.window.1).contains(at))
        .map(|(_, rtt)| *rtt)
        .collect();
    let lost = samples.iter().filter(|rtt| rtt.is_none()).count() as f64 / samples.len().max(1) as f64;
    (percentile(samples.into_iter().flatten().collect(), 95.0), lost)
}

/// What waits half of the time in one of the link's buffers, in ms of the link.
fn waits(run: &TrialRun, title: &str, bits: u64) -> f64 {
    let buffer = run.buffers.iter().find(|buffer| buffer.title == title).expect("a buffer");
    let measured = buffer.backlog[(run.window.0 / run.step_ns) as usize..].to_vec();
    percentile(measured, 50.0).unwrap_or(0) as f64 * 8e3 / bits as f64
}

/// Are the sentences those that follow from the document?
fn follows(trial: &TrialDocument, what: &str) {
    let output = trial.verdict.join("\n");
    let has = |words: &str| output.contains(words);
    let [without, with] = [false, true].map(|policy| {
        trial
            .runs
            .iter()
            .find(|run| run.policy == policy && !run.witnesses && run.load == "both")
            .expect("a run")
    });
    let ((before, _), (after, lost)) = (ping(without), ping(with));
    let context = format!("{what}\n{output}\n{before:?} {after:?} {lost}");
    if let (Some(before), Some(after)) = (before, after) {
        let ratio = before as f64 / after as f64;
        assert_eq!(has("the policy cuts the ping's"), ratio >= 1.2, "{context}");
        assert_eq!(has("makes the ping worse"), ratio <= 0.83, "{context}");
        // Nothing was measured idle: what an idle link takes is its round trip and a frame each way.
        let frames = [trial.link.up_bits, trial.link.down_bits].map(|bits| 1514.0 * 8e9 / bits as f64);
        let idle = trial.link.rtt_ns as f64 + frames.iter().sum::<f64>();
        let between = ratio > 0.83 && ratio < 1.2;
        assert_eq!(has("the policy hardly changes"), between && before as f64 > 2.0 * idle, "{context}");
        assert_eq!(has("does not disturb the ping"), between && before as f64 <= 2.0 * idle, "{context}");
        assert_eq!(has(" % are lost"), lost > 0.02, "{context}");
    } else {
        assert!(has("answered"), "{context}");
    }
    // Transfers both ways have a sentence where one way loses a twentieth.
    let loses = [true, false].into_iter().any(|up| {
        let [was, is] = [without, with].map(|run| {
            run.flows.iter().filter(|flow| flow.up == up).map(|flow| flow.rate(run.window)).sum::<f64>()
        });
        is < was * 0.95
    });
    assert_eq!(has("transfers carry"), loses, "{context}");
    // Twenty milliseconds, and more than two frames, are worth a word.
    for (title, bits, words) in [
        ("modem", trial.link.up_bits, "The modem still holds"),
        ("provider", trial.link.down_bits, "In the provider's download queue"),
    ] {
        let ms = waits(with, title, bits);
        let worth = ms > f64::max(20.0, 2.0 * 1514.0 * 8e3 / bits as f64);
        assert_eq!(has(words), worth, "{title} {ms} ms: {context}");
    }
    let sent: u64 =
        with.classes.iter().filter(|c| c.leaf).flat_map(|c| &c.packets).map(|n| u64::from(*n)).sum();
    if has("were sent past all classes") {
        assert!(
            with.direct_packets * 10 > sent,
            "{} direct, {sent} in classes: {context}",
            with.direct_packets
        );
    }
    for node in trial.tree.iter().filter(|node| node.unreachable.is_some()) {
        assert!(has("No packet was found") && has(&node.id), "{}: {context}", node.id);
        let busy = trial
            .runs
            .iter()
            .flat_map(|run| &run.classes)
            .any(|c| c.id == node.id && c.sent.iter().any(|n| *n > 0));
        assert!(!busy, "{} sent something: {context}", node.id);
    }
}

#[test]
fn sentences_of_try_follow_from_its_document() {
    if skip() {
        return;
    }
    let place = Place::new("verdicts");
    let mut judged = 0;
    for seed in 0..POLICIES {
        let wording = Wording { kind: if seed % 3 == 2 { "hfsc" } else { "htb" }, ..PLAIN };
        let policy = Policy::new(seed).commands(wording).join("\n");
        let file = place.file("policy.sh", format!("{policy}\n"));
        let link =
            ["--up", "5mbit", "--down", "20mbit", "--duration", "3s", "--load", "both", "--probes", "ping"];
        let output =
            Command::new(TIDEGATE).args(["try", "--json"]).args(link).arg(&file).output().expect("it runs");
        // What the kernel refuses is refused.
        if !output.status.success() {
            assert!(!output.stderr.is_empty());
            continue;
        }
        let trial = tidegate_analysis::trial::from_json(&String::from_utf8_lossy(&output.stdout))
            .expect("a document");
        follows(&trial, &format!("seed {seed}: {policy}"));
        judged += 1;
    }
    assert!(judged > POLICIES / 2, "{judged} of {POLICIES} were carried out");
    let gallery = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gallery");
    for name in [
        "comcast-like.sh",
        "lartc-tbf.sh",
        "class-hunger.sh",
        "netem-loss.sh",
        "cake-ifb.sh",
        "cake-unlimited.sh",
    ] {
        let link =
            ["--up", "10mbit", "--down", "50mbit", "--duration", "3s", "--load", "both", "--probes", "ping"];
        let script = gallery.join(name);
        let output =
            Command::new(TIDEGATE).args(["try", "--json"]).args(link).arg(&script).output().expect("it runs");
        let trial = tidegate_analysis::trial::from_json(&String::from_utf8_lossy(&output.stdout))
            .expect("a document");
        follows(&trial, name);
        // A netem of the policy's own has a note where packets came to it.
        let is_told = trial.notes.iter().any(|note| note.starts_with("what the policy's netem "));
        assert_eq!(
            is_told,
            ["comcast-like.sh", "netem-loss.sh"].contains(&name),
            "{name}: {:?}",
            trial.notes
        );
    }
}

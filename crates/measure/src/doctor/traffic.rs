//! What is wrong with what passes.

use super::facts::{BrokenPolicy, DeviceFacts, DoctorFinding, Facts, Severity, rate_in_words};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Below this share of the rate the limiting link is unknown.
const LOADED: f64 = 0.5;
/// Waiting for one packet in so many is no queue, but bursts.
const RARELY: u64 = 20;
/// A shaper that let this share of its rate through limits it, whatever it counted.
const FULL: f64 = 0.97;
/// Packets after which a class that had none is worth a word.
const MANY: u64 = 1000;
/// A processor that spends this share on the network's interrupts has no space.
const SATURATED: f64 = 0.85;
/// Of a thousand packets, so many rounds cut short are worth a word.
const SQUEEZED_PER_MILLE: u64 = 1;
/// The ECN field, and its value for packets that may be marked.
const ECN: u8 = 3;
const MARKED: u8 = 3;

/// Findings about one device.
pub(super) fn of(facts: &Facts, device: &DeviceFacts) -> Vec<DoctorFinding> {
    [elsewhere(facts, device), never_waited(device), unused(device)].into_iter().flatten().collect()
}

/// Findings about the computer.
pub(super) fn of_all(facts: &Facts) -> Vec<DoctorFinding> {
    let mut all: Vec<DoctorFinding> = facts.broken.iter().map(broken).collect();
    all.extend(facts.starved.iter().map(|danger| starved(danger)));
    all.extend(processors(facts));
    all.extend(softnet(facts));
    all.extend(checked(facts));
    all.extend(facts.ecn.as_ref().and_then(bleached));
    all
}

/// When this must not be believed.
pub(super) fn caveats(facts: &Facts) -> Vec<String> {
    let mut all = Vec::new();
    for device in &facts.devices {
        let Some((rate, shaper)) = device.rate_bps().zip(device.shaper.as_ref()) else { continue };
        let carried = facts.rate(shaper.sent);
        if carried < rate as f64 * LOADED && shaper.overlimits == 0 {
            all.push(format!(
                "{} carried {} of {}: whether it is what limits can only be seen under load; look again \
                while something uploads (--duration 20s)",
                device.name,
                rate_in_words(carried),
                rate_in_words(rate as f64)
            ));
        }
    }
    all.extend(facts.unknown.iter().cloned());
    all
}

/// Loaded, and the shaper has hardly any backlog: another link is slower. (A burst is queued there even
/// then.)
fn elsewhere(facts: &Facts, device: &DeviceFacts) -> Option<DoctorFinding> {
    let (rate, shaper) = (device.rate_bps()?, device.shaper.as_ref()?);
    let carried = facts.rate(shaper.sent);
    let share = carried / rate as f64;
    if !(LOADED..FULL).contains(&share) || shaper.overlimits * RARELY > shaper.packets || shaper.backlog > 0 {
        return None;
    }
    Some(DoctorFinding {
        id: "bottleneck-elsewhere",
        severity: Severity::Bad,
        device: device.name.clone(),
        what: format!(
            "{} carried {}, which is less than the {} it is shaped to, and its packets had to wait {} times \
            out of {}: the queue is somewhere else",
            device.name,
            rate_in_words(carried),
            rate_in_words(rate as f64),
            shaper.overlimits,
            shaper.packets
        ),
        remedy: format!(
            "shape to less than what the line carries (start with {}), or find it: tidegate calibrate HOST",
            rate_in_words(carried * 0.9)
        ),
        commands: Vec::new(),
    })
}

/// It has sent much and never held anything back.
fn never_waited(device: &DeviceFacts) -> Option<DoctorFinding> {
    let shaper = device.shaper.as_ref()?;
    let rate = device.rate_bps()?;
    (shaper.packets_ever >= 100 * MANY && shaper.overlimits_ever == 0
        && shaper.backend == "kernel").then(|| DoctorFinding {
        id: "never-waited",
        severity: Severity::Warning,
        device: device.name.clone(),
        what: format!(
            "{} has sent {} packets since it was shaped to {}, and not one had to wait: it may never have \
            been the bottleneck",
            device.name,
            shaper.packets_ever,
            rate_in_words(rate as f64)
        ),
        remedy: "compare the rate with what the line carries: tidegate calibrate HOST".to_string(),
        commands: Vec::new(),
    })
}

/// Classes that had nothing while others had much.
fn unused(device: &DeviceFacts) -> Option<DoctorFinding> {
    let shaper = device.shaper.as_ref()?;
    let leaves: Vec<_> = shaper.classes.iter().filter(|class| class.is_leaf).collect();
    let empty: Vec<&str> =
        leaves.iter().filter(|class| class.packets_ever == Some(0)).map(|class| class.id.as_str()).collect();
    if empty.is_empty() || shaper.packets_ever < MANY {
        return None;
    }
    let is_all = empty.len() + 1 == leaves.len();
    let (severity, also) = match is_all {
        true => (Severity::Warning, ": everything is in one class, so no traffic has priority"),
        false => (Severity::Note, ""),
    };
    Some(DoctorFinding {
        id: "class-never-hit",
        severity,
        device: device.name.clone(),
        what: format!(
            "of the {} packets that {} sent, none was in {}{also}",
            shaper.packets_ever,
            device.name,
            empty.join(", ")
        ),
        remedy: "find out which filter a packet matches, and which can never match".to_string(),
        commands: [
            "tidegate import --live > live.sh && tidegate check live.sh".to_string(),
            format!("tidegate explain live.sh 'udp 192.0.2.1:40000 > 192.0.2.2:53 out {}'", device.name),
        ]
        .into(),
    })
}

/// A policy that is not at work: nothing else can be said of its devices.
fn broken(policy: &BrokenPolicy) -> DoctorFinding {
    let why = policy.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    DoctorFinding {
        id: "policy-not-working",
        severity: Severity::Bad,
        device: policy.name.clone(),
        what: format!("the policy of {} is not at work ({}){why}", policy.name, policy.condition),
        remedy: "see what happened, then apply it again or remove it".to_string(),
        commands: [format!("tidegate status {}", policy.name), format!("tidegate down {}", policy.name)]
            .into(),
    }
}

fn starved(danger: &str) -> DoctorFinding {
    DoctorFinding {
        id: "control-plane",
        severity: Severity::Bad,
        device: String::new(),
        what: danger.to_string(),
        remedy:
            "give it a class of its own with some rate: a network that loses these stops working under load"
                .to_string(),
        commands: Vec::new(),
    }
}

/// A processor without time for more packets.
fn processors(facts: &Facts) -> Option<DoctorFinding> {
    let worst = facts.processors.iter().max_by(|a, b| a.softirq.total_cmp(&b.softirq))?;
    (worst.softirq >= SATURATED).then(|| DoctorFinding {
        id: "cpu-saturated",
        severity: Severity::Bad,
        device: String::new(),
        what: format!(
            "processor {} spent {:.0} % of its time on the network's interrupts: packets wait for it, not \
            for the shaper",
            worst.number,
            worst.softirq * 100.0
        ),
        remedy: "spread receive queues over processors, or shape to less".to_string(),
        commands: [
            "grep . /sys/class/net/*/queues/rx-*/rps_cpus".to_string(),
            "for f in /sys/class/net/DEV/queues/rx-*/rps_cpus; do echo f > $f; done".to_string(),
        ]
        .into(),
    })
}

/// Packets dropped, or left over, before any program saw them.
fn softnet(facts: &Facts) -> Option<DoctorFinding> {
    let softnet = &facts.softnet;
    let backlog = "sysctl net.core.netdev_max_backlog net.core.netdev_budget".to_string();
    if softnet.dropped > 0 {
        return Some(DoctorFinding {
            id: "softnet-dropped",
            severity: Severity::Bad,
            device: String::new(),
            what: format!(
                "{} of {} packets that came were lost before anything looked at them (the backlog of a \
                processor was full)",
                softnet.dropped, softnet.processed
            ),
            remedy: "let more wait there, or give it more processors".to_string(),
            commands: [backlog, "sysctl -w net.core.netdev_max_backlog=4000".to_string()].into(),
        });
    }
    let is_much = softnet.squeezed > 10 && softnet.squeezed * 1000 > softnet.processed * SQUEEZED_PER_MILLE;
    is_much.then(|| DoctorFinding {
        id: "softnet-squeezed",
        severity: Severity::Note,
        device: String::new(),
        what: format!(
            "{} times a processor stopped receiving with packets left ({} received)",
            softnet.squeezed, softnet.processed
        ),
        remedy: "let it take more at once".to_string(),
        commands: [backlog, "sysctl -w net.core.netdev_budget=600".to_string()].into(),
    })
}

/// Findings of `check` are given in short: `check` itself explains them.
fn checked(facts: &Facts) -> Option<DoctorFinding> {
    let (shown, count) = &facts.checked;
    let (rule, first) = shown.first()?;
    let more: Vec<&str> = shown.iter().skip(1).map(|(rule, _)| rule.as_str()).collect();
    let more =
        if more.is_empty() { String::new() } else { format!("; {} more ({})", count - 1, more.join(", ")) };
    Some(DoctorFinding {
        id: "check",
        severity: Severity::Warning,
        device: String::new(),
        what: format!("the policy itself has mistakes: {rule}: {first}{more}"),
        remedy: "the checker says where, why, and what to write instead".to_string(),
        commands: ["tidegate import --live > live.sh && tidegate check live.sh".to_string()].into(),
    })
}

/// A router on the path clears the ECN field, or marks everything.
fn bleached(ecn: &super::facts::EcnResult) -> Option<DoctorFinding> {
    let sent = ecn.sent & ECN;
    let changed = ecn.quoted.iter().find(|(_, field)| field & ECN != sent);
    let (by, field) = match (changed, ecn.answered) {
        (Some((by, field)), _) => (format!("at or before {by}"), field & ECN),
        // A server that replies with another code point sets its own field: that is no evidence about the
        // path.
        (None, Some(field)) if field & ECN != sent && field >> 2 == ecn.sent >> 2 && ecn.sent >> 2 != 0 => {
            (format!("on the way to {} or back", ecn.host), field & ECN)
        }
        _ => return None,
    };
    let what = match field {
        MARKED => format!("requests that might be marked (ECT) had the mark of congestion (CE) {by}"),
        0 => format!("the ECN field is cleared {by}: marks of a queue arrive as nothing, or are never made"),
        _ => format!("the ECN field is changed {by}"),
    };
    Some(DoctorFinding {
        id: "ecn-bleached",
        severity: if field == MARKED { Severity::Note } else { Severity::Warning },
        device: String::new(),
        what,
        remedy: "queues fall back to dropping packets; configure a router of yours that does this to leave \
        the lower two bits alone"
            .to_string(),
        commands: Vec::new(),
    })
}

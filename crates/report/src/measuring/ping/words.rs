//! The targets, and messages besides replies.

use tidegate_measure::numbers::format_duration;
use tidegate_measure::pinged::{PingMethod, PingTarget, Pinged};

/// The targets, in a few words.
pub(super) fn title(pinged: &Pinged) -> String {
    let mut hosts: Vec<&str> = pinged.targets.iter().map(|target| target.host.as_str()).collect();
    hosts.dedup();
    format!("Pings to {}", hosts.join(", "))
}

/// How a target was pinged, in a sentence.
pub(super) fn sentence(target: &PingTarget) -> String {
    let PingTarget { id, host, address, way, ds_field, size, hop_limit, interval_ns, .. } = target;
    let place = if host == address { address.clone() } else { format!("{host} ({address})") };
    let how = match (way, hop_limit) {
        (PingMethod::Icmp, None) => "echo requests".to_owned(),
        (PingMethod::Udp(port), None) => format!("UDP to port {port}"),
        (PingMethod::Icmp, Some(hops)) => format!("the hop at distance {hops}, by echo requests"),
        (PingMethod::Udp(port), Some(hops)) => format!("the hop at distance {hops}, by UDP to port {port}"),
    };
    let marked = if *ds_field == 0 { String::new() } else { format!(", DS field {ds_field:#04x}") };
    let who = if id == host { place } else { format!("{id}: {place}") };
    format!("{who}, {how} of {size} B every {}{marked}", format_duration(*interval_ns))
}

/// Errors besides replies, and caveats: a target's name before each.
pub(super) fn remarks(pinged: &Pinged) -> Vec<String> {
    let mut all = Vec::new();
    for target in &pinged.targets {
        let id = &target.id;
        if target.errors_for_answers > 0 {
            let count = target.errors_for_answers;
            all.push(format!(
                "{id}: {count} replies are ICMP errors (no program listens there, or the hop limit ended)"
            ));
        }
        if target.duplicates > 0 {
            all.push(format!("{id}: {} duplicate replies", target.duplicates));
        }
        all.extend(
            target
                .faults
                .iter()
                .map(|fault| format!("{id}: {} sent “{}” {} times", fault.by, fault.what, fault.count)),
        );
        all.extend(target.caveats().into_iter().map(|caveat| format!("{id}: {caveat}")));
    }
    all.extend(pinged.notes.iter().cloned());
    all
}

//! Snapshots as Prometheus reads them (its text format 0.0.4). For qdiscs on a device node_exporter's metrics
//! have its names; ours cover all qdiscs, classes, cake's tins, and queueing delays.

use super::control::{ControlMode, ShaperControl};
use super::interval::shaped;
use super::snapshot::{ClassSnapshot, Counts, DeviceSnapshot, QdiscSnapshot, Seen, Snapshot, Tin};
use std::fmt::Write;

/// The histogram's buckets: each ends at a power of two of ns, from 8 µs on, as those of snapshots do at
/// every eighth.
const BUCKETS: std::ops::RangeInclusive<u32> = 13..=36;

/// Names and values of labels.
type Labels<'l> = [(&'static str, &'l str)];

/// The figures of one name.
struct Family {
    name: String,
    kind: &'static str,
    help: &'static str,
    samples: String,
}

/// All families, in the order of their first sample: the format wants the samples of one name together.
#[derive(Default)]
struct Families(Vec<Family>);

impl Families {
    fn family(&mut self, name: &str, kind: &'static str, help: &'static str) -> &mut Family {
        let at = self.0.iter().position(|family| family.name == name).unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push(Family { name: name.to_owned(), kind, help, samples: String::new() });
        }
        &mut self.0[at]
    }

    fn counter(&mut self, name: &str, help: &'static str, labels: &Labels<'_>, value: u64) {
        self.family(name, "counter", help).sample("", labels, value);
    }

    fn gauge(&mut self, name: &str, help: &'static str, labels: &Labels<'_>, value: impl std::fmt::Display) {
        self.family(name, "gauge", help).sample("", labels, value);
    }

    /// What tc counts, under names that begin alike.
    fn counts(&mut self, prefix: &str, labels: &Labels<'_>, counts: &Counts) {
        let mut counter =
            |what: &str, help, value| self.counter(&format!("{prefix}_{what}_total"), help, labels, value);
        counter("bytes", "Bytes sent.", counts.bytes);
        counter("packets", "Packets sent.", counts.packets);
        counter("drops", "Packets dropped.", counts.drops);
        counter("requeues", "Packets that the device gave back.", counts.requeues);
        counter("overlimits", "Times that something had to wait for its turn.", counts.overlimits);
        self.gauge(&format!("{prefix}_current_queue_length"), "Packets that wait.", labels, counts.qlen);
        self.gauge(&format!("{prefix}_backlog"), "Bytes that wait.", labels, counts.backlog);
    }
}

impl Family {
    fn sample(&mut self, suffix: &str, labels: &Labels<'_>, value: impl std::fmt::Display) {
        let _ = write!(self.samples, "{}{suffix}", self.name);
        for (n, (name, value)) in labels.iter().enumerate() {
            let before = if n == 0 { "{" } else { "," };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.samples, "{before}{name}=\"{value}\"");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.samples, "{close} {value}");
    }
}

/// What is known of an applied policy: what to alert on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// The device after which it is named.
    pub device: String,
    /// `user` or `kernel`.
    pub backend: String,
    /// Is it at work: its device is there, and its daemon answers?
    pub up: bool,
    /// Whether it needs attention.
    pub trouble: bool,
    /// Is anything not as it was applied?
    pub drift: bool,
    /// Seconds until it is undone unless it is confirmed; `None`: it stays.
    pub revert_s: Option<f64>,
    /// How often its daemon was restarted since the machine was started; `None`: no daemon reports it.
    pub restarts: Option<u64>,
}

/// Snapshots in Prometheus' text format, the state of the policies, and what controllers of rates do; `netns`
/// names the network namespace, `version` the program.
pub fn exposition<'s>(
    snapshots: impl IntoIterator<Item = &'s Snapshot>,
    (policies, controls): (&[Policy], &[ShaperControl]),
    netns: &str,
    version: &str,
) -> String {
    let mut families = Families::default();
    families.gauge("tidegate_build_info", "Version of tidegate.", &[("version", version)], 1);
    for policy in policies {
        of_policy(&mut families, policy, netns);
    }
    for control in controls {
        of_control(&mut families, control, netns);
    }
    for snapshot in snapshots {
        for device in &snapshot.devices {
            of_device(&mut families, device, netns);
        }
        let first = snapshot.devices.first().map_or("", |device| device.name.as_str());
        for (outcome, value) in &snapshot.counts {
            if let Some(what) = outcome.strip_suffix("_ns") {
                of_time(&mut families, what, [("netns", netns), ("device", first)], *value);
                continue;
            }
            if outcome == "late" {
                let help = "Times that packets left later than the engine makes up for.";
                families.counter(
                    "tidegate_engine_late_total",
                    help,
                    &[("netns", netns), ("device", first)],
                    *value,
                );
                continue;
            }
            let labels = [("netns", netns), ("device", first), ("outcome", outcome.as_str())];
            families.counter(
                "tidegate_engine_packets_total",
                "Packets by what became of them in the engine.",
                &labels,
                *value,
            );
        }
    }
    let mut text = String::new();
    for Family { name, kind, help, samples } in families.0 {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
    }
    text
}

fn of_policy(families: &mut Families, policy: &Policy, netns: &str) {
    let labels = [("netns", netns), ("device", policy.device.as_str()), ("backend", policy.backend.as_str())];
    let mut flag = |name: &str, help, is: bool| families.gauge(name, help, &labels, u8::from(is));
    flag(
        "tidegate_up",
        "Is the policy at work: its device is there, its daemon answers, and the kernel has not drifted \
        from it?",
        policy.up,
    );
    flag("tidegate_trouble", "Is anything wrong with the policy (see tidegate status)?", policy.trouble);
    flag("tidegate_drift", "Is anything not as it was applied?", policy.drift);
    if let Some(seconds) = policy.revert_s {
        let help = "Time until the policy is undone unless it is confirmed.";
        families.gauge("tidegate_revert_seconds", help, &labels, seconds);
    }
    if let Some(restarts) = policy.restarts {
        families.counter(
            "tidegate_restarts_total",
            "Times that the daemon was started again.",
            &labels,
            restarts,
        );
    }
}

/// What `tidegate autorate` does with a shaper.
fn of_control(families: &mut Families, control: &ShaperControl, netns: &str) {
    let labels = [
        ("netns", netns),
        ("device", control.device.as_str()),
        ("direction", control.direction.as_str()),
        ("controller", control.controller.as_str()),
    ];
    let help = "The rate that autorate has set.";
    families.gauge("tidegate_autorate_rate_bits_per_second", help, &labels, control.rate);
    for (limit, rate) in [("lowest", control.least), ("base", control.base), ("highest", control.most)] {
        let labels = [&labels[..], &[("limit", limit)]].concat();
        let help = "The lowest rate that autorate sets, that without load, and the highest.";
        families.gauge("tidegate_autorate_limit_bits_per_second", help, &labels, rate);
    }
    for mode in ControlMode::ALL {
        let labels = [&labels[..], &[("mode", mode.id())]].concat();
        let help = "What autorate is doing: one of its modes is 1.";
        families.gauge("tidegate_autorate_mode", help, &labels, u8::from(mode == control.mode));
    }
    for (reason, count) in &control.decisions {
        let labels = [&labels[..], &[("reason", reason.as_str())]].concat();
        let help = "Rates that autorate has set, by its reason.";
        families.counter("tidegate_autorate_decisions_total", help, &labels, *count);
    }
    if let Some(ms) = control.last.as_ref().and_then(|last| last.delay_ms) {
        let help = "The delay that the last decision of autorate was made by.";
        families.gauge("tidegate_autorate_delay_seconds", help, &labels, ms / 1e3);
    }
}

/// A time among what the engine counts: how late it was at most.
fn of_time(families: &mut Families, what: &str, labels: [(&'static str, &str); 2], ns: u64) {
    if what == "latest" {
        let help = "The most that a packet left later than it was due.";
        families.gauge("tidegate_engine_lateness_seconds", help, &labels, ns as f64 / 1e9);
    }
}

fn of_device(families: &mut Families, device: &DeviceSnapshot, netns: &str) {
    for qdisc in &device.qdiscs {
        if qdisc.parent.is_none() {
            families.counts("node_qdisc", &[("device", &device.name), ("kind", &qdisc.kind)], &qdisc.counts);
        }
        of_qdisc(families, device, qdisc, netns);
    }
    for class in &device.classes {
        of_class(families, device, class, netns);
    }
    // Packets without a class are those from before the first snapshot.
    for seen in device.seen.iter().filter(|seen| seen.class != "none") {
        of_waits(families, device, seen, netns);
    }
    if let Some(rate) = shaped(device) {
        // What a device of that kind is given to send is what arrived elsewhere.
        let direction = if device.name.starts_with("ifb") { "ingress" } else { "egress" };
        let labels = [("netns", netns), ("device", device.name.as_str()), ("dir", direction)];
        families.gauge(
            "tidegate_shaper_rate_bits_per_second",
            "What the policy lets through at most.",
            &labels,
            rate,
        );
    }
}

fn of_qdisc(families: &mut Families, device: &DeviceSnapshot, qdisc: &QdiscSnapshot, netns: &str) {
    let parent = qdisc.parent.as_deref().unwrap_or("root");
    let labels = [
        ("netns", netns),
        ("device", device.name.as_str()),
        ("handle", qdisc.handle.as_str()),
        ("parent", parent),
        ("kind", qdisc.kind.as_str()),
    ];
    families.counts("tidegate_qdisc", &labels, &qdisc.counts);
    if let Some(marks) = qdisc.marks {
        families.counter("tidegate_qdisc_marks_total", "Packets marked (RFC 3168).", &labels, marks);
    }
    for (number, tin) in qdisc.tins.iter().enumerate() {
        let number = number.to_string();
        of_tin(families, &[labels[0], labels[1], labels[2], ("tin", &number)], tin);
    }
}

fn of_tin(families: &mut Families, labels: &Labels<'_>, tin: &Tin) {
    let mut counter = |what: &str, help, value| {
        families.counter(&format!("tidegate_cake_tin_{what}_total"), help, labels, value);
    };
    counter("bytes", "Bytes sent.", tin.bytes);
    counter("packets", "Packets sent.", tin.packets);
    counter("drops", "Packets dropped.", tin.drops);
    counter("marks", "Packets marked (RFC 3168).", tin.marks);
    counter("ack_drops", "Acknowledgements left out.", tin.ack_drops);
    families.gauge("tidegate_cake_tin_backlog", "Bytes that wait.", labels, tin.backlog);
    let seconds = tin.delay_us as f64 / 1e6;
    families.gauge(
        "tidegate_cake_tin_delay_seconds",
        "What packets waited on average lately.",
        labels,
        seconds,
    );
}

fn of_class(families: &mut Families, device: &DeviceSnapshot, class: &ClassSnapshot, netns: &str) {
    let handle = format!("{}:", class.handle.split(':').next().unwrap_or_default());
    let parent = class.parent.as_deref().unwrap_or("root");
    let mut labels = vec![
        ("netns", netns),
        ("device", device.name.as_str()),
        ("handle", handle.as_str()),
        ("parent", parent),
        ("kind", class.kind.as_str()),
        ("classid", class.handle.as_str()),
    ];
    labels.extend(class.name.as_deref().map(|name| ("class_name", name)));
    if let Some(counts) = &class.counts {
        families.counts("tidegate_class", &labels, counts);
    }
    if let Some((lent, borrowed)) = class.lent_borrowed {
        families.counter("tidegate_class_lent_total", "Packets sent by the class's own rate.", &labels, lent);
        families.counter(
            "tidegate_class_borrowed_total",
            "Packets sent by the rate of classes above.",
            &labels,
            borrowed,
        );
    }
}

fn of_waits(families: &mut Families, device: &DeviceSnapshot, seen: &Seen, netns: &str) {
    let mut labels = vec![("netns", netns), ("device", &device.name), ("classid", seen.class.as_str())];
    let class = device.classes.iter().find(|class| class.handle == seen.class);
    labels.extend(class.and_then(|class| class.name.as_deref()).map(|name| ("class_name", name)));
    families.counter(
        "tidegate_marks_total",
        "Packets that left with a new mark (RFC 3168).",
        &labels,
        seen.marked,
    );
    families.counter("tidegate_dropped_total", "Packets dropped.", &labels, seen.dropped);
    let oldest = seen.oldest_ns.unwrap_or(0) as f64 / 1e9;
    families.gauge(
        "tidegate_oldest_packet_seconds",
        "How long the packet has waited that waits longest.",
        &labels,
        oldest,
    );
    let help = "How long packets waited until they left.";
    let family = families.family("tidegate_sojourn_seconds", "histogram", help);
    let up_to = |end: u64| {
        seen.sojourn.iter().filter(|(longest, _)| *longest <= end).map(|(_, count)| count).sum::<u64>()
    };
    for power in BUCKETS {
        // A bucket ends one nanosecond before the next begins, which no float of seconds would show.
        let end = (1_u64 << power) - 1;
        let le = ((end + 1) as f64 / 1e9).to_string();
        family.sample("_bucket", &[&labels[..], &[("le", le.as_str())]].concat(), up_to(end));
    }
    let all = up_to(u64::MAX);
    family.sample("_bucket", &[&labels[..], &[("le", "+Inf")]].concat(), all);
    family.sample("_sum", &labels, seen.waited_ns() as f64 / 1e9);
    family.sample("_count", &labels, all);
}

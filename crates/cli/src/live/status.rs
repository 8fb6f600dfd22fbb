//! `tidegate status`, in words.

use super::options::DeviceOptions;
use crate::exit::CliExit;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use tidegate_apply::status::{Health, LATE_NS, NOTHING, PolicyHealth, healths, where_to};
use tidegate_apply::time::{long, since_1970, utc};
use tidegate_apply::{strings, undone};
use tidegate_daemon::names_from_json;
use tidegate_inspect::shown_class_name;

/// The form of the document: it changes when a member changes its meaning or goes away.
const FORM: u32 = 1;

/// Plays `tidegate status`.
pub(super) fn command(which: &DeviceOptions) -> anyhow::Result<ExitCode> {
    let dev = which.dev.as_deref();
    let all = healths(dev)?;
    let mut documents: Vec<Value> = all.iter().map(Health::document).collect();
    // Where nothing is applied now because what was has been undone.
    let undone = undone()?.into_iter().filter(|(name, undone)| {
        let is_asked =
            dev.is_none_or(|dev| dev == name || strings(&undone["devices"]).iter().any(|of| of == dev));
        is_asked && all.iter().all(|one| one.name != *name)
    });
    documents.extend(undone.map(
        |(name, undone)| json!({"name": name, "condition": "undone", "code": NOTHING, "undone": undone}),
    ));
    if which.json {
        println!("{:#}", json!({"tidegate_status": FORM, "policies": documents}));
    } else if documents.is_empty() {
        crate::output::report(&format!("tidegate applied nothing {}\n", where_to(dev)));
    } else {
        documents.iter().for_each(|one| crate::output::report(&text(one)));
    }
    let worst = all.iter().map(|one| one.condition).max();
    Ok(worst.map_or(CliExit::No, exit).into())
}

/// Nothing applied is a no, as for `systemctl is-active`: a script can write `tidegate status && …`.
fn exit(worst: PolicyHealth) -> CliExit {
    match worst {
        PolicyHealth::Installed => CliExit::Yes,
        PolicyHealth::Waiting | PolicyHealth::InProgress => CliExit::Partial,
        // Drifted, its device or daemon gone or not answering, in trouble.
        _ => CliExit::No,
    }
}

fn text(one: &Value) -> String {
    let name = one["name"].as_str().unwrap_or_default();
    if one["condition"] == "undone" {
        return format!("{name}: nothing is applied\n{}", undone_text(&one["undone"]));
    }
    let mut out = format!("{name}: {}", one["condition"].as_str().unwrap_or_default());
    if let Some(at) = one["applied_at"].as_u64() {
        let ago = since_1970().as_secs().saturating_sub(at);
        out += &format!(", applied {} ({} ago)", utc(at), long(ago));
    }
    let devices = strings(&one["devices"]);
    if devices != [name] {
        out += &format!(", on {}", devices.join(", "));
    }
    let policy = match strings(&one["policy"]) {
        files if files.is_empty() => "not known".to_owned(),
        files => files.join(" "),
    };
    out += &format!("\n  policy: {policy}\n");
    let by = match one["backend"].as_str() {
        Some("user") => match one["packet_io"].as_str() {
            Some(packet_io) => format!("user space, packets by {packet_io}"),
            None => "user space".to_owned(),
        },
        _ => "the kernel".to_owned(),
    };
    out += &format!(
        "  backend: {by}{}\n",
        one["why"].as_str().map(|why| format!(" ({why})")).unwrap_or_default()
    );
    out += &about_classes(&one["names"]);
    out += &about_job(name, one);
    if let Some(left) = one["confirm"]["left_s"].as_f64() {
        out += &format!("  undone in {left:.0} s unless confirmed: tidegate confirm {name}\n");
    }
    out += &about_daemon(name, one);
    for line in strings(&one["drift"]).iter().flat_map(|lines| lines.lines()) {
        out += &format!("    {line}\n");
    }
    // The code for a daemon that does not answer follows from its message.
    if let Some(error) = one["last_error"].as_str().filter(|_| one["condition"] != "daemon not answering") {
        out += &format!("  last error: {error}\n");
    }
    out + &undone_text(&one["undone"])
}

/// The classes that have names, each once; with its device where devices differ in what they call it.
fn about_classes(names: &Value) -> String {
    let names = names_from_json(names);
    let mut devices: BTreeMap<_, BTreeMap<&str, &str>> = BTreeMap::new();
    for ((dev, class), name) in &names {
        devices.entry(*class).or_default().insert(dev, name);
    }
    let mut shown: Vec<String> = Vec::new();
    for (class, of) in devices {
        let differ = of.values().collect::<BTreeSet<_>>().len() > 1;
        // One stands for all where they agree.
        for (dev, name) in of.into_iter().take(if differ { usize::MAX } else { 1 }) {
            let dev = if differ { format!("{dev} ") } else { String::new() };
            shown.push(format!("{dev}{class} ({})", tidegate_text::line(&shown_class_name(name))));
        }
    }
    if shown.is_empty() { String::new() } else { format!("  classes: {}\n", shown.join(", ")) }
}

fn about_job(name: &str, one: &Value) -> String {
    let job = &one["job"];
    let Some(does) = job["does"].as_str() else { return String::new() };
    if job["alive"] == true {
        return format!("  `tidegate {does}` (process {}) is at work\n", job["pid"]);
    }
    format!(
        "  `tidegate {does}` (process {}) was interrupted; `tidegate revert {name}` or `tidegate down \
        {name}` puts it in order\n",
        job["pid"]
    )
}

fn about_daemon(name: &str, one: &Value) -> String {
    let mut out = String::new();
    match one["condition"].as_str() {
        Some("daemon dead") => {
            let again = match one["start_again"].as_str() {
                Some(command) => format!("to start it again: {command}"),
                None if one["applied_at"].is_null() => {
                    format!("start it as it was started by hand, or `tidegate down {name}` forgets it")
                }
                None => format!("a file of its policy is gone; `tidegate down {name}` forgets it"),
            };
            out += &format!("  its process is gone; packets pass unqueued; {again}\n");
        }
        Some("daemon not answering") => {
            let silence = one["last_error"].as_str().unwrap_or("the daemon does not answer");
            out += &format!("  {silence}; `tidegate down {name}` ends it\n");
        }
        _ => {}
    }
    let daemon = &one["daemon"];
    if let Some(pid) = daemon["pid"].as_u64() {
        let ran = daemon["running_ns"].as_u64().unwrap_or(0) / 1_000_000_000;
        let starts = daemon["starts"].as_u64().unwrap_or(1);
        out += &format!("  process {pid}, for {}, started {} since boot\n", long(ran), times(starts));
    }
    if let Some(late) = one["lateness_ns"].as_u64().filter(|late| *late > LATE_NS) {
        let late = late as f64 / 1e6;
        let often = times(daemon["counts"]["late"].as_u64().unwrap_or(0));
        let remedy =
            if daemon["realtime"] == true { "the processor is too busy" } else { "--realtime helps" };
        out += &format!(
            "  warning: it was up to {late:.1} ms late, {often} by more than {} ms; {remedy}\n",
            LATE_NS / 1_000_000
        );
    }
    out + &about_refused(daemon)
}

/// A warning about packets that the devices did not take, and packets lost before they came to the daemon,
/// where they are a thousandth at least of what came.
fn about_refused(daemon: &Value) -> String {
    let received = daemon["counts"]["received"].as_u64().unwrap_or(0);
    let refused = |member: &str, what: &str| {
        let count = daemon["packet_io_counts"][member].as_u64().unwrap_or(0);
        (count > 0 && count.saturating_mul(1000) >= received)
            .then(|| format!("  warning: {what} {count} packets, of {received} received\n"))
    };
    let lines = [
        refused("refused", "the device refused"),
        refused("overruns", "the kernel's queue before the daemon was full and lost"),
    ];
    lines.into_iter().flatten().collect()
}

/// How often, in words.
fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The line about an earlier policy that was undone; nothing where nothing was.
fn undone_text(undone: &Value) -> String {
    let Some(at) = undone["at"].as_u64() else { return String::new() };
    let ago = since_1970().as_secs().saturating_sub(at);
    format!(
        "  undone {} ({} ago): {}; {}\n",
        utc(at),
        long(ago),
        strings(&undone["policy"]).join(" "),
        undone["why"].as_str().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_named_once() {
        assert_eq!(about_classes(&json!({})), "");
        let same = json!({"eth0": {"1:10": "calls", "1:20": "web\u{1b}[31m"}, "lan": {"1:10": "calls"}});
        assert_eq!(about_classes(&same), "  classes: 1:10 (calls), 1:20 (web\\x1b[31m)\n");
        let differ = json!({"eth0": {"1:10": "calls"}, "lan": {"1:10": "web"}});
        assert_eq!(about_classes(&differ), "  classes: eth0 1:10 (calls), lan 1:10 (web)\n");
    }

    #[test]
    fn packets_that_the_device_refused_are_a_warning_if_they_are_many() {
        let of = |refused: u64, overruns: u64| {
            about_refused(&json!({
                "counts": {"received": 5000},
                "packet_io_counts": {"refused": refused, "overruns": overruns},
            }))
        };
        assert_eq!(of(4, 4), "");
        assert_eq!(of(5, 0), "  warning: the device refused 5 packets, of 5000 received\n");
        assert!(of(0, 5).contains("lost 5 packets"));
        assert_eq!(about_refused(&json!({})), "");
    }

    #[test]
    fn numbers_of_times_are_words() {
        assert_eq!([0, 1, 2].map(times), ["0 times", "once", "2 times"]);
    }
}

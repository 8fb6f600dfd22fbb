//! What the machine has now, asked of its own tools.

use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::process::Command;

/// The most qdiscs and classes that are asked for their filters.
const MAX_PARENTS: usize = 4096;

/// The listings of all devices, or of one, with the lines that say of which device they are.
///
/// # Errors
/// There is no tc, or no such device.
pub(super) fn listings(dev: Option<&str>) -> anyhow::Result<String> {
    let mut asked = vec!["-d", "qdisc", "show"];
    if let Some(dev) = dev {
        asked.extend(["dev", dev]);
    }
    let qdiscs = tc(&asked)?;
    let mut out = String::new();
    if let Some(dev) = dev {
        let _ = writeln!(out, "# dev {dev}");
    }
    out.push_str(&qdiscs);
    let mut devices: Vec<String> = Vec::new();
    let mut parents: Vec<(String, String)> = Vec::new();
    for line in qdiscs.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(&["qdisc", kind, handle]) = words.get(..3).and_then(|begin| <&[&str; 3]>::try_from(begin).ok()) else {
            continue;
        };
        let named = words.iter().position(|word| *word == "dev").and_then(|at| words.get(at + 1)).copied();
        let Some(name) = named.or(dev) else { continue };
        if handle == "0:" || matches!(kind, "noqueue" | "mq" | "fq_codel" | "pfifo_fast") && !words.contains(&"parent")
        {
            continue;
        }
        if !devices.iter().any(|known| known == name) {
            devices.push(name.to_owned());
        }
        parents.push((name.to_owned(), handle.to_owned()));
    }
    for name in &devices {
        let classes = tc(&["-d", "class", "show", "dev", name])?;
        let _ = writeln!(out, "# dev {name}");
        out.push_str(&classes);
        let ids = classes.lines().filter_map(|line| line.split_whitespace().nth(2));
        parents.extend(ids.map(|id| (name.clone(), id.to_owned())));
    }
    for (name, parent) in parents.iter().take(MAX_PARENTS) {
        // Kinds without filters say so; that is no fault.
        let Ok(filters) = tc(&["-d", "filter", "show", "dev", name, "parent", parent]) else { continue };
        if !filters.trim().is_empty() {
            let _ = writeln!(out, "# dev {name} parent {parent}");
            out.push_str(&filters);
        }
    }
    Ok(out)
}

/// What tc says.
fn tc(args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("tc").args(args).output().with_context(|| {
        "there is no tc on this machine to ask; install it (Debian: iproute2), or give files that tc wrote elsewhere"
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("tc {}: {}", args.join(" "), said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

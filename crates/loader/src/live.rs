//! The machine's present configuration, from its own tools.

use std::fmt::{self, Write as _};
use std::io;
use std::process::Command;

/// The most qdiscs and classes whose filters are listed.
const MAX_PARENTS: usize = 4096;

/// Why the machine's `tc` gives no listing.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListingsError {
    /// It cannot be run.
    NoTool(io::Error),
    /// tc refuses.
    Refused {
        /// tc's arguments.
        args: String,
        /// tc's message.
        reason: String,
    },
}

impl fmt::Display for ListingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListingsError::NoTool(_) => f.write_str(
                "there is no tc on this machine; install it (Debian: iproute2), or give files that \
                tc wrote elsewhere",
            ),
            ListingsError::Refused { args, reason } => write!(f, "tc {args}: {reason}"),
        }
    }
}

impl std::error::Error for ListingsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ListingsError::NoTool(error) => Some(error),
            ListingsError::Refused { .. } => None,
        }
    }
}

/// The listings of all devices of this machine, or of one, as its `tc` prints them, with lines that name the
/// device: what [`read_text`](crate::read_text) takes. Any user may list them; classes and filters of every
/// qdisc are listed, except below default roots.
///
/// # Errors
/// There is no tc, or no such device.
pub fn live_listings(dev: Option<&str>) -> Result<String, ListingsError> {
    let mut conditions = vec!["-d", "qdisc", "show"];
    if let Some(dev) = dev {
        conditions.extend(["dev", dev]);
    }
    let qdiscs = tc(&conditions)?;
    let mut out = String::new();
    if let Some(dev) = dev {
        let _ = writeln!(out, "# dev {dev}");
    }
    out.push_str(&qdiscs);
    let mut devices: Vec<String> = Vec::new();
    let mut parents: Vec<(String, String)> = Vec::new();
    for line in qdiscs.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(&["qdisc", kind, handle]) =
            words.get(..3).and_then(|begin| <&[&str; 3]>::try_from(begin).ok())
        else {
            continue;
        };
        let named = words.iter().position(|word| *word == "dev").and_then(|at| words.get(at + 1)).copied();
        let Some(name) = named.or(dev) else { continue };
        if handle == "0:"
            || matches!(kind, "noqueue" | "mq" | "fq_codel" | "pfifo_fast") && !words.contains(&"parent")
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
        // Kinds without filters refuse the listing; that is no error.
        let Ok(filters) = tc(&["-d", "filter", "show", "dev", name, "parent", parent]) else { continue };
        if !filters.trim().is_empty() {
            let _ = writeln!(out, "# dev {name} parent {parent}");
            out.push_str(&filters);
        }
    }
    Ok(out)
}

/// tc's output.
fn tc(args: &[&str]) -> Result<String, ListingsError> {
    let output = Command::new("tc").args(args).output().map_err(ListingsError::NoTool)?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(ListingsError::Refused { args: args.join(" "), reason });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

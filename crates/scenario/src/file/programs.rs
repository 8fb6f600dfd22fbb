//! Programs of the user's on real hosts.

use super::network::Network;
use crate::model::{HostProgram, NodeRole};
use crate::tables::{Diagnostic, Keys, TableValue, list, span, text};

/// Most programs of a load.
const MAX_PROGRAMS: usize = 64;

/// The programs of a list; where one runs there is a host.
pub(crate) fn read(value: TableValue<'_>, network: &mut Network) -> Result<Vec<HostProgram>, Diagnostic> {
    let entries = list(value)?;
    if entries.len() > MAX_PROGRAMS {
        let why = format!("{} programs", entries.len());
        return Err(Diagnostic::new(
            value.span(),
            why,
            format!("{MAX_PROGRAMS} at most; let one of them start others"),
        ));
    }
    entries.iter().map(|entry| one(entry, network)).collect()
}

fn one(entry: TableValue<'_>, network: &mut Network) -> Result<HostProgram, Diagnostic> {
    let mut keys = Keys::of(entry)?;
    let run = keys.need("run", "missing command: `run = \"iperf3 -c server\"`")?;
    let on = keys.need("on", "missing host: `on = \"a\"`")?;
    let node = network.known(text(on)?, on.span())?;
    if network.nodes[node].role == NodeRole::Machine {
        let why =
            format!("`{}` is a model of a machine, and no program runs there", network.nodes[node].name);
        return Err(Diagnostic::new(on.span(), why, "name a host: a node without devices"));
    }
    network.nodes[node].role = NodeRole::Host;
    let (start, stop) = (keys.read("start", span)?.unwrap_or_default(), keys.get("stop"));
    let until = stop.map(span).transpose()?;
    if let (Some(value), Some(until)) = (stop, until)
        && until <= start
    {
        let how = "both count from the beginning of the run";
        return Err(Diagnostic::new(value.span(), "its stop is before its start", how));
    }
    keys.finish()?;
    Ok(HostProgram { node, command: text(run)?.to_owned(), start, stop: until, at: run.span() })
}

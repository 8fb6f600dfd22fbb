//! The hosts' names, for programs that look them up in `/etc/hosts`.

use super::error::{Context, Result};
use std::net::IpAddr;
use std::sync::OnceLock;
use tidegate_sys::apart;

const HOSTS: &str = "/etc/hosts";

/// What was put there: the hosts of all runs of a scenario are the same.
static WRITTEN: OnceLock<String> = OnceLock::new();

/// Lets everyone apart know these names, beside `localhost`.
pub(super) fn known<'n>(names: impl Iterator<Item = (&'n str, IpAddr)>) -> Result<()> {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for (name, address) in names {
        text += &format!("{address} {name}\n");
    }
    if WRITTEN.get() == Some(&text) {
        return Ok(());
    }
    apart::cover(HOSTS.as_ref(), &text).context(format!("cannot put the hosts' names into {HOSTS}"))?;
    let _ = WRITTEN.set(text);
    Ok(())
}

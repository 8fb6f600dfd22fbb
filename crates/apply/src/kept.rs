//! Policies that come back after a restart of the machine: those that were applied for good, as the commands
//! that they came to.
//!
//! A policy that waits to be confirmed is not among them: if the machine restarts meanwhile, `tidegate apply
//! --at-boot` applies what was confirmed last.

use crate::options::{ApplyOptions, BackendChoice};
use crate::record::{self, strings, write_whole};
use crate::state::State;
use crate::user;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tidegate_daemon::PacketIoBackend;
use tidegate_daemon::{ErrorContext, Result, ensure};
use tidegate_sys::namespace::NetworkNamespace;

/// Where they are kept by default.
const ROOT: &str = "/var/lib/tidegate";
/// Another place: for tests, and for namespaces of one's own.
const ELSEWHERE: &str = "TIDEGATE_STATE";

/// The place; `None`: this is a network namespace that a restart does not bring back.
fn directory() -> Option<PathBuf> {
    if let Some(elsewhere) = std::env::var_os(ELSEWHERE) {
        return Some(elsewhere.into());
    }
    NetworkNamespace::is_first().then(|| PathBuf::from(ROOT))
}

fn path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

/// Keeps a policy that was applied for good, instead of what was kept under its name.
pub(crate) fn keep(name: &str, state: &State) -> Result<()> {
    let Some(directory) = directory() else { return Ok(()) };
    let path = path(&directory, name);
    let mut kept = json!({});
    for part in ["backend", "policy", "dev", "devices", "commands", "names", "packet_io", "realtime", "force"]
    {
        kept[part] = state.0[part].clone();
    }
    let write = || -> io::Result<()> {
        fs::create_dir_all(&directory)?;
        write_whole(&path, &format!("{kept:#}\n"))
    };
    write().with_context(|| {
        format!("{}: the policy cannot be kept for a restart of the machine", path.display())
    })
}

/// Keeps none under this name.
pub(crate) fn forget(name: &str) -> Result<()> {
    let Some(directory) = directory() else { return Ok(()) };
    for path in [path(&directory, name), directory.join(format!("{name}.sh"))] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| path.display().to_string());
            }
            _ => {}
        }
    }
    Ok(())
}

/// What `tidegate apply --at-boot` applies: each policy, with its name; with a device only those that it is
/// part of.
///
/// # Errors
/// A file is not what tidegate wrote.
pub fn all(dev: Option<&str>) -> Result<Vec<(String, ApplyOptions)>> {
    let directory = directory().context(
        "this network namespace does not come back after a restart (TIDEGATE_STATE names a place)",
    )?;
    let mut all = Vec::new();
    for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let wrong = || format!("{} is not what tidegate wrote", path.display());
            let kept = fs::read_to_string(&path).with_context(wrong)?;
            let kept = record::document(&kept).with_context(wrong)?;
            if dev.is_none_or(|dev| is_about(&kept, &name, dev)) {
                let options = of(&directory, &name, &kept).with_context(wrong)?;
                all.push((name, options));
            }
        }
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(all)
}

/// Is a device part of what is kept under a name?
fn is_about(kept: &Value, name: &str, dev: &str) -> bool {
    name == dev || strings(&kept["devices"]).iter().any(|device| device == dev)
}

fn of(directory: &Path, name: &str, kept: &Value) -> Result<ApplyOptions> {
    ensure!(
        kept["commands"].as_array().is_some_and(|commands| !commands.is_empty()),
        State,
        "it has no commands"
    );
    let script = directory.join(format!("{name}.sh"));
    let from = strings(&kept["policy"]).join(" ");
    let text = user::script_of(kept).replacen(
        '\n',
        &format!("\n# What {} came to when it was applied.\n", from.replace('\n', " ")),
        1,
    );
    write_whole(&script, &text)?;
    Ok(ApplyOptions {
        files: vec![script],
        args: Vec::new(),
        dev: kept["dev"].as_str().map(str::to_owned),
        backend: if kept["backend"] == "user" { BackendChoice::User } else { BackendChoice::Kernel },
        packet_io: PacketIoBackend::named(kept["packet_io"].as_str().unwrap_or_default()).unwrap_or_default(),
        realtime: kept["realtime"] == true,
        sandbox: tidegate_loader::SandboxOptions::default(),
        confirm: Some(0),
        dry_run: false,
        force: kept["force"] == true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_about_each_of_its_devices() {
        let kept = json!({"devices": ["ifb0", "br-lan", "ppp0"]});
        for (dev, expected) in [("ppp0", true), ("br-lan", true), ("eth0", true), ("eth", false), ("", false)]
        {
            assert_eq!(is_about(&kept, "eth0", dev), expected, "{dev}");
        }
        assert!(is_about(&json!({}), "eth0", "eth0") && !is_about(&json!({}), "eth0", "ppp0"));
    }
}

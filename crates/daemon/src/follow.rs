//! A policy that follows devices as they come and go: those of a name pattern, or those of a container, each
//! with a daemon of its own.
//!
//! A policy for machines inside a host ("the edge moves into the host") is written for one device; which
//! device that is, is known only when the container or the virtual machine is started.

use crate::error::{ErrorContext, Result};
use crate::options::DaemonOptions;
use crate::policy::MessageHandler;
use crate::runtime::RuntimeDir;
use crate::watchdog::Heartbeat;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;
use tidegate_sys::link_monitor::{self, LinkInfo, LinkMonitor};
use tidegate_sys::service::Alone;
use tidegate_sys::{interrupt, namespace_thread, poll, process, service};

/// How often it is looked whether a daemon has ended on its own, if nothing is heard of links.
const LOOK: Duration = Duration::from_secs(1);
/// The name prefix of tidegate's own devices: no policy is for them.
const OURS: &str = "tidegate";

/// Which devices are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FollowPattern {
    /// Those whose name matches: `*` matches any letters, `?` one.
    Named(String),
    /// The outer ends of the veth devices of this process's network namespace.
    Of(u32),
}

impl FollowPattern {
    /// What the options ask for; `None`: one device, or the policy's own.
    pub(crate) fn of(options: &DaemonOptions) -> Option<FollowPattern> {
        let pattern =
            || options.dev.clone().filter(|name| name.contains(['*', '?'])).map(FollowPattern::Named);
        options.pid.map(FollowPattern::Of).or_else(pattern)
    }

    /// The names of those that are here now.
    fn here(&self) -> Result<Vec<String>> {
        let links = link_monitor::links().context("the kernel does not list its links")?;
        let is_followed = |link: &LinkInfo| link.up && !link.name.starts_with(OURS) && is_plain(&link.name);
        let up = links.into_iter().filter(is_followed);
        Ok(match self {
            FollowPattern::Named(pattern) => {
                up.filter(|link| fits(pattern, &link.name)).map(|link| link.name).collect()
            }
            FollowPattern::Of(pid) => {
                let ends = ends(*pid)?;
                up.filter(|link| ends.contains(&link.index)).map(|link| link.name).collect()
            }
        })
    }
}

/// The numbers, out here, of the other ends of a process's veth devices; none once it is gone.
fn ends(pid: u32) -> Result<Vec<u32>> {
    let path = format!("/proc/{pid}/ns/net");
    let Ok(namespace) = File::open(&path) else { return Ok(Vec::new()) };
    let inside = namespace_thread::inside(namespace, link_monitor::links)
        .with_context(|| format!("{path} cannot be entered"))??;
    let ends = |link: &LinkInfo| link.on.filter(|_| link.kind == "veth");
    Ok(inside.iter().filter_map(ends).collect())
}

/// Is a name neither a pattern nor an option, where a daemon is started for it? A device may be called
/// `veth*`; its daemon would follow devices itself, and start daemons without end.
fn is_plain(name: &str) -> bool {
    !name.starts_with('-') && !name.contains(['*', '?'])
}

/// Does a name fit a pattern?
fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.chars().next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => {
            fits(&pattern[1..], name) || !name.is_empty() && fits(pattern, &name[first(name)..])
        }
        (Some('?'), Some(_)) => fits(&pattern[1..], &name[first(name)..]),
        (Some(one), Some(other)) => one == other && fits(&pattern[first(pattern)..], &name[first(name)..]),
        _ => false,
    }
}

/// Bytes of the first letter.
fn first(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Follows devices until it is ended, or until the process that owns them is gone.
///
/// # Errors
/// The policy cannot be bound to a device, or nothing more is heard of links.
pub(crate) fn follow(options: &DaemonOptions, which: &FollowPattern, say: MessageHandler<'_>) -> Result<()> {
    ensure!(
        !matches!(which, FollowPattern::Of(pid) if !alive(*pid)),
        Device,
        "there is no process {}; a container's is shown by `docker inspect -f '{{{{.State.Pid}}}}' NAME`",
        options.pid.unwrap_or_default()
    );
    let bell = interrupt::event_fd()?;
    let runtime = RuntimeDir::here()?;
    runtime
        .make()
        .with_context(|| "the directory for locks and sockets cannot be made (TIDEGATE_RUN names another)")?;
    let _known = Known::new(&runtime)?;
    // The user who starts this wants all of them, whatever was removed before.
    let mut here = which.here()?;
    here.iter().for_each(|name| comes_back(&runtime, name));
    let mut bulletin = LinkMonitor::open()?;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut running: BTreeMap<String, Child> = BTreeMap::new();
    // A service manager that cannot be notified is no reason to stop.
    let _ = service::notify("READY=1");
    let (mut heartbeat, mut reported) = (Heartbeat::new(), None);
    loop {
        if let Some(heartbeat) = &mut heartbeat {
            heartbeat.beat();
        }
        // A device that is gone and comes again is another one.
        seen.iter().filter(|name| !here.contains(name)).for_each(|name| comes_back(&runtime, name));
        seen = here.iter().cloned().collect();
        running.retain(|name, child| goes_on(&runtime, (name, child), here.contains(name), say));
        for name in here {
            if !running.contains_key(&name) && !runtime.kept_down(&name).exists() {
                say(&format!("{name} is here"));
                running.insert(name.clone(), one(options, &name)?);
            }
        }
        if reported != Some(running.len()) {
            reported = Some(running.len());
            let _ = service::notify(&format!("STATUS=on {} devices", running.len()));
        }
        if matches!(which, FollowPattern::Of(pid) if !alive(*pid)) {
            break;
        }
        let wait = heartbeat.as_ref().map_or(LOOK, |heartbeat| heartbeat.every().min(LOOK));
        let heard = poll::readable(&[bell.as_fd(), bulletin.as_fd()], wait)?;
        if heard[0] {
            break;
        }
        bulletin.read()?;
        here = which.here()?;
    }
    for child in running.values() {
        process::request_termination(child.id());
    }
    for (_, mut child) in running {
        child.wait()?;
    }
    Ok(())
}

/// This follower's entry among those that `tidegate down` looks for; gone with this.
struct Known {
    path: PathBuf,
    _lock: Alone,
}

impl Known {
    fn new(runtime: &RuntimeDir) -> Result<Known> {
        let path = runtime.follower(std::process::id());
        let lock = RuntimeDir::take(&path).with_context(|| path.display().to_string())?;
        Ok(Known { _lock: lock.with_context(|| format!("{} is locked", path.display()))?, path })
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A device that was taken down is followed again.
fn comes_back(runtime: &RuntimeDir, name: &str) {
    // It is not there as a rule.
    let _ = std::fs::remove_file(runtime.kept_down(name));
}

/// Whether the daemon of a device continues. One whose device is gone is ended, one that has ended on its own
/// is reported.
fn goes_on(
    runtime: &RuntimeDir,
    (name, child): (&str, &mut Child),
    here: bool,
    say: MessageHandler<'_>,
) -> bool {
    match child.try_wait() {
        Ok(None) if here => true,
        Ok(None) => {
            say(&format!("{name} is gone"));
            process::request_termination(child.id());
            let _ = child.wait();
            false
        }
        Ok(Some(_)) if runtime.kept_down(name).exists() => {
            say(&format!(
                "{name} was taken down by `tidegate down`; it is left alone until it comes again, or this \
                is started again"
            ));
            false
        }
        Ok(Some(ended)) => {
            say(&format!("that of {name} ended ({ended})"));
            false
        }
        Err(_) => false,
    }
}

fn alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Starts the daemon of one device.
fn one(options: &DaemonOptions, name: &str) -> Result<Child> {
    let words: Vec<OsString> =
        DaemonOptions { dev: Some(name.to_owned()), pid: None, ..options.clone() }.words();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("daemon").args(words);
    process::die_with_parent(service::without_manager(&mut command))
        .spawn()
        .context("a daemon cannot be started")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_options_are_no_names() {
        for (name, expected) in [
            ("veth0", true),
            ("br-lan", true),
            ("veth*", false),
            ("v?th", false),
            ("-x", false),
            ("*", false),
        ] {
            assert_eq!(is_plain(name), expected, "{name}");
        }
    }

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, fit) in [
            ("veth*", "veth12", true),
            ("veth*", "veth", true),
            ("veth*", "eth0", false),
            ("*", "", true),
            ("tap?", "tap7", true),
            ("tap?", "tap", false),
            ("tap?", "tap17", false),
            ("v*t*7", "veth-tap7", true),
            ("v*t*7", "veth-tap8", false),
            ("größe*", "größe1", true),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }
}

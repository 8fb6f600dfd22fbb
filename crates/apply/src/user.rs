//! Our own qdiscs on the device: a daemon in the background.

use crate::notice::{Notice, NoticeHandler};
use crate::options::ApplyOptions;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tidegate_daemon::Daemon;
use tidegate_daemon::RuntimeDir;
use tidegate_daemon::names_from_json;
use tidegate_daemon::{ANSWER, Client, running_policy};
use tidegate_daemon::{DaemonOptions, PacketIoBackend};
use tidegate_daemon::{ErrorContext, Result, bail, ensure};
use tidegate_loader::name_comments;
use tidegate_sys::{output_file, process};
use tidegate_text::shell_word as quoted;

/// How long it may take to end when it is asked to, to end after SIGTERM, and to be gone after SIGKILL.
const END: Duration = Duration::from_secs(10);
const TERM: Duration = Duration::from_secs(3);
const KILL: Duration = Duration::from_secs(5);
/// How often it is looked whether it is.
const LOOK: Duration = Duration::from_millis(10);

/// Starts a daemon with this policy, or has the running one take it over: its status. `token`: of the job
/// that this is part of.
///
/// # Errors
/// It cannot be run here, in the daemon's words.
pub(crate) fn apply(
    options: &ApplyOptions,
    runtime: &RuntimeDir,
    dev: &str,
    token: &str,
    report: NoticeHandler<'_>,
) -> Result<Value> {
    let ApplyOptions { files, args, dev: bound, packet_io, realtime, sandbox, .. } = options.clone();
    let usual = DaemonOptions { args, dev: bound, packet_io, ..DaemonOptions::of(files) };
    let options = DaemonOptions { realtime, sandbox, started_for: Some(token.to_owned()), ..usual };
    let say = |words: &str| report(Notice::Daemon(words.to_owned()));
    match Daemon::of(runtime, dev) {
        Daemon::Answers(_) => tidegate_daemon::reload(dev, &options, &say),
        Daemon::Dead => tidegate_daemon::start(&options, &say),
        Daemon::Silent(silence) => bail!(Daemon, "{silence}; `tidegate down {dev}` ends it"),
    }
}

/// The packet I/O backend of a device's daemon, if it reports it.
pub(crate) fn packet_io(runtime: &RuntimeDir, dev: &str) -> Option<String> {
    match Daemon::of(runtime, dev) {
        Daemon::Answers(status) => status["packet_io"].as_str().map(str::to_owned),
        _ => None,
    }
}

/// The devices of this namespace whose daemons left a socket, running or dead.
pub(crate) fn running(runtime: &RuntimeDir) -> Vec<String> {
    runtime.devices("sock")
}

/// Ends the daemon of a device in whatever state: by a request first, then by signals. When this returns,
/// packets pass as if it had never been there.
///
/// # Errors
/// It does not end.
pub(crate) fn end(runtime: &RuntimeDir, dev: &str) -> Result<()> {
    let lock = runtime.lock(dev);
    let gone = |pid: u32| RuntimeDir::holder(&lock).is_none() && !process::is_running(pid);
    let Some(pid) = RuntimeDir::holder(&lock) else { return clear(runtime, dev) };
    if follower(runtime, pid).is_some() {
        // Before the daemon ends: its follower would start another one at once.
        output_file::write(&runtime.kept_down(dev), b"")
            .with_context(|| format!("`{dev}` cannot be kept down: {}", runtime.kept_down(dev).display()))?;
    }
    let result = Client::within(dev, ANSWER).and_then(|mut client| client.request(&json!({"ask": "stop"})));
    if result.is_ok() && within(END, || gone(pid)) {
        return clear(runtime, dev);
    }
    // Only a process that has the lock, and is a daemon of tidegate's, gets a signal.
    let ours = || {
        RuntimeDir::holder(&lock) == Some(pid)
            && pid > 1
            && process::words_of(pid).get(1).is_some_and(|word| word == "daemon")
    };
    for (signal, patience) in [(process::request_termination as fn(u32), TERM), (process::kill_tree, KILL)] {
        if ours() {
            signal(pid);
        }
        if within(patience, || gone(pid)) {
            return clear(runtime, dev);
        }
    }
    bail!(Daemon, "the daemon of `{dev}` (process {pid}) does not end, not by SIGKILL either")
}

/// The process that started the daemon with this one and would start it again: `tidegate daemon` with a name
/// pattern or `--pid`.
pub(crate) fn follower(runtime: &RuntimeDir, daemon: u32) -> Option<u32> {
    let parent = process::parent_of(daemon)?;
    runtime.followers().contains(&parent).then_some(parent)
}

/// Ends a follower, which ends the daemons that it started.
///
/// # Errors
/// It does not end.
pub(crate) fn end_follower(runtime: &RuntimeDir, pid: u32) -> Result<()> {
    let gone = || !runtime.followers().contains(&pid) || !process::is_running(pid);
    process::signal_to_end(pid);
    if within(END, gone) {
        return Ok(());
    }
    process::kill_tree(pid);
    ensure!(
        within(KILL, gone),
        Daemon,
        "the daemon that follows devices (pid {pid}) does not end, not by SIGKILL either"
    );
    Ok(())
}

/// Takes away what a daemon that is gone has left behind.
fn clear(runtime: &RuntimeDir, dev: &str) -> Result<()> {
    let path = runtime.lock(dev);
    // A daemon that is just starting has it, and its own socket.
    if let Some(_alone) = RuntimeDir::take(&path).with_context(|| path.display().to_string())? {
        let _ = std::fs::remove_file(runtime.socket(dev));
    }
    Ok(())
}

fn within(patience: Duration, is: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if is() {
            return true;
        }
        if begun.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}

/// Has packets pass as they did before: by a daemon that runs what it ran then, or by none.
///
/// # Errors
/// They do not.
pub(crate) fn go_back(
    (room, dev): (&RuntimeDir, &str),
    devices: &[String],
    before: Option<&Value>,
    report: NoticeHandler<'_>,
) -> Result<()> {
    let Some(before) = before else {
        for of in devices.iter().map(String::as_str).chain([dev]) {
            end(room, of)?;
        }
        return Ok(());
    };
    match Daemon::of(room, dev) {
        Daemon::Answers(_) => {
            if running_policy(room, dev)?
                .is_none_or(|now| now["commands"] != before["commands"] || now["names"] != before["names"])
            {
                Client::within(dev, END)?.request(&request(before)).map(drop)?;
            }
        }
        Daemon::Dead => restart(room, dev, before, report)?,
        // A stuck daemon runs no policy, and takes no commands.
        Daemon::Silent(..) => {
            end(room, dev)?;
            restart(room, dev, before, report)?;
        }
    }
    let now = running_policy(room, dev)?.with_context(|| format!("the daemon of `{dev}` is gone"))?;
    ensure!(
        now["commands"] == before["commands"],
        Daemon,
        "the daemon of `{dev}` does not run what it ran before"
    );
    Ok(())
}

/// What has a daemon run what it ran before.
fn request(before: &Value) -> Value {
    let mut request = before.clone();
    request["ask"] = json!("reload");
    request
}

/// Starts a daemon with the commands of another one that is gone, literally, whatever happened to its files.
fn restart(runtime: &RuntimeDir, dev: &str, before: &Value, report: NoticeHandler<'_>) -> Result<()> {
    let path = runtime.kept_policy(dev);
    output_file::write(&path, script_of(before).as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    let dev_of = before["dev"].as_str().map(str::to_owned);
    let packet_io =
        PacketIoBackend::named(before["packet_io"].as_str().unwrap_or_default()).unwrap_or_default();
    let realtime = before["realtime"] == true;
    let options = DaemonOptions { realtime, dev: dev_of, packet_io, ..DaemonOptions::of(vec![path]) };
    tidegate_daemon::start(&options, &|words| report(Notice::Daemon(words.to_owned())))?;
    // It is to be known by its own files.
    Client::within(dev, END)?.request(&request(before)).map(drop)
}

/// The `commands` of a document, word by word, as a script, with the `names` of their classes.
pub(crate) fn script_of(kept: &Value) -> String {
    let line = |words: &Value| {
        let words = words.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.map(quoted).collect::<Vec<_>>().join(" ")
    };
    let lines = kept["commands"].as_array().into_iter().flatten().map(|words| line(words) + "\n");
    let names = name_comments(&names_from_json(&kept["names"]));
    format!("#!/bin/sh\n{names}set -e\n{}", lines.collect::<String>())
}

/// Files as absolute paths, valid in any directory.
pub(crate) fn absolute(files: &[PathBuf]) -> Vec<String> {
    files.iter().map(|file| std::path::absolute(file).unwrap_or(file.clone()).display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_a_script_word_by_word() {
        let commands = json!([["tc", "qdisc", "show"], ["iptables", "--comment", "it's $HOME"]]);
        assert_eq!(
            script_of(&json!({"commands": commands, "names": {"eth0": {"1:10": "calls"}}})),
            "#!/bin/sh\n# tidegate: class eth0 1:10 calls\nset -e\ntc qdisc show\niptables --comment 'it'\\''s $HOME'\n"
        );
    }
}

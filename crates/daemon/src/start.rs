//! Starting a daemon in the background.

use crate::client::Client;
use crate::error::{ErrorContext, Result};
use crate::names::names_to_json;
use crate::options::DaemonOptions;
use crate::policy::{MessageHandler, captured, read};
use crate::runtime::RuntimeDir;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tidegate_sys::output_file::OutputFile;
use tidegate_sys::service;

/// How long a daemon may take to be ready.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked whether it is.
const LOOK: Duration = Duration::from_millis(10);

/// Starts a daemon in the background and waits until packets pass through it: its status.
///
/// # Errors
/// The policy cannot be run here, its device is another's already, or the daemon ended: in its words.
pub fn start(options: &DaemonOptions, say: MessageHandler<'_>) -> Result<Value> {
    let name = read(options, say)?.name().to_owned();
    let runtime = RuntimeDir::here()?;
    runtime
        .make()
        .with_context(|| "the directory for locks and sockets cannot be made (TIDEGATE_RUN names another)")?;
    if let Some(pid) = RuntimeDir::holder(&runtime.lock(&name)) {
        bail!(
            Busy,
            "`{name}` is shaped by another tidegate already (process {pid}); `tidegate down {name}` ends \
            that one"
        );
    }
    let path = runtime.log(&name);
    let log = OutputFile::create_growing(&path)
        .with_context(|| format!("cannot write {}", path.display()))?
        .try_clone_file()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("daemon").args(options.words()).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    service::without_manager(&mut command);
    let mut child = service::detached(&mut command).spawn().context("the daemon cannot be started")?;
    ready(&mut child, &name).with_context(|| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        format!(
            "the daemon of `{name}` is not running: {}",
            text.trim().trim_start_matches("tidegate daemon: ")
        )
    })
}

/// Waits until a daemon answers.
fn ready(child: &mut Child, name: &str) -> Result<Value> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(ended) = child.try_wait()? {
            bail!(Daemon, "it ended ({ended})");
        }
        if let Ok(status) =
            Client::open(name).and_then(|mut client| client.request(&json!({"ask": "status"})))
            && status["openings"].as_u64() > Some(0)
        {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
    }
    let _ = child.kill();
    bail!(Daemon, "it was not ready after {} s", PATIENCE.as_secs())
}

/// Has the daemon of a device run another policy, or the same files as they are now; returns its reply.
///
/// # Errors
/// There is none, or it cannot: then what ran before still runs.
pub fn reload(dev: &str, options: &DaemonOptions, say: MessageHandler<'_>) -> Result<Value> {
    // The daemon has dropped the privileges that a script's sandbox may need: it gets the script's commands.
    let policy = captured(options, say)?;
    let names = names_to_json(&crate::policy::names(options, &policy.names, &policy.machine.log));
    let commands: Vec<Vec<String>> =
        policy.machine.carried.into_iter().map(|carried| carried.words).collect();
    let request = json!({
        "ask": "reload", "files": options.files, "args": options.args, "dev": options.dev, "commands": commands,
        "packet_io": options.packet_io.name(), "realtime": options.realtime, "names": names,
    });
    Client::open(dev)?.request(&request)
}

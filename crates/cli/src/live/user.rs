//! Our own disciplines on the device: a daemon in the background.

use super::options::Apply;
use crate::daemon::{self, DoorKind, client::Client};
use serde_json::{Value, json};

/// Starts a daemon with this policy, or has the running one take it over: its status.
///
/// # Errors
/// It cannot be run here, in the daemon's words.
pub(super) fn apply(options: &Apply, dev: &str) -> anyhow::Result<Value> {
    let options = daemon::Options {
        files: options.files.clone(),
        args: options.args.clone(),
        dev: options.dev.clone(),
        pid: None,
        door: DoorKind::Auto,
        memory: 100_000,
        realtime: false,
        strict: false,
    };
    match status(dev) {
        Some(_) => daemon::reload(dev, &options),
        None => daemon::start(&options),
    }
}

/// What the daemon of a device says of itself; `None`: there is none.
pub(super) fn status(dev: &str) -> Option<Value> {
    Client::open(dev).and_then(|mut client| client.ask(&json!({"ask": "status"}))).ok()
}

/// Ends the daemon of a device.
///
/// # Errors
/// There is none, or it does not end.
pub(super) fn stop(dev: &str) -> anyhow::Result<()> {
    daemon::stop(dev)
}

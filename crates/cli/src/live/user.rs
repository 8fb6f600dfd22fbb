//! Our own disciplines on the device: a daemon in the background.

use super::options::Apply;
use crate::daemon::{self, client::Client};
use serde_json::{Value, json};

/// Starts a daemon with this policy, or has the running one take it over: its status.
///
/// # Errors
/// It cannot be run here, in the daemon's words.
pub(super) fn apply(options: &Apply, dev: &str) -> anyhow::Result<Value> {
    let Apply { files, args, dev: bound, door, .. } = options.clone();
    let options = daemon::Options::usual(files, args, bound, door);
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

/// Has the daemon run what it ran before.
///
/// # Errors
/// There is none, or it cannot: then what it runs now goes on.
pub(super) fn back(dev: &str, previous: &Value) -> anyhow::Result<()> {
    let request = json!({
        "ask": "reload", "files": previous["policy"], "args": previous["args"], "dev": previous["dev"],
        "commands": previous["commands"],
    });
    Client::open(dev)?.ask(&request).map(drop)
}

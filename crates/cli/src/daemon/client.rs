//! Whoever asks a running daemon something.

use super::room::Room;
use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tidegate_os::unix;

/// How long a daemon may take for an answer, unless the caller says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// A conversation with the daemon of a device.
pub(crate) struct Client {
    dev: String,
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Calls the daemon that shapes a device.
    ///
    /// # Errors
    /// None does, or we may not.
    pub(crate) fn open(dev: &str) -> anyhow::Result<Client> {
        Client::within(dev, PATIENCE)
    }

    /// The same; the daemon may take so long to take the call, and for each answer.
    ///
    /// # Errors
    /// As for [`Client::open`].
    pub(crate) fn within(dev: &str, patience: Duration) -> anyhow::Result<Client> {
        let path = Room::here()?.socket(dev);
        let stream = unix::connect(&path, patience).with_context(|| {
            format!("no daemon of tidegate answers for `{dev}` ({}); `tidegate status` tells what runs", path.display())
        })?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Client { dev: dev.to_owned(), stream: BufReader::new(stream) })
    }

    /// Asks, and takes the first line of the answer.
    ///
    /// # Errors
    /// The daemon is gone, or refuses: in its words.
    pub(crate) fn ask(&mut self, request: &Value) -> anyhow::Result<Value> {
        self.say(request)?;
        self.next()?.with_context(|| format!("the daemon of `{}` ended in the middle of its answer", self.dev))
    }

    /// Says something, whose answer is taken line by line.
    ///
    /// # Errors
    /// The daemon is gone.
    pub(crate) fn say(&mut self, request: &Value) -> anyhow::Result<()> {
        let line = format!("{request}\n");
        self.stream
            .get_mut()
            .write_all(line.as_bytes())
            .with_context(|| format!("the daemon of `{}` is gone", self.dev))
    }

    /// The next line of an answer; `None`: it is over.
    ///
    /// # Errors
    /// The daemon says nothing in time, no JSON, or why it refuses.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Value>> {
        let mut line = String::new();
        let told = self.stream.read_line(&mut line);
        if told.with_context(|| format!("the daemon of `{}` does not answer", self.dev))? == 0 {
            return Ok(None);
        }
        let value: Value =
            serde_json::from_str(&line).with_context(|| format!("the daemon of `{}` speaks no JSON", self.dev))?;
        if let Some(error) = value["error"].as_str() {
            let remedy = value["remedy"].as_str().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            bail!("{error}{remedy}");
        }
        Ok(Some(value))
    }
}

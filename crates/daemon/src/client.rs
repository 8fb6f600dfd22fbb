//! Clients of a running daemon.

use crate::error::{ErrorContext, Result};
use crate::runtime::RuntimeDir;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use tidegate_sys::unix;
use tidegate_sys::until::Until;

/// How long a daemon may take for a reply, by default.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a daemon may take to report its status before it counts as not answering.
pub const ANSWER: Duration = Duration::from_secs(2);

/// A conversation with the daemon of a device.
pub struct Client {
    dev: String,
    /// How long each answer may take; the first one together with the call.
    patience: Duration,
    has_prompted: bool,
    stream: BufReader<Until<UnixStream>>,
}

impl Client {
    /// Calls the daemon that shapes a device.
    ///
    /// # Errors
    /// None does, or we may not.
    pub fn open(dev: &str) -> Result<Client> {
        Client::within(dev, PATIENCE)
    }

    /// As `open`, with a limit on the time for the connection and the first reply together, and for each
    /// reply after that.
    ///
    /// # Errors
    /// As for [`Client::open`].
    pub fn within(dev: &str, patience: Duration) -> Result<Client> {
        let path = RuntimeDir::here()?.socket(dev);
        let end = Instant::now() + patience;
        let stream = unix::connect(&path, patience).with_context(|| {
            format!(
                "no tidegate daemon answers for `{dev}` ({}); `tidegate status` shows what runs",
                path.display()
            )
        })?;
        let stream = BufReader::new(Until::new(stream, end));
        Ok(Client { dev: dev.to_owned(), patience, has_prompted: false, stream })
    }

    /// Asks, and takes the first line of the answer.
    ///
    /// # Errors
    /// The daemon is gone, or refuses: in its words.
    pub fn request(&mut self, request: &Value) -> Result<Value> {
        self.send(request)?;
        self.next_line()?
            .with_context(|| format!("the daemon of `{}` ended in the middle of its answer", self.dev))
    }

    /// Says something, whose answer is taken line by line.
    ///
    /// # Errors
    /// The daemon is gone.
    pub fn send(&mut self, request: &Value) -> Result<()> {
        if std::mem::replace(&mut self.has_prompted, true) {
            self.reset_wait();
        }
        let line = format!("{request}\n");
        self.stream
            .get_mut()
            .write_all(line.as_bytes())
            .with_context(|| format!("the daemon of `{}` is gone", self.dev))
    }

    /// The next line of an answer; `None`: it is over.
    ///
    /// # Errors
    /// The daemon does not reply in time, or with no JSON, or refuses with a reason.
    pub fn next_line(&mut self) -> Result<Option<Value>> {
        let mut line = String::new();
        let result = self.stream.read_line(&mut line);
        if result.with_context(|| format!("the daemon of `{}` does not answer", self.dev))? == 0 {
            return Ok(None);
        }
        self.reset_wait();
        let value: Value = serde_json::from_str(&line)
            .with_context(|| format!("the daemon of `{}` speaks no JSON", self.dev))?;
        if let Some(error) = value["error"].as_str() {
            let remedy = value["remedy"].as_str().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            bail!(Daemon, "{error}{remedy}");
        }
        Ok(Some(value))
    }

    fn reset_wait(&mut self) {
        self.stream.get_mut().set_end(Instant::now() + self.patience);
    }
}

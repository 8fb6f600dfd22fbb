//! A session with a server whose results are kept when it breaks off.

use std::sync::atomic::AtomicBool;
use tidegate_measure::capacity::HEADERS;
use tidegate_measure::stream::{Exchange, ExchangeResult, PacketRecord, Path, Stream, StreamTrace};
use tidegate_probe_wire::Limits;
use tidegate_prober::{Error, ServerSession, ServerTarget};

/// By how much an IPv6 header is longer than one of IPv4, bytes.
const IPV6_MORE: u32 = 20;

/// A server. Once an exchange was cut off, or the server is gone after one that was carried out, the
/// following exchanges send nothing and return why: the estimator then ends with what it has.
pub struct KeptPath {
    far: ServerSession,
    cut: Option<String>,
    is_begun: bool,
}

impl KeptPath {
    /// Begins a session; setting the flag that `stop` returns ends a running exchange.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn connect(target: &ServerTarget, stop: fn() -> &'static AtomicBool) -> Result<KeptPath, Error> {
        let mut far = ServerSession::connect(target)?;
        far.stop_on(stop());
        Ok(KeptPath { far, cut: None, is_begun: false })
    }

    /// Are its packets those of IPv6?
    pub fn is_ipv6(&self) -> bool {
        self.far.address().is_ipv6()
    }

    /// What the server lets a session do.
    pub fn limits(&self) -> &Limits {
        self.far.limits()
    }

    /// Bytes of the IP and UDP headers of its packets.
    pub fn header_bytes(&self) -> u32 {
        HEADERS + if self.is_ipv6() { IPV6_MORE } else { 0 }
    }

    /// Why it broke off, if it did.
    pub fn cut(&self) -> Option<String> {
        self.cut.clone()
    }

    /// What this machine did to the measurement.
    pub fn caveats(&self) -> Vec<String> {
        self.far.caveats()
    }
}

impl Path for KeptPath {
    type Error = Error;

    fn carry_out(&mut self, exchange: &Exchange) -> Result<ExchangeResult, Error> {
        if self.cut.is_some() {
            return Ok(unsent(exchange, self.cut.clone()));
        }
        match self.far.carry_out(exchange) {
            Ok(outcome) => {
                self.is_begun = true;
                self.cut.clone_from(&outcome.cut);
                Ok(outcome)
            }
            Err(error) if self.is_begun => {
                self.cut = Some(error.to_string());
                Ok(unsent(exchange, self.cut.clone()))
            }
            Err(error) => Err(error),
        }
    }
}

/// An exchange of which nothing was sent.
fn unsent(exchange: &Exchange, cut: Option<String>) -> ExchangeResult {
    let course = |stream: &Stream| StreamTrace {
        stream: stream.clone(),
        packets: vec![PacketRecord::default(); usize::try_from(stream.packets()).unwrap_or(0)],
    };
    ExchangeResult { up: course(&exchange.up), down: course(&exchange.down), cut, is_reported: false }
}

//! The remote end of a path: a `tidegate serve`, reached over real sockets.
//!
//! ```text
//! carry_out ── Plan ─▶ server            sender thread ── packets on schedule ─▶
//!    the calling thread: ◀── packets, stamped by the kernel; ◀── the server's messages, until its report is complete
//! ```

mod exchange;
mod handshake;
mod session;

pub use session::ServerSession;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tidegate_measure::stream::{Exchange, ExchangeResult, Path};
use tidegate_probe_wire::Limits;

use crate::clock::ProbeClock;
use crate::error::Error;
use crate::flow::FlowOpener;
use crate::target::ServerTarget;

/// How late one packet in a hundred may leave before that is worth a word, ns.
const LATE_NS: u64 = 2_000_000;

impl ServerSession {
    /// Begins a session.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub fn connect(target: &ServerTarget) -> Result<ServerSession, Error> {
        handshake::connect(target)
    }

    /// Setting this flag ends the exchange that is going on: what arrived so far is its result.
    pub fn stop_on(&mut self, flag: &'static AtomicBool) {
        self.stop = Some(flag);
    }

    /// What the server lets us do.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Where the server is.
    pub fn address(&self) -> IpAddr {
        self.server.ip()
    }

    /// The round trip of the handshake, ns: about what the path takes when it is idle.
    pub fn rtt_ns(&self) -> u64 {
        self.rtt_ns
    }

    /// The clock that our side's times are of.
    pub fn clock(&self) -> &ProbeClock {
        &self.clock
    }

    /// How to open TCP flows of this session, from any thread.
    pub fn flow(&self) -> FlowOpener {
        FlowOpener {
            clock: self.clock.clone(),
            server: self.server,
            session: self.session,
            key: self.key.clone(),
            next: Arc::clone(&self.flows),
        }
    }

    /// What this machine itself did to the measurement, in words: packets that left late or found no space in
    /// our socket, clocks that were set.
    pub fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        for (who, late) in ["this machine", "the server"].into_iter().zip(self.late) {
            if late > LATE_NS {
                let ms = late as f64 / 1e6;
                caveats.push(format!("{who} was too busy: one packet in a hundred left {ms:.1} ms late"));
            }
        }
        if self.lost_here > 0 {
            caveats.push(format!(
                "{} packets came faster than this machine took them and were lost in its own socket: losses \
                downwards are too high",
                self.lost_here
            ));
        }
        if self.clock.steps() > 0 {
            caveats.push(format!(
                "this machine's date was set {} times meanwhile; the times of packets that came just then \
                are less exact",
                self.clock.steps()
            ));
        }
        caveats
    }
}

impl Path for ServerSession {
    type Error = Error;

    fn carry_out(&mut self, exchange: &Exchange) -> Result<ExchangeResult, Error> {
        if let Some(why) = &self.broken {
            return Err(Error::Gone(why.clone()));
        }
        exchange::carry_out(self, exchange)
    }
}

//! A session with a server.

use crate::clock::ProbeClock;
use crate::line::Line;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tidegate_probe_wire::{Limits, SessionKey};
use tidegate_sys::datagrams::{DatagramSocket, ReceiveBuffers};

/// A server that we have a session with.
pub struct ServerSession {
    pub(super) clock: ProbeClock,
    pub(super) line: Line,
    pub(super) socket: Arc<DatagramSocket>,
    pub(super) room: ReceiveBuffers,
    pub(super) server: SocketAddr,
    pub(super) session: u32,
    pub(super) key: SessionKey,
    /// Of the flow that begins next.
    pub(super) flows: Arc<AtomicU32>,
    pub(super) limits: Limits,
    /// The handshake's round trip, ns.
    pub(super) rtt_ns: u64,
    /// How many exchanges there were, modulo 256.
    pub(super) exchange: u8,
    /// Packets that found no space in our own socket.
    pub(super) lost_here: u32,
    /// How late one packet in a hundred left, upwards and downwards, in the worst exchange, ns.
    pub(super) late: [u64; 2],
    /// Why there is no going on, once that is so.
    pub(super) broken: Option<String>,
    pub(super) stop: Option<&'static AtomicBool>,
}

impl fmt::Debug for ServerSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Far").field("server", &self.server).finish_non_exhaustive()
    }
}

impl ServerSession {
    /// What is needed to have packets sent back: our socket, the server's address, the session's number and
    /// its key.
    pub(crate) fn echo(&self) -> (Arc<DatagramSocket>, SocketAddr, u32, SessionKey) {
        (Arc::clone(&self.socket), self.server, self.session, self.key.clone())
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

//! What a server lets happen, and why it refuses what is beyond.

use core::fmt;

use crate::message::Limits;

/// What a server lets happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Connections at once, whatever they are.
    pub calls: usize,
    /// Of them those of strangers: they are not authenticated, and are no flow of a session. One more
    /// replaces the stranger that waits longest in the most crowded neighbourhood, so that strangers can only
    /// crowd out each other.
    pub strangers: usize,
    /// Connections at once from one address (of IPv6: from one /64).
    pub calls_each: usize,
    /// Sessions at once.
    pub sessions: usize,
    /// Sessions at once from one address (of IPv6: from one /64).
    pub sessions_each: usize,
    /// Handshakes at once from one address, after a while without any.
    pub handshakes: u32,
    /// Then one every so often, ns.
    pub handshake_every_ns: u64,
    /// How long a handshake may take, ns.
    pub patience_ns: u64,
    /// How long a session may do nothing, ns.
    pub idle_ns: u64,
    /// How long a client may be silent during an exchange, ns: a stream to a client that is gone must end.
    pub silence_ns: u64,
    /// How long a session may last, ns.
    pub longest_ns: u64,
    /// Packets remembered, of all sessions together.
    pub packets: u64,
    /// The limits that each session is given.
    pub limits: Limits,
}

impl Default for Quotas {
    fn default() -> Quotas {
        const SECOND: u64 = 1_000_000_000;
        Quotas {
            calls: 256,
            strangers: 64,
            calls_each: 80,
            sessions: 16,
            sessions_each: 4,
            handshakes: 10,
            handshake_every_ns: 2 * SECOND,
            patience_ns: 5 * SECOND,
            idle_ns: 60 * SECOND,
            silence_ns: 20 * SECOND,
            longest_ns: 3600 * SECOND,
            packets: 4_000_000,
            limits: Limits {
                bits_per_second: 1_000_000_000,
                packets: 1_000_000,
                longest_ns: 600 * SECOND,
                flows: 16,
            },
        }
    }
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Too many connections.
    Calls,
    /// Too many connections from this address.
    CallsEach,
    /// Too many handshakes from this address.
    Handshakes,
    /// Too many sessions.
    Sessions,
    /// Too many sessions from this address.
    SessionsEach,
    /// Not the token.
    Token,
    /// Not allowed in this state.
    OutOfTurn,
    /// Not a message.
    Malformed,
    /// Another version of the protocol.
    Version,
    /// A stranger's place was needed for another.
    Crowded,
    /// A congestion control that the server does not have loaded.
    Control,
    /// It wants to send faster than it may.
    Rate,
    /// More packets than there may be.
    Packets,
    /// Longer than it may be.
    Long,
    /// Packets should go down, but no UDP hello has come.
    NoHello,
    /// The server remembers as many packets as it can.
    Memory,
    /// A flow of an unknown session, or without its key, or repeated.
    Secret,
    /// Too many flows.
    Flows,
    /// It took too long, or did nothing for too long.
    Slow,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Calls => "the server has as many connections as it takes; try again later",
            Reason::CallsEach => "as many connections from this address as there may be",
            Reason::Handshakes => "too many handshakes from this address; wait a minute",
            Reason::Sessions => "the server measures with as many as it can; try again later",
            Reason::SessionsEach => "as many sessions from this address as there may be; end one of them",
            Reason::Token => "the token is not the server's",
            Reason::OutOfTurn => "that is not what is said now",
            Reason::Malformed => "that is not a message of tidegate's; does another version speak?",
            Reason::Version => {
                "the server speaks version 2 of tidegate's protocol and you another: have the same tidegate \
                at both ends"
            }
            Reason::Crowded => "others needed the place before you had proved yourself; try again",
            Reason::Control => {
                "the server does not have this congestion control loaded (sysctl \
                net.ipv4.tcp_available_congestion_control there)"
            }
            Reason::Rate => "more bits per second than the server allows a session",
            Reason::Packets => "more packets than the server allows in a stream",
            Reason::Long => "longer than the server allows",
            Reason::NoHello => {
                "no UDP came through from the address that connected; is its port open for \
            UDP as well?"
            }
            Reason::Memory => "the server remembers as many packets as it can; try again later",
            Reason::Secret => "no session of this address has said that",
            Reason::Flows => "more flows than the server allows a session",
            Reason::Slow => "nothing was said for too long",
        })
    }
}

impl core::error::Error for Reason {}

#![no_std]
#![forbid(unsafe_code)]
//! The protocol between the two ends of a measurement: messages over a TCP connection, packets over UDP, and
//! the server's sessions.
//!
//! ```text
//! client                                   server
//!   Hello (padded: the longest)     ──▶
//!                                   ◀──    Challenge (its draw, whether it wants a token)
//!   Proof (HMAC of both draws)      ──▶
//!                                   ◀──    Welcome (its own proof, the session's number, its limits)
//!   UDP hello of the session        ──▶
//!                                   ◀──    the same bytes: streams go to where this came from, and nowhere else
//!   Plan (an exchange)              ──▶
//!                                   ◀──    Go, or Refused with the reason
//!   UDP packets                    ◀──▶    UDP packets
//!   Sent, or earlier Stop           ──▶
//!                                   ◀──    Seen…, Departed…, Told
//! ```
//! Everything after the handshake is sealed by keys of the session (`auth.rs`): messages, packets, flows and
//! their samples. Before a valid proof the server sends fewer bytes than it received, so it cannot be used to
//! flood others (amplification); silent clients are dropped. Nothing here has a clock, a socket or a random
//! source: time, addresses and draws are arguments. All input is bounded, and each refusal has a [`Reason`]
//! and a counter.

extern crate alloc;

mod account;
mod auth;
mod bytes;
mod guess;
mod message;
mod packet;
mod quotas;
mod sessions;

pub use account::{Departures, PacketArrival, PacketArrivals};
pub use auth::{NONCE_LEN, PROOF, Proof, Role, Seal, SessionKey, TAG, Token};
pub use bytes::Malformed;
pub use message::{ControlMessage, FIRST_MOST, FlowDirection, FlowPlan, Limits, MOST, TcpSample};
pub use packet::{PacketHeader, ProbePacketKind};
pub use quotas::{Quotas, Reason};
pub use sessions::{ConnectionId, PacketResponse, ServerStats, SessionAction, Sessions, Start};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The default port of a server, TCP and UDP.
pub const PORT: u16 = 8787;

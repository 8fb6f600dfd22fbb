#![no_std]
#![forbid(unsafe_code)]
//! What the two ends of a measurement say to each other: messages over a TCP connection, packets over UDP,
//! and the serving end's sessions.
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
//!   Sent                            ──▶
//!                                   ◀──    Seen…, Departed…, Told
//! ```
//! Everything after the handshake is sealed by keys of the session (`auth.rs`): messages, packets, flows and
//! their samples. Before a proof was seen the server says less than it was told, so no one can have it flood
//! someone else; anyone who says nothing is forgotten. Nothing here has a clock, a socket or a source of
//! chance: time, addresses and draws are arguments. All that is taken in has a bound, and what is refused has
//! a [`Reason`] and a counter.

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

/// The port that a server listens at if no one says otherwise, TCP and UDP.
pub const PORT: u16 = 8787;

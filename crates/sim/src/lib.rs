#![no_std]
#![forbid(unsafe_code)]
//! Links, hosts and their TCP in virtual time.
//!
//! A [`Net`] holds one [`Forwarder`], the thing under test, and around it links, TCP flows, pings and
//! open-loop sources. It has no clock, no IO and no randomness but its seed: the same calls give the same
//! run, to the byte.

extern crate alloc;

mod dumbbell;
mod event;
mod foreign;
mod gateway_machine;
mod home;
mod link;
mod machine;
mod machines;
mod net;
mod observe;
mod passive;
pub mod path;
mod probe;
mod tcp;
mod tcp_flow;
mod transaction;
mod transport_meta;
mod wire;
pub mod world;

pub use dumbbell::{Dumbbell, DumbbellSpec, dumbbell};
pub use foreign::Arrived;
pub use gateway_machine::GatewayMachine;
pub use home::{
    Bulk, DatagramTraffic, FlowResult, Home, HomeResult, HomeSpec, HomeTraffic, Local, Parties, PingTraffic,
    TrafficResult, TransactionTraffic, wire,
};
pub use link::{
    Cells, Impairment, LinkAdjustment, LinkFraming, LinkId, LinkPeer, LinkQueue, LinkSpec, LinkStats,
    LossModel, Reorder, Trace,
};
pub use machine::{
    Bands, DropRecord as Lost, DropTail, Forwarder, Limit, NoMachine, OfferResult, Origin, Port,
    ReceiveResult,
};
pub use machines::Machines;
pub use net::Net;
pub use observe::{SojournEnd, SojournRecord};
pub use passive::{TcpSighting, TcpSign};
pub use probe::{ArrivalProcess, EchoSample, ProbePacket, ProbeSpec, Sizes, SourceSpec, SourceStats};
pub use tcp::cc::CongestionControl;
pub use tcp_flow::{EcnCodepoint, FlowSample, FlowSpec, FlowStats};
pub use transaction::{Completion, DialogueTurn, Lookup, Transaction, TransactionSpec};
pub use transport_meta::{FlowId, PathId, ProbeId, SourceId, TransactionId};
pub use wire::Ends;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

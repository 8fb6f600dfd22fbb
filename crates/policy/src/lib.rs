#![no_std]
#![forbid(unsafe_code)]
//! The typed model of every operation of tc and netfilter's tables, and of links.
//!
//! A configuration is a sequence of [`Op`]s, because that is what has meaning in Linux: `change` with the
//! same words refills a token bucket, `replace` with another handle drops what was queued. Front ends
//! (`syntax`) make operations, the `gateway` carries them out and answers with [`dump`]s, which `syntax`
//! prints in tc's words. The values here are those that cross the netlink boundary: what tc computes in user
//! space (ticks, size tables) is already computed.

extern crate alloc;

mod action;
mod error;
mod filter;
mod kind;
mod link;
mod names;
mod op;
mod rate;

pub mod dump;
pub mod netfilter;
pub mod spec;

pub use action::{
    Act, Action, CardCounts, Connmark, Control, Csum, Ct, CtNat, Ctinfo, CtinfoCounts, Gact, Gate, GateClock,
    GateEntry, GeneveOption, Mirred, Mpls, MplsFields, MplsHow, Nat, Only, PacketType, Pedit, PeditAt,
    PeditHeader, PeditKey, Police, RandomGact, SampleAction, Simple, Skbedit, Skbmod, TunnelFields,
    TunnelHow, TunnelKey, TunnelOptions, Vlan, VlanHow, VlanTag,
};
pub use error::{Errno, TcError};
pub use filter::{
    BasicParams, CanRule, CgroupParams, Ematch, EmatchCompare, FilterParams, FlowKeySet, FlowMode,
    FlowOptions, FlowParams, FlowerField, FlowerKey, FlowerParams, FwParams, Indev, Layer, MatchallParams,
    MetaId, MetaValue, RouteParams, Term, U32Key, U32Offset, U32OffsetField, U32Params, Width,
};
pub use kind::*;
pub use link::{LinkDriver, LinkOp, RawLink, Tunnel, TunnelMode};
pub use op::{ActionId, ActionsOp, ChainOp, ClassOp, FilterOp, Op, QdiscOp, SharedBlocks, Verb};
pub use rate::{Estimator, LinkLayer, RateSpec, SizeTable, Ticks};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

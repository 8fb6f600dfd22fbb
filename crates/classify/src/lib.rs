#![no_std]
#![forbid(unsafe_code)]
//! Which class a packet takes: filters on qdiscs and classes, and the tables of netfilter that mark packets
//! before them.
//!
//! A [`FilterList`] is attached to each qdisc (and to each class of HTB and HFSC). [`FilterList::classify`]
//! evaluates it: the first filter that matches decides, in the order of preference, then in the kind's own
//! order.

extern crate alloc;

mod actions;
mod basic;
mod blocks;
mod cgroup;
pub mod conntrack;
mod context;
mod cost;
mod entries;
mod flow;
mod flower;
mod fw;
mod headers;
mod list;
mod matchall;
pub mod netfilter;
mod pref;
mod query;
mod route;
mod shared;
mod u32;

pub use actions::{Actions, Policers};
pub use blocks::Blocks;
pub use context::{ClassifyContext, DumpContext};
pub use cost::{Cost, Price};
pub use list::{FilterList, flushes_all};
pub use query::{ActionInput, FilterRandom, FilterVerdict, Outgoing, Owner, Redirect};
pub use shared::Shared;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

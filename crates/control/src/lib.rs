#![no_std]
#![forbid(unsafe_code)]
//! Controllers of a shaper's rates, for lines whose capacity varies.
//!
//! A controller has no clock and does no IO: it hears [`ControlEvent`]s with their time, and answers with
//! [`RateDecision`]s, each with its [`ControlReason`].

extern crate alloc;

mod baseline;
mod cake_autorate;
mod controller;
mod fixed;
mod jitter;
mod limits;
mod own;
mod pid;
mod queue;
mod settings;
mod sqm_autorate;

pub use cake_autorate::{CakeAutorate, CakeAutorateSettings};
pub use controller::{
    ControlEvent, ControlReason, Controlled, OneWayDelays, PerDirection, ProbeReply, RateController,
    RateDecision, RateDirection, RateLimits, ShaperCounters,
};
pub use fixed::{FixedRates, KnownCapacity};
pub use limits::{
    BadLimitRecord, LEARNED_HOURS, LearnedLimits, LearnedRates, LearningController, LearnsLimits,
    MAX_RECORD_BYTES,
};
pub use own::{OwnController, OwnSettings};
pub use pid::{PidController, PidSettings};
pub use settings::BadControlSetting;
pub use sqm_autorate::{SqmAutorate, SqmAutorateSettings};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! police: a rate that packets may come at, and what happens to those that come faster.

use super::Control;
use crate::rate::{RateSpec, Ticks};
use tidegate_packet::Rate;

/// Parameters of a policer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Police {
    /// The rate, with what each packet costs at it.
    pub rate: Option<RateSpec>,
    /// How much may come at once: as time at the rate.
    pub burst: Ticks,
    /// The longest packet that may pass, bytes.
    pub mtu: u32,
    /// The rate of the peak.
    pub peak: Option<RateSpec>,
    /// Packets pass while the rate estimator of the filter's packets shows less than this.
    pub average: Option<Rate>,
    /// Packets per second.
    pub packets: u64,
    /// How many packets may come at once: as time, in ticks.
    pub packets_burst: u64,
    /// What is done with packets that come too fast.
    pub exceed: Control,
    /// What is done with the others; in a dump `None`: they pass.
    pub conform: Option<Control>,
}

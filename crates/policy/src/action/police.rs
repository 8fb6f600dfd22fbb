//! police: a rate that packets may come at, and what happens to those that come faster.

use super::control::Control;
use crate::rate::{RateSpec, Ticks};
use tidegate_packet::Rate;

/// police: a rate that packets may come at, and what is done with those that come faster (tc-police(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Police {
    /// The rate, with what each packet costs at it.
    pub rate: Option<RateSpec>,
    /// The bucket: how long a burst of its size takes at the rate, in ticks of the packet scheduler (64 ns).
    pub burst: Ticks,
    /// The longest packet that may conform, in bytes.
    pub mtu: u32,
    /// The peak rate (`peakrate`): the bucket of one MTU that packets must fit beside the other.
    pub peak: Option<RateSpec>,
    /// Packets conform while the rate estimator shows less than this (`avrate`).
    pub average: Option<Rate>,
    /// Packets per second that may pass (`pkts_rate`); 0: not by packets. The kernel refuses it beside a rate
    /// in bytes.
    pub packets: u64,
    /// How many packets may come at once: how long they take at that rate, in ticks (64 ns).
    pub packets_burst: u64,
    /// What is done with packets that come too fast.
    pub exceed: Control,
    /// What is done with packets that conform; in a dump `None`: they pass.
    pub conform: Option<Control>,
}

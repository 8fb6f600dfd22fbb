//! gate: packets pass while a gate is open.

use super::control::Control;
use alloc::vec::Vec;

/// gate: packets pass while a gate is open, by a schedule (tc-gate(8), IEEE 802.1Qci).
///
/// In a change, `None` and an empty schedule keep what there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// The stream's priority that a card would look at; -1: any.
    pub priority: Option<i32>,
    /// The clock of the schedule.
    pub clock: Option<GateClock>,
    /// Flags for cards.
    pub flags: Option<u32>,
    /// When the schedule began or begins, in nanoseconds of its clock.
    pub base_ns: Option<i64>,
    /// The cycle that its start is aligned to, in nanoseconds; 0: the sum of the intervals.
    pub cycle_ns: Option<u64>,
    /// By how much a card may extend a cycle.
    pub extension_ns: Option<u64>,
    /// The states of the gate, one after the other, and again from the first.
    pub schedule: Vec<GateEntry>,
    /// How a packet continues that passes.
    pub control: Control,
}

/// The clocks that a schedule may follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GateClock {
    /// Seconds since 1970 that an administrator may set.
    Realtime,
    /// Time since the machine started.
    Monotonic,
    /// The same, sleep included.
    Boottime,
    /// International atomic time.
    #[default]
    Tai,
}

impl GateClock {
    /// All, with their numbers in the kernel and their names in tc.
    pub const ALL: [(GateClock, u32, &'static str); 4] = [
        (GateClock::Realtime, 0, "REALTIME"),
        (GateClock::Tai, 11, "TAI"),
        (GateClock::Boottime, 7, "BOOTTIME"),
        (GateClock::Monotonic, 1, "MONOTONIC"),
    ];

    /// Its name in tc.
    pub fn name(self) -> &'static str {
        GateClock::ALL.into_iter().find(|(clock, ..)| *clock == self).map_or("", |(_, _, name)| name)
    }
}

/// A state of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateEntry {
    /// Packets pass.
    pub open: bool,
    /// How long it lasts, in nanoseconds.
    pub interval_ns: u32,
    /// The internal priority that a card would give; -1: none.
    pub priority: i32,
    /// The most bytes that pass in it; negative: any number.
    pub max_bytes: i32,
}

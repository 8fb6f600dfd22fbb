//! The bounds of everything that a caller gives.

use tidegate_packet::{Nanos, Time};

/// The most packets that a device may be configured to hold.
pub const MAX_PACKETS: u32 = 65_536;

/// The highest rate of a device's link, bits per second.
pub const MAX_RATE: u64 = 1_000_000_000_000;

/// The latest time that calls may give: 146 years.
pub const MAX_TIME: Time = Time(1 << 62);

/// The longest step between the times of two calls: an hour. What qdiscs do in between (PIE's updates, new
/// hash keys) is done in the later call.
pub const MAX_STEP: Nanos = Nanos::secs(3600);

/// The longest packet without its link header, bytes.
pub const MAX_LENGTH: u32 = 65_535;

/// The longest text of commands that one call takes, bytes.
pub const MAX_COMMANDS: usize = 1 << 20;

/// The most bytes that the listings of one call may have.
pub const MAX_OUTPUT: usize = 64 << 20;

/// The longest name of a device, as in Linux.
pub(crate) const MAX_NAME: usize = 15;

/// Timers of qdiscs that run in one call at most (changes of hash keys). Who polls at the times that the
/// device gives has one in each call.
pub(crate) const MAX_TIMERS: u32 = 1 << 16;

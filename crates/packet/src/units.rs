//! Numbers that must not be mistaken for another: time, rates, handles, marks.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A point on the monotonic clock, in nanoseconds since the machine started.
///
/// Qdiscs that count in coarser units (CoDel's 1024 ns, psched's 64 ns) derive them from this value, so
/// the epoch matters: an exact replay of a recorded run uses the recording's own epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Time {
    /// The latest point there is: "never", as a timeout.
    pub const NEVER: Time = Time(u64::MAX);

    /// The span since `earlier`; zero if that lies ahead.
    pub fn since(self, earlier: Time) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The CoDel clock (RFC 8289 as Linux counts it): units of 1024 ns, 32 bits, wrapping.
    pub fn codel(self) -> u32 {
        (self.0 >> 10) as u32
    }

    /// The psched clock: ticks of 64 ns.
    pub fn psched(self) -> u64 {
        self.0 >> 6
    }
}

impl Nanos {
    /// `s` seconds, at most 18 446 744 073 (584 years).
    pub const fn secs(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }
    /// `ms` milliseconds.
    pub const fn millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }
    /// `us` microseconds.
    pub const fn micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }
    /// As seconds, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Nanos> for Time {
    type Output = Time;
    fn add(self, span: Nanos) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Nanos> for Time {
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}
impl Sub<Nanos> for Time {
    type Output = Time;
    fn sub(self, span: Nanos) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}
impl Sub<Time> for Time {
    type Output = Nanos;
    fn sub(self, earlier: Time) -> Nanos {
        self.since(earlier)
    }
}
impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

/// A rate in bytes per second, as the kernel stores it (tc's bits per second divided by eight, truncated).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Rate {
    /// From bits per second, rounded down to whole bytes.
    pub const fn bits(bits_per_second: u64) -> Rate {
        Rate(bits_per_second / 8)
    }
    /// The rate in bits per second; what exceeds `u64::MAX / 8` bytes per second overflows.
    pub const fn as_bits(self) -> u64 {
        self.0 * 8
    }
}

/// `major:minor`, both 16 bits and written in hexadecimal: a qdisc handle (minor 0) or a class id.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u32);

impl Handle {
    /// No handle given: the kernel chooses.
    pub const NONE: Handle = Handle(0);
    /// The parent of a device's root qdisc, `ffff:ffff`.
    pub const ROOT: Handle = Handle(0xffff_ffff);
    /// The parent of ingress and clsact qdiscs, `ffff:fff1`.
    pub const INGRESS: Handle = Handle(0xffff_fff1);
    /// Parent of the filters that clsact's hook for arriving packets has (`TC_H_CLSACT`, `TC_H_MIN_INGRESS`).
    pub const CLSACT_INGRESS: Handle = Handle(0xffff_fff2);
    /// Parent of the filters that clsact's hook for leaving packets has (`TC_H_MIN_EGRESS`).
    pub const CLSACT_EGRESS: Handle = Handle(0xffff_fff3);

    /// As the parent of a filter: does it see what arrives at its device (ingress, or that hook of clsact)?
    pub const fn sees_arriving(self) -> bool {
        self.major() == u16::MAX && self.0 != Handle::CLSACT_EGRESS.0
    }

    /// The handle `major:minor`.
    pub const fn new(major: u16, minor: u16) -> Handle {
        Handle((major as u32) << 16 | minor as u32)
    }
    /// The upper 16 bits, which name a qdisc of the device.
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }
    /// The lower 16 bits, which name a class of the qdisc; 0: the qdisc itself.
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }
    /// The handle of the qdisc that a class belongs to: `major:0`.
    pub const fn qdisc(self) -> Handle {
        Handle(self.0 & 0xffff_0000)
    }
    /// The class `minor` of this qdisc.
    pub const fn class(self, minor: u16) -> Handle {
        Handle(self.0 & 0xffff_0000 | minor as u32)
    }
    /// Is it [`Handle::NONE`], so that the kernel chooses?
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Handle {
    /// As tc prints it: `root`, `none`, `1:`, `:5` or `1:5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.major(), self.minor()) {
            (0xffff, 0xffff) => f.write_str("root"),
            (0, 0) => f.write_str("none"),
            (0, minor) => write!(f, ":{minor:x}"),
            (major, 0) => write!(f, "{major:x}:"),
            (major, minor) => write!(f, "{major:x}:{minor:x}"),
        }
    }
}
impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A firewall mark (`skb->mark`): netfilter writes it, `fw` filters read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FwMark(pub u32);

/// The timer tick: maintenance timers (perturbation, PIE, SFB) run in jiffies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jiffies {
    /// Ticks per second: 250 on stock Debian kernels, 1000 in the recorded runs.
    pub hz: u32,
}

impl Jiffies {
    /// The jiffy counter at `now`; it starts at -300 seconds.
    pub fn at(self, now: Time) -> i64 {
        let per = 1_000_000_000 / u64::from(self.hz);
        (now.0 / per) as i64 - 300 * i64::from(self.hz)
    }

    /// So many milliseconds, in whole ticks, rounded up.
    pub fn of_millis(self, ms: u32) -> u32 {
        ((u64::from(ms) * u64::from(self.hz)).div_ceil(1000)) as u32
    }

    /// So many microseconds, in whole ticks, rounded up. What is longer than the kernel's greatest offset
    /// comes to that, here its low 32 bits.
    pub fn of_micros(self, us: u32) -> u32 {
        const GREATEST: u32 = u32::MAX - 1;
        if us > self.micros(GREATEST) {
            return GREATEST;
        }
        ((u64::from(us) * u64::from(self.hz)).div_ceil(1_000_000)) as u32
    }

    /// So many ticks, in microseconds.
    pub fn micros(self, ticks: u32) -> u32 {
        (u64::from(ticks) * 1_000_000 / u64::from(self.hz)) as u32
    }

    /// When the counter has this value; the start of the machine for values before.
    pub fn time(self, jiffies: i64) -> Time {
        let per = 1_000_000_000 / u64::from(self.hz);
        let since_start = jiffies + 300 * i64::from(self.hz);
        Time(since_start.max(0) as u64 * per)
    }
}

//! Releases of tc whose arithmetic and words can be followed, and where they differ.
//!
//! As with releases of Linux, only those that recordings exist of are offered.

use std::fmt;
use std::str::FromStr;

/// A release of tc, of iproute2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TcVersion {
    /// tc 6.1 (Debian 12).
    #[default]
    V6_1,
    /// tc 7.2.
    V7_2,
}

impl TcVersion {
    /// All that can be asked for, oldest first.
    pub const ALL: [TcVersion; 2] = [TcVersion::V6_1, TcVersion::V7_2];

    /// As people write it: `6.1`.
    pub fn name(self) -> &'static str {
        match self {
            TcVersion::V6_1 => "6.1",
            TcVersion::V7_2 => "7.2",
        }
    }

    /// Whether it behaves as after this change.
    pub fn has(self, change: TcChange) -> bool {
        self >= change.row().since
    }
}

impl fmt::Display for TcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A release that is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownTc;

impl fmt::Display for UnknownTc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("words are known of tc 6.1 and 7.2: give one of these")
    }
}

impl std::error::Error for UnknownTc {}

impl FromStr for TcVersion {
    type Err = UnknownTc;

    fn from_str(text: &str) -> Result<TcVersion, UnknownTc> {
        TcVersion::ALL.into_iter().find(|version| version.name() == text.trim()).ok_or(UnknownTc)
    }
}

/// What differs between releases of tc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcChange {
    /// How cake is listed.
    CakeWords,
    /// How bursts become ticks.
    FineTicks,
    /// What is read and listed of fq.
    FqWords,
    /// How hfsc is listed.
    HfscWords,
    /// How classes of htb are listed.
    HtbWords,
    /// The prefixes of nat.
    NatWords,
    /// The unit of netem's times.
    NetemTimes,
    /// What is read and listed of netem.
    NetemWords,
    /// Which rates, times and bursts are refused.
    NumberBounds,
    /// How large amounts are listed.
    SizeWords,
    /// How filters of u32 are listed.
    U32Words,
}

/// A row of the table of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcChangeRow {
    /// The change.
    pub change: TcChange,
    /// The first release of [`TcVersion::ALL`] that behaves so.
    pub since: TcVersion,
    /// The kinds that it shows in; none: all.
    pub kinds: &'static [&'static str],
    /// How it was before.
    pub before: &'static str,
    /// How it is since.
    pub after: &'static str,
}

impl TcChange {
    /// All changes, each asked of both.
    pub const TABLE: [TcChangeRow; 11] = [
        TcChangeRow {
            change: TcChange::CakeWords,
            since: TcVersion::V7_2,
            kinds: &["cake"],
            before: "no count of queues",
            after: "a line `active queues:`",
        },
        TcChangeRow {
            change: TcChange::FineTicks,
            since: TcVersion::V7_2,
            kinds: &["tbf", "htb", "police"],
            before: "a burst is counted in whole microseconds at its rate",
            after: "a burst is counted in ticks of 64 ns at its rate: tbf rounds down, the others up",
        },
        TcChangeRow {
            change: TcChange::FqWords,
            since: TcVersion::V7_2,
            kinds: &["fq"],
            before: "nothing is known of bands",
            after: "`bands 3 priomap …`, `weights`, `offload_horizon`; packets of each band and `fastpath` are \
                    counted",
        },
        TcChangeRow {
            change: TcChange::HfscWords,
            since: TcVersion::V7_2,
            kinds: &["hfsc"],
            before: "`default 30`; `level 1`",
            after: "two blanks before `default 0x30` and before `level 1`",
        },
        TcChangeRow {
            change: TcChange::HtbWords,
            since: TcVersion::V7_2,
            kinds: &["htb"],
            before: "`burst 1600b/1 mpu 0b`; without details a line ends in a blank",
            after: "`burst 1600b/1mpu 0b`; without details a line ends in none",
        },
        TcChangeRow {
            change: TcChange::NatWords,
            since: TcVersion::V7_2,
            kinds: &["nat"],
            before: "`10.0.0.0/8` is listed as `10.0.0.0/32`; `any` is 0.0.0.0 alone",
            after: "`10.0.0.0/8`; `any` is any address",
        },
        TcChangeRow {
            change: TcChange::NetemTimes,
            since: TcVersion::V7_2,
            kinds: &["netem"],
            before: "`delay 1000` is 1000 microseconds; delays are whole microseconds, up to 274 s",
            after: "`delay 1000` is 1000 nanoseconds; delays are whole nanoseconds",
        },
        TcChangeRow {
            change: TcChange::NetemWords,
            since: TcVersion::V7_2,
            kinds: &["netem"],
            before: "no seed and no counters",
            after: "`seed`, and a line of what was delayed, dropped, corrupted, duplicated, reordered and marked",
        },
        TcChangeRow {
            change: TcChange::NumberBounds,
            since: TcVersion::V7_2,
            kinds: &[],
            before: "rates and times below 0, and bursts that last longer than 274 s at their rate, become others",
            after: "they are refused",
        },
        TcChangeRow {
            change: TcChange::SizeWords,
            since: TcVersion::V7_2,
            kinds: &[],
            before: "`4096Mb`",
            after: "`4Gb`",
        },
        TcChangeRow {
            change: TcChange::U32Words,
            since: TcVersion::V7_2,
            kinds: &["u32"],
            before: "`*flowid 1:10`",
            after: "`flowid 1:10`",
        },
    ];

    /// Its row.
    pub const fn row(self) -> TcChangeRow {
        TcChange::TABLE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_their_changes() {
        for (at, row) in TcChange::TABLE.iter().enumerate() {
            assert_eq!(row.change as usize, at);
            assert!(!TcVersion::V6_1.has(row.change) && TcVersion::V7_2.has(row.change));
        }
        assert!("6.6".parse::<TcVersion>().is_err() && "7.2\n".parse() == Ok(TcVersion::V7_2));
    }
}

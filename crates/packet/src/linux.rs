//! Releases of Linux whose behaviour can be followed, and where they differ.
//!
//! Recordings exist of two releases. In which release between them a behaviour changed is not known: those
//! follow the older one, and [`LinuxVersion::is_between`] says that they may not.

use core::fmt;
use core::str::FromStr;

/// A release of Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LinuxVersion {
    /// Linux 6.1 (Debian 12).
    #[default]
    V6_1,
    /// A release between the two, which behaves as Linux 6.1 here: where those two differ, it may be as the
    /// younger one already.
    Between {
        /// The 6 of 6.12.
        major: u8,
        /// The 12 of 6.12.
        minor: u8,
    },
    /// Linux 7.2.
    V7_2,
}

impl LinuxVersion {
    /// Those whose behaviour is known, oldest first.
    pub const RECORDED: [LinuxVersion; 2] = [LinuxVersion::V6_1, LinuxVersion::V7_2];

    /// Its two numbers: 6 and 1.
    pub fn numbers(self) -> (u8, u8) {
        match self {
            LinuxVersion::V6_1 => (6, 1),
            LinuxVersion::Between { major, minor } => (major, minor),
            LinuxVersion::V7_2 => (7, 2),
        }
    }

    /// Is it between the recorded ones, so that what differs between those is not known of it?
    pub fn is_between(self) -> bool {
        matches!(self, LinuxVersion::Between { .. })
    }

    /// Whether it behaves as after this change; one between the recorded releases never does.
    #[inline]
    pub fn has(self, change: LinuxChange) -> bool {
        self >= change.row().since
    }

    /// Memory that it charges for a frame of `frame_len` bytes that it makes itself, by the steps of its
    /// allocator (`skb->truesize`), bytes.
    pub fn truesize(self, frame_len: u32) -> u32 {
        let small = self.has(LinuxChange::SmallHeads);
        match frame_len {
            0..=304 if small => 896,
            0..=176 => 768,
            177..=688 => 1280,
            _ => 2304,
        }
    }
}

impl fmt::Display for LinuxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.numbers();
        write!(f, "{major}.{minor}")
    }
}

/// A release that is not followed, or no release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLinux;

impl fmt::Display for UnknownLinux {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Linux from 6.1 to 7.2 is modelled: give a release, such as 6.12")
    }
}

impl core::error::Error for UnknownLinux {}

/// Numbers of a release, at most: those of stable releases have three, some distributions add one.
const MOST_NUMBERS: usize = 5;

impl FromStr for LinuxVersion {
    type Err = UnknownLinux;

    /// Of `6.12` or of what `uname -r` prints, such as `6.12.48-amd64`.
    fn from_str(text: &str) -> Result<LinuxVersion, UnknownLinux> {
        // What follows the numbers is the distribution's.
        let numbers = text.trim().split(['-', '+', '_', '~']).next().unwrap_or_default();
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let mut parts = numbers.split('.');
        if parts.clone().count() > MOST_NUMBERS || !parts.clone().all(|part| is_number(&part)) {
            return Err(UnknownLinux);
        }
        let mut number = || {
            let part = parts.next().filter(|part| *part == "0" || !part.starts_with('0'));
            part.and_then(|part| part.parse::<u8>().ok()).ok_or(UnknownLinux)
        };
        let numbers = (number()?, number()?);
        let recorded = LinuxVersion::RECORDED.into_iter().find(|version| version.numbers() == numbers);
        let [first, last] = LinuxVersion::RECORDED.map(LinuxVersion::numbers);
        match recorded {
            Some(version) => Ok(version),
            None if first < numbers && numbers < last => {
                Ok(LinuxVersion::Between { major: numbers.0, minor: numbers.1 })
            }
            None => Err(UnknownLinux),
        }
    }
}

/// A behaviour that differs between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinuxChange {
    /// Whether the backlog stays when a hook comes or goes, or the transmit queue gets another length.
    BacklogKept,
    /// How often CAKE's rate follows the arrivals.
    CakeAutorate,
    /// When BLUE is asked about a packet in CAKE.
    CakeBlue,
    /// CAKE's reciprocal square roots.
    CakeRoots,
    /// What is said about a class that cannot be deleted.
    ClassInUse,
    /// The most that CoDel drops for one packet that leaves.
    CodelBounded,
    /// The least time between two drops of CoDel's.
    CodelTick,
    /// The order in which what a qdisc drops at dequeue is freed.
    DropsListed,
    /// The order of fq's flows by priority.
    FqBands,
    /// Whose memory fq_codel counts.
    FqCodelForwarded,
    /// Which packets skip fq's flows.
    FqFastPath,
    /// What fq does with a flow that has no more packets.
    FqInactive,
    /// Which flows fq's mean latency is of.
    FqLatency,
    /// The quanta that fq takes.
    FqQuantum,
    /// When a qdisc below an ingress or clsact is refused, and with what words.
    HookChildren,
    /// What rules on ports and TCP's flags read in later fragments.
    LaterFragments,
    /// Whether a netem that makes copies tolerates another in its tree.
    NetemCopies,
    /// Where netem's random numbers come from.
    NetemGenerator,
    /// What netem's marks count as.
    NetemMarks,
    /// Whether pedit counts what it cannot change.
    PeditCounts,
    /// Which packets pedit changes by TCP's or UDP's header.
    PeditProtocol,
    /// When the packets of a pfifo_fast that is emptied are freed.
    PfifoFastPurge,
    /// The memory of small packets.
    SmallHeads,
    /// Who reads the kernel's warnings.
    WarningsReach,
}

/// A row of the table of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinuxChangeRow {
    /// The change.
    pub change: LinuxChange,
    /// The first release of [`LinuxVersion::RECORDED`] that behaves so. When between it and the one before it
    /// changed is not known.
    pub since: LinuxVersion,
    /// The kinds of qdiscs that it shows in; none: all.
    pub kinds: &'static [&'static str],
    /// How it was before.
    pub before: &'static str,
    /// How it is since.
    pub after: &'static str,
}

/// A row of the table of changes.
const fn row(
    change: LinuxChange,
    since: LinuxVersion,
    kinds: &'static [&'static str],
    [before, after]: [&'static str; 2],
) -> LinuxChangeRow {
    LinuxChangeRow { change, since, kinds, before, after }
}

impl LinuxChange {
    /// All changes, each asked of both kernels.
    pub const TABLE: [LinuxChangeRow; 24] = [
        row(
            LinuxChange::BacklogKept,
            LinuxVersion::V7_2,
            &[],
            [
                "`clsact` or `ingress` added or deleted, and another `txqueuelen`, drop the backlog of the \
             device's qdiscs",
                "they leave it; pfifo_fast drops what its shorter rings have no place for, and counts it as \
             waiting for ever",
            ],
        ),
        row(
            LinuxChange::CakeAutorate,
            LinuxVersion::V7_2,
            &["cake"],
            [
                "`autorate-ingress` changes the rate with each estimate",
                "`autorate-ingress` changes the rate every 250 ms at most",
            ],
        ),
        row(
            LinuxChange::CakeBlue,
            LinuxVersion::V7_2,
            &["cake"],
            [
                "BLUE makes a draw about each packet of a flow that does not respond",
                "BLUE makes none about a packet that COBALT has dropped",
            ],
        ),
        row(
            LinuxChange::CakeRoots,
            LinuxVersion::V7_2,
            &["cake"],
            [
                "the reciprocal square roots of counts below 16 come from Newton's method: the second signal of an \
             episode comes 0.06 % early",
                "those of 2, 3 and 6 are exact",
            ],
        ),
        row(
            LinuxChange::ClassInUse,
            LinuxVersion::V7_2,
            &["drr", "hfsc", "htb", "qfq"],
            [
                "a class that filters or other classes need is not deleted, without a word why",
                "it is said that the class is in use",
            ],
        ),
        row(
            LinuxChange::CodelBounded,
            LinuxVersion::V7_2,
            &["codel", "fq_codel"],
            [
                "as many packets are dropped before one leaves as the law says",
                "at most 256 packets are dropped before one leaves",
            ],
        ),
        row(
            LinuxChange::CodelTick,
            LinuxVersion::V7_2,
            &["codel", "fq_codel"],
            [
                "with an interval of a few microseconds the law may ask for the next drop at the same time",
                "the next drop is at least 1024 ns later",
            ],
        ),
        row(
            LinuxChange::DropsListed,
            LinuxVersion::V7_2,
            &["codel", "fq_codel", "cake", "dualpi2"],
            [
                "what the root drops while a packet leaves is freed in its order",
                "what the root drops while a packet leaves is freed afterwards, the last first",
            ],
        ),
        row(
            LinuxChange::FqBands,
            LinuxVersion::V7_2,
            &["fq"],
            [
                "all flows take turns; packets of priority 7 go ahead of them",
                "three bands, chosen by priority, take turns by weight, and `limit` is each band's",
            ],
        ),
        row(
            LinuxChange::FqCodelForwarded,
            LinuxVersion::V7_2,
            &["fq_codel"],
            [
                "`memory_limit` bounds the memory of all packets",
                "`memory_limit` bounds the memory of forwarded packets; those of the machine's own programs are not \
             counted",
            ],
        ),
        row(
            LinuxChange::FqFastPath,
            LinuxVersion::V7_2,
            &["fq"],
            [
                "every packet goes to its flow",
                "without `maxrate`, packets that find none waiting, and up to eight while no flow has any, go \
                 ahead of the flows, and are not marked",
            ],
        ),
        row(
            LinuxChange::FqInactive,
            LinuxVersion::V7_2,
            &["fq"],
            [
                "a new flow that has no more packets waits among the old ones only if there are any; \
                 `inactive` counts flows that wait nowhere",
                "a new flow that has no more packets waits among the old ones; `inactive` counts flows without \
                 packets",
            ],
        ),
        row(
            LinuxChange::FqLatency,
            LinuxVersion::V7_2,
            &["fq"],
            [
                "`latency` is the mean of all flows that waited for their time",
                "`latency` is that of late ones",
            ],
        ),
        row(
            LinuxChange::FqQuantum,
            LinuxVersion::V7_2,
            &["fq"],
            [
                "`quantum` is refused at 0 and above 1 MiB, `initial_quantum` from 2 GiB",
                "`quantum` is at least 256 and at most 1 MiB whatever was asked for; `initial_quantum` is \
                 refused above 1 MiB",
            ],
        ),
        row(
            LinuxChange::HookChildren,
            LinuxVersion::V7_2,
            &["clsact", "ingress"],
            [
                "a qdisc below it is made and then refused, without a word why",
                "a qdisc below it is refused before anything else is looked at, and it is said why",
            ],
        ),
        row(
            LinuxChange::LaterFragments,
            LinuxVersion::V7_2,
            &[],
            [
                "rules of nft and iptables-nft on one port, a range of ports or TCP's flags read them in the \
                 payload of IPv4's later fragments, and in the first bytes of IPv6's",
                "they match no later fragment, inverted or not",
            ],
        ),
        row(
            LinuxChange::NetemCopies,
            LinuxVersion::V7_2,
            &["netem"],
            ["a netem with `duplicate` and another netem in one tree are refused", "they are taken"],
        ),
        row(
            LinuxChange::NetemGenerator,
            LinuxVersion::V7_2,
            &["netem"],
            [
                "each loss, copy, reordering, error, jitter and slot is a draw of the kernel's generator",
                "they come from a generator of the qdisc's own (LFSR113), which one draw seeds when it is made, but \
                 slots between two times",
            ],
        ),
        row(
            LinuxChange::NetemMarks,
            LinuxVersion::V7_2,
            &["netem"],
            ["with `ecn` a packet that is marked counts as dropped, too", "it does not"],
        ),
        row(
            LinuxChange::PeditCounts,
            LinuxVersion::V7_2,
            &["pedit"],
            ["a change that cannot be made shows in no counter", "it counts as an overlimit"],
        ),
        row(
            LinuxChange::PeditProtocol,
            LinuxVersion::V7_2,
            &["pedit"],
            [
                "`munge tcp` and `munge udp` change what is behind any IPv4 header",
                "packets of another protocol are left as they are from such a change on",
            ],
        ),
        row(
            LinuxChange::PfifoFastPurge,
            LinuxVersion::V7_2,
            &["pfifo_fast"],
            [
                "one that is emptied (the link goes down, another qdisc takes its place) frees its packets at once",
                "it frees them afterwards, the last first",
            ],
        ),
        row(
            LinuxChange::SmallHeads,
            LinuxVersion::V7_2,
            &["cake", "fq_codel", "fq_pie", "dualpi2"],
            [
                "a frame takes 768 bytes of memory up to 176 bytes, and 1280 up to 688",
                "a frame takes 896 bytes of memory up to 304 bytes, and 1280 up to 688",
            ],
        ),
        row(
            LinuxChange::WarningsReach,
            LinuxVersion::V7_2,
            &["htb"],
            ["that a quantum is big or small stays in the kernel's log", "tc prints it"],
        ),
    ];

    /// Its row.
    #[inline]
    pub const fn row(self) -> LinuxChangeRow {
        LinuxChange::TABLE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn rows_are_in_the_order_of_their_changes() {
        for (at, row) in LinuxChange::TABLE.iter().enumerate() {
            assert_eq!(row.change as usize, at);
            assert!(!LinuxVersion::V6_1.has(row.change) && LinuxVersion::V7_2.has(row.change));
        }
    }

    #[test]
    fn releases_are_read_by_their_names() {
        for version in LinuxVersion::RECORDED {
            assert_eq!(format!("{version}").parse(), Ok(version));
        }
        let between = LinuxVersion::Between { major: 6, minor: 12 };
        for text in ["6.12", "6.12.48-amd64", "6.12-rc3", " 6.12\n"] {
            assert_eq!(text.parse(), Ok(between), "{text}");
        }
        assert_eq!(format!("{between}"), "6.12");
        assert!(LinuxVersion::V6_1 < between && between < LinuxVersion::V7_2 && between.is_between());
        assert!(LinuxChange::TABLE.iter().all(|row| !between.has(row.change)));
        assert_eq!("6.1.153-generic".parse(), Ok(LinuxVersion::V6_1));
        assert_eq!("7.0".parse(), Ok(LinuxVersion::Between { major: 7, minor: 0 }));
        for text in [
            "7", "", "5.15", "6.0", "7.3", "6.1x", "6.-1", "6.300", "v6.1", "6..1", "+6.1", "06.1", "6.01",
            "6.1..9", "6.1..",
        ] {
            assert_eq!(text.parse::<LinuxVersion>(), Err(UnknownLinux), "{text}");
        }
    }

    /// Asked of both kernels: CAKE's `memory used` of one frame.
    #[test]
    fn memory_of_frames_of_some_lengths() {
        let rows = [(60, 768, 896), (176, 768, 896), (177, 1280, 896), (304, 1280, 896), (305, 1280, 1280)];
        let more = [(688, 1280, 1280), (689, 2304, 2304), (1514, 2304, 2304)];
        for (len, old, new) in rows.into_iter().chain(more) {
            assert_eq!(LinuxVersion::RECORDED.map(|version| version.truesize(len)), [old, new], "{len}");
        }
    }
}

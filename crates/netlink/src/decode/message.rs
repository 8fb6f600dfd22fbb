//! A message of the kernel's, taken apart, and what several parts of messages have in common.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use tidegate_netlink_wire::attribute::{Found, read};
use tidegate_netlink_wire::numbers::{TCA_KIND, TCA_OPTIONS, TCA_STATS2, TCA_XSTATS};
use tidegate_packet::Handle;
use tidegate_policy::Kind;
use tidegate_policy::dump::{QueueStats, RateSample};

/// Bytes of the part that messages about qdiscs, classes and filters begin with (`tcmsg`).
const HEAD: usize = 20;
const TCA_STATS_APP: u16 = 4;

/// Why what is installed on a device cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unread {
    /// There is no such device.
    NoDevice(String),
    /// A kind that is not read.
    Kind(String),
    /// The kernel's message is not what it should be: about this.
    Odd(&'static str),
    /// The way to the kernel is broken.
    Broken(String),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::NoDevice(name) => write!(f, "there is no device `{name}`"),
            Unread::Kind(kind) => write!(f, "the kernel's dump of {kind} is not supported"),
            Unread::Odd(what) => write!(f, "the kernel's dump of {what} is malformed"),
            Unread::Broken(error) => write!(f, "netlink: {error}"),
        }
    }
}

impl core::error::Error for Unread {}

/// A message about a qdisc, class or filter, taken apart.
pub(crate) struct Message<'m> {
    pub(super) device: u32,
    pub(super) handle: u32,
    pub(super) parent: Handle,
    pub(super) info: u32,
    pub(super) attributes: Found<'m>,
}

impl<'m> Message<'m> {
    pub(super) fn of(bytes: &'m [u8]) -> Result<Message<'m>, Unread> {
        let odd = Unread::Odd("a message");
        let (head, rest) = bytes.split_at_checked(HEAD).ok_or(odd)?;
        let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        Ok(Message {
            device: word(4),
            handle: word(8),
            parent: Handle(word(12)),
            info: word(16),
            attributes: read(rest),
        })
    }

    pub(super) fn kind(&self) -> Result<&'m str, Unread> {
        self.attributes.text(TCA_KIND).ok_or(Unread::Odd("a kind"))
    }

    pub(super) fn known_kind(&self) -> Result<Kind, Unread> {
        let name = self.kind()?;
        Kind::named(name).ok_or_else(|| Unread::Kind(name.to_owned()))
    }

    pub(crate) fn options(&self) -> &'m [u8] {
        self.attributes.get(TCA_OPTIONS).unwrap_or_default()
    }

    /// What only its kind counts.
    pub(crate) fn own_payload(&self) -> &'m [u8] {
        let among = self.attributes.get(TCA_STATS2).and_then(|bytes| read(bytes).get(TCA_STATS_APP));
        among.or(self.attributes.get(TCA_XSTATS)).unwrap_or_default()
    }

    /// The kind's own counters as numbers of 32 bits.
    pub(crate) fn own_numbers(&self) -> Vec<u32> {
        numbers(self.own_payload())
    }
}

/// Numbers of 32 bits one after another.
pub(crate) fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]])).collect()
}

/// The counters that qdiscs, classes and actions have.
pub(super) fn counted(stats: &Found<'_>) -> QueueStats {
    let basic = stats.get(1).unwrap_or_default();
    let wide =
        |bytes: Option<&[u8]>| bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
    let queue = numbers(stats.get(3).unwrap_or_default());
    let at = |place: usize| queue.get(place).copied().unwrap_or(0);
    // Packets have 64 bits where 32 do not do.
    let packets = stats.get(8).map(|bytes| wide(bytes.get(..8)));
    let rate = numbers(stats.get(2).unwrap_or_default());
    QueueStats {
        bytes: wide(basic.get(..8)),
        packets: packets.unwrap_or_else(|| numbers(basic).get(2).copied().unwrap_or(0).into()),
        drops: at(2),
        overlimits: at(4),
        requeues: at(3),
        qlen: at(0),
        backlog: at(1),
        rate: (rate.len() == 2).then(|| RateSample { bytes: rate[0].into(), packets: rate[1].into() }),
    }
}

/// The names of devices, by number.
pub type Names<'n> = &'n dyn Fn(u32) -> Option<String>;

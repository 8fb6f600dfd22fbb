//! What the kernel tells of a device, as dumps: what `tc show` would print, in the types that the model machine tells the same in.
//!
//! All kinds that can be set are read. What a newer kernel has besides is named: the rest of a mixed tree can be read all the same.

mod action;
mod filter;
pub(crate) mod rate;

use crate::kind::codec;
use std::collections::BTreeSet;
use std::fmt;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, ClassDump, FilterDump, QdiscDump, QueueStats, RateSample};
use tidegate_policy::{Kind, SharedBlocks};
use tidegate_sys::attribute::{Found, read};
use tidegate_sys::numbers::{
    TCA_EGRESS_BLOCK, TCA_INGRESS_BLOCK, TCA_KIND, TCA_OPTIONS, TCA_STAB, TCA_STATS2, TCA_XSTATS,
};

/// Octets of the part that messages about qdiscs, classes and filters begin with (`tcmsg`).
const HEAD: usize = 20;
const TCA_STATS_APP: u16 = 4;

/// Why what stands on a device cannot be told.
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
            Unread::Kind(kind) => write!(f, "what the kernel tells of {kind} is not read"),
            Unread::Odd(what) => write!(f, "what the kernel tells of {what} is not as it should be"),
            Unread::Broken(error) => write!(f, "netlink: {error}"),
        }
    }
}

impl std::error::Error for Unread {}

/// A message about a qdisc, class or filter, taken apart.
pub(crate) struct Message<'m> {
    device: u32,
    handle: u32,
    parent: Handle,
    info: u32,
    attributes: Found<'m>,
}

impl<'m> Message<'m> {
    fn of(bytes: &'m [u8]) -> Result<Message<'m>, Unread> {
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

    fn kind(&self) -> Result<&'m str, Unread> {
        self.attributes.text(TCA_KIND).ok_or(Unread::Odd("a kind"))
    }

    fn known_kind(&self) -> Result<Kind, Unread> {
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

    /// The same as numbers of 32 bits.
    pub(crate) fn own_numbers(&self) -> Vec<u32> {
        numbers(self.own_payload())
    }
}

/// Numbers of 32 bits one after another.
pub(crate) fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]])).collect()
}

/// The counters that qdiscs, classes and actions have.
fn counted(stats: &Found<'_>) -> QueueStats {
    let basic = stats.get(1).unwrap_or_default();
    let wide = |bytes: Option<&[u8]>| bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
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

/// What was read, and the kinds of what was not.
pub type Read<T> = (Vec<T>, BTreeSet<String>);

/// Reads the messages about a device among all that were told.
fn each<T>(number: u32, told: &[Vec<u8>], one: impl Fn(&Message<'_>) -> Result<T, Unread>) -> Result<Read<T>, Unread> {
    let (mut all, mut unread) = (Vec::new(), BTreeSet::new());
    for bytes in told {
        let message = Message::of(bytes)?;
        if message.device != number {
            continue;
        }
        match one(&message) {
            Ok(dump) => all.push(dump),
            // What has no handle was asked for by nobody (a card's mq), and comes again by itself.
            Err(Unread::Kind(_)) if message.handle == 0 => {}
            Err(Unread::Kind(kind)) => drop(unread.insert(kind)),
            Err(other) => return Err(other),
        }
    }
    Ok((all, unread))
}

/// The qdiscs of a device among all that were told.
///
/// # Errors
/// A message is not as it should be.
pub fn qdiscs(dev: &str, number: u32, told: &[Vec<u8>]) -> Result<Read<QdiscDump>, Unread> {
    let (all, mut unread) = each(number, told, |message| qdisc(dev, message))?;
    // Other devices may have them too: what one device shows of them is not its own.
    for blocks in all.iter().map(|dump: &QdiscDump| dump.blocks) {
        let shared = [blocks.ingress, blocks.egress].into_iter().filter(|block| *block != 0);
        unread.extend(shared.map(|block| format!("shared block {block}")));
    }
    Ok((all, unread))
}

fn qdisc(dev: &str, message: &Message<'_>) -> Result<QdiscDump, Unread> {
    let kind = message.known_kind()?;
    Ok(QdiscDump {
        dev: dev.to_owned(),
        kind,
        handle: Handle(message.handle),
        parent: message.parent,
        refcnt: message.info,
        params: codec(kind).decode(message.options()).ok_or(Unread::Odd(kind.name()))?,
        stab: message.attributes.get(TCA_STAB).map(rate::size_table),
        blocks: SharedBlocks {
            ingress: message.attributes.u32(TCA_INGRESS_BLOCK).unwrap_or(0),
            egress: message.attributes.u32(TCA_EGRESS_BLOCK).unwrap_or(0),
        },
        stats: counted(&message.attributes.nest(TCA_STATS2)),
        xstats: codec(kind).stats(message).unwrap_or_default(),
    })
}

/// The classes of a device among all that were told.
///
/// # Errors
/// As for [`qdiscs`].
pub fn classes(dev: &str, number: u32, told: &[Vec<u8>]) -> Result<Read<ClassDump>, Unread> {
    each(number, told, |message| class(dev, message))
}

fn class(dev: &str, message: &Message<'_>) -> Result<ClassDump, Unread> {
    let kind = message.known_kind()?;
    let params = codec(kind).decode_class(message.options()).ok_or(Unread::Odd("a class"))?;
    let stats = message.attributes.nest(TCA_STATS2);
    Ok(ClassDump {
        dev: dev.to_owned(),
        kind,
        classid: Handle(message.handle),
        parent: message.parent,
        leaf: Handle(message.info),
        params,
        stats: stats.get(1).or(stats.get(3)).map(|_| counted(&stats)),
        xstats: codec(kind).class_stats(message).unwrap_or_default(),
    })
}

/// The filters that were told, in order.
///
/// # Errors
/// One of them is of a kind that is not read.
pub fn filters(dev: &str, told: &[Vec<u8>], names: Names<'_>) -> Result<Vec<FilterDump>, Unread> {
    told.iter().map(|bytes| filter::filter(dev, &Message::of(bytes)?, names)).collect()
}

/// The machine's actions that were told, in order: each message has a list of them.
///
/// # Errors
/// One of them is of a kind that is not read.
pub fn actions(told: &[Vec<u8>], names: Names<'_>) -> Result<Vec<ActionDump>, Unread> {
    const HEAD: usize = 4;
    const LIST: u16 = 1;
    let mut all = Vec::new();
    for bytes in told {
        let list = bytes.get(HEAD..).map(read).unwrap_or_default();
        all.extend(action::actions(list.get(LIST).unwrap_or_default(), names)?);
    }
    Ok(all)
}

/// The names of devices, by number.
pub type Names<'n> = &'n dyn Fn(u32) -> Option<String>;

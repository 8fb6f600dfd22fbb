//! What the kernel reports of a device, as dumps: what `tc show` would print, in the same types as the model
//! machine's dumps.
//!
//! All kinds that can be set are read. What a newer kernel has besides is named: the rest of a mixed tree can
//! be read all the same.

mod action;
mod filter;
pub(crate) mod message;
pub(crate) mod rate;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
pub use message::{Names, Unread};

use crate::kind::codec;
use alloc::collections::BTreeSet;
use message::{Message, counted};
use tidegate_netlink_wire::attribute::read;
use tidegate_netlink_wire::numbers::{TCA_EGRESS_BLOCK, TCA_INGRESS_BLOCK, TCA_STAB, TCA_STATS2};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, ClassDump, FilterDump, QdiscDump};
use tidegate_policy::{Kind, SharedBlocks};

/// What was read, and the kinds of what was not.
pub type Read<T> = (Vec<T>, BTreeSet<String>);

/// Decodes the messages about a device among all messages of a dump.
fn each<T>(
    number: u32,
    reported: &[Vec<u8>],
    one: impl Fn(&Message<'_>) -> Result<T, Unread>,
) -> Result<Read<T>, Unread> {
    let (mut all, mut unread) = (Vec::new(), BTreeSet::new());
    for bytes in reported {
        let message = Message::of(bytes)?;
        if message.device != number {
            continue;
        }
        match one(&message) {
            Ok(dump) => all.push(dump),
            // A qdisc without a handle is the kernel's own (a card's mq), and comes again on its own.
            Err(Unread::Kind(_)) if message.handle == 0 => {}
            Err(Unread::Kind(kind)) => drop(unread.insert(kind)),
            Err(other) => return Err(other),
        }
    }
    Ok((all, unread))
}

/// Whether a message of a dump is about a device, by its number, and what is attached there.
pub fn is_at(reported: &[u8], number: u32, parent: Handle) -> bool {
    Message::of(reported).is_ok_and(|message| (message.device, message.parent) == (number, parent))
}

/// The qdiscs of a device among the messages of a dump.
///
/// # Errors
/// A message is not as it should be.
pub fn qdiscs(dev: &str, number: u32, reported: &[Vec<u8>]) -> Result<Read<QdiscDump>, Unread> {
    let (all, mut unread) = each(number, reported, |message| qdisc(dev, message))?;
    // Other devices may have them too: what one device shows of them is not its own.
    for blocks in all.iter().map(|dump: &QdiscDump| dump.blocks) {
        let shared = [blocks.ingress, blocks.egress].into_iter().filter(|block| *block != 0);
        unread.extend(shared.map(|block| format!("shared block {block}")));
    }
    Ok((all, unread))
}

fn qdisc(dev: &str, message: &Message<'_>) -> Result<QdiscDump, Unread> {
    let kind = message.known_kind()?;
    if kind == Kind::Mq {
        // The model's devices have one queue: it cannot tell what a card's mq would become.
        return Err(Unread::Kind(kind.name().to_owned()));
    }
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
        invisible: message.handle == 0 && message.parent != Handle::ROOT,
        stats: counted(&message.attributes.nest(TCA_STATS2)),
        xstats: codec(kind).stats(message).unwrap_or_default(),
    })
}

/// The classes of a device among the messages of a dump.
///
/// # Errors
/// As for [`qdiscs`].
pub fn classes(dev: &str, number: u32, dump: &[Vec<u8>]) -> Result<Read<ClassDump>, Unread> {
    each(number, dump, |message| class(dev, message))
}

/// The qdiscs of a device whose classes are missing in the dump although there may be some: Linux ends the
/// list of classes at the first netem without a queue of its own, or SFB, that it comes to.
///
/// # Errors
/// A message is malformed.
pub fn unlisted(number: u32, qdiscs: &[Vec<u8>], classes: &[Vec<u8>]) -> Result<Vec<Handle>, Unread> {
    const ENDS: [&str; 2] = ["netem", "sfb"];
    let (mut handles, mut ends) = (BTreeSet::new(), false);
    for bytes in qdiscs {
        let message = Message::of(bytes)?;
        if message.device == number {
            ends |= ENDS.contains(&message.kind()?);
            handles.insert(message.handle);
        }
    }
    for bytes in classes {
        let message = Message::of(bytes)?;
        if message.device == number {
            handles.remove(&Handle(message.handle).qdisc().0);
        }
    }
    handles.remove(&0);
    Ok(if ends { handles.into_iter().map(Handle).collect() } else { Vec::new() })
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

/// The filters of a dump, in order.
///
/// # Errors
/// One of them is of a kind that is not read.
pub fn filters(dev: &str, dump: &[Vec<u8>], names: Names<'_>) -> Result<Vec<FilterDump>, Unread> {
    dump.iter().map(|bytes| filter::filter(dev, &Message::of(bytes)?, names)).collect()
}

/// The machine's actions of a dump, in order: each message has a list of them.
///
/// # Errors
/// One of them is of a kind that is not read.
pub fn actions(dump: &[Vec<u8>], names: Names<'_>) -> Result<Vec<ActionDump>, Unread> {
    const HEAD: usize = 4;
    const LIST: u16 = 1;
    let mut all = Vec::new();
    for bytes in dump {
        let list = bytes.get(HEAD..).map(read).unwrap_or_default();
        all.extend(action::actions(list.get(LIST).unwrap_or_default(), names)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{Handle, unlisted};
    use alloc::vec;
    use alloc::vec::Vec;

    /// A message about a qdisc or class of device 3.
    fn message(handle: u32, kind: &str) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        for word in [3, handle, 0, 0] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend(u16::to_ne_bytes(kind.len() as u16 + 5));
        bytes.extend(u16::to_ne_bytes(1));
        bytes.extend(kind.bytes());
        bytes.resize(bytes.len().next_multiple_of(4).max(bytes.len() + 1), 0);
        bytes
    }

    /// Linux 6.1 was asked: `tc class show dev link0` lists prio's classes and stops at the netem; with
    /// `parent 20:` it lists HTB's too.
    #[test]
    fn classes_behind_a_netem_are_listed_by_their_qdisc() {
        let qdiscs = [
            message(0x1_0000, "prio"),
            message(0x30_0000, "netem"),
            message(0x20_0000, "htb"),
            message(0, "pfifo"),
        ];
        let classes = [message(0x1_0001, "prio"), message(0x1_0002, "prio")];
        let handles = unlisted(3, &qdiscs, &classes).expect("they can be read");
        assert_eq!(handles, [Handle(0x20_0000), Handle(0x30_0000)]);
        let whole = [message(0x1_0000, "prio"), message(0x20_0000, "htb")];
        assert_eq!(unlisted(3, &whole, &classes).expect("they can be read"), []);
        assert_eq!(unlisted(4, &qdiscs, &classes).expect("they can be read"), []);
    }
}

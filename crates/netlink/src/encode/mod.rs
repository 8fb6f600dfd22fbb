//! Operations as netlink messages: what tc would send for the same words.

pub(crate) mod action;
pub(crate) mod message;
pub mod nft;
pub(crate) mod rate;

use alloc::vec::Vec;
pub use message::{Devices, NetlinkMessage, Unsent, queue_device};

use crate::filter;
use crate::kind::codec;
use message::number;
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_netlink_wire::numbers::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NLM_F_ROOT, RTM_DELACTION,
    RTM_DELQDISC, RTM_DELTCLASS, RTM_DELTFILTER, RTM_NEWACTION, RTM_NEWQDISC, RTM_NEWTCLASS, RTM_NEWTFILTER,
    TCA_CHAIN, TCA_DUMP_INVISIBLE, TCA_EGRESS_BLOCK, TCA_INGRESS_BLOCK, TCA_KIND, TCA_RATE,
    TCM_IFINDEX_MAGIC_BLOCK,
};
use tidegate_packet::Handle;
use tidegate_policy::{ActionsOp, ClassOp, Estimator, FilterOp, Kind, Op, QdiscOp, Verb};

/// The message for an operation of traffic control. Those of links and of netfilter have other ways.
///
/// # Errors
/// A device that it names is not there, or it is none of tc's.
pub fn message(op: &Op, devices: Devices<'_>) -> Result<NetlinkMessage, Unsent> {
    match op {
        Op::Qdisc(op) => on_qdisc(op, devices),
        Op::Class(op) => on_class(op, devices),
        Op::Filter(op) => on_filter(op, devices),
        Op::Actions(op) => on_actions(op, devices),
        Op::Chain(_) => Err(Unsent::NotNetlink("chains on their own")),
        Op::Netfilter(_) => Err(Unsent::NotNetlink("netfilter's rules")),
        Op::Link(_) | Op::TxQueueLen { .. } | Op::Mtu { .. } => Err(Unsent::NotNetlink("links in this way")),
        Op::Ring { .. } => Err(Unsent::NotNetlink("rings of cards")),
    }
}

/// The flags of a verb.
const fn flags(verb: Verb) -> u16 {
    let flags = NLM_F_REQUEST | NLM_F_ACK;
    match verb {
        Verb::Add => flags | NLM_F_CREATE | NLM_F_EXCL,
        Verb::Replace => flags | NLM_F_CREATE | NLM_F_REPLACE,
        Verb::Link => flags | NLM_F_REPLACE,
        Verb::Change | Verb::Delete => flags,
    }
}

/// The flags for classes and filters: these always replace an existing one, unless that is forbidden.
const fn in_place(verb: Verb) -> u16 {
    match verb {
        Verb::Replace => flags(verb) & !NLM_F_REPLACE,
        _ => flags(verb),
    }
}

/// The part that messages about qdiscs, classes and filters begin with (`tcmsg`): the number of the device,
/// the handle of what they are about, what that is attached to, and for filters preference and protocol.
///
/// ```
/// use tidegate_netlink::encode::tc_head;
/// use tidegate_packet::Handle;
///
/// let head = tc_head(2, Handle::new(1, 0).0, Handle::ROOT, 0);
/// assert_eq!((head.len(), &head[12..16]), (20, &[0xff; 4][..]));
/// ```
pub fn tc_head(device: u32, handle: u32, parent: Handle, info: u32) -> Vec<u8> {
    words(&[0, device, handle, parent.0, info])
}

/// What follows the head of a message that requests qdiscs, classes or filters (`RTM_GETQDISC` and so
/// on, as a dump); filters are requested by what they are attached to, the rest by
/// [`Handle::NONE`](tidegate_packet::Handle).
pub fn question(device: u32, parent: Handle) -> Vec<u8> {
    let mut body = tc_head(device, 0, parent, 0);
    let mut invisible = Attributes::default();
    invisible.payload(TCA_DUMP_INVISIBLE, &[]);
    body.extend(invisible.bytes());
    body
}

/// What follows the head of a message that lists the qdiscs of all devices, without those that the kernel
/// made itself.
pub fn all_question() -> Vec<u8> {
    tc_head(0, 0, Handle::NONE, 0)
}

/// What follows the head of a message that requests the machine's actions of a kind.
pub fn actions_question(kind: &str) -> Vec<u8> {
    let mut to = Attributes::default();
    action::all_of(&mut to, kind);
    let mut body = words(&[0]);
    body.extend(to.bytes());
    body
}

fn kind(to: &mut Attributes, kind: Option<&str>) {
    if let Some(kind) = kind {
        to.text(TCA_KIND, kind);
    }
}

fn estimator(to: &mut Attributes, estimator: Option<Estimator>) {
    if let Some(Estimator { interval_log, ewma_log }) = estimator {
        // The kernel counts intervals from a quarter second, two steps below one second.
        to.payload(TCA_RATE, &[interval_log.wrapping_sub(2), ewma_log]);
    }
}

fn on_qdisc(op: &QdiscOp, devices: Devices<'_>) -> Result<NetlinkMessage, Unsent> {
    let mut to = Attributes::default();
    kind(&mut to, op.kind.as_deref());
    estimator(&mut to, op.estimator);
    if let (Some(params), Some(kind)) = (&op.params, op.kind.as_deref().and_then(Kind::named)) {
        codec(kind).encode(&mut to, params, op.verb == Verb::Change);
    }
    if let Some(table) = &op.stab {
        rate::size_table(&mut to, table);
    }
    for (attribute, block) in [(TCA_INGRESS_BLOCK, op.blocks.ingress), (TCA_EGRESS_BLOCK, op.blocks.egress)] {
        if block != 0 {
            to.u32(attribute, block);
        }
    }
    let mut body = tc_head(number(devices, &op.dev)?, op.handle.0, op.parent, 0);
    body.extend(to.bytes());
    let kind = if op.verb == Verb::Delete { RTM_DELQDISC } else { RTM_NEWQDISC };
    Ok(NetlinkMessage { kind, flags: flags(op.verb), body })
}

fn on_class(op: &ClassOp, devices: Devices<'_>) -> Result<NetlinkMessage, Unsent> {
    let mut to = Attributes::default();
    kind(&mut to, op.kind.as_deref());
    estimator(&mut to, op.estimator);
    // The words may be another kind's than the qdisc's: the kernel reads them as its own.
    if let Some((params, kind)) = op.params.as_ref().and_then(|params| Some((params, params.kind()?))) {
        codec(kind).encode_class(&mut to, params);
    }
    let mut body = tc_head(number(devices, &op.dev)?, op.classid.0, op.parent, 0);
    body.extend(to.bytes());
    let kind = if op.verb == Verb::Delete { RTM_DELTCLASS } else { RTM_NEWTCLASS };
    Ok(NetlinkMessage { kind, flags: in_place(op.verb), body })
}

fn on_filter(op: &FilterOp, devices: Devices<'_>) -> Result<NetlinkMessage, Unsent> {
    let mut to = Attributes::default();
    if op.chain != 0 {
        to.u32(TCA_CHAIN, op.chain);
    }
    kind(&mut to, op.kind.as_deref());
    if let Some(params) = &op.params {
        filter::options(&mut to, op, params, devices)?;
    }
    // Half of the word is in the order of the wire.
    let info = u32::from(op.pref) << 16 | u32::from(op.protocol.to_be());
    let (device, parent) = match op.block {
        0 => (number(devices, &op.dev)?, op.parent),
        // The number of the block is in the place of the parent.
        block => (TCM_IFINDEX_MAGIC_BLOCK, Handle(block)),
    };
    let mut body = tc_head(device, op.handle, parent, info);
    body.extend(to.bytes());
    let kind = if op.verb == Verb::Delete { RTM_DELTFILTER } else { RTM_NEWTFILTER };
    Ok(NetlinkMessage { kind, flags: in_place(op.verb), body })
}

fn on_actions(op: &ActionsOp, devices: Devices<'_>) -> Result<NetlinkMessage, Unsent> {
    let mut to = Attributes::default();
    let (kind, flags) = match op {
        ActionsOp::Set(verb, all) => {
            action::list(&mut to, action::OF_MACHINE, all, devices)?;
            let more = if *verb == Verb::Add { NLM_F_EXCL } else { NLM_F_REPLACE };
            (RTM_NEWACTION, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | more)
        }
        ActionsOp::Delete(ids) => {
            action::named(&mut to, ids);
            (RTM_DELACTION, NLM_F_REQUEST | NLM_F_ACK)
        }
        ActionsOp::Flush(kind) => {
            action::flush(&mut to, kind);
            (RTM_DELACTION, NLM_F_REQUEST | NLM_F_ACK | NLM_F_ROOT)
        }
    };
    let mut body = words(&[0]);
    body.extend(to.bytes());
    Ok(NetlinkMessage { kind, flags, body })
}

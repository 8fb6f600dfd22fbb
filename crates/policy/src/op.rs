//! Operations: what one command requests of the kernel.

use crate::action::Action;
use crate::filter::FilterParams;
use crate::kind::{ClassParams, QdiscParams};
use crate::link::LinkOp;
use crate::netfilter::NfOp;
use crate::rate::{Estimator, SizeTable};
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_packet::Handle;

/// One operation on the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// On a qdisc.
    Qdisc(QdiscOp),
    /// On a class.
    Class(ClassOp),
    /// On a filter.
    Filter(FilterOp),
    /// On a chain of filters.
    Chain(ChainOp),
    /// On the machine's actions.
    Actions(ActionsOp),
    /// On a netfilter table.
    Netfilter(NfOp),
    /// On a link.
    Link(LinkOp),
    /// `ip link set DEV txqueuelen N`, `ifconfig DEV txqueuelen N`.
    TxQueueLen {
        /// The device's name.
        dev: String,
        /// Packets.
        packets: u32,
    },
    /// `ethtool -G DEV tx N`.
    Ring {
        /// The device's name.
        dev: String,
        /// Frames of the transmit ring.
        frames: u32,
    },
    /// `ip link set DEV mtu N`.
    Mtu {
        /// The device's name.
        dev: String,
        /// Bytes of the largest network packet.
        bytes: u32,
    },
}

/// What is to be done: tc's verbs, as netlink flags have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Make; fail if it is there.
    Add,
    /// Change; fail if it is not there.
    Change,
    /// Make, or replace what exists.
    Replace,
    /// Put an existing qdisc in this place.
    Link,
    /// Take away.
    Delete,
}

/// An operation on a qdisc.
#[derive(Clone, Debug, PartialEq)]
pub struct QdiscOp {
    /// Make, change, replace, link or delete.
    pub verb: Verb,
    /// The name of the device.
    pub dev: String,
    /// [`Handle::ROOT`], [`Handle::INGRESS`] or the class it is attached to; [`Handle::NONE`] by default.
    pub parent: Handle,
    /// Its own handle; [`Handle::NONE`] by default.
    pub handle: Handle,
    /// The kind's name; `None` by default (`del`). A name tidegate does not know reaches the gateway,
    /// which refuses it as the kernel would.
    pub kind: Option<String>,
    /// Its parameters; `None` when tc sends none for this kind.
    pub params: Option<QdiscParams>,
    /// The size table (`stab`, tc-stab(8)): what packets count as.
    pub stab: Option<SizeTable>,
    /// The rate estimator; one that is there stays when nothing is reported.
    pub estimator: Option<Estimator>,
    /// The blocks that its hooks share with other devices.
    pub blocks: SharedBlocks,
}

/// The shared blocks of an ingress or clsact qdisc: lists of filters that several hooks have in common. 0:
/// its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedBlocks {
    /// For what arrives (`ingress_block N`).
    pub ingress: u32,
    /// For what leaves (`egress_block N`).
    pub egress: u32,
}

/// An operation on a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassOp {
    /// Make, change, replace or delete.
    pub verb: Verb,
    /// The name of the device.
    pub dev: String,
    /// The class or qdisc above; [`Handle::ROOT`] for `root`, [`Handle::NONE`] by default.
    pub parent: Handle,
    /// Its id; [`Handle::NONE`] by default.
    pub classid: Handle,
    /// The kind's name as given.
    pub kind: Option<String>,
    /// The class's parameters; `None` where the command gives none.
    pub params: Option<ClassParams>,
    /// The rate estimator; one that is there stays when nothing is reported.
    pub estimator: Option<Estimator>,
}

/// An operation on a filter.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterOp {
    /// Make, change, replace or delete.
    pub verb: Verb,
    /// On which device; empty when it is about a block.
    pub dev: String,
    /// The shared block that it belongs to, 0 if none; parents mean nothing then.
    pub block: u32,
    /// The qdisc or class it is attached to; [`Handle::NONE`] = the root qdisc.
    pub parent: Handle,
    /// Preference: lower is evaluated first; 0 = the kernel chooses.
    pub pref: u16,
    /// EtherType; 3 = all; 0 by default.
    pub protocol: u16,
    /// The chain that it is in; 0: the one that packets begin with.
    pub chain: u32,
    /// Handle within the kind (fw: the mark; u32: table, bucket, node); 0 by default.
    pub handle: u32,
    /// The kind's name as given; `None` by default.
    pub kind: Option<String>,
    /// Its parameters; `None`: none were given, as when it is deleted.
    pub params: Option<FilterParams>,
    /// What it does beside naming a class, in order.
    pub actions: Vec<Action>,
}

/// An operation on a chain of filters itself (`tc chain`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainOp {
    /// True to add, false to delete it with its filters.
    pub add: bool,
    /// On which device; empty when it is about a block.
    pub dev: String,
    /// The shared block that it belongs to, 0 if none.
    pub block: u32,
    /// The qdisc or class whose chain it is; [`Handle::NONE`] = the root qdisc.
    pub parent: Handle,
    /// The chain's number.
    pub chain: u32,
}

/// An operation on the machine's actions, which filters share (`tc actions`).
#[derive(Clone, Debug, PartialEq)]
pub enum ActionsOp {
    /// Make these, or change those that are there. Where one is refused, none is made.
    Set(Verb, Vec<Action>),
    /// Take these away, in order, as far as no filter has them.
    Delete(Vec<ActionId>),
    /// Removes those of a kind that no filter has. The kind may be unknown.
    Flush(String),
}

/// An action of the machine, by kind and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionId {
    /// The kind's name in tc.
    pub kind: &'static str,
    /// Its number among those of its kind.
    pub index: u32,
}

impl FilterOp {
    /// `protocol all`, as an EtherType.
    pub const ALL: u16 = 3;
}

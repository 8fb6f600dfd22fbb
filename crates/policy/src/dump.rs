//! What the kernel reports about itself: one struct per line group of `tc show`.

pub use crate::kind::stats::*;
use alloc::string::String;
use alloc::vec::Vec;

use crate::action::{Action, CtinfoCounts};
use crate::filter::FilterParams;
use crate::kind::{ClassParams, Kind, QdiscParams};
use crate::op::SharedBlocks;
use crate::rate::SizeTable;
use tidegate_packet::Handle;

/// The counters every qdisc has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped here or below.
    pub drops: u32,
    /// Times sending was put off (what this means is each kind's own).
    pub overlimits: u32,
    /// How often a packet was put back because the device had no space.
    pub requeues: u32,
    /// Packets waiting.
    pub qlen: u32,
    /// Bytes waiting.
    pub backlog: u32,
    /// How fast it sent lately, where a rate estimator was requested.
    pub rate: Option<RateSample>,
}

/// The figures of a rate estimator, in a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes per second.
    pub bytes: u64,
    /// Packets per second.
    pub packets: u64,
}

/// A queueing discipline (qdisc) as `tc qdisc show` lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct QdiscDump {
    /// The name of its device.
    pub dev: String,
    /// The kind of qdisc.
    pub kind: Kind,
    /// Its handle; [`Handle::NONE`] for the hidden defaults.
    pub handle: Handle,
    /// [`Handle::ROOT`] or the class it is attached to.
    pub parent: Handle,
    /// References: 2 for a device's root, else 1.
    pub refcnt: u32,
    /// The parameters in force.
    pub params: QdiscParams,
    /// The size table, if one was set.
    pub stab: Option<SizeTable>,
    /// The blocks that its hooks share with other devices.
    pub blocks: SharedBlocks,
    /// A queue that no command made, such as a class begins with: `tc qdisc show` lists it after `invisible`
    /// only.
    pub invisible: bool,
    /// What it counted since it was made.
    pub stats: QueueStats,
    /// What only its kind counts.
    pub xstats: Xstats,
}

impl QdiscDump {
    /// What its lists of filters are attached to: a clsact has one for each direction and none of its own.
    /// Nothing of hidden defaults.
    pub fn filter_lists(&self) -> impl Iterator<Item = Handle> + use<> {
        let (first, second) = match self.kind {
            Kind::Clsact => (Handle::CLSACT_INGRESS, Handle::CLSACT_EGRESS),
            _ => (self.handle, Handle::NONE),
        };
        [first, second].into_iter().filter(|list| !list.is_none())
    }
}

/// A class as `tc class show` lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassDump {
    /// The name of its device.
    pub dev: String,
    /// The kind of its qdisc.
    pub kind: Kind,
    /// Its class id.
    pub classid: Handle,
    /// The class or qdisc above, or [`Handle::ROOT`].
    pub parent: Handle,
    /// The qdisc that is attached to it, if that has a handle.
    pub leaf: Handle,
    /// The parameters in force.
    pub params: ClassParams,
    /// Its counters; tbf's class has none.
    pub stats: Option<QueueStats>,
    /// What only its kind counts.
    pub xstats: Xstats,
}

/// One line of `tc filter show`.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterDump {
    /// The device; empty in the listing of a shared block.
    pub dev: String,
    /// The shared block that it is in, 0 if none.
    pub block: u32,
    /// The qdisc or class it is attached to.
    pub parent: Handle,
    /// The EtherType that packets must have; 3 (`ETH_P_ALL`): any.
    pub protocol: u16,
    /// Its preference: lower ones are evaluated first.
    pub pref: u16,
    /// The kind's name.
    pub kind: &'static str,
    /// The chain that it is in; packets begin at 0.
    pub chain: u32,
    /// What the line is about.
    pub entry: FilterEntry,
}

/// What a line of `tc filter show` is about.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterEntry {
    /// The heading of a preference.
    Heading,
    /// A hash table of u32.
    U32Table {
        /// Its number (`800`).
        table: u32,
        /// The number of its buckets.
        divisor: u32,
    },
    /// One filter.
    Filter {
        /// Handle within the kind.
        handle: u32,
        /// Its parameters in force.
        params: FilterParams,
        /// Hits, where the kind counts them.
        hits: Option<U32Hits>,
        /// The actions of the filter, in order.
        actions: Vec<ActionDump>,
    },
}

/// An action of a filter, with what it counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDump {
    /// What it does, and its number.
    pub action: Action,
    /// Bytes it saw, as the hook counts them: without the link header where packets arrive.
    pub bytes: u64,
    /// Packets that came to it.
    pub packets: u64,
    /// Packets that it dropped.
    pub drops: u32,
    /// Packets that went over its limits.
    pub overlimits: u32,
    /// How many filters have it.
    pub binds: u32,
    /// References to the action: one a filter, and one more where it was made on its own.
    pub refs: u32,
    /// A filter had it last by `police` without `action`: then the kernel adds its counters to each filter
    /// that has it first.
    pub counted_old: bool,
    /// It was made that way: then cards need not count for it.
    pub made_old: bool,
    /// How long ago it was made, ns.
    pub installed: u64,
    /// Since it was last used (or made), ns.
    pub used: u64,
    /// Since it was first used, ns.
    pub first_used: Option<u64>,
    /// What a ctinfo did.
    pub ctinfo: CtinfoCounts,
}

/// How often a u32 filter was evaluated, and how often its keys matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct U32Hits {
    /// Packets that came to it.
    pub lookups: u64,
    /// Packets that it matched.
    pub matched: u64,
    /// Per key: packets for which the keys up to this one held. Per condition of basic: packets for which it
    /// held.
    pub keys: Vec<u64>,
    /// Packets whose mark matched; of flower, packets that came in by its device.
    pub mark: u64,
}

/// Everything that is configured on one device, as its dumps: what a plan of changes begins with and ends at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Installed {
    /// Its qdiscs, those that came without being requested (no handle) included.
    pub qdiscs: Vec<QdiscDump>,
    /// The classes, in the order of tc's listing.
    pub classes: Vec<ClassDump>,
    /// The filters of all its qdiscs and classes, each list in its order.
    pub filters: Vec<FilterDump>,
}

//! What the kernel tells about itself: one struct per line group of `tc show`.

mod cake;
mod dualpi2;
mod fq;
mod fq_pie;
mod hhf;

pub use cake::{CakeFlowStats, CakeStats, CakeTinStats};
pub use dualpi2::DualPi2Stats;
pub use fq::FqStats;
pub use fq_pie::FqPieStats;
pub use hhf::HhfStats;

use crate::action::{Action, CtinfoCounts};
use crate::filter::FilterParams;
use crate::kind::Kind;
use crate::op::SharedBlocks;
use crate::params::{ClassParams, QdiscParams};
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
    /// Packets put back.
    pub requeues: u32,
    /// Packets waiting.
    pub qlen: u32,
    /// Bytes waiting.
    pub backlog: u32,
    /// How fast it sent lately, where a rate estimator was asked for.
    pub rate: Option<RateSample>,
}

/// What a rate estimator tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes per second.
    pub bytes: u64,
    /// Packets per second.
    pub packets: u64,
}

/// A queueing discipline as `tc qdisc show` tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct QdiscDump {
    /// The device.
    pub dev: String,
    /// Its kind.
    pub kind: Kind,
    /// Its handle; [`Handle::NONE`] for the hidden defaults.
    pub handle: Handle,
    /// [`Handle::ROOT`] or the class it hangs on.
    pub parent: Handle,
    /// References: 2 for a device's root, else 1.
    pub refcnt: u32,
    /// The parameters in force.
    pub params: QdiscParams,
    /// The size table, if one was set.
    pub stab: Option<SizeTable>,
    /// The blocks that its hooks share with other devices.
    pub blocks: SharedBlocks,
    /// Its counters.
    pub stats: QueueStats,
    /// What only its kind counts.
    pub xstats: Xstats,
}

/// A class as `tc class show` tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassDump {
    /// The device.
    pub dev: String,
    /// The kind of its qdisc.
    pub kind: Kind,
    /// Its id.
    pub classid: Handle,
    /// The class or qdisc above, or [`Handle::ROOT`].
    pub parent: Handle,
    /// The qdisc that hangs on it, if that has a handle.
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
    /// The qdisc or class it hangs on.
    pub parent: Handle,
    /// EtherType; 3 = all.
    pub protocol: u16,
    /// Preference.
    pub pref: u16,
    /// The kind's name.
    pub kind: &'static str,
    /// Chain.
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
        /// Its buckets.
        divisor: u32,
    },
    /// A filter.
    Filter {
        /// Handle within the kind.
        handle: u32,
        /// Its parameters in force.
        params: FilterParams,
        /// Hits, where the kind counts them.
        hits: Option<U32Hits>,
        /// Its actions.
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
    /// Packets it saw.
    pub packets: u64,
    /// Packets it dropped.
    pub drops: u32,
    /// Packets that went over its limits.
    pub overlimits: u32,
    /// Filters that have it.
    pub binds: u32,
    /// The same, and one more where it was made by itself.
    pub refs: u32,
    /// A filter had it last by `police` without `action`: then the kernel adds its counters to each filter that has it first.
    pub counted_old: bool,
    /// It was made that way: then cards need not count for it.
    pub made_old: bool,
    /// Since it was made, ns.
    pub installed: u64,
    /// Since it was last used (or made), ns.
    pub used: u64,
    /// Since it was first used, ns.
    pub first_used: Option<u64>,
    /// What a ctinfo did.
    pub ctinfo: CtinfoCounts,
}

/// How often a u32 filter was asked, and with what success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct U32Hits {
    /// Packets that came to it.
    pub asked: u64,
    /// Packets that it matched.
    pub matched: u64,
    /// Per key: packets for which the keys up to this one held. Per condition of basic: packets for which it held.
    pub keys: Vec<u64>,
    /// Packets whose mark matched; of flower, packets that came in by its device.
    pub mark: u64,
}

/// Counters that belong to one kind only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Xstats {
    /// None.
    #[default]
    None,
    /// htb's qdisc.
    Htb {
        /// Packets that were sent past all classes.
        direct_packets: u32,
    },
    /// A class of htb.
    HtbClass {
        /// Packets sent on its tokens.
        lends: u32,
        /// Packets it sent on an ancestor's tokens.
        borrows: u32,
        /// Packets longer than the table (always 0 today).
        giants: u32,
        /// Tokens, in psched ticks; may be negative.
        tokens: i32,
        /// The ceiling's tokens.
        ctokens: i32,
        /// 0 for a leaf.
        level: u32,
    },
    /// A class of drr.
    DrrClass {
        /// Bytes it may still send in its turn.
        deficit: u32,
    },
    /// A flow of sfq.
    SfqClass {
        /// Bytes it may still send in its turn.
        allot: i32,
    },
    /// codel.
    Codel(CodelStats),
    /// fq_codel.
    FqCodel(FqCodelStats),
    /// A class of hfsc.
    HfscClass {
        /// Bytes it sent in all.
        work: u64,
        /// Bytes of these by its real-time curve.
        rtwork: u64,
        /// Times it became active.
        period: u32,
        /// 0 for a leaf.
        level: u32,
    },
    /// sfq with random early detection.
    Sfq(SfqStats),
    /// red and choke.
    Red(RedStats),
    /// sfb.
    Sfb(SfbStats),
    /// pie.
    Pie(PieStats),
    /// dualpi2.
    DualPi2(DualPi2Stats),
    /// cake.
    Cake(Box<CakeStats>),
    /// A flow of cake.
    CakeFlow(CakeFlowStats),
    /// fq.
    Fq(FqStats),
    /// fq_pie.
    FqPie(FqPieStats),
    /// hhf.
    Hhf(HhfStats),
    /// A flow of fq_codel.
    FqCodelClass {
        /// Bytes it may still send in its turn.
        deficit: i32,
        /// Its CoDel state.
        codel: CodelStats,
    },
}

/// CoDel's state and counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodelStats {
    /// The largest packet seen, bytes.
    pub maxpacket: u32,
    /// Drops in this dropping episode.
    pub count: u32,
    /// Drops in the last.
    pub lastcount: u32,
    /// The last packet's sojourn time, µs.
    pub ldelay_us: u32,
    /// Until the next drop, µs; negative when due.
    pub drop_next_us: i32,
    /// In a dropping episode?
    pub dropping: bool,
    /// Packets refused at the limit.
    pub drop_overlimit: u32,
    /// Marked instead of dropped.
    pub ecn_mark: u32,
    /// Marked for passing ce_threshold.
    pub ce_mark: u32,
}

/// fq_codel's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqCodelStats {
    /// The largest packet seen, bytes.
    pub maxpacket: u32,
    /// Packets dropped because of the limits.
    pub drop_overlimit: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
    /// Times a flow became new.
    pub new_flow_count: u32,
    /// Flows on the list of new ones.
    pub new_flows_len: u32,
    /// Flows on the list of old ones.
    pub old_flows_len: u32,
    /// Marked for passing ce_threshold.
    pub ce_mark: u32,
    /// Memory in use, bytes.
    pub memory_used: u32,
    /// Drops because of the memory limit.
    pub drop_overmemory: u32,
}

/// The counters of red and choke.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedStats {
    /// Packets dropped early.
    pub early: u32,
    /// Packets that the queue below had no room for.
    pub pdrop: u32,
    /// Packets lost in other ways.
    pub other: u32,
    /// Packets marked instead of dropped.
    pub marked: u32,
    /// choke: pairs of packets of one flow.
    pub matched: Option<u32>,
}

/// What sfq's random early detection did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SfqStats {
    /// Dropped by the probability.
    pub prob_drop: u32,
    /// Marked by the probability: the arrival.
    pub prob_mark: u32,
    /// Marked by the probability: the flow's oldest packet.
    pub prob_mark_head: u32,
    /// Dropped because the average was too long.
    pub forced_drop: u32,
    /// Marked for that: the arrival.
    pub forced_mark: u32,
    /// Marked for that: the flow's oldest packet.
    pub forced_mark_head: u32,
}

/// sfb's counters and state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SfbStats {
    /// Packets dropped by their flow's probability.
    pub earlydrop: u32,
    /// Packets over the penalty rate of a flow that does not respond.
    pub penaltydrop: u32,
    /// Packets whose bins were all full.
    pub bucketdrop: u32,
    /// Packets that came to a full queue.
    pub queuedrop: u32,
    /// Packets that the queue below refused.
    pub childdrop: u32,
    /// Packets marked instead of dropped.
    pub marked: u32,
    /// Packets in the fullest bin.
    pub maxqlen: u32,
    /// The highest probability of a bin, 65535 = 1.
    pub maxprob: u32,
    /// The mean probability of the bins.
    pub avgprob: u32,
}

/// pie's counters and state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieStats {
    /// Probability of a drop, 2^64 - 1 = 1.
    pub prob: u64,
    /// The queue's delay, µs.
    pub delay_us: u32,
    /// The measured rate, bytes per second; shown with the rate estimator.
    pub avg_dq_rate: u32,
    /// Is the rate being measured?
    pub dq_rate_estimating: bool,
    /// Packets taken in.
    pub packets_in: u32,
    /// Packets that came to a full queue.
    pub overlimit: u32,
    /// Packets dropped by the probability.
    pub dropped: u32,
    /// The longest queue, packets.
    pub maxq: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
}

/// Everything that is configured on one device, as its dumps: what a plan of changes begins with and ends at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Installed {
    /// Its qdiscs, those that came without being asked for (no handle) included.
    pub qdiscs: Vec<QdiscDump>,
    /// Its classes.
    pub classes: Vec<ClassDump>,
    /// The filters of all its qdiscs and classes, each list in its order.
    pub filters: Vec<FilterDump>,
}

//! What each kind of qdisc and class is configured with: the values that tc sends, and that a dump brings back.
//!
//! `None` means that tc sent nothing: on creation the kernel's default holds, on change the present value stays. In a dump every
//! value is there.

mod cake;
mod dualpi2;
mod ets;
mod foreign;
mod fq;
mod fq_pie;
mod gred;
mod hhf;
mod netem;
mod skbprio;

pub use cake::{CakeAckFilter, CakeFlows, CakeFraming, CakeParams, CakeTins};
pub use dualpi2::{DualPi2Params, StepThreshold};
pub use ets::{EtsClassParams, EtsParams, MAX_BANDS};
pub use fq::FqParams;
pub use fq_pie::FqPieParams;
pub use gred::{GredFlags, GredParams, GredQueue, GredQueueDump, GredSetup};
pub use hhf::HhfParams;
pub use netem::{NetemCorrelations, NetemLoss, NetemParams, NetemRate, NetemSlot, Share, Table};
pub use skbprio::SkbprioParams;

use crate::rate::{RateSpec, Ticks};

/// Parameters of a qdisc.
#[derive(Clone, Debug, PartialEq)]
pub enum QdiscParams {
    /// pfifo, bfifo, pfifo_head_drop.
    Fifo(FifoParams),
    /// pfifo_fast: in a dump, its map of priorities to bands.
    PfifoFast,
    /// noqueue: nothing can be said.
    Noqueue,
    /// prio.
    Prio(PrioParams),
    /// tbf.
    Tbf(TbfParams),
    /// htb.
    Htb(HtbParams),
    /// sfq.
    Sfq(SfqParams),
    /// drr.
    Drr,
    /// codel.
    Codel(CodelParams),
    /// fq_codel.
    FqCodel(FqCodelParams),
    /// hfsc.
    Hfsc(HfscParams),
    /// qfq.
    Qfq,
    /// red.
    Red(RedParams),
    /// choke.
    Choke(RedParams),
    /// sfb.
    Sfb(SfbParams),
    /// pie.
    Pie(PieParams),
    /// dualpi2.
    DualPi2(DualPi2Params),
    /// cake.
    Cake(Box<CakeParams>),
    /// ets.
    Ets(EtsParams),
    /// fq.
    Fq(FqParams),
    /// fq_pie.
    FqPie(FqPieParams),
    /// gred.
    Gred(GredParams),
    /// hhf.
    Hhf(HhfParams),
    /// netem.
    Netem(Box<NetemParams>),
    /// skbprio.
    Skbprio(SkbprioParams),
    /// ingress and clsact: nothing can be said.
    Ingress,
}

/// Parameters of a class.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassParams {
    /// A class that nothing can be said of: those of prio and tbf, and fq_codel's and sfq's flows.
    None,
    /// htb.
    Htb(HtbClassParams),
    /// drr.
    Drr(DrrClassParams),
    /// hfsc.
    Hfsc(HfscClassParams),
    /// qfq.
    Qfq(QfqClassParams),
    /// ets.
    Ets(EtsClassParams),
}

/// pfifo, bfifo and pfifo_head_drop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FifoParams {
    /// Packets (bfifo: bytes). Default: the device's transmit queue length (bfifo: times the largest frame).
    pub limit: Option<u32>,
}

/// prio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrioParams {
    /// Bands, 2 to 16.
    pub bands: u32,
    /// Band of each of the 16 priorities.
    pub priomap: [u8; 16],
}

impl Default for PrioParams {
    fn default() -> PrioParams {
        PrioParams { bands: 3, priomap: PrioParams::MAP }
    }
}

impl PrioParams {
    /// The customary map, pfifo_fast's too.
    pub const MAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
}

/// tbf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TbfParams {
    /// The rate that tokens come at.
    pub rate: RateSpec,
    /// The rate at which even a full bucket may be emptied.
    pub peak: Option<RateSpec>,
    /// Bytes that may wait.
    pub limit: u32,
    /// Bytes that the bucket holds. Not in a dump: there `buffer` tells.
    pub burst: u32,
    /// Bytes that the peak bucket holds (`mtu`, `minburst`). Not in a dump.
    pub peak_burst: u32,
    /// The bucket as time at `rate`.
    pub buffer: Ticks,
    /// The peak bucket as time at `peak`.
    pub peak_buffer: Ticks,
}

/// htb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtbParams {
    /// Minor number of the class for what nothing classifies; 0 = none.
    pub default: u32,
    /// A class's quantum is its rate in bytes per second divided by this, unless given.
    pub r2q: u32,
    /// Packets that may wait unclassified. Default: the device's transmit queue length.
    pub direct_qlen: Option<u32>,
}

impl Default for HtbParams {
    fn default() -> HtbParams {
        HtbParams { default: 0, r2q: 10, direct_qlen: None }
    }
}

/// A class of htb.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HtbClassParams {
    /// What it is sure of.
    pub rate: RateSpec,
    /// What it may borrow up to.
    pub ceil: RateSpec,
    /// Its bucket, as time at `rate`.
    pub buffer: Ticks,
    /// Its ceiling's bucket, as time at `ceil`.
    pub cbuffer: Ticks,
    /// Bytes served in its turn; 0 = from the rate. In a dump: the value in force.
    pub quantum: u32,
    /// 0 (served first) to 7.
    pub prio: u32,
}

/// sfq. As tc sends them: 0 leaves the value as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SfqParams {
    /// Bytes a flow sends in its turn.
    pub quantum: u32,
    /// Seconds between changes of the hash key.
    pub perturb: i32,
    /// Packets in all.
    pub limit: u32,
    /// Buckets of the hash.
    pub divisor: u32,
    /// Flows that may be active at once.
    pub flows: u32,
    /// Packets that one flow may have.
    pub depth: u32,
    /// Drop the oldest packet of a flow instead of the newest.
    pub headdrop: bool,
    /// Random early detection in each flow.
    pub red: Option<SfqRed>,
}

/// Random early detection in each flow of sfq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SfqRed {
    /// Bytes that a flow may have; the kernel is told and never asks. Not in a dump.
    pub limit: u32,
    /// When to mark; bytes.
    pub curve: RedCurve,
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Drop above the curve's `max` even what can carry a mark.
    pub harddrop: bool,
}

/// A class of drr.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrrClassParams {
    /// Bytes sent in its turn. Default: the largest frame.
    pub quantum: Option<u32>,
}

/// codel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodelParams {
    /// Packets.
    pub limit: Option<u32>,
    /// Sojourn time to hold, µs.
    pub target_us: Option<u32>,
    /// Time allowed for a sender to react, µs.
    pub interval_us: Option<u32>,
    /// Mark instead of dropping where the packet can carry the mark.
    pub ecn: Option<bool>,
    /// Mark everything that waited longer, µs. In a dump `None` = off.
    pub ce_threshold_us: Option<u32>,
}

/// fq_codel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqCodelParams {
    /// Packets in all.
    pub limit: Option<u32>,
    /// Queues; fixed once created.
    pub flows: Option<u32>,
    /// Bytes that a flow sends in its turn.
    pub quantum: Option<u32>,
    /// Sojourn time to hold, µs.
    pub target_us: Option<u32>,
    /// Time allowed for a sender to react, µs.
    pub interval_us: Option<u32>,
    /// Mark instead of dropping where the packet can carry the mark.
    pub ecn: Option<bool>,
    /// Mark everything that waited longer, µs. In a dump `None` = off.
    pub ce_threshold_us: Option<u32>,
    /// Only packets whose DS field under the mask equals the value are held against `ce_threshold_us`: (value, mask).
    pub ce_selector: Option<(u8, u8)>,
    /// Memory, bytes.
    pub memory_limit: Option<u32>,
    /// Packets dropped at once from the fattest flow when full.
    pub drop_batch: Option<u32>,
}

/// hfsc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HfscParams {
    /// Minor number of the class for what nothing classifies; 0 = none, and such packets are dropped.
    pub default: u16,
}

/// A class of hfsc. Of the three curves `None` and a curve of two zero slopes mean the same: there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HfscClassParams {
    /// Real time: what the class is given whatever the others want.
    pub rt: Option<ServiceCurve>,
    /// Link sharing: its part of what is left.
    pub ls: Option<ServiceCurve>,
    /// Upper limit of what it gets by link sharing.
    pub ul: Option<ServiceCurve>,
}

/// A curve of two straight pieces: bytes of service over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceCurve {
    /// Slope of the first piece, bytes per second.
    pub m1: u32,
    /// Where the first piece ends, µs.
    pub d_us: u32,
    /// Slope of the second piece, bytes per second.
    pub m2: u32,
}

/// A class of qfq.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QfqClassParams {
    /// Its share, 1 to 1024. In a dump: the value in force. Default: 1.
    pub weight: Option<u32>,
    /// Its longest packet, bytes, 512 to 65536. Default: the largest frame.
    pub maxpkt: Option<u32>,
}

/// What random early detection goes by, as tc computes it and the kernel keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedCurve {
    /// Below this average nothing happens; bytes (choke: packets).
    pub min: u32,
    /// From this average on every packet is marked or dropped.
    pub max: u32,
    /// The average moves by 1/2^this of the difference with each packet.
    pub wlog: u8,
    /// log2 of (max - min) / probability: what kernels before 3.3 went by.
    pub plog: u8,
    /// Each entry of the idle table stands for 2^this microseconds.
    pub scell_log: u8,
    /// Probability of a mark at `max`, in 2^-32.
    pub max_p: u32,
}

/// By how many bits the average shrinks while the queue is idle, by the idle time in cells.
pub type IdleTable = [u8; 256];

/// red (bytes) and choke (packets).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedParams {
    /// Bytes (choke: packets) that may wait.
    pub limit: u32,
    /// When to mark.
    pub curve: RedCurve,
    /// What idleness does to the average. Not in a dump.
    pub idle: Option<Box<IdleTable>>,
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: bool,
    /// Drop above `max` even what can carry a mark.
    pub harddrop: bool,
    /// Move the probability so that the average stays between the thresholds.
    pub adaptive: bool,
    /// Never drop early, also what cannot carry a mark.
    pub nodrop: bool,
}

/// sfb: as tc sends them. Probabilities are 16 bit, 65535 = 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SfbParams {
    /// Time between changes of the hash key, ms.
    pub rehash_ms: u32,
    /// For how long before it the next key's bins are warmed up, ms.
    pub warmup_ms: u32,
    /// Packets that may wait; 0 = the device's transmit queue length.
    pub limit: u32,
    /// Packets of a bin above which it counts as full.
    pub max: u32,
    /// Packets of a bin from which its probability grows.
    pub target: u32,
    /// By how much it grows.
    pub increment: u32,
    /// By how much it shrinks when the bin is empty.
    pub decrement: u32,
    /// Packets per second let through of a flow that does not respond.
    pub penalty_rate: u32,
    /// And at once.
    pub penalty_burst: u32,
}

/// pie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieParams {
    /// Packets that may wait.
    pub limit: Option<u32>,
    /// Delay to hold, µs.
    pub target_us: Option<u32>,
    /// Time between adjustments of the probability, µs.
    pub tupdate_us: Option<u32>,
    /// Weight of the delay's distance from the target, in 1/16 Hz.
    pub alpha: Option<u32>,
    /// Weight of the delay's growth, in 1/16 Hz.
    pub beta: Option<u32>,
    /// Mark packets that can carry a mark instead of dropping them.
    pub ecn: Option<bool>,
    /// Weigh the probability by the packet's length.
    pub bytemode: Option<bool>,
    /// Take the delay from the backlog and a measured rate instead of the packets' own times.
    pub rate_estimator: Option<bool>,
}

//! The kinds of queueing discipline: one file each, and their tables here.

mod blackhole;
mod cake;
mod choke;
mod codel;
mod custom;
mod drr;
mod dualpi2;
mod ets;
mod fifo;
mod foreign;
mod fq;
mod fq_codel;
mod fq_pie;
mod gred;
mod hfsc;
mod hhf;
mod hook;
mod htb;
mod multiq;
mod netem;
mod noqueue;
mod pfifo_fast;
mod pie;
mod plug;
mod prio;
mod qfq;
mod red;
mod row;
mod sfb;
mod sfq;
mod skbprio;
mod tbf;

use alloc::boxed::Box;
pub use cake::{CakeAckFilter, CakeFlows, CakeFraming, CakeParams, CakeTins};
pub use codel::CodelParams;
pub use custom::CustomParams;
pub use drr::DrrClassParams;
pub use dualpi2::{DualPi2Params, StepThreshold};
pub use ets::{EtsClassParams, EtsParams, MAX_BANDS};
pub use fifo::FifoParams;
pub use fq::FqParams;
pub use fq_codel::FqCodelParams;
pub use fq_pie::FqPieParams;
pub use gred::{GRED_SETUP, GredFlags, GredParams, GredQueue, GredQueueDump, GredSetup};
pub use hfsc::{HfscClassParams, HfscParams, ServiceCurve};
pub use hhf::HhfParams;
pub use htb::{HtbClassParams, HtbParams};
pub use multiq::MultiqParams;
pub use netem::{NetemCorrelations, NetemLoss, NetemParams, NetemRate, NetemSlot, Share, Table};
pub use pie::PieParams;
pub use plug::{PlugCommand, PlugParams};
pub use prio::PrioParams;
pub use qfq::QfqClassParams;
pub use red::{IdleTable, RedCurve, RedParams};
pub use row::{Ahead, Changes, Classes, Filters, Reports, Waits};
pub use sfb::SfbParams;
pub use sfq::{SfqParams, SfqRed};
pub use skbprio::SkbprioParams;
pub use tbf::TbfParams;

use crate::spec::KindSpec;

/// What kinds count.
pub mod stats {
    pub use super::Xstats;
    pub use super::cake::{CakeFlowStats, CakeStats, CakeTinStats};
    pub use super::codel::CodelStats;
    pub use super::dualpi2::DualPi2Stats;
    pub use super::fq::FqStats;
    pub use super::fq_codel::FqCodelStats;
    pub use super::fq_pie::FqPieStats;
    pub use super::hhf::HhfStats;
    pub use super::pie::PieStats;
    pub use super::red::RedStats;
    pub use super::sfb::SfbStats;
    pub use super::sfq::SfqStats;
}

use stats::*;

/// A kind of queueing discipline that tidegate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// First in, first out, limited in packets.
    Pfifo,
    /// First in, first out, limited in bytes.
    Bfifo,
    /// First in, first out, dropping the oldest when full.
    PfifoHeadDrop,
    /// Three strict bands by priority: the default of most devices.
    PfifoFast,
    /// None: what devices made in software have, on which packets leave at once.
    Noqueue,
    /// Strict bands, each with a discipline of its own.
    Prio,
    /// Token bucket filter.
    Tbf,
    /// Hierarchical token bucket.
    Htb,
    /// Stochastic fairness queueing.
    Sfq,
    /// Deficit round robin.
    Drr,
    /// Controlled delay (RFC 8289).
    Codel,
    /// Fair queueing with controlled delay (RFC 8290).
    FqCodel,
    /// Hierarchical fair service curves (SIGCOMM 1997).
    Hfsc,
    /// Quick fair queueing (QFQ+).
    Qfq,
    /// Random early detection (Floyd and Jacobson 1993).
    Red,
    /// CHOKe: random early detection that also drops the arrival's match from the queue (INFOCOM 2000).
    Choke,
    /// Stochastic fair blue (INFOCOM 2001).
    Sfb,
    /// Proportional integral controller enhanced (RFC 8033).
    Pie,
    /// Dual-queue coupled AQM for low latency, low loss and scalable throughput (RFC 9332).
    DualPi2,
    /// Common applications kept enhanced (LANMAN 2018): shaper, tins, flows and hosts in one.
    Cake,
    /// Strict bands, and bands that share by quanta (IEEE 802.1Qaz).
    Ets,
    /// Flows that take turns and are paced.
    Fq,
    /// Fair queueing with PIE in each flow.
    FqPie,
    /// Random early detection with several curves in one queue.
    Gred,
    /// Flows that send much are set apart.
    Hhf,
    /// A network's delays and faults.
    Netem,
    /// The packet of the least priority makes room.
    Skbprio,
    /// Drops every packet.
    Blackhole,
    /// Holds packets until it is told to let them go.
    Plug,
    /// A band for each of the device's transmit queues.
    Multiq,
    /// Filters on what arrives at a device; queues nothing.
    Ingress,
    /// Filters on what arrives and on what leaves; queues nothing.
    Clsact,
    /// A qdisc of the program that uses this library; tc has no name for it.
    Custom,
}

/// What is known of every kind whatever its parameters, in the order of the enum.
#[rustfmt::skip]
pub(crate) const ROWS: &[KindSpec] = &[
    fifo::PFIFO,
    fifo::BFIFO,
    fifo::PFIFO_HEAD_DROP,
    pfifo_fast::PFIFO_FAST,
    noqueue::NOQUEUE,
    prio::PRIO,
    tbf::TBF,
    htb::HTB,
    sfq::SFQ,
    drr::DRR,
    codel::CODEL,
    fq_codel::FQ_CODEL,
    hfsc::HFSC,
    qfq::QFQ,
    red::RED,
    choke::CHOKE,
    sfb::SFB,
    pie::PIE,
    dualpi2::DUALPI2,
    cake::CAKE,
    ets::ETS,
    fq::FQ,
    fq_pie::FQ_PIE,
    gred::GRED,
    hhf::HHF,
    netem::NETEM,
    skbprio::SKBPRIO,
    blackhole::BLACKHOLE,
    plug::PLUG,
    multiq::MULTIQ,
    hook::INGRESS,
    hook::CLSACT,
    custom::CUSTOM,
];

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
    /// blackhole: nothing can be said.
    Blackhole,
    /// plug.
    Plug(PlugParams),
    /// multiq.
    Multiq(MultiqParams),
    /// ingress and clsact: nothing can be said.
    Ingress,
    /// One made outside.
    Custom(CustomParams),
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

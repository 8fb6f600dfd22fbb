//! The options of qdiscs and classes, and their counters, for every kind.

use super::cake::{CakeFlowStats, CakeParams, CakeStats};
use super::codel::{CodelParams, CodelStats};
use super::custom::CustomParams;
use super::drr::DrrClassParams;
use super::dualpi2::{DualPi2Params, DualPi2Stats};
use super::ets::{EtsClassParams, EtsParams};
use super::fifo::FifoParams;
use super::fq::{FqParams, FqStats};
use super::fq_codel::{FqCodelParams, FqCodelStats};
use super::fq_pie::{FqPieParams, FqPieStats};
use super::gred::GredParams;
use super::hfsc::{HfscClassParams, HfscParams};
use super::hhf::{HhfParams, HhfStats};
use super::htb::{HtbClassParams, HtbParams};
use super::multiq::MultiqParams;
use super::netem::{NetemParams, NetemStats};
use super::pie::{PieParams, PieStats};
use super::plug::PlugParams;
use super::prio::PrioParams;
use super::qfq::QfqClassParams;
use super::red::{RedParams, RedStats};
use super::sfb::{SfbParams, SfbStats};
use super::sfq::{SfqParams, SfqStats};
use super::skbprio::SkbprioParams;
use super::tbf::TbfParams;
use alloc::boxed::Box;

/// Parameters of a qdisc.
#[derive(Clone, Debug, PartialEq)]
pub enum QdiscParams {
    /// pfifo, bfifo, pfifo_head_drop.
    Fifo(FifoParams),
    /// pfifo_fast: in a dump, its map of priorities to bands.
    PfifoFast,
    /// noqueue: it has no options.
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
    /// blackhole: it has no options.
    Blackhole,
    /// plug.
    Plug(PlugParams),
    /// multiq.
    Multiq(MultiqParams),
    /// mq: it has no options.
    Mq,
    /// ingress and clsact: they have no options.
    Ingress,
    /// One made outside.
    Custom(CustomParams),
}

/// Parameters of a class.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassParams {
    /// A class without options: those of prio and tbf, and fq_codel's and sfq's flows.
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
    /// netem, of Linux 7.2.
    Netem(NetemStats),
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

//! What is sent and told of each kind: one file each, and their table here.

mod blackhole;
mod cake;
mod choke;
mod codel;
mod custom;
mod drr;
mod dualpi2;
mod ets;
mod fifo;
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
mod sfb;
mod sfq;
mod skbprio;
mod tbf;

use crate::decode::Message;
use tidegate_policy::dump::Xstats;
use tidegate_policy::{ClassParams, Kind, QdiscParams};
use tidegate_sys::attribute::Attributes;
use tidegate_sys::numbers::TCA_OPTIONS;

/// How a kind's parameters are sent, and what the kernel tells of it is read.
pub(crate) trait Codec: Sync {
    /// Writes what is said of a qdisc, if anything is. Kinds older than attributes have a structure of their own;
    /// `change`: it is there already.
    fn encode(&self, _to: &mut Attributes, _params: &QdiscParams, _change: bool) {}

    /// Reads the parameters in force; `None`: they are not as they should be.
    fn decode(&self, options: &[u8]) -> Option<QdiscParams>;

    /// What only this kind counts.
    fn stats(&self, _message: &Message<'_>) -> Option<Xstats> {
        None
    }

    /// Writes what is said of a class, if anything is.
    fn encode_class(&self, _to: &mut Attributes, _params: &ClassParams) {}

    /// Reads the parameters of a class; `None`: they are not as they should be.
    fn decode_class(&self, _options: &[u8]) -> Option<ClassParams> {
        Some(ClassParams::None)
    }

    /// What only this kind's classes count.
    fn class_stats(&self, _message: &Message<'_>) -> Option<Xstats> {
        None
    }
}

/// Every kind, in the order of the enum.
const ROWS: [(Kind, &dyn Codec); Kind::COUNT] = [
    (Kind::Pfifo, &fifo::Fifo),
    (Kind::Bfifo, &fifo::Fifo),
    (Kind::PfifoHeadDrop, &fifo::Fifo),
    (Kind::PfifoFast, &pfifo_fast::PfifoFast),
    (Kind::Noqueue, &noqueue::Noqueue),
    (Kind::Prio, &prio::Prio),
    (Kind::Tbf, &tbf::Tbf),
    (Kind::Htb, &htb::Htb),
    (Kind::Sfq, &sfq::Sfq),
    (Kind::Drr, &drr::Drr),
    (Kind::Codel, &codel::Codel),
    (Kind::FqCodel, &fq_codel::FqCodel),
    (Kind::Hfsc, &hfsc::Hfsc),
    (Kind::Qfq, &qfq::Qfq),
    (Kind::Red, &red::Red),
    (Kind::Choke, &choke::Choke),
    (Kind::Sfb, &sfb::Sfb),
    (Kind::Pie, &pie::Pie),
    (Kind::DualPi2, &dualpi2::DualPi2),
    (Kind::Cake, &cake::Cake),
    (Kind::Ets, &ets::Ets),
    (Kind::Fq, &fq::Fq),
    (Kind::FqPie, &fq_pie::FqPie),
    (Kind::Gred, &gred::Gred),
    (Kind::Hhf, &hhf::Hhf),
    (Kind::Netem, &netem::Netem),
    (Kind::Skbprio, &skbprio::Skbprio),
    (Kind::Blackhole, &blackhole::Blackhole),
    (Kind::Plug, &plug::Plug),
    (Kind::Multiq, &multiq::Multiq),
    (Kind::Ingress, &hook::Hook),
    (Kind::Clsact, &hook::Hook),
    (Kind::Custom, &custom::Custom),
];

// A row is found by its kind's number.
const _: () = {
    let mut at = 0;
    while at < ROWS.len() {
        assert!(ROWS[at].0 as usize == at, "rows stand in the order of the enum");
        at += 1;
    }
};

/// How this kind is sent and read.
pub(crate) fn codec(kind: Kind) -> &'static dyn Codec {
    ROWS[kind as usize].1
}

/// Options that are attributes.
fn nested(to: &mut Attributes, write: impl FnOnce(&mut Attributes)) {
    let mut inner = Attributes::default();
    write(&mut inner);
    to.nest(TCA_OPTIONS, &inner);
}

/// The same, where the kernel looks for the mark of a nest.
fn nested_and_marked(to: &mut Attributes, write: impl FnOnce(&mut Attributes)) {
    let mut inner = Attributes::default();
    write(&mut inner);
    to.marked_nest(TCA_OPTIONS, &inner);
}

/// A number of 64 bits from the two halves that stand one after the other.
fn wide(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// Numbers of 32 bits become the fields of a structure, in this order; `None`: there are more of them, or fewer.
macro_rules! structure {
    ($words:expr => $structure:ident { $($field:ident),* $(,)? }) => {
        match *$words {
            [$($field),*] => Some($structure { $($field),* }),
            _ => None,
        }
    };
}
use structure;

//! The kinds' words: one file each, and their table here.
//!
//! A kind's options are named in its table of options (`tidegate_policy`, `kind/KIND.rs`), by which
//! [`Reader`] finds them; what is here makes parameters of the values read, and listings of dumps.

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
mod mq;
mod multiq;
mod netem;
mod noqueue;
mod pie;
mod plug;
mod prio;
mod qfq;
mod red;
pub(super) mod row;
mod sfb;
mod sfq;
mod skbprio;
mod tbf;

use row::Syntax;
use tidegate_policy::Kind;

/// Every kind's words, in the order of the enum.
const ROWS: [(Kind, &dyn Syntax); Kind::COUNT] = [
    (Kind::Pfifo, &fifo::Fifo),
    (Kind::Bfifo, &fifo::Fifo),
    (Kind::PfifoHeadDrop, &fifo::Fifo),
    (Kind::PfifoFast, &prio::PfifoFast),
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
    (Kind::Mq, &mq::Mq),
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

/// A kind's words.
pub(super) fn syntax(kind: Kind) -> &'static dyn Syntax {
    ROWS[kind as usize].1
}

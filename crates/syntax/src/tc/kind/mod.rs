//! The kinds' words: one file each, and their table here.
//!
//! A kind's options are named in its table of options (`tidegate_policy`, `kind/KIND.rs`), by which [`Reader`] finds
//! them; what is here makes parameters of the values read, and listings of dumps.

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
mod pie;
mod plug;
mod prio;
mod qfq;
mod red;
mod sfb;
mod sfq;
mod skbprio;
mod tbf;

use super::ShowFlags;
use super::options::Reader;
use super::show::Entry;
use super::words::Words;
use crate::Refusal;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::spec::KindSpec;
use tidegate_policy::{ClassParams, Kind, QdiscParams};

/// How tc reads what is said of a kind, and how it lists it.
pub(super) trait Syntax: Sync {
    /// Reads the options of a qdisc. `None`: tc sends no parameters. What tc says though it goes on is added to
    /// `stderr`.
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        reader.options(words).map(|_| None)
    }

    /// Reads the options of a class, of kinds that have a table of them.
    fn class(&self, reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ClassParams, Refusal> {
        reader.class_options(words).map(|_| ClassParams::None)
    }

    /// The parameters in force.
    fn show(&self, _dump: &QdiscDump, _flags: &ShowFlags, _entry: &mut Entry) {}

    /// What only this kind counts, in lines below the counters that all have.
    fn show_stats(&self, _dump: &QdiscDump, _flags: &ShowFlags, _entry: &mut Entry) {}

    /// The parameters of a class in force.
    fn show_class(&self, _dump: &ClassDump, _flags: &ShowFlags, _entry: &mut Entry) {}

    /// What only this kind's classes count.
    fn show_class_stats(&self, _dump: &ClassDump, _entry: &mut Entry) {}
}

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

/// The refusal of words after a name for which tc has no words.
pub(super) fn unparsable(kind: &str, words: &Words<'_>) -> Result<(), Refusal> {
    let Some(option) = words.peek() else { return Ok(()) };
    let names: Vec<_> = KindSpec::all().map(|spec| spec.name).collect();
    let remedy = match crate::nearest(kind, names.iter().copied()) {
        _ if Kind::named(kind).is_some() => format!("{kind} has nothing to set: write it alone."),
        Some(name) => format!("There is no kind \"{kind}\"; did you mean {name}?"),
        None => format!("There is no kind \"{kind}\"; this version knows {}.", names.join(", ")),
    };
    Err(Refusal::new(1, format!("Unknown qdisc \"{kind}\", hence option \"{option}\" is unparsable"))
        .at(words.last())
        .remedy(remedy))
}

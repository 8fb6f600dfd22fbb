//! All kinds in one table, and the properties of each. The kinds' own files do not depend on this one.

use super::name::Kind;
use super::params::QdiscParams;
use super::row::{Ahead, Changes, ClassLayout, Filters, Reports, Waits};
use super::{
    blackhole, cake, choke, codel, custom, drr, dualpi2, ets, fifo, fq, fq_codel, fq_pie, gred, hfsc, hhf,
    hook, htb, mq, multiq, netem, noqueue, pfifo_fast, pie, plug, prio, qfq, red, sfb, sfq, skbprio, tbf,
};
use crate::spec::table::KindSpec;
use alloc::vec::Vec;

/// What is known about every kind whatever its parameters, in the order of the enum.
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
    mq::MQ,
    hook::INGRESS,
    hook::CLSACT,
    custom::CUSTOM,
];

// A row is found by its kind's number.
const _: () = {
    let mut at = 0;
    while at < ROWS.len() {
        assert!(ROWS[at].kind as usize == at, "rows stand in the order of the enum");
        at += 1;
    }
};

/// How many kinds queue.
const QUEUEING: usize = {
    let (mut at, mut count) = (0, 0);
    while at < ROWS.len() {
        count += ROWS[at].queues as usize;
        at += 1;
    }
    count
};

const fn queueing() -> [Kind; QUEUEING] {
    let mut all = [Kind::Pfifo; QUEUEING];
    let (mut at, mut count) = (0, 0);
    while at < ROWS.len() {
        if ROWS[at].queues {
            all[count] = ROWS[at].kind;
            count += 1;
        }
        at += 1;
    }
    all
}

impl Kind {
    /// How many kinds there are, those that do not queue included: what a table indexed by kinds holds.
    pub const COUNT: usize = ROWS.len();

    /// Every kind that queues, in the order of this enum.
    pub const ALL: &[Kind] = &queueing();

    /// Every kind, in the order of this enum.
    pub fn every() -> impl Iterator<Item = Kind> {
        ROWS.iter().map(|row| row.kind)
    }

    /// What is known about it whatever its parameters.
    pub const fn spec(self) -> &'static KindSpec {
        &ROWS[self as usize]
    }

    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// What classes it has.
    pub const fn classes(self) -> ClassLayout {
        self.spec().classes
    }

    /// Where filters may be attached.
    pub const fn filters(self) -> Filters {
        self.spec().filters
    }

    /// How packets wait in it.
    pub const fn waits(self) -> Waits {
        self.spec().waits
    }

    /// How it is given other values.
    pub const fn changes(self) -> Changes {
        self.spec().changes
    }

    /// When it reports to its parent the packets that no longer fit.
    pub const fn reports(self) -> Reports {
        self.spec().reports
    }

    /// Does it hold what it sends to a rate, whatever its parameters?
    pub const fn keeps_rate(self) -> bool {
        self.spec().keeps_rate
    }

    /// Are its classes flows, which come and go with packets? They are no part of what was configured.
    pub const fn classes_are_flows(self) -> bool {
        matches!(self.classes(), ClassLayout::Flows)
    }

    /// Are its classes made by command?
    pub const fn classes_are_made(self) -> bool {
        matches!(self.classes(), ClassLayout::Made)
    }

    /// Is it nothing but a place for filters on what arrives at a device, or leaves it?
    pub const fn is_hook(self) -> bool {
        matches!(self.filters(), Filters::OfDevice)
    }

    /// The kind that queues of that exact name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The kind of that exact name in tc, be it one that does not queue. Qdiscs made outside have none there.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::every().find(|kind| kind.name() == name && *kind != Kind::Custom)
    }
}

impl Kind {
    /// What a dump with these parameters does not report and a command that makes the same again needs.
    pub fn untold(self, params: &QdiscParams) -> Option<&'static str> {
        match params {
            QdiscParams::Red(params) | QdiscParams::Choke(params) => red::untold(params),
            QdiscParams::Netem(params) => netem::untold(params),
            QdiscParams::Gred(_) => Some(gred::UNTOLD),
            QdiscParams::Plug(_) => Some(plug::UNTOLD),
            _ => None,
        }
    }

    /// What may go before a packet that waits in one with these parameters.
    pub fn ahead(self, params: &QdiscParams) -> Vec<Ahead> {
        match params {
            QdiscParams::Fifo(params) if self == Kind::Bfifo => fifo::ahead_in_bytes(params),
            QdiscParams::Fifo(params) => fifo::ahead(params),
            QdiscParams::Tbf(params) => tbf::ahead(params),
            QdiscParams::Htb(params) => htb::ahead(params),
            QdiscParams::Sfq(params) => sfq::ahead(params),
            QdiscParams::Codel(params) => codel::ahead(params),
            QdiscParams::FqCodel(params) => fq_codel::ahead(params),
            QdiscParams::Red(params) => red::ahead(params),
            QdiscParams::Choke(params) => red::ahead_in_choke(params),
            QdiscParams::Pie(params) => pie::ahead(params),
            QdiscParams::DualPi2(params) => dualpi2::ahead(params),
            QdiscParams::Fq(params) => fq::ahead(params),
            QdiscParams::FqPie(params) => fq_pie::ahead(params),
            QdiscParams::Gred(params) => gred::ahead(params),
            QdiscParams::Hhf(params) => hhf::ahead(params),
            QdiscParams::Skbprio(params) => skbprio::ahead(params),
            _ => Vec::new(),
        }
    }
}

impl QdiscParams {
    /// What must stay as it is where a change sets the rest: see [`Changes::InPlaceIfSame`].
    pub fn fixed(&self) -> Option<u32> {
        match self {
            QdiscParams::FqCodel(params) => fq_codel::flows(params),
            QdiscParams::FqPie(params) => fq_pie::flows(params),
            QdiscParams::Prio(params) => prio::bands(params),
            _ => None,
        }
    }

    /// Takes out of a command what `change` refuses to hear again.
    pub fn leave_out_fixed(&mut self) {
        match self {
            QdiscParams::FqCodel(params) => fq_codel::without_flows(params),
            QdiscParams::FqPie(params) => fq_pie::without_flows(params),
            _ => {}
        }
    }
}

impl KindSpec {
    /// The row of the kind that queues of that exact name.
    pub fn find(name: &str) -> Option<&'static KindSpec> {
        Kind::from_name(name).map(Kind::spec)
    }

    /// The rows of all kinds that queue.
    pub fn all() -> impl Iterator<Item = &'static KindSpec> {
        Kind::ALL.iter().map(|kind| kind.spec())
    }
}

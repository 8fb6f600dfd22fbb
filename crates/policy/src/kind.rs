//! The kinds of queueing discipline.

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
    /// Filters on what arrives at a device; queues nothing.
    Ingress,
    /// Filters on what arrives and on what leaves; queues nothing.
    Clsact,
}

/// What classes a kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// None.
    None,
    /// One for each flow; they come and go with packets, and are no part of what was configured.
    Flows,
    /// One for each priority of packets.
    Priorities,
    /// One, in which another qdisc may stand.
    One,
    /// As many as its words say.
    Bands,
    /// Those that are made by command.
    Made,
}

/// Where filters may hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filters {
    /// Nowhere: it is not classful.
    None,
    /// Nowhere, though it is classful.
    Unsupported,
    /// On the qdisc.
    OfQdisc,
    /// On the qdisc and on its classes.
    OfClassesToo,
    /// On it, for what arrives at (or leaves) the device: nothing waits in it.
    OfDevice,
}

/// How packets wait that wait in it, not in a qdisc below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Until it is full: it is nothing but a queue.
    UntilFull,
    /// In a queue that drops or marks before it is full.
    KeptShort,
    /// In ways of its own, or not at all.
    Otherwise,
}

/// What is known of a kind whatever its parameters.
#[derive(Clone, Copy, Debug)]
struct Row {
    kind: Kind,
    name: &'static str,
    classes: Classes,
    filters: Filters,
    waits: Waits,
}

const fn row(kind: Kind, name: &'static str, classes: Classes, filters: Filters, waits: Waits) -> Row {
    Row { kind, name, classes, filters, waits }
}

/// Every kind, in the order of the enum.
#[rustfmt::skip]
const ROWS: [Row; 29] = [
    row(Kind::Pfifo, "pfifo", Classes::None, Filters::None, Waits::UntilFull),
    row(Kind::Bfifo, "bfifo", Classes::None, Filters::None, Waits::UntilFull),
    row(Kind::PfifoHeadDrop, "pfifo_head_drop", Classes::None, Filters::None, Waits::UntilFull),
    row(Kind::PfifoFast, "pfifo_fast", Classes::None, Filters::None, Waits::UntilFull),
    row(Kind::Noqueue, "noqueue", Classes::None, Filters::None, Waits::Otherwise),
    row(Kind::Prio, "prio", Classes::Bands, Filters::OfQdisc, Waits::Otherwise),
    row(Kind::Tbf, "tbf", Classes::One, Filters::Unsupported, Waits::Otherwise),
    row(Kind::Htb, "htb", Classes::Made, Filters::OfClassesToo, Waits::Otherwise),
    row(Kind::Sfq, "sfq", Classes::Flows, Filters::OfQdisc, Waits::UntilFull),
    row(Kind::Drr, "drr", Classes::Made, Filters::OfQdisc, Waits::Otherwise),
    row(Kind::Codel, "codel", Classes::None, Filters::None, Waits::KeptShort),
    row(Kind::FqCodel, "fq_codel", Classes::Flows, Filters::OfQdisc, Waits::KeptShort),
    row(Kind::Hfsc, "hfsc", Classes::Made, Filters::OfClassesToo, Waits::Otherwise),
    row(Kind::Qfq, "qfq", Classes::Made, Filters::OfQdisc, Waits::Otherwise),
    row(Kind::Red, "red", Classes::One, Filters::Unsupported, Waits::KeptShort),
    row(Kind::Choke, "choke", Classes::None, Filters::None, Waits::KeptShort),
    row(Kind::Sfb, "sfb", Classes::One, Filters::OfQdisc, Waits::KeptShort),
    row(Kind::Pie, "pie", Classes::None, Filters::None, Waits::KeptShort),
    row(Kind::DualPi2, "dualpi2", Classes::None, Filters::None, Waits::KeptShort),
    row(Kind::Cake, "cake", Classes::Flows, Filters::OfQdisc, Waits::KeptShort),
    row(Kind::Ets, "ets", Classes::Bands, Filters::OfQdisc, Waits::Otherwise),
    row(Kind::Fq, "fq", Classes::None, Filters::None, Waits::Otherwise),
    row(Kind::FqPie, "fq_pie", Classes::None, Filters::None, Waits::KeptShort),
    row(Kind::Gred, "gred", Classes::None, Filters::None, Waits::KeptShort),
    row(Kind::Hhf, "hhf", Classes::None, Filters::None, Waits::Otherwise),
    row(Kind::Netem, "netem", Classes::One, Filters::Unsupported, Waits::Otherwise),
    row(Kind::Skbprio, "skbprio", Classes::Priorities, Filters::Unsupported, Waits::UntilFull),
    row(Kind::Ingress, "ingress", Classes::None, Filters::OfDevice, Waits::Otherwise),
    row(Kind::Clsact, "clsact", Classes::None, Filters::OfDevice, Waits::Otherwise),
];

// A row is found by its kind's number.
const _: () = {
    let mut at = 0;
    while at < ROWS.len() {
        assert!(ROWS[at].kind as usize == at, "rows stand in the order of the enum");
        at += 1;
    }
};

impl Kind {
    /// Every kind that queues, in the order of this enum.
    pub const ALL: &[Kind] = &[
        Kind::Pfifo,
        Kind::Bfifo,
        Kind::PfifoHeadDrop,
        Kind::PfifoFast,
        Kind::Prio,
        Kind::Tbf,
        Kind::Htb,
        Kind::Sfq,
        Kind::Drr,
        Kind::Codel,
        Kind::FqCodel,
        Kind::Hfsc,
        Kind::Qfq,
        Kind::Red,
        Kind::Choke,
        Kind::Sfb,
        Kind::Pie,
        Kind::DualPi2,
        Kind::Cake,
        Kind::Ets,
        Kind::Fq,
        Kind::FqPie,
        Kind::Gred,
        Kind::Hhf,
        Kind::Netem,
        Kind::Skbprio,
    ];

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What classes it has.
    pub const fn classes(self) -> Classes {
        self.row().classes
    }

    /// Where filters may hang.
    pub const fn filters(self) -> Filters {
        self.row().filters
    }

    /// How packets wait in it.
    pub const fn waits(self) -> Waits {
        self.row().waits
    }

    /// Are its classes flows, which come and go with packets? They are no part of what was configured.
    pub const fn classes_are_flows(self) -> bool {
        matches!(self.classes(), Classes::Flows)
    }

    /// Are its classes made by command?
    pub const fn classes_are_made(self) -> bool {
        matches!(self.classes(), Classes::Made)
    }

    /// Is it nothing but a place for filters on what arrives at a device, or leaves it?
    pub const fn is_hook(self) -> bool {
        matches!(self.filters(), Filters::OfDevice)
    }

    /// The kind of that exact name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

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

    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Pfifo => "pfifo",
            Kind::Bfifo => "bfifo",
            Kind::PfifoHeadDrop => "pfifo_head_drop",
            Kind::PfifoFast => "pfifo_fast",
            Kind::Noqueue => "noqueue",
            Kind::Prio => "prio",
            Kind::Tbf => "tbf",
            Kind::Htb => "htb",
            Kind::Sfq => "sfq",
            Kind::Drr => "drr",
            Kind::Codel => "codel",
            Kind::FqCodel => "fq_codel",
            Kind::Hfsc => "hfsc",
            Kind::Qfq => "qfq",
            Kind::Red => "red",
            Kind::Choke => "choke",
            Kind::Sfb => "sfb",
            Kind::Pie => "pie",
            Kind::DualPi2 => "dualpi2",
            Kind::Cake => "cake",
            Kind::Ets => "ets",
            Kind::Fq => "fq",
            Kind::FqPie => "fq_pie",
            Kind::Gred => "gred",
            Kind::Hhf => "hhf",
            Kind::Netem => "netem",
            Kind::Skbprio => "skbprio",
            Kind::Ingress => "ingress",
            Kind::Clsact => "clsact",
        }
    }

    /// Are its classes flows, which come and go with packets? They are no part of what was configured.
    pub const fn classes_are_flows(self) -> bool {
        matches!(self, Kind::Sfq | Kind::FqCodel | Kind::Cake)
    }

    /// The kind of that exact name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

//! Which kinds there are.

/// A kind of qdisc that tidegate knows.
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
    /// Strict bands, each with a qdisc of its own.
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
    /// The packet of the least priority makes space.
    Skbprio,
    /// Drops every packet.
    Blackhole,
    /// Holds packets until it is unplugged.
    Plug,
    /// A band for each of the device's transmit queues.
    Multiq,
    /// A qdisc for each of the device's transmit queues.
    Mq,
    /// Filters on what arrives at a device; queues nothing.
    Ingress,
    /// Filters on what arrives and on what leaves; queues nothing.
    Clsact,
    /// A qdisc of the program that uses this library; tc has no name for it.
    Custom,
}

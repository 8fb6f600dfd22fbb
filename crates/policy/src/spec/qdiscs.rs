//! The tables of the qdiscs.

use super::{KindSpec, OptionSpec, Takes, Voice};

const FIFO_PACKETS: &[OptionSpec] =
    &[OptionSpec::exact("limit", Takes::Size, "the device's txqueuelen", "packets that may wait; 0 drops everything")];
const FIFO_BYTES: &[OptionSpec] = &[OptionSpec::exact(
    "limit",
    Takes::Size,
    "txqueuelen times the largest frame",
    "bytes that may wait; a longer packet never enters",
)];

const PRIO: &[OptionSpec] = &[
    OptionSpec::exact("bands", Takes::Signed, "3", "number of bands, 2 to 16; band 0 is served first"),
    OptionSpec::exact(
        "priomap",
        Takes::Priomap,
        "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
        "band of each priority from 0 to 15, for packets that no filter takes; give `bands` before it",
    ),
    OptionSpec::exact("multiqueue", Takes::Flag, "", "without effect today"),
];

const TBF: &[OptionSpec] = &[
    OptionSpec::short("limit", Takes::Size, "", "bytes that may wait; either this or latency").once("limit"),
    OptionSpec::short("latency", Takes::Time, "", "longest time a packet may wait; sets limit").once("latency"),
    OptionSpec::short("burst", Takes::SizeCell, "", "size of the bucket: how much may leave at once")
        .or(&["buffer", "maxburst"])
        .once("buffer/burst/maxburst"),
    OptionSpec::exact("mtu", Takes::SizeCell, "", "size of the peak bucket; at least the largest packet")
        .or(&["minburst"])
        .once("mtu/minburst"),
    OptionSpec::exact("mpu", Takes::Size, "0", "least bytes that a packet counts").once("mpu"),
    OptionSpec::exact("rate", Takes::Rate, "", "the rate packets leave at in the long run").once("rate"),
    OptionSpec::short("peakrate", Takes::Rate, "none", "the rate at which the bucket itself may be emptied; needs mtu")
        .once("peakrate"),
    OptionSpec::short("overhead", Takes::Decimal16, "0", "bytes that the link adds to each packet").once("overhead"),
    OptionSpec::short("linklayer", Takes::LinkLayer, "ethernet", "how the link cuts packets: whole, or in ATM cells"),
];

const HTB: &[OptionSpec] = &[
    OptionSpec::short(
        "default",
        Takes::Hex,
        "0: send at once, unshaped",
        "class (hexadecimal minor) of what no filter takes",
    ),
    OptionSpec::short("direct_qlen", Takes::Decimal, "the device's txqueuelen", "packets that may wait unshaped"),
    OptionSpec::short("debug", Takes::Ignored, "", "without effect today"),
    OptionSpec::short("r2q", Takes::Decimal, "10", "a class's quantum is its rate in bytes per second divided by this"),
    OptionSpec::short("offload", Takes::Flag, "", "let the hardware do it; no simulated device can"),
];
const HTB_CLASS: &[OptionSpec] = &[
    OptionSpec::short("prio", Takes::Decimal, "0", "order among leaves, 0 (first) to 7, when there is rate to borrow"),
    OptionSpec::short("mtu", Takes::Decimal, "1600", "largest packet, for the default of burst and cburst only"),
    OptionSpec::short("mpu", Takes::Decimal16, "0", "least bytes that a packet counts"),
    OptionSpec::short("overhead", Takes::Decimal16, "0", "bytes that the link adds to each packet"),
    OptionSpec::short("linklayer", Takes::LinkLayer, "ethernet", "how the link cuts packets: whole, or in ATM cells"),
    OptionSpec::short("quantum", Takes::Decimal, "rate/r2q, 1000 to 200000", "bytes served in a turn, when borrowing"),
    OptionSpec::short("burst", Takes::SizeCell, "rate/hz + mtu", "size of the rate's bucket")
        .or(&["buffer", "maxburst"]),
    OptionSpec::short("cburst", Takes::SizeCell, "ceil/hz + mtu", "size of the ceiling's bucket")
        .or(&["cbuffer", "cmaxburst"]),
    OptionSpec::exact("ceil", Takes::Rate, "rate", "the rate that the class may borrow up to").once("ceil"),
    OptionSpec::exact("rate", Takes::Rate, "", "the rate that the class is sure of").once("rate"),
];

const SFQ: &[OptionSpec] = &[
    OptionSpec::exact("quantum", Takes::Size, "the largest frame", "bytes that a flow sends in its turn")
        .blamed("limit"),
    OptionSpec::exact("perturb", Takes::SignedAny, "0: never", "seconds between changes of the hash key"),
    OptionSpec::exact("limit", Takes::Number, "127", "packets in all, at least 2 and at most depth times flows"),
    OptionSpec::exact("divisor", Takes::Number, "1024", "buckets of the hash, a power of two up to 65536"),
    OptionSpec::exact("flows", Takes::Number, "128", "flows that may be active at once"),
    OptionSpec::exact("depth", Takes::Number, "127", "packets that one flow may have, at most 127").blamed("flows"),
    OptionSpec::exact("headdrop", Takes::Flag, "off", "drop a flow's oldest packet instead of its newest"),
    OptionSpec::exact("redflowlimit", Takes::Number, "none", "random early detection in each flow: bytes it may have"),
    OptionSpec::exact("min", Takes::Number, "max/3", "average of a flow in bytes from which its packets are marked"),
    OptionSpec::exact("max", Takes::Number, "redflowlimit/4", "average of a flow in bytes from which all of them are"),
    OptionSpec::exact("burst", Takes::Number, "(2 min + max) / (3 avpkt)", "packets the average lets pass at once"),
    OptionSpec::exact("avpkt", Takes::Size, "1000", "bytes of a usual packet"),
    OptionSpec::exact("probability", Takes::Fraction, "0.02", "probability of a mark at max"),
    OptionSpec::exact("ecn", Takes::Flag, "off", "mark packets that can carry a mark instead of dropping them"),
    OptionSpec::exact("harddrop", Takes::Flag, "off", "above max drop even packets that can carry a mark"),
];

const DRR_CLASS: &[OptionSpec] =
    &[OptionSpec::exact("quantum", Takes::Size, "the largest frame", "bytes that the class sends in its turn, not 0")];

const CODEL: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Number, "1000", "packets that may wait"),
    OptionSpec::exact("target", Takes::Time, "5ms", "waiting time that is accepted as standing queue"),
    OptionSpec::exact("ce_threshold", Takes::Time, "off", "mark every packet that waited longer"),
    OptionSpec::exact("interval", Takes::Time, "100ms", "time given to senders to react: a usual worst round trip"),
    OptionSpec::exact("ecn", Takes::Flag, "", "mark packets that can carry a mark instead of dropping them"),
    OptionSpec::exact("noecn", Takes::Flag, "this", "always drop"),
];

const FQ_CODEL: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Number, "10240", "packets in all"),
    OptionSpec::exact("flows", Takes::Number, "1024", "queues, 1 to 65536; fixed once created"),
    OptionSpec::exact("quantum", Takes::Number, "the largest frame", "bytes that a flow sends in its turn"),
    OptionSpec::exact("target", Takes::Time, "5ms", "waiting time that is accepted as standing queue"),
    OptionSpec::exact("ce_threshold", Takes::Time, "off", "mark every packet that waited longer"),
    OptionSpec::exact(
        "ce_threshold_selector",
        Takes::Selector,
        "all packets",
        "which DS fields ce_threshold is for: (field & MASK) = VALUE",
    ),
    OptionSpec::exact("memory_limit", Takes::Size, "32m", "bytes of memory in all"),
    OptionSpec::exact("interval", Takes::Time, "100ms", "time given to senders to react: a usual worst round trip"),
    OptionSpec::exact("ecn", Takes::Flag, "this", "mark packets that can carry a mark instead of dropping them"),
    OptionSpec::exact("noecn", Takes::Flag, "", "always drop"),
    OptionSpec::exact("drop_batch", Takes::Number, "64", "packets dropped at once from the fattest flow when full"),
];

const HFSC: &[OptionSpec] =
    &[OptionSpec::short("default", Takes::Hex, "none: drop", "class (hexadecimal minor) of what no filter takes")];
const HFSC_CLASS: &[OptionSpec] = &[
    OptionSpec::short("rt", Takes::Curve, "none", "real time: service given at once, whatever the others want"),
    OptionSpec::short("ls", Takes::Curve, "none", "link sharing: the class's part of what is left"),
    OptionSpec::short("sc", Takes::Curve, "none", "the same curve for real time and link sharing"),
    OptionSpec::short("ul", Takes::Curve, "none", "upper limit of what link sharing may give; needs ls or sc"),
];

const QFQ_CLASS: &[OptionSpec] = &[
    OptionSpec::short("weight", Takes::Decimal, "1", "the class's share among the others', 1 to 1024"),
    OptionSpec::short("maxpkt", Takes::Decimal, "the largest frame", "its longest packet in bytes, 512 to 65536"),
];

const RED: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Size, "", "bytes that may wait; must be given"),
    OptionSpec::exact("min", Takes::Size, "max/3", "average queue in bytes from which packets are marked"),
    OptionSpec::exact("max", Takes::Size, "limit/4", "average queue in bytes from which every packet is"),
    OptionSpec::exact("burst", Takes::Number, "(2 min + max) / (3 avpkt)", "packets the average lets pass at once"),
    OptionSpec::exact("avpkt", Takes::Size, "", "bytes of a usual packet; must be given"),
    OptionSpec::exact("probability", Takes::Fraction, "0.02", "probability of a mark at max"),
    OptionSpec::exact(
        "bandwidth",
        Takes::Rate32,
        "10mbit",
        "the link's rate, to let the average sink while it is idle",
    ),
    OptionSpec::exact("ecn", Takes::Flag, "off", "mark packets that can carry a mark instead of dropping them"),
    OptionSpec::exact("harddrop", Takes::Flag, "off", "above max drop even packets that can carry a mark"),
    OptionSpec::exact("nodrop", Takes::Flag, "off", "let packets pass that would be marked and cannot be; needs ecn"),
    OptionSpec::exact(
        "adaptive",
        Takes::Flag,
        "off",
        "noted down, without effect since iproute2 5.7: was to move the probability by itself",
    )
    .or(&["adaptative"]),
];

const CHOKE: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Number, "", "packets that may wait; must be given"),
    OptionSpec::exact(
        "bandwidth",
        Takes::Rate32,
        "",
        "the link's rate, to let the average sink while it is idle; must be given",
    ),
    OptionSpec::exact("min", Takes::Number, "max/3", "average queue in packets from which flows are compared"),
    OptionSpec::exact("max", Takes::Number, "limit/4", "average queue in packets from which every packet is marked"),
    OptionSpec::exact("burst", Takes::Number, "(2 min + max) / 3", "packets the average lets pass at once"),
    OptionSpec::exact("avpkt", Takes::Size, "1000", "bytes of a usual packet"),
    OptionSpec::exact("probability", Takes::Fraction, "0.02", "probability of a mark at max"),
    OptionSpec::exact("ecn", Takes::Flag, "off", "mark packets that can carry a mark instead of dropping them"),
];

const SFB: &[OptionSpec] = &[
    OptionSpec::exact("rehash", Takes::Number, "600000", "milliseconds between changes of the hash key"),
    OptionSpec::exact("db", Takes::Number, "60000", "milliseconds before it in which the next key's bins warm up"),
    OptionSpec::exact("limit", Takes::Number, "the device's txqueuelen", "packets that may wait"),
    OptionSpec::exact("max", Takes::Number, "25, or 5/4 target", "packets in a bin from which on it takes no more"),
    OptionSpec::exact("target", Takes::Number, "20, or 4/5 max", "packets in a bin from which its probability grows"),
    OptionSpec::exact("increment", Takes::Fraction, "0.0005", "by how much it grows with a packet"),
    OptionSpec::exact(
        "decrement",
        Takes::Fraction,
        "0.00005",
        "by how much it shrinks when a packet meets an empty bin",
    ),
    OptionSpec::exact("penalty_rate", Takes::Number, "10", "packets per second of all flows that do not respond"),
    OptionSpec::exact("penalty_burst", Takes::Number, "20", "how many of these may pass at once"),
];

const PIE: &[OptionSpec] = &[
    OptionSpec::exact("limit", Takes::Number, "1000", "packets that may wait"),
    OptionSpec::exact("target", Takes::Time, "15ms", "delay to hold"),
    OptionSpec::exact(
        "tupdate",
        Takes::Time,
        "15ms",
        "time between adjustments of the probability, in whole timer ticks",
    ),
    OptionSpec::exact("alpha", Takes::Number, "2", "weight of the delay's distance from target, 0 to 32, in 1/16 Hz"),
    OptionSpec::exact("beta", Takes::Number, "20", "weight of the delay's growth, 0 to 32, in 1/16 Hz"),
    OptionSpec::exact("ecn", Takes::Flag, "", "mark packets that can carry a mark instead of dropping them"),
    OptionSpec::exact("noecn", Takes::Flag, "this", "always drop"),
    OptionSpec::exact("bytemode", Takes::Flag, "", "weigh the probability by the packet's length"),
    OptionSpec::exact("nobytemode", Takes::Flag, "this", "every packet is worth the same"),
    OptionSpec::exact("dq_rate_estimator", Takes::Flag, "", "delay from backlog and measured rate, as RFC 8033 has it"),
    OptionSpec::exact("no_dq_rate_estimator", Takes::Flag, "this", "delay from the time that packets waited"),
];

/// The size table that stands before the kind of a root qdisc: `stab … htb …`.
pub const STAB: &[OptionSpec] = &[
    OptionSpec::short("mtu", Takes::Decimal, "2047", "longest packet the table is made for")
        .once("mtu")
        .blamed("invalid mtu"),
    OptionSpec::short("mpu", Takes::Decimal, "0", "least bytes that a packet counts").once("mpu").blamed("invalid mpu"),
    OptionSpec::short("overhead", Takes::Signed, "0", "bytes that the link adds to each packet; may be negative")
        .once("overhead")
        .blamed("invalid overhead"),
    OptionSpec::short("tsize", Takes::Decimal, "512", "entries of the table")
        .once("tsize")
        .blamed("invalid table size"),
    OptionSpec::short("linklayer", Takes::LinkLayer, "ethernet", "how the link cuts packets: whole, or in ATM cells")
        .once("linklayer")
        .blamed("invalid linklayer"),
];

/// The kinds, in the order of [`crate::Kind::ALL`].
pub const KINDS: &[KindSpec] = &[
    KindSpec {
        name: "pfifo",
        title: "first in, first out, limited in packets",
        qdisc: Some(FIFO_PACKETS),
        class: None,
        voice: Voice::Fifo,
    },
    KindSpec {
        name: "bfifo",
        title: "first in, first out, limited in bytes",
        qdisc: Some(FIFO_BYTES),
        class: None,
        voice: Voice::Fifo,
    },
    KindSpec {
        name: "pfifo_head_drop",
        title: "first in, first out; when full, the oldest packet is dropped",
        qdisc: Some(FIFO_PACKETS),
        class: None,
        voice: Voice::Fifo,
    },
    KindSpec {
        name: "pfifo_fast",
        title: "three strict bands by priority; the usual default of a device",
        qdisc: None,
        class: None,
        voice: Voice::Plain,
    },
    KindSpec {
        name: "prio",
        title: "strict bands, each a class with a discipline of its own",
        qdisc: Some(PRIO),
        class: None,
        voice: Voice::Plain,
    },
    KindSpec {
        name: "tbf",
        title: "token bucket: a steady rate with a bounded burst",
        qdisc: Some(TBF),
        class: None,
        voice: Voice::Tbf,
    },
    KindSpec {
        name: "htb",
        title: "hierarchical token bucket: classes with a sure rate that borrow what others leave",
        qdisc: Some(HTB),
        class: Some(HTB_CLASS),
        voice: Voice::Htb,
    },
    KindSpec {
        name: "sfq",
        title: "stochastic fairness: flows, told apart by a hash, take turns",
        qdisc: Some(SFQ),
        class: None,
        voice: Voice::Plain,
    },
    KindSpec {
        name: "drr",
        title: "deficit round robin: classes take turns by bytes; filters must name the class",
        qdisc: Some(&[]),
        class: Some(DRR_CLASS),
        voice: Voice::Plain,
    },
    KindSpec {
        name: "codel",
        title: "controlled delay: drops when packets keep waiting too long (RFC 8289)",
        qdisc: Some(CODEL),
        class: None,
        voice: Voice::Plain,
    },
    KindSpec {
        name: "fq_codel",
        title: "fair queueing with controlled delay in each flow (RFC 8290)",
        qdisc: Some(FQ_CODEL),
        class: None,
        voice: Voice::Plain,
    },
    KindSpec {
        name: "hfsc",
        title: "hierarchical fair service curves: a sure delay and a share, set apart",
        qdisc: Some(HFSC),
        class: Some(HFSC_CLASS),
        voice: Voice::Plain,
    },
    KindSpec {
        name: "qfq",
        title: "quick fair queueing: classes share by weight, nearly as fairly as can be; filters must name the class",
        qdisc: Some(&[]),
        class: Some(QFQ_CLASS),
        voice: Voice::Plain,
    },
    KindSpec {
        name: "red",
        title: "random early detection: drops or marks more the longer the average queue is",
        qdisc: Some(RED),
        class: None,
        voice: Voice::Plain,
    },
    KindSpec {
        name: "choke",
        title: "random early detection that drops a packet's own kin from the queue with it",
        qdisc: Some(CHOKE),
        class: None,
        voice: Voice::Plain,
    },
    KindSpec {
        name: "sfb",
        title: "stochastic fair blue: finds the flows that do not respond, and holds them",
        qdisc: Some(SFB),
        class: None,
        voice: Voice::Plain,
    },
    KindSpec {
        name: "pie",
        title: "proportional integral controller: drops by the queue's delay and its growth (RFC 8033)",
        qdisc: Some(PIE),
        class: None,
        voice: Voice::Plain,
    },
    super::dualpi2::SPEC,
    super::cake::SPEC,
    super::ets::ETS,
    super::fq::FQ,
    super::fq_pie::FQ_PIE,
    super::gred::GRED,
    super::hhf::HHF,
    super::netem::NETEM,
    super::skbprio::SKBPRIO,
];

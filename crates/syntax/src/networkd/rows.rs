//! The sections about traffic control, and their keys (systemd.network(5)).

use super::values::ValueForm::{
    self, Bool, Choice, Count, Flag, Hex, Integer, List, Percent, Rate, Seconds, Size, Time,
};

/// What a section makes: a qdisc of a kind (of its parent's, where it is a hook), or a class of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Makes {
    Qdisc(Option<&'static str>),
    Class(&'static str),
}

impl Makes {
    /// Does it come with classes that no section makes?
    pub(super) fn has_bands(self) -> bool {
        matches!(self, Makes::Qdisc(Some("ets" | "gred" | "sfb" | "tbf" | "netem")))
    }
}

/// A section.
pub(super) struct SectionRow {
    pub(super) name: &'static str,
    pub(super) makes: Makes,
    pub(super) keys: &'static [Key],
    /// Keys without which systemd-networkd leaves the section out.
    pub(super) needs: &'static [&'static str],
}

/// A key of a section.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// The option of tc; none where the value alone is the word.
    pub(super) option: &'static str,
    pub(super) value: ValueForm,
    /// Where this other key is not given: the words of tc before it.
    pub(super) behind: Option<(&'static str, &'static str)>,
    /// What its reader should know.
    pub(super) note: Option<&'static str>,
}

const fn key(name: &'static str, option: &'static str, value: ValueForm) -> Key {
    Key { name, option, value, behind: None, note: None }
}

const fn qdisc(name: &'static str, kind: &'static str, keys: &'static [Key]) -> SectionRow {
    SectionRow { name, makes: Makes::Qdisc(Some(kind)), keys, needs: &[] }
}

const fn class(name: &'static str, kind: &'static str, keys: &'static [Key]) -> SectionRow {
    SectionRow { name, makes: Makes::Class(kind), keys, needs: &[] }
}

const LIMIT: Key = key("PacketLimit", "limit", Count(0));
const TARGET: Key = key("TargetSec", "target", Time);
const INTERVAL: Key = key("IntervalSec", "interval", Time);
const ECN: Key = key("ECN", "", Bool("ecn", "noecn"));
const CE_THRESHOLD: Key = key("CEThresholdSec", "ce_threshold", Time);
const QUANTUM: Key = key("QuantumBytes", "quantum", Size);
const MTU: Key = key("MTUBytes", "mtu", Size);
const RATE: Key = key("Rate", "rate", Rate);

/// The sections, in the order of the manual.
pub(super) const SECTIONS: &[SectionRow] = &[
    SectionRow { name: "QDisc", makes: Makes::Qdisc(None), keys: &[], needs: &["Parent"] },
    qdisc(
        "NetworkEmulator",
        "netem",
        &[
            key("DelaySec", "delay", Time),
            Key { behind: Some(("DelaySec", "delay 0us")), ..key("DelayJitterSec", "", Time) },
            LIMIT,
            key("LossRate", "loss", Percent),
            key("DuplicateRate", "duplicate", Percent),
        ],
    ),
    SectionRow {
        name: "TokenBucketFilter",
        makes: Makes::Qdisc(Some("tbf")),
        keys: &[
            RATE,
            key("BurstBytes", "burst", Size),
            key("LimitBytes", "limit", Size),
            key("LatencySec", "latency", Time),
            key("MPUBytes", "mpu", Size),
            key("PeakRate", "peakrate", Rate),
            MTU,
        ],
        needs: &["Rate", "BurstBytes"],
    },
    qdisc("PIE", "pie", &[LIMIT]),
    qdisc("FlowQueuePIE", "fq_pie", &[LIMIT]),
    qdisc("StochasticFairBlue", "sfb", &[LIMIT]),
    qdisc("StochasticFairnessQueueing", "sfq", &[key("PerturbPeriodSec", "perturb", Seconds)]),
    qdisc("BFIFO", "bfifo", &[key("LimitBytes", "limit", Size)]),
    qdisc("PFIFO", "pfifo", &[LIMIT]),
    qdisc("PFIFOHeadDrop", "pfifo_head_drop", &[LIMIT]),
    qdisc("PFIFOFast", "pfifo_fast", &[]),
    qdisc(
        "CAKE",
        "cake",
        &[
            key("Bandwidth", "bandwidth", Rate),
            key("AutoRateIngress", "", Flag("autorate-ingress")),
            // tc takes back with it what is said of framing before.
            key("UseRawPacketSize", "", Flag("raw")),
            key("OverheadBytes", "overhead", Integer(-64, 256)),
            key("MPUBytes", "mpu", Integer(1, 256)),
            key("CompensationMode", "", Choice(&[("none", "noatm"), ("atm", "atm"), ("ptm", "ptm")])),
            key(
                "FlowIsolationMode",
                "",
                Choice(&[
                    ("none", "flowblind"),
                    ("src-host", "srchost"),
                    ("dst-host", "dsthost"),
                    ("hosts", "hosts"),
                    ("flows", "flows"),
                    ("dual-src-host", "dual-srchost"),
                    ("dual-dst-host", "dual-dsthost"),
                    ("triple", "triple-isolate"),
                ]),
            ),
            key("NAT", "", Bool("nat", "nonat")),
            key(
                "PriorityQueueingPreset",
                "",
                Choice(&[
                    ("besteffort", "besteffort"),
                    ("precedence", "precedence"),
                    ("diffserv8", "diffserv8"),
                    ("diffserv4", "diffserv4"),
                    ("diffserv3", "diffserv3"),
                ]),
            ),
            key("FirewallMark", "fwmark", Count(1)),
            key("Wash", "", Bool("wash", "nowash")),
            key("SplitGSO", "", Bool("split-gso", "no-split-gso")),
            Key {
                note: Some(
                    "RTTSec= is read as tc's rtt, which also sets the target to a twentieth of it (at least 5 us); \
                     whether systemd-networkd sets that too was not tried",
                ),
                ..key("RTTSec", "rtt", Time)
            },
            key(
                "AckFilter",
                "",
                Choice(&[
                    ("yes", "ack-filter"),
                    ("no", "no-ack-filter"),
                    ("aggressive", "ack-filter-aggressive"),
                ]),
            ),
        ],
    ),
    qdisc("ControlledDelay", "codel", &[LIMIT, TARGET, INTERVAL, ECN, CE_THRESHOLD]),
    qdisc("DeficitRoundRobinScheduler", "drr", &[]),
    class("DeficitRoundRobinSchedulerClass", "drr", &[QUANTUM]),
    qdisc(
        "EnhancedTransmissionSelection",
        "ets",
        &[
            key("Bands", "bands", Integer(1, 16)),
            key("StrictBands", "strict", Integer(1, 16)),
            key("QuantumBytes", "quanta", List(&Size)),
            key("PriorityMap", "priomap", List(&Integer(0, 255))),
        ],
    ),
    qdisc(
        "GenericRandomEarlyDetection",
        "gred",
        &[
            key("VirtualQueues", "setup vqs", Integer(1, 16)),
            key("DefaultVirtualQueue", "default", Integer(0, 15)),
            key("GenericRIO", "", Flag("grio")),
        ],
    ),
    qdisc(
        "FairQueueingControlledDelay",
        "fq_codel",
        &[
            LIMIT,
            key("MemoryLimitBytes", "memory_limit", Size),
            key("Flows", "flows", Count(1)),
            TARGET,
            INTERVAL,
            QUANTUM,
            ECN,
            CE_THRESHOLD,
        ],
    ),
    qdisc(
        "FairQueueing",
        "fq",
        &[
            LIMIT,
            key("FlowLimit", "flow_limit", Count(0)),
            QUANTUM,
            key("InitialQuantumBytes", "initial_quantum", Size),
            key("MaximumRate", "maxrate", Rate),
            key("Buckets", "buckets", Count(1)),
            key("OrphanMask", "orphan_mask", Count(0)),
            key("Pacing", "", Bool("pacing", "nopacing")),
            CE_THRESHOLD,
        ],
    ),
    qdisc(
        "HierarchyTokenBucket",
        "htb",
        &[key("DefaultClass", "default", Hex), key("RateToQuantum", "r2q", Count(0))],
    ),
    SectionRow {
        name: "HierarchyTokenBucketClass",
        makes: Makes::Class("htb"),
        keys: &[
            key("Priority", "prio", Count(0)),
            QUANTUM,
            MTU,
            key("OverheadBytes", "overhead", Size),
            RATE,
            key("CeilRate", "ceil", Rate),
            key("BufferBytes", "burst", Size),
            key("CeilBufferBytes", "cburst", Size),
        ],
        needs: &["Rate"],
    },
    qdisc("HeavyHitterFilter", "hhf", &[LIMIT]),
    qdisc("QuickFairQueueing", "qfq", &[]),
    class(
        "QuickFairQueueingClass",
        "qfq",
        &[key("Weight", "weight", Integer(1, 1023)), key("MaxPacketBytes", "maxpkt", Size)],
    ),
];

/// The row of a section.
pub(super) fn find(name: &str) -> Option<&'static SectionRow> {
    SECTIONS.iter().find(|row| row.name == name)
}

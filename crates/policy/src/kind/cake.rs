//! cake: shaper, tins, flows and hosts in one.

use super::name::Kind;
use super::row::{Changes, ClassLayout, Filters, Waits};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec::Vec;
use tidegate_packet::Rate;

/// The options of cake (Høiland-Jørgensen, Täht, Morton 2018; tc-cake(8)). `None`: not given, so the default
/// when it is made, and as it was when it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CakeParams {
    /// The rate it shapes to, bytes per second as in every [`Rate`]; 0: it does not shape (`unlimited`).
    pub bandwidth: Option<Rate>,
    /// It follows the rate at which packets arrive (`autorate-ingress`).
    pub autorate: Option<bool>,
    /// The round-trip time that its AQM is tuned for, µs. Default: 100000.
    pub rtt_us: Option<u32>,
    /// The sojourn time that is tolerated, µs: tc sends a twentieth of the round-trip time. Not in a dump.
    pub target_us: Option<u32>,
    /// How packets are sorted into tins by their DSCP.
    pub tins: Option<CakeTins>,
    /// What counts as one flow within a tin.
    pub flows: Option<CakeFlows>,
    /// Hosts are distinguished by the addresses they had before address translation.
    pub nat: Option<bool>,
    /// The DSCP is cleared once it is read.
    pub wash: Option<bool>,
    /// Dropped packets count against the rate too, as they came over the link (`ingress`).
    pub ingress: Option<bool>,
    /// Which acknowledgements are left out.
    pub ack_filter: Option<CakeAckFilter>,
    /// Cut super-packets into what goes over the wire.
    pub split_gso: Option<bool>,
    /// Bytes of memory that waiting packets may take; 0 in a dump: as much as the rate requests.
    pub memory_limit: Option<u32>,
    /// The bits of the firewall mark that name a tin; 0: none.
    pub fwmark: Option<u32>,
    /// How the link cuts packets.
    pub framing: Option<CakeFraming>,
    /// Bytes that the link adds to each IP packet, -64 to 256.
    pub overhead: Option<i32>,
    /// Count frames as the device has them, instead of IP packets and what the link adds.
    pub raw: bool,
    /// The bytes that a packet costs at least, 0 to 256.
    pub mpu: Option<u32>,
}

/// How packets are sorted into tins, each with a share of the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CakeTins {
    /// Bulk, best effort, voice.
    #[default]
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
    /// Eight by DSCP.
    Diffserv8,
    /// All.
    BestEffort,
    /// Eight by the old IP precedence.
    Precedence,
}

impl CakeTins {
    /// All sortings.
    pub const ALL: [CakeTins; 5] = [
        CakeTins::Diffserv3,
        CakeTins::Diffserv4,
        CakeTins::Diffserv8,
        CakeTins::BestEffort,
        CakeTins::Precedence,
    ];

    /// Its word in tc: `diffserv4`.
    pub const fn name(self) -> &'static str {
        match self {
            CakeTins::Diffserv3 => "diffserv3",
            CakeTins::Diffserv4 => "diffserv4",
            CakeTins::Diffserv8 => "diffserv8",
            CakeTins::BestEffort => "besteffort",
            CakeTins::Precedence => "precedence",
        }
    }

    /// The names of its tins in the order of a listing; `None`: they have numbers.
    pub const fn labels(self) -> Option<&'static [&'static str]> {
        match self {
            CakeTins::Diffserv3 => Some(&["Bulk", "Best Effort", "Voice"]),
            CakeTins::Diffserv4 => Some(&["Bulk", "Best Effort", "Video", "Voice"]),
            CakeTins::Diffserv8 | CakeTins::BestEffort | CakeTins::Precedence => None,
        }
    }

    /// How many tins it has.
    pub const fn count(self) -> usize {
        match self {
            CakeTins::Diffserv3 => 3,
            CakeTins::Diffserv4 => 4,
            CakeTins::Diffserv8 | CakeTins::Precedence => 8,
            CakeTins::BestEffort => 1,
        }
    }
}

/// What counts as one flow within a tin, and by what the tin is shared first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CakeFlows {
    /// All packets are one flow.
    Blind,
    /// Senders.
    SourceHosts,
    /// Receivers.
    DestinationHosts,
    /// Pairs of sender and receiver.
    Hosts,
    /// Conversations.
    Flows,
    /// Conversations, and first of all their senders.
    DualSource,
    /// Conversations, and first of all their receivers.
    DualDestination,
    /// Conversations, and first of all whichever of their ends has more of them.
    #[default]
    Triple,
}

impl CakeFlows {
    /// Every flow isolation mode.
    pub const ALL: [CakeFlows; 8] = [
        CakeFlows::Blind,
        CakeFlows::SourceHosts,
        CakeFlows::DestinationHosts,
        CakeFlows::Hosts,
        CakeFlows::Flows,
        CakeFlows::DualSource,
        CakeFlows::DualDestination,
        CakeFlows::Triple,
    ];

    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        match self {
            CakeFlows::Blind => "flowblind",
            CakeFlows::SourceHosts => "srchost",
            CakeFlows::DestinationHosts => "dsthost",
            CakeFlows::Hosts => "hosts",
            CakeFlows::Flows => "flows",
            CakeFlows::DualSource => "dual-srchost",
            CakeFlows::DualDestination => "dual-dsthost",
            CakeFlows::Triple => "triple-isolate",
        }
    }

    /// Are conversations distinguished?
    pub const fn by_conversation(self) -> bool {
        matches!(
            self,
            CakeFlows::Flows | CakeFlows::DualSource | CakeFlows::DualDestination | CakeFlows::Triple
        )
    }

    /// Do senders share what their conversations get?
    pub const fn shares_source(self) -> bool {
        matches!(self, CakeFlows::DualSource | CakeFlows::Triple)
    }

    /// Do receivers?
    pub const fn shares_destination(self) -> bool {
        matches!(self, CakeFlows::DualDestination | CakeFlows::Triple)
    }

    /// Whether the sender's address distinguishes flows where conversations do not.
    pub const fn by_source(self) -> bool {
        matches!(self, CakeFlows::SourceHosts | CakeFlows::Hosts)
    }

    /// Does the receiver's?
    pub const fn by_destination(self) -> bool {
        matches!(self, CakeFlows::DestinationHosts | CakeFlows::Hosts)
    }
}

/// Which TCP acknowledgements are dropped because later ones carry the same information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CakeAckFilter {
    /// None.
    #[default]
    Off,
    /// Those that two later ones make needless.
    On,
    /// Those that one later one makes needless.
    Aggressive,
}

impl CakeAckFilter {
    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        match self {
            CakeAckFilter::Off => "no-ack-filter",
            CakeAckFilter::On => "ack-filter",
            CakeAckFilter::Aggressive => "ack-filter-aggressive",
        }
    }
}

/// How the link cuts packets, as cake knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CakeFraming {
    /// Whole frames.
    #[default]
    None,
    /// Cells of 53 bytes carrying 48.
    Atm,
    /// One byte in 65 is the link's.
    Ptm,
}

impl CakeFraming {
    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        match self {
            CakeFraming::None => "noatm",
            CakeFraming::Atm => "atm",
            CakeFraming::Ptm => "ptm",
        }
    }
}

/// cake's counters and state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CakeStats {
    /// The most memory that was in use, bytes.
    pub memory_used: u32,
    /// How much may be, bytes.
    pub memory_limit: u32,
    /// The rate that the link is taken to have.
    pub capacity: Rate,
    /// Shortest and longest packet as the network layer sees it, bytes.
    pub network_sizes: (u16, u16),
    /// Shortest and longest packet as the link is charged for it, bytes.
    pub adjusted_sizes: (u16, u16),
    /// Mean bytes of the link header.
    pub header_offset: u16,
    /// Its tins, in the order of a listing.
    pub tins: Vec<CakeTinStats>,
}

/// A tin's counters and state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CakeTinStats {
    /// The rate up to which it goes before others.
    pub threshold: Rate,
    /// Bytes taken in.
    pub bytes: u64,
    /// Bytes waiting.
    pub backlog: u32,
    /// Sojourn time that its flows are held to, µs.
    pub target_us: u32,
    /// Time that senders are given to react, µs.
    pub interval_us: u32,
    /// Delay of its slowest flows, µs.
    pub peak_delay_us: u32,
    /// Mean delay, µs.
    pub average_delay_us: u32,
    /// Delay of its sparse flows, µs.
    pub base_delay_us: u32,
    /// Packets taken in.
    pub packets: u32,
    /// Packets whose flow was found beside its place.
    pub way_hits: u32,
    /// Packets that began a flow.
    pub way_misses: u32,
    /// Packets that share a queue with another flow, all eight being taken.
    pub way_collisions: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Packets marked instead.
    pub marks: u32,
    /// Acknowledgements left out.
    pub ack_drops: u32,
    /// Flows that send less than their share.
    pub sparse_flows: u32,
    /// Flows that fill theirs.
    pub bulk_flows: u32,
    /// Flows that take no notice of drops.
    pub unresponsive_flows: u32,
    /// The longest packet, bytes.
    pub longest: u16,
    /// Bytes that a flow sends in its turn.
    pub quantum: u16,
}

/// A flow of cake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CakeFlowStats {
    /// Bytes it may still send in its turn.
    pub deficit: i32,
    /// In a dropping episode?
    pub dropping: bool,
    /// How often it has been signalled in it.
    pub count: u32,
    /// Since the next signal was due, µs; negative: until then. Told in a dropping episode.
    pub drop_next_us: i64,
    /// Probability of a drop because it does not respond, 2^32 = 1.
    pub blue_probability: u32,
    /// Since that changed, µs. Told where there is one.
    pub blue_timer_us: u32,
}

const fn flag(key: &'static str, default: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec::exact(key, ValueKind::Flag, default, doc)
}

/// The order is that of the table in tc's own help: rate, time, tins, flows, then what few need.
const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("bandwidth", ValueKind::Rate, "unlimited", "shape to this rate"),
    flag("unlimited", "this", "do not shape, only schedule"),
    flag("autorate-ingress", "off", "follow the rate at which packets arrive"),
    OptionSpec::exact(
        "rtt",
        ValueKind::Time,
        "100ms",
        "usual round-trip time; a twentieth of it is the target delay",
    ),
    flag("datacentre", "", "rtt 100us, for traffic within a data centre"),
    flag("lan", "", "rtt 1ms, for local networks"),
    flag("metro", "", "rtt 10ms, for traffic within a city"),
    flag("regional", "", "rtt 30ms, for traffic within a country"),
    flag("internet", "this", "rtt 100ms, for traffic of all kinds"),
    flag("oceanic", "", "rtt 300ms, where most senders are far away"),
    flag("satellite", "", "rtt 1s, for geostationary satellites"),
    flag("interplanetary", "", "rtt 1000s, which disables the AQM"),
    flag("besteffort", "", "one tin for all packets"),
    flag("precedence", "", "eight tins by the old IP precedence"),
    flag("diffserv8", "", "eight tins by DSCP"),
    flag("diffserv4", "", "four tins by DSCP: bulk, best effort, video, voice").or(&["diffserv"]),
    flag("diffserv3", "this", "three tins by DSCP: bulk, best effort, voice"),
    flag("flowblind", "", "no isolation: all packets of a tin are one flow"),
    flag("srchost", "", "fairness between sources"),
    flag("dsthost", "", "fairness between destinations"),
    flag("hosts", "", "fairness between pairs of source and destination"),
    flag("flows", "", "fairness between flows"),
    flag("dual-srchost", "", "fairness between sources, then between the flows of each"),
    flag("dual-dsthost", "", "fairness between destinations, then between the flows of each"),
    flag("triple-isolate", "this", "fairness between sources and between destinations, then between flows"),
    flag("nat", "", "identify hosts and flows by their addresses before NAT"),
    flag("nonat", "this", "identify them by the packets' addresses"),
    flag("wash", "", "clear the DSCP after classification"),
    flag("nowash", "this", "leave the DSCP as it is"),
    flag("split-gso", "this", "split GSO super-packets into packets as on the wire"),
    flag("no-split-gso", "", "keep GSO super-packets whole"),
    flag("ack-filter", "", "drop acknowledgements that two later ones make redundant"),
    flag("ack-filter-aggressive", "", "drop acknowledgements that one later one makes redundant"),
    flag("no-ack-filter", "this", "drop no acknowledgements"),
    OptionSpec::exact(
        "memlimit",
        ValueKind::Size,
        "four round trips at the rate, 4 MB at least",
        "maximum memory for packets",
    ),
    OptionSpec::exact(
        "fwmark",
        ValueKind::Number,
        "none",
        "bits of the firewall mark that select a tin, numbered from 1",
    ),
    flag("raw", "this", "count frames as the device has them"),
    OptionSpec::exact(
        "overhead",
        ValueKind::Signed,
        "",
        "bytes that the link adds to an IP packet, -64 to 256",
    ),
    OptionSpec::exact(
        "mpu",
        ValueKind::Decimal,
        "0",
        "minimum size that a packet is charged in bytes, 0 to 256",
    ),
    flag("noatm", "this", "no ATM cells"),
    flag("atm", "", "ATM: cells of 53 bytes carry 48"),
    flag("ptm", "", "PTM: one byte in 65 is overhead"),
    flag("conservative", "", "overhead 48 atm: as much as any common link adds"),
    flag("ipoa-vcmux", "", "overhead 8 more, atm"),
    flag("ipoa-llcsnap", "", "overhead 16 more, atm"),
    flag("bridged-vcmux", "", "overhead 24 more, atm"),
    flag("bridged-llcsnap", "", "overhead 32 more, atm"),
    flag("pppoa-vcmux", "", "overhead 10 more, atm"),
    flag("pppoa-llc", "", "overhead 14 more, atm"),
    flag("pppoe-vcmux", "", "overhead 32 more, atm"),
    flag("pppoe-llcsnap", "", "overhead 40 more, atm"),
    flag("bridged-ptm", "", "overhead 22 more, ptm"),
    flag("pppoe-ptm", "", "overhead 30 more, ptm"),
    flag("via-ethernet", "", "accepted, without effect"),
    flag("ethernet", "", "overhead 38 more, mpu 84: what Ethernet puts around a frame"),
    flag("ether-vlan", "", "overhead 4 more: a VLAN tag; may be given twice"),
    flag("docsis", "", "overhead 18 more, mpu 64, noatm: as cable modems count"),
    flag("ingress", "", "charge dropped packets too, because they came over the link"),
    flag("egress", "this", "charge only packets that are sent"),
];

pub(super) const CAKE: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: ClassLayout::Flows,
    filters: Filters::OfQdisc,
    waits: Waits::KeptShort,
    changes: Changes::InPlace,
    ..KindSpec::new(
        Kind::Cake,
        "cake",
        "shaper, tins by DSCP, fair between hosts and flows, with controlled delay: a whole home router's \
        needs (LANMAN 2018)",
    )
};

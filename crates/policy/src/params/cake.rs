//! What cake is configured with.

use tidegate_packet::Rate;

/// cake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CakeParams {
    /// The rate it shapes to; 0: it does not shape.
    pub bandwidth: Option<Rate>,
    /// Follow the rate at which packets arrive.
    pub autorate: Option<bool>,
    /// The round-trip time that senders are taken to have, µs.
    pub rtt_us: Option<u32>,
    /// Sojourn time to hold, µs: tc's twentieth of the round-trip time. Not in a dump.
    pub target_us: Option<u32>,
    /// Which packets share a tin.
    pub tins: Option<CakeTins>,
    /// Who shares within a tin.
    pub flows: Option<CakeFlows>,
    /// Tell flows apart by the addresses they had before translation.
    pub nat: Option<bool>,
    /// Clear the DSCP once it is read.
    pub wash: Option<bool>,
    /// Charge for dropped packets too: they came over the link.
    pub ingress: Option<bool>,
    /// Which acknowledgements are left out.
    pub ack_filter: Option<CakeAckFilter>,
    /// Cut super-packets into what goes over the wire.
    pub split_gso: Option<bool>,
    /// Memory, bytes; 0 in a dump: as much as the rate asks for.
    pub memory_limit: Option<u32>,
    /// The bits of the firewall mark that name a tin; 0: none.
    pub fwmark: Option<u32>,
    /// How the link cuts packets.
    pub framing: Option<CakeFraming>,
    /// Bytes that the link adds to each IP packet; may be negative.
    pub overhead: Option<i32>,
    /// Count frames as the device has them, instead of IP packets and what the link adds.
    pub raw: bool,
    /// Least bytes that a packet costs.
    pub mpu: Option<u32>,
}

/// Which packets share a tin.
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
    /// All of them.
    pub const ALL: [CakeTins; 5] =
        [CakeTins::Diffserv3, CakeTins::Diffserv4, CakeTins::Diffserv8, CakeTins::BestEffort, CakeTins::Precedence];

    /// Its name in tc.
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

    /// How many there are.
    pub const fn count(self) -> usize {
        match self {
            CakeTins::Diffserv3 => 3,
            CakeTins::Diffserv4 => 4,
            CakeTins::Diffserv8 | CakeTins::Precedence => 8,
            CakeTins::BestEffort => 1,
        }
    }
}

/// Who shares within a tin.
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
    /// All of them.
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

    /// Are conversations told apart?
    pub const fn by_conversation(self) -> bool {
        matches!(self, CakeFlows::Flows | CakeFlows::DualSource | CakeFlows::DualDestination | CakeFlows::Triple)
    }

    /// Do senders share what their conversations get?
    pub const fn shares_source(self) -> bool {
        matches!(self, CakeFlows::DualSource | CakeFlows::Triple)
    }

    /// Do receivers?
    pub const fn shares_destination(self) -> bool {
        matches!(self, CakeFlows::DualDestination | CakeFlows::Triple)
    }

    /// Does the sender's address tell flows apart where conversations do not?
    pub const fn by_source(self) -> bool {
        matches!(self, CakeFlows::SourceHosts | CakeFlows::Hosts)
    }

    /// Does the receiver's?
    pub const fn by_destination(self) -> bool {
        matches!(self, CakeFlows::DestinationHosts | CakeFlows::Hosts)
    }
}

/// Which acknowledgements of TCP are left out because later ones say the same.
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
    /// Cells of 53 octets carrying 48.
    Atm,
    /// One octet in 65 is the link's.
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

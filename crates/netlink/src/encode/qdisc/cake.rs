//! cake.

use tidegate_os::attribute::Attributes;
use tidegate_policy::{CakeAckFilter, CakeFlows, CakeFraming, CakeParams, CakeTins};

/// What is said of a cake.
pub(super) fn options(to: &mut Attributes, params: &CakeParams) {
    if let Some(bandwidth) = params.bandwidth {
        to.u64(2, bandwidth.0);
    }
    to.maybe(3, params.tins.map(tins)).maybe(4, params.framing.map(framing)).maybe(5, params.flows.map(flows));
    to.maybe(6, params.overhead.map(|bytes| bytes as u32));
    if params.raw {
        to.u32(12, 0);
    }
    to.maybe(14, params.mpu).maybe(7, params.rtt_us).maybe(8, params.target_us).switch(9, params.autorate);
    to.maybe(18, params.fwmark).maybe(10, params.memory_limit).switch(11, params.nat).switch(13, params.wash);
    to.switch(15, params.ingress).maybe(16, params.ack_filter.map(ack_filter)).switch(17, params.split_gso);
}

const fn tins(tins: CakeTins) -> u32 {
    match tins {
        CakeTins::Diffserv3 => 0,
        CakeTins::Diffserv4 => 1,
        CakeTins::Diffserv8 => 2,
        CakeTins::BestEffort => 3,
        CakeTins::Precedence => 4,
    }
}

const fn framing(framing: CakeFraming) -> u32 {
    match framing {
        CakeFraming::None => 0,
        CakeFraming::Atm => 1,
        CakeFraming::Ptm => 2,
    }
}

const fn flows(flows: CakeFlows) -> u32 {
    match flows {
        CakeFlows::Blind => 0,
        CakeFlows::SourceHosts => 1,
        CakeFlows::DestinationHosts => 2,
        CakeFlows::Hosts => 3,
        CakeFlows::Flows => 4,
        CakeFlows::DualSource => 5,
        CakeFlows::DualDestination => 6,
        CakeFlows::Triple => 7,
    }
}

const fn ack_filter(filter: CakeAckFilter) -> u32 {
    match filter {
        CakeAckFilter::Off => 0,
        CakeAckFilter::On => 1,
        CakeAckFilter::Aggressive => 2,
    }
}

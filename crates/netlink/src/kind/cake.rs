//! cake.

use super::base::{Codec, nested};
use crate::decode::message::Message;
use alloc::boxed::Box;
use tidegate_netlink_wire::attribute::{Attributes, Found, read};
use tidegate_packet::Rate;
use tidegate_policy::dump::{CakeFlowStats, CakeStats, CakeTinStats, Xstats};
use tidegate_policy::{CakeAckFilter, CakeFlows, CakeFraming, CakeParams, CakeTins, QdiscParams};

pub(super) struct Cake;

impl Codec for Cake {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Cake(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        decode(&read(options)).map(|params| QdiscParams::Cake(Box::new(params)))
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        Some(Xstats::Cake(Box::new(read_stats(&read(message.own_payload())))))
    }

    fn class_stats(&self, message: &Message<'_>) -> Option<Xstats> {
        let bytes = message.own_payload();
        (!bytes.is_empty()).then(|| Xstats::CakeFlow(flow(&read(bytes))))
    }
}

/// The options of a cake.
fn encode(to: &mut Attributes, params: &CakeParams) {
    if let Some(bandwidth) = params.bandwidth {
        to.u64(2, bandwidth.0);
    }
    to.maybe(3, params.tins.map(tins))
        .maybe(4, params.framing.map(framing))
        .maybe(5, params.flows.map(flows));
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

fn decode(from: &Found<'_>) -> Option<CakeParams> {
    const ACK_FILTERS: [CakeAckFilter; 3] =
        [CakeAckFilter::Off, CakeAckFilter::On, CakeAckFilter::Aggressive];
    const FRAMINGS: [CakeFraming; 3] = [CakeFraming::None, CakeFraming::Atm, CakeFraming::Ptm];
    Some(CakeParams {
        bandwidth: from.u64(2).map(Rate),
        autorate: from.switch(9),
        rtt_us: from.u32(7),
        target_us: from.u32(8),
        tins: numbered(from, 3, &CakeTins::ALL)?,
        flows: numbered(from, 5, &CakeFlows::ALL)?,
        nat: from.switch(11),
        wash: from.switch(13),
        ingress: from.switch(15),
        ack_filter: numbered(from, 16, &ACK_FILTERS)?,
        split_gso: from.switch(17),
        memory_limit: from.u32(10),
        fwmark: from.u32(18),
        framing: numbered(from, 4, &FRAMINGS)?,
        overhead: from.u32(6).map(|bytes| bytes as i32),
        raw: from.get(12).is_some(),
        mpu: from.u32(14),
    })
}

/// One of several by its number, if the attribute is there; `None`: the number is unknown.
fn numbered<T: Copy>(from: &Found<'_>, attribute: u16, all: &[T]) -> Option<Option<T>> {
    match from.u32(attribute) {
        None => Some(None),
        Some(number) => all.get(number as usize).copied().map(Some),
    }
}

fn read_stats(from: &Found<'_>) -> CakeStats {
    let of = |number: u16| from.u32(number).unwrap_or(0);
    let short = |number: u16| of(number) as u16;
    let tins = from.nest(10);
    CakeStats {
        memory_used: of(4),
        memory_limit: of(3),
        capacity: Rate(from.u64(2).unwrap_or(0)),
        network_sizes: (short(6), short(7)),
        adjusted_sizes: (short(8), short(9)),
        header_offset: short(5),
        tins: tins.all().map(|(_, bytes)| tin(&read(bytes))).collect(),
    }
}

fn tin(from: &Found<'_>) -> CakeTinStats {
    let of = |number: u16| from.u32(number).unwrap_or(0);
    CakeTinStats {
        threshold: Rate(from.u64(12).unwrap_or(0)),
        bytes: from.u64(3).unwrap_or(0),
        backlog: of(11),
        target_us: of(13),
        interval_us: of(14),
        peak_delay_us: of(18),
        average_delay_us: of(19),
        base_delay_us: of(20),
        packets: of(2),
        way_hits: of(15),
        way_misses: of(16),
        way_collisions: of(17),
        drops: of(4),
        marks: of(8),
        ack_drops: of(6),
        sparse_flows: of(21),
        bulk_flows: of(22),
        unresponsive_flows: of(23),
        longest: of(24) as u16,
        quantum: of(25) as u16,
    }
}

fn flow(from: &Found<'_>) -> CakeFlowStats {
    let of = |number: u16| from.u32(number).unwrap_or(0);
    CakeFlowStats {
        deficit: of(11) as i32,
        dropping: of(13) != 0,
        count: of(12),
        drop_next_us: i64::from(of(14) as i32),
        blue_probability: of(15),
        blue_timer_us: of(16),
    }
}

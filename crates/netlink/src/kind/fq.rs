//! fq.

use super::base::{Codec, nested};
use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::{Attributes, Found, read};
use tidegate_policy::dump::{FqStats, Xstats};
use tidegate_policy::{FqBands, FqParams, QdiscParams};

const BANDS: u32 = FqBands::COUNT as u32;

pub(super) struct Fq;

impl Codec for Fq {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Fq(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Fq(decode(&read(options))))
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(message.own_payload()).map(Xstats::Fq)
    }
}

fn encode(to: &mut Attributes, params: &FqParams) {
    to.maybe(8, params.buckets_log)
        .maybe(1, params.limit)
        .maybe(2, params.flow_limit)
        .maybe(3, params.quantum);
    to.maybe(4, params.initial_quantum).switch(5, params.pacing).maybe(7, params.max_rate);
    to.maybe(11, params.low_rate_threshold).maybe(9, params.refill_delay_us).maybe(10, params.orphan_mask);
    to.maybe(12, params.ce_threshold_us).maybe(13, params.timer_slack_ns).maybe(14, params.horizon_us);
    if let Some(dropped) = params.horizon_drop {
        to.u8(15, u8::from(dropped));
    }
    if let Some(map) = params.priomap {
        to.payload(16, &[&BANDS.to_ne_bytes()[..], &map].concat());
    }
    if let Some(weights) = params.weights {
        to.payload(17, &weights.map(i32::to_ne_bytes).concat());
    }
    to.maybe(18, params.offload_horizon_us);
}

fn decode(from: &Found<'_>) -> FqParams {
    FqParams {
        limit: from.u32(1),
        flow_limit: from.u32(2),
        buckets_log: from.u32(8),
        orphan_mask: from.u32(10),
        pacing: from.switch(5),
        quantum: from.u32(3),
        initial_quantum: from.u32(4),
        max_rate: from.u32(7),
        low_rate_threshold: from.u32(11),
        refill_delay_us: from.u32(9),
        ce_threshold_us: from.u32(12),
        timer_slack_ns: from.u32(13),
        horizon_us: from.u32(14),
        horizon_drop: from.u8(15).map(|dropped| dropped != 0),
        priomap: from.get(16).and_then(|bytes| bytes.get(4..20)?.try_into().ok()),
        weights: from.get(17).and_then(weights),
        offload_horizon_us: from.u32(18),
    }
}

fn weights(bytes: &[u8]) -> Option<[i32; FqBands::COUNT]> {
    let mut weights = [0; FqBands::COUNT];
    for (at, weight) in weights.iter_mut().enumerate() {
        *weight = i32::from_ne_bytes(bytes.get(at * 4..at * 4 + 4)?.try_into().ok()?);
    }
    Some(weights)
}

fn read_stats(bytes: &[u8]) -> Option<FqStats> {
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at * 8..at * 8 + 8)?.try_into().ok()?));
    let short = |at: usize| Some(u32::from_ne_bytes(bytes.get(64 + at * 4..68 + at * 4)?.try_into().ok()?));
    Some(FqStats {
        flows: short(0)?,
        inactive: short(1)?,
        throttled: short(2)?,
        next_packet_ns: long(7)? as i64,
        gc: long(0)?,
        highprio: long(1)?,
        throttled_times: long(3)?,
        latency_ns: short(3)?.into(),
        ce_mark: long(10).unwrap_or(0),
        flows_plimit: long(4)?,
        too_long: long(5)?,
        horizon_drops: long(11).unwrap_or(0),
        horizon_caps: long(12).unwrap_or(0),
        fastpath: long(13).unwrap_or(0),
        band_drops: core::array::from_fn(|band| long(14 + band).unwrap_or(0)),
        // 32 bits each, behind seventeen numbers of 64.
        band_packets: core::array::from_fn(|band| short(18 + band).unwrap_or(0)),
    })
}

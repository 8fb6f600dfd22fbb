//! dualpi2.

use super::base::{Codec, nested};
use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::{Attributes, Found, read};
use tidegate_policy::dump::{DualPi2Stats, Xstats};
use tidegate_policy::{DualPi2Params, QdiscParams, StepThreshold};

pub(super) struct DualPi2;

impl Codec for DualPi2 {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::DualPi2(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::DualPi2(decode(&read(options))))
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(&message.own_numbers()).map(Xstats::DualPi2)
    }
}

fn encode(to: &mut Attributes, params: &DualPi2Params) {
    to.maybe(1, params.limit)
        .maybe(2, params.memory_limit)
        .maybe(3, params.target_us)
        .maybe(4, params.tupdate_us);
    to.maybe(5, params.alpha).maybe(6, params.beta);
    match params.step {
        Some(StepThreshold::Packets(packets)) => to.u32(7, packets),
        Some(StepThreshold::Micros(us)) => to.u32(8, us),
        None => to,
    };
    to.maybe(9, params.min_qlen_step);
    let bytes = [
        (10, params.coupling),
        (11, params.drop_on_overload.map(u8::from)),
        (12, params.drop_at_enqueue.map(u8::from)),
        (13, params.classic_protection),
        (14, params.ecn_mask),
        (15, params.split_gso.map(u8::from)),
    ];
    for (number, value) in bytes {
        if let Some(value) = value {
            to.u8(number, value);
        }
    }
}

fn decode(from: &Found<'_>) -> DualPi2Params {
    let on = |number: u16| from.u8(number).map(|value| value != 0);
    DualPi2Params {
        limit: from.u32(1),
        memory_limit: from.u32(2),
        target_us: from.u32(3),
        tupdate_us: from.u32(4),
        alpha: from.u32(5),
        beta: from.u32(6),
        step: from.u32(7).map(StepThreshold::Packets).or(from.u32(8).map(StepThreshold::Micros)),
        min_qlen_step: from.u32(9),
        coupling: from.u8(10),
        drop_on_overload: on(11),
        drop_at_enqueue: on(12),
        classic_protection: from.u8(13),
        ecn_mask: from.u8(14),
        split_gso: on(15),
    }
}

fn read_stats(words: &[u32]) -> Option<DualPi2Stats> {
    let [
        prob,
        delay_c_us,
        delay_l_us,
        packets_in_c,
        packets_in_l,
        maxq,
        ecn_mark,
        step_marks,
        credit,
        memory_used,
        max_memory_used,
        memory_limit,
    ] = *words
    else {
        return None;
    };
    Some(DualPi2Stats {
        prob,
        delay_c_us,
        delay_l_us,
        packets_in_c,
        packets_in_l,
        maxq,
        ecn_mark,
        step_marks,
        credit: credit as i32,
        memory_used,
        max_memory_used,
        memory_limit,
    })
}

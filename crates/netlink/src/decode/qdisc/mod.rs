//! Queueing disciplines: one function for each kind, the other way round as in [`crate::encode`].

mod cake;
mod early;
mod netem;

pub(super) use cake::cake;
pub(super) use early::{gred, red, sfb};
pub(super) use netem::netem;

use super::numbers;
use super::params::{SPEC, rate};
use tidegate_os::attribute::Found;
use tidegate_policy::{
    CodelParams, DualPi2Params, EtsParams, FqCodelParams, FqParams, FqPieParams, HhfParams, HtbParams, PieParams,
    PrioParams, RedCurve, SfqParams, SfqRed, StepThreshold, TbfParams, Ticks,
};

pub(super) fn prio(options: &[u8]) -> Option<PrioParams> {
    let priomap = options.get(4..20)?.try_into().ok()?;
    Some(PrioParams { bands: *numbers(options).first()?, priomap })
}

pub(super) fn sfq(options: &[u8]) -> Option<SfqParams> {
    let words = numbers(options);
    let [quantum, perturb, limit, divisor, flows, depth, headdrop, red_limit, min, max, _, max_p, ..] =
        words.as_slice()
    else {
        return None;
    };
    let logs = options.get(40..44)?;
    let curve = RedCurve { min: *min, max: *max, wlog: logs[0], plog: logs[1], scell_log: logs[2], max_p: *max_p };
    let red = SfqRed { limit: *red_limit, curve, ecn: logs[3] & 1 != 0, harddrop: logs[3] & 2 != 0 };
    Some(SfqParams {
        quantum: *quantum,
        perturb: *perturb as i32,
        limit: *limit,
        divisor: *divisor,
        flows: *flows,
        depth: *depth,
        headdrop: *headdrop != 0,
        red: (*max != 0).then_some(red),
    })
}

pub(super) fn tbf(options: &Found<'_>) -> Option<TbfParams> {
    let octets = options.get(1)?;
    let rest = numbers(octets.get(2 * SPEC..)?);
    let peak = rate(octets.get(SPEC..)?, options.u64(5))?;
    Some(TbfParams {
        rate: rate(octets, options.u64(4))?,
        peak: (peak.rate.0 > 0).then_some(peak),
        limit: *rest.first()?,
        burst: 0,
        peak_burst: 0,
        buffer: Ticks(*rest.get(1)?),
        peak_buffer: Ticks(*rest.get(2)?),
    })
}

pub(super) fn htb(options: &Found<'_>) -> Option<HtbParams> {
    let global = numbers(options.get(2)?);
    Some(HtbParams { default: *global.get(2)?, r2q: *global.get(1)?, direct_qlen: options.u32(5) })
}

pub(super) fn codel(from: &Found<'_>) -> CodelParams {
    CodelParams {
        limit: from.u32(2),
        target_us: from.u32(1),
        interval_us: from.u32(3),
        ecn: from.switch(4),
        ce_threshold_us: from.u32(5),
    }
}

pub(super) fn fq_codel(from: &Found<'_>) -> FqCodelParams {
    FqCodelParams {
        limit: from.u32(2),
        flows: from.u32(5),
        quantum: from.u32(6),
        target_us: from.u32(1),
        interval_us: from.u32(3),
        ecn: from.switch(4),
        ce_threshold_us: from.u32(7),
        ce_selector: from.u8(10).zip(from.u8(11)),
        memory_limit: from.u32(9),
        drop_batch: from.u32(8),
    }
}

pub(super) fn pie(from: &Found<'_>) -> PieParams {
    PieParams {
        limit: from.u32(2),
        target_us: from.u32(1),
        tupdate_us: from.u32(3),
        alpha: from.u32(4),
        beta: from.u32(5),
        ecn: from.switch(6),
        bytemode: from.switch(7),
        rate_estimator: from.switch(8),
    }
}

pub(super) fn fq_pie(from: &Found<'_>) -> FqPieParams {
    let pie = PieParams {
        limit: from.u32(1),
        target_us: from.u32(3),
        tupdate_us: from.u32(4),
        alpha: from.u32(5),
        beta: from.u32(6),
        ecn: from.switch(10),
        bytemode: from.switch(11),
        rate_estimator: from.switch(12),
    };
    FqPieParams { pie, flows: from.u32(2), quantum: from.u32(7), memory_limit: from.u32(8), ecn_prob: from.u32(9) }
}

pub(super) fn dualpi2(from: &Found<'_>) -> DualPi2Params {
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

pub(super) fn ets(from: &Found<'_>) -> EtsParams {
    let quanta = from.nest(3);
    let priomap = from.nest(5);
    EtsParams {
        bands: from.u8(1).unwrap_or(0),
        strict: from.u8(2).unwrap_or(0),
        quanta: quanta.all().filter_map(|(_, octets)| numbers(octets).first().copied()).collect(),
        priomap: priomap.all().filter_map(|(_, octets)| octets.first().copied()).collect(),
    }
}

pub(super) fn fq(from: &Found<'_>) -> FqParams {
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
    }
}

pub(super) fn hhf(from: &Found<'_>) -> HhfParams {
    HhfParams {
        limit: from.u32(1),
        quantum: from.u32(2),
        hh_limit: from.u32(3),
        reset_timeout_us: from.u32(4),
        admit_bytes: from.u32(5),
        evict_timeout_us: from.u32(6),
        non_hh_weight: from.u32(7),
    }
}

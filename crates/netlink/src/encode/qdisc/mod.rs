//! Queueing disciplines: one function for each kind, in the order of [`QdiscParams`].

mod cake;
mod early;
mod netem;

use super::rate;
use tidegate_os::attribute::{Attributes, words};
use tidegate_os::numbers::TCA_OPTIONS;
use tidegate_policy::{
    CodelParams, DualPi2Params, EtsParams, FqCodelParams, FqParams, FqPieParams, HhfParams, HtbParams, PieParams,
    PrioParams, QdiscParams, SfqParams, StepThreshold, TbfParams,
};

/// What htb and tc call the version of their words.
const HTB_VERSION: u32 = 3;

/// What is said of a qdisc. Kinds older than attributes have a structure of their own; `change`: it is there already.
pub(super) fn options(to: &mut Attributes, params: &QdiscParams, change: bool) {
    let mut inner = Attributes::default();
    match params {
        QdiscParams::Fifo(params) => {
            to.maybe(TCA_OPTIONS, params.limit);
            return;
        }
        QdiscParams::Skbprio(params) => {
            to.maybe(TCA_OPTIONS, params.limit);
            return;
        }
        QdiscParams::Hfsc(params) => {
            to.u16(TCA_OPTIONS, params.default);
            return;
        }
        QdiscParams::PfifoFast | QdiscParams::Noqueue | QdiscParams::Ingress => return,
        QdiscParams::Drr | QdiscParams::Qfq => return,
        QdiscParams::Prio(params) => return prio(to, params),
        QdiscParams::Sfq(params) => return sfq(to, params),
        QdiscParams::Netem(params) => return netem::options(to, params),
        QdiscParams::Ets(params) => {
            ets(&mut inner, params, change);
            to.marked_nest(TCA_OPTIONS, &inner);
            return;
        }
        QdiscParams::FqPie(params) => {
            fq_pie(&mut inner, params);
            to.marked_nest(TCA_OPTIONS, &inner);
            return;
        }
        QdiscParams::Tbf(params) => tbf(&mut inner, params),
        QdiscParams::Htb(params) => htb(&mut inner, params),
        QdiscParams::Codel(params) => codel(&mut inner, params),
        QdiscParams::FqCodel(params) => fq_codel(&mut inner, params),
        QdiscParams::Red(params) => early::red(&mut inner, params),
        QdiscParams::Choke(params) => early::choke(&mut inner, params),
        QdiscParams::Sfb(params) => early::sfb(&mut inner, params),
        QdiscParams::Gred(params) => early::gred(&mut inner, params),
        QdiscParams::Pie(params) => pie(&mut inner, params),
        QdiscParams::DualPi2(params) => dualpi2(&mut inner, params),
        QdiscParams::Cake(params) => cake::options(&mut inner, params),
        QdiscParams::Fq(params) => fq(&mut inner, params),
        QdiscParams::Hhf(params) => hhf(&mut inner, params),
    }
    to.nest(TCA_OPTIONS, &inner);
}

fn prio(to: &mut Attributes, params: &PrioParams) {
    let mut octets = words(&[params.bands]);
    octets.extend(params.priomap);
    // Behind the structure stand attributes, of which there are none.
    octets.extend(Attributes::default().octets(TCA_OPTIONS, &[]).bytes());
    to.octets(TCA_OPTIONS, &octets);
}

fn sfq(to: &mut Attributes, params: &SfqParams) {
    let SfqParams { quantum, perturb, limit, divisor, flows, depth, headdrop, red } = params;
    let mut octets = words(&[*quantum, *perturb as u32, *limit, *divisor, *flows, *depth, u32::from(*headdrop)]);
    match red {
        Some(red) => {
            octets.extend(words(&[red.limit, red.curve.min, red.curve.max]));
            let flags = u8::from(red.ecn) | u8::from(red.harddrop) << 1;
            octets.extend([red.curve.wlog, red.curve.plog, red.curve.scell_log, flags]);
            octets.extend(words(&[red.curve.max_p]));
        }
        None => octets.extend(words(&[0; 5])),
    }
    // What the kernel counts of it, when it tells.
    octets.extend(words(&[0; 6]));
    to.octets(TCA_OPTIONS, &octets);
}

fn tbf(to: &mut Attributes, params: &TbfParams) {
    let TbfParams { rate, peak, limit, burst, peak_burst, buffer, peak_buffer } = params;
    let cell_log = if *peak_burst > 0 { rate::cell_log(*peak_burst) } else { rate::CELL_LOG };
    let mut octets = rate::spec(rate, cell_log).to_vec();
    octets.extend(peak.as_ref().map_or(rate::NO_RATE, |peak| rate::spec(peak, cell_log)));
    octets.extend(words(&[*limit, buffer.0, peak_buffer.0]));
    // A bucket is told in bytes too, where they are known.
    to.octets(1, &octets).maybe(6, Some(*burst).filter(|burst| *burst > 0));
    rate::wide(to, 4, rate);
    rate::table(to, 2, rate, cell_log);
    if let Some(peak) = peak {
        rate::wide(to, 5, peak);
        to.maybe(7, Some(*peak_burst).filter(|burst| *burst > 0));
        rate::table(to, 3, peak, cell_log);
    }
}

fn htb(to: &mut Attributes, params: &HtbParams) {
    // The last two are for mistakes in the kernel, and what it counts.
    to.octets(2, &words(&[HTB_VERSION, params.r2q, params.default, 0, 0])).maybe(5, params.direct_qlen);
}

fn codel(to: &mut Attributes, params: &CodelParams) {
    let CodelParams { limit, target_us, interval_us, ecn, ce_threshold_us } = params;
    to.maybe(2, *limit).maybe(3, *interval_us).maybe(1, *target_us).switch(4, *ecn).maybe(5, *ce_threshold_us);
}

fn fq_codel(to: &mut Attributes, params: &FqCodelParams) {
    to.maybe(2, params.limit).maybe(5, params.flows).maybe(6, params.quantum).maybe(3, params.interval_us);
    to.maybe(1, params.target_us).switch(4, params.ecn).maybe(7, params.ce_threshold_us);
    if let Some((value, mask)) = params.ce_selector {
        to.u8(10, value).u8(11, mask);
    }
    to.maybe(9, params.memory_limit).maybe(8, params.drop_batch);
}

fn pie(to: &mut Attributes, params: &PieParams) {
    let PieParams { limit, target_us, tupdate_us, alpha, beta, ecn, bytemode, rate_estimator } = params;
    to.maybe(2, *limit).maybe(3, *tupdate_us).maybe(1, *target_us).maybe(4, *alpha).maybe(5, *beta);
    to.switch(6, *ecn).switch(7, *bytemode).switch(8, *rate_estimator);
}

fn fq_pie(to: &mut Attributes, params: &FqPieParams) {
    let PieParams { limit, target_us, tupdate_us, alpha, beta, ecn, bytemode, rate_estimator } = &params.pie;
    to.maybe(1, *limit).maybe(2, params.flows).maybe(3, *target_us).maybe(4, *tupdate_us).maybe(5, *alpha);
    to.maybe(6, *beta).maybe(7, params.quantum).maybe(8, params.memory_limit).maybe(9, params.ecn_prob);
    to.switch(10, *ecn).switch(11, *bytemode).switch(12, *rate_estimator);
}

fn dualpi2(to: &mut Attributes, params: &DualPi2Params) {
    to.maybe(1, params.limit).maybe(2, params.memory_limit).maybe(3, params.target_us).maybe(4, params.tupdate_us);
    to.maybe(5, params.alpha).maybe(6, params.beta);
    match params.step {
        Some(StepThreshold::Packets(packets)) => to.u32(7, packets),
        Some(StepThreshold::Micros(us)) => to.u32(8, us),
        None => to,
    };
    to.maybe(9, params.min_qlen_step);
    let octets = [
        (10, params.coupling),
        (11, params.drop_on_overload.map(u8::from)),
        (12, params.drop_at_enqueue.map(u8::from)),
        (13, params.classic_protection),
        (14, params.ecn_mask),
        (15, params.split_gso.map(u8::from)),
    ];
    for (number, value) in octets {
        if let Some(value) = value {
            to.u8(number, value);
        }
    }
}

fn ets(to: &mut Attributes, params: &EtsParams, change: bool) {
    let EtsParams { bands, strict, quanta, priomap } = params;
    if *bands > 0 || !change {
        to.u8(1, *bands);
    }
    if *strict > 0 {
        to.u8(2, *strict);
    }
    if !quanta.is_empty() {
        let mut inner = Attributes::default();
        for quantum in quanta {
            inner.u32(4, *quantum);
        }
        to.marked_nest(3, &inner);
    }
    if !priomap.is_empty() {
        let mut inner = Attributes::default();
        for band in priomap {
            inner.u8(6, *band);
        }
        to.marked_nest(5, &inner);
    }
}

fn fq(to: &mut Attributes, params: &FqParams) {
    to.maybe(8, params.buckets_log).maybe(1, params.limit).maybe(2, params.flow_limit).maybe(3, params.quantum);
    to.maybe(4, params.initial_quantum).switch(5, params.pacing).maybe(7, params.max_rate);
    to.maybe(11, params.low_rate_threshold).maybe(9, params.refill_delay_us).maybe(10, params.orphan_mask);
    to.maybe(12, params.ce_threshold_us).maybe(13, params.timer_slack_ns).maybe(14, params.horizon_us);
    if let Some(dropped) = params.horizon_drop {
        to.u8(15, u8::from(dropped));
    }
}

fn hhf(to: &mut Attributes, params: &HhfParams) {
    to.maybe(1, params.limit).maybe(2, params.quantum).maybe(3, params.hh_limit).maybe(4, params.reset_timeout_us);
    to.maybe(5, params.admit_bytes).maybe(6, params.evict_timeout_us).maybe(7, params.non_hh_weight);
}

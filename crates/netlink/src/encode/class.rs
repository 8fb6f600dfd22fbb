//! Classes.

use super::rate;
use tidegate_os::attribute::{Attributes, words};
use tidegate_os::numbers::TCA_OPTIONS;
use tidegate_policy::{ClassParams, HfscClassParams, HtbClassParams, ServiceCurve};

const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_CTAB: u16 = 3;
const TCA_HTB_RTAB: u16 = 4;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const TCA_DRR_QUANTUM: u16 = 1;
const TCA_QFQ_WEIGHT: u16 = 1;
const TCA_QFQ_LMAX: u16 = 2;
const TCA_HFSC_RSC: u16 = 1;
const TCA_HFSC_FSC: u16 = 2;
const TCA_HFSC_USC: u16 = 3;
const TCA_ETS_QUANTA_BAND: u16 = 4;

/// What is said of a class.
pub(super) fn options(to: &mut Attributes, params: &ClassParams) {
    let mut inner = Attributes::default();
    match params {
        ClassParams::None => return,
        ClassParams::Htb(params) => htb(&mut inner, params),
        ClassParams::Drr(params) => {
            inner.maybe(TCA_DRR_QUANTUM, params.quantum);
        }
        ClassParams::Qfq(params) => {
            inner.maybe(TCA_QFQ_WEIGHT, params.weight).maybe(TCA_QFQ_LMAX, params.maxpkt);
        }
        ClassParams::Hfsc(params) => hfsc(&mut inner, params),
        ClassParams::Ets(params) => {
            inner.maybe(TCA_ETS_QUANTA_BAND, params.quantum);
            to.marked_nest(TCA_OPTIONS, &inner);
            return;
        }
    }
    to.nest(TCA_OPTIONS, &inner);
}

fn htb(to: &mut Attributes, params: &HtbClassParams) {
    let HtbClassParams { rate, ceil, buffer, cbuffer, quantum, prio } = params;
    rate::wide(to, TCA_HTB_RATE64, rate);
    rate::wide(to, TCA_HTB_CEIL64, ceil);
    let mut octets = rate::spec(rate, rate::CELL_LOG).to_vec();
    octets.extend(rate::spec(ceil, rate::CELL_LOG));
    // The last but one is the level, which the kernel finds.
    octets.extend(words(&[buffer.0, cbuffer.0, *quantum, 0, *prio]));
    to.octets(TCA_HTB_PARMS, &octets);
    rate::table(to, TCA_HTB_RTAB, rate, rate::CELL_LOG);
    rate::table(to, TCA_HTB_CTAB, ceil, rate::CELL_LOG);
}

fn hfsc(to: &mut Attributes, params: &HfscClassParams) {
    let curves = [(TCA_HFSC_RSC, params.rt), (TCA_HFSC_FSC, params.ls), (TCA_HFSC_USC, params.ul)];
    for (number, curve) in curves {
        if let Some(ServiceCurve { m1, d_us, m2 }) = curve {
            to.octets(number, &words(&[m1, d_us, m2]));
        }
    }
}

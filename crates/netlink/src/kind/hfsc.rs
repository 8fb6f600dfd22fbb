//! hfsc.

use super::base::{Codec, nested, wide};
use crate::decode::message::{Message, numbers};
use tidegate_netlink_wire::attribute::{Attributes, Found, read, words};
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::dump::Xstats;
use tidegate_policy::{ClassParams, HfscClassParams, HfscParams, QdiscParams, ServiceCurve};

pub(super) struct Hfsc;

impl Codec for Hfsc {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Hfsc(params) = params {
            to.u16(TCA_OPTIONS, params.default);
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        let two = options.get(..2)?;
        Some(QdiscParams::Hfsc(HfscParams { default: u16::from_ne_bytes([two[0], two[1]]) }))
    }

    fn encode_class(&self, to: &mut Attributes, params: &ClassParams) {
        if let ClassParams::Hfsc(params) = params {
            nested(to, |to| encode_class(to, params));
        }
    }

    fn decode_class(&self, options: &[u8]) -> Option<ClassParams> {
        let found = read(options);
        let [rt, ls, ul] = [TCA_HFSC_RSC, TCA_HFSC_FSC, TCA_HFSC_USC].map(|number| curve(&found, number));
        Some(ClassParams::Hfsc(HfscClassParams { rt, ls, ul }))
    }

    fn class_stats(&self, message: &Message<'_>) -> Option<Xstats> {
        match *message.own_numbers().as_slice() {
            [work, work_high, rtwork, rtwork_high, period, level] => Some(Xstats::HfscClass {
                work: wide(work, work_high),
                rtwork: wide(rtwork, rtwork_high),
                period,
                level,
            }),
            _ => None,
        }
    }
}

const TCA_HFSC_RSC: u16 = 1;
const TCA_HFSC_FSC: u16 = 2;
const TCA_HFSC_USC: u16 = 3;

fn encode_class(to: &mut Attributes, params: &HfscClassParams) {
    let curves = [(TCA_HFSC_RSC, params.rt), (TCA_HFSC_FSC, params.ls), (TCA_HFSC_USC, params.ul)];
    for (number, curve) in curves {
        if let Some(ServiceCurve { m1, d_us, m2 }) = curve {
            to.payload(number, &words(&[m1, d_us, m2]));
        }
    }
}

fn curve(found: &Found<'_>, number: u16) -> Option<ServiceCurve> {
    match numbers(found.get(number)?).as_slice() {
        [m1, d_us, m2] => Some(ServiceCurve { m1: *m1, d_us: *d_us, m2: *m2 }),
        _ => None,
    }
}

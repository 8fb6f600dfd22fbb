//! ets.

use super::base::{Codec, nested_and_marked};
use crate::decode::message::numbers;
use tidegate_netlink_wire::attribute::{Attributes, Found, read};
use tidegate_policy::{ClassParams, EtsClassParams, EtsParams, QdiscParams};

pub(super) struct Ets;

impl Codec for Ets {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, change: bool) {
        if let QdiscParams::Ets(params) = params {
            nested_and_marked(to, |to| encode(to, params, change));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        Some(QdiscParams::Ets(decode(&read(options))))
    }

    fn encode_class(&self, to: &mut Attributes, params: &ClassParams) {
        if let ClassParams::Ets(params) = params {
            nested_and_marked(to, |to| {
                to.maybe(TCA_ETS_QUANTA_BAND, params.quantum);
            });
        }
    }

    fn decode_class(&self, options: &[u8]) -> Option<ClassParams> {
        Some(ClassParams::Ets(EtsClassParams { quantum: read(options).u32(TCA_ETS_QUANTA_BAND) }))
    }
}

const TCA_ETS_QUANTA_BAND: u16 = 4;

fn encode(to: &mut Attributes, params: &EtsParams, change: bool) {
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

fn decode(from: &Found<'_>) -> EtsParams {
    let quanta = from.nest(3);
    let priomap = from.nest(5);
    EtsParams {
        bands: from.u8(1).unwrap_or(0),
        strict: from.u8(2).unwrap_or(0),
        quanta: quanta.all().filter_map(|(_, bytes)| numbers(bytes).first().copied()).collect(),
        priomap: priomap.all().filter_map(|(_, bytes)| bytes.first().copied()).collect(),
    }
}

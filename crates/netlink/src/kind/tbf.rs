//! tbf.

use super::base::{Codec, nested};
use crate::decode::message::numbers;
use crate::decode::rate::{SPEC, rate};
use crate::encode::rate as sent;
use tidegate_netlink_wire::attribute::{Attributes, Found, read, words};
use tidegate_policy::{QdiscParams, TbfParams, Ticks};

pub(super) struct Tbf;

impl Codec for Tbf {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Tbf(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        decode(&read(options)).map(QdiscParams::Tbf)
    }
}

fn encode(to: &mut Attributes, params: &TbfParams) {
    let TbfParams { rate, peak, limit, burst, peak_burst, buffer, peak_buffer } = params;
    let cell_log = if *peak_burst > 0 { sent::cell_log(*peak_burst) } else { sent::CELL_LOG };
    let mut bytes = sent::spec(rate, cell_log).to_vec();
    bytes.extend(peak.as_ref().map_or(sent::NO_RATE, |peak| sent::spec(peak, cell_log)));
    bytes.extend(words(&[*limit, buffer.0, peak_buffer.0]));
    // The bucket is given in bytes too, where they are known.
    to.payload(1, &bytes).maybe(6, Some(*burst).filter(|burst| *burst > 0));
    sent::wide(to, 4, rate);
    sent::table(to, 2, rate, cell_log);
    if let Some(peak) = peak {
        sent::wide(to, 5, peak);
        to.maybe(7, Some(*peak_burst).filter(|burst| *burst > 0));
        sent::table(to, 3, peak, cell_log);
    }
}

fn decode(options: &Found<'_>) -> Option<TbfParams> {
    let bytes = options.get(1)?;
    let rest = numbers(bytes.get(2 * SPEC..)?);
    let peak = rate(bytes.get(SPEC..)?, options.u64(5))?;
    Some(TbfParams {
        rate: rate(bytes, options.u64(4))?,
        peak: (peak.rate.0 > 0).then_some(peak),
        limit: *rest.first()?,
        burst: 0,
        peak_burst: 0,
        buffer: Ticks(*rest.get(1)?),
        peak_buffer: Ticks(*rest.get(2)?),
    })
}

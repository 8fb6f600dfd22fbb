//! htb.

use super::base::{Codec, nested};
use crate::decode::message::{Message, numbers};
use crate::decode::rate::{SPEC, rate};
use crate::encode::rate as sent;
use tidegate_netlink_wire::attribute::{Attributes, Found, read, words};
use tidegate_policy::dump::Xstats;
use tidegate_policy::{ClassParams, HtbClassParams, HtbParams, QdiscParams, Ticks};

pub(super) struct Htb;

impl Codec for Htb {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Htb(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        decode(&read(options)).map(QdiscParams::Htb)
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        Some(Xstats::Htb { direct_packets: direct_packets(message.options()) })
    }

    fn encode_class(&self, to: &mut Attributes, params: &ClassParams) {
        if let ClassParams::Htb(params) = params {
            nested(to, |to| encode_class(to, params));
        }
    }

    fn decode_class(&self, options: &[u8]) -> Option<ClassParams> {
        decode_class(&read(options)).map(ClassParams::Htb)
    }

    fn class_stats(&self, message: &Message<'_>) -> Option<Xstats> {
        class_stats(&message.own_numbers(), level(&read(message.options()))?)
    }
}

/// What htb and tc call the version of their words.
const HTB_VERSION: u32 = 3;

const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_CTAB: u16 = 3;
const TCA_HTB_RTAB: u16 = 4;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;

fn encode(to: &mut Attributes, params: &HtbParams) {
    // The last two are for mistakes in the kernel, and what it counts.
    to.payload(2, &words(&[HTB_VERSION, params.r2q, params.default, 0, 0])).maybe(5, params.direct_qlen);
}

fn decode(options: &Found<'_>) -> Option<HtbParams> {
    let global = numbers(options.get(2)?);
    Some(HtbParams { default: *global.get(2)?, r2q: *global.get(1)?, direct_qlen: options.u32(5) })
}

/// Packets that htb sent past all its classes.
fn direct_packets(options: &[u8]) -> u32 {
    numbers(read(options).get(2).unwrap_or_default()).get(4).copied().unwrap_or(0)
}

fn encode_class(to: &mut Attributes, params: &HtbClassParams) {
    let HtbClassParams { rate, ceil, buffer, cbuffer, quantum, prio } = params;
    sent::wide(to, TCA_HTB_RATE64, rate);
    sent::wide(to, TCA_HTB_CEIL64, ceil);
    let mut bytes = sent::spec(rate, sent::CELL_LOG).to_vec();
    bytes.extend(sent::spec(ceil, sent::CELL_LOG));
    // The last but one is the level, which the kernel finds.
    bytes.extend(words(&[buffer.0, cbuffer.0, *quantum, 0, *prio]));
    to.payload(TCA_HTB_PARMS, &bytes);
    sent::table(to, TCA_HTB_RTAB, rate, sent::CELL_LOG);
    sent::table(to, TCA_HTB_CTAB, ceil, sent::CELL_LOG);
}

fn decode_class(options: &Found<'_>) -> Option<HtbClassParams> {
    let bytes = options.get(TCA_HTB_PARMS)?;
    let rest = numbers(bytes.get(2 * SPEC..)?);
    let [buffer, cbuffer, quantum, _, prio] = rest.as_slice() else { return None };
    Some(HtbClassParams {
        rate: rate(bytes, options.u64(TCA_HTB_RATE64))?,
        ceil: rate(bytes.get(SPEC..)?, options.u64(TCA_HTB_CEIL64))?,
        buffer: Ticks(*buffer),
        cbuffer: Ticks(*cbuffer),
        quantum: *quantum,
        prio: *prio,
    })
}

/// The level, which is among the parameters.
fn level(options: &Found<'_>) -> Option<u32> {
    numbers(options.get(TCA_HTB_PARMS)?.get(2 * SPEC..)?).get(3).copied()
}

fn class_stats(numbers: &[u32], level: u32) -> Option<Xstats> {
    let [lends, borrows, giants, tokens, ctokens] = *numbers else { return None };
    let (tokens, ctokens) = (tokens as i32, ctokens as i32);
    Some(Xstats::HtbClass { lends, borrows, giants, tokens, ctokens, level })
}

//! simple and sample.

use super::base::{ActionAttributes, Head, Row, general};
use crate::encode::message::{Devices, Unsent};
use alloc::borrow::ToOwned;
use tidegate_netlink_wire::attribute::Attributes;
use tidegate_policy::{Act, Action, SampleAction, Simple};

/// What simple's text has, with the zeros that end it.
const SIMPLE_LEN: usize = 32;

/// `simple`.
pub(super) const SIMPLE: Row =
    Row { name: "simple", structure: 2, ages: 1, encode: encode_simple, decode: decode_simple };

/// `sample`.
pub(super) const SAMPLE: Row =
    Row { name: "sample", structure: 2, ages: 1, encode: encode_sample, decode: decode_sample };

fn encode_simple(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let Act::Simple(act) = &action.act else { return Ok(()) };
    to.payload(2, &general(action.index, act.control));
    if let Some(text) = &act.text {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(SIMPLE_LEN, 0);
        to.payload(3, &bytes);
    }
    Ok(())
}

fn decode_simple(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, _) = dump.begun()?;
    let control = head.control;
    Some((head, Act::Simple(Simple { text: dump.options.text(3).map(str::to_owned), control })))
}

fn encode_sample(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let Act::Sample(act) = &action.act else { return Ok(()) };
    to.payload(2, &general(action.index, act.control));
    to.maybe(3, act.rate).maybe(5, act.group).maybe(4, act.trunc_size);
    Ok(())
}

fn decode_sample(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, _) = dump.begun()?;
    let control = head.control;
    let options = dump.options;
    let (rate, group, bytes) = (options.u32(3), options.u32(5), options.u32(4));
    Some((head, Act::Sample(SampleAction { rate, group, trunc_size: bytes, control })))
}

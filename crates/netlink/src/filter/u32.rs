//! u32.

use super::base::{Row, actions, class, indev, key};
use crate::decode::message::numbers;
use crate::encode::message::{Devices, Unsent};
use alloc::vec;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Attributes, Found, words};
use tidegate_packet::Handle;
use tidegate_policy::{Action, FilterOp, FilterParams, Indev, U32Offset, U32OffsetField, U32Params};

/// `u32`.
pub(super) const ROW: Row = Row { name: "u32", actions: 7, police: Some(6), encode, decode };

const SKIP_HW: u32 = 1;

/// u32: what leads on, and the structure of its comparisons last.
fn encode(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let FilterParams::U32(params) = params else { return Ok(()) };
    class(to, 1, params.classid);
    to.maybe(4, params.divisor).maybe(3, params.link.map(|table| table << 20));
    if params.table != 0 {
        to.u32(2, params.table);
    }
    if params.skip_hw {
        to.u32(11, SKIP_HW);
    }
    indev(to, 8, params.indev.as_ref());
    if let Some((value, mask)) = params.mark {
        to.payload(10, &words(&[value, mask, 0]));
    }
    actions(to, &ROW, &op.actions, devices)?;
    let compares = !params.keys.is_empty()
        || params.mark.is_some()
        || params.hash.is_some()
        || params.offset != U32Offset::default();
    if params.divisor.is_none() && compares {
        to.payload(5, &selector(params, &op.actions));
    }
    Ok(())
}

fn selector(params: &U32Params, all: &[Action]) -> Vec<u8> {
    const TERMINAL: u8 = 1;
    const OFFSET: u8 = 2;
    const VAROFFSET: u8 = 4;
    const EAT: u8 = 8;
    let field = params.offset.field.unwrap_or_default();
    let ends = params.classid.is_some() || !all.is_empty();
    let flag = |on: bool, flag: u8| if on { flag } else { 0 };
    let flags = flag(ends, TERMINAL)
        | flag(params.offset.plus != 0, OFFSET)
        | flag(params.offset.field.is_some(), VAROFFSET)
        | flag(params.offset.eat, EAT);
    let mut bytes = vec![flags, field.shift, params.keys.len() as u8, 0];
    bytes.extend(field.mask.to_be_bytes());
    bytes.extend(params.offset.plus.to_ne_bytes());
    bytes.extend((field.at as i16).to_ne_bytes());
    let (mask, at) = params.hash.unwrap_or_default();
    bytes.extend((at as i16).to_ne_bytes());
    bytes.extend(mask.to_be_bytes());
    for key in &params.keys {
        bytes.extend(key.mask.to_be_bytes());
        bytes.extend(key.value.to_be_bytes());
        bytes.extend(words(&[key.offset as u32, key.offset_mask as u32]));
    }
    bytes
}

fn decode(options: &Found<'_>) -> Option<FilterParams> {
    decode_params(options).map(FilterParams::U32)
}

fn decode_params(options: &Found<'_>) -> Option<U32Params> {
    let bytes = options.get(5).unwrap_or(&[0; 16]);
    let (head, keys) = bytes.split_at_checked(16)?;
    let be = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let own = |at: usize| i16::from_ne_bytes([head[at], head[at + 1]]);
    let hash_mask = u32::from_be_bytes([head[12], head[13], head[14], head[15]]);
    let field = U32OffsetField { mask: be(4), shift: head[1], at: own(8).into() };
    Some(U32Params {
        classid: options.u32(1).map(Handle),
        keys: keys.chunks_exact(16).map(key).collect(),
        mark: options.get(10).and_then(|bytes| numbers(bytes).get(..2).map(|two| (two[0], two[1]))),
        indev: options.text(8).map(Indev::named),
        table: options.u32(2).unwrap_or(0),
        divisor: None,
        link: options.u32(3).map(|link| link >> 20),
        hash: (hash_mask != 0).then(|| (hash_mask, own(10).into())),
        offset: U32Offset {
            plus: own(6) as u16,
            field: (head[0] & 4 != 0).then_some(field),
            eat: head[0] & 8 != 0,
        },
        skip_hw: options.u32(11).is_some_and(|flags| flags & SKIP_HW != 0),
    })
}

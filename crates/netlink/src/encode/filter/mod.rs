//! Filters: one function for each kind.

mod ematch;
mod flower;
mod shared;

pub(crate) use ematch::meta_number;

use super::action;
use super::message::{Devices, Unsent};
use shared::{class, indev};
use tidegate_policy::{
    Action, BasicParams, FilterOp, FilterParams, FlowMode, FlowParams, FwParams, MatchallParams, U32Offset, U32Params,
};
use tidegate_sys::attribute::{Attributes, words};
use tidegate_sys::numbers::TCA_OPTIONS;

/// Where kinds have their actions, and where a policer without `action` before it.
struct Places {
    actions: u16,
    police: u16,
}

const FW: Places = Places { actions: 4, police: 2 };
const U32: Places = Places { actions: 7, police: 6 };
const FLOW: Places = Places { actions: 9, police: 10 };
const BASIC: Places = Places { actions: 3, police: 4 };
const MATCHALL: Places = Places { actions: 2, police: 2 };
const FLOWER: Places = Places { actions: 3, police: 3 };

/// What is said of a filter.
pub(super) fn options(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let mut inner = Attributes::default();
    match params {
        FilterParams::Fw(params) => fw(&mut inner, params, &op.actions, devices)?,
        FilterParams::U32(params) => u32(&mut inner, params, &op.actions, devices)?,
        FilterParams::Flow(params) => flow(&mut inner, params, &op.actions, devices)?,
        FilterParams::Matchall(params) => matchall(&mut inner, params, &op.actions, devices)?,
        FilterParams::Basic(params) => basic(&mut inner, params, &op.actions, devices)?,
        FilterParams::Flower(params) => {
            flower::fields(&mut inner, params);
            actions(&mut inner, &FLOWER, &op.actions, devices)?;
            flower::end(&mut inner, params, op.protocol);
        }
    }
    if !inner.bytes().is_empty() {
        to.nest(TCA_OPTIONS, &inner);
    }
    Ok(())
}

fn actions(to: &mut Attributes, at: &Places, all: &[Action], devices: Devices<'_>) -> Result<(), Unsent> {
    match all {
        [] => Ok(()),
        [only] if only.old_style => action::policer(to, at.police, only),
        all => action::list(to, at.actions, all, devices),
    }
}

fn fw(to: &mut Attributes, params: &FwParams, all: &[Action], devices: Devices<'_>) -> Result<(), Unsent> {
    class(to, 1, params.classid);
    actions(to, &FW, all, devices)?;
    indev(to, 3, params.indev.as_ref());
    to.maybe(5, params.mask);
    Ok(())
}

fn matchall(to: &mut Attributes, params: &MatchallParams, all: &[Action], devices: Devices<'_>) -> Result<(), Unsent> {
    class(to, 1, params.classid);
    actions(to, &MATCHALL, all, devices)
}

fn basic(to: &mut Attributes, params: &BasicParams, all: &[Action], devices: Devices<'_>) -> Result<(), Unsent> {
    if !params.terms.is_empty() {
        ematch::tree(to, 2, &params.terms);
    }
    class(to, 1, params.classid);
    actions(to, &BASIC, all, devices)
}

fn flow(to: &mut Attributes, params: &FlowParams, all: &[Action], devices: Devices<'_>) -> Result<(), Unsent> {
    to.maybe(1, Some(params.keys.0).filter(|keys| *keys != 0));
    if params.said.bits {
        to.u32(6, params.mask).u32(7, params.xor);
    }
    to.maybe(4, params.said.rshift.then_some(params.rshift)).maybe(5, params.said.addend.then_some(params.addend));
    to.maybe(8, params.said.divisor.then_some(params.divisor));
    class(to, 3, params.baseclass);
    to.maybe(12, params.said.perturb.then_some(params.perturb));
    if !params.terms.is_empty() {
        ematch::tree(to, 11, &params.terms);
    }
    actions(to, &FLOW, all, devices)?;
    to.maybe(2, params.mode.map(|mode| u32::from(mode == FlowMode::Hash)));
    Ok(())
}

/// u32: what leads on, and the structure of its comparisons last.
fn u32(to: &mut Attributes, params: &U32Params, all: &[Action], devices: Devices<'_>) -> Result<(), Unsent> {
    class(to, 1, params.classid);
    to.maybe(4, params.divisor).maybe(3, params.link.map(|table| table << 20));
    if params.table != 0 {
        to.u32(2, params.table);
    }
    indev(to, 8, params.indev.as_ref());
    if let Some((value, mask)) = params.mark {
        to.payload(10, &words(&[value, mask, 0]));
    }
    actions(to, &U32, all, devices)?;
    let compares = !params.keys.is_empty()
        || params.mark.is_some()
        || params.hash.is_some()
        || params.offset != U32Offset::default();
    if params.divisor.is_none() && compares {
        to.payload(5, &selector(params, all));
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

//! flow.

use super::base::{Row, actions, class};
use super::ematch;
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_packet::Handle;
use tidegate_policy::{FilterOp, FilterParams, FlowKeySet, FlowMode, FlowOptions, FlowParams};

/// `flow`.
pub(super) const ROW: Row = Row { name: "flow", actions: 9, police: Some(10), encode, decode };

fn encode(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let FilterParams::Flow(params) = params else { return Ok(()) };
    to.maybe(1, Some(params.keys.0).filter(|keys| *keys != 0));
    if params.given.bits {
        to.u32(6, params.mask).u32(7, params.xor);
    }
    to.maybe(4, params.given.rshift.then_some(params.rshift))
        .maybe(5, params.given.addend.then_some(params.addend));
    to.maybe(8, params.given.divisor.then_some(params.divisor));
    class(to, 3, params.baseclass);
    to.maybe(12, params.given.perturb.then_some(params.perturb));
    if !params.terms.is_empty() {
        ematch::encode(to, 11, &params.terms);
    }
    actions(to, &ROW, &op.actions, devices)?;
    to.maybe(2, params.mode.map(|mode| u32::from(mode == FlowMode::Hash)));
    Ok(())
}

fn decode(options: &Found<'_>) -> Option<FilterParams> {
    decode_params(options).map(FilterParams::Flow)
}

fn decode_params(from: &Found<'_>) -> Option<FlowParams> {
    let of = |number: u16| from.u32(number).unwrap_or(0);
    Some(FlowParams {
        mode: Some(if of(2) == 0 { FlowMode::Map } else { FlowMode::Hash }),
        keys: FlowKeySet(of(1)),
        mask: from.u32(6).unwrap_or(u32::MAX),
        xor: of(7),
        rshift: of(4),
        addend: of(5),
        divisor: of(8),
        baseclass: from.u32(3).map(Handle),
        perturb: of(12),
        terms: ematch::decode(&from.nest(11))?,
        given: FlowOptions::default(),
    })
}

//! police: a structure of its own, older than the others.

use super::super::rate;
use super::head::control;
use tidegate_policy::{Act, Action, Control, Police, RateSpec};
use tidegate_sys::attribute::{Attributes, words};

const RESULT: u16 = 5;

/// A filter's policer without `action` before it.
pub(crate) fn policer(to: &mut Attributes, at: u16, action: &Action) -> Result<(), super::super::message::Unsent> {
    let mut inner = Attributes::default();
    if let Act::Police(police) = &action.act {
        options(&mut inner, action.index, police);
    }
    to.nest(at, &inner);
    Ok(())
}

/// What is said of a policer.
pub(super) fn options(to: &mut Attributes, index: u32, police: &Police) {
    // As long as the table reaches, or without any bound: the kernel takes that where nothing is said.
    let usual = if police.rate.is_some() { rate::LAST_ENTRY << rate::CELL_LOG } else { u32::MAX };
    let mtu = if police.mtu == usual { 0 } else { police.mtu };
    let cell_log = if mtu == 0 { rate::CELL_LOG } else { rate::cell_log(mtu) };
    let spec = |spec: &Option<RateSpec>| spec.as_ref().map_or(rate::NO_RATE, |spec| rate::spec(spec, cell_log));
    let mut bytes = words(&[index, control(police.exceed), 0, police.burst.0, mtu]);
    bytes.extend(spec(&police.rate));
    bytes.extend(spec(&police.peak));
    bytes.extend(words(&[0, 0, 0]));
    to.payload(1, &bytes);
    for (number, wide, spec) in [(2, 8, &police.rate), (3, 9, &police.peak)] {
        if let Some(spec) = spec {
            rate::table(to, number, spec, cell_log);
            rate::wide(to, wide, spec);
        }
    }
    to.maybe(4, police.average.map(|rate| u32::try_from(rate.0).unwrap_or(rate::FULL)));
    to.maybe(RESULT, police.conform.filter(|conform| *conform != Control::Pass).map(control));
    if police.packets > 0 {
        to.u64(10, police.packets).u64(11, police.packets_burst);
    }
}

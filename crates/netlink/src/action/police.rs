//! police: a structure of its own, older than the others.

use super::base::{ActionAttributes, Head, Row, control};
use crate::decode::message::numbers;
use crate::decode::rate::{SPEC, rate as told_rate};
use crate::encode::message::{Devices, Unsent};
use crate::encode::rate;
use tidegate_netlink_wire::attribute::{Attributes, Found, words};
use tidegate_packet::Rate;
use tidegate_policy::{Act, Action, Control, Police, RateSpec, Ticks};

/// `police`.
pub(super) const ROW: Row = Row { name: "police", structure: 1, ages: 6, encode, decode };

const RESULT: u16 = 5;

/// A filter's policer without `action` before it.
pub(crate) fn policer(to: &mut Attributes, at: u16, action: &Action) -> Result<(), Unsent> {
    let mut inner = Attributes::default();
    if let Act::Police(police) = &action.act {
        options(&mut inner, action.index, police);
    }
    to.nest(at, &inner);
    Ok(())
}

/// The options of a policer.
fn options(to: &mut Attributes, index: u32, police: &Police) {
    // As long as the table reaches, or without any bound: the kernel takes that where nothing is reported.
    let usual = if police.rate.is_some() { rate::LAST_ENTRY << rate::CELL_LOG } else { u32::MAX };
    let mtu = if police.mtu == usual { 0 } else { police.mtu };
    let cell_log = if mtu == 0 { rate::CELL_LOG } else { rate::cell_log(mtu) };
    let spec =
        |spec: &Option<RateSpec>| spec.as_ref().map_or(rate::NO_RATE, |spec| rate::spec(spec, cell_log));
    let mut bytes = words(&[index, police.exceed.number() as u32, 0, police.burst.0, mtu]);
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
    to.maybe(
        RESULT,
        police.conform.filter(|conform| *conform != Control::Pass).map(|conform| conform.number() as u32),
    );
    if police.packets > 0 {
        to.u64(10, police.packets).u64(11, police.packets_burst);
    }
}

fn encode(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    if let Act::Police(police) = &action.act {
        options(to, action.index, police);
    }
    Ok(())
}

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    decode_police(dump.options).map(|(head, police)| (head, Act::Police(police)))
}

/// Bytes of a policer's numbers before its rates (`tc_police`).
const POLICE_RATES: usize = 20;

fn decode_police(options: &Found<'_>) -> Option<(Head, Police)> {
    let bytes = options.get(1)?;
    let words = numbers(bytes);
    let ends = numbers(bytes.get(POLICE_RATES + 2 * SPEC..)?);
    let of = |at: usize, wide: Option<u64>| told_rate(bytes.get(at..)?, wide).filter(|spec| spec.rate.0 > 0);
    let exceed = control(*words.get(1)?);
    let head = Head { index: *words.first()?, control: exceed, refs: *ends.first()?, binds: *ends.get(1)? };
    let police = Police {
        rate: of(POLICE_RATES, options.u64(8)),
        burst: Ticks(*words.get(3)?),
        mtu: *words.get(4)?,
        peak: of(POLICE_RATES + SPEC, options.u64(9)),
        average: options.u32(4).map(|rate| Rate(rate.into())),
        packets: options.u64(10).unwrap_or(0),
        packets_burst: options.u64(11).unwrap_or(0),
        exceed,
        conform: options.u32(5).map(control),
    };
    Some((head, police))
}

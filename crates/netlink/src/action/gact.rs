//! gact.

use super::base::{ActionAttributes, Head, Row, control, general};
use crate::decode::message::numbers;
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_policy::{Act, Action, Gact, RandomGact};

/// `gact`.
pub(super) const ROW: Row = Row { name: "gact", structure: 2, ages: 1, encode, decode };

fn encode(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Gact(act), index) = (&action.act, action.index) else { return Ok(()) };
    to.payload(2, &general(index, act.control));
    if let Some(random) = act.random {
        let mut bytes = (if random.drawn { 1_u16 } else { 2 }).to_ne_bytes().to_vec();
        bytes.extend(random.one_in.to_ne_bytes());
        bytes.extend(words(&[random.control.number() as u32]));
        to.payload(3, &bytes);
    }
    Ok(())
}

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, _) = dump.begun()?;
    let control = head.control;
    let random = dump.options.get(3).and_then(random);
    Some((head, Act::Gact(Gact { control, random })))
}

fn random(bytes: &[u8]) -> Option<RandomGact> {
    let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let decision = *numbers(bytes.get(4..)?).first()?;
    match half(0)? {
        0 => None,
        how => Some(RandomGact { drawn: how == 1, control: control(decision), one_in: half(2)? }),
    }
}

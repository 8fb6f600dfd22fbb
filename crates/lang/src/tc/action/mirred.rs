//! `mirred egress|ingress redirect|mirror dev X`.

use super::control_after;
use crate::tc::words::Words;
use crate::{Env, Refusal};
use tidegate_policy::{Act, Action, Control, Mirred};

pub(super) fn parse(words: &mut Words<'_>, env: &Env) -> Result<Action, Refusal> {
    const FORM: &str = "Packets are led to another device so: action mirred egress redirect dev ifb0";
    let bad = |line: String, value: String, place: usize| {
        Refusal::new(1, line)
            .then(&format!("bad action parsing\nparse_action: bad value ({value}:mirred)!\nIllegal \"action\"\n"))
            .at(place)
            .remedy(FORM)
    };
    let direction = words.need()?;
    let arrives = match direction {
        "egress" => false,
        "ingress" => true,
        _ => {
            let left = words.left() + 2;
            return Err(bad(format!("mirred option not supported {direction}"), left.to_string(), words.last()));
        }
    };
    let copy = match words.need()? {
        "redirect" => false,
        "mirror" => true,
        _ => return Err(Refusal::incomplete().at(words.last()).remedy(FORM)),
    };
    let mut index = 0;
    // The decision may stand before the device; what redirects steals the packet whatever is said.
    let mut said = control_after(words)?;
    if words.peek() == Some("index") {
        words.skip();
        index = super::number("index", words)?;
    }
    if words.need()? != "dev" {
        return Err(Refusal::incomplete().at(words.last()).remedy(FORM));
    }
    let name = words.need()?;
    if !env.has(name) {
        let left = words.left() + 5;
        return Err(bad(format!("Cannot find device \"{name}\""), left.to_string(), words.last())
            .remedy("Packets can only be led to a device that is there; make it first: ip link add NAME type ifb."));
    }
    if copy && said.is_none() {
        said = control_after(words)?;
    }
    let control = if copy { said.unwrap_or(Control::Pipe) } else { Control::Stolen };
    let mirred = Mirred { to: name.into(), device: Act::NOWHERE, copy, arrives, control };
    Ok(Action { index, ..Act::Mirred(mirred).into() })
}

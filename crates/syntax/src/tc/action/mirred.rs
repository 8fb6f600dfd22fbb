//! `mirred egress|ingress redirect|mirror dev X`.

use super::row::{Failed, Row, control_after, control_name, type_of};
use crate::json::Json;
use crate::number::u32_in;
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, Mirred};

/// `mirred`.
pub(super) const ROW: Row = Row {
    name: "mirred",
    form: "mirred egress|ingress redirect|mirror [index N] dev NAME",
    parse,
    show,
    lead: Some("\n\t"),
};

const FORM: &str = "Packets are redirected to another device so: action mirred egress redirect dev ifb0";

/// The words before the device.
#[derive(Default)]
struct MirredWords {
    arrives: Option<bool>,
    copy: Option<bool>,
    index: u32,
}

fn parse(words: &mut Words<'_>, env: &Env) -> Result<Action, Failed> {
    // tc counts the words from the action's name on.
    let left = words.left() + 1;
    let bad = |line: String, place: usize| {
        Refusal::new(1, line)
            .then(&format!(
                "bad action parsing\nparse_action: bad value ({left}:mirred)!\nIllegal \"action\"\n"
            ))
            .at(place)
            .remedy(FORM)
    };
    if words.begins("index") && !words.begins("ingress") {
        words.skip();
        let index = super::row::number("index", words)?;
        return Ok(Action { index, ..Act::Mirred(Mirred::default()).into() });
    }
    let mut given = MirredWords::default();
    given.read(words).map_err(|(line, place)| bad(line, place))?;
    let (Some(arrives), Some(copy), true) = (given.arrives, given.copy, words.begins("dev")) else {
        return Err(Refusal::incomplete().at(words.last()).remedy(FORM).into());
    };
    words.skip();
    let name = words.need()?;
    if !env.has(name) {
        return Err(bad(format!("Cannot find device \"{name}\""), words.last())
            .remedy(
                "Packets can only be redirected to a device that exists; make it first: ip link add NAME \
            type ifb.",
            )
            .into());
    }
    // A redirect always steals the packet, whatever control is given.
    let control = if copy { control_after(words)?.unwrap_or(Control::Pipe) } else { Control::Stolen };
    let mut index = given.index;
    if words.begins("index") {
        words.skip();
        let text = words.need()?;
        index = u32_in(text, 10).ok_or_else(|| bad("mirred: Illegal \"index\"".into(), words.last()))?;
    }
    let mirred = Mirred { to: name.into(), device: Act::NOWHERE, copy, arrives, control };
    Ok(Action { index, ..Act::Mirred(mirred).into() })
}

impl MirredWords {
    /// Reads up to the device; tc goes over words that it does not know. An error is tc's line and the place
    /// of the word.
    fn read(&mut self, words: &mut Words<'_>) -> Result<(), (String, usize)> {
        while let Some(word) = words.peek() {
            let place = words.place();
            match word {
                _ if begins(word, "egress") => set(&mut self.arrives, false, "egress", "ingress", place)?,
                _ if begins(word, "ingress") => set(&mut self.arrives, true, "ingress", "egress", place)?,
                _ if self.arrives.is_none() => {
                    return Err((format!("mirred option not supported {word}"), place));
                }
                _ if begins(word, "index") => {
                    words.skip();
                    let text = words.peek().unwrap_or_default();
                    self.index = u32_in(text, 10).ok_or(("Illegal \"index\"".to_owned(), words.place()))?;
                }
                _ if begins(word, "redirect") => set(&mut self.copy, false, "mirror", "redir", place)?,
                _ if begins(word, "mirror") => set(&mut self.copy, true, "mirror", "redir", place)?,
                _ if self.copy.is_some() && begins(word, "dev") => return Ok(()),
                _ => {}
            }
            words.skip();
        }
        Ok(())
    }
}

/// Chooses one of two words that exclude each other.
fn set(
    slot: &mut Option<bool>,
    value: bool,
    name: &str,
    other: &str,
    place: usize,
) -> Result<(), (String, usize)> {
    match slot.replace(value) {
        Some(before) if before != value => Err((format!("Can't have both {name} and {other}"), place)),
        _ => Ok(()),
    }
}

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Mirred(mirred) = &dump.action.act else { return };
    let (what, lower) = if mirred.copy { ("Mirror", "mirror") } else { ("Redirect", "redirect") };
    let (way, lower_way) = if mirred.arrives { ("Ingress", "ingress") } else { ("Egress", "egress") };
    entry.say(&format!("mirred ({way} {what} to device {}) {}", mirred.to, control_name(mirred.control)));
    entry.member("mirred_action", Json::text(lower));
    entry.member("direction", Json::text(lower_way));
    entry.member("to_dev", Json::text(mirred.to.clone()));
    entry.member("control_action", type_of(mirred.control));
}

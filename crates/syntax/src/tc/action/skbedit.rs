//! `skbedit …`.

use super::{Failed, control_after, own_index};
use crate::Refusal;
use crate::number::{u16_in, u32_in};
use crate::tc::words::{Words, begins};
use crate::units::parse_classid;
use tidegate_policy::{Act, Action, Control, PacketType, Skbedit};

pub(super) fn parse(words: &mut Words<'_>) -> Result<Action, Failed> {
    const FORM: &str = "skbedit takes mark N[/MASK], priority CLASS, queue_mapping N, ptype host|otherhost|broadcast|multicast, inheritdsfield.";
    let mut edit = Skbedit::default();
    if words.peek().is_none() {
        return Err(Refusal::incomplete().at(words.place()).remedy(FORM).into());
    }
    // In the order in which tc looks for what a word begins.
    const NAMES: [&str; 5] = ["queue_mapping", "priority", "mark", "ptype", "inheritdsfield"];
    while let Some(word) = words.peek() {
        match NAMES.into_iter().find(|name| begins(word, name)).unwrap_or_default() {
            "mark" => {
                words.skip();
                let text = words.need()?;
                let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
                let value = u32_in(value, 0).ok_or_else(|| illegal("mark", text))?;
                let mask = match mask {
                    Some(mask) => Some(u32_in(mask, 0).ok_or_else(|| illegal("mask", text))?),
                    // The mask of a mark said before stays.
                    None => edit.mark.and_then(|(_, mask)| mask),
                };
                edit.mark = Some((value, mask));
            }
            "priority" => {
                words.skip();
                let text = words.need()?;
                edit.priority = Some(parse_classid(text).ok_or_else(|| illegal("priority", text))?.0);
            }
            "queue_mapping" => {
                words.skip();
                let text = words.need()?;
                edit.queue = Some(u16_in(text, 10).ok_or_else(|| illegal("queue_mapping", text))?);
            }
            "ptype" => {
                words.skip();
                let text = words.need()?;
                let all = [PacketType::Host, PacketType::Broadcast, PacketType::Multicast, PacketType::OtherHost];
                let found = all.into_iter().find(|known| known.name() == text);
                edit.packet_type = Some(found.ok_or_else(|| illegal(&format!("ptype ({text})"), text))?);
            }
            "inheritdsfield" => {
                words.skip();
                edit.inherit_dsfield = true;
            }
            _ => break,
        }
    }
    if edit == Skbedit::default() && !words.begins("index") {
        return Err(Failed::say("", FORM));
    }
    edit.control = control_after(words)?.unwrap_or(Control::Pipe);
    let mut action = Action::from(Act::Skbedit(edit));
    action.index = own_index(words, |_| "skbedit: Illegal \"index\"".into())?;
    Ok(action)
}

fn illegal(name: &str, text: &str) -> Failed {
    Failed::say(format!("Illegal {name}"), format!("\"{text}\" is not a value for {name}."))
}

//! `skbedit …`.

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::json::Json;
use crate::number::{u16_in, u32_in};
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::units::parse_classid;
use crate::{Env, Refusal};
use tidegate_packet::Handle;
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, PacketType, Skbedit};

/// `skbedit`.
pub(super) const ROW: Row = Row {
    name: "skbedit",
    form: "skbedit [queue_mapping N] [priority CLASS] [mark N[/MASK]] [ptype TYPE] [inheritdsfield] \
    [CONTROL] [index N]",
    parse,
    show,
    lead: Some("\n\t "),
};

fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    const FORM: &str = "skbedit takes mark N[/MASK], priority CLASS, queue_mapping N, ptype \
    host|otherhost|broadcast|multicast, inheritdsfield.";
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
                let (value, mask) =
                    text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
                let value = u32_in(value, 0).ok_or_else(|| illegal("mark", text))?;
                let mask = match mask {
                    Some(mask) => Some(u32_in(mask, 0).ok_or_else(|| illegal("mask", text))?),
                    // The mask of an earlier `mark` stays.
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
                let all =
                    [PacketType::Host, PacketType::Broadcast, PacketType::Multicast, PacketType::OtherHost];
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

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Skbedit(edit) = &dump.action.act else { return };
    entry.say("skbedit ");
    if let Some(queue) = edit.queue {
        entry.number("queue_mapping", queue, &format!("queue_mapping {queue}"));
    }
    if let Some(priority) = edit.priority {
        let class = Handle(priority).to_string();
        entry.say(&format!(" priority {class}"));
        entry.member("priority", Json::text(class));
    }
    if let Some((mark, mask)) = edit.mark {
        entry.number("mark", mark, &format!(" mark {mark}"));
        if let Some(mask) = mask {
            entry.say(&format!("/{mask:#x}"));
            entry.member("mask", Json::text(format!("{mask:x}")));
        }
    }
    if let Some(kind) = edit.packet_type {
        entry.say(&format!(" ptype {}", kind.name()));
        entry.member("ptype", Json::text(kind.name()));
    }
    if edit.inherit_dsfield {
        entry.say(" inheritdsfield");
        entry.member("inheritdsfield", Json::Null);
    }
    entry.say(&format!(" {}", control_name(edit.control)));
    entry.member("control_action", type_of(edit.control));
}

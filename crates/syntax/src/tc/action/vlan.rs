//! `vlan pop|push|modify …`.

use super::row::{Failed, Row, control_after, control_name, own_index, type_of};
use crate::json::Json;
use crate::number::{u8_in, u16_in};
use crate::tc::build::later;
use crate::tc::command_line::ShowFlags;
use crate::tc::protocols::parse_protocol;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, Control, Vlan, VlanHow, VlanTag};

/// `vlan`.
pub(super) const ROW: Row = Row {
    name: "vlan",
    form: "vlan pop | push id N [protocol 802.1Q|802.1ad] [priority N] | modify … [CONTROL] [index N]",
    parse,
    show,
    lead: Some("\n\t "),
};

const FORM: &str =
    "Tags are handled so: vlan pop, vlan push id 5 [protocol 802.1Q|802.1ad] [priority N], vlan modify id 5.";

fn parse(words: &mut Words<'_>, _: &Env) -> Result<Action, Failed> {
    let (mut verb, mut id, mut protocol, mut priority) = (None, None, None, None);
    if words.peek().is_none() {
        words.need()?;
    }
    while let Some(word) = words.peek() {
        let name = ["pop", "push", "modify", "id", "protocol", "priority"]
            .into_iter()
            .find(|name| begins(word, name));
        let ethernet = ["pop_eth", "push_eth"].contains(&word);
        let Some(name) = name.filter(|_| !ethernet).or(ethernet.then_some("ethernet")) else { break };
        words.skip();
        match name {
            "ethernet" => {
                return Err(later("action", word, words.last())
                    .remedy("Not built: packets here have a link header or are of a device without one.")
                    .into());
            }
            "pop" | "push" | "modify" if verb.is_some() => {
                return Err(Failed::say(format!("unexpected \"{word}\" - action already specified"), FORM));
            }
            "pop" | "push" | "modify" => verb = Some(name),
            _ if !matches!(verb, Some("push" | "modify")) => {
                return Err(Refusal::wrong(word, "only valid for push/modify")
                    .at(words.last())
                    .remedy(FORM)
                    .into());
            }
            "id" => id = Some(number(words, "id is invalid", |text| u16_in(text, 0))?),
            "priority" => {
                priority = Some(number(words, "prio is invalid", |text| u8_in(text, 0).filter(|it| *it < 8))?)
            }
            _ => protocol = Some(tag_protocol(words)?),
        }
    }
    let control = control_after(words)?.unwrap_or(Control::Pipe);
    let index = own_index(words, |_| "vlan: Illegal \"index\"".into())?;
    let tag = |verb: &str| match id {
        Some(id) => Ok(VlanTag { id, protocol: protocol.unwrap_or(VlanTag::DOT1Q), priority }),
        None => Err(Failed::say(format!("id needs to be set for {verb}"), FORM)),
    };
    let how = match verb {
        Some("push") => {
            let tag = tag("push")?;
            VlanHow::Push(VlanTag { priority: Some(tag.priority.unwrap_or(0)), ..tag })
        }
        Some("modify") => VlanHow::Modify(tag("modify")?),
        Some(_) => VlanHow::Pop,
        // A number alone leads to the action that has it; nothing can be made of it.
        None => VlanHow::Modify(VlanTag { id: u16::MAX, protocol: 0, priority: None }),
    };
    Ok(Action { index, ..Act::Vlan(Vlan { how, control }).into() })
}

fn number<T>(words: &mut Words<'_>, why: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Failed> {
    let text = words.need()?;
    Ok(read(text).ok_or_else(|| Refusal::wrong(text, why).at(words.last()).remedy(FORM))?)
}

fn tag_protocol(words: &mut Words<'_>) -> Result<u16, Failed> {
    let text = words.need()?;
    let known = parse_protocol(text);
    let known =
        known.ok_or_else(|| Refusal::wrong(text, "protocol is invalid").at(words.last()).remedy(FORM))?;
    match known {
        VlanTag::DOT1Q | VlanTag::DOT1AD => Ok(known),
        _ => Err(Failed::say("protocol not supported", FORM)),
    }
}

fn show(dump: &ActionDump, _: &ShowFlags, entry: &mut Entry) {
    let Act::Vlan(vlan) = &dump.action.act else { return };
    let (verb, tag) = match vlan.how {
        VlanHow::Pop => ("pop", None),
        VlanHow::Push(tag) => ("push", Some(tag)),
        VlanHow::Modify(tag) => ("modify", Some(tag)),
    };
    entry.say(&format!("vlan  {verb}"));
    entry.member("vlan_action", Json::text(verb));
    if let Some(tag) = tag {
        let protocol = if tag.protocol == VlanTag::DOT1AD { "802.1ad" } else { "802.1Q" };
        entry.number("id", tag.id, &format!(" id {}", tag.id));
        entry.say(&format!(" protocol {protocol}"));
        entry.member("protocol", Json::text(protocol));
        if let Some(priority) = tag.priority {
            entry.number("priority", priority, &format!(" priority {priority}"));
        }
    }
    entry.say(&format!(" {}", control_name(vlan.control)));
    entry.member("control_action", type_of(vlan.control));
}

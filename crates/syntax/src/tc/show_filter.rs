//! `tc filter show`.

use super::filter::{EGRESS_FILTERS, INGRESS_FILTERS, PROTOCOLS};
use super::show::{Entry, ended};
use super::{ShowFlags, ShowWhat};
use super::{action, basic, ematch, flower};
use crate::json::{self, Json};
use tidegate_packet::Handle;
use tidegate_policy::dump::{ActionDump, FilterDump, FilterEntry, U32Hits};
use tidegate_policy::{FilterParams, FlowKeySet, FlowMode, FlowParams, FwParams, Indev, MatchallParams, U32Params};

/// The listing of filters, in the order given. Give those of the parent that `what` names; without one, those of the device's root
/// qdisc. Preference, protocol and chain are selected here; without a device the listing is empty.
pub fn show_filters(dumps: &[FilterDump], what: &ShowWhat, flags: &ShowFlags) -> String {
    let wanted = dumps.iter().filter(|dump| {
        let here = what.dev.as_deref() == Some(dump.dev.as_str()) || what.block != 0 && what.block == dump.block;
        here && what.pref.is_none_or(|pref| pref == 0 || pref == dump.pref)
            && what.protocol.is_none_or(|protocol| protocol == dump.protocol)
            && what.chain.is_none_or(|chain| chain == dump.chain)
    });
    let entries: Vec<Entry> = wanted.map(|dump| entry(dump, what, flags)).collect();
    if flags.json {
        if what.dev.is_none() && what.block == 0 {
            return String::new();
        }
        let items: Vec<Json> = entries.into_iter().map(|entry| Json::Object(entry.members)).collect();
        return json::list(&items, flags.pretty);
    }
    ended(entries.into_iter().map(|entry| entry.text).collect(), flags)
}

fn entry(dump: &FilterDump, what: &ShowWhat, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::new();
    entry.say("filter ");
    // The parent that was asked for is known.
    if dump.block != 0 {
        if what.block == 0 {
            entry.number("block", dump.block, &format!("block {} ", dump.block));
        }
    } else if what.parent != Some(dump.parent) {
        match dump.parent {
            Handle::ROOT => {
                entry.say("root ");
                entry.member("root", Json::Bool(true));
            }
            INGRESS_FILTERS => {
                entry.say("ingress ");
                entry.member("ingress", Json::Bool(true));
            }
            EGRESS_FILTERS => {
                entry.say("egress ");
                entry.member("egress", Json::Bool(true));
            }
            parent => {
                entry.say(&format!("parent {parent} "));
                entry.member("parent", Json::text(parent.to_string()));
            }
        }
    }
    if what.protocol.is_none() {
        let name = if flags.numeric { format!("[{}]", dump.protocol) } else { protocol(dump.protocol) };
        entry.say(&format!("protocol {name} "));
        entry.member("protocol", Json::text(name));
    }
    if what.pref.is_none_or(|pref| pref == 0) {
        entry.number("pref", dump.pref, &format!("pref {} ", dump.pref));
    }
    entry.say(&format!("{} ", dump.kind));
    entry.member("kind", Json::text(dump.kind));
    if what.chain.is_none() {
        entry.number("chain", dump.chain, &format!("chain {} ", dump.chain));
    }
    if let Some((text, options)) = options(dump, flags) {
        entry.say(&text);
        entry.member("options", options);
    }
    entry.say("\n");
    entry
}

pub(super) fn protocol(number: u16) -> String {
    match PROTOCOLS.iter().find(|(_, known)| *known == number) {
        Some((name, _)) => (*name).into(),
        None => format!("[{number}]"),
    }
}

fn options(dump: &FilterDump, flags: &ShowFlags) -> Option<(String, Json)> {
    match &dump.entry {
        FilterEntry::Heading => None,
        FilterEntry::U32Table { table, divisor } => {
            let mut entry = Entry::new();
            let id = format!("{table:x}:");
            let raw = if flags.raw { format!("[{:08x}]", table << 20) } else { String::new() };
            entry.say(&format!("fh {id}{raw} ht divisor {divisor} "));
            entry.member("fh", Json::text(id));
            entry.member("ht_divisor", Json::number(divisor));
            Some((entry.text, Json::Object(entry.members)))
        }
        FilterEntry::Filter { handle, params, hits, actions } => match params {
            FilterParams::Fw(params) => Some(with_actions(fw(*handle, params, actions)?, actions, flags)),
            FilterParams::Flow(params) => Some(with_actions(flow(*handle, params), actions, flags)),
            FilterParams::Basic(params) => {
                let mut entry = basic::show(*handle, params);
                if old_style(actions) {
                    entry.say("\n");
                }
                action::show(actions, flags, &mut entry);
                Some((entry.text, Json::Object(entry.members)))
            }
            FilterParams::Flower(params) => {
                let mut entry = flower::show(*handle, params);
                action::show(actions, flags, &mut entry);
                Some((entry.text, Json::Object(entry.members)))
            }
            FilterParams::Matchall(params) => Some(matchall(*handle, params, hits.as_ref(), actions, flags)),
            FilterParams::U32(params) => {
                let entry = u32(*handle, params, hits.as_ref(), actions, dump.protocol, flags);
                Some(u32_with_actions(entry, params, actions, flags))
            }
        },
    }
}

/// Is it a policer that was written without `action`?
fn old_style(actions: &[ActionDump]) -> bool {
    actions.iter().any(|action| action.action.old_style)
}

/// The device that packets must have come in by, if it is still there.
fn came_in(indev: Option<&Indev>) -> Option<&str> {
    indev.map(|indev| indev.name.as_str()).filter(|name| !name.is_empty())
}

/// A filter's options with the actions after them, as text and as an object.
fn with_actions(mut entry: Entry, actions: &[ActionDump], flags: &ShowFlags) -> (String, Json) {
    if !actions.is_empty() && !old_style(actions) {
        entry.say("\n");
    }
    action::show(actions, flags, &mut entry);
    (entry.text, Json::Object(entry.members))
}

/// A policer without `action` stands before the device that packets must have come in by, its counters and all other actions behind.
fn u32_with_actions(mut entry: Entry, params: &U32Params, actions: &[ActionDump], flags: &ShowFlags) -> (String, Json) {
    let old = actions.iter().find(|_| old_style(actions));
    if let Some(policer) = old {
        entry.say("\n");
        action::old_policer(policer, flags, &mut entry);
    }
    if let Some(name) = came_in(params.indev.as_ref()) {
        entry.say(&format!("\n  input dev {name}\n"));
        entry.member("input_dev", Json::text(name));
    }
    match old {
        Some(policer) => action::old_counts(policer, flags, &mut entry),
        None => action::show(actions, flags, &mut entry),
    }
    (entry.text, Json::Object(entry.members))
}

fn matchall(
    handle: u32,
    params: &MatchallParams,
    hits: Option<&U32Hits>,
    actions: &[ActionDump],
    flags: &ShowFlags,
) -> (String, Json) {
    let mut entry = Entry::new();
    entry.number("handle", handle, &format!("handle {handle:#x} "));
    if let Some(class) = params.classid.filter(|class| !class.is_none()) {
        entry.say(&format!("flowid {class} "));
        entry.member("flowid", Json::text(class.to_string()));
    }
    entry.say("\n  not_in_hw");
    entry.member("not_in_hw", Json::Bool(true));
    if let Some(hits) = hits.filter(|_| flags.stats) {
        entry.number("rule_hit", hits.asked, &format!(" (rule hit {})", hits.asked));
    }
    action::show(actions, flags, &mut entry);
    (entry.text, Json::Object(entry.members))
}

/// The kernel tells nothing of a filter that names no class and does nothing.
fn fw(handle: u32, params: &FwParams, actions: &[ActionDump]) -> Option<Entry> {
    let class = params.classid.filter(|class| !class.is_none());
    if class.is_none() && actions.is_empty() && came_in(params.indev.as_ref()).is_none() {
        return None;
    }
    let mut entry = Entry::new();
    entry.say(&format!("handle {handle:#x}"));
    entry.member("handle", Json::text(format!("{handle:#x}")));
    if let Some(mask) = params.mask.filter(|mask| *mask != u32::MAX) {
        entry.say(&format!("/{mask:#x}"));
        entry.member("mask", Json::text(format!("{mask:#x}")));
    }
    entry.say(" ");
    if let Some(class) = class {
        entry.word("classid", &class.to_string());
    }
    if let Some(name) = came_in(params.indev.as_ref()) {
        entry.say(&format!("input dev {name} "));
        entry.member("input_dev", Json::text(name));
    }
    Some(entry)
}

fn flow(handle: u32, params: &FlowParams) -> Entry {
    let mut entry = Entry::new();
    entry.word("handle", &format!("{handle:#x}"));
    let mode = if params.mode == Some(FlowMode::Map) { "map" } else { "hash" };
    entry.say(&format!("{mode} "));
    entry.member("mode", Json::text(mode));
    let keys: Vec<&str> =
        (0..).zip(FlowKeySet::NAMES).filter(|(bit, _)| params.keys.has(*bit)).map(|(_, name)| name).collect();
    entry.say(&format!("keys {} ", keys.join(",")));
    entry.member("keys", Json::List(keys.into_iter().map(Json::text).collect()));
    if params.mask != u32::MAX {
        entry.word("and", &format!("{:#010x}", params.mask));
    }
    // Bits that the mask takes away and that are turned over are set; the others are turned over.
    for (word, bits) in [("xor", params.mask & params.xor), ("or", !params.mask & params.xor)] {
        if bits != 0 {
            entry.word(word, &format!("{bits:#010x}"));
        }
    }
    if params.rshift != 0 {
        entry.number("rshift", params.rshift, &format!("rshift {} ", params.rshift));
    }
    if params.addend != 0 {
        entry.word("addend", &format!("{:#x}", params.addend));
    }
    if params.divisor != 0 {
        entry.number("divisor", params.divisor, &format!("divisor {} ", params.divisor));
    }
    if let Some(class) = params.baseclass {
        entry.word("baseclass", &class.to_string());
    }
    if params.perturb != 0 {
        entry.number("perturb", params.perturb, &format!("perturb {}sec ", params.perturb));
    }
    if !params.terms.is_empty() {
        let text = ematch::show(&params.terms, 2);
        entry.say(&format!("\n{text}"));
        entry.member("ematch", Json::text(text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    entry
}

/// `800::801`: table, bucket unless 0, node unless 0.
fn u32_handle(handle: u32) -> String {
    let (table, bucket, node) = (handle >> 20, handle >> 12 & 0xff, handle & 0xfff);
    let part = |number: u32| if number == 0 { String::new() } else { format!("{number:x}") };
    if bucket == 0 && node == 0 {
        return format!("{}:", part(table));
    }
    format!("{}:{}:{}", part(table), part(bucket), part(node))
}

fn u32(
    handle: u32,
    params: &U32Params,
    hits: Option<&U32Hits>,
    actions: &[ActionDump],
    protocol: u16,
    flags: &ShowFlags,
) -> Entry {
    let mut entry = Entry::new();
    let (id, table, bucket) = (u32_handle(handle), format!("{:x}", handle >> 20), format!("{:x}", handle >> 12 & 0xff));
    let raw = if flags.raw { format!("[{handle:08x}]") } else { String::new() };
    let order = handle & 0xfff;
    entry.say(&format!("fh {id}{raw} order {order} key ht {table} bkt {bucket} "));
    entry.member("fh", Json::text(id));
    entry.member("order", Json::number(order));
    entry.member("key_ht", Json::text(table));
    entry.member("bkt", Json::text(bucket));
    match params.classid {
        Some(class) if class.is_none() => {
            entry.say("terminal flowid ");
            entry.member("terminal", Json::Bool(true));
        }
        Some(class) => {
            entry.say(&format!("*flowid {class} "));
            entry.member("flowid", Json::text(class.to_string()));
        }
        None if !actions.is_empty() => entry.say("terminal flowid "),
        None => {}
    }
    if let Some(link) = params.link {
        entry.word("link", &format!("{link:x}:"));
    }
    entry.flag("not_in_hw", true);
    let counted = hits.filter(|_| flags.stats);
    if let Some(hits) = counted {
        entry.number("rule_hit", hits.asked, &format!("(rule hit {}", hits.asked));
        entry.number("success", hits.matched, &format!(" success {})", hits.matched));
    }
    if let Some((value, mask)) = params.mark {
        let matched = hits.map_or(0, |hits| hits.mark);
        entry.say(&format!("\n  mark {value:#06x} {mask:#06x} (success {matched})"));
        entry.member("fwmark_value", Json::text(format!("{value:#x}")));
        entry.member("fwmark_mask", Json::text(format!("{mask:#x}")));
        entry.member("fwmark_success", Json::number(matched));
    }
    let mut matches: Vec<Json> = Vec::new();
    for (index, key) in params.keys.iter().enumerate() {
        let next = if key.offset_mask != 0 { "nexthdr+" } else { "" };
        match named(key, protocol, flags) {
            Some(text) => entry.say(&text),
            None => entry.say(&format!("\n  match {:08x}/{:08x} at {next}{}", key.value, key.mask, key.offset)),
        }
        let mut members = vec![
            ("value", Json::text(format!("{:x}", key.value))),
            ("mask", Json::text(format!("{:x}", key.mask))),
            ("offmask", Json::text(next)),
            ("off", Json::number(key.offset)),
        ];
        if let Some(hits) = counted {
            let success = hits.keys.get(index).copied().unwrap_or(0);
            entry.say(&format!(" (success {success} ) "));
            members.push(("success", Json::number(success)));
        }
        matches.push(Json::Object(members));
    }
    // tc writes a member of the same name for each, which nobody can read back.
    match matches.len() {
        0 => {}
        1 => entry.member("match", matches.remove(0)),
        _ => entry.member("match", Json::List(matches)),
    }
    if params.link.is_some() || params.hash.is_some() {
        u32_leads(params, &mut entry);
    }
    entry
}

/// Where the next header begins, and which bucket of a linked table is asked.
fn u32_leads(params: &U32Params, entry: &mut Entry) {
    let U32Params { offset, hash, .. } = params;
    if offset.plus != 0 || offset.field.is_some() || offset.eat {
        entry.say("\n    offset ");
        if let Some(field) = offset.field {
            entry.say(&format!("{:04x}>>{} at {} ", field.mask, field.shift, field.at));
            entry.member("offset_mask", Json::text(format!("{:x}", field.mask)));
            entry.member("offset_shift", Json::number(field.shift));
            entry.member("offset_off", Json::number(field.at));
        }
        if offset.plus != 0 {
            entry.number("plus", offset.plus, &format!("plus {} ", offset.plus));
        }
        if offset.eat {
            entry.say(" eat ");
            entry.member("eat", Json::Bool(true));
        }
    }
    if let Some((mask, at)) = hash.filter(|(mask, _)| *mask != 0) {
        entry.say(&format!("\n    hash mask {mask:08x} at {at} "));
        entry.member("hash_mask", Json::text(format!("{mask:x}")));
        entry.member("hash_off", Json::number(at));
    }
}

/// `-p`: a comparison by name, where tc 6.1 has one for it.
fn named(key: &tidegate_policy::U32Key, protocol: u16, flags: &ShowFlags) -> Option<String> {
    if !flags.pretty || flags.json || protocol != 0x0800 || key.offset_mask != 0 {
        return None;
    }
    let octets = key.value.to_be_bytes().map(|octet| octet.to_string()).join(".");
    match (key.offset, key.mask) {
        (12 | 16, mask) if mask.leading_ones() + mask.trailing_zeros() == 32 || mask == 0 => {
            let name = if key.offset == 12 { "src" } else { "dst" };
            Some(format!("\n  match IP {name} {octets}/{}", mask.leading_ones()))
        }
        (8, 0x00ff_0000) => Some(format!("\n  match IP protocol {}", key.value >> 16)),
        (20, 0x0000_ffff) => Some(format!("match dport {}", key.value)),
        (20, 0xffff_0000) => Some(format!("match sport {}", key.value >> 16)),
        _ => None,
    }
}

//! `tc filter show`.

use super::command_line::{ShowFlags, ShowWhat};
use super::filter::kinds::row;
use super::filter::{EGRESS_FILTERS, INGRESS_FILTERS, ListedFilter};
use super::protocols::protocol;
use super::show::{Entry, ended};
use crate::json::{self, Json};
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry};

/// The listing of filters, in the order given. Give those of the parent that `what` names; without one, those
/// of the device's root qdisc. Preference, protocol and chain are selected here; without a device the listing
/// is empty.
pub fn show_filters(dumps: &[FilterDump], what: &ShowWhat, flags: &ShowFlags) -> String {
    let wanted = dumps.iter().filter(|dump| {
        let here =
            what.dev.as_deref() == Some(dump.dev.as_str()) || what.block != 0 && what.block == dump.block;
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

/// The listing with `-br`, and whether the kernel breaks it off. It has a short form of flower only: of
/// matchall it reports that there is a preference, and at any other kind it fails.
pub fn show_filters_brief(dumps: &[FilterDump], what: &ShowWhat, flags: &ShowFlags) -> (String, bool) {
    let wanted = |dump: &&FilterDump| what.pref.is_none_or(|pref| pref == 0 || pref == dump.pref);
    let fails = |dump: &FilterDump| {
        !matches!(dump.kind, "flower" | "matchall") && !matches!(dump.entry, FilterEntry::Heading)
    };
    let dumps: Vec<&FilterDump> = dumps.iter().filter(wanted).collect();
    let end = dumps.iter().position(|dump| fails(dump));
    let listed = dumps.iter().take(end.unwrap_or(dumps.len()));
    let listed = listed.filter(|dump| dump.kind == "flower" || matches!(dump.entry, FilterEntry::Heading));
    let listed: Vec<FilterDump> = listed.map(|dump| (*dump).clone()).collect();
    (show_filters(&listed, what, flags), end.is_some())
}

fn entry(dump: &FilterDump, what: &ShowWhat, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::new();
    entry.say("filter ");
    // The parent that was given is not repeated.
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
        FilterEntry::Filter { handle, params, hits, actions } => {
            let (handle, hits) = (*handle, hits.as_ref());
            let filter = ListedFilter { handle, params, hits, actions, protocol: dump.protocol, flags };
            let entry = (row(params.kind())?.show)(&filter)?;
            Some((entry.text, Json::Object(entry.members)))
        }
    }
}

//! Actions as they are listed.

use super::kinds::row;
use super::{connection, pedit};
use crate::json::{self, Json};
use crate::tc::command_line::{ShowActions, ShowFlags};
use crate::tc::show::{Entry, ended};
use tidegate_policy::Act;
use tidegate_policy::dump::ActionDump;

/// The lines of a filter's actions, and its member `actions`.
pub(in crate::tc) fn show(actions: &[ActionDump], flags: &ShowFlags, entry: &mut Entry) {
    if let [alone] = actions
        && alone.action.old_style
    {
        old_policer(alone, flags, entry);
        old_counts(alone, flags, entry);
        return;
    }
    if actions.is_empty() {
        return;
    }
    if flags.brief {
        brief(actions, flags, entry);
        return;
    }
    let mut list = Vec::new();
    for (order, action) in (1..).zip(actions) {
        let mut one = Entry::by(flags.tc);
        one.say(&format!("\n\taction order {order}: "));
        one.member("order", Json::number(order));
        body(action, flags, &mut one);
        entry.say(&one.text);
        list.push(Json::Object(one.members));
    }
    entry.member("actions", Json::List(list));
    if let Some(first) = actions.first().filter(|first| first.counted_old) {
        old_counts(first, flags, entry);
    }
}

/// The actions of a filter in short: the kernel sends no parameters; tc prints what it prints before them.
fn brief(actions: &[ActionDump], flags: &ShowFlags, entry: &mut Entry) {
    let mut list = Vec::new();
    for (order, dump) in (1..).zip(actions) {
        let mut one = Entry::by(flags.tc);
        one.say(&format!("\n\taction order {order}: "));
        one.member("order", Json::number(order));
        let kind = dump.action.act.kind();
        // tc looks at the parameters first.
        if !matches!(kind, "simple" | "skbmod" | "gate") {
            one.member(if kind == "nat" { "type" } else { "kind" }, Json::text(kind));
        }
        one.say(match kind {
            "gact" => "gact ",
            "mirred" => "mirred ",
            "skbedit" => "skbedit ",
            "connmark" => "connmark ",
            "ctinfo" => "ctinfo ",
            "ct" => "ct",
            "sample" => "sample ",
            "nat" => " nat ",
            "pedit" => " pedit ",
            "csum" => "csum ",
            "vlan" => "vlan ",
            "mpls" => "mpls ",
            "tunnel_key" => "tunnel_key ",
            _ => "",
        });
        let mut more = Entry::by(flags.tc);
        if flags.stats {
            counts(dump, &mut more);
        }
        cookie(dump, &mut more);
        // What follows begins on the same line, and ends it.
        if let Some(text) = more.text.strip_prefix('\n') {
            one.say(&format!("{text}\n"));
        }
        one.members.extend(more.members);
        entry.say(&one.text);
        list.push(Json::Object(one.members));
    }
    entry.member("actions", Json::List(list));
}

/// The listing of some of the machine's actions by themselves.
pub fn show_actions(dumps: &[ActionDump], what: &ShowActions, flags: &ShowFlags) -> String {
    // Actions that are requested by index are counted from 1; tc takes their count from an attribute that the
    // kernel leaves out.
    let (total, first) = match what {
        ShowActions::Kind(_) => (dumps.len(), 0),
        ShowActions::Numbered(_) => (0, 1),
    };
    if matches!(what, ShowActions::Kind(_)) && dumps.is_empty() {
        return if flags.json { json::list(&[], flags.pretty) } else { String::new() };
    }
    let entries: Vec<Entry> = (first..).zip(dumps).map(|(order, dump)| alone(order, dump, flags)).collect();
    if flags.json {
        let actions = entries.into_iter().map(|entry| Json::Object(entry.members)).collect();
        let items = [vec![("total acts", Json::number(total))], vec![("actions", Json::List(actions))]];
        return json::list(&items.map(Json::Object), flags.pretty);
    }
    let lines: String = entries.into_iter().map(|entry| entry.text).collect();
    ended(format!("total acts {total}\n{lines}"), flags)
}

/// One action: unlike in a filter's list, `not_in_hw` is shown for each.
fn alone(order: u32, dump: &ActionDump, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::by(flags.tc);
    entry.say(&format!("\n\taction order {order}: "));
    entry.member("order", Json::number(order));
    what(dump, flags, &mut entry);
    entry.say("\n");
    if dump.action.no_percpu {
        entry.say("\tno_percpu");
        entry.member("no_percpu", Json::Bool(true));
    }
    let who = if dump.action.only.is_some() { "skip_hw" } else { "not_in_hw" };
    entry.say(&format!("\t{who}\n"));
    entry.member(who, Json::Bool(true));
    if let Some(card) = card_counts(dump) {
        entry.say(&format!("\thw_stats {card}\n"));
        entry.member("hw_stats", Json::List(vec![Json::text(card)]));
    }
    entry
}

/// How cards are to count for it. For a policer that was made without `action`, they need not.
fn card_counts(dump: &ActionDump) -> Option<&'static str> {
    dump.action.card.name().or(dump.made_old.then_some("disabled"))
}

/// What follows an action's place in the list of a filter.
fn body(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    what(dump, flags, entry);
    if dump.action.no_percpu {
        entry.say("\n\tno_percpu");
        entry.member("no_percpu", Json::Bool(true));
    }
    if let Some(card) = dump.action.card.name() {
        entry.say(&format!("\n\thw_stats {card}"));
        entry.member("hw_stats", Json::List(vec![Json::text(card)]));
    }
    entry.say("\n");
}

/// What it does and what it counted, without an end of line.
fn what(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    // tc calls it otherwise for one kind, and leaves it out for another.
    let kind = dump.action.act.kind();
    match dump.action.act {
        Act::Gate(_) => {}
        Act::Nat(_) => entry.member("type", Json::text(kind)),
        _ => entry.member("kind", Json::text(kind)),
    }
    doing(dump, flags, entry);
    show_extras(dump, flags, entry);
    if let Act::Pedit(pedit) = &dump.action.act {
        pedit::show_keys(pedit, entry);
    }
    if flags.stats {
        counts(dump, entry);
    }
    cookie(dump, entry);
}

fn cookie(dump: &ActionDump, entry: &mut Entry) {
    if !dump.action.cookie.is_empty() {
        let text: String = dump.action.cookie.iter().map(|byte| format!("{byte:02x}")).collect();
        entry.say(&format!("\n\tcookie {text}"));
        entry.member("cookie", Json::text(text));
    }
}

/// A policer that was written without `action`; its counters follow.
pub(in crate::tc) fn old_policer(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    entry.member("kind", Json::text("police"));
    doing(dump, flags, entry);
    if flags.stats {
        used(dump, entry);
    }
    entry.say("\n");
}

/// The counters in the form that the kernel had before there were actions.
pub(in crate::tc) fn old_counts(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    if !flags.stats {
        return;
    }
    let ActionDump { bytes, packets, drops, overlimits, .. } = dump;
    entry.say(&format!("\n Sent {bytes} bytes {packets} pkts (dropped {drops}, overlimits {overlimits}) "));
}

/// What it does, and its number.
fn doing(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    let Some(row) = row(dump.action.act.kind()) else { return };
    (row.show)(dump, flags, entry);
    let Some(lead) = row.lead else { return };
    let index = dump.action.index;
    entry.number("index", index, &format!("{lead}index {index}"));
    entry.number("ref", dump.refs, &format!(" ref {}", dump.refs));
    entry.number("bind", dump.binds, &format!(" bind {}", dump.binds));
}

/// What follows an action's index: for ctinfo its masks and, with statistics, its counters; since when it is
/// in use.
fn show_extras(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    let Act::Ctinfo(info) = &dump.action.act else {
        if flags.stats {
            used(dump, entry);
        }
        return;
    };
    connection::show_masks(info, entry);
    if flags.stats {
        used(dump, entry);
        connection::show_counts(&dump.ctinfo, entry);
    }
}

/// Since when it is there and in use; what is less than a hundredth of a second is left out.
fn used(dump: &ActionDump, entry: &mut Entry) {
    const TICK: u64 = 10_000_000;
    let times = [
        ("installed", "installed", Some(dump.installed)),
        ("last_used", "used", Some(dump.used)),
        ("first_used", "firstused", dump.first_used),
    ];
    for (key, word, ns) in times {
        if let Some(ns) = ns.filter(|ns| *ns >= TICK) {
            let seconds = ns / 1_000_000_000;
            entry.number(key, seconds, &format!(" {word} {seconds} sec"));
        }
    }
}

fn counts(dump: &ActionDump, entry: &mut Entry) {
    let ActionDump { bytes, packets, drops, overlimits, .. } = dump;
    entry.say(&format!(
        "\n\tAction statistics:\n\tSent {bytes} bytes {packets} pkt (dropped {drops}, overlimits \
        {overlimits} requeues 0) \n\tbacklog 0b 0p requeues 0"
    ));
    let mut stats = vec![
        ("bytes", Json::number(bytes)),
        ("packets", Json::number(packets)),
        ("drops", Json::number(drops)),
        ("overlimits", Json::number(overlimits)),
    ];
    stats.extend(["requeues", "backlog", "qlen"].map(|key| (key, Json::number(0))));
    entry.member("stats", Json::Object(stats));
}

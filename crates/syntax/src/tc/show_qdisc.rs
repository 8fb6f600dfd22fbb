//! `tc qdisc show`.

use super::command_line::{ShowFlags, ShowWhat};
use super::kind::syntax;
use super::show::{Entry, ended, handle_text};
use crate::json::{self, Json};
use tidegate_packet::Handle;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{LinkLayer, SizeTable};

/// The listing of qdiscs, in the order given; what `what` does not ask for is left out.
pub fn show_qdiscs(dumps: &[QdiscDump], what: &ShowWhat, flags: &ShowFlags) -> String {
    let wanted = dumps.iter().filter(|dump| {
        what.dev.as_deref().is_none_or(|dev| dev == dump.dev)
            && what.parent.is_none_or(|parent| parent == dump.parent)
            && what.handle.is_none_or(|handle| handle == dump.handle)
            && (what.invisible || !dump.invisible)
    });
    let entries: Vec<Entry> = wanted.map(|dump| entry(dump, what, flags)).collect();
    if flags.json {
        let items: Vec<Json> = entries.into_iter().map(|entry| Json::Object(entry.members)).collect();
        return json::list(&items, flags.pretty);
    }
    ended(entries.into_iter().map(|entry| entry.text).collect(), flags)
}

fn entry(dump: &QdiscDump, what: &ShowWhat, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::by(flags.tc);
    let handle = handle_text(dump.handle);
    entry.say(&format!("qdisc {} {handle}", dump.kind.name()));
    entry.member("kind", Json::text(dump.kind.name()));
    entry.member("handle", Json::text(handle));
    if flags.raw {
        entry.say(&format!("[{:08x}]", dump.handle.0));
    }
    entry.say(" ");
    if what.dev.is_none() {
        entry.say(&format!("dev {} ", dump.dev));
        entry.member("dev", Json::text(dump.dev.clone()));
    }
    match dump.parent {
        Handle::ROOT => {
            entry.say("root ");
            entry.member("root", Json::Bool(true));
        }
        Handle::NONE => {}
        parent => {
            entry.say(&format!("parent {parent} "));
            entry.member("parent", Json::text(parent.to_string()));
        }
    }
    if dump.refcnt != 1 {
        entry.number("refcnt", dump.refcnt, &format!("refcnt {} ", dump.refcnt));
    }
    for (name, block) in [("ingress_block", dump.blocks.ingress), ("egress_block", dump.blocks.egress)] {
        if block != 0 {
            entry.number(name, block, &format!("{name} {block} "));
        }
    }
    let syntax = syntax(dump.kind);
    let mut options = Entry::by(flags.tc);
    syntax.show(dump, flags, &mut options);
    entry.say(&options.text);
    entry.member("options", Json::Object(options.members));
    entry.say("\n");
    if let (Some(stab), true) = (&dump.stab, flags.details) {
        size_table(stab, &mut entry);
    }
    if flags.stats {
        entry.counters(&dump.stats, true);
        entry.say("\n");
        syntax.show_stats(dump, flags, &mut entry);
    }
    entry
}

/// The line of the size table: one blank before it, one after each word, nothing that is zero.
fn size_table(stab: &SizeTable, entry: &mut Entry) {
    let mut line = Entry::new();
    line.say(" ");
    if stab.linklayer_stated || stab.linklayer == LinkLayer::Atm {
        line.say(&format!("linklayer {} ", stab.linklayer.name()));
        line.member("linklayer", Json::text(stab.linklayer.name()));
    }
    if stab.overhead != 0 {
        line.number("overhead", stab.overhead, &format!("overhead {} ", stab.overhead));
    }
    for (key, value) in [("mpu", stab.mpu), ("mtu", stab.mtu), ("tsize", stab.tsize)] {
        if value != 0 {
            line.number(key, value, &format!("{key} {value} "));
        }
    }
    line.say("\n");
    entry.say(&line.text);
    entry.member("stab", Json::Object(line.members));
}

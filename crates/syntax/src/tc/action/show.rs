//! Actions as they are listed.

mod rewrite;

use crate::json::{self, Json};
use crate::tc::show::{Entry, ended};
use crate::tc::{ShowActions, ShowFlags};
use crate::units::{bytes_of, print_rate, print_size};
use tidegate_packet::{Handle, Rate};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Connmark, Control, Ct, CtNat, Ctinfo, Gact, Mirred, Police, Sample, Skbedit, Ticks};

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
    let mut list = Vec::new();
    for (order, action) in (1..).zip(actions) {
        let mut one = Entry::new();
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

/// The listing of some of the machine's actions by themselves.
pub fn show_actions(dumps: &[ActionDump], what: &ShowActions, flags: &ShowFlags) -> String {
    // Those that are asked for by number are counted from 1, and tc takes their count from where the kernel leaves none.
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

/// One of them: unlike in a filter's list, that no card does its work is told of each.
fn alone(order: u32, dump: &ActionDump, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::new();
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
    // tc calls it otherwise for one kind.
    let key = if matches!(dump.action.act, Act::Nat(_)) { "type" } else { "kind" };
    entry.member(key, Json::text(dump.action.act.kind()));
    doing(dump, flags, entry);
    told_besides(dump, flags, entry);
    if let Act::Pedit(pedit) = &dump.action.act {
        rewrite::keys(pedit, entry);
    }
    if flags.stats {
        counts(dump, entry);
    }
    if !dump.action.cookie.is_empty() {
        let text: String = dump.action.cookie.iter().map(|octet| format!("{octet:02x}")).collect();
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

/// The counters as the kernel told them before there were actions.
pub(in crate::tc) fn old_counts(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    if !flags.stats {
        return;
    }
    let ActionDump { bytes, packets, drops, overlimits, .. } = dump;
    entry.say(&format!("\n Sent {bytes} bytes {packets} pkts (dropped {drops}, overlimits {overlimits}) "));
}

/// A decision in words.
fn name(control: Control) -> String {
    match control {
        Control::Goto(chain) => format!("goto chain {chain}"),
        Control::Jump(count) => format!("jump {count}"),
        Control::Number(number) => number.to_string(),
        _ => control.name().into(),
    }
}

fn type_of(control: Control) -> Json {
    let kind = match control {
        Control::Number(number) => number.to_string(),
        named => named.name().into(),
    };
    let mut members = vec![("type", Json::text(kind))];
    match control {
        Control::Goto(chain) => members.push(("chain", Json::number(chain))),
        Control::Jump(count) => members.push(("jump", Json::number(count))),
        _ => {}
    }
    Json::Object(members)
}

/// What it does, and its number.
fn doing(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    let index = dump.action.index;
    let lead = match &dump.action.act {
        Act::Gact(gact) => {
            decision(gact, entry);
            "\n\t "
        }
        Act::Mirred(mirred) => {
            leading(mirred, entry);
            "\n\t"
        }
        Act::Skbedit(edit) => {
            editing(edit, entry);
            "\n\t "
        }
        Act::Connmark(mark) => {
            marking(mark, entry);
            "\n\t "
        }
        Act::Ctinfo(info) => {
            informing(info, entry);
            "\n\t "
        }
        Act::Ct(ct) => {
            tracking(ct, entry);
            "\n\t "
        }
        Act::Simple(simple) => {
            let text = simple.text.as_deref().unwrap_or_default();
            entry.say(&format!("Simple <{text}>"));
            entry.member("sdata", Json::text(text));
            "\n\t "
        }
        Act::Sample(sample) => {
            sampling(sample, entry);
            "\n\t "
        }
        Act::Nat(nat) => {
            rewrite::nat(nat, entry);
            "\n\t "
        }
        Act::Pedit(pedit) => {
            rewrite::pedit(pedit, entry);
            "\n \t "
        }
        Act::Csum(csum) => {
            rewrite::csum(csum, entry);
            "\n\t"
        }
        Act::Skbmod(skbmod) => {
            rewrite::skbmod(skbmod, entry);
            "\n\t "
        }
        Act::Vlan(vlan) => {
            rewrite::vlan(vlan, entry);
            "\n\t "
        }
        Act::Police(police) => {
            policing(index, police, flags, entry);
            entry.number("ref", dump.refs, &format!("\n\tref {}", dump.refs));
            entry.number("bind", dump.binds, &format!(" bind {} ", dump.binds));
            return;
        }
    };
    entry.number("index", index, &format!("{lead}index {index}"));
    entry.number("ref", dump.refs, &format!(" ref {}", dump.refs));
    entry.number("bind", dump.binds, &format!(" bind {}", dump.binds));
}

fn decision(gact: &Gact, entry: &mut Entry) {
    let random = gact.random.unwrap_or_default();
    let kind = match gact.random {
        None => "none",
        Some(random) if random.drawn => "netrand",
        Some(_) => "determ",
    };
    entry.say(&format!("gact action {}", name(gact.control)));
    entry.say(&format!("\n\t random type {kind} {} val {}", name(random.control), random.one_in));
    entry.member("control_action", type_of(gact.control));
    let prob = vec![
        ("random_type", Json::text(kind)),
        ("control_action", type_of(random.control)),
        ("val", Json::number(random.one_in)),
    ];
    entry.member("prob", Json::Object(prob));
}

fn leading(mirred: &Mirred, entry: &mut Entry) {
    let (what, lower) = if mirred.copy { ("Mirror", "mirror") } else { ("Redirect", "redirect") };
    let (way, lower_way) = if mirred.arrives { ("Ingress", "ingress") } else { ("Egress", "egress") };
    entry.say(&format!("mirred ({way} {what} to device {}) {}", mirred.to, name(mirred.control)));
    entry.member("mirred_action", Json::text(lower));
    entry.member("direction", Json::text(lower_way));
    entry.member("to_dev", Json::text(mirred.to.clone()));
    entry.member("control_action", type_of(mirred.control));
}

fn editing(edit: &Skbedit, entry: &mut Entry) {
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
    entry.say(&format!(" {}", name(edit.control)));
    entry.member("control_action", type_of(edit.control));
}

fn marking(mark: &Connmark, entry: &mut Entry) {
    entry.number("zone", mark.zone, &format!("connmark zone {}", mark.zone));
    entry.say(&format!(" {}", name(mark.control)));
    entry.member("control_action", type_of(mark.control));
}

fn informing(info: &Ctinfo, entry: &mut Entry) {
    entry.number("zone", info.zone, &format!("ctinfo zone {}", info.zone));
    entry.say(&format!(" {}", name(info.control)));
    entry.member("control_action", type_of(info.control));
}

fn tracking(ct: &Ct, entry: &mut Entry) {
    entry.say("ct");
    let words = [("clear", ct.clear), ("commit", ct.commit), ("force", ct.force)];
    let words: Vec<&str> = words.into_iter().filter(|(_, said)| *said).map(|(word, _)| word).collect();
    if !words.is_empty() {
        entry.say(&format!(" {}", words.join(" ")));
        entry.member("action", Json::text(words.join(" ")));
    }
    if let Some((mark, mask)) = ct.mark {
        entry.number("mark", mark, &format!(" mark {mark}"));
        if mask != u32::MAX {
            entry.say(&format!("/{mask:#x}"));
            entry.member("mark_mask", Json::text(format!("{mask:x}")));
        }
    }
    if let Some(zone) = ct.zone {
        entry.number("zone", zone, &format!(" zone {zone}"));
    }
    if let Some((label, mask)) = ct.label {
        let mask = if mask == u128::MAX { String::new() } else { format!("/{mask:032x}") };
        entry.say(&format!(" label {label:032x}{mask}"));
        entry.member("label", Json::text(format!("{label:032x}{mask}")));
    }
    if let Some(nat) = ct.nat {
        let how = translated(nat);
        let blank = if how.is_empty() { "" } else { " " };
        entry.say(&format!(" nat{blank}{how}"));
        entry.member("nat", Json::text(how));
    }
    entry.say(&format!(" {}", name(ct.control)));
    entry.member("control_action", type_of(ct.control));
}

/// `src addr 10.0.0.1-10.0.0.9 port 1-9`.
fn translated(nat: CtNat) -> String {
    let CtNat::New { source, addresses: (low, high), ports } = nat else { return String::new() };
    let mut text = format!("{} addr {low}", if source { "src" } else { "dst" });
    if low != high {
        text.push_str(&format!("-{high}"));
    }
    if let Some((low, high)) = ports {
        text.push_str(&format!(" port {low}"));
        if low != high {
            text.push_str(&format!("-{high}"));
        }
    }
    text
}

fn sampling(sample: &Sample, entry: &mut Entry) {
    let (rate, group) = (sample.rate.unwrap_or_default(), sample.group.unwrap_or_default());
    entry.number("rate", rate, &format!("sample rate 1/{rate}"));
    entry.number("group", group, &format!(" group {group}"));
    if let Some(octets) = sample.octets {
        entry.number("trunc_size", octets, &format!(" trunc_size {octets}"));
    }
    entry.say(&format!(" {}", name(sample.control)));
    entry.member("control_action", type_of(sample.control));
}

/// What stands behind an action's number: for ctinfo its masks and, with statistics, what it did; since when it is in use.
fn told_besides(dump: &ActionDump, flags: &ShowFlags, entry: &mut Entry) {
    let Act::Ctinfo(info) = &dump.action.act else {
        if flags.stats {
            used(dump, entry);
        }
        return;
    };
    // What is 0 is told without the prefix, as C prints it.
    let short = |value: u32| if value == 0 { "0".to_owned() } else { format!("{value:#x}") };
    let long = |value: u32| if value == 0 { "0".repeat(10) } else { format!("{value:#010x}") };
    if let Some((mask, state)) = info.dscp {
        entry.say(&format!(" dscp {} {}", long(mask), long(state)));
        entry.member("dscpmask", Json::text(short(mask)));
        entry.member("dscpstatemask", Json::text(short(state)));
    }
    if let Some(mask) = info.mark {
        entry.say(&format!(" cpmark {}", long(mask)));
        entry.member("cpmark", Json::text(short(mask)));
    }
    if flags.stats {
        used(dump, entry);
        let done = dump.ctinfo;
        entry.number("dscpset", done.dscp_set, &format!(" DSCP set {}", done.dscp_set));
        entry.number("dscperror", done.dscp_failed, &format!(" error {}", done.dscp_failed));
        entry.number("cpmarkset", done.mark_set, &format!(" CPMARK set {}", done.mark_set));
    }
}

fn policing(index: u32, police: &Police, flags: &ShowFlags, entry: &mut Entry) {
    let rate = police.rate.map_or(Rate(0), |spec| spec.rate);
    entry.number("index", index, &format!(" police {index:#x} rate {}", print_rate(rate, flags.iec)));
    entry.say(&format!(" burst {} mtu {} ", print_size(bytes_of(rate, police.burst)), print_size(police.mtu)));
    if let Some(peak) = police.peak {
        entry.say(&format!("peakrate {} ", print_rate(peak.rate, flags.iec)));
    }
    if let Some(average) = police.average {
        entry.say(&format!("avrate {} ", print_rate(average, flags.iec)));
    }
    if police.packets > 0 {
        let ticks = Ticks(u32::try_from(police.packets_burst).unwrap_or(u32::MAX));
        let burst = bytes_of(Rate(police.packets), ticks);
        entry.number("pkts_rate", police.packets, &format!("pkts_rate {} ", police.packets));
        entry.number("pkts_burst", burst, &format!("pkts_burst {burst} "));
    }
    entry.say(&format!("action {}", name(police.exceed)));
    entry.member("control_action", type_of(police.exceed));
    // That they pass is not told.
    if let Some(conform) = police.conform.filter(|conform| *conform != Control::Pass) {
        entry.say(&format!("/{}", name(conform)));
        entry.member("control_action", type_of(conform));
    }
    entry.say(" ");
    let overhead = police.rate.map_or(0, |spec| spec.overhead);
    entry.number("overhead", overhead, &format!("overhead {overhead}b "));
    let layer = police.rate.map_or("unspec", |spec| spec.linklayer.name());
    if flags.details || layer == "atm" {
        entry.word("linklayer", layer);
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
        "\n\tAction statistics:\n\tSent {bytes} bytes {packets} pkt (dropped {drops}, overlimits {overlimits} requeues 0) \n\tbacklog 0b 0p requeues 0"
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

//! `tc qdisc show`.

use super::show::{Entry, ended, handle_text};
use super::{ShowFlags, ShowWhat, cake, dualpi2, ets, fq, fq_pie, gred, hhf, netem, skbprio};
use crate::json::{self, Json};
use crate::number::general;
use crate::units::{bytes_of, print_rate, print_size, print_time, us_of};
use tidegate_packet::Handle;
use tidegate_policy::dump::{CodelStats, FqCodelStats, PieStats, QdiscDump, RedStats, SfbStats, SfqStats, Xstats};
use tidegate_policy::{
    CodelParams, FifoParams, FqCodelParams, HfscParams, HtbParams, Kind, LinkLayer, PieParams, PrioParams, QdiscParams,
    RedParams, SfbParams, SfqParams, SfqRed, SizeTable, TbfParams,
};

/// The listing of qdiscs, in the order given; what `what` does not ask for is left out.
pub fn show_qdiscs(dumps: &[QdiscDump], what: &ShowWhat, flags: &ShowFlags) -> String {
    let wanted = dumps.iter().filter(|dump| {
        what.dev.as_deref().is_none_or(|dev| dev == dump.dev)
            && what.parent.is_none_or(|parent| parent == dump.parent)
            && what.handle.is_none_or(|handle| handle == dump.handle)
            && (what.invisible || !dump.handle.is_none() || dump.parent == Handle::ROOT)
    });
    let entries: Vec<Entry> = wanted.map(|dump| entry(dump, what, flags)).collect();
    if flags.json {
        let items: Vec<Json> = entries.into_iter().map(|entry| Json::Object(entry.members)).collect();
        return json::list(&items, flags.pretty);
    }
    ended(entries.into_iter().map(|entry| entry.text).collect(), flags)
}

fn entry(dump: &QdiscDump, what: &ShowWhat, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::new();
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
    let options = options(dump, flags);
    entry.say(&options.text);
    entry.member("options", Json::Object(options.members));
    entry.say("\n");
    if let (Some(stab), true) = (&dump.stab, flags.details) {
        size_table(stab, &mut entry);
    }
    if flags.stats {
        entry.counters(&dump.stats, true);
        entry.say("\n");
        xstats(&dump.xstats, &mut entry);
        if let (Xstats::Cake(stats), QdiscParams::Cake(params)) = (&dump.xstats, &dump.params) {
            cake::show_stats(stats, params.tins.unwrap_or_default(), flags.iec, &mut entry);
        }
    }
    entry
}

fn options(dump: &QdiscDump, flags: &ShowFlags) -> Entry {
    let mut entry = Entry::new();
    match &dump.params {
        QdiscParams::Fifo(params) => fifo(params, dump.kind, &mut entry),
        QdiscParams::PfifoFast => prio(&PrioParams::default(), &mut entry),
        QdiscParams::Prio(params) => prio(params, &mut entry),
        QdiscParams::Tbf(params) => tbf(params, flags, &mut entry),
        QdiscParams::Htb(params) => htb(params, &dump.xstats, flags, &mut entry),
        QdiscParams::Sfq(params) => {
            sfq(params, flags, &mut entry);
            if let (Xstats::Sfq(stats), true) = (&dump.xstats, flags.stats) {
                sfq_stats(stats, &mut entry);
            }
        }
        QdiscParams::Red(params) => red(params, flags, true, &mut entry),
        QdiscParams::Choke(params) => red(params, flags, false, &mut entry),
        QdiscParams::Sfb(params) => sfb(params, &mut entry),
        QdiscParams::Pie(params) => pie(params, &mut entry),
        QdiscParams::DualPi2(params) => dualpi2::show(params, &mut entry),
        QdiscParams::Cake(params) => cake::show(params, flags.iec, &mut entry),
        QdiscParams::Ets(params) => ets::show(params, &mut entry),
        QdiscParams::Fq(params) => fq::show(params, flags, &mut entry),
        QdiscParams::FqPie(params) => fq_pie::show(params, &mut entry),
        QdiscParams::Gred(params) => gred::show(params, flags, &mut entry),
        QdiscParams::Hhf(params) => hhf::show(params, &mut entry),
        QdiscParams::Netem(params) => netem::show(params, &mut entry),
        QdiscParams::Skbprio(params) => skbprio::show(params, &mut entry),
        QdiscParams::Drr | QdiscParams::Noqueue => {}
        QdiscParams::Codel(params) => codel(params, &mut entry),
        QdiscParams::FqCodel(params) => fq_codel(params, &mut entry),
        QdiscParams::Ingress if dump.kind == Kind::Ingress => entry.say("---------------- "),
        QdiscParams::Ingress => {}
        QdiscParams::Hfsc(HfscParams { default: 0 }) | QdiscParams::Qfq => {}
        QdiscParams::Hfsc(HfscParams { default }) => {
            entry.say(&format!("default {default:x} "));
            entry.member("default", Json::text(format!("{default:#x}")));
        }
    }
    entry
}

fn fifo(params: &FifoParams, kind: Kind, entry: &mut Entry) {
    let limit = params.limit.unwrap_or(0);
    match kind {
        Kind::Bfifo => entry.size("limit", limit, "limit {}"),
        _ => entry.number("limit", limit, &format!("limit {limit}p")),
    }
}

fn prio(params: &PrioParams, entry: &mut Entry) {
    entry.number("bands", params.bands, &format!("bands {} priomap", params.bands));
    for band in params.priomap {
        entry.say(&format!(" {band}"));
    }
    entry.member("priomap", Json::Numbers(params.priomap.map(u32::from).into()));
    entry.member("multiqueue", Json::Bool(false));
}

/// A bucket with its details: `10Kb/1 mpu 0b `.
fn bucket(
    key: &'static str,
    plain: &'static str,
    bytes: u32,
    mpu: u16,
    ticks: u32,
    flags: &ShowFlags,
    entry: &mut Entry,
) {
    if flags.details {
        entry.say(&format!("{key} {}/1 mpu {} ", print_size(bytes), print_size(mpu.into())));
        entry.member(key, Json::text(format!("{}/1", print_size(bytes))));
        // tc calls the peak's `mpu` too, so that one of both is lost.
        entry.member(if key == "mtu" { "peak_mpu" } else { "mpu" }, Json::number(mpu));
    } else {
        entry.size(plain, bytes, &format!("{plain} {{}} "));
    }
    if flags.raw {
        entry.say(&format!("[{ticks:08x}] "));
    }
}

fn tbf(params: &TbfParams, flags: &ShowFlags, entry: &mut Entry) {
    let rate = params.rate.rate;
    entry.number("rate", rate.0, &format!("rate {} ", print_rate(rate, flags.iec)));
    bucket("burst", "burst", bytes_of(rate, params.buffer), params.rate.mpu, params.buffer.0, flags, entry);
    let wait = |rate: tidegate_packet::Rate, bucket| {
        1e6 * (f64::from(params.limit) / rate.0 as f64) - f64::from(us_of(bucket))
    };
    let mut latency = wait(rate, params.buffer);
    if let Some(peak) = &params.peak {
        entry.number("peakrate", peak.rate.0, &format!("peakrate {} ", print_rate(peak.rate, flags.iec)));
        if params.peak_buffer.0 > 0 || peak.mpu > 0 {
            let bytes = bytes_of(peak.rate, params.peak_buffer);
            bucket("mtu", "minburst", bytes, peak.mpu, params.peak_buffer.0, flags, entry);
        }
        latency = latency.max(wait(peak.rate, params.peak_buffer));
    }
    if latency >= 0.0 {
        let us = latency as i64 as u32;
        entry.number("lat", us, &format!("lat {} ", print_time(us)));
    }
    if latency < 0.0 || flags.raw {
        entry.size("limit", params.limit, "limit {} ");
    }
    if params.rate.overhead > 0 {
        entry.number("overhead", params.rate.overhead, &format!("overhead {} ", params.rate.overhead));
    }
    if params.rate.linklayer == LinkLayer::Atm || flags.details {
        entry.say(&format!("linklayer {} ", params.rate.linklayer.name()));
        entry.member("linklayer", Json::text(params.rate.linklayer.name()));
    }
}

fn htb(params: &HtbParams, xstats: &Xstats, flags: &ShowFlags, entry: &mut Entry) {
    let direct = match xstats {
        Xstats::Htb { direct_packets } => *direct_packets,
        _ => 0,
    };
    let default = if params.default == 0 { "0".into() } else { format!("{:#x}", params.default) };
    entry.number("r2q", params.r2q, &format!("r2q {}", params.r2q));
    entry.say(&format!(" default {default}"));
    entry.member("default", Json::text(default));
    entry.number("direct_packets_stat", direct, &format!(" direct_packets_stat {direct}"));
    if flags.details {
        entry.say(" ver 3.17");
        entry.member("ver", Json::text("3.17"));
    }
    let direct_qlen = params.direct_qlen.unwrap_or(0);
    entry.number("direct_qlen", direct_qlen, &format!(" direct_qlen {direct_qlen}"));
}

fn sfq(params: &SfqParams, flags: &ShowFlags, entry: &mut Entry) {
    entry.number("limit", params.limit, &format!("limit {}p ", params.limit));
    entry.size("quantum", params.quantum, "quantum {} ");
    entry.number("depth", params.depth, &format!("depth {} ", params.depth));
    entry.flag("headdrop", params.headdrop);
    if flags.details {
        entry.number("flows", params.flows, &format!("flows {} ", params.flows));
    }
    entry.number("divisor", params.divisor, &format!("divisor {} ", params.divisor));
    if params.perturb != 0 {
        entry.number("perturb", params.perturb, &format!("perturb {}sec ", params.perturb));
    }
    if let Some(red) = &params.red {
        sfq_red(red, entry);
    }
}

fn sfq_red(red: &SfqRed, entry: &mut Entry) {
    entry.number("ewma", red.curve.wlog, &format!("ewma {} ", red.curve.wlog));
    entry.size("min", red.curve.min, "min {} ");
    entry.size("max", red.curve.max, "max {} ");
    probability(red.curve.max_p, entry);
    marks(&[("ecn", red.ecn), ("harddrop", red.harddrop), ("adaptive", false), ("nodrop", false)], entry);
}

/// The probability of a mark at `max`.
pub(super) fn probability(max_p: u32, entry: &mut Entry) {
    let share = general(f64::from(max_p) / 4_294_967_296.0, 6);
    entry.say(&format!("probability {share} "));
    entry.member("probability", Json::Number(share));
}

/// Words that stand in the listing when they hold, and in JSON always.
pub(super) fn marks(words: &[(&'static str, bool)], entry: &mut Entry) {
    for (word, holds) in words {
        if *holds {
            entry.say(&format!("{word} "));
        }
        entry.member(word, Json::Bool(*holds));
    }
}

fn red(params: &RedParams, flags: &ShowFlags, bytes: bool, entry: &mut Entry) {
    let curve = &params.curve;
    for (key, value) in [("limit", params.limit), ("min", curve.min), ("max", curve.max)] {
        if bytes {
            entry.size(key, value, &format!("{key} {{}} "));
        } else {
            entry.number(key, value, &format!("{key} {value}p "));
        }
    }
    let words =
        [("ecn", params.ecn), ("harddrop", params.harddrop), ("adaptive", params.adaptive), ("nodrop", params.nodrop)];
    marks(&words, entry);
    if flags.details {
        entry.number("ewma", curve.wlog, &format!("ewma {} ", curve.wlog));
        probability(curve.max_p, entry);
        entry.number("Scell_log", curve.scell_log, &format!("Scell_log {}", curve.scell_log));
    }
}

fn sfb(params: &SfbParams, entry: &mut Entry) {
    time("rehash", params.rehash_ms.wrapping_mul(1000), entry);
    time("db", params.warmup_ms.wrapping_mul(1000), entry);
    for (key, value) in [("limit", params.limit), ("max", params.max), ("target", params.target)] {
        entry.number(key, value, &format!("{key} {value}p "));
    }
    for (key, value) in [("increment", params.increment), ("decrement", params.decrement)] {
        share(key, value, entry);
        entry.say(" ");
    }
    entry.number("penalty_rate", params.penalty_rate, &format!("penalty_rate {}pps ", params.penalty_rate));
    entry.number("penalty_burst", params.penalty_burst, &format!("penalty_burst {}p ", params.penalty_burst));
}

/// A probability in 16 bits.
fn share(key: &'static str, value: u32, entry: &mut Entry) {
    let share = general(f64::from(value) / 65_535.0, 6);
    entry.say(&format!("{key} {share}"));
    entry.member(key, Json::Number(share));
}

fn pie(params: &PieParams, entry: &mut Entry) {
    let limit = params.limit.unwrap_or(0);
    entry.number("limit", limit, &format!("limit {limit}p "));
    time("target", params.target_us.unwrap_or(0), entry);
    time("tupdate", params.tupdate_us.unwrap_or(0), entry);
    for (key, value) in [("alpha", params.alpha), ("beta", params.beta)] {
        let value = value.unwrap_or(0);
        entry.number(key, value, &format!("{key} {value} "));
    }
    entry.flag("ecn", params.ecn == Some(true));
    entry.flag("bytemode", params.bytemode == Some(true));
    entry.flag("dq_rate_estimator", params.rate_estimator == Some(true));
}

/// A time, and a blank.
pub(super) fn time(key: &'static str, us: u32, entry: &mut Entry) {
    entry.number(key, us, &format!("{key} {} ", print_time(us)));
}

fn codel(params: &CodelParams, entry: &mut Entry) {
    let limit = params.limit.unwrap_or(0);
    entry.number("limit", limit, &format!("limit {limit}p "));
    time("target", params.target_us.unwrap_or(0), entry);
    if let Some(us) = params.ce_threshold_us {
        time("ce_threshold", us, entry);
    }
    time("interval", params.interval_us.unwrap_or(0), entry);
    entry.flag("ecn", params.ecn == Some(true));
}

fn fq_codel(params: &FqCodelParams, entry: &mut Entry) {
    let limit = params.limit.unwrap_or(0);
    entry.number("limit", limit, &format!("limit {limit}p "));
    let mut number = |key: &'static str, value: Option<u32>| {
        let value = value.unwrap_or(0);
        entry.number(key, value, &format!("{key} {value} "));
    };
    number("flows", params.flows);
    number("quantum", params.quantum);
    time("target", params.target_us.unwrap_or(0), entry);
    if let Some(us) = params.ce_threshold_us {
        time("ce_threshold", us, entry);
    }
    if let Some((value, mask)) = params.ce_selector.filter(|(_, mask)| *mask != 0) {
        let text = |octet: u8| if octet == 0 { "0".to_string() } else { format!("{octet:#x}") };
        entry.say(&format!("ce_threshold_selector {}/{} ", text(value), text(mask)));
        entry.member("ce_threshold_selector", Json::number(value));
        entry.member("ce_threshold_mask", Json::number(mask));
    }
    time("interval", params.interval_us.unwrap_or(0), entry);
    entry.size("memory_limit", params.memory_limit.unwrap_or(0), "memory_limit {} ");
    entry.flag("ecn", params.ecn == Some(true));
    let batch = params.drop_batch.unwrap_or(0);
    entry.number("drop_batch", batch, &format!("drop_batch {batch} "));
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

fn xstats(xstats: &Xstats, entry: &mut Entry) {
    match xstats {
        Xstats::Codel(stats) => codel_stats(stats, entry),
        Xstats::FqCodel(stats) => fq_codel_stats(stats, entry),
        Xstats::Red(stats) => red_stats(stats, entry),
        Xstats::Sfb(stats) => sfb_stats(stats, entry),
        Xstats::Pie(stats) => pie_stats(stats, entry),
        Xstats::DualPi2(stats) => dualpi2::show_stats(stats, entry),
        Xstats::Fq(stats) => fq::show_stats(stats, entry),
        Xstats::FqPie(stats) => fq_pie::show_stats(stats, entry),
        Xstats::Hhf(stats) => hhf::show_stats(stats, entry),
        _ => {}
    }
}

/// The time until the next drop, with its sign.
pub(super) fn drop_next(us: i32) -> String {
    format!("{}{}", if us < 0 { "-" } else { "" }, print_time(us.unsigned_abs()))
}

fn codel_stats(stats: &CodelStats, entry: &mut Entry) {
    entry.number("count", stats.count, &format!("  count {}", stats.count));
    entry.number("lastcount", stats.lastcount, &format!(" lastcount {}", stats.lastcount));
    entry.number("ldelay", stats.ldelay_us, &format!(" ldelay {}", print_time(stats.ldelay_us)));
    if stats.dropping {
        entry.say(" dropping");
        entry.member("dropping", Json::Bool(true));
    }
    entry.number("drop_next", stats.drop_next_us, &format!(" drop_next {}", drop_next(stats.drop_next_us)));
    entry.number("maxpacket", stats.maxpacket, &format!("\n  maxpacket {}", stats.maxpacket));
    entry.number("ecn_mark", stats.ecn_mark, &format!(" ecn_mark {}", stats.ecn_mark));
    entry.number("drop_overlimit", stats.drop_overlimit, &format!(" drop_overlimit {}", stats.drop_overlimit));
    if stats.ce_mark > 0 {
        entry.number("ce_mark", stats.ce_mark, &format!(" ce_mark {}", stats.ce_mark));
    }
    entry.say("\n");
}

fn fq_codel_stats(stats: &FqCodelStats, entry: &mut Entry) {
    let mut number = |key: &'static str, before: &str, value: u32| {
        entry.number(key, value, &format!("{before}{key} {value}"));
    };
    number("maxpacket", "  ", stats.maxpacket);
    number("drop_overlimit", " ", stats.drop_overlimit);
    number("new_flow_count", " ", stats.new_flow_count);
    number("ecn_mark", " ", stats.ecn_mark);
    for (key, value) in
        [("ce_mark", stats.ce_mark), ("memory_used", stats.memory_used), ("drop_overmemory", stats.drop_overmemory)]
    {
        if value > 0 {
            number(key, " ", value);
        }
    }
    number("new_flows_len", "\n  ", stats.new_flows_len);
    number("old_flows_len", " ", stats.old_flows_len);
    entry.say("\n");
}

/// Counters in a row, with what stands before each.
pub(super) fn row(counters: &[(&'static str, &str, u32)], entry: &mut Entry) {
    for (key, before, value) in counters {
        entry.number(key, *value, &format!("{before}{key} {value}"));
    }
}

fn sfq_stats(stats: &SfqStats, entry: &mut Entry) {
    row(
        &[
            ("prob_mark", "\n  ", stats.prob_mark),
            ("prob_mark_head", " ", stats.prob_mark_head),
            ("prob_drop", " ", stats.prob_drop),
            ("forced_mark", "\n  ", stats.forced_mark),
            ("forced_mark_head", " ", stats.forced_mark_head),
            ("forced_drop", " ", stats.forced_drop),
        ],
        entry,
    );
}

fn red_stats(stats: &RedStats, entry: &mut Entry) {
    let counters = [
        ("marked", "  ", stats.marked),
        ("early", " ", stats.early),
        ("pdrop", " ", stats.pdrop),
        ("other", " ", stats.other),
    ];
    row(&counters, entry);
    match stats.matched {
        Some(matched) => entry.number("matched", matched, &format!(" matched {matched}")),
        None => entry.say(" "),
    }
    entry.say("\n");
}

fn sfb_stats(stats: &SfbStats, entry: &mut Entry) {
    row(
        &[
            ("earlydrop", "  ", stats.earlydrop),
            ("penaltydrop", " ", stats.penaltydrop),
            ("bucketdrop", " ", stats.bucketdrop),
            ("queuedrop", " ", stats.queuedrop),
            ("childdrop", " ", stats.childdrop),
            ("marked", " ", stats.marked),
            ("maxqlen", "\n  ", stats.maxqlen),
        ],
        entry,
    );
    for (key, value) in [("maxprob", stats.maxprob), ("avgprob", stats.avgprob)] {
        entry.say(" ");
        share(key, value, entry);
    }
    entry.say("\n");
}

fn pie_stats(stats: &PieStats, entry: &mut Entry) {
    let probability = general(stats.prob as f64 / u64::MAX as f64, 6);
    entry.say(&format!("  prob {probability}"));
    entry.member("prob", Json::Number(probability));
    entry.number("delay", stats.delay_us, &format!(" delay {}", print_time(stats.delay_us)));
    if stats.dq_rate_estimating {
        entry.number("avg_dq_rate", stats.avg_dq_rate, &format!(" avg_dq_rate {}", stats.avg_dq_rate));
    }
    row(
        &[
            ("pkts_in", "\n  ", stats.packets_in),
            ("overlimit", " ", stats.overlimit),
            ("dropped", " ", stats.dropped),
            ("maxq", " ", stats.maxq),
            ("ecn_mark", " ", stats.ecn_mark),
        ],
        entry,
    );
    entry.say("\n");
}

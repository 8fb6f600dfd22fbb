//! cake.

use super::row::Syntax;
use crate::json::Json;
use crate::number::{i32_in, u32_in};
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Take};
use crate::tc::show::Entry;
use crate::tc::spelling::ListedValue;
use crate::tc::words::Words;
use crate::units::{parse_size, print_rate, print_size, print_time, rate_by};
use crate::{Refusal, TcChange};
use tidegate_packet::Rate;
use tidegate_policy::dump::{CakeFlowStats, CakeStats, CakeTinStats, ClassDump, QdiscDump, Xstats};
use tidegate_policy::spec::{OptionSpec, ValueKind};
use tidegate_policy::{CakeAckFilter, CakeFlows, CakeFraming, CakeParams, CakeTins, QdiscParams};

pub(super) struct Cake;

impl Syntax for Cake {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let mut gathered = Gathered::default();
        reader.each(reader.table(), words, &mut gathered)?;
        Ok(Some(QdiscParams::Cake(Box::new(gathered.finish()))))
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Cake(params) = &dump.params {
            show(params, flags.iec, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let (Xstats::Cake(stats), QdiscParams::Cake(params)) = (&dump.xstats, &dump.params) {
            show_stats(stats, params.tins.unwrap_or_default(), flags, entry);
        }
    }

    fn show_class_stats(&self, dump: &ClassDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::CakeFlow(flow) = &dump.xstats {
            show_flow(flow, entry);
        }
    }

    fn member(&self, key: &str, value: &ListedValue, _: &[(String, ListedValue)]) -> Option<Vec<String>> {
        let words = match (key, value) {
            ("diffserv" | "flowmode" | "autorate" | "atm", ListedValue::Text(word)) => vec![word.clone()],
            ("nat" | "wash", ListedValue::Bool(on)) => vec![format!("{}{key}", if *on { "" } else { "no" })],
            ("split_gso", ListedValue::Bool(on)) => {
                vec![if *on { "split-gso" } else { "no-split-gso" }.to_owned()]
            }
            ("ack-filter", ListedValue::Text(how)) => vec![
                match how.as_str() {
                    "enabled" => "ack-filter",
                    "aggressive" => "ack-filter-aggressive",
                    "disabled" => "no-ack-filter",
                    // Nothing that is known: it does not come back.
                    _ => return None,
                }
                .to_owned(),
            ],
            ("fwmark", ListedValue::Text(mask)) if mask == "0" => Vec::new(),
            _ => return None,
        };
        Some(words)
    }
}

/// Round-trip times that have a name, with the delay that is held, µs.
const PRESETS: [(&str, u32, u32); 8] = [
    ("datacentre", 100, 5),
    ("lan", 1_000, 50),
    ("metro", 10_000, 500),
    ("regional", 30_000, 1_500),
    ("internet", 100_000, 5_000),
    ("oceanic", 300_000, 15_000),
    ("satellite", 1_000_000, 50_000),
    ("interplanetary", 1_000_000_000, 50_000_000),
];

/// Framings that have a name: the link's cells (if the name implies them), the overhead, and the least size
/// that is counted (mpu).
const FRAMINGS: [(&str, Option<CakeFraming>, i32, Option<u32>); 13] = [
    ("ipoa-vcmux", Some(CakeFraming::Atm), 8, None),
    ("ipoa-llcsnap", Some(CakeFraming::Atm), 16, None),
    ("bridged-vcmux", Some(CakeFraming::Atm), 24, None),
    ("bridged-llcsnap", Some(CakeFraming::Atm), 32, None),
    ("pppoa-vcmux", Some(CakeFraming::Atm), 10, None),
    ("pppoa-llc", Some(CakeFraming::Atm), 14, None),
    ("pppoe-vcmux", Some(CakeFraming::Atm), 32, None),
    ("pppoe-llcsnap", Some(CakeFraming::Atm), 40, None),
    ("pppoe-ptm", Some(CakeFraming::Ptm), 30, None),
    ("bridged-ptm", Some(CakeFraming::Ptm), 22, None),
    ("ethernet", None, 38, Some(84)),
    ("ether-vlan", None, 4, None),
    ("docsis", Some(CakeFraming::None), 18, Some(64)),
];

/// What tc gathers while it reads.
#[derive(Default)]
struct Gathered {
    params: CakeParams,
    unlimited: bool,
    preset: Option<&'static str>,
}

impl Take for Gathered {
    fn option(
        &mut self,
        reader: &Reader<'_>,
        option: &'static OptionSpec,
        _word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal> {
        if option.value == ValueKind::Flag {
            return self.flag(option.key).map_err(|refusal| refusal.at(words.last()));
        }
        let text = words.need()?;
        self.value(reader, option.key, text).map_err(|refusal| refusal.at(words.last()))
    }
}

impl Gathered {
    /// A word that takes a value.
    fn value(&mut self, reader: &Reader<'_>, key: &'static str, text: &str) -> Result<(), Refusal> {
        let params = &mut self.params;
        let remedy = |takes: &str| format!("{key} takes {takes}; \"{text}\" is not one.");
        let illegal = |takes: &str| Refusal::new(1, format!("Illegal \"{key}\"")).remedy(remedy(takes));
        let wrong = |takes: &str| {
            Refusal::new(1, format!("Illegal value for \"{key}\": \"{text}\"")).remedy(remedy(takes))
        };
        match key {
            "bandwidth" => {
                let rate = rate_by(text, reader.env.tc);
                params.bandwidth = Some(rate.ok_or_else(|| illegal("a rate such as 20mbit"))?);
                params.autorate = Some(false);
                self.unlimited = false;
            }
            "rtt" => {
                let us = reader.time(text).map_err(|_| illegal("a time such as 50ms"))?;
                params.rtt_us = Some(us);
                params.target_us = Some((us / 20).max(1));
            }
            "overhead" => {
                params.overhead = Some(within(key, text, -64..=256)?);
            }
            "mpu" => params.mpu = Some(within(key, text, 0..=256)? as u32),
            "memlimit" => {
                params.memory_limit = Some(parse_size(text).ok_or_else(|| wrong("an amount such as 4m"))?)
            }
            _ => params.fwmark = Some(u32_in(text, 0).ok_or_else(|| wrong("a mask such as 0xf"))?),
        }
        Ok(())
    }

    /// A keyword without a value.
    fn flag(&mut self, key: &'static str) -> Result<(), Refusal> {
        let params = &mut self.params;
        if let Some((_, rtt, target)) = PRESETS.iter().find(|(name, ..)| *name == key) {
            if let Some(first) = self.preset {
                return Err(
                    Refusal::duplicate(key, first).remedy("One round-trip time holds: keep one of them.")
                );
            }
            self.preset = Some(key);
            (params.rtt_us, params.target_us) = (Some(*rtt), Some(*target));
        } else if let Some(tins) = CakeTins::ALL.into_iter().find(|tins| tins.name() == key) {
            params.tins = Some(tins);
        } else if let Some(flows) = CakeFlows::ALL.into_iter().find(|flows| flows.name() == key) {
            params.flows = Some(flows);
        } else if let Some((_, cut, bytes, mpu)) = FRAMINGS.iter().find(|(name, ..)| *name == key) {
            params.framing = cut.or(params.framing);
            params.overhead = Some(params.overhead.unwrap_or(0) + bytes);
            params.mpu = mpu.or(params.mpu);
        } else {
            self.switch(key);
        }
        Ok(())
    }

    fn switch(&mut self, key: &str) {
        let params = &mut self.params;
        match key {
            "unlimited" => {
                (params.bandwidth, params.autorate) = (Some(Rate(0)), Some(false));
                self.unlimited = true;
            }
            "autorate-ingress" => params.autorate = Some(true),
            "nat" | "nonat" => params.nat = Some(key == "nat"),
            "wash" | "nowash" => params.wash = Some(key == "wash"),
            "split-gso" | "no-split-gso" => params.split_gso = Some(key == "split-gso"),
            "ingress" | "egress" => params.ingress = Some(key == "ingress"),
            "ack-filter" => params.ack_filter = Some(CakeAckFilter::On),
            "ack-filter-aggressive" => params.ack_filter = Some(CakeAckFilter::Aggressive),
            "no-ack-filter" => params.ack_filter = Some(CakeAckFilter::Off),
            "atm" => params.framing = Some(CakeFraming::Atm),
            "ptm" => params.framing = Some(CakeFraming::Ptm),
            "noatm" => params.framing = Some(CakeFraming::None),
            "raw" => (params.framing, params.overhead, params.raw) = (Some(CakeFraming::None), Some(0), true),
            "conservative" => (params.framing, params.overhead) = (Some(CakeFraming::Atm), Some(48)),
            // `via-ethernet` has no effect any more.
            _ => {}
        }
    }

    /// What tc sends: for some options 0 means that none was given.
    fn finish(self) -> CakeParams {
        let unlimited = self.unlimited;
        let value_of = |value: Option<u32>| value.filter(|value| *value > 0);
        CakeParams {
            bandwidth: self.params.bandwidth.filter(|rate| rate.0 > 0 || unlimited),
            rtt_us: value_of(self.params.rtt_us),
            mpu: value_of(self.params.mpu),
            memory_limit: value_of(self.params.memory_limit),
            fwmark: value_of(self.params.fwmark),
            ..self.params
        }
    }
}

fn within(key: &str, text: &str, range: std::ops::RangeInclusive<i32>) -> Result<i32, Refusal> {
    let (least, most) = (range.start(), range.end());
    i32_in(text, 0).filter(|value| range.contains(value)).ok_or_else(|| Refusal {
        // tc writes the end of line as two letters.
        stderr: format!("Illegal \"{key}\", valid range is {least} to {most}\\n"),
        code: 1,
        word: None,
        at_once: false,
        remedy: Some(format!("{key} takes whole bytes from {least} to {most}; \"{text}\" is not of them.")),
    })
}

/// The parameters in force.
fn show(params: &CakeParams, iec: bool, entry: &mut Entry) {
    match params.bandwidth {
        Some(rate) if rate.0 > 0 => {
            entry.number("bandwidth", rate.0, &format!("bandwidth {} ", print_rate(rate, iec)))
        }
        _ => entry.word("bandwidth", "unlimited"),
    }
    if params.autorate == Some(true) {
        entry.say("autorate-ingress ");
        entry.member("autorate", Json::text("autorate-ingress"));
    }
    named(entry, "diffserv", params.tins.unwrap_or_default().name());
    named(entry, "flowmode", params.flows.unwrap_or_default().name());
    let nat = params.nat == Some(true);
    switch(entry, "nat", nat, if nat { "nat " } else { "nonat " });
    let wash = params.wash == Some(true);
    switch(entry, "wash", wash, if wash { "wash " } else { "nowash " });
    let ingress = params.ingress == Some(true);
    switch(entry, "ingress", ingress, if ingress { "ingress " } else { "" });
    let filter = params.ack_filter.unwrap_or_default();
    entry.say(&format!("{} ", filter.name()));
    let how = match filter {
        CakeAckFilter::Off => "disabled",
        CakeAckFilter::On => "enabled",
        CakeAckFilter::Aggressive => "aggressive",
    };
    entry.member("ack-filter", Json::text(how));
    let split = params.split_gso == Some(true);
    switch(entry, "split_gso", split, if split { "split-gso " } else { "no-split-gso " });
    let rtt = params.rtt_us.unwrap_or(0);
    entry.number("rtt", rtt, &format!("rtt {} ", print_time(rtt)));
    show_framing(params, entry);
}

fn named(entry: &mut Entry, key: &'static str, word: &str) {
    entry.say(&format!("{word} "));
    entry.member(key, Json::text(word));
}

fn switch(entry: &mut Entry, key: &'static str, on: bool, word: &str) {
    entry.say(word);
    entry.member(key, Json::Bool(on));
}

fn show_framing(params: &CakeParams, entry: &mut Entry) {
    switch(entry, "raw", params.raw, if params.raw { "raw " } else { "" });
    let cut = params.framing.unwrap_or_default();
    if cut != CakeFraming::None || !params.raw {
        entry.say(&format!("{} ", cut.name()));
        entry.member("atm", Json::text(cut.name()));
    }
    let overhead = params.overhead.unwrap_or(0);
    entry.number("overhead", overhead, &format!("overhead {overhead} "));
    if let Some(mpu) = params.mpu.filter(|mpu| *mpu > 0) {
        entry.number("mpu", mpu, &format!("mpu {mpu} "));
    }
    if let Some(bytes) = params.memory_limit.filter(|bytes| *bytes > 0) {
        entry.size("memlimit", bytes, "memlimit {} ");
    }
    let mark = params.fwmark.unwrap_or(0);
    if mark > 0 {
        entry.say(&format!("fwmark {mark:#x} "));
    }
    entry.member("fwmark", Json::text(if mark > 0 { format!("{mark:#x}") } else { "0".into() }));
}

/// The counters: those of the whole, then a table of the tins.
fn show_stats(stats: &CakeStats, tins: CakeTins, flags: &ShowFlags, entry: &mut Entry) {
    let iec = flags.iec;
    entry.number(
        "memory_used",
        stats.memory_used,
        &format!(" memory used: {}", entry.amount(stats.memory_used)),
    );
    entry.number("memory_limit", stats.memory_limit, &format!(" of {}\n", entry.amount(stats.memory_limit)));
    let capacity = format!(" capacity estimate: {}\n", print_rate(stats.capacity, iec));
    entry.number("capacity_estimate", stats.capacity.0, &capacity);
    let (least, most) = stats.network_sizes;
    entry.number("min_network_size", least, &format!(" min/max network layer size: {least:>12}"));
    entry.number("max_network_size", most, &format!(" /{most:>8}\n"));
    let (least, most) = stats.adjusted_sizes;
    entry.number("min_adj_size", least, &format!(" min/max overhead-adjusted size: {least:>8}"));
    entry.number("max_adj_size", most, &format!(" /{most:>8}\n"));
    if flags.tc.has(TcChange::CakeWords) {
        // Queues that share a rate, of a device that has several: there are none.
        entry.number("active_queues", 0, &format!(" active queues: {:>25}\n", 0));
    }
    let offset = stats.header_offset;
    entry.number("avg_hdr_offset", offset, &format!(" average network hdr offset: {offset:>12}\n\n"));
    entry.say(&table(stats, tins, iec));
    entry.member("tins", Json::List(stats.tins.iter().map(tin_members).collect()));
}

/// A row of the table of tins: its heading, and the value under each tin.
type Row = (&'static str, fn(&CakeTinStats, bool) -> String);

const ROWS: [Row; 20] = [
    ("thresh", |tin, iec| print_rate(tin.threshold, iec)),
    ("target", |tin, _| print_time(tin.target_us)),
    ("interval", |tin, _| print_time(tin.interval_us)),
    ("pk_delay", |tin, _| print_time(tin.peak_delay_us)),
    ("av_delay", |tin, _| print_time(tin.average_delay_us)),
    ("sp_delay", |tin, _| print_time(tin.base_delay_us)),
    ("backlog", |tin, _| print_size(tin.backlog)),
    ("pkts", |tin, _| tin.packets.to_string()),
    ("bytes", |tin, _| tin.bytes.to_string()),
    ("way_inds", |tin, _| tin.way_hits.to_string()),
    ("way_miss", |tin, _| tin.way_misses.to_string()),
    ("way_cols", |tin, _| tin.way_collisions.to_string()),
    ("drops", |tin, _| tin.drops.to_string()),
    ("marks", |tin, _| tin.marks.to_string()),
    ("ack_drop", |tin, _| tin.ack_drops.to_string()),
    ("sp_flows", |tin, _| tin.sparse_flows.to_string()),
    ("bk_flows", |tin, _| tin.bulk_flows.to_string()),
    ("un_flows", |tin, _| tin.unresponsive_flows.to_string()),
    ("max_len", |tin, _| tin.longest.to_string()),
    ("quantum", |tin, _| tin.quantum.to_string()),
];

fn table(stats: &CakeStats, tins: CakeTins, iec: bool) -> String {
    let mut out = " ".repeat(10);
    for at in 0..stats.tins.len() {
        let label = match tins.labels().and_then(|labels| labels.get(at)) {
            Some(label) => (*label).to_owned(),
            None => format!("Tin {at}"),
        };
        out.push_str(&format!(" {label:>12}"));
    }
    out.push('\n');
    for (heading, value) in ROWS {
        out.push_str(&format!("  {heading:<8}"));
        for tin in &stats.tins {
            out.push_str(&format!(" {:>12}", value(tin, iec)));
        }
        out.push('\n');
    }
    out.push('\n');
    out
}

fn tin_members(tin: &CakeTinStats) -> Json {
    let numbers: [(&'static str, u64); 20] = [
        ("threshold_rate", tin.threshold.0),
        ("sent_bytes", tin.bytes),
        ("backlog_bytes", tin.backlog.into()),
        ("target_us", tin.target_us.into()),
        ("interval_us", tin.interval_us.into()),
        ("peak_delay_us", tin.peak_delay_us.into()),
        ("avg_delay_us", tin.average_delay_us.into()),
        ("base_delay_us", tin.base_delay_us.into()),
        ("sent_packets", tin.packets.into()),
        ("way_indirect_hits", tin.way_hits.into()),
        ("way_misses", tin.way_misses.into()),
        ("way_collisions", tin.way_collisions.into()),
        ("drops", tin.drops.into()),
        ("ecn_mark", tin.marks.into()),
        ("ack_drops", tin.ack_drops.into()),
        ("sparse_flows", tin.sparse_flows.into()),
        ("bulk_flows", tin.bulk_flows.into()),
        ("unresponsive_flows", tin.unresponsive_flows.into()),
        ("max_pkt_len", tin.longest.into()),
        ("flow_quantum", tin.quantum.into()),
    ];
    Json::Object(numbers.into_iter().map(|(key, number)| (key, Json::number(number))).collect())
}

/// A flow's state.
fn show_flow(flow: &CakeFlowStats, entry: &mut Entry) {
    entry.number("deficit", flow.deficit, &format!("  deficit {}", flow.deficit));
    entry.number("count", flow.count, &format!(" count {}", flow.count));
    if flow.dropping {
        entry.say(" dropping");
        entry.member("dropping", Json::Bool(true));
        let us = flow.drop_next_us as i32;
        let sign = if us < 0 { "-" } else { "" };
        entry.number("drop_next", us, &format!(" drop_next {sign}{}", print_time(us.unsigned_abs())));
    }
    entry.number("blue_prob", flow.blue_probability, &format!(" blue_prob {}", flow.blue_probability));
    if flow.blue_probability > 0 {
        let us = flow.blue_timer_us;
        entry.number("blue_timer", us, &format!(" blue_timer {}", print_time(us)));
    }
    entry.say("\n");
}

//! htb.

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values, rate_spec};
use crate::tc::show::Entry;
use crate::tc::words::Words;
use crate::units::{
    SHORTER_BURST, bucket_by, burst_out_of_range, bytes_of, default_burst, fine_bytes_of, print_rate,
    print_size,
};
use crate::{TcChange, TcVersion};
use tidegate_policy::dump::{ClassDump, QdiscDump, Xstats};
use tidegate_policy::{ClassParams, HtbClassParams, HtbParams, LinkLayer, QdiscParams, RateSpec, Ticks};

pub(super) struct Htb;

impl Syntax for Htb {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        read(&values).map(|params| Some(QdiscParams::Htb(params)))
    }

    fn class(&self, reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ClassParams, Refusal> {
        let values = reader.class_options(words)?;
        read_class(&values, reader.env.tc).map(ClassParams::Htb)
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Htb(params) = &dump.params {
            show(params, &dump.xstats, flags, entry);
        }
    }

    fn show_class(&self, dump: &ClassDump, flags: &ShowFlags, entry: &mut Entry) {
        if let ClassParams::Htb(params) = &dump.params {
            show_class(params, &dump.xstats, flags, entry);
        }
    }

    fn show_class_stats(&self, dump: &ClassDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::HtbClass { lends, borrows, giants, tokens, ctokens, .. } = &dump.xstats {
            entry.number("lended", *lends, &format!(" lended: {lends}"));
            entry.number("borrowed", *borrows, &format!(" borrowed: {borrows}"));
            entry.number("giants", *giants, &format!(" giants: {giants}\n"));
            entry.number("tokens", *tokens, &format!(" tokens: {tokens}"));
            entry.number("ctokens", *ctokens, &format!(" ctokens: {ctokens}\n\n"));
        }
    }
}

fn read(values: &Values) -> Result<HtbParams, Refusal> {
    if values.has("offload") {
        return Err(Refusal::new(2, "Error: hw-tc-offload ethtool feature flag must be on.")
            .remedy("No device of tidegate shapes in hardware: leave `offload` out."));
    }
    Ok(HtbParams {
        default: values.number("default").unwrap_or(0),
        r2q: values.number("r2q").unwrap_or(10),
        // The greatest number is what tc means by none given.
        direct_qlen: values.number("direct_qlen").filter(|packets| *packets != u32::MAX),
    })
}

fn read_class(values: &Values, tc: TcVersion) -> Result<HtbClassParams, Refusal> {
    let rate = rate_spec(values, "rate");
    if rate.rate.0 == 0 {
        return Err(Refusal::new(1, "\"rate\" is required.").remedy(
            "Every class of htb needs its guaranteed rate, at least 8bit: htb rate 1mbit ceil 2mbit",
        ));
    }
    let ceil = match values.rate("ceil") {
        Some(ceil) if ceil.0 > 0 => RateSpec { rate: ceil, ..rate },
        _ => rate,
    };
    let mtu = values.number("mtu").unwrap_or(1600);
    let burst = |key: &str, spec: &RateSpec| {
        values.number(key).filter(|bytes| *bytes > 0).unwrap_or_else(|| default_burst(spec.rate, mtu))
    };
    let bucket = |rate, bytes| bucket_by(rate, bytes, true, tc);
    let Some(buffer) = bucket(rate.rate, burst("burst", &rate)) else {
        return Err(Refusal::new(1, burst_out_of_range("htb")).remedy(SHORTER_BURST));
    };
    Ok(HtbClassParams {
        rate,
        ceil,
        buffer,
        cbuffer: bucket(ceil.rate, burst("cburst", &ceil)).unwrap_or(Ticks(u32::MAX)),
        quantum: values.number("quantum").unwrap_or(0),
        prio: values.number("prio").unwrap_or(0),
    })
}

fn show(params: &HtbParams, xstats: &Xstats, flags: &ShowFlags, entry: &mut Entry) {
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

fn show_class(params: &HtbClassParams, xstats: &Xstats, flags: &ShowFlags, entry: &mut Entry) {
    let level = match xstats {
        Xstats::HtbClass { level, .. } => *level,
        _ => 0,
    };
    if level == 0 {
        entry.number("prio", params.prio, &format!("prio {} ", params.prio));
        if flags.details {
            // tc shows it as a signed number.
            let quantum = params.quantum as i32;
            entry.number("quantum", quantum, &format!("quantum {quantum} "));
        }
    }
    let rate = |key, spec: &RateSpec, entry: &mut Entry| {
        entry.number(key, spec.rate.0, &format!("{key} {} ", print_rate(spec.rate, flags.iec)));
    };
    rate("rate", &params.rate, entry);
    if params.rate.overhead > 0 {
        entry.number("overhead", params.rate.overhead, &format!("overhead {} ", params.rate.overhead));
    }
    rate("ceil", &params.ceil, entry);
    if params.rate.linklayer == LinkLayer::Atm || flags.details {
        entry.word("linklayer", params.rate.linklayer.name());
    }
    bucket("burst", &params.rate, params.buffer, flags, entry);
    bucket("cburst", &params.ceil, params.cbuffer, flags, entry);
    if flags.details {
        entry.number("level", level, &format!("level {level} "));
    }
    if flags.raw {
        entry.say(&format!("buffer [{:08x}] cbuffer [{:08x}] ", params.buffer.0, params.cbuffer.0));
        entry.member("buffer", Json::number(params.buffer.0));
        entry.member("cbuffer", Json::number(params.cbuffer.0));
    }
}

/// The rate's or the ceiling's bucket. Both have the same `mpu`, which JSON names once.
fn bucket(key: &'static str, spec: &RateSpec, ticks: Ticks, flags: &ShowFlags, entry: &mut Entry) {
    let bytes = match flags.tc.has(TcChange::FineTicks) {
        true => fine_bytes_of(spec.rate, ticks),
        false => bytes_of(spec.rate, ticks),
    };
    let is_close = flags.tc.has(TcChange::HtbWords);
    if !flags.details {
        let blank = if is_close && key == "cburst" && !flags.raw { "" } else { " " };
        return entry.size(key, bytes, &format!("{key} {{}}{blank}"));
    }
    let mpu = print_size(spec.mpu.into());
    let blank = if is_close { "" } else { " " };
    entry.size(key, bytes, &format!("{key} {{}}/1{blank}mpu {mpu} "));
    if key == "burst" {
        entry.member("mpu", Json::number(spec.mpu));
    }
}

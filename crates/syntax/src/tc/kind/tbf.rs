//! tbf.

use super::row::Syntax;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values, rate_spec};
use crate::tc::show::Entry;
use crate::tc::spelling::{Spelling, is_listed_as, place_of};
use crate::tc::words::Words;
use crate::units::{
    SHORTER_BURST, bucket_by, burst_out_of_range, bytes_of, fine_bytes_of, fine_ticks_of, limit_of_latency,
    parse_rate, parse_size, parse_time, print_rate, print_time, ticks_of, us_of,
};
use crate::{Refusal, TcChange};
use tidegate_packet::Rate;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{LinkLayer, QdiscParams, RateSpec, TbfParams, Ticks};

pub(super) struct Tbf;

impl Syntax for Tbf {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        read(&values, reader).map(|params| Some(QdiscParams::Tbf(params)))
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Tbf(params) = &dump.params {
            show(params, flags, entry);
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling =
            Spelling { names: &[("lat", "latency"), ("minburst", "mtu")], ..Spelling::SAME };
        &SPELLING
    }

    fn settle(&self, args: &mut Vec<String>) {
        let shown = ["burst", "mtu"].map(|key| size_of(args, key).unwrap_or(0));
        unframe(args);
        unround(args, shown);
    }
}

fn read(values: &Values, reader: &Reader<'_>) -> Result<TbfParams, Refusal> {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    let rate = rate_spec(values, "rate");
    let burst = given("burst").unwrap_or(0);
    let peak = values.rate("peakrate").filter(|rate| rate.0 > 0).map(|_| rate_spec(values, "peakrate"));
    let mtu = given("mtu").unwrap_or(0);
    let mut missing = Vec::new();
    if rate.rate.0 == 0 {
        missing.push("tbf: the \"rate\" parameter is mandatory.");
    }
    if burst == 0 {
        missing.push("tbf: the \"burst\" parameter is mandatory.");
    }
    if peak.is_some() && mtu == 0 {
        missing.push("tbf: when \"peakrate\" is specified, \"mtu\" must also be specified.");
    }
    if given("limit").is_none() && given("latency").is_none() {
        missing.push("tbf: either \"limit\" or \"latency\" is required.");
    }
    if !missing.is_empty() {
        let lacks_mtu = peak.is_some() && mtu == 0 && missing.len() == 1;
        return Err(Refusal::new(1, missing.join("\n")).then(&reader.usage()).remedy(match lacks_mtu {
            true => {
                "A peak rate needs mtu, the bytes that may leave at once: at least a frame, such as mtu \
                1540; \
                what it is for is said by peakrate, so leave that out if one rate is enough"
            }
            false => {
                "A token bucket needs rate, burst, and limit or latency: tbf rate 1mbit burst 10k latency \
                50ms"
            }
        }));
    }
    let limit = given("limit").unwrap_or_else(|| {
        let latency = given("latency").unwrap_or(0);
        limit_of_latency(&rate, burst, peak.as_ref().map(|peak| (peak, mtu)), latency)
    });
    let Some(buffer) = bucket_by(rate.rate, burst, false, reader.env.tc) else {
        return Err(Refusal::new(1, burst_out_of_range("tbf")).remedy(SHORTER_BURST));
    };
    // The peak's bucket wraps in all releases.
    let ticks = |rate, bytes| match reader.env.tc.has(TcChange::FineTicks) {
        true => fine_ticks_of(rate, bytes, false),
        false => ticks_of(rate, bytes),
    };
    Ok(TbfParams {
        rate,
        peak,
        limit,
        burst,
        peak_burst: if peak.is_some() { mtu } else { 0 },
        buffer,
        peak_buffer: peak.map_or_else(Default::default, |peak| ticks(peak.rate, mtu)),
    })
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
        entry.say(&format!("{key} {}/1 mpu {} ", entry.amount(bytes), entry.amount(mpu.into())));
        entry.member(key, Json::text(format!("{}/1", entry.amount(bytes))));
        // tc calls the peak's `mpu` too, so that one of both is overwritten.
        entry.member(if key == "mtu" { "peak_mpu" } else { "mpu" }, Json::number(mpu));
    } else {
        entry.size(plain, bytes, &format!("{plain} {{}} "));
    }
    if flags.raw {
        entry.say(&format!("[{ticks:08x}] "));
    }
}

fn show(params: &TbfParams, flags: &ShowFlags, entry: &mut Entry) {
    let rate = params.rate.rate;
    entry.number("rate", rate.0, &format!("rate {} ", print_rate(rate, flags.iec)));
    let is_fine = flags.tc.has(TcChange::FineTicks);
    let bytes_of = if is_fine { fine_bytes_of } else { bytes_of };
    let us_of = |ticks: Ticks| if is_fine { f64::from(ticks.0) * 0.064 } else { f64::from(us_of(ticks)) };
    bucket("burst", "burst", bytes_of(rate, params.buffer), params.rate.mpu, params.buffer.0, flags, entry);
    let wait = |rate: Rate, bucket| 1e6 * (f64::from(params.limit) / rate.0 as f64) - us_of(bucket);
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

/// The kernel lists a bucket with the overhead and the cells of a packet of its size: takes them off.
fn unframe(args: &mut [String]) {
    let overhead = place_of(args, "overhead").and_then(|at| args[at].parse().ok()).unwrap_or(0_u32);
    let is_atm = place_of(args, "linklayer").is_some_and(|at| args[at] == "atm");
    for key in ["burst", "mtu"] {
        let Some(at) = place_of(args, key).filter(|_| is_atm || overhead > 0) else { continue };
        let Some(shown) = parse_size(&args[at]) else { continue };
        let bytes = if is_atm { shown.div_ceil(53) * 48 } else { shown };
        args[at] = format!("{}b", bytes.saturating_sub(overhead));
    }
}

fn size_of(args: &[String], key: &str) -> Option<u32> {
    parse_size(&args[place_of(args, key)?])
}

/// The latency is shown to the microsecond or to three digits, and the limit that it comes to has more: finds
/// the one that is shown as this. `shown` are the two buckets as they are listed.
fn unround(args: &mut [String], [shown_burst, shown_mtu]: [u32; 2]) {
    let rate_of = |key: &str| place_of(args, key).and_then(|at| parse_rate(&args[at]));
    let Some(at) = place_of(args, "latency") else { return };
    let given = (rate_of("rate").filter(|rate| rate.0 > 0), size_of(args, "burst"), parse_time(&args[at]));
    let (Some(rate), Some(burst), Some(shown)) = given else { return };
    let text = args[at].clone();
    let spec = |rate: Rate| RateSpec { rate, ..RateSpec::default() };
    let peak = rate_of("peakrate").zip(size_of(args, "mtu")).map(|(rate, mtu)| (spec(rate), mtu));
    let wait = |limit: u32, rate: Rate, bucket: u32| {
        1e6 * (f64::from(limit) / rate.0 as f64) - f64::from(us_of(ticks_of(rate, bucket)))
    };
    let listed = |us: &u32| {
        let limit = limit_of_latency(&spec(rate), burst, peak.as_ref().map(|(peak, mtu)| (peak, *mtu)), *us);
        let slow = wait(limit, rate, shown_burst);
        let fast = peak.as_ref().map_or(slow, |(peak, _)| wait(limit, peak.rate, shown_mtu));
        is_listed_as(slow.max(fast) as i64 as u32, shown, &text)
    };
    // What a bucket is listed longer, and less than a byte more.
    let us_of_bytes = |bytes: u32| (1e6 * f64::from(bytes) / rate.0 as f64) as u32 + 1;
    let more = us_of_bytes(shown_burst.saturating_sub(burst)) + us_of_bytes(1);
    if let Some(us) = (shown..=shown.saturating_add(more)).find(listed).filter(|us| *us != shown) {
        args[at] = format!("{us}us");
    }
}

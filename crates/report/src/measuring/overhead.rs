//! What a line adds to each packet, as text and JSON.

use crate::json::laid_out;
use crate::numbers::{rate, span};
use crate::table::{Align, Table};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tidegate_measure::capacity::Way;
use tidegate_measure::overhead::{Coding, Document, Line, Size, Sweep, Words};

/// The form's number; it changes when a member changes its meaning or goes away.
const FORM: u64 = 1;
/// Sizes that are shown.
const SHOWN: usize = 8;

/// The terminal's view.
pub fn text(document: &Document) -> String {
    let mut out = String::new();
    if let Some(why) = &document.swept.cut {
        let _ = writeln!(out, "Only a part was measured: {why}.\n");
    }
    let mut ways = Way::BOTH.into_iter().filter_map(|way| Some((way, document.swept.of(way)?))).peekable();
    if ways.peek().is_none() {
        out.push_str("Nothing arrived, so nothing can be told.\n");
    }
    for (way, sweep) in ways {
        let _ = writeln!(out, "{}: {}", way.name(), sentence(sweep));
        if let Some(line) = &sweep.line {
            words(&mut out, &Words::of(line));
            let _ = write!(out, "\n{}", table(&sweep.sizes, line));
        }
        for doubt in &sweep.doubts {
            let _ = writeln!(out, "doubt: {doubt}");
        }
        out.push('\n');
    }
    for doubt in &document.doubts {
        let _ = writeln!(out, "doubt: {doubt}");
    }
    let _ = writeln!(out, "Again: {}", document.again);
    out
}

/// The coding, as it is said.
fn coding(coding: Coding) -> String {
    match coding {
        Coding::Bytes => "byte by byte (Ethernet, cable, fibre, a shaper)".into(),
        Coding::Ptm => "PTM, 65 octets for each 64 (VDSL2)".into(),
        Coding::Atm => "ATM cells, 53 bytes for each 48 (ADSL)".into(),
        Coding::Steps(step) => format!("in steps of {step} bytes (a shaper's table of rates)"),
    }
}

fn sentence(sweep: &Sweep) -> String {
    let Some(line) = &sweep.line else { return "too little was measured to tell anything".into() };
    let (low, high) = line.between;
    let mut told = format!(
        "{} bytes over IP ({low} to {high} with 95 % confidence), {}, {} on the line ({} to {})",
        line.overhead,
        coding(line.coding),
        rate(line.bits_per_second),
        rate(line.rate_between.0),
        rate(line.rate_between.1)
    );
    if let Some(floor) = line.floor {
        let (unit, packets) = (floor.bytes, floor.packets_per_second);
        told += &match floor.is_unit {
            true => format!(
                "; nothing is shorter than {unit:.0} bytes (or no more than {packets:.0} packets pass in a second)"
            ),
            false => format!("; at most {packets:.0} packets in a second"),
        };
    }
    told
}

fn words(out: &mut String, words: &Words) {
    if let Some(name) = words.known_as {
        let _ = writeln!(out, "  cake knows it as       {name}");
    }
    let _ = writeln!(out, "  cake                   {}", words.cake);
    let _ = writeln!(out, "  tc on eth0             {}", words.tc);
    let _ = writeln!(out, "  tc on ppp0, a tunnel   {}", words.tc_without_header);
    if let Some(left_out) = &words.left_out {
        let _ = writeln!(out, "  {left_out}");
    }
}

/// What a packet takes according to the line, ns.
fn explained(line: &Line, ip: u32) -> f64 {
    let limit = line.packets_per_second().map_or(0.0, |packets| 1e9 / packets);
    (f64::from(line.on_wire(ip)) * 8e9 / line.bits_per_second).max(limit)
}

/// Some of the sizes, from the smallest to the largest.
fn table(sizes: &[Size], line: &Line) -> Table {
    let mut sorted = sizes.to_vec();
    sorted.sort_by_key(|size| size.ip);
    sorted.dedup_by_key(|size| size.ip);
    let left = |name: &str| (name.to_owned(), Align::Right);
    let mut table = Table::new(["IP packet", "on the line", "a second", "took", "explained"].map(left));
    let step = sorted.len().div_ceil(SHOWN).max(1);
    let last = sorted.len().saturating_sub(1);
    for (_, size) in sorted.iter().enumerate().filter(|(n, _)| n % step == 0 || *n == last) {
        table.row([
            format!("{} B", size.ip),
            format!("{} B", line.on_wire(size.ip)),
            format!("{:.0}", 1e9 / size.ns),
            span(size.ns as u64),
            span(explained(line, size.ip) as u64),
        ]);
    }
    table
}

/// As JSON: times in ns, rates in bits per second, sizes in bytes of IP packets.
pub fn to_json(document: &Document) -> String {
    let sweep = |way: Way| document.swept.of(way).map(write_sweep);
    let value = json!({
        "tidegate_overhead": FORM, "version": document.version, "again": document.again, "began_ns": document.began_ns,
        "host": document.host, "partial": document.swept.cut, "up": sweep(Way::Up), "down": sweep(Way::Down),
        "doubts": document.doubts,
    });
    laid_out(&value)
}

fn write_sweep(sweep: &Sweep) -> Value {
    let sizes: Vec<Value> =
        sweep.sizes.iter().map(|size| json!({"ip": size.ip, "ns": size.ns, "error": size.error})).collect();
    let left_out: Vec<Value> = sweep.left_out.iter().map(|(ip, why)| json!({"ip": ip, "why": why})).collect();
    json!({"line": sweep.line.as_ref().map(write_line), "doubts": sweep.doubts, "sizes": sizes, "left_out": left_out})
}

fn write_line(line: &Line) -> Value {
    let words = Words::of(line);
    let step = match line.coding {
        Coding::Steps(step) => Some(step),
        _ => None,
    };
    json!({
        "overhead": line.overhead, "overhead_between": [line.between.0, line.between.1],
        "coding": line.coding.name(), "step": step,
        "bits_per_second": line.bits_per_second, "bits_per_second_between": [line.rate_between.0, line.rate_between.1],
        "smallest_unit": line.floor.filter(|floor| floor.is_unit).map(|floor| floor.bytes),
        "packets_per_second": line.packets_per_second(),
        "rival": line.rival.map(|(coding, overhead)| json!({"coding": coding.name(), "overhead": overhead})),
        "error": line.error,
        "words": {
            "cake": words.cake, "tc": words.tc, "tc_without_header": words.tc_without_header,
            "known_as": words.known_as, "left_out": words.left_out,
        },
    })
}

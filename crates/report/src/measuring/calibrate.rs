//! The rates at which delay does not rise, as text and JSON.

use crate::table::{Align, Table};
use std::fmt::Write as _;
use tidegate_measure::calibrate::{Calibration, CalibrationDocument, RateTrial};
use tidegate_measure::capacity::PathDirection;
use tidegate_measure::numbers::{format_duration, percent, rate};

/// The terminal's view.
pub fn text(document: &CalibrationDocument) -> String {
    let found = &document.found;
    let mut out = String::new();
    if let Some(why) = &found.cut {
        let _ = writeln!(out, "Only a part was measured: {why}.\n");
    }
    let ways: Vec<(PathDirection, &Calibration)> =
        PathDirection::BOTH.into_iter().filter_map(|way| Some((way, found.of(way)?))).collect();
    if ways.is_empty() {
        out.push_str("Nothing arrived, so nothing was measured.\n");
    }
    for (way, one) in &ways {
        if one.steps.is_empty() {
            let _ = writeln!(out, "{}: no rate was tried\n", way.name());
            continue;
        }
        let _ = writeln!(
            out,
            "{}: delay does not rise up to {} of IP packets of {} bytes ({} to {}); a flood gets {} through",
            way.name(),
            rate(one.bits_per_second),
            one.packet,
            rate(one.between.0),
            rate(one.between.1),
            rate(one.capacity.bits_per_second)
        );
        let _ = write!(out, "\n{}", table(&one.steps));
        one.notes.iter().for_each(|note| {
            let _ = writeln!(out, "note: {note}");
        });
        one.caveats.iter().for_each(|caveat| {
            let _ = writeln!(out, "caveat: {caveat}");
        });
        out.push('\n');
    }
    if let Some((up, down)) = found.together {
        let _ = writeln!(
            out,
            "Both at once with this margin, the delay rises by {} up and {} down (95 %).",
            format_duration(up as u64),
            format_duration(down as u64)
        );
    }
    found.caveats.iter().chain(&document.caveats).for_each(|caveat| {
        let _ = writeln!(out, "caveat: {caveat}");
    });
    let sustained: Vec<&(PathDirection, &Calibration)> =
        ways.iter().filter(|(_, one)| one.bits_per_second > 0.0).collect();
    if !sustained.is_empty() {
        let _ = writeln!(out, "To write into a policy, {} below:", percent(document.margin));
        sustained.iter().for_each(|(way, one)| {
            let _ = writeln!(out, "  {:<4} = \"{}\"", way.name(), tc_rate(one.to_write(document.margin)));
        });
    }
    let _ = writeln!(out, "Again: {}", document.again);
    out
}

/// As tc reads it.
fn tc_rate(bits_per_second: f64) -> String {
    format!("{:.0}kbit", (bits_per_second / 1e3).floor())
}

fn table(steps: &[RateTrial]) -> Table {
    let columns = [
        ("tried", Align::Right),
        ("delay", Align::Right),
        ("grew by", Align::Right),
        ("lost", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(columns);
    for step in steps {
        table.row([
            rate(step.bits_per_second),
            format_duration(step.delay_ns as u64),
            format!("{:+.1} ms/s", step.slope * 1e3),
            percent(step.loss),
            if step.sustained { "passed".to_owned() } else { "failed".to_owned() },
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::calibrate::Calibrated;

    fn document(steps: Vec<RateTrial>, bits_per_second: f64, cut: Option<String>) -> CalibrationDocument {
        let up = Calibration {
            bits_per_second,
            between: (bits_per_second, bits_per_second * 1.004),
            packet: 1428,
            steps,
            ..Calibration::default()
        };
        let found = Calibrated { up: Some(up), cut, ..Calibrated::default() };
        CalibrationDocument {
            again: "tidegate calibrate far".into(),
            margin: 0.05,
            found,
            ..CalibrationDocument::default()
        }
    }

    #[test]
    fn options_are_given_as_tc_counts() {
        let step = RateTrial {
            bits_per_second: 5e6,
            sustained: true,
            slope: -0.01,
            delay_ns: 2e6,
            ..RateTrial::default()
        };
        let sentence = text(&document(vec![step], 5e6, None));
        for expected in [
            "up: delay does not rise up to 5.00 Mbit/s",
            "5.00 Mbit/s  2.00 ms  -10.0 ms/s  0.0 %  passed",
            "  up   = \"4790kbit\"\n",
        ] {
            assert!(sentence.contains(expected), "{expected} in\n{sentence}");
        }
    }

    #[test]
    fn what_broke_off_at_once_writes_nothing() {
        let sentence = text(&document(Vec::new(), 0.0, Some("it was stopped".into())));
        assert!(
            sentence.starts_with("Only a part was measured: it was stopped.\n\nup: no rate was tried\n"),
            "{sentence}"
        );
        assert!(!sentence.contains("To write"), "{sentence}");
    }
}

//! A recording of a line, as text.

use crate::table::{Align, Table};
use std::fmt::Write as _;
use tidegate_measure::Durations;
use tidegate_measure::capacity::PathDirection;
use tidegate_measure::numbers::{format_duration, percent_in, rate, size};
use tidegate_measure::record::{DirectionRecording, RecordingDocument};

/// The terminal's view.
pub fn text(document: &RecordingDocument) -> String {
    let recorded = &document.recorded;
    let mut out = String::new();
    if let Some(why) = &recorded.cut {
        let _ = writeln!(out, "Only a part was recorded: {why}.\n");
    }
    let ways: Vec<(PathDirection, &DirectionRecording)> =
        PathDirection::BOTH.into_iter().filter_map(|way| Some((way, recorded.of(way)?))).collect();
    if ways.is_empty() {
        out.push_str("Nothing arrived, so nothing was recorded.\n");
    } else {
        let _ = writeln!(out, "{}", table(&ways));
        let _ = writeln!(
            out,
            "{} of {} were sent. Rates are of packets of {} bytes with their Ethernet header.",
            size(recorded.bytes),
            size(document.budget),
            ways[0].1.packet
        );
    }
    if let Some(round_trip) = recorded.round_trip_ns.filter(|_| !ways.is_empty()) {
        let _ = writeln!(
            out,
            "The delays assume that the least round trip, {}, is as long one way as the other.",
            format_duration(round_trip)
        );
    }
    for (way, one) in &ways {
        for (word, lines) in [("note", &one.notes), ("caveat", &one.caveats)] {
            for line in lines {
                let _ = writeln!(out, "{word}: {}: {line}", way.name());
            }
        }
    }
    recorded.caveats.iter().chain(&document.caveats).for_each(|caveat| {
        let _ = writeln!(out, "caveat: {caveat}");
    });
    let _ = writeln!(out, "Again: {}", document.again);
    out
}

fn table(ways: &[(PathDirection, &DirectionRecording)]) -> Table {
    let columns = [
        ("", Align::Left),
        ("seconds", Align::Right),
        ("mean rate", Align::Right),
        ("lowest", Align::Right),
        ("highest", Align::Right),
        ("delay", Align::Right),
        ("highest", Align::Right),
        ("lost", Align::Right),
    ];
    let mut table = Table::new(columns);
    for (way, one) in ways {
        let rates: Vec<f64> = one.seconds.iter().filter_map(|second| second.bits_per_second).collect();
        let delays = Durations::new(one.seconds.iter().filter_map(|second| second.delay_ns).collect());
        let (sent, lost) = one.losses();
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".into());
        let lowest = rates.iter().copied().reduce(f64::min);
        let highest = rates.iter().copied().reduce(f64::max);
        table.row([
            way.name().to_owned(),
            one.seconds.len().to_string(),
            or_none(one.mean_rate().map(rate)),
            or_none(lowest.map(rate)),
            or_none(highest.map(rate)),
            or_none(delays.percentile(50.0).map(format_duration)),
            or_none(delays.max().map(format_duration)),
            or_none((sent > 0).then(|| percent_in(lost as f64 / sent as f64, 2))),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::record::{LineRecording, RecordedSecond};

    #[test]
    fn a_recording_has_a_row_for_each_direction() {
        let second = |rate: f64| RecordedSecond {
            bits_per_second: Some(rate),
            delay_ns: Some(12_000_000),
            sent: 50,
            lost: 1,
            ..RecordedSecond::default()
        };
        let up = DirectionRecording {
            seconds: vec![second(1e6), second(3e6), RecordedSecond::default()],
            packet: 1442,
            notes: vec!["something".into()],
            caveats: vec!["else".into()],
            ..DirectionRecording::default()
        };
        let recorded = LineRecording {
            up: Some(up),
            bytes: 2_000_000,
            round_trip_ns: Some(24_000_000),
            ..LineRecording::default()
        };
        let document = RecordingDocument {
            again: "tidegate record far".into(),
            budget: 100_000_000,
            recorded,
            caveats: vec!["late".into()],
            ..RecordingDocument::default()
        };
        let shown = text(&document);
        for expected in [
            "up        3  2.00 Mbit/s  1.00 Mbit/s  3.00 Mbit/s  12.0 ms  12.0 ms  2.0 %",
            "2.00 MB of 100 MB were sent. Rates are of packets of 1442 bytes with their Ethernet header.\n",
            "the least round trip, 24.0 ms, is as long one way as the other.\n",
            "note: up: something\ncaveat: up: else\ncaveat: late\nAgain: tidegate record far\n",
        ] {
            assert!(shown.contains(expected), "{expected} in\n{shown}");
        }
    }

    #[test]
    fn nothing_is_said_of_what_did_not_arrive() {
        let cut = LineRecording { cut: Some("it was stopped".into()), ..LineRecording::default() };
        let shown = text(&RecordingDocument { recorded: cut, ..RecordingDocument::default() });
        assert!(
            shown.starts_with("Only a part was recorded: it was stopped.\n\nNothing arrived, so nothing"),
            "{shown}"
        );
        assert!(!shown.contains("round trip") && !shown.contains("were sent"), "{shown}");
    }
}

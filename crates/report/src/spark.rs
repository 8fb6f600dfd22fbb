//! Sparklines for terminals: one line of bars for each series of times.

use crate::table::{clean, width};
use std::fmt::Write as _;
use tidegate_measure::Durations;
use tidegate_measure::numbers::format_duration;

/// The bars, from the lowest to the highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Bars of a line: fewest, most.
const LENGTH: (usize, usize) = (16, 64);
/// Columns of a label at most.
const LABEL: usize = 28;

/// A series of requests.
pub(crate) struct SparkSeries {
    /// What it is.
    pub(crate) label: String,
    /// When each was sent and how long its reply took, in ns; `None`: lost.
    pub(crate) points: Vec<(u64, Option<u64>)>,
}

/// The series below each other on one logarithmic scale, which spans a doubling at least. Each bar is the
/// median of its part of the time until `end`, `×` a part in which every request was lost, a blank one
/// without requests. Above are the words of the marks, where they begin. Empty where there is no room, or
/// nothing to draw.
pub(crate) fn sparklines(
    what: &str,
    series: &[SparkSeries],
    end: u64,
    marks: &[(u64, &str)],
    columns: usize,
) -> String {
    let labels: Vec<String> = series.iter().map(|one| shortened(&clean(one.label.clone()))).collect();
    let beside = labels.iter().map(|label| width(label)).max().unwrap_or(0) + 2;
    let length = columns.saturating_sub(beside).min(LENGTH.1);
    if length < LENGTH.0 || end == 0 {
        return String::new();
    }
    let lines: Vec<Vec<Part>> = series.iter().map(|one| parts(&one.points, end, length)).collect();
    let medians = || {
        lines.iter().flatten().filter_map(|part| if let Part::Median(ns) = part { Some(*ns) } else { None })
    };
    let (Some(low), Some(high)) = (medians().min(), medians().max()) else { return String::new() };
    // Differences that nobody notices do not fill the scale.
    let high = high.max(low.saturating_mul(2));
    let mut out = format!(
        "{what}, medians over time ({} {} to {} {}, logarithmic):\n\n",
        BARS[0],
        format_duration(low),
        BARS[7],
        format_duration(high)
    );
    if !marks.is_empty() {
        let _ = writeln!(out, "{}", ruler(marks, end, length, beside).trim_end());
    }
    for (label, line) in labels.iter().zip(&lines) {
        let bars: String = line.iter().map(|part| part.shown(low, high)).collect();
        let blanks = " ".repeat(beside.saturating_sub(width(label)));
        let _ = writeln!(out, "{}", format!("{label}{blanks}{bars}").trim_end());
    }
    out
}

/// A part of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Nothing,
    Lost,
    Median(u64),
}

impl Part {
    fn shown(self, low: u64, high: u64) -> char {
        match self {
            Part::Nothing => ' ',
            Part::Lost => '×',
            Part::Median(ns) => {
                let log = |ns: u64| (ns.max(1) as f64).ln();
                let share = (log(ns) - log(low)) / (log(high) - log(low)).max(f64::MIN_POSITIVE);
                BARS[((share * 8.0) as usize).min(7)]
            }
        }
    }
}

fn parts(points: &[(u64, Option<u64>)], end: u64, length: usize) -> Vec<Part> {
    let mut within: Vec<(Vec<u64>, usize)> = vec![(Vec::new(), 0); length];
    for &(at, took) in points.iter().filter(|(at, _)| *at < end) {
        let (times, lost) = &mut within[place(at, end, length)];
        match took {
            Some(ns) => times.push(ns),
            None => *lost += 1,
        }
    }
    let part = |(times, lost): (Vec<u64>, usize)| match Durations::new(times).percentile(50.0) {
        Some(median) => Part::Median(median),
        None if lost > 0 => Part::Lost,
        None => Part::Nothing,
    };
    within.into_iter().map(part).collect()
}

/// The part of a moment.
fn place(at: u64, end: u64, length: usize) -> usize {
    let share = u128::from(at) * length as u128 / u128::from(end.max(1));
    usize::try_from(share).unwrap_or(length).min(length - 1)
}

/// The words of the marks, each where it begins; one without room is left out.
fn ruler(marks: &[(u64, &str)], end: u64, length: usize, beside: usize) -> String {
    let mut line = String::new();
    for (at, word) in marks {
        let from = beside + place(*at, end, length);
        let taken = width(&line);
        if (taken == 0 || from > taken) && from + width(word) <= beside + length {
            line += &" ".repeat(from - taken);
            line += word;
        }
    }
    line
}

fn shortened(label: &str) -> String {
    if width(label) <= LABEL {
        return label.to_owned();
    }
    let mut kept = String::new();
    for letter in label.chars() {
        if width(&kept) + width(&letter.to_string()) >= LABEL {
            break;
        }
        kept.push(letter);
    }
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn series(label: &str, took: impl Fn(u64) -> Option<u64>) -> SparkSeries {
        let points = (0..160).map(|n| (n * 100 * MS, took(n).map(|ms| ms * MS))).collect();
        SparkSeries { label: label.into(), points }
    }

    #[test]
    fn medians_on_one_logarithmic_scale() {
        let all = [
            series("without", |n| match n {
                0..80 => Some(10),
                80..120 => Some(1000),
                _ => None,
            }),
            series("with", |n| (n < 120).then_some(if n % 10 == 9 { 5000 } else { 11 })),
        ];
        let shown = sparklines("Ping", &all, 16_000 * MS, &[(0, "idle"), (8000 * MS, "up")], 9 + 16);
        let expected = "\
Ping, medians over time (▁ 10.0 ms to █ 1.00 s, logarithmic):

         idle    up
without  ▁▁▁▁▁▁▁▁████××××
with     ▁▁▁▁▁▁▁▁▁▁▁▁××××
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let all = [series("a name that is longer than a label may be", |_| Some(3))];
        for columns in 0..120 {
            let shown = sparklines("Ping", &all, 16_000 * MS, &[], columns);
            let bars = shown.lines().skip(2);
            assert!(bars.clone().all(|line| width(line) <= columns), "{columns}: {shown}");
            assert_eq!(bars.count(), usize::from(columns >= 28 + 2 + 16), "{columns}");
        }
        assert!(
            sparklines("Ping", &all, 16_000 * MS, &[], 80)
                .starts_with("Ping, medians over time (▁ 3.00 ms to █ 6.00 ms, logarithmic):")
        );
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(sparklines("Ping", &[series("a", |_| None)], 16_000 * MS, &[], 80), "");
        assert_eq!(sparklines("Ping", &[], 0, &[], 80), "");
    }
}

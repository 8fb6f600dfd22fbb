//! The view while pings run: a row for each target, a mark for each request.

use tidegate_measure::numbers::{format_duration, percent};
use tidegate_measure::pinged::{PingRequest, PingTarget};
use tidegate_measure::{Durations, Pings};

/// Heights of a mark, from the lowest.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const LOST: char = '×';
/// Without a reply yet, and too early to call it lost.
const OPEN: char = '·';
/// A request without a reply counts as lost on the screen after this; a reply may still come, ns.
const SOON: u64 = 2_000_000_000;
/// What names have at most.
const NAME: usize = 16;
/// Columns of the figures.
const FIGURES: usize = 45;
/// Columns of the last reply and the loss alone, where there is no room for all figures.
const FEW_FIGURES: usize = 21;
/// Marks there are at least.
const LEAST: usize = 8;

/// The present state of the targets, in lines of at most so many columns, each ended. Figures are of the
/// requests that are passed in.
pub fn screen(targets: &[PingTarget], now_ns: u64, columns: usize) -> String {
    let name = targets.iter().map(|target| target.id.chars().count()).max().unwrap_or(0).clamp(6, NAME);
    let has_all = columns >= name + LEAST + FIGURES + 2;
    let wide = if has_all { FIGURES } else { FEW_FIGURES };
    let marks = columns.saturating_sub(name + wide + 2).max(LEAST);
    let shown = |target: &'_ PingTarget| target.requests.len().saturating_sub(marks);
    let taken = targets
        .iter()
        .flat_map(|target| &target.requests[shown(target)..])
        .filter_map(|request| request.took_ns);
    let highest = taken.max().unwrap_or(0);
    let scale = format!("{:.1} s, █ {}, {LOST} lost", now_ns as f64 / 1e9, format_duration(highest));
    let [last, mean, p95, loss] = ["last", "mean", "p95", "loss"];
    let figures_of = |[last, mean, p95, loss]: [&str; 4]| match has_all {
        true => format!("{last:>11} {mean:>11} {p95:>11} {loss:>9}"),
        false => format!("{last:>11} {loss:>9}"),
    };
    let mut out = String::new();
    // Too narrow even for these, a line ends where the terminal does.
    let mut add = |line: String| {
        out.extend(line.chars().take(columns));
        out.push('\n');
    };
    let heads = figures_of([last, mean, p95, loss]);
    add(format!("{:<name$} {:<marks$} {heads}", "target", cut(&scale, marks)));
    for target in targets {
        let row: String =
            target.requests[shown(target)..].iter().map(|request| mark(request, now_ns, highest)).collect();
        let figures = figures(target, now_ns);
        let figures = figures_of(figures.each_ref().map(String::as_str));
        add(format!("{:<name$} {row:<marks$} {figures}", cut(&target.id, name)));
    }
    out
}

fn is_open(request: &PingRequest, now_ns: u64) -> bool {
    request.took_ns.is_none() && now_ns.saturating_sub(request.sent_ns) < SOON
}

fn mark(request: &PingRequest, now_ns: u64, highest: u64) -> char {
    match request.took_ns {
        Some(took) => {
            let height = u128::from(took) * HEIGHTS.len() as u128 / (u128::from(highest) + 1);
            HEIGHTS[(height as usize).min(HEIGHTS.len() - 1)]
        }
        None if is_open(request, now_ns) => OPEN,
        None => LOST,
    }
}

/// The last reply, mean, 95th percentile, loss.
fn figures(target: &PingTarget, now_ns: u64) -> [String; 4] {
    let settled =
        target.requests.iter().filter(|request| !is_open(request, now_ns)).map(|request| request.took_ns);
    let pings = Pings::new(settled);
    let last = target.requests.iter().rev().find_map(|request| request.took_ns);
    let written = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), format_duration);
    let of = |rtt: &Durations| [last, rtt.mean(), rtt.percentile(95.0)].map(written);
    let [last, mean, p95] = of(&pings.rtt);
    [last, mean, p95, percent(pings.loss())]
}

/// At most so many characters; an ellipsis where something is missing. What a terminal would obey is made
/// visible.
fn cut(text: &str, most: usize) -> String {
    let clean = String::from(tidegate_text::line(text));
    if clean.chars().count() <= most {
        clean
    } else {
        clean.chars().take(most.saturating_sub(1)).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_target_and_a_mark_for_each_request() {
        const MS: u64 = 1_000_000;
        let requests_of = |answers: &[Option<u64>]| {
            let one = |(n, took): (usize, &Option<u64>)| PingRequest {
                sent_ns: n as u64 * 1000 * MS,
                took_ns: took.map(|ms| ms * MS),
                here_ns: None,
            };
            answers.iter().enumerate().map(one).collect()
        };
        let answers = [Some(1), Some(40), Some(79), Some(80), None, Some(20), None];
        let targets = [
            PingTarget { id: "gateway".into(), requests: requests_of(&answers), ..PingTarget::default() },
            PingTarget {
                id: "nobody\x1b who ever was there".into(),
                requests: requests_of(&[None; 20]),
                ..PingTarget::default()
            },
        ];
        let expected = "\
target           6.5 s, █ 80.0 ms, × lost               last        mean         p95      loss
gateway          ▁▄██×▂·                             20.0 ms     44.0 ms     80.0 ms    16.7 %
nobody\\x1b who … ×××××···············                      –           –           –   100.0 %
";
        assert_eq!(screen(&targets, 6500 * MS, 94), expected);
        assert_eq!(screen(&[], 0, 0).lines().count(), 1);
    }
}

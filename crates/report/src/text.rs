//! A trial on a terminal: figures of the ping, of what people wait for, of the classes; then what it comes
//! to.

use crate::spark::{SparkSeries, sparklines};
use crate::table::{Align, Table, clean, columns, width};
use std::fmt::Write as _;
use tidegate_analysis::data::capital;
use tidegate_analysis::outcome::{QOO_OF_CALLS, score};
use tidegate_analysis::trial::{ClassFigures, Pair, classes_at_work, goodput, main_probe, node, pairs};
use tidegate_measure::Pings;
use tidegate_measure::numbers::{arrow, milliseconds, percent, rate, size};
use tidegate_measure::trial::{LinkFacts, TrialDocument, TrialProbe, TrialRun};

/// Columns of a terminal that it fits.
const COLUMNS: usize = 100;

/// The terminal's view of a trial: plain text, at most 100 columns but for the line to copy, no colour.
pub fn text(trial: &TrialDocument) -> String {
    let mut out = String::new();
    head(&mut out, trial);
    let pairs = pairs(trial);
    let _ = writeln!(out, "{}", main_table(&pairs));
    out += &over_time(&pairs);
    let waits = waits(&pairs);
    if !waits.is_empty() {
        let waits = waits.to_string();
        let _ = writeln!(out, "What people wait for, without → with the policy, in ms:\n\n{waits}");
        if has_calls(&pairs) {
            wrapped(&mut out, "", QOO_OF_CALLS);
            out.push('\n');
        }
        if waits.contains(NONE_BEGAN) {
            wrapped(
                &mut out,
                "",
                &format!(
                    "{NONE_BEGAN}: their interval is longer than the time measured; --duration sets that."
                ),
            );
            out.push('\n');
        }
    }
    if let Some(run) = classes_at_work(trial, &pairs).filter(|run| !run.classes.is_empty()) {
        let title = if run.load == run.title { String::new() } else { format!(" ({})", run.title) };
        let _ = writeln!(out, "With the policy, load {}{title}:\n\n{}", run.load, classes(trial, run));
    }
    for sentence in &trial.verdict {
        wrapped(&mut out, "", sentence);
    }
    for note in &trial.notes {
        wrapped(&mut out, "Note: ", note);
    }
    let _ = writeln!(out, "\nAgain: {}", clean(trial.again.clone()));
    out
}

fn head(out: &mut String, trial: &TrialDocument) {
    let LinkFacts { up_bits, down_bits, rtt_ns, up_buffer_bytes, down_buffer_bytes, .. } = trial.link;
    let mean = if trial.link.varies.is_some() { " in the mean" } else { "" };
    let drained =
        |bytes: u64, bits: u64| if bits == 0 { 0 } else { (bytes as f64 * 8e9 / bits as f64) as u64 };
    let sentence = format!(
        "{} on {}: {} up, {} down{mean}, {} round trip; the modem buffers {} ({} of uplink), the provider {} ({} \
        of downlink).",
        trial.script,
        trial.device,
        rate(up_bits as f64),
        rate(down_bits as f64),
        milliseconds(rtt_ns),
        size(up_buffer_bytes),
        milliseconds(drained(up_buffer_bytes, up_bits)),
        size(down_buffer_bytes),
        milliseconds(drained(down_buffer_bytes, down_bits)),
    );
    wrapped(out, "", &sentence);
    out.push('\n');
}

/// The main probe over time in each load, for people at a terminal; nothing in pipes.
fn over_time(pairs: &[Pair<'_>]) -> String {
    let probe = pairs.iter().find_map(|pair| pair.probe(main_probe(pair)?).any());
    let Some(probe) = probe.filter(|_| columns() < usize::MAX) else { return String::new() };
    let mut series = Vec::new();
    let mut end = 0;
    let widest = pairs.iter().filter_map(|pair| pair.any()).map(|run| width(&run.load)).max().unwrap_or(0);
    for (word, run) in pairs.iter().flat_map(Pair::each) {
        let Some(probe) = run.probes.iter().find(|one| one.id == probe.id) else { continue };
        end = end.max(run.window.1);
        let blanks = " ".repeat(widest.saturating_sub(width(&run.load)));
        let label = format!("{}{blanks}  {word}", run.load);
        series.push(SparkSeries { label, points: probe.answers.clone() });
    }
    let shown = sparklines(&capital(&probe.title), &series, end, &[], columns().min(COLUMNS));
    if shown.is_empty() { shown } else { shown + "\n" }
}

/// Each load without and with: the main probe's figures and what was carried.
fn main_table(pairs: &[Pair<'_>]) -> Table {
    use Align::{Left, Right};
    let probe =
        pairs.iter().find_map(main_probe).and_then(|id| pairs.iter().find_map(|pair| pair.probe(id).any()));
    let mean = probe.map_or_else(|| "mean".to_owned(), |probe| format!("{} mean", probe.title));
    let mut table = Table::new([
        ("load".to_owned(), Left),
        ("policy".to_owned(), Left),
        (mean, Right),
        ("p50".to_owned(), Right),
        ("p95".to_owned(), Right),
        ("p99".to_owned(), Right),
        ("max".to_owned(), Right),
        ("lost".to_owned(), Right),
        ("goodput up".to_owned(), Right),
        ("down".to_owned(), Right),
    ])
    .with_two_keys();
    for (n, pair) in pairs.iter().enumerate() {
        if n > 0 {
            table.rule();
        }
        for (word, run) in pair.each() {
            let figures = main_probe(pair).and_then(|id| run.probes.iter().find(|probe| probe.id == id));
            let figures = figures.map(|probe| probe.figures(run.window)).unwrap_or_default();
            let mut row = vec![run.load.clone(), word.to_owned()];
            row.extend(spread(&figures));
            row.extend([true, false].map(|up| goodput(run, up).map_or_else(String::new, rate)));
            table.row(row);
        }
    }
    table
}

/// Mean, percentiles, maximum, loss.
fn spread(figures: &Pings) -> Vec<String> {
    let mut cells = match figures.rtt.summary() {
        Some(s) => [s.mean, s.p50, s.p95, s.p99, s.max].map(milliseconds).to_vec(),
        None => {
            vec![unanswered(figures).to_owned(), String::new(), String::new(), String::new(), String::new()]
        }
    };
    cells.push(if figures.sent() > 0 { percent(figures.loss()) } else { String::new() });
    cells
}

/// The reason for a missing figure: nothing was sent, or nothing came back.
pub(crate) fn unanswered(figures: &Pings) -> &'static str {
    if figures.sent() > 0 { "no reply" } else { "not sent" }
}

/// Of a probe that did not begin in the time measured, which may be shorter than the time between two web
/// pages.
const NONE_BEGAN: &str = "none began";

/// The column of a call's Quality of Outcome.
const QOO_COLUMN: &str = "QoO";
/// How the ids of calls begin.
const CALL: &str = "voip";

/// The Quality of Outcome of a call's packets; `None`: it is no call, or has too few.
fn of_call(probe: &TrialProbe, packets: &Pings) -> Option<u8> {
    score("call", &probe.unit, packets).filter(|_| probe.id.starts_with(CALL))
}

/// Is there a call with a score?
fn has_calls(pairs: &[Pair<'_>]) -> bool {
    pairs
        .iter()
        .flat_map(Pair::each)
        .any(|(_, run)| run.probes.iter().any(|probe| of_call(probe, &probe.figures(run.window)).is_some()))
}

/// The other probes, without → with.
fn waits(pairs: &[Pair<'_>]) -> Table {
    use Align::{Left, Right};
    let columns =
        [("load", Left), ("what", Left), ("median", Right), ("95th percentile", Right), ("lost", Right)];
    let scored = has_calls(pairs).then_some((QOO_COLUMN, Right));
    let columns = columns.into_iter().chain(scored);
    let mut table = Table::new(columns).with_two_keys();
    for pair in pairs {
        let ids = pair.probe_ids();
        let others: Vec<&str> = ids.into_iter().filter(|id| Some(*id) != main_probe(pair)).collect();
        if !table.is_empty() && !others.is_empty() {
            table.rule();
        }
        for id in others {
            let figures = pair.probe(id);
            let Some(probe) = figures.any() else { continue };
            let what = format!("{}, {}", probe.title, probe.unit);
            let (load, what) = (pair.load().to_owned(), cut(&what, 46));
            if figures.both(|f| (f.sent() > 0).then_some(())) == [None, None] {
                table.row([load, what, NONE_BEGAN.to_owned()]);
                continue;
            }
            let ms = |p: f64| {
                arrow(figures.both(|f| f.rtt.percentile(p)), |ns| milliseconds(ns).replace(" ms", ""))
            };
            let lost = arrow(figures.both(|f| Some(f.loss())), |loss| percent(loss).replace(" %", ""));
            let scores = figures.both(|packets| of_call(probe, packets));
            let qoo = scores.iter().any(Option::is_some).then(|| arrow(scores, |score| score.to_string()));
            let cells = [load, what, ms(50.0), ms(95.0), format!("{lost} %")];
            table.row(cells.into_iter().chain(qoo));
        }
    }
    table
}

/// What the classes of a run did while measured.
fn classes(trial: &TrialDocument, run: &TrialRun) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("class", Left),
        ("for", Left),
        ("rate", Right),
        ("ceil", Right),
        ("sent", Right),
        ("dropped", Right),
        ("longest queue seen", Right),
    ]);
    let many = run.classes.len() > MANY_CLASSES;
    let mut idle = 0;
    for class in &run.classes {
        let figures = ClassFigures::new(run, class);
        if many && class.sent.iter().all(|&bytes| bytes == 0) && figures.dropped == 0 {
            idle += 1;
            continue;
        }
        let node = node(trial, &class.id);
        let bits = |bits: Option<u64>| bits.map_or_else(String::new, |bits| rate(bits as f64));
        let unreachable = node.and_then(|node| node.unreachable.as_deref());
        let title = match unreachable {
            Some(_) if class.title.is_empty() => "(unreachable)".to_owned(),
            Some(_) => format!("{} (unreachable)", cut(&class.title, TITLE)),
            None if class.title.is_empty() && !class.leaf => "(inner)".to_owned(),
            None => cut(&class.title, TITLE),
        };
        table.row([
            cut(&class.id, 16),
            title,
            bits(node.and_then(|node| node.rate_bits)),
            bits(node.and_then(|node| node.ceil_bits)),
            rate(figures.rate),
            figures.dropped.to_string(),
            queue_words(&figures),
        ]);
    }
    if idle > 0 {
        let nothing = format!("{idle} more that carried nothing");
        table.row(["…".to_owned(), nothing].into_iter().chain(std::iter::repeat_n(String::new(), 5)));
    }
    table
}

/// With more classes than this, those that carried nothing are only counted.
const MANY_CLASSES: usize = 16;

/// The most columns of what a class is for.
const TITLE: usize = 28;

fn queue_words(figures: &ClassFigures) -> String {
    match figures.peak_packets {
        0 => "0".to_owned(),
        1 => "1 packet".to_owned(),
        n => format!("{n} packets"),
    }
}

/// At most so many columns, an ellipsis where something is missing.
fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if width(&kept) + width(c.encode_utf8(&mut [0; 4])) + 1 > columns {
            break;
        }
        kept.push(c);
    }
    format!("{}…", kept.trim_end())
}

/// A sentence in lines of at most [`COLUMNS`], or as many as the terminal has; `lead` before it, later lines
/// under its text.
fn wrapped(out: &mut String, lead: &str, sentence: &str) {
    let mut line = lead.to_owned();
    let indent = width(lead);
    let mut fresh = true;
    for word in clean(sentence.to_owned()).split_whitespace() {
        if !fresh && width(&line) + 1 + width(word) > columns().min(COLUMNS) {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(indent);
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line.push_str(word);
        fresh = false;
    }
    let _ = writeln!(out, "{line}");
}

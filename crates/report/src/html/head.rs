//! The policy and its result: the verdict, the figures that matter, all loads at a glance.

use super::parts::{Data, Reading, THE_SAME, capital, ending, figure, prose, tied};
use crate::chart::{Axis, Range, ranges};
use maud::{Markup, html};
use tidegate_analysis::trial::{FigurePair, Pair, goodput, hardest, main_probe, pairs};
use tidegate_measure::numbers::{format_duration, milliseconds, percent, rate};
use tidegate_measure::trial::{TrialDocument, TrialProbe, TrialRun};

/// The head of the page.
pub(super) fn head(trial: &TrialDocument, pairs: &[Pair<'_>]) -> Markup {
    let link = &trial.link;
    let what = format!(
        "{} commands on {}, before a link of {} up and {} down{} with a round trip of {}.",
        trial.commands,
        trial.device,
        rate(link.up_bits as f64),
        rate(link.down_bits as f64),
        link.varies.as_ref().map(|line| format!(" in the mean ({line})")).unwrap_or_default(),
        milliseconds(link.rtt_ns),
    );
    html! {
        p.eyebrow { "tidegate · a traffic-control policy, tried" }
        h1 { (trial.script) }
        p.what { (prose(&what)) }
        @if let Some((first, more)) = trial.verdict.split_first() {
            p.verdict { (prose(first)) }
            @if !more.is_empty() {
                ul.more { @for sentence in more { li { (prose(sentence)) } } }
            }
        }
        @if let Some(pair) = hardest(pairs) { (tiles(&pair)) }
    }
}

/// Figures shown large at most.
const MOST_TILES: usize = 6;

/// A figure without and with the policy.
struct Tile {
    label: String,
    without: Option<f64>,
    with: Option<f64>,
    written: fn(f64) -> String,
    /// Is less better?
    less: bool,
    /// What is to be known besides.
    note: String,
}

/// The figures that matter, under the load that hurts most.
fn tiles(pair: &Pair<'_>) -> Markup {
    let mut tiles: Vec<Tile> = chosen(pair).into_iter().filter_map(|ids| worst_figure(pair, &ids)).collect();
    tiles.truncate(MOST_TILES - 2);
    for (up, label) in [(true, "Uploads carry"), (false, "Downloads carry")] {
        let [without, with] = [pair.without, pair.with].map(|run| run.and_then(|run| goodput(run, up)));
        if without.is_some() || with.is_some() {
            tiles.push(Tile {
                label: label.to_owned(),
                without,
                with,
                written: rate,
                less: false,
                note: String::new(),
            });
        }
    }
    html! {
        p.under { "Under the load that hurts most, " (pair.title()) ":" }
        dl.tiles { @for one in &tiles { (tile(one)) } }
    }
}

/// The main probe, then others; directions of one thing (`voip-up`, `voip-down`) together.
fn chosen<'t>(pair: &Pair<'t>) -> Vec<Vec<&'t str>> {
    let stem = |id: &'t str| id.strip_suffix("-up").or(id.strip_suffix("-down")).unwrap_or(id);
    let mut things: Vec<Vec<&str>> = main_probe(pair).map(|id| vec![id]).into_iter().collect();
    for id in pair.probe_ids() {
        match things.iter_mut().find(|thing| stem(thing[0]) == stem(id)) {
            Some(thing) if !thing.contains(&id) => thing.push(id),
            Some(_) => {}
            None => things.push(vec![id]),
        }
    }
    things
}

/// The least number of replies for a 95th percentile.
const MANY: usize = 20;
/// The least loss with the policy that is mentioned.
const LOST: f64 = 0.005;

/// A thing's figures: of several directions the worse one, on each side.
fn worst_figure(pair: &Pair<'_>, ids: &[&str]) -> Option<Tile> {
    let all: Vec<FigurePair<'_>> = ids.iter().map(|id| pair.probe(id)).collect();
    let probe = all.first()?.any()?;
    let counts: Vec<usize> = all.iter().flat_map(|pair| pair.both(|f| Some(f.sent()))).flatten().collect();
    // The time measured may be shorter than the time between two web pages.
    if counts.iter().all(|n| *n == 0) {
        return None;
    }
    let many = counts.iter().all(|n| *n >= MANY);
    let worst = |side: usize| {
        let figures =
            all.iter().map(|pair| pair.both(|f| f.rtt.percentile(if many { 95.0 } else { 50.0 }))[side]);
        // None at all is worse than any.
        figures.collect::<Option<Vec<u64>>>()?.into_iter().max().map(|ns| ns as f64)
    };
    let lost = all.iter().filter_map(|pair| pair.both(|f| Some(f.loss()))[1]).fold(0.0, f64::max);
    let which = if many { "95 % within" } else { "typically" };
    let name = capital(&probe.title);
    let label = match (ids.len(), name.split_once(',')) {
        (1, _) => format!("{name}, {which}"),
        (_, Some((thing, _))) => format!("{thing}, worse direction, {which}"),
        (_, None) => format!("{name}, worse direction, {which}"),
    };
    let note = if lost > LOST { format!("{} lost", percent(lost)) } else { String::new() };
    Some(Tile {
        label,
        without: worst(0),
        with: worst(1),
        written: |ns| format_duration(ns as u64),
        less: true,
        note,
    })
}

fn tile(tile: &Tile) -> Markup {
    let written = |value: Option<f64>| value.map_or_else(|| "never".to_owned(), tile.written);
    let most = tile.without.unwrap_or(0.0).max(tile.with.unwrap_or(0.0)).max(f64::MIN_POSITIVE);
    let bar = |class: &str, value: Option<f64>| {
        let share = value.unwrap_or(if tile.less { most } else { 0.0 }) / most * 100.0;
        html! { i.bar.(class) style={ "width:" (format_args!("{share:.1}")) "%" } {} }
    };
    tied(html! {
        div.tile {
            dt { (tile.label) }
            dd {
                b { (written(tile.with)) }
                span {
                    i.n { "instead of " (written(tile.without)) }
                    (change(tile))
                    @if !tile.note.is_empty() { " · " i.n { (tile.note) } }
                }
                (bar("without", tile.without))
                (bar("with", tile.with))
            }
        }
    })
}

/// How much better or worse, in words.
fn change(tile: &Tile) -> Markup {
    let (Some(without), Some(with)) = (tile.without, tile.with) else { return Markup::default() };
    if without <= 0.0 || with <= 0.0 {
        return Markup::default();
    }
    let (good, words) = if tile.less {
        match without / with {
            r if r >= 1.15 => (true, format!("{r:.1}× shorter")),
            r if r <= 1.0 / 1.15 => (false, format!("{:.1}× longer", 1.0 / r)),
            _ => (false, "about as long".to_owned()),
        }
    } else {
        match (with / without - 1.0) * 100.0 {
            c if c >= 0.5 => (true, format!("{c:.0} % more")),
            c if c <= -0.5 => (false, format!("{:.0} % less", -c)),
            _ => (false, "as much".to_owned()),
        }
    };
    html! { " · " @if good { i.n { (words) } } @else { (words) } }
}

/// The main probe under every load.
pub(super) fn overview(pairs: &[Pair<'_>]) -> Markup {
    let Some(probe) = pairs.iter().find_map(|pair| pair.probe(main_probe(pair)?).any()) else {
        return Markup::default();
    };
    let figures = |run: &TrialRun, id: &str| {
        let probe: &TrialProbe = run.probes.iter().find(|probe| probe.id == id)?;
        let figures = probe.figures(run.window);
        Some((figures.rtt.percentile(50.0)?, figures.rtt.percentile(95.0)?))
    };
    let mut rows = Vec::new();
    let mut data = Data {
        caption: format!("{}, {}", capital(&probe.title), probe.unit),
        head: ["load", "policy", "median", "95th percentile"].map(str::to_owned).to_vec(),
        rows: Vec::new(),
    };
    for pair in pairs {
        let mut bars = Vec::new();
        for (word, run) in pair.each() {
            let Some((median, p95)) = figures(run, &probe.id) else { continue };
            bars.push((word, median, p95, format!("{} {word}", format_duration(p95))));
            data.rows.push(vec![
                pair.title().to_owned(),
                word.to_owned(),
                milliseconds(median),
                milliseconds(p95),
            ]);
        }
        rows.push(Range { title: capital(pair.title()), bars });
    }
    let all = rows.iter().flat_map(|row| &row.bars).flat_map(|(_, median, p95, _)| [*median, *p95]);
    let (low, high) = all.fold((u64::MAX, 0), |(low, high), ns| (low.min(ns), high.max(ns)));
    if high == 0 {
        return Markup::default();
    }
    let title =
        format!("{}, {}, under each load without and with the policy", capital(&probe.title), probe.unit);
    let given = data
        .rows
        .iter()
        .map(|row| format!("{} {}: median {}, 95 % within {}", row[0], row[1], row[2], row[3]));
    let description = given.collect::<Vec<_>>().join("; ");
    let drawing = ranges(&title, &description, Axis::log_spans(low, high), &rows);
    let caption = html! {
        b { (capital(&probe.title)) ", " (probe.unit) "." }
        " The dot is the median, the bar's end the 95th percentile; " (key()) ". The scale is logarithmic."
    };
    html! {
        section {
            h2 { "Every load at a glance" }
            (figure(&[drawing], caption, Reading::None, &data))
        }
    }
}

/// What the two lines are, in a caption.
pub(super) fn key() -> Markup {
    html! { span.key.without { "without" } " and " span.key.with { "with" } " the policy" }
}

/// Notes and the command that makes it again.
pub(super) fn again(trial: &TrialDocument) -> Markup {
    let made = format!("tidegate {}, seed {}, {} loads", trial.version, trial.seed, pairs(trial).len());
    ending(&trial.notes, THE_SAME, &trial.again, &made)
}

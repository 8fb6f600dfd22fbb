//! All figures of an experiment as tables: rows by load and policy, each figure the median over repeats with
//! the least and the most.

use super::comparison::{ComparisonText, comparison_text};
use super::show::{Under, called, distinct, spread, title};
use crate::data::{Data, capital};
use tidegate_measure::Pings;
use tidegate_measure::experiment::{Comparison, Experiment, ExperimentCase, NoSuchFigure};
use tidegate_measure::numbers::percent;

/// A column: its heading, and its statistic.
type Column = (&'static str, &'static str);

const ANSWERS: [Column; 10] = [
    ("mean", "mean"),
    ("median", "median"),
    ("95 %", "p95"),
    ("99 %", "p99"),
    ("max", "max"),
    ("mdev", "mdev"),
    ("jitter", "jitter"),
    ("lost", "loss"),
    ("lost in all repeats (95 % interval)", SURE),
    ("sent", "sent"),
];
/// The share of losses of all repeats together, and between what shares it lies with 95 % confidence.
const SURE: &str = "loss-interval";
const DIRECTIONS: [Column; 4] = [
    ("lost there", "there-loss"),
    ("lost back", "back-loss"),
    ("median there", "there-median"),
    ("median back", "back-median"),
];
const OUTCOMES: [Column; 4] =
    [("call", "qoo-call"), ("meeting", "qoo-meeting"), ("game", "qoo-game"), ("browsing", "qoo-browsing")];
const TRANSFERS: [Column; 6] = [
    ("goodput", "rate"),
    ("share of all", "share"),
    ("duration", "time"),
    ("retransmits", "retransmissions"),
    ("lost", "lost"),
    ("fairness", "fairness"),
];
const LINKS: [Column; 5] = [
    ("carried", "rate"),
    ("utilisation", "utilisation"),
    ("peak backlog", "peak"),
    ("mean delay", "delay"),
    ("dropped", "drops"),
];
const CLASSES: [Column; 4] =
    [("sent", "rate"), ("peak backlog", "peak"), ("peak packets", "queue"), ("dropped", "drops")];

/// The caption of the table of probes.
pub const REPLIES: &str = "Replies during the measurement";
/// The caption of the table of transfers.
pub const THROUGHPUT: &str = "Transfers during the measurement";

/// A table for each kind of thing.
pub fn tables(experiment: &Experiment) -> Vec<Data> {
    let loads = Under::all(experiment);
    let probes = |case: &ExperimentCase<'_>| {
        things(case, |run| run.probes.iter().map(|p| (p.id.clone(), called(p))).collect())
    };
    let groups = |case: &ExperimentCase<'_>| {
        let all = |run: &tidegate_measure::experiment::RunRecord| {
            let groups = run.transfers.iter().map(|t| tidegate_measure::experiment::group_of(&t.id));
            distinct(groups).into_iter().map(|group| (group.to_owned(), capital(group))).collect()
        };
        things(case, all)
    };
    let links = |case: &ExperimentCase<'_>| {
        let way = |up: bool| if up { "up" } else { "down" };
        things(case, |run| {
            let link = |q: &tidegate_measure::experiment::LinkSeries| {
                let name = format!("{} {}", q.link, way(q.up));
                (
                    format!("link {name}"),
                    if q.title.is_empty() { name } else { format!("{name}, {}", q.title) },
                )
            };
            run.queues.iter().filter(|q| q.sent.iter().any(|&bytes| bytes > 0)).map(link).collect()
        })
    };
    let classes = |case: &ExperimentCase<'_>| {
        things(case, |run| {
            let name = |c: &tidegate_measure::trial::ClassSeries| {
                let title = if c.title.is_empty() { c.id.clone() } else { format!("{} ({})", c.id, c.title) };
                (format!("class {}", c.id), title)
            };
            run.classes.iter().map(name).collect()
        })
    };
    let all = [
        table(&loads, REPLIES, "probe", &ANSWERS, &probes),
        table(&loads, "One-way delay and loss during the measurement", "probe", &DIRECTIONS, &probes),
        table(&loads, crate::outcome::QOO, "probe", &OUTCOMES, &probes),
        table(&loads, THROUGHPUT, "transfers", &TRANSFERS, &groups),
        table(&loads, "Links during the measurement", "link", &LINKS, &links),
        table(&loads, "Classes during the measurement", "class", &CLASSES, &classes),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// What the runs of a case have of a kind: how figures call it, and its title.
fn things(
    case: &ExperimentCase<'_>,
    of: impl Fn(&tidegate_measure::experiment::RunRecord) -> Vec<(String, String)>,
) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for thing in case.runs.iter().flat_map(|run| of(run)) {
        if !found.iter().any(|(id, _)| *id == thing.0) {
            found.push(thing);
        }
    }
    found
}

fn table(
    loads: &[Under<'_>],
    caption: &str,
    what: &str,
    columns: &[Column],
    things: &dyn Fn(&ExperimentCase<'_>) -> Vec<(String, String)>,
) -> Data {
    let mut head: Vec<String> = ["load", "policy", what].map(str::to_owned).to_vec();
    head.extend(columns.iter().map(|(name, _)| (*name).to_owned()));
    let mut rows = Vec::new();
    for under in loads {
        for (_, case) in &under.cases {
            for (id, name) in things(case) {
                let cells: Vec<String> =
                    columns.iter().map(|(_, statistic)| cell(case, &id, statistic)).collect();
                // Where nothing of this kind was recorded there is no row.
                if cells.iter().any(|cell| cell != NOTHING) {
                    let policy = title(&case.policy.title, &case.policy.name).to_owned();
                    rows.push([under.title().to_owned(), policy, name].into_iter().chain(cells).collect());
                }
            }
        }
    }
    Data { caption: caption.to_owned(), head, rows }
}

/// The answers of all repeats.
fn all_answers(case: &ExperimentCase<'_>, id: &str) -> Vec<Option<u64>> {
    let probes = case.runs.iter().flat_map(|run| run.probes.iter().map(move |probe| (run.window, probe)));
    let selected =
        probes.filter(|(_, probe)| probe.id == id).flat_map(|(window, probe)| probe.within(window));
    selected.map(|(_, took)| took).collect()
}

/// The text of a missing figure.
const NOTHING: &str = "–";

fn cell(case: &ExperimentCase<'_>, id: &str, statistic: &str) -> String {
    if statistic == SURE {
        let pings = Pings::new(all_answers(case, id));
        let (low, high) = pings.loss_interval();
        return format!("{} ({} – {})", percent(pings.loss()), percent(low), percent(high));
    }
    let name = format!("{id}.{statistic}");
    match case.figure(&name) {
        Ok(found) => spread(&name, &found),
        Err(NoSuchFigure::Nothing { why: "no reply came" }) => "no reply".to_owned(),
        Err(_) => NOTHING.to_owned(),
    }
}

/// Published, simulated, within: a row each.
pub fn comparisons(experiment: &Experiment) -> Data {
    let row = |c: &Comparison| {
        let ComparisonText { published, found, spread, bounds, verdict } = comparison_text(c);
        let found = spread.map_or(found.clone(), |spread| format!("{found} ({spread})"));
        vec![c.id.clone(), c.what.clone(), published, found, bounds, verdict.to_owned()]
    };
    Data {
        caption: "Published, found, and what it must lie within".to_owned(),
        head: ["", "what", "published", found_word(experiment), "within", ""].map(str::to_owned).to_vec(),
        rows: experiment.comparisons.iter().map(row).collect(),
    }
}

/// How figures came about, as a table's head.
pub fn found_word(experiment: &Experiment) -> &'static str {
    match experiment.execution.as_str() {
        "sim" => "simulated",
        "lab" | "field" | "flent" => "measured",
        _ => "found",
    }
}

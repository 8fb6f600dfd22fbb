//! A comparison as one page: the same charts as an experiment's, with results instead of policies laid over each other.

use crate::chart::{Drawing, Group, LOOKS, Look, Mark, cases, cases_spans, escape};
use crate::experiment::page::keys;
use crate::experiment::show::{Happened, Shown, distinct, happened, title, typical};
use crate::experiment::{courses, latency};
use crate::html::document::{caption, document};
use crate::html::parts::{Data, Markup as _, Reading, capital, figure, prose};
use std::fmt::Write as _;
use tidegate_analysis::experiment::{Comparing, Row, Side, by, series};
use tidegate_measure::Spans;
use tidegate_measure::experiment::group_of;
use tidegate_measure::numbers::span;

/// The page of a comparison: an HTML document that needs nothing else.
pub fn comparison_page(comparing: &Comparing<'_>) -> String {
    let names: Vec<&str> = comparing.sides.iter().map(|side| side.label.as_str()).collect();
    let heading = names.join(" and ");
    let mut body = format!(
        "<header>\n<p class=\"eyebrow\">tidegate · results compared</p>\n<h1 class=\"name\">{}</h1>\n{}</header>\n<main>\n",
        escape(&heading),
        results(comparing)
    );
    body.push_str(&apart(comparing));
    body.push_str(&glance(comparing));
    body.push_str(&figures(comparing));
    for (policy, load) in comparing.cases() {
        body.push_str(&case(comparing, policy, load));
    }
    body.push_str(&again(comparing));
    document(&heading, &(body + "</main>\n"))
}

/// Who is compared, in his look.
fn results(comparing: &Comparing<'_>) -> String {
    let item = |(n, side): (usize, &Side)| {
        let e = &side.experiment;
        format!(
            "<li>{}<b>{}</b> {} <span>· {}, seed {}</span></li>",
            crate::html::parts::chip(Look(n).colour()),
            escape(&side.label),
            escape(&e.title),
            escape(&by(e)),
            e.seed
        )
    };
    format!("<ul class=\"keys\">{}</ul>\n", comparing.sides.iter().enumerate().map(item).collect::<String>())
}

fn apart(comparing: &Comparing<'_>) -> String {
    if comparing.apart.is_empty() {
        return String::new();
    }
    let items: String = comparing.apart.iter().map(|sentence| format!("<li>{}</li>", prose(sentence))).collect();
    format!("<section>\n<h2>What is not alike</h2>\n<ul class=\"notes\">{items}</ul>\n</section>\n")
}

/// Each probe in every case.
fn glance(comparing: &Comparing<'_>) -> String {
    let rows = comparing.rows.iter().filter_map(|row| row.figure.strip_suffix(".p95"));
    let mut out = String::new();
    for id in distinct(rows) {
        let Some(drawing) = summary(comparing, id) else { continue };
        let told = caption(id)
            + ". Dot: median; end of the bar, with its figure: 95th percentile; end of the thin line: 99th.";
        let rows: Vec<&Row> = comparing.rows.iter().filter(|row| row.figure.starts_with(&format!("{id}."))).collect();
        out.push_str(&figure(&[drawing], &told, Reading::None, &table(comparing, &rows)));
    }
    if out.is_empty() { out } else { format!("<section>\n<h2>Every case at a glance</h2>\n{out}</section>\n") }
}

fn summary(comparing: &Comparing<'_>, id: &str) -> Option<Drawing> {
    let mut groups = Vec::new();
    let mut told = Vec::new();
    let (mut low, mut high) = (u64::MAX, 0);
    for (policy, load) in comparing.cases() {
        let mut marks = Vec::new();
        for (n, side) in comparing.sides.iter().enumerate() {
            let Some(case) = side.experiment.case(policy, load) else { continue };
            let figures = Spans::new(tidegate_analysis::experiment::answers(&case, id));
            let (Some(found), Some(least)) = (figures.summary(), figures.min()) else { continue };
            (low, high) = (low.min(least), high.max(found.p99));
            let [p50, p95, p99] = [found.p50, found.p95, found.p99].map(|ns| ns as f64);
            told.push(format!("{policy}, {load}, {}: 95 % within {}", side.label, span(found.p95)));
            marks.push(Mark {
                name: side.label.clone(),
                look: Look(n),
                bar: (p50, p95),
                dot: p50,
                whisker: (p50, p99),
                text: span(found.p95),
            });
        }
        if !marks.is_empty() {
            groups.push(Group { title: names(comparing, policy, load), cases: marks });
        }
    }
    let title = format!("{id}: median, 95th and 99th percentile of every case");
    (high > 0).then(|| cases(&title, &told.join("; "), cases_spans(low, high), &groups))
}

/// What a case is called, for people: as the first result that has it says.
fn names(comparing: &Comparing<'_>, policy: &str, load: &str) -> String {
    let case = comparing.sides.iter().find_map(|side| side.experiment.case(policy, load));
    case.map_or_else(
        || format!("{load}, {policy}"),
        |case| format!("{}, {}", title(&case.load.title, load), title(&case.policy.title, policy)),
    )
}

fn table(comparing: &Comparing<'_>, rows: &[&Row]) -> Data {
    let mut head = ["load", "policy", "figure"].map(str::to_owned).to_vec();
    for (n, side) in comparing.sides.iter().enumerate() {
        head.push(side.label.clone());
        if n > 0 {
            head.push("change".to_owned());
        }
    }
    let row = |row: &&Row| {
        let mut cells = vec![row.load.clone(), row.policy.clone(), row.figure.clone()];
        for side in 0..comparing.sides.len() {
            cells.push(row.shown(side));
            if side > 0 {
                cells.push(row.change(side).map_or_else(String::new, |change| change.shown()));
            }
        }
        cells
    };
    Data { caption: "Figures beside each other".to_owned(), head, rows: rows.iter().map(row).collect() }
}

fn figures(comparing: &Comparing<'_>) -> String {
    let rows: Vec<&Row> = comparing.rows.iter().collect();
    let legend: String = comparing.legend().iter().map(|sentence| format!(" {sentence}.")).collect();
    format!(
        "<section>\n<h2>Figures beside each other</h2>\n<p class=\"small\">The median over repeats, in brackets the least and the most. \
         Changes are against {}.{}</p>\n<div class=\"figures\">{}</div></section>\n",
        escape(comparing.sides.first().map_or("", |side| &side.label)),
        prose(&legend),
        table(comparing, &rows).table()
    )
}

/// A case: the results laid over each other.
fn case(comparing: &Comparing<'_>, policy: &str, load: &str) -> String {
    let mut all: Vec<Shown<'_>> = Vec::new();
    for (n, side) in comparing.sides.iter().enumerate() {
        let Some(case) = side.experiment.case(policy, load) else { continue };
        all.push(Shown { policy: n, title: &side.label, label: &side.label, run: typical(&case) });
    }
    let name = names(comparing, policy, load);
    let meanwhile = happened(&all);
    let mut out = format!("<section>\n<h2>{}</h2>\n{}", escape(&capital(&name)), keys(&all));
    for id in distinct(all.iter().flat_map(|one| &one.run.probes).map(|probe| probe.id.as_str())) {
        out.push_str(&answers(&all, &name, id, &meanwhile));
    }
    for group in distinct(all.iter().flat_map(|one| &one.run.transfers).map(|transfer| group_of(&transfer.id))) {
        let drawings = courses::carried(&all, &name, group, &meanwhile);
        let told = caption(group) + ": payload per second, all its transfers together.";
        out.push_str(&figure(&drawings, &told, Reading::Across, &series::carried(&all, group)));
    }
    for (link, up) in courses::links(&all) {
        let drawings = courses::before_link(&all, &name, (link, up), &meanwhile);
        let told = caption(&format!("{link} {}", if up { "up" } else { "down" }))
            + ": bytes that wait where no policy governs.";
        out.push_str(&figure(&drawings, &told, Reading::Across, &series::waiting(&all, link, up)));
    }
    if all.len() > LOOKS {
        let _ = write!(out, "<p class=\"small\">Of {} results {LOOKS} at a time share a chart.</p>", all.len());
    }
    out + "</section>\n"
}

fn answers(all: &[Shown<'_>], name: &str, id: &str, meanwhile: &Happened<'_>) -> String {
    let charts = latency::over_time(all, name, id, meanwhile);
    let told = caption(id) + " over time. Strokes at the top: lost. Shaded: not yet measured.";
    let mut out = figure(&charts, &told, Reading::Across, &series::answers(all, id));
    let charts = latency::distribution(all, name, id);
    if !charts.is_empty() {
        let told = caption(id) + ": the share of all that was asked that was answered within a time.";
        out.push_str(&figure(&charts, &told, Reading::None, &series::percentiles(all, id)));
    }
    out
}

fn again(comparing: &Comparing<'_>) -> String {
    let commands: Vec<String> =
        comparing.sides.iter().map(|side| format!("# {}\n{}", side.label, side.experiment.again)).collect();
    format!(
        "<footer>\n<h2>Again</h2>\n<p>These commands give the results:</p>\n<pre tabindex=\"0\">{}</pre>\n</footer>\n",
        escape(&commands.join("\n"))
    )
}

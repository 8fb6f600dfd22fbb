//! An experiment as one page: everything in one file, nothing from the network, readable without scripts.

use super::show::{Happened, Looks as _, Shown, Under, distinct, happened, title};
use super::{courses, latency, topology};
use crate::chart::{Drawing, LOOKS, escape};
use crate::html::document::{caption, document};
use crate::html::parts::{Data, Markup as _, Reading, THE_SAME, capital, chip, ending, figure, prose, tied};
use std::fmt::Write as _;
use tidegate_analysis::experiment::{called, probe, series, tables};
use tidegate_measure::experiment::{Event, Experiment};

/// The page of an experiment: an HTML document that needs nothing else.
pub fn page(experiment: &Experiment) -> String {
    let loads = Under::all(experiment);
    let mut body = format!("<header>\n{}</header>\n<main>\n", head(experiment));
    body.push_str(&network(experiment));
    body.push_str(&comparisons(experiment));
    body.push_str(&overview(experiment, &loads));
    body.push_str(&panels(&loads));
    body.push_str(&all_figures(experiment));
    body.push_str(&policies(experiment));
    body.push_str(&again(experiment));
    document(title(&experiment.title, &experiment.scenario), &(body + "</main>\n"))
}

fn head(experiment: &Experiment) -> String {
    let how = match experiment.execution.as_str() {
        "sim" => "an experiment, simulated",
        "lab" => "an experiment, measured",
        "field" => "a path, measured",
        "flent" => "measured with flent",
        _ => "an experiment",
    };
    let mut out = format!(
        "<p class=\"eyebrow\">tidegate · {how}</p>\n<h1 class=\"name\">{}</h1>\n",
        escape(title(&experiment.title, &experiment.scenario))
    );
    for paragraph in experiment.about.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let _ = writeln!(out, "<p class=\"about\">{}</p>", prose(paragraph.trim()));
    }
    if let Some(source) = &experiment.source {
        let _ = writeln!(out, "<p class=\"what\">After: {}</p>", escape(source));
    }
    let cut = experiment.runs.iter().filter(|run| run.cut).count();
    if cut > 0 {
        let _ = writeln!(
            out,
            "<p class=\"what lost key\">{cut} of {} runs were stopped before their end.</p>",
            experiment.runs.len()
        );
    }
    out
}

/// A drawing that has its size: it scrolls in its box where there is no room.
fn wide(drawing: &Drawing, caption: &str) -> String {
    format!(
        "<figure class=\"wide\" tabindex=\"0\"><figcaption>{}</figcaption>{}</figure>\n",
        tied(caption),
        drawing.inline()
    )
}

fn network(experiment: &Experiment) -> String {
    let mut out = String::from("<section>\n<h2>The network</h2>\n");
    match topology::drawing(experiment) {
        Some(drawing) => out.push_str(&wide(
            &drawing,
            "Machines, whose devices may have policies, are framed; the slowest link is bold.",
        )),
        None if experiment.links.is_empty() => return String::new(),
        None => out.push_str("<p class=\"small\">It has too many nodes to be drawn; the table has them all.</p>"),
    }
    let rows = experiment
        .links
        .iter()
        .map(|link| [&link.name, &link.from, &link.to, &link.there, &link.back].map(String::clone).to_vec());
    let table = Data {
        caption: "Links".to_owned(),
        head: ["link", "from", "to", "there", "back"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
    };
    out + &format!("<details><summary>Links</summary>{}</details>\n</section>\n", table.table())
}

fn comparisons(experiment: &Experiment) -> String {
    if experiment.comparisons.is_empty() {
        return String::new();
    }
    let required = || experiment.comparisons.iter().filter(|comparison| comparison.gated);
    let held = required().filter(|comparison| comparison.held).count();
    let mut out = format!(
        "<section>\n<h2>Published and {}</h2>\n<p class=\"said\">{held} of {} required figures lie within their bounds.</p>\n<div class=\"figures compared\">{}</div>",
        tables::found_word(experiment),
        required().count(),
        tables::comparisons(experiment).table()
    );
    let reasons = experiment.comparisons.iter().filter_map(|c| Some((c, c.why.as_ref()?)));
    let reasons: String = reasons.map(|(c, why)| format!("<li><b>{}</b> {}</li>", escape(&c.id), prose(why))).collect();
    if !reasons.is_empty() {
        let _ = write!(out, "<ul class=\"notes\">{reasons}</ul>");
    }
    out + "</section>\n"
}

/// Every case at a glance: each probe, each group of transfers, and the sheet.
fn overview(experiment: &Experiment, loads: &[Under<'_>]) -> String {
    let mut out = String::from("<section>\n<h2>Every case at a glance</h2>\n");
    let tables = tables::tables(experiment);
    let of = |caption: &str, name: &str| {
        let table = tables.iter().find(|table| table.caption.starts_with(caption));
        let rows =
            table.map(|table| table.rows.iter().filter(|row| row[2] == name).cloned().collect()).unwrap_or_default();
        Data { caption: name.to_owned(), head: table.map(|table| table.head.clone()).unwrap_or_default(), rows }
    };
    for id in distinct(loads.iter().flat_map(Under::probes)) {
        let probe = experiment.runs.iter().flat_map(|run| &run.probes).find(|probe| probe.id == id);
        let (Some(drawing), Some(probe)) = (latency::summary(experiment, id), probe) else { continue };
        let name = called(probe);
        let caption = format!(
            "<b>{}.</b> Dot: median; end of the bar, with its figure: 95th percentile; end of the thin line: 99th. All repeats together.",
            escape(&capital(&name))
        );
        out.push_str(&figure(&[drawing], &caption, Reading::None, &of("Answers, ", &name)));
    }
    for group in distinct(loads.iter().flat_map(Under::groups)) {
        let Some(drawing) = latency::carried(experiment, group) else { continue };
        let caption = format!(
            "<b>{}</b>, payload per second while measured: the median over repeats; the thin line spans all of them.",
            escape(&capital(group))
        );
        out.push_str(&figure(&[drawing], &caption, Reading::None, &of("Transfers", &capital(group))));
    }
    if let Some(drawing) = latency::all(experiment) {
        let caption =
            "<b>All cases on one sheet</b>, on the same scales; below each the mean, its deviation (mdev), and losses.";
        let _ =
            writeln!(out, "<details><summary>All cases on one sheet</summary>{}</details>", wide(&drawing, caption));
    }
    out + "</section>\n"
}

/// A panel for each load, and the links that become tabs.
fn panels(loads: &[Under<'_>]) -> String {
    let mut links = String::new();
    let mut out = String::new();
    for (n, under) in loads.iter().enumerate() {
        let _ = write!(links, "<a href=\"#load-{n}\">{}</a>", escape(&capital(under.title())));
        let _ = writeln!(out, "<section class=\"panel\" id=\"load-{n}\">\n<h2>Load: {}</h2>", escape(under.title()));
        out.push_str(&panel(under));
        out.push_str("</section>\n");
    }
    match loads.len() {
        0 | 1 => out,
        _ => format!("<nav class=\"tabs\" data-tabs aria-label=\"Load\">{links}</nav>\n{out}"),
    }
}

fn panel(under: &Under<'_>) -> String {
    let shown = under.typical();
    let meanwhile = happened(&shown);
    let mut out = repeats(under) + &keys(&shown);
    out.push_str(&meanwhile_list(&meanwhile));
    for id in under.probes() {
        out.push_str(&answers(under, &shown, id, &meanwhile));
    }
    out.push_str(&transfers(under, &shown, &meanwhile));
    out.push_str(&queues(under, &shown, &meanwhile));
    out.push_str(&classes(under, &shown, &meanwhile));
    out.push_str(&windows(under, &shown, &meanwhile));
    out.push_str(&six_panels(under, &shown));
    out
}

/// The policies' looks, and what they are called on charts where that is not their title.
pub(super) fn keys(shown: &[Shown<'_>]) -> String {
    let item = |one: &Shown<'_>| {
        let long = if one.label == one.title { String::new() } else { format!(" {}", escape(one.title)) };
        format!("<li>{}<b>{}</b>{long}</li>", chip(one.look().colour()), escape(one.label))
    };
    format!("<ul class=\"keys\">{}</ul>\n", shown.iter().map(item).collect::<String>())
}

/// Which of several repeats the charts show.
fn repeats(under: &Under<'_>) -> String {
    let most = under.cases.iter().map(|(_, case)| case.runs.len()).max().unwrap_or(0);
    let many = under.cases.len() > LOOKS;
    let mut told = String::new();
    if most > 1 {
        let _ = write!(told, "Of {most} repeats the charts over time show the one in the middle; tables have all. ");
    }
    if many {
        let _ = write!(told, "Of the {} policies, {LOOKS} at a time share a chart. ", under.cases.len());
    }
    if told.is_empty() { told } else { format!("<p class=\"small\">{}</p>\n", told.trim_end()) }
}

/// What happened, with the numbers that stand on the charts.
fn meanwhile_list(meanwhile: &Happened<'_>) -> String {
    if meanwhile.events.is_empty() {
        return String::new();
    }
    let item = |(event, of): &(&Event, Vec<&str>)| {
        let of = if of.is_empty() { String::new() } else { format!(" <i>({})</i>", escape(&of.join(", "))) };
        let output = if event.output.trim().is_empty() {
            String::new()
        } else {
            format!(
                "<details><summary>answer</summary><pre tabindex=\"0\">{}</pre></details>",
                escape(event.output.trim_end())
            )
        };
        let seconds = format!("{:.2}", event.at as f64 / 1e9);
        let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
        format!("<li>{seconds}\u{a0}s, {}: <code>{}</code>{of}{output}</li>", escape(&event.on), escape(&event.what))
    };
    let items: String = meanwhile.events.iter().take(MOST_EVENTS).map(item).collect();
    let more = meanwhile.events.len().saturating_sub(MOST_EVENTS);
    let more = if more > 0 { format!("<p class=\"small\">and {more} more</p>") } else { String::new() };
    let list = format!("<ol class=\"events\">{items}</ol>{more}\n");
    let list = match meanwhile.events.len() {
        0..=MOST_OPEN => list,
        many => format!("<details><summary>{many} events</summary>{list}</details>\n"),
    };
    format!("<h3>What happened meanwhile</h3>\n{list}")
}

/// Events listed at most.
const MOST_EVENTS: usize = 200;
/// More events than these are behind a line to open them.
const MOST_OPEN: usize = 12;

fn answers(under: &Under<'_>, shown: &[Shown<'_>], id: &str, meanwhile: &Happened<'_>) -> String {
    let Some(probe) = shown.iter().find_map(|one| probe(one, id)) else { return String::new() };
    let name = called(probe);
    let mut out = format!("<h3>{}</h3>\n", escape(&capital(&name)));
    let charts = latency::over_time(shown, under.title(), id, meanwhile);
    out.push_str(&figure(
        &charts,
        &(caption("over time") + ". Strokes at the top: lost. Shaded: not yet measured."),
        Reading::Across,
        &series::answers(shown, id),
    ));
    let charts = latency::distribution(shown, under.title(), id);
    if !charts.is_empty() {
        let told = caption("distribution")
            + ": the share of all that was asked that was answered within a time; what was lost is missing at the top.";
        out.push_str(&figure(&charts, &told, Reading::None, &series::percentiles(shown, id)));
    }
    out
}

fn transfers(under: &Under<'_>, shown: &[Shown<'_>], meanwhile: &Happened<'_>) -> String {
    let mut out = String::new();
    for group in under.groups() {
        let mut cards = String::new();
        for one in shown {
            let Some(drawing) = courses::transfers(under, one, group, meanwhile) else { continue };
            cards.push_str(&figure(&[drawing], &caption(one.title), Reading::Across, &series::transfers(one, group)));
        }
        let _ = write!(
            out,
            "<h3>{}: payload per second</h3>\n<div class=\"cards\">{cards}</div>\n",
            escape(&capital(group))
        );
    }
    out
}

fn queues(under: &Under<'_>, shown: &[Shown<'_>], meanwhile: &Happened<'_>) -> String {
    let mut out = String::new();
    for (link, up) in courses::links(shown) {
        let drawings = courses::before_link(shown, under.title(), (link, up), meanwhile);
        let way = if up { "up" } else { "down" };
        let told = caption(&format!("{link} {way}")) + ": bytes that wait where no policy governs.";
        out.push_str(&figure(&drawings, &told, Reading::Across, &series::waiting(shown, link, up)));
    }
    if out.is_empty() { out } else { format!("<h3>Waiting before links</h3>\n{out}") }
}

fn classes(under: &Under<'_>, shown: &[Shown<'_>], meanwhile: &Happened<'_>) -> String {
    let mut cards = String::new();
    for one in shown {
        for device in courses::devices(one.run) {
            for view in courses::VIEWS {
                let Some((drawing, hidden)) = courses::in_classes(under, one, device, view, meanwhile) else {
                    continue;
                };
                let hidden = left_out(hidden, "classes that had less");
                let told = format!("{}: {} on {}{hidden}", caption(one.title), view.word, escape(device));
                let data = series::classes(one, device, view.word);
                cards.push_str(&figure(&[drawing], &told, Reading::Across, &data));
            }
        }
    }
    if cards.is_empty() { cards } else { format!("<h3>Class by class</h3>\n<div class=\"cards\">{cards}</div>\n") }
}

fn left_out(hidden: usize, what: &str) -> String {
    if hidden > 0 { format!("; {hidden} {what} are not drawn") } else { String::new() }
}

fn windows(under: &Under<'_>, shown: &[Shown<'_>], meanwhile: &Happened<'_>) -> String {
    let mut cards = String::new();
    for one in shown {
        let Some((drawing, hidden)) = courses::windows(under, one, meanwhile) else { continue };
        let told = format!("{}{}", caption(one.title), left_out(hidden, "more transfers"));
        cards.push_str(&figure(&[drawing], &told, Reading::Across, &series::windows(one)));
    }
    if cards.is_empty() { cards } else { format!("<h3>Congestion windows</h3>\n<div class=\"cards\">{cards}</div>\n") }
}

fn six_panels(under: &Under<'_>, shown: &[Shown<'_>]) -> String {
    let drawn = shown.iter().filter_map(|one| Some((one, latency::six_panels(under, one)?)));
    let figures: String = drawn.map(|(one, drawing)| wide(&drawing, &caption(one.title))).collect();
    if figures.is_empty() {
        return figures;
    }
    format!(
        "<details class=\"figures\"><summary>Six panels per policy, arranged as ping-exp’s</summary>{figures}</details>\n"
    )
}

fn all_figures(experiment: &Experiment) -> String {
    let mut out = String::from("<section>\n<h2>All figures</h2>\n");
    if experiment.runs.iter().any(|run| run.repeat > 0) {
        out.push_str("<p class=\"small\">The median over repeats; in brackets the least and the most.</p>\n");
    }
    for table in tables::tables(experiment) {
        let _ = writeln!(
            out,
            "<details class=\"figures\" open><summary>{}</summary>{}</details>",
            escape(&table.caption),
            table.table()
        );
    }
    out + "</section>\n"
}

fn policies(experiment: &Experiment) -> String {
    let mut out = String::from("<section>\n<h2>The policies</h2>\n");
    for policy in &experiment.policies {
        let _ = writeln!(out, "<h3>{}</h3>", escape(&capital(title(&policy.title, &policy.name))));
        if policy.commands.iter().all(|(_, lines)| lines.is_empty()) {
            out.push_str("<p class=\"small\">No commands: everything is as it comes.</p>\n");
        }
        for (machine, lines) in policy.commands.iter().filter(|(_, lines)| !lines.is_empty()) {
            let count = lines.len();
            let list = format!("<pre tabindex=\"0\">{}</pre>", escape(&lines.join("\n")));
            let _ = match count {
                0..=MOST_LINES => write!(out, "<p class=\"small\">On {}:</p>\n{list}\n", escape(machine)),
                _ => writeln!(
                    out,
                    "<details><summary>On {}: {count} commands</summary>{list}</details>",
                    escape(machine)
                ),
            };
        }
    }
    if experiment.policies.is_empty() { String::new() } else { out + "</section>\n" }
}

/// More lines than these are behind a line to open them.
const MOST_LINES: usize = 40;

fn again(experiment: &Experiment) -> String {
    let promise = match experiment.execution.as_str() {
        "sim" => THE_SAME,
        _ => "This command does the same again",
    };
    let packets: u64 = experiment.runs.iter().map(|run| run.work.0).sum();
    let simulated = if packets > 0 { format!(", {packets} packets") } else { String::new() };
    let Experiment { version, scenario, seed, runs, .. } = experiment;
    let made = format!("tidegate {version}, scenario {scenario}, seed {seed}, {} runs{simulated}", runs.len());
    ending(&experiment.notes, promise, &experiment.again, &made)
}

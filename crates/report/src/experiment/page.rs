//! An experiment as one page: everything in one file, nothing from the network, readable without scripts.

use super::show::{Happened, Looks as _, RunView, Under, distinct, happened, title};
use super::{courses, latency, topology};
use crate::chart::{Drawing, LOOKS};
use crate::html::chain::chain;
use crate::html::document::{caption, document};
use crate::html::parts::{
    Data, Reading, THE_SAME, Tabled as _, capital, chip, ending, figure, inline, is_empty, prose, tied,
};
use maud::{Markup, html};
use tidegate_analysis::experiment::{called, probe, series, tables};
use tidegate_measure::experiment::{EventRecord, Experiment};

/// The page of an experiment: an HTML document that needs nothing else.
pub fn page(experiment: &Experiment) -> String {
    let loads = Under::all(experiment);
    let content = html! {
        header { (head(experiment)) }
        main {
            (comparisons(experiment))
            (overview(experiment, &loads))
            (panels(&loads))
            (all_figures(experiment))
            (network(experiment))
            (policies(experiment))
            (again(experiment))
        }
    };
    document(title(&experiment.title, &experiment.scenario), content)
}

fn head(experiment: &Experiment) -> Markup {
    let how = match experiment.execution.as_str() {
        "sim" => "an experiment, simulated",
        "lab" => "an experiment, measured",
        "field" => "a path, measured",
        "flent" => "measured with flent",
        _ => "an experiment",
    };
    let cut = experiment.runs.iter().filter(|run| run.cut).count();
    html! {
        p.eyebrow { "tidegate · " (how) }
        h1.name { (title(&experiment.title, &experiment.scenario)) }
        @for paragraph in experiment.about.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            p.about { (prose(paragraph)) }
        }
        @if let Some(source) = &experiment.source {
            p.what { "After: " (source) }
        }
        @if cut > 0 {
            p.what.lost.key { (cut) " of " (experiment.runs.len()) " runs were stopped before their end." }
        }
    }
}

/// A drawing that has its size: it scrolls in its box where there is no room.
fn wide(drawing: &Drawing, caption: Markup) -> Markup {
    html! {
        figure.wide tabindex="0" { figcaption { (tied(caption)) } (inline(drawing)) }
    }
}

fn network(experiment: &Experiment) -> Markup {
    let drawing = topology::drawing(experiment);
    if drawing.is_none() && experiment.links.is_empty() {
        return Markup::default();
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
    let row = topology::in_a_row(experiment);
    let about = "Machines, whose devices may have policies, are framed; the slowest link is bold.";
    html! {
        section {
            h2 { "The network" }
            @match (row, drawing) {
                (Some((places, links)), _) => {
                    p.small { (about) }
                    (chain("The network", &places, &links))
                }
                (None, Some(drawing)) => {
                    div.only-wide { (wide(&drawing, html! { (about) })) }
                    div.narrow {
                        p.small { "Link by link; machines, whose devices may have policies, are framed." }
                        @for link in &experiment.links {
                            @let (places, links) = topology::alone(experiment, link);
                            (chain(&link.name, &places, &links))
                        }
                    }
                }
                (None, None) => { p.small { "It has too many nodes to be drawn; the table has them all." } }
            }
            details { summary { "Links" } (table.table()) }
        }
    }
}

fn comparisons(experiment: &Experiment) -> Markup {
    if experiment.comparisons.is_empty() {
        return Markup::default();
    }
    let required = || experiment.comparisons.iter().filter(|comparison| comparison.gated);
    let within = required().filter(|comparison| comparison.held).count();
    let reasons: Vec<(&str, &str)> =
        experiment.comparisons.iter().filter_map(|c| Some((c.id.as_str(), c.why.as_deref()?))).collect();
    html! {
        section {
            h2 { "Published and " (tables::found_word(experiment)) }
            p.said { (within) " of " (required().count()) " required figures are within their bounds." }
            div.figures.compared { (tables::comparisons(experiment).table()) }
            @if !reasons.is_empty() {
                ul.notes { @for (id, why) in reasons { li { b { (id) } " " (prose(why)) } } }
            }
        }
    }
}

/// Every case at a glance: each probe, each group of transfers, and the sheet.
fn overview(experiment: &Experiment, loads: &[Under<'_>]) -> Markup {
    let tables = tables::tables(experiment);
    let of = |caption: &str, name: &str| {
        let table = tables.iter().find(|table| table.caption.starts_with(caption));
        let rows = table
            .map(|table| table.rows.iter().filter(|row| row[2] == name).cloned().collect())
            .unwrap_or_default();
        Data {
            caption: name.to_owned(),
            head: table.map(|table| table.head.clone()).unwrap_or_default(),
            rows,
        }
    };
    let probe_of = |id: &str| {
        let probe = experiment.runs.iter().flat_map(|run| &run.probes).find(|probe| probe.id == id)?;
        Some((latency::summary(experiment, id)?, called(probe)))
    };
    html! {
        section {
            h2 { "Every case at a glance" }
            @for (drawing, name)
                in distinct(loads.iter().flat_map(Under::probes)).into_iter().filter_map(probe_of)
            {
                @let caption = html! {
                    b { (capital(&name)) "." }
                    " Dot: median; end of the bar, with its figure: 95th percentile; end of the thin line: \
                    99th. "
                    "Pooled over all repeats."
                };
                (figure(&[drawing], caption, Reading::None, &of(tables::REPLIES, &name)))
            }
            @for group in distinct(loads.iter().flat_map(Under::groups)) {
                @if let Some(drawing) = latency::carried(experiment, group) {
                    @let caption = html! {
                        b { (capital(group)) }
                        ", goodput while measured: the median over repeats; the thin line shows \
                        their range."
                    };
                    (figure(&[drawing], caption, Reading::None, &of(tables::THROUGHPUT, &capital(group))))
                }
            }
            @if let Some(drawing) = latency::all(experiment) {
                @let caption = html! {
                    b { "All cases on one sheet" }
                    ", on the same scales; below each the mean, its deviation (mdev), and losses."
                };
                details { summary { "All cases on one sheet" } (wide(&drawing, caption)) }
            }
        }
    }
}

/// A panel for each load, and the links that become tabs.
fn panels(loads: &[Under<'_>]) -> Markup {
    html! {
        @if loads.len() > 1 {
            nav.tabs data-tabs aria-label="Load" {
                @for (n, under) in loads.iter().enumerate() {
                    a href={ "#load-" (n) } { (capital(under.title())) }
                }
            }
        }
        @for (n, under) in loads.iter().enumerate() {
            section.panel id={ "load-" (n) } {
                h2 { "Load: " (under.title()) }
                (panel(under))
            }
        }
    }
}

fn panel(under: &Under<'_>) -> Markup {
    let shown = under.typical();
    let meanwhile = happened(&shown);
    html! {
        (repeats(under))
        (keys(&shown))
        (meanwhile_list(&meanwhile))
        @for id in under.probes() { (answers(under, &shown, id, &meanwhile)) }
        (transfers(under, &shown, &meanwhile))
        (queues(under, &shown, &meanwhile))
        (classes(under, &shown, &meanwhile))
        (windows(under, &shown, &meanwhile))
        (six_panels(under, &shown))
    }
}

/// The policies' looks, and what they are called on charts where that is not their title.
pub(super) fn keys(shown: &[RunView<'_>]) -> Markup {
    html! {
        ul.keys {
            @for one in shown {
                li {
                    (chip(one.look().colour())) b { (one.label) }
                    @if one.label != one.title { " " (one.title) }
                }
            }
        }
    }
}

/// Which of several repeats the charts show.
fn repeats(under: &Under<'_>) -> Markup {
    let most = under.cases.iter().map(|(_, case)| case.runs.len()).max().unwrap_or(0);
    let many = under.cases.len() > LOOKS;
    html! {
        @if most > 1 || many {
            p.small {
                @if most > 1 {
                    "Of " (most) " repeats the charts over time show the median one; tables have all."
                }
                @if most > 1 && many { " " }
                @if many { "Of the " (under.cases.len()) " policies, " (LOOKS) " at a time share a chart." }
            }
        }
    }
}

/// The events, with their numbers on the charts.
fn meanwhile_list(meanwhile: &Happened<'_>) -> Markup {
    let more = meanwhile.events.len().saturating_sub(MOST_EVENTS);
    let list = html! {
        ol.events {
            @for (event, of) in meanwhile.events.iter().take(MOST_EVENTS) { (happening(event, of)) }
        }
        @if more > 0 { p.small { "and " (more) " more" } }
    };
    html! {
        @match meanwhile.events.len() {
            0 => {}
            many => {
                h3 { "Timeline" }
                @if many <= MOST_OPEN { (list) } @else { details { summary { (many) " events" } (list) } }
            }
        }
    }
}

/// An event: its time, its node, and the output.
fn happening(event: &EventRecord, of: &[&str]) -> Markup {
    let seconds = format!("{:.2}", event.at as f64 / 1e9);
    let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
    html! {
        li {
            (seconds) "\u{a0}s, " (event.on) ": " code { (event.what) }
            @if !of.is_empty() { " " i { "(" (of.join(", ")) ")" } }
            @if !event.output.trim().is_empty() {
                details { summary { "output" } pre tabindex="0" { (event.output.trim_end()) } }
            }
        }
    }
}

/// Events listed at most.
const MOST_EVENTS: usize = 200;
/// More events than these are behind a line to open them.
const MOST_OPEN: usize = 12;

fn answers(under: &Under<'_>, shown: &[RunView<'_>], id: &str, meanwhile: &Happened<'_>) -> Markup {
    let Some(probe) = shown.iter().find_map(|one| probe(one, id)) else { return Markup::default() };
    let over_time = latency::over_time(shown, under.title(), id, meanwhile);
    let about = html! { (caption("over time")) ". Strokes at the top: lost. Shaded: warm-up." };
    let distribution = latency::distribution(shown, under.title(), id);
    html! {
        h3 { (capital(&called(probe))) }
        (figure(&over_time, about, Reading::Across, &series::answers(shown, id)))
        @if !distribution.is_empty() {
            @let about = html! {
                (caption("distribution"))
                " (CDF): the share of requests answered within a time; losses leave a gap at the top."
            };
            (figure(&distribution, about, Reading::None, &series::percentiles(shown, id)))
        }
    }
}

fn transfers(under: &Under<'_>, shown: &[RunView<'_>], meanwhile: &Happened<'_>) -> Markup {
    html! {
        @for group in under.groups() {
            h3 { (capital(group)) ": goodput" }
            div.cards {
                @for one in shown {
                    @if let Some(drawing) = courses::transfers(under, one, group, meanwhile) {
                        (figure(&[drawing], caption(one.title), Reading::Across, &series::transfers(one,
                            group)))
                    }
                }
            }
        }
    }
}

fn queues(under: &Under<'_>, shown: &[RunView<'_>], meanwhile: &Happened<'_>) -> Markup {
    let links = courses::links(shown);
    html! {
        @if !links.is_empty() { h3 { "Backlog before links" } }
        @for (link, up) in links { (waiting(shown, under.title(), (link, up), meanwhile)) }
    }
}

/// What waits before a link, in one direction.
pub(super) fn waiting(
    all: &[RunView<'_>],
    load: &str,
    (link, up): (&str, bool),
    meanwhile: &Happened<'_>,
) -> Markup {
    let drawings = courses::before_link(all, load, (link, up), meanwhile);
    let way = if up { "up" } else { "down" };
    let about = html! { (caption(&format!("{link} {way}"))) ": backlog in buffers without a policy." };
    figure(&drawings, about, Reading::Across, &series::waiting(all, link, up))
}

fn classes(under: &Under<'_>, shown: &[RunView<'_>], meanwhile: &Happened<'_>) -> Markup {
    let cards = html! {
        @for one in shown {
            @for device in courses::devices(one.run) {
                @for view in courses::VIEWS {
                    @if let Some((drawing, hidden)) = courses::in_classes(under, one, device, view,
                        meanwhile) {
                        @let about = html! {
                            (caption(one.title)) ": " (view.word) " on " (device)
                            (left_out(hidden, "classes that had less"))
                        };
                        (figure(&[drawing], about, Reading::Across, &series::classes(one, device, view.word)))
                    }
                }
            }
        }
    };
    carded("Class by class", cards)
}

fn left_out(hidden: usize, what: &str) -> String {
    if hidden > 0 { format!("; {hidden} {what} are not drawn") } else { String::new() }
}

fn windows(under: &Under<'_>, shown: &[RunView<'_>], meanwhile: &Happened<'_>) -> Markup {
    let cards = html! {
        @for one in shown {
            @if let Some((drawing, hidden)) = courses::windows(under, one, meanwhile) {
                @let about = html! { (caption(one.title)) (left_out(hidden, "more transfers")) };
                (figure(&[drawing], about, Reading::Across, &series::windows(one)))
            }
        }
    };
    carded("Congestion windows", cards)
}

/// Cards under a heading, where there are any.
fn carded(heading: &str, cards: Markup) -> Markup {
    html! {
        @if !is_empty(&cards) { h3 { (heading) } div.cards { (cards) } }
    }
}

fn six_panels(under: &Under<'_>, shown: &[RunView<'_>]) -> Markup {
    let drawn = shown.iter().filter_map(|one| Some((one, latency::six_panels(under, one)?)));
    let drawn: Vec<(&RunView<'_>, Drawing)> = drawn.collect();
    html! {
        @if !drawn.is_empty() {
            details.figures {
                summary { "Six panels per policy, arranged as ping-exp’s" }
                @for (one, drawing) in &drawn { (wide(drawing, caption(one.title))) }
            }
        }
    }
}

fn all_figures(experiment: &Experiment) -> Markup {
    html! {
        section {
            h2 { "All figures" }
            @if experiment.runs.iter().any(|run| run.repeat > 0) {
                p.small { "The median over repeats, with minimum and maximum in brackets." }
            }
            @for table in tables::tables(experiment) {
                details.figures open { summary { (table.caption) } (table.table()) }
            }
        }
    }
}

fn policies(experiment: &Experiment) -> Markup {
    if experiment.policies.is_empty() {
        return Markup::default();
    }
    html! {
        section {
            h2 { "The policies" }
            @for policy in &experiment.policies {
                h3 { (capital(title(&policy.title, &policy.name))) }
                @if policy.commands.iter().all(|(_, lines)| lines.is_empty()) {
                    p.small { "No commands: the default configuration." }
                }
                @for (machine, lines) in policy.commands.iter().filter(|(_, lines)| !lines.is_empty()) {
                    (commands(machine, lines))
                }
            }
        }
    }
}

/// The commands of a machine; many are behind a line to open them.
fn commands(machine: &str, lines: &[String]) -> Markup {
    let list = html! { pre tabindex="0" { (lines.join("\n")) } };
    html! {
        @if lines.len() <= MOST_LINES {
            p.small { "On " (machine) ":" }
            (list)
        } @else {
            details { summary { "On " (machine) ": " (lines.len()) " commands" } (list) }
        }
    }
}

/// More lines than these are behind a line to open them.
const MOST_LINES: usize = 40;

fn again(experiment: &Experiment) -> Markup {
    let promise = match experiment.execution.as_str() {
        "sim" => THE_SAME,
        _ => "This command repeats the experiment",
    };
    let packets: u64 = experiment.runs.iter().map(|run| run.work.0).sum();
    let simulated = if packets > 0 { format!(", {packets} packets") } else { String::new() };
    let Experiment { version, scenario, seed, runs, .. } = experiment;
    let made =
        format!("tidegate {version}, scenario {scenario}, seed {seed}, {} runs{simulated}", runs.len());
    ending(&experiment.notes, promise, &experiment.again, &made)
}

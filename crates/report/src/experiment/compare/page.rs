//! A comparison as one page: the same charts as an experiment's, with results instead of policies laid over
//! each other.

use crate::chart::{Drawing, Group, LOOKS, Look, Mark, cases, cases_spans};
use crate::experiment::page::{keys, waiting};
use crate::experiment::show::{Happened, RunView, distinct, happened, title, typical};
use crate::experiment::{courses, latency};
use crate::html::document::{caption, document};
use crate::html::parts::{Data, Reading, Tabled as _, capital, chip, figure, prose};
use maud::{Markup, html};
use tidegate_analysis::experiment::{Comparing, ComparisonRow, Side, by, series};
use tidegate_measure::Durations;
use tidegate_measure::experiment::{Experiment, group_of};
use tidegate_measure::numbers::format_duration;

/// The page of a comparison: an HTML document that needs nothing else.
pub fn comparison_page(comparing: &Comparing<'_>) -> String {
    let names: Vec<&str> = comparing.sides.iter().map(|side| side.label.as_str()).collect();
    let of_policies = comparing.is_of_policies();
    let heading = names.join(" and ");
    let content = html! {
        header {
            p.eyebrow { "tidegate · " (if of_policies { "policies compared" } else { "results compared" }) }
            h1.name { (heading) }
            (results(comparing))
        }
        main {
            (apart(comparing))
            (glance(comparing))
            (figures(comparing))
            @for (policy, load) in comparing.cases() { (case(comparing, policy, load)) }
            (again(comparing))
        }
    };
    document(&heading, content)
}

/// The results that are compared, each in its look.
fn results(comparing: &Comparing<'_>) -> Markup {
    let about = |experiment: &Experiment| match experiment.policies.first() {
        Some(policy) if comparing.is_of_policies() => policy.title.clone(),
        _ => experiment.title.clone(),
    };
    html! {
        ul.keys {
            @for (n, Side { label, experiment }) in comparing.sides.iter().enumerate() {
                li {
                    (chip(Look(n).colour())) b { (label) } " " (about(experiment)) " "
                    span { "· " (by(experiment)) ", seed " (experiment.seed) }
                }
            }
        }
    }
}

fn apart(comparing: &Comparing<'_>) -> Markup {
    html! {
        @if !comparing.apart.is_empty() {
            section {
                h2 { "Differences between the results" }
                ul.notes { @for sentence in &comparing.apart { li { (prose(sentence)) } } }
            }
        }
    }
}

/// Each probe in every case.
fn glance(comparing: &Comparing<'_>) -> Markup {
    let rows = comparing.rows.iter().filter_map(|row| row.figure.strip_suffix(".p95"));
    let summaries = distinct(rows).into_iter().filter_map(|id| Some((id, summary(comparing, id)?)));
    let all: Vec<(&str, Drawing)> = summaries.collect();
    let of = |id: &str| -> Vec<&ComparisonRow> {
        comparing.rows.iter().filter(|row| row.figure.starts_with(&format!("{id}."))).collect()
    };
    html! {
        @if !all.is_empty() {
            section {
                h2 { "Every case at a glance" }
                @for (id, drawing) in all {
                    @let about = html! {
                        (caption(id))
                        ". Dot: median; end of the bar, with its figure: 95th percentile; end of the thin \
                        line: 99th."
                    };
                    (figure(&[drawing], about, Reading::None, &table(comparing, &of(id))))
                }
            }
        }
    }
}

fn summary(comparing: &Comparing<'_>, id: &str) -> Option<Drawing> {
    let mut groups = Vec::new();
    let mut lines = Vec::new();
    let (mut low, mut high) = (u64::MAX, 0);
    for (policy, load) in comparing.cases() {
        let mut marks = Vec::new();
        for (n, side) in comparing.sides.iter().enumerate() {
            let Some(case) = side.experiment.case(policy, load) else { continue };
            let figures = Durations::new(tidegate_analysis::experiment::answers(&case, id));
            let (Some(found), Some(least)) = (figures.summary(), figures.min()) else { continue };
            (low, high) = (low.min(least), high.max(found.p99));
            let [p50, p95, p99] = [found.p50, found.p95, found.p99].map(|ns| ns as f64);
            lines.push(format!(
                "{policy}, {load}, {}: 95 % within {}",
                side.label,
                format_duration(found.p95)
            ));
            marks.push(Mark {
                name: side.label.clone(),
                look: Look(n),
                bar: (p50, p95),
                dot: p50,
                whisker: (p50, p99),
                text: format_duration(found.p95),
            });
        }
        if !marks.is_empty() {
            groups.push(Group { title: names(comparing, policy, load), cases: marks });
        }
    }
    let title = format!("{id}: median, 95th and 99th percentile of every case");
    (high > 0).then(|| cases(&title, &lines.join("; "), cases_spans(low, high), &groups))
}

/// The title of a case: the one in the first result that has it.
fn names(comparing: &Comparing<'_>, policy: &str, load: &str) -> String {
    let case = comparing.sides.iter().find_map(|side| side.experiment.case(policy, load));
    let of_policies = comparing.is_of_policies();
    let load_title =
        case.as_ref().map_or_else(|| load.to_owned(), |case| title(&case.load.title, load).into());
    match case {
        _ if of_policies => load_title,
        Some(case) => format!("{load_title}, {}", title(&case.policy.title, policy)),
        None => format!("{load_title}, {policy}"),
    }
}

fn table(comparing: &Comparing<'_>, rows: &[&ComparisonRow]) -> Data {
    let of_policies = comparing.is_of_policies();
    let keys = if of_policies { &["load", "figure"][..] } else { &["load", "policy", "figure"] };
    let mut head: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    for (n, side) in comparing.sides.iter().enumerate() {
        head.push(side.label.clone());
        if n > 0 {
            head.push("change".to_owned());
        }
    }
    let row = |row: &&ComparisonRow| {
        let mut cells = vec![row.load.clone()];
        cells.extend((!of_policies).then(|| row.policy.clone()));
        cells.push(row.figure.clone());
        for side in 0..comparing.sides.len() {
            cells.push(row.shown(side));
            if side > 0 {
                cells.push(row.change(side).map_or_else(String::new, |change| change.shown()));
            }
        }
        cells
    };
    Data { caption: "Figures compared".to_owned(), head, rows: rows.iter().map(row).collect() }
}

fn figures(comparing: &Comparing<'_>) -> Markup {
    let rows: Vec<&ComparisonRow> = comparing.rows.iter().collect();
    let legend: String = comparing.legend().iter().map(|sentence| format!(" {sentence}.")).collect();
    let against = comparing.sides.first().map_or("", |side| side.label.as_str());
    html! {
        section {
            h2 { "Figures compared" }
            p.small {
                "The median over repeats, with minimum and maximum in brackets. Changes are relative to  " (against) "."
                (prose(&legend))
            }
            div.figures { (table(comparing, &rows).table()) }
        }
    }
}

/// A case: the results laid over each other.
fn case(comparing: &Comparing<'_>, policy: &str, load: &str) -> Markup {
    let mut all: Vec<RunView<'_>> = Vec::new();
    for (n, side) in comparing.sides.iter().enumerate() {
        let Some(case) = side.experiment.case(policy, load) else { continue };
        all.push(RunView { policy: n, title: &side.label, label: &side.label, run: typical(&case) });
    }
    let name = names(comparing, policy, load);
    let meanwhile = happened(&all);
    let probes = distinct(all.iter().flat_map(|one| &one.run.probes).map(|probe| probe.id.as_str()));
    let groups =
        distinct(all.iter().flat_map(|one| &one.run.transfers).map(|transfer| group_of(&transfer.id)));
    html! {
        section {
            h2 { (capital(&name)) }
            (keys(&all))
            @for id in probes { (answers(&all, &name, id, &meanwhile)) }
            @for group in groups {
                @let drawings = courses::carried(&all, &name, group, &meanwhile);
                @let about = html! { (caption(group)) ": goodput, sum of its transfers." };
                (figure(&drawings, about, Reading::Across, &series::carried(&all, group)))
            }
            @for link in courses::links(&all) { (waiting(&all, &name, link, &meanwhile)) }
            @if all.len() > LOOKS {
                p.small { "Of " (all.len()) " results " (LOOKS) " at a time share a chart." }
            }
        }
    }
}

fn answers(all: &[RunView<'_>], name: &str, id: &str, meanwhile: &Happened<'_>) -> Markup {
    let over_time = latency::over_time(all, name, id, meanwhile);
    let about = html! { (caption(id)) " over time. Strokes at the top: lost. Shaded: warm-up." };
    let distribution = latency::distribution(all, name, id);
    html! {
        (figure(&over_time, about, Reading::Across, &series::answers(all, id)))
        @if !distribution.is_empty() {
            @let about = html! { (caption(id)) " (CDF): the share of requests answered within a time." };
            (figure(&distribution, about, Reading::None, &series::percentiles(all, id)))
        }
    }
}

fn again(comparing: &Comparing<'_>) -> Markup {
    let of_side = |side: &Side| format!("# {}\n{}", side.label, side.experiment.again);
    let commands: Vec<String> = match comparing.sides {
        [first, ..] if comparing.is_of_policies() => vec![first.experiment.again.clone()],
        sides => sides.iter().map(of_side).collect(),
    };
    html! {
        footer {
            h2 { "Again" }
            p { "These commands give the results:" }
            pre tabindex="0" { (commands.join("\n")) }
        }
    }
}

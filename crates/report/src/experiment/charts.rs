//! Every chart of an experiment, with the name its file gets.

use super::show::{Under, distinct, happened};
use super::{courses, latency, topology};
use crate::chart::Drawing;
use std::collections::BTreeSet;
use tidegate_analysis::experiment::file_name;
use tidegate_measure::experiment::Experiment;

/// The charts of an experiment: names of files without their ending, each once, and drawings.
pub fn charts(experiment: &Experiment) -> Vec<(String, Drawing)> {
    let mut all: Vec<(String, Drawing)> = Vec::new();
    all.extend(topology::drawing(experiment).map(|drawing| ("topology".to_owned(), drawing)));
    let loads = Under::all(experiment);
    for id in distinct(loads.iter().flat_map(Under::probes)) {
        all.extend(latency::summary(experiment, id).map(|drawing| (format!("summary-{id}"), drawing)));
    }
    for group in distinct(loads.iter().flat_map(Under::groups)) {
        all.extend(latency::carried(experiment, group).map(|drawing| (format!("summary-{group}"), drawing)));
    }
    all.extend(latency::all(experiment).map(|drawing| ("sheet".to_owned(), drawing)));
    for under in &loads {
        all.extend(of_load(under));
    }
    unique(all)
}

fn of_load(under: &Under<'_>) -> Vec<(String, Drawing)> {
    let load = &under.load.name;
    let shown = under.typical();
    let meanwhile = happened(&shown);
    let mut all = Vec::new();
    let mut add =
        |name: String, drawings: Vec<Drawing>| all.extend(drawings.into_iter().map(|d| (name.clone(), d)));
    for id in under.probes() {
        add(format!("{load}-{id}-time"), latency::over_time(&shown, under.title(), id, &meanwhile));
        add(format!("{load}-{id}-distribution"), latency::distribution(&shown, under.title(), id));
    }
    for (link, up) in courses::links(&shown) {
        let way = if up { "up" } else { "down" };
        add(
            format!("{load}-waiting-{link}-{way}"),
            courses::before_link(&shown, under.title(), (link, up), &meanwhile),
        );
    }
    for (one, (_, case)) in shown.iter().zip(&under.cases) {
        let case = format!("{load}-{}", case.policy.name);
        for group in under.groups() {
            let drawing = courses::transfers(under, one, group, &meanwhile);
            add(format!("{case}-{group}"), drawing.into_iter().collect());
        }
        for device in courses::devices(one.run) {
            for view in courses::VIEWS {
                let drawn =
                    courses::in_classes(under, one, device, view, &meanwhile).map(|(drawing, _)| drawing);
                add(
                    format!("{case}-{}-{}", view.word, device.replace(':', "-")),
                    drawn.into_iter().collect(),
                );
            }
        }
        let windows = courses::windows(under, one, &meanwhile).map(|(drawing, _)| drawing);
        add(format!("{case}-windows"), windows.into_iter().collect());
        add(format!("{case}-pingexp"), latency::six_panels(under, one).into_iter().collect());
    }
    all
}

/// Names that any file system takes, each once.
fn unique(all: Vec<(String, Drawing)>) -> Vec<(String, Drawing)> {
    let mut taken = BTreeSet::new();
    let name = |name: String| {
        let plain = file_name(&name);
        let numbered = (1..).map(|n| if n == 1 { plain.clone() } else { format!("{plain}-{n}") });
        numbered.into_iter().find(|name| taken.insert(name.clone())).unwrap_or(plain)
    };
    let (names, drawings): (Vec<String>, Vec<Drawing>) = all.into_iter().unzip();
    names.into_iter().map(name).zip(drawings).collect()
}

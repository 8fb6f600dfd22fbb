//! `tidegate try SCRIPT`: a policy taken in from a script, and what it does to a simulated link.
//!
//! The script runs in a private namespace against the model machine; what it configured is then simulated without and with it, on an
//! idle link and under several loads, behind a modem with a big dumb buffer. People's traffic goes on beside every load, and classes that
//! none of it reaches get a conversation made from the policy's own rules.
//!
//! ```text
//! policy (script → operations) ─┬─ reach: which class each conversation takes
//!                               └─ loads × without/with ──▶ scenario ──▶ document ──▶ report
//! ```

mod again;
mod document;
mod loads;
mod options;
mod policy;
mod reach;
mod scenario;
mod verdict;
mod versions;
mod words;

pub(crate) use loads::{Burden, LAST_HOST, Transfers};
pub use options::Options;
pub(crate) use options::{Buffer, LoadName, buffer, rate, span, stacked};
pub(crate) use policy::{Policy, of_taken};
pub(crate) use reach::Place;
pub(crate) use scenario::{START, Trees};
pub(crate) use tidegate_scenario::shell::{quoted, tc_rate, tc_time};

use anyhow::Context;
use indicatif::ProgressBar;
use loads::{Item, Load};
use scenario::Run;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// A trial under way.
struct Trial<'o> {
    options: &'o Options,
    policy: &'o Policy,
    loads: Vec<Load>,
    probes: Vec<Item>,
    /// Conversations for classes that nothing else reaches.
    extras: Vec<Item>,
    /// The leaf classes that each conversation takes, by its title.
    taken: BTreeMap<String, Vec<Place>>,
    /// Classes nothing was found for, and why.
    unreached: BTreeMap<Place, String>,
    trees: Trees,
    runs: Vec<Run>,
    notes: Vec<String>,
}

/// Plays `tidegate try`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(text) => {
            crate::output::text(&text);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("tidegate try: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<String> {
    let policy = policy::take_in(options).with_context(|| options.script.display().to_string())?;
    let mut trial = Trial::new(options, &policy);
    trial.explore();
    trial.notes.extend(versions::notes(&trial));
    trial.simulate();
    let mut document = document::document(&trial);
    document.verdict = verdict::sentences(&document);
    let mut text = if options.json { tidegate_report::json(&document) } else { tidegate_report::text(&document) };
    if let Some(path) = report_path(options) {
        let report = match path.extension() {
            Some(svg) if svg == "svg" => {
                tidegate_report::picture(&document, "voip-up", options.log).context("there is nothing to draw")?
            }
            _ => tidegate_report::html(&document),
        };
        crate::output::file(&path, report).with_context(|| {
            format!(
                "the report could not be written to {} (--report FILE puts it elsewhere, none nowhere)",
                path.display()
            )
        })?;
        if !options.json {
            text.push_str(&format!("Report: {}\n", path.display()));
        }
    }
    if let Some(run) = trial.runs.iter().rfind(|run| run.with_policy && !run.witnesses) {
        text.push_str(&run.shown);
    }
    Ok(text)
}

/// A policy under loads of one's own, measured with it only.
pub(crate) fn measure(options: &Options, burdens: &[Burden]) -> anyhow::Result<tidegate_measure::trial::Trial> {
    let policy = policy::take_in(options).with_context(|| options.script.display().to_string())?;
    let mut trial = Trial::new(options, &policy);
    trial.loads = burdens.iter().map(|burden| loads::burden(burden, options, &policy)).collect();
    trial.ask();
    let bar = ProgressBar::hidden();
    for (index, load) in trial.loads.iter().enumerate() {
        let items = trial.probes.iter().chain(&load.items).cloned().collect();
        trial.runs.push(scenario::run(options, &policy, (index, load), items, true, &bar));
    }
    Ok(document::document(&trial))
}

/// Where the report goes, if anywhere.
fn report_path(options: &Options) -> Option<PathBuf> {
    match &options.report {
        Some(path) if path.as_os_str() == "none" => None,
        Some(path) => Some(path.clone()),
        None if options.json => None,
        None => {
            let stem = options.script.file_stem().unwrap_or_default().to_string_lossy();
            Some(PathBuf::from(format!("tidegate-{stem}.html")))
        }
    }
}

impl<'o> Trial<'o> {
    fn new(options: &'o Options, policy: &'o Policy) -> Trial<'o> {
        Trial {
            options,
            policy,
            loads: loads::loads(options, policy),
            probes: loads::probes(options),
            extras: Vec::new(),
            taken: BTreeMap::new(),
            unreached: BTreeMap::new(),
            trees: scenario::trees(policy, options.seed),
            runs: Vec::new(),
            notes: policy.notes.clone(),
        }
    }

    /// Learns which classes the traffic takes.
    fn ask(&mut self) {
        let loads = self.loads.iter().flat_map(|load| &load.items);
        for item in self.probes.iter().chain(loads) {
            if !self.taken.contains_key(&item.title) {
                self.taken.insert(item.title.clone(), reach::ask(self.policy, &item.traffic, self.options.seed));
            }
        }
    }

    /// Learns which classes the traffic takes, and finds some for the classes it leaves out.
    fn explore(&mut self) {
        let seed = self.options.seed;
        self.ask();
        let taken: Vec<Place> = self.taken.values().flatten().cloned().collect();
        let filled = reach::fill(self.policy, &self.trees, &taken, seed);
        for (place, candidate) in filled.found {
            let title = format!("{} (for class {})", candidate.title, place.label(self.policy));
            self.taken.insert(title.clone(), vec![place]);
            let id = format!("extra-{}", self.extras.len() + 1);
            self.extras.push(Item { id, title, unit: "", traffic: candidate.traffic });
        }
        self.unreached = filled.unreachable;
        if !filled.untried.is_empty() {
            let names: Vec<String> = filled.untried.iter().map(|place| place.label(self.policy)).collect();
            self.notes.push(format!(
                "nothing of this trial goes through {}: no conversation was found that does, though packets may",
                names.join(", ")
            ));
        }
    }

    fn simulate(&mut self) {
        let every_class = self.every_class();
        let runs = self.loads.iter().flat_map(|load| [load; 2]).chain(&every_class);
        let bar = crate::sim::progress("simulating", runs.map(|load| scenario::seconds(self.options, load)).sum());
        for (index, load) in self.loads.iter().enumerate() {
            let items: Vec<Item> = self.probes.iter().chain(&load.items).cloned().collect();
            for with_policy in [false, true] {
                let items = items.clone();
                self.runs.push(scenario::run(self.options, self.policy, (index, load), items, with_policy, &bar));
            }
        }
        if let Some(load) = every_class {
            let items = self.probes.iter().chain(&load.items).cloned().collect();
            let run = scenario::run(self.options, self.policy, (self.loads.len(), &load), items, true, &bar);
            self.runs.push(Run { witnesses: true, ..run });
            self.loads.push(load);
        }
        bar.finish_and_clear();
    }

    /// The last load that sends, with the conversations for the classes that it leaves empty; none where it leaves
    /// none, or where loads were asked for by name. A run of its own: what is sent for their sake must not change
    /// what the loads are said to do.
    fn every_class(&self) -> Option<Load> {
        let busiest = self.loads.iter().rfind(|load| load.items.iter().any(|item| item.transfer() == Some(true)));
        let load = busiest.filter(|_| self.options.load.is_empty() && !self.extras.is_empty())?;
        Some(Load {
            id: "every class".to_owned(),
            title: format!("{}, and something for each class that these leave empty", load.title),
            items: load.items.iter().chain(&self.extras).cloned().collect(),
        })
    }

    /// The class that most of a conversation's bytes take.
    fn class_of(&self, item: &Item) -> Option<String> {
        let place = self.taken.get(&item.title)?.first()?;
        Some(place.label(self.policy))
    }

    /// What a class carries, in a few words: what its filters ask for, else the conversations that take it.
    fn title_of(&self, place: &Place) -> String {
        if let Some(words) = self.policy.title_of(place, &self.trees.filters) {
            return words;
        }
        let takes = |places: &Vec<Place>| places.first() == Some(place);
        let titles: Vec<&str> = self.taken.iter().filter(|(_, p)| takes(p)).map(|(title, _)| title.as_str()).collect();
        titles.join(", ")
    }
}

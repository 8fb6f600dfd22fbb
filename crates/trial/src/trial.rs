//! A whole trial.

use crate::document;
use crate::home::{self, Run};
use crate::loads::{self, Item, Load, Workload};
use crate::neighbours;
use crate::policy::TrialPolicy;
use crate::reach::{self, DeviceClass};
use crate::settings::TrialSettings;
use crate::state::Trial;
use crate::verdict;
use crate::versions;
use tidegate_measure::trial as doc;

/// Simulates a policy under workloads of the caller's, with it only; the result is not evaluated.
pub fn measure(settings: &TrialSettings, policy: &TrialPolicy, workloads: &[Workload]) -> doc::TrialDocument {
    let mut trial = Trial::new(settings, policy);
    trial.loads = workloads.iter().map(|workload| loads::workload(workload, settings, policy)).collect();
    trial.household.move_into(&mut trial.loads);
    trial.ask();
    for (index, load) in trial.loads.iter().enumerate() {
        let items = trial.probes.iter().chain(&load.items).cloned().collect();
        trial.runs.push(home::run(settings, policy, (index, load), items, true, &|| ()));
    }
    document::document(&trial)
}

impl Trial<'_> {
    /// Learns which classes the traffic takes, and finds some for the classes it leaves out.
    pub fn explore(&mut self) {
        let seed = self.options.seed;
        self.ask();
        let taken: Vec<DeviceClass> = self.taken.values().flatten().cloned().collect();
        let filled = reach::fill(self.policy, &self.trees, &taken, seed);
        for (place, candidate) in filled.found {
            let title = format!("{} (for class {})", candidate.title(&place), place.label(self.policy));
            self.taken.insert(title.clone(), vec![place]);
            let id = format!("extra-{}", self.extras.len() + 1);
            self.extras.push(Item { id, title, unit: "", traffic: candidate.traffic });
        }
        self.unreached = filled.unreachable;
        self.unsent = filled.unsent;
        self.untried = filled.untried;
        let notes = versions::notes(self);
        self.notes.extend(notes);
    }

    /// Link time that all runs take together, in whole seconds.
    pub fn seconds(&self) -> u64 {
        let every_class = self.every_class();
        let runs = self.loads.iter().flat_map(|load| [load; 2]).chain(&every_class);
        runs.map(|load| home::seconds(self.options, load)).sum()
    }

    /// Simulates each load without the policy and with it; `second` hears of each second of link time.
    pub fn simulate(&mut self, second: &dyn Fn()) {
        let every_class = self.every_class();
        for (index, load) in self.loads.iter().enumerate() {
            let items: Vec<Item> = self.probes.iter().chain(&load.items).cloned().collect();
            for with_policy in [false, true] {
                let items = items.clone();
                self.runs.push(home::run(
                    self.options,
                    self.policy,
                    (index, load),
                    items,
                    with_policy,
                    second,
                ));
            }
        }
        if let Some(load) = every_class {
            let items = self.probes.iter().chain(&load.items).cloned().collect();
            let run = home::run(self.options, self.policy, (self.loads.len(), &load), items, true, second);
            self.runs.push(Run { witnesses: true, ..run });
            self.loads.push(load);
        }
    }

    /// The last load that sends, with the conversations for the classes that it leaves empty; none where it
    /// leaves none, or where loads were given by name. It is a run of its own: those conversations must not
    /// change the figures of the load.
    fn every_class(&self) -> Option<Load> {
        let busiest =
            self.loads.iter().rfind(|load| load.items.iter().any(|item| item.transfer() == Some(true)));
        let load = busiest.filter(|_| self.options.load.is_empty() && !self.extras.is_empty())?;
        Some(Load {
            id: "every class".to_owned(),
            title: format!("{}, and something for each class that these leave empty", load.title),
            items: load.items.iter().chain(&self.extras).cloned().collect(),
            served_from: load.served_from,
        })
    }

    /// What was found, with what follows from it in sentences.
    pub fn document(&self) -> doc::TrialDocument {
        let mut document = document::document(self);
        // A note that the link dies comes before notes about its quality.
        document.verdict = neighbours::sentences(self.policy, self.options.ipv6);
        document.verdict.extend(verdict::sentences(&document));
        document
    }

    /// The output of the commands after the last load with the policy; see [`TrialSettings::show`].
    pub fn shown(&self) -> &str {
        let last = self.runs.iter().rfind(|run| run.with_policy && !run.witnesses);
        last.map_or("", |run| run.shown.as_str())
    }
}

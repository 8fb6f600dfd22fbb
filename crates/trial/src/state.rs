//! A trial under way.

use crate::home::{self, InstalledTrees, Run};
use crate::household::Household;
use crate::loads::{self, Item, Load};
use crate::policy::TrialPolicy;
use crate::reach::{self, DeviceClass};
use crate::settings::TrialSettings;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_policy::Kind;
use tidegate_policy::netfilter::{Condition, Match};

/// A trial under way.
pub struct Trial<'o> {
    pub(crate) options: &'o TrialSettings,
    pub(crate) policy: &'o TrialPolicy,
    pub(crate) loads: Vec<Load>,
    pub(crate) probes: Vec<Item>,
    /// Conversations for classes that nothing else reaches.
    pub(crate) extras: Vec<Item>,
    /// The leaf classes that each conversation takes, by its title.
    pub(crate) taken: BTreeMap<String, Vec<DeviceClass>>,
    /// Classes nothing was found for, and why.
    pub(crate) unreached: BTreeMap<DeviceClass, String>,
    /// Classes that packets come to, though no conversation that was tried.
    pub(crate) unsent: Vec<DeviceClass>,
    /// Classes for which no conversation was found, though there may be one.
    pub(crate) untried: Vec<DeviceClass>,
    pub(crate) trees: InstalledTrees,
    pub(crate) runs: Vec<Run>,
    pub(crate) notes: Vec<String>,
    /// The addresses of the computers.
    pub(crate) household: Household,
}

impl<'o> Trial<'o> {
    /// Of a policy, with these settings; nothing is simulated yet but its empty trees.
    pub fn new(options: &'o TrialSettings, policy: &'o TrialPolicy) -> Trial<'o> {
        let (mut loads, mut probes) = (loads::loads(options, policy), loads::probes(options));
        let household = Household::of(policy);
        household.move_into(&mut loads);
        household.move_in(&mut probes);
        let moved = household.note().filter(|_| !options.ipv6);
        Trial {
            options,
            policy,
            loads,
            probes,
            extras: Vec::new(),
            taken: BTreeMap::new(),
            unreached: BTreeMap::new(),
            unsent: Vec::new(),
            untried: Vec::new(),
            trees: home::trees(policy, options.seed),
            runs: Vec::new(),
            notes: policy.notes.iter().cloned().chain(moved).collect(),
            household,
        }
    }

    /// The classes that nothing of this trial left through, with what is known of why. Where a
    /// class is for connections that have carried much, a long transfer comes there, though none was found
    /// beforehand.
    pub(crate) fn empty_notes(&self) -> impl Iterator<Item = String> {
        let sent = |place: &DeviceClass| {
            let courses = self.runs.iter().flat_map(|run| &run.courses);
            let mut own = courses.filter(|course| course.device == place.device && course.id == place.class);
            own.any(|course| course.sent.iter().any(|&bytes| bytes > 0))
        };
        let note = |places: &[DeviceClass], why: &str| {
            let empty = places.iter().filter(|place| !sent(place));
            let names: Vec<String> = empty.map(|place| place.label(self.policy)).collect();
            (!names.is_empty())
                .then(|| format!("nothing of this trial leaves through {}: {why}", names.join(", ")))
        };
        let unsent =
            "packets come there by the rules and filters, but no conversation that was tried here does";
        let untried = "no conversation was found that does; whether any packet can is not known";
        [note(&self.unsent, unsent), note(&self.untried, untried)].into_iter().flatten()
    }

    /// That conversations do not stay in the classes that are named after them: rules ask how much a
    /// connection has carried.
    pub(crate) fn moved_note(&self) -> Option<String> {
        let counts = |found: &Match| matches!(found.what, Condition::Connbytes(_));
        let moves = self.policy.rules().any(|(_, rule)| rule.matches.iter().any(counts));
        moves.then(|| {
            "rules count what a connection has carried: classes are named after the conversations that begin \
            in them, and a long transfer may be in another one later"
                .to_owned()
        })
    }

    /// That what is sent is the gateway's own, because the policy has rules for that.
    pub(crate) fn served_note(&self) -> Option<String> {
        let port = self.loads.iter().find_map(|load| load.served_from)?;
        Some(format!(
            "rules of OUTPUT are for what this machine sends from port {port}: that is what is sent here; uploads \
            of the computers behind it (--load hosts) may come to other classes"
        ))
    }

    /// That the policy itself delays packets or loses them, where some came to its netem.
    pub(crate) fn netem_note(&self) -> Option<String> {
        let netems = self.runs.iter().flat_map(|run| &run.trees.qdiscs);
        let netems = netems.filter(|qdisc| qdisc.kind == Kind::Netem && qdisc.stats.packets > 0);
        let names: BTreeSet<String> =
            netems.map(|qdisc| format!("netem {} on {}", qdisc.handle, qdisc.dev)).collect();
        (!names.is_empty()).then(|| {
            let names: Vec<String> = names.into_iter().collect();
            format!(
                "what the policy's {} does to packets by its own settings is in the figures with the policy",
                names.join(", ")
            )
        })
    }

    /// Learns which classes the traffic takes.
    pub(crate) fn ask(&mut self) {
        let loads = self.loads.iter().flat_map(|load| &load.items);
        for item in self.probes.iter().chain(loads) {
            if !self.taken.contains_key(&item.title) {
                self.taken
                    .insert(item.title.clone(), reach::ask(self.policy, &item.traffic, self.options.seed));
            }
        }
    }

    /// The class that most of a conversation's bytes take.
    pub(crate) fn class_of(&self, item: &Item) -> Option<String> {
        let place = self.taken.get(&item.title)?.first()?;
        Some(place.label(self.policy))
    }

    /// What a class carries, in a few words: what its filters ask for, else the conversations that take it.
    pub(crate) fn title_of(&self, place: &DeviceClass) -> String {
        if let Some(words) = self.policy.title_of(place, &self.trees.filters) {
            return words;
        }
        let takes = |places: &Vec<DeviceClass>| places.first() == Some(place);
        let titles: Vec<&str> =
            self.taken.iter().filter(|(_, p)| takes(p)).map(|(title, _)| title.as_str()).collect();
        titles.join(", ")
    }
}

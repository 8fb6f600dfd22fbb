//! Which machine of a script is looked at: the one that it begins on, or one of its network namespaces.

use crate::nothing::has_policy;
use crate::traced::{Came, Traced};
use std::path::Path;
use tidegate_capture::{Recorded, ScriptRun};
use tidegate_shims::{Namespace, Namespaces};

/// The most names of namespaces in a sentence.
const MAX_NAMES: usize = 8;

/// What the user calls the namespace that a script begins in: ip takes the number of the first process for
/// it.
const FIRST: &str = "1";

/// The machine of a script that is looked at.
pub(crate) struct Chosen {
    /// The number of the machine.
    number: usize,
    /// The namespace, if it is not the one that the script begins in.
    pub(crate) netns: Option<Namespace>,
    /// What is not shown, in a sentence.
    pub(crate) sentence: Option<String>,
    /// What the calls of all machines came to, each with the machine's number.
    came: Vec<(usize, Came)>,
}

impl Chosen {
    /// Chooses: the namespace that the user named; otherwise the one that the script begins in, unless only
    /// others have traffic control.
    ///
    /// # Errors
    /// There is no such namespace.
    pub(crate) fn of(traced: Traced<'_>, path: &Path, wanted: Option<&str>) -> Result<Chosen, String> {
        let (came, first_has, mut others) = traced.finish();
        let busy: Vec<usize> = (0..others.len()).filter(|at| has_policy(&others[*at].machine)).collect();
        let at = match wanted {
            Some(name) => match others.iter().rposition(|other| other.name == name) {
                None if name == FIRST => None,
                Some(at) => Some(at),
                None => return Err(no_such(name, &others)),
            },
            None if first_has => None,
            None => busy.first().copied(),
        };
        let not_shown: Vec<&str> =
            busy.iter().filter(|busy| Some(**busy) != at).map(|busy| others[*busy].name.as_str()).collect();
        let sentence = sentence(path, at.map(|at| &others[at]), first_has, &not_shown);
        let netns = at.map(|at| others.swap_remove(at));
        Ok(Chosen { number: at.map_or(Namespaces::FIRST, |at| at + 1), netns, sentence, came })
    }

    /// Leaves the calls of the machine in what runs showed, and gives what each of them came to.
    pub(crate) fn leave<'r>(&self, outcomes: impl IntoIterator<Item = &'r mut ScriptRun>) -> Vec<Came> {
        let mut came = self.came.iter();
        let mut kept = Vec::with_capacity(self.came.len());
        let mut is_own = |recorded: &Recorded| match recorded.answered.then(|| came.next()).flatten() {
            Some((number, came)) if *number == self.number => {
                kept.push(came.clone());
                true
            }
            Some(_) => false,
            None => true,
        };
        for outcome in outcomes {
            outcome.calls.retain(&mut is_own);
            outcome.namespaces.clone_from(&self.sentence);
            outcome.notes.extend(self.sentence.clone());
        }
        kept
    }
}

fn no_such(name: &str, others: &[Namespace]) -> String {
    let names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
    match names.is_empty() {
        true => format!("--netns {name}: nothing in it is about a network namespace"),
        false => format!("--netns {name}: there is no such network namespace; there are {}", listed(&names)),
    }
}

fn sentence(path: &Path, netns: Option<&Namespace>, first_has: bool, not_shown: &[&str]) -> Option<String> {
    let path = path.display();
    let first = if first_has { "the one that it begins in" } else { "" };
    let others = [first].into_iter().filter(|first| !first.is_empty() && netns.is_some());
    let others: Vec<&str> = others.chain(not_shown.iter().copied()).collect();
    let rest = match (others.is_empty(), not_shown.is_empty()) {
        (true, _) => String::new(),
        (false, true) => format!("; it configures {} too", listed(&others)),
        (false, false) => {
            format!("; it configures {} too: --netns NAME looks at another", listed(&others))
        }
    };
    let Some(netns) = netns else {
        return (!not_shown.is_empty())
            .then(|| format!("{path}: this is about the network namespace that it begins in{rest}"));
    };
    // A script's names must not look like tidegate's own words.
    let name = tidegate_text::line(&netns.name);
    let end = if netns.is_deleted { ", which the script deletes in the end" } else { "" };
    let (what, how) = match netns.is_container {
        true => (format!("network of the container or process {name}"), String::new()),
        false => (format!("network namespace {name}{end}"), format!(" (ip netns exec {name} …)")),
    };
    Some(format!("{path}: this is about the {what}; commands that are given here are for there{how}{rest}"))
}

fn listed(names: &[&str]) -> String {
    let mut text = names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES {
        text += &format!(" and {} more", names.len() - MAX_NAMES);
    }
    tidegate_text::line(&text).to_string()
}

//! What cannot be compared, or only with care.

use super::side::{OF_EACH, Side};
use crate::experiment::show::distinct;
use tidegate_measure::experiment::{Experiment, ExperimentCase, RunRecord};
use tidegate_measure::numbers::format_duration;

/// In sentences, the most important first.
pub(super) fn sentences(sides: &[Side]) -> Vec<String> {
    let mut lines = Vec::new();
    let titles = distinct(sides.iter().map(|side| side.experiment.title.as_str()));
    if titles.len() > 1 {
        let each = sides.iter().map(|side| format!("{} is “{}”", side.label, side.experiment.title));
        lines.push(format!("These are different scenarios: {}.", list(each)));
    }
    let before = lines.len();
    lines.extend(only_in(sides, "The policy", |e| e.runs.iter().map(|run| run.policy.clone()).collect()));
    lines.extend(only_in(sides, "The load", |e| e.runs.iter().map(|run| run.load.clone()).collect()));
    // With a policy or a load its cases are missing, too.
    if lines.len() == before {
        lines.extend(only_in(sides, "The case", cases));
    }
    lines.extend(only_in(sides, "The probe", |e| {
        e.runs.iter().flat_map(|run| &run.probes).map(|probe| probe.id.clone()).collect()
    }));
    lines.extend(only_in(sides, "The link", |e| e.links.iter().map(|link| link.name.clone()).collect()));
    lines.extend(differing(sides, "The link", links));
    lines.extend(policies(sides));
    lines.extend(windows(sides));
    lines.extend(repeats(sides));
    lines.extend(cut(sides));
    lines.extend(unreliable(sides));
    lines
}

/// The cases that were run.
fn cases(experiment: &Experiment) -> Vec<String> {
    let name = |case: &ExperimentCase<'_>| format!("{}/{}", case.policy.name, case.load.name);
    experiment.cases().iter().map(name).collect()
}

/// `a, b and c`.
fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    match items.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

/// What only some results have.
fn only_in(sides: &[Side], what: &str, of: impl Fn(&Experiment) -> Vec<String>) -> Vec<String> {
    let sets: Vec<Vec<String>> = sides.iter().map(|side| of(&side.experiment)).collect();
    let all = distinct(sets.iter().flatten().map(String::as_str));
    let mut differing: Vec<(String, Vec<String>)> = Vec::new();
    for name in all {
        let having = || sides.iter().zip(&sets).filter(|(_, set)| set.iter().any(|known| known == name));
        if having().count() < sides.len() {
            let having = list(having().map(|(side, _)| side.label.clone()));
            match differing.iter_mut().find(|(known, _)| *known == having) {
                Some((_, names)) => names.push(name.to_owned()),
                None => differing.push((having, vec![name.to_owned()])),
            }
        }
    }
    let sentence = |(having, names): (String, Vec<String>)| match names.as_slice() {
        [one] => format!("{what} {one} is in {having} only."),
        many if many.len() <= MOST_NAMED => {
            format!("{} {} are in {having} only.", plural(what), list(many.iter().cloned()))
        }
        many => {
            let (named, more) = many.split_at(MOST_NAMED);
            format!("{} {} and {} more are in {having} only.", plural(what), named.join(", "), more.len())
        }
    };
    differing.into_iter().map(sentence).collect()
}

/// `The policies` of `The policy`.
fn plural(what: &str) -> String {
    what.strip_suffix('y').map_or_else(|| format!("{what}s"), |stem| format!("{stem}ies"))
}

/// Names listed at most.
const MOST_NAMED: usize = 8;

/// What is called alike and is something else.
fn differing(sides: &[Side], what: &str, of: impl Fn(&Experiment) -> Vec<(String, String)>) -> Vec<String> {
    let sets: Vec<Vec<(String, String)>> = sides.iter().map(|side| of(&side.experiment)).collect();
    let mut lines = Vec::new();
    for name in distinct(sets.iter().flatten().map(|(name, _)| name.as_str())) {
        let found: Vec<(&str, &str)> = sides
            .iter()
            .zip(&sets)
            .filter_map(|(side, set)| {
                Some((side.label.as_str(), set.iter().find(|(known, _)| known == name)?.1.as_str()))
            })
            .collect();
        if distinct(found.iter().map(|(_, is)| *is)).len() > 1 {
            let each = found.iter().map(|(label, is)| format!("in {label} {is}"));
            lines.push(format!("{what} {name} differs: {}.", list(each)));
        }
    }
    lines
}

fn links(experiment: &Experiment) -> Vec<(String, String)> {
    let words = |link: &tidegate_measure::experiment::LinkRecord| match link.there == link.back {
        true => link.there.clone(),
        false => format!("{} and back {}", link.there, link.back),
    };
    experiment.links.iter().map(|link| (link.name.clone(), words(link))).collect()
}

fn policies(sides: &[Side]) -> Vec<String> {
    let names =
        distinct(sides.iter().flat_map(|side| &side.experiment.policies).map(|policy| policy.name.as_str()));
    let mut differing: Vec<(String, Vec<String>)> = Vec::new();
    // Where the sides are policies, that they differ is what is compared.
    for name in names.into_iter().filter(|name| **name != *OF_EACH) {
        let Some(where_other) = other_commands(sides, name) else { continue };
        match differing.iter_mut().find(|(known, _)| *known == where_other) {
            Some((_, names)) => names.push(name.to_owned()),
            None => differing.push((where_other, vec![name.to_owned()])),
        }
    }
    let sentence = |(where_other, names): (String, Vec<String>)| match names.as_slice() {
        [one] => format!("The policy {one} has other commands {where_other}."),
        _ => format!("The policies {} have other commands {where_other}.", list(names.into_iter())),
    };
    differing.into_iter().map(sentence).collect()
}

/// The commands of a policy, by router.
type Commands = [(String, Vec<String>)];

/// Which results have other commands for a policy than which: `in c than in a and b`. `None`: all have the
/// same.
fn other_commands(sides: &[Side], name: &str) -> Option<String> {
    let mut groups: Vec<(&Commands, Vec<String>)> = Vec::new();
    for side in sides {
        for policy in side.experiment.policies.iter().filter(|policy| policy.name == name) {
            match groups.iter_mut().find(|(commands, _)| *commands == policy.commands) {
                Some((_, labels)) => labels.push(side.label.clone()),
                None => groups.push((&policy.commands, vec![side.label.clone()])),
            }
        }
    }
    let mut groups = groups.into_iter().map(|(_, labels)| list(labels.into_iter()));
    let (first, others) = (groups.next()?, groups.collect::<Vec<_>>());
    (!others.is_empty()).then(|| format!("in {} than in {first}", others.join(", others again in ")))
}

fn windows(sides: &[Side]) -> Vec<String> {
    let length =
        |side: &Side| side.experiment.runs.iter().map(|run| run.window.1.saturating_sub(run.window.0)).max();
    let lengths: Vec<(&str, u64)> =
        sides.iter().filter_map(|side| Some((side.label.as_str(), length(side)?))).collect();
    if lengths.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        return Vec::new();
    }
    let each = lengths.iter().map(|(label, ns)| format!("{} in {label}", format_duration(*ns)));
    vec![format!("They were measured for different times: {}.", list(each))]
}

fn repeats(sides: &[Side]) -> Vec<String> {
    let once = |side: &&Side| {
        side.experiment.runs.iter().all(|run| run.repeat == 0) && !side.experiment.runs.is_empty()
    };
    let labels: Vec<String> = sides.iter().filter(once).map(|side| side.label.clone()).collect();
    if labels.is_empty() {
        return Vec::new();
    }
    let has = if labels.len() == 1 { "has" } else { "have" };
    vec![format!(
        "{} {has} one repeat of each case, so how much figures vary is not known.",
        list(labels.into_iter())
    )]
}

/// Runs during which a real clock was late.
fn unreliable(sides: &[Side]) -> Vec<String> {
    let text_of = |side: &Side| {
        let late = |run: &&RunRecord| run.lateness.as_ref().is_some_and(|late| !late.is_believed());
        let (count, all) = (side.experiment.runs.iter().filter(late).count(), side.experiment.runs.len());
        (count > 0).then(|| {
            let runs = match (count, all) {
                (1, 1) => "the one run".to_owned(),
                _ if count == all => format!("all {all} runs"),
                _ => format!("{count} of {all} runs"),
            };
            format!("The machine was too busy in {runs} of {}: what was measured is unreliable.", side.label)
        })
    };
    sides.iter().filter_map(text_of).collect()
}

fn cut(sides: &[Side]) -> Vec<String> {
    let text_of = |side: &Side| {
        let cut = side.experiment.runs.iter().filter(|run| run.cut).count();
        (cut > 0).then(|| {
            format!(
                "In {} {cut} of {} runs were stopped before their end.",
                side.label,
                side.experiment.runs.len()
            )
        })
    };
    sides.iter().filter_map(text_of).collect()
}

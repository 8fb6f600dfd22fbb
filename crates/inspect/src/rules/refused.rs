//! C1: commands that are refused. A command that is refused because something refused before is missing is
//! reported with that.

use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::lost::{
    CANNOT_FLUSH, Makers, exists_already, is_ignored_failure, is_reported, is_unnamed, lacks, never_deletes,
    of_kernel, stays,
};
use crate::reading::{PolicyModel, SourceLocation, Step};
use crate::words::{count, named};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_policy::Kind;
use tidegate_policy::spec::REFUSED;
use tidegate_syntax::tc::refusal_lines;

/// A finding for each refusal that has its reason in itself.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let makers = Makers::of(&reading.steps);
    let is_finding = |step: &Step| is_reported(step) || is_ignored_failure(step, &makers);
    let steps = reading.steps.iter().enumerate().filter(|(_, step)| is_finding(step));
    let own = steps.filter(|(at, _)| !reading.lost.because.contains_key(at));
    // A line that runs several times is refused once: what fails with each of its runs fails with it.
    let mut by_place: BTreeMap<(&SourceLocation, &str), usize> = BTreeMap::new();
    let mut first_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, step) in own.clone() {
        let Some(key) = step.place.as_ref().zip(step.refused.as_deref()) else { continue };
        let first = *by_place.entry(key).or_insert(at);
        first_of.insert(at, first);
    }
    let is_first = |at: &usize| first_of.get(at).is_none_or(|first| first == at);
    let own = own.filter(|(at, _)| is_first(at));
    let mut followers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (other, cause) in &reading.lost.because {
        followers.entry(first_of.get(cause).copied().unwrap_or(*cause)).or_default().push(*other);
    }
    let one = |(at, step)| {
        let following = followers.get(&at).map_or(&[][..], Vec::as_slice);
        refused(reading, (at, step), following, &makers)
    };
    let found = own.filter_map(|(at, step)| Some((at, one((at, step))?)));
    merge_unsupported(reading, found)
}

/// A refusal, and whether tidegate does not support what is asked for.
struct Refused {
    finding: Finding,
    unsupported: bool,
}

/// What tidegate does not support is one finding however many commands need it: the first has the lines of
/// the others.
fn merge_unsupported(reading: &PolicyModel, found: impl Iterator<Item = (usize, Refused)>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    let mut first_of: BTreeMap<(String, Level), usize> = BTreeMap::new();
    let mut others: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, Refused { finding, unsupported }) in found {
        let first = match unsupported {
            true => *first_of.entry((finding.what.clone(), finding.level)).or_insert(all.len()),
            false => all.len(),
        };
        match first < all.len() {
            true => others.entry(first).or_default().push(at),
            false => all.push(finding),
        }
    }
    for (first, others) in others {
        let steps = others.iter().filter_map(|at| reading.steps.get(*at));
        let places = places(reading, steps);
        let more = count(others.len(), "other command needs it", "other commands need it");
        all[first].because.push_str(&format!("; {more}, too{places}"));
    }
    all
}

/// A command that the tool or the kernel refuses.
fn refused(
    reading: &PolicyModel,
    (at, step): (usize, &Step),
    following: &[usize],
    makers: &Makers,
) -> Option<Refused> {
    let text = step.refused.as_deref()?;
    let prefix = format!("{}: ", step.tool);
    // Of a batch, the lines before may have been warned of: that is no refusal.
    let mut lines = refusal_lines(text);
    let shown = lines.clone().next().unwrap_or_default().to_owned();
    let reason = lines.next().unwrap_or("refused without a word");
    let reason = reason.strip_prefix(&prefix).unwrap_or(reason).trim_end_matches('.').to_owned();
    let remedy = lines.rev().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned);
    let blamed = step.at_fault.and_then(|at| step.words.get(at));
    let unnamed = is_unnamed(step);
    // A feature that tidegate lacks is no error of the policy.
    let not_built = lacks(&reason).filter(|_| !unnamed);
    let one_queue = wants_queues(reading, step, &reason);
    let matches = stays(step);
    let deletes_nothing = never_deletes(step);
    let is_ignored = !is_reported(step);
    let following: Vec<&Step> = following.iter().filter_map(|other| reading.steps.get(*other)).collect();
    let is_ours = not_built.is_some() || one_queue.is_some();
    let because = if is_ours {
        "what the command does is missing from what was checked".to_owned()
    } else {
        consequence(step)
    };
    let because = because
        + &stops_batch(reading, at).filter(|_| !is_ours).unwrap_or_default()
        + &with_others(reading, step, &following);
    let blamed = if unnamed { step.option("dev").map(|[keyword, _]| keyword) } else { blamed };
    let what = match (unnamed, not_built) {
        (true, _) if reason.starts_with("tidegate: ") => "there is no name behind dev".to_owned(),
        (true, _) => format!("there is no name behind dev: {} refuses this ({reason})", step.tool),
        (_, Some(reason)) => format!("tidegate cannot carry this out: {reason}"),
        (false, None) if one_queue.is_some() => {
            format!("tidegate cannot carry this out: {}", one_queue.as_deref().unwrap_or_default())
        }
        (false, None) => match of_kernel(&step.tool, &reason) {
            Some(reason) => format!("the kernel refuses this: {reason}"),
            None => format!("{} refuses this: {reason}", step.tool),
        },
    };
    let later = makers.later(&reading.steps, at).and_then(|maker| {
        // In a loop the maker may stand above already.
        let is_above =
            |one: &SourceLocation, other: &SourceLocation| one.file == other.file && one.line <= other.line;
        let above =
            maker.place.as_ref().zip(step.place.as_ref()).is_some_and(|(one, other)| is_above(one, other));
        let line = reading.line(maker)?;
        Some(match above {
            true => format!("what it needs is made only after it, when {line} runs again: make it before"),
            false => {
                format!("what it needs is made only after it, at {line}: put that command before this one")
            }
        })
    });
    let remedy = match (unnamed, later) {
        (true, _) => Some("is the variable behind dev empty?".to_owned()),
        (_, Some(later)) => Some(later),
        (_, None) if reason.contains(CANNOT_FLUSH) => Some(
            "name the preference of what it deletes (pref 10), or leave protocol, handle and kind out to delete all"
                .to_owned(),
        ),
        (_, None) if deletes_nothing && of_kernel(&step.tool, &reason).is_some() => {
            let is_class = step.words.iter().any(|word| word.text == "class");
            Some(match is_class {
                true => "name the class that it deletes: `classid 1:10`".to_owned(),
                false => "name what it deletes: root, ingress, clsact, `parent CLASSID` or `handle MAJOR:`".to_owned(),
            })
        }
        (_, None) => remedy,
    };
    let what = if is_ignored && !is_ours {
        format!("the script hides or ignores that this fails: {what}")
    } else {
        what
    };
    // What was not deleted does harm where something else was to take its place.
    let is_harmless = (matches || deletes_nothing) && following.is_empty();
    let finding = Finding {
        rule: Rule::Refused,
        level: match (is_ignored, is_harmless || is_ours) {
            (true, _) => Level::Note,
            (false, true) => Level::Warning,
            (false, false) => Level::Error,
        },
        place: blamed.and_then(|word| word.place.clone()).or_else(|| step.place.clone()),
        what,
        because,
        witness: Some(Witness::Number(shown)),
        fix: remedy.map(|what| Fix { what, edits: Vec::new() }),
    };
    Some(Refused { finding, unsupported: is_ours })
}

/// What a refusal means for the policy.
fn consequence(step: &Step) -> String {
    let text = if stays(step) {
        "what it should delete stays as it was"
    } else if never_deletes(step) {
        "it deletes nothing, whatever is there: what an earlier run left stays, and may be in the way"
    } else if !is_reported(step) {
        "what it should have done is missing from the policy"
    } else {
        "what the command should have done is missing from the policy, and findings that depend on it are left \
        out"
    };
    text.to_owned()
}

/// Where a batch ended with a refused line, or would have.
fn stops_batch(reading: &PolicyModel, at: usize) -> Option<String> {
    let step = &reading.steps[at];
    let stops = format!("; {} stops at the first error of a batch, unless -force is given", step.tool);
    let skipped = reading.steps[at + 1..].iter().take_while(|other| other.is_skipped).count();
    if skipped > 0 {
        let commands = count(skipped, "command behind it was", "commands behind it were");
        return Some(format!("{stops}: {commands} not carried out"));
    }
    // A batch that is given itself, of which the rest is checked, too.
    let file = &reading.sources.get(step.place.as_ref()?.file)?.name;
    let failed = step.refused.as_deref()?.lines().find_map(|line| line.strip_prefix("Command failed "))?;
    (failed.rsplit_once(':')?.0 == file)
        .then(|| format!("{stops}: what is behind it is checked as if it went on"))
}

/// The lines of some commands, each once, in brackets; nothing where none is known.
fn places<'s>(reading: &PolicyModel, steps: impl Iterator<Item = &'s Step>) -> String {
    let mut seen = BTreeSet::new();
    let lines = steps.filter_map(|step| reading.line(step)).filter(|line| seen.insert(line.clone()));
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { String::new() } else { format!(" ({})", named(&lines)) }
}

/// What commands fail with a refused one.
fn with_others(reading: &PolicyModel, step: &Step, following: &[&Step]) -> String {
    if following.is_empty() {
        return String::new();
    }
    let places = places(reading, following.iter().copied());
    let others = count(following.len(), "other command", "other commands");
    if exists_already(step) || stays(step) {
        format!("; {others} would create it again, and fail too{places}")
    } else if is_unnamed(step) {
        let lack = if following.len() == 1 { "lacks" } else { "lack" };
        format!("; {others} {lack} it, too{places}")
    } else {
        let name = if following.len() == 1 { "names" } else { "name" };
        let fail = if following.len() == 1 { "fails" } else { "fail" };
        format!("; {others} {name} the same object, and {fail} too{places}")
    }
}

/// Why it is refused, where that is because the device has one transmit queue here. A card may have several;
/// a device that the policy makes has the given number.
fn wants_queues(reading: &PolicyModel, step: &Step, reason: &str) -> Option<String> {
    let dev = step.after("dev")?.text.as_str();
    let named = |name: &str| step.words.iter().any(|word| word.text == name);
    let not_built = REFUSED.iter().filter(|refused| refused.reply.is_some()).find(|kind| named(kind.name));
    let kind = [Kind::Multiq.name(), Kind::Mq.name()].into_iter().find(|name| named(name));
    let is_that =
        reason.contains("Operation not supported") || reason.contains("Multi-queue device is required");
    let card = reading.there_before().any(|name| name == dev);
    let why = match (not_built, kind) {
        // A card with several would not help.
        (Some(not_built), _) => format!("{} is not built", not_built.name),
        (None, Some(kind)) => {
            format!("{kind} needs a card with several transmit queues, and {dev} has one here")
        }
        (None, None) => return None,
    };
    (is_that && card).then_some(why)
}

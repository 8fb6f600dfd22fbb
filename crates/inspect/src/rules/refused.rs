//! C1: commands that are refused. A command that is refused because something refused before is missing is
//! reported with that.

use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::lost::{Makers, exists_already, is_in_use, is_reported, is_unnamed};
use crate::reading::{PolicyModel, Step};
use crate::words::{count, named};
use std::collections::BTreeMap;
use tidegate_policy::Kind;
use tidegate_policy::spec::REFUSED;
use tidegate_syntax::tc::refusal_lines;

/// A finding for each refusal that has its reason in itself.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let steps = reading.steps.iter().enumerate().filter(|(_, step)| is_reported(step));
    let own = steps.filter(|(at, _)| !reading.lost.because.contains_key(at));
    let mut followers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (other, cause) in &reading.lost.because {
        followers.entry(*cause).or_default().push(*other);
    }
    let makers = Makers::of(&reading.steps);
    let one = |(at, step)| {
        let following = followers.get(&at).map_or(&[][..], Vec::as_slice);
        refused(reading, (at, step), following, &makers)
    };
    own.filter_map(one).collect()
}

/// A command that the tool or the kernel refuses.
fn refused(
    reading: &PolicyModel,
    (at, step): (usize, &Step),
    following: &[usize],
    makers: &Makers,
) -> Option<Finding> {
    let text = step.refused.as_deref()?;
    let prefix = format!("{}: ", step.tool);
    // Of a batch, the lines before may have been warned of: that is no refusal.
    let mut lines = refusal_lines(text);
    let shown = lines.clone().next().unwrap_or_default().to_owned();
    let reason = lines.next().unwrap_or("refused without a word");
    let reason = reason.strip_prefix(&prefix).unwrap_or(reason).trim_end_matches('.').to_owned();
    let remedy = lines.rev().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned);
    let blamed = step
        .words
        .iter()
        .rev()
        .find(|word| word.text.len() > 1 && reason.contains(&format!("\"{}\"", word.text)));
    let unnamed = is_unnamed(step);
    // A feature that tidegate lacks is no error of the policy. nft gives the place first.
    let own =
        reason.strip_prefix("tidegate: ").or(reason.split_once("Error: tidegate: ").map(|(_, own)| own));
    let not_built = own.filter(|_| !unnamed);
    let one_queue = wants_queues(reading, step, &reason);
    let matches = is_in_use(step);
    let mut because = match not_built.or(one_queue.as_deref()) {
        Some(_) => "what the command does is missing from what was checked".to_owned(),
        None if matches => "what it should delete stays as it was".to_owned(),
        None => {
            "what the command should have done is missing from the policy, and findings that depend on it \
            are left out"
                .to_owned()
        }
    };
    if text.lines().any(|line| line.starts_with("Command failed ")) {
        because.push_str(&format!(
            "; {} stops at the first error of a batch, unless -force is given",
            step.tool
        ));
    }
    let following: Vec<&Step> = following.iter().filter_map(|other| reading.steps.get(*other)).collect();
    if !following.is_empty() {
        let mut lines: Vec<String> = following.iter().filter_map(|step| reading.line(step)).collect();
        lines.dedup();
        // Lines that were not found are not named.
        let number = following.len();
        let places = if lines.is_empty() { String::new() } else { format!(" ({})", named(&lines)) };
        let others = count(number, "other command", "other commands");
        because.push_str(&match exists_already(step) {
            true => format!("; {others} would create it again, and fail too{places}"),
            false if matches => format!("; {others} would create it again, and fail too{places}"),
            false if unnamed => format!("; {others} lack it, too{places}"),
            false => format!("; {others} would need it, and fail too{places}"),
        });
    }
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
    let later = makers.later(&reading.steps, at).and_then(|step| reading.line(step));
    let remedy = match (unnamed, later) {
        (true, _) => Some("is the variable behind dev empty?".to_owned()),
        (_, Some(line)) => {
            Some(format!("what it needs is made only after it, at {line}: put that command before this one"))
        }
        (_, None) => remedy,
    };
    Some(Finding {
        rule: Rule::Refused,
        // What was not deleted does harm where something else was to take its place.
        level: match matches && following.is_empty() || not_built.is_some() || one_queue.is_some() {
            true => Level::Warning,
            false => Level::Error,
        },
        place: blamed.and_then(|word| word.place.clone()).or_else(|| step.place.clone()),
        what,
        because,
        witness: Some(Witness::Number(shown)),
        fix: remedy.map(|what| Fix { what, edits: Vec::new() }),
    })
}

/// The kernel's message, where the kernel refused what tc or ip requested. Their own refusals have the word
/// in quotes.
fn of_kernel<'r>(tool: &str, reason: &'r str) -> Option<&'r str> {
    let text = reason.strip_prefix("Error: ").filter(|text| !text.contains('"'));
    let answered = reason.strip_prefix("RTNETLINK answers: ");
    answered.or(text).filter(|_| ["tc", "ip"].contains(&tool))
}

/// Whether it is refused because the device has one transmit queue here. A card may have several; a device
/// that the policy makes has the given number.
fn wants_queues(reading: &PolicyModel, step: &Step, reason: &str) -> Option<String> {
    let dev = step.after("dev")?.text.as_str();
    let named = |name: &str| step.words.iter().any(|word| word.text == name);
    let mut spread = REFUSED.iter().filter(|refused| refused.reply.is_some()).map(|refused| refused.name);
    let kind =
        spread.find(|name| named(name)).or(named(Kind::Multiq.name()).then_some(Kind::Multiq.name()))?;
    let is_that =
        reason.contains("Operation not supported") || reason.contains("Multi-queue device is required");
    let card = reading.there_before().any(|name| name == dev);
    (is_that && card)
        .then(|| format!("{kind} needs a card with several transmit queues, and {dev} has one here"))
}

//! R1 of actions: behind one that lets no packet go on to them.

use super::context::{RuleContext, witness};
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::reading::Step;
use crate::sets::bdd::TooLarge;
use crate::walk::outcome::is_end;
use tidegate_policy::dump::{ActionDump, FilterEntry};
use tidegate_policy::{Act, Control};

/// Filters with such actions, shown with a packet that meets the first of them and not the last.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let mut found = Vec::new();
    for (at, dump) in reading.filters.iter().enumerate() {
        let FilterEntry::Filter { actions, .. } = &dump.entry else { continue };
        if let (Some(policer), Some(step)) =
            (actions.iter().find(|dump| dump.action.old_style), context.step_of_filter(at))
        {
            found.extend(beside_policer(step, policer));
            continue;
        }
        let Some(end) = last_met(actions).filter(|_| !context.leaves_out(&dump.dev)) else { continue };
        let (Some(step), Some(dead)) = (context.step_of_filter(at), actions.get(end + 1)) else { continue };
        let seen = context.reached.walked.seen.filters.get(&at).cloned().unwrap_or_default();
        let Some(candidate) = context.reached.pick(reading, &seen.eligible)? else { continue };
        let before = context.prober.actions_of(dump);
        let _ = context.send(&candidate);
        let after = context.prober.actions_of(dump);
        let grew = |at: usize| after.get(at).map(|now| now.packets) > before.get(at).map(|then| then.packets);
        if !grew(end) || grew(end + 1) {
            continue;
        }
        let ends = &actions[end].action.act;
        found.push(Finding {
            rule: Rule::Unreachable,
            level: Level::Warning,
            place: at_action(step, &dead.action.act),
            what: format!("no packet comes to the action {} behind {}", name(&dead.action.act), name(ends)),
            because: fate(ends),
            witness: witness(&candidate, &format!("no action behind {}", name(ends))),
            fix: remedy(ends),
        });
    }
    Ok(found)
}

/// Policers behind which only the excess continues (`conform-exceed pipe`): the word before the slash is
/// about packets that exceed.
pub(super) fn only_excess(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let mut found = Vec::new();
    for (at, dump) in reading.filters.iter().enumerate() {
        let FilterEntry::Filter { actions, .. } = &dump.entry else { continue };
        let turned = |dump: &ActionDump| match &dump.action.act {
            Act::Police(police) => {
                police.exceed == Control::Pipe && police.conform.unwrap_or_default() == Control::Pass
            }
            _ => false,
        };
        let Some(first) = actions.iter().position(turned).filter(|_| !context.leaves_out(&dump.dev)) else {
            continue;
        };
        let (Some(step), Some(next)) = (context.step_of_filter(at), actions.get(first + 1)) else { continue };
        let seen = context.reached.walked.seen.filters.get(&at).cloned().unwrap_or_default();
        let Some(candidate) = context.reached.pick(reading, &seen.eligible)? else { continue };
        let before = context.prober.actions_of(dump);
        let _ = context.send(&candidate);
        let after = context.prober.actions_of(dump);
        let grew = |at: usize| after.get(at).map(|now| now.packets) > before.get(at).map(|then| then.packets);
        if !grew(first) || grew(first + 1) {
            continue;
        }
        found.push(Finding {
            rule: Rule::Unreachable,
            level: Level::Warning,
            place: at_action(step, &next.action.act),
            what: format!(
                "only packets above the rate reach the action {} behind `police`",
                name(&next.action.act)
            ),
            because: "conform-exceed gives first the action for packets above the rate (pipe: the next \
            action), and after a slash that for the others (by default pass, which ends the filter)"
                .to_owned(),
            witness: witness(&candidate, "no action behind `police`, because it conforms"),
            fix: Some(Fix {
                what: "if conforming packets are meant: conform-exceed drop/pipe".to_owned(),
                edits: Vec::new(),
            }),
        });
    }
    Ok(found)
}

/// `action …` in a filter whose policer has no `action` before it: the kernel takes the policer alone (asked
/// of Linux 6.1).
fn beside_policer(step: &Step, policer: &ActionDump) -> Option<Finding> {
    let ignored = step.words.iter().find(|word| word.text == "action")?;
    Some(Finding {
        rule: Rule::Unreachable,
        level: Level::Warning,
        place: ignored.place.clone().or_else(|| step.place.clone()),
        what:
            "the filter's `action` is ignored: its policer has no `action` before it, and the kernel takes \
            that alone"
                .to_owned(),
        because: "whatever the action was to do with packets (redirect, mark, drop) is not done".to_owned(),
        witness: Some(Witness::Number(format!("the filter has one action, {}", name(&policer.action.act)))),
        fix: Some(Fix {
            what: "write `action police …` and the other action behind it".to_owned(),
            edits: Vec::new(),
        }),
    })
}

/// The action at which every packet ends, where others follow it; `None` too where that is not known.
pub(super) fn last_met(actions: &[ActionDump]) -> Option<usize> {
    let plain = actions.iter().all(|dump| {
        let known =
            |control: &Control| !matches!(control, Control::Jump(_) | Control::Goto(_) | Control::Number(_));
        dump.action.only.is_none() && dump.action.act.controls().iter().all(known)
    });
    let at = actions.iter().position(|dump| is_end(&dump.action.act))?;
    (plain && at + 1 < actions.len()).then_some(at)
}

fn name(act: &Act) -> String {
    match act {
        Act::Mirred(mirred) => {
            let way = if mirred.copy { "mirror" } else { "redirect" };
            let hook = if mirred.arrives { "ingress" } else { "egress" };
            format!("`mirred {hook} {way} dev {}`", mirred.to)
        }
        act => format!("`{}`", act.kind()),
    }
}

/// What happens to packets at the action that ends them.
fn fate(act: &Act) -> String {
    match act {
        Act::Police(police) => format!(
            "what conforms is done with the filter ({}), and so is what comes too fast ({}): only `pipe` \
            goes on",
            police.conform.unwrap_or_default(),
            police.exceed
        ),
        Act::Mirred(mirred) if !mirred.copy => "the packet itself is led away there".to_owned(),
        act => {
            let ends: Vec<String> = act.controls().iter().map(ToString::to_string).collect();
            format!("every packet is done with the filter there ({}): only `pipe` goes on", ends.join(" or "))
        }
    }
}

fn remedy(act: &Act) -> Option<Fix> {
    let what = match act {
        Act::Police(police) => {
            format!("let what conforms go on: conform-exceed {}/pipe", police.exceed)
        }
        Act::Mirred(mirred) if !mirred.copy => "put it before, and let it go on (`pipe`)".to_owned(),
        _ => return None,
    };
    Some(Fix { what, edits: Vec::new() })
}

/// The place of an action: its last mention.
fn at_action(step: &Step, act: &Act) -> Option<crate::reading::SourceLocation> {
    let word = step.words.iter().rev().find(|word| word.text == act.kind());
    word.and_then(|word| word.place.clone()).or_else(|| step.place.clone())
}

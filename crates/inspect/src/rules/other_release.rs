//! R30: commands that one of two releases refuses and the other takes.

use super::making::finding;
use crate::finding::{Finding, Level, Rule};
use crate::reading::{CARRIED_OUT_AT, PolicyModel, Step};
use crate::words;
use tidegate_gateway::{Gateway, GatewayContext};
use tidegate_packet::{Pool, Seeded};
use tidegate_policy::Op;
use tidegate_syntax::{Env, tc};

/// A note for the first command that the later release refuses, and for the first that it alone takes.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    if reading.until.is_none() && reading.tc_until.is_none() {
        return Vec::new();
    }
    let own = reading.env();
    let other = Env {
        linux: reading.until.unwrap_or(own.linux),
        tc: reading.tc_until.unwrap_or(own.tc),
        ..own.clone()
    };
    let mut machines =
        [&own, &other].map(|env| Replayed { machine: reading.machine_before_of(env.linux), env });
    let (mut newly_refused, mut newly_taken) = (Vec::new(), Vec::new());
    for step in reading.steps.iter().filter(|step| !step.is_skipped) {
        let [before, after] = machines.each_mut().map(|machine| machine.refusal(reading, step));
        match (&step.refused, before, after) {
            (None, None, Some(words)) => newly_refused.push((step, words)),
            (Some(_), Some(words), None) => newly_taken.push((step, words)),
            _ => {}
        }
    }
    let refused = noted(reading, &newly_refused, (&other, &own));
    let taken = noted(reading, &newly_taken, (&own, &other));
    refused.into_iter().chain(taken).collect()
}

/// The releases, where they differ: `Linux 6.1`, `tc 7.2`, `Linux 6.1 with tc 7.2`.
fn name(reading: &PolicyModel, env: &Env) -> String {
    match (reading.until, reading.tc_until) {
        (Some(_), None) => format!("Linux {}", env.linux),
        (None, Some(_)) => format!("tc {}", env.tc),
        _ => format!("Linux {} with tc {}", env.linux, env.tc),
    }
}

/// What a release does, or may do where it lies between those whose behaviour is known.
fn surely(env: &Env, does: &'static str, may: &'static str) -> &'static str {
    if env.linux.is_between() { may } else { does }
}

/// A machine on which the commands are carried out again.
struct Replayed<'e> {
    machine: Gateway,
    env: &'e Env,
}

impl Replayed<'_> {
    /// Carries a command out; the words of a refusal, if it is refused.
    fn refusal(&mut self, reading: &PolicyModel, step: &Step) -> Option<String> {
        let recorded = reading.ops.get(step.ops.clone()).unwrap_or_default();
        let words: Vec<String> = step.words.iter().map(|word| word.text.clone()).collect();
        let parsed = match step.tool.as_str() {
            "tc" => tc::parse(&words, self.env).map(|parsed| parsed.command),
            // Other tools are the same in both.
            _ => return recorded.iter().find_map(|op| self.apply(op)),
        };
        match parsed {
            Ok(tc::TcCommand::Apply(op)) => self.apply(&op),
            // A batch, whose lines are steps of their own, or nothing that changes the machine.
            Ok(_) => None,
            Err(refusal) => Some(refusal.to_string()),
        }
    }

    fn apply(&mut self, op: &Op) -> Option<String> {
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let context = GatewayContext { now: CARRIED_OUT_AT, pool: &mut pool, random: &mut draws };
        self.machine.apply(context, op).err().map(|refusal| refusal.to_string())
    }
}

/// One note for all commands that the first releases refuse and the second take.
fn noted(
    reading: &PolicyModel,
    steps: &[(&Step, String)],
    (refuses, takes): (&Env, &Env),
) -> Option<Finding> {
    let [(first, words), rest @ ..] = steps else { return None };
    let lines: Vec<String> = rest.iter().filter_map(|(step, _)| reading.line(step)).collect();
    let others = match rest.len() {
        0 => String::new(),
        more => format!(
            "; so it is with {} more{}",
            words::count(more, "command", "commands"),
            if lines.is_empty() { String::new() } else { format!(" ({})", words::named(&lines)) }
        ),
    };
    Some(finding(
        Rule::Release,
        Level::Note,
        first.place.clone(),
        format!(
            "{} {} this command, which {} {}",
            name(reading, refuses),
            surely(refuses, "refuses", "may refuse"),
            name(reading, takes),
            surely(takes, "takes", "may take")
        ),
        format!("a script that goes on without it makes another policy there{others}"),
        words.clone(),
    ))
}

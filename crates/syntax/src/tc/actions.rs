//! `tc actions …`: the machine's actions by themselves.

use super::action;
use super::command_line::{ShowActions, TcCommand};
use super::words::{Words, begins};
use crate::number::u32_in;
use crate::{Env, Refusal};
use tidegate_policy::spec::{ACTIONS, action_kind};
use tidegate_policy::{ActionId, ActionsOp, Op, Verb};

/// What a verb does.
#[derive(Clone, Copy)]
enum ActionVerb {
    Set(Verb),
    Delete,
    Get,
    Flush,
    List,
    Help,
}

/// In tc's order: an abbreviation goes to the first that fits.
const VERBS: [(&str, ActionVerb); 10] = [
    ("add", ActionVerb::Set(Verb::Add)),
    ("change", ActionVerb::Set(Verb::Change)),
    ("replace", ActionVerb::Set(Verb::Replace)),
    ("delete", ActionVerb::Delete),
    ("get", ActionVerb::Get),
    ("list", ActionVerb::List),
    ("show", ActionVerb::List),
    ("lst", ActionVerb::List),
    ("flush", ActionVerb::Flush),
    ("help", ActionVerb::Help),
];

pub(super) fn parse(words: &mut Words<'_>, env: &Env) -> Result<TcCommand, Refusal> {
    // Without a verb tc does nothing and prints nothing.
    let Some(verb) = words.take() else { return Ok(TcCommand::Help(String::new())) };
    let Some((_, meaning)) = VERBS.iter().find(|(name, _)| begins(verb, name)) else {
        return Err(Refusal::new(255, format!("Command \"{verb}\" is unknown, try \"tc actions help\"."))
            .at(words.last())
            .remedy("tc actions knows add, change, replace, delete, get, list and flush."));
    };
    let place = words.last();
    match meaning {
        ActionVerb::Set(verb) => {
            let actions = set(words, env).map_err(|refusal| Refusal {
                code: if refusal.at_once { refusal.code } else { 255 },
                ..refusal
            })?;
            Ok(TcCommand::Apply(Op::Actions(ActionsOp::Set(*verb, actions))))
        }
        ActionVerb::Delete => Ok(TcCommand::Apply(Op::Actions(ActionsOp::Delete(numbered(words)?)))),
        ActionVerb::Get => Ok(TcCommand::ShowActions(ShowActions::Numbered(numbered(words)?))),
        ActionVerb::Flush => Ok(TcCommand::Apply(Op::Actions(ActionsOp::Flush(kind(words)?)))),
        ActionVerb::List => Ok(TcCommand::ShowActions(ShowActions::Kind(kind(words)?))),
        ActionVerb::Help => Err(usage(place)),
    }
}

fn usage(place: usize) -> Refusal {
    let kinds = ACTIONS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
    Refusal::new(255, "tc actions add|change|replace action KIND [OPTION…] [index N] [action …]")
        .then("tc actions get|delete action KIND index N [action …]")
        .then("tc actions list|flush action KIND")
        .then(&format!("kinds: {kinds}"))
        .at(place)
}

/// The actions of `add`, `change` and `replace`. The first `action` may be left out.
fn set(words: &mut Words<'_>, env: &Env) -> Result<Vec<tidegate_policy::Action>, Refusal> {
    const FORM: &str = "Say which action: tc actions add action police rate 1mbit burst 10k drop index 1";
    let named = words.peek() == Some("action");
    if named {
        words.skip();
    }
    match words.peek() {
        None if named => Err(Refusal::new(255, "bad action empty 1")
            .then("parse_action: bad value (0:(null))!\nIllegal \"action\"\n")
            .at(words.last())
            .remedy(FORM)),
        None | Some("help") => Err(Refusal::new(255, "Illegal \"action\"").at(words.last()).remedy(FORM)),
        Some(_) => action::parse(words, env),
    }
}

/// `action KIND index N`, repeated.
fn numbered(words: &mut Words<'_>) -> Result<Vec<ActionId>, Refusal> {
    // tc goes over the first word without a look at it.
    words.take();
    let mut ids = Vec::new();
    while let Some(word) = words.take() {
        match word {
            "action" => continue,
            "help" => return Err(usage(words.last())),
            _ => {}
        }
        // A kind that tc has no words for counts as a decision.
        let kind = action_kind(word).unwrap_or("gact");
        if !words.take().is_some_and(|word| begins(word, "index")) {
            return Err(Refusal::new(255, format!("Error: no index specified action: {kind}"))
                .at(words.last())
                .remedy(format!("Say which: action {kind} index N.")));
        }
        let text = words.need()?;
        let index = u32_in(text, 10).ok_or_else(|| {
            Refusal::new(255, "Illegal \"index\"")
                .at(words.last())
                .remedy(format!("\"{text}\" is not the number of an action."))
        })?;
        ids.push(ActionId { kind, index });
    }
    Ok(ids)
}

/// `action KIND`; what follows is not looked at.
fn kind(words: &mut Words<'_>) -> Result<String, Refusal> {
    match (words.take(), words.take()) {
        (Some("action"), Some(kind)) => Ok(kind.into()),
        _ => Err(usage(words.last())),
    }
}

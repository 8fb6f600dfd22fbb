//! `action …` at the end of a filter: the words, and how they are listed.

mod connection;
mod count;
mod csum;
mod ct;
mod gact;
mod gate;
mod kinds;
mod mirred;
mod mpls;
mod nat;
mod pedit;
mod police;
mod row;
mod show;
mod skbedit;
mod skbmod;
mod tunnel_key;
mod vlan;

pub use show::show_actions;
pub(super) use show::{old_counts, old_policer, show};

use super::build::later;
use super::words::{Words, begins};
use crate::{Env, Refusal};
use gact::{gact, unknown};
use kinds::row;
use row::{Row, begins_control, number, partly, unparsed};
use tidegate_policy::spec::{ACTIONS, REFUSED_ACTIONS, why_not};
use tidegate_policy::{Act, Action, CardCounts, Control, Only};

/// The most actions of a filter.
const MOST: usize = 32;

/// Reads the words after the first `action`: one action after the other, until they end or the filter's class
/// is named.
pub(super) fn parse(words: &mut Words<'_>, env: &Env) -> Result<Vec<Action>, Refusal> {
    let mut actions: Vec<Action> = Vec::new();
    let first = words.need()?;
    // tc goes over a second one, but not to the end.
    let first = match first {
        "action" => words.take().ok_or_else(|| empty(words.last()))?,
        _ => first,
    };
    actions.push(one(first, words, env, &[])?);
    while let Some(word) = words.peek() {
        if begins(word, "flowid") || begins(word, "classid") {
            break;
        }
        words.skip();
        let word = if word == "action" { words.need()? } else { word };
        if actions.len() >= MOST {
            return Err(Refusal::new(1, "Illegal \"action\"")
                .at(words.last())
                .remedy(format!("A filter has at most {MOST} actions.")));
        }
        // tc keeps a cookie for the actions that follow.
        let cookie = actions.last().map(|action| action.cookie.clone()).unwrap_or_default();
        actions.push(one(word, words, env, &cookie)?);
    }
    Ok(actions)
}

/// `action` where an action must be named.
pub(super) fn empty(place: usize) -> Refusal {
    Refusal::new(1, "bad action empty 1")
        .then("parse_action: bad value (0:(null))!\nIllegal \"action\"\n")
        .at(place)
        .remedy("Say which action: action police rate 1mbit burst 10k drop.")
}

/// Gives a filter other actions; beside a policer without `action` before it the kernel takes no notice of
/// any.
pub(super) fn replace(actions: &mut Vec<Action>, others: Vec<Action>) {
    if !actions.iter().any(|action| action.old_style) {
        *actions = others;
    }
}

/// Reads the words after `police` in a filter that has no `action` before it.
pub(super) fn old_police(words: &mut Words<'_>, env: &Env) -> Result<Vec<Action>, Refusal> {
    let place = words.last();
    match police::parse(words, env.tc) {
        Ok((police, index)) => Ok(vec![Action { index, old_style: true, ..Act::Police(police).into() }]),
        Err(failed) => Err(failed.alone(place)),
    }
}

/// One action; `cookie` is what it has unless it names another.
fn one(word: &str, words: &mut Words<'_>, env: &Env, cookie: &[u8]) -> Result<Action, Refusal> {
    let (place, left) = (words.last(), words.left() + 1);
    let known = row(word);
    if let Some(row) = known.filter(|_| words.peek() == Some("help")) {
        return Err(usage(row, words.place()));
    }
    let mut action = match word {
        // A number alone leads to the action that has it, or makes one that lets pass.
        _ if word.len() > 1 && begins(word, "gact") && words.begins("index") => {
            Act::decide(Control::Pass).into()
        }
        _ if word.len() > 1 && begins(word, "gact") => {
            let control = words.need()?;
            gact(control, words).map_err(|it| partly(it, word, left))?
        }
        "index" => Action {
            index: number("index", words).map_err(|it| unparsed(it, word, left))?,
            ..Act::decide(Control::Pass).into()
        },
        _ if known.is_some_and(|row| row.name != gact::ROW.name) => {
            let Some(row) = known else { return Err(unknown(word, place)) };
            (row.parse)(words, env).map_err(|failed| failed.refusal(word, left, place))?
        }
        _ if begins_control(word) => gact(word, words).map_err(|it| partly(it, word, left))?,
        _ => {
            return Err(match why_not(REFUSED_ACTIONS, word) {
                Some(why) => later("action", word, place).remedy(format!("Not built: {why}.")),
                None => unknown(word, place),
            });
        }
    };
    action.cookie = cookie.to_vec();
    options(&mut action, words).map_err(|refusal| partly(refusal, word, left))?;
    Ok(action)
}

/// What any action may end with, in tc's order.
fn options(action: &mut Action, words: &mut Words<'_>) -> Result<(), Refusal> {
    // Behind the decision of ct and gate it is the number of an action of its own.
    if words.begins("index") && !matches!(action.act, Act::Ct(_) | Act::Gate(_)) {
        words.skip();
        action.index = number("index", words)?;
    }
    if words.peek() == Some("cookie") {
        words.skip();
        action.cookie = cookie(words)?;
    }
    if words.begins("hw_stats") {
        words.skip();
        let text = words.need()?;
        let all = [CardCounts::Immediate, CardCounts::Delayed, CardCounts::Disabled];
        action.card = all
            .into_iter()
            .find(|known| known.name().is_some_and(|name| begins(text, name)))
            .ok_or_else(|| {
                Refusal::wrong(text, "value is invalid\n")
                    .at(words.last())
                    .remedy("hw_stats takes immediate, delayed or disabled.")
            })?;
    }
    if words.peek() == Some("no_percpu") {
        words.skip();
        action.no_percpu = true;
    }
    action.only = match words.peek() {
        Some("skip_sw") => Some(Only::Card),
        Some("skip_hw") => Some(Only::Software),
        _ => return Ok(()),
    };
    words.skip();
    Ok(())
}

fn cookie(words: &mut Words<'_>) -> Result<Vec<u8>, Refusal> {
    const MOST_DIGITS: usize = 32;
    let text = words.need()?;
    let why = match text.len() {
        0..=MOST_DIGITS => "cookie must be a hex string".to_owned(),
        digits => format!("{digits} Max allowed size {MOST_DIGITS}"),
    };
    hex_bytes(text).ok_or_else(|| {
        Refusal::wrong(text, &format!("{why}\n"))
            .at(words.last())
            .remedy("A cookie is up to 16 bytes in hexadecimal, such as 0011.")
    })
}

/// `help` behind an action's name.
fn usage(row: &Row, place: usize) -> Refusal {
    let Row { name, form, .. } = row;
    let what = ACTIONS.iter().find(|(known, _)| known == name).map_or("", |(_, what)| what);
    Refusal::new(255, format!("Usage: {form}")).then(&format!("{name} {what}")).at(place)
}

fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let whole = text.len().is_multiple_of(2) && (2..=32).contains(&text.len()) && text.is_ascii();
    let byte_of = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte_of).collect::<Option<Vec<u8>>>().filter(|_| whole)
}

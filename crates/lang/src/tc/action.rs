//! `action …` at the end of a filter: the words, and how they are listed.

mod connection;
mod mirred;
mod police;
mod show;
mod skbedit;

pub(super) use show::show;
pub use show::show_actions;

use super::build::later;
use super::words::{Words, begins};
use crate::number::u32_in;
use crate::{Env, Refusal};
use tidegate_policy::spec::{REFUSED_ACTIONS, why_not};
use tidegate_policy::{Act, Action, Control, Gact, RandomGact};

/// The most actions of a filter.
const MOST: usize = 32;

/// Reads the words after the first `action`: one action after the other, until they end or the filter's class is named.
pub(super) fn parse(words: &mut Words<'_>, env: &Env) -> Result<Vec<Action>, Refusal> {
    let mut actions: Vec<Action> = Vec::new();
    let first = words.need()?;
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

/// Reads the words after `police` in a filter that has no `action` before it.
pub(super) fn old_police(words: &mut Words<'_>) -> Result<Vec<Action>, Refusal> {
    let place = words.last();
    match police::parse(words) {
        Ok((police, index)) => {
            Ok(vec![Action { act: Act::Police(police), index, old_style: true, cookie: Vec::new() }])
        }
        Err(failed) => Err(failed.alone(place)),
    }
}

/// What is wrong with an action: a refusal as it is, or words after which tc says that it cannot parse actions.
enum Failed {
    Whole(Box<Refusal>),
    Partly(String, String),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        Failed::Whole(Box::new(refusal))
    }
}

impl Failed {
    fn say(line: impl Into<String>, remedy: impl Into<String>) -> Failed {
        Failed::Partly(line.into(), remedy.into())
    }

    /// After `action`: `left` words from the action's name on.
    fn refusal(self, kind: &str, left: usize, place: usize) -> Refusal {
        match self {
            Failed::Whole(refusal) => *refusal,
            Failed::Partly(line, remedy) => {
                let rest =
                    format!("bad action parsing\nparse_action: bad value ({left}:{kind})!\nIllegal \"action\"\n");
                let text = if line.is_empty() { rest } else { format!("{line}\n{rest}") };
                Refusal { stderr: text, code: 1, ..Refusal::default() }.at(place).remedy(remedy)
            }
        }
    }

    /// After `police`.
    fn alone(self, place: usize) -> Refusal {
        match self {
            Failed::Whole(refusal) => *refusal,
            Failed::Partly(line, remedy) => {
                let text = if line.is_empty() { String::new() } else { format!("{line}\n") };
                Refusal { stderr: format!("{text}Illegal \"police\"\n"), code: 1, ..Refusal::default() }
                    .at(place)
                    .remedy(remedy)
            }
        }
    }
}

/// One action; `cookie` is what it has unless it names another.
fn one(word: &str, words: &mut Words<'_>, env: &Env, cookie: &[u8]) -> Result<Action, Refusal> {
    let (place, left) = (words.last(), words.left() + 1);
    let fail = |failed: Failed| failed.refusal(word, left, place);
    let mut action = match word {
        "police" => {
            let (police, index) = police::parse(words).map_err(fail)?;
            Action { index, ..Act::Police(police).into() }
        }
        "mirred" => mirred::parse(words, env)?,
        "skbedit" => skbedit::parse(words).map_err(fail)?,
        "connmark" => connection::connmark(words).map_err(fail)?,
        "ctinfo" => connection::ctinfo(words).map_err(fail)?,
        // A number alone leads to the action that has it, or makes one that lets pass.
        "gact" if words.peek() == Some("index") => Act::decide(Control::Pass).into(),
        "gact" => {
            let word = words.need()?;
            gact(word, words)?
        }
        "index" => Action {
            index: number("index", words).map_err(|it| unparsed(it, word, left))?,
            ..Act::decide(Control::Pass).into()
        },
        _ if begins_control(word) => gact(word, words)?,
        _ => {
            return Err(match why_not(REFUSED_ACTIONS, word) {
                Some(why) => later("action", word, place).remedy(format!("Not built: {why}.")),
                None => unknown(word, place),
            });
        }
    };
    action.cookie = cookie.to_vec();
    options(&mut action, words).map_err(|refusal| match refusal.code {
        1 => unparsed(refusal, word, left),
        _ => refusal,
    })?;
    Ok(action)
}

/// What tc adds where an action's own words are wrong: `left` words from its name on.
fn unparsed(refusal: Refusal, kind: &str, left: usize) -> Refusal {
    refusal.then(&format!("bad action parsing\nparse_action: bad value ({left}:{kind})!\nIllegal \"action\"\n"))
}

/// What any action may end with.
fn options(action: &mut Action, words: &mut Words<'_>) -> Result<(), Refusal> {
    while let Some(word) = words.peek() {
        match word {
            "index" => {
                words.skip();
                action.index = number("index", words)?;
            }
            "cookie" => {
                words.skip();
                let text = words.need()?;
                action.cookie = octets(text).ok_or_else(|| {
                    Refusal::new(255, format!("Error: argument \"{text}\" is wrong: cookie must be a hex string"))
                        .at(words.last())
                        .remedy("A cookie is up to 16 octets in hexadecimal, such as 0011.")
                })?;
            }
            "no_percpu" => words.skip(),
            "hw_stats" => {
                words.skip();
                words.need()?;
            }
            _ => break,
        }
    }
    Ok(())
}

fn octets(text: &str) -> Option<Vec<u8>> {
    let whole = text.len().is_multiple_of(2) && (2..=32).contains(&text.len()) && text.is_ascii();
    let octet = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(octet).collect::<Option<Vec<u8>>>().filter(|_| whole)
}

fn number(name: &str, words: &mut Words<'_>) -> Result<u32, Refusal> {
    let text = words.need()?;
    u32_in(text, 0).ok_or_else(|| {
        Refusal::new(1, format!("Illegal \"{name}\""))
            .at(words.last())
            .remedy(format!("\"{text}\" is not a number for {name}."))
    })
}

/// `index N` among an action's own words; 0 without.
fn own_index(kind: &str, words: &mut Words<'_>) -> Result<u32, Failed> {
    if words.peek() != Some("index") {
        return Ok(0);
    }
    words.skip();
    let text = words.need()?;
    u32_in(text, 10).ok_or_else(|| {
        Failed::say(format!("{kind}: Illegal \"index\""), format!("\"{text}\" is not the number of an action."))
    })
}

/// A decision, and another one now and then (`random`).
fn gact(word: &str, words: &mut Words<'_>) -> Result<Action, Refusal> {
    let control = control(word, words)?.ok_or_else(|| unknown(word, words.last()))?;
    let mut gact = Gact { control, random: None };
    if words.peek() == Some("random") {
        words.skip();
        let kind = words.need()?;
        let drawn = match kind {
            "netrand" => true,
            "determ" => false,
            _ => {
                return Err(Refusal::new(1, format!("Illegal \"random type\" \"{kind}\""))
                    .at(words.last())
                    .remedy("random takes netrand (by draws) or determ (every so many), a decision and a number."));
            }
        };
        let other = words.need()?;
        let control = self::control(other, words)?.ok_or_else(|| unknown(other, words.last()))?;
        let one_in = number("val", words)?;
        let one_in = u16::try_from(one_in).ok().filter(|val| (1..=10_000).contains(val)).ok_or_else(|| {
            Refusal::new(1, "Illegal \"val\"").at(words.last()).remedy("One packet in so many: from 1 to 10000.")
        })?;
        gact.random = Some(RandomGact { drawn, control, one_in });
    }
    Ok(Act::Gact(gact).into())
}

/// Is a word a decision, or the beginning of one of two words?
fn begins_control(word: &str) -> bool {
    plain_control(word).is_some() || matches!(word, "goto" | "jump")
}

/// A decision by its name alone.
fn plain_control(word: &str) -> Option<Control> {
    Some(match word {
        "pass" | "ok" => Control::Pass,
        "drop" | "shot" => Control::Drop,
        "continue" => Control::Continue,
        "reclassify" => Control::Reclassify,
        "pipe" => Control::Pipe,
        "trap" => Control::Trap,
        _ => return None,
    })
}

/// A decision; `word` was taken, what belongs to it follows.
fn control(word: &str, words: &mut Words<'_>) -> Result<Option<Control>, Refusal> {
    const MOST: u32 = 0x0fff_ffff;
    let bounded = |value: u32, name: &str, place: usize| match value {
        0..=MOST => Ok(value),
        _ => Err(Refusal::new(1, format!("Illegal \"{name}\"")).at(place)),
    };
    Ok(match word {
        "goto" => {
            if words.need()? != "chain" {
                return Err(Refusal::new(1, "\"chain\" keyword expected").at(words.last()).remedy("goto chain N"));
            }
            let chain = number("chain index", words)?;
            Some(Control::Goto(bounded(chain, "chain index", words.last())?))
        }
        "jump" => {
            let count = number("jump count", words)?;
            Some(Control::Jump(bounded(count, "jump count", words.last())?))
        }
        _ => plain_control(word),
    })
}

/// The decision that may follow an action, if there is one.
fn control_after(words: &mut Words<'_>) -> Result<Option<Control>, Refusal> {
    match words.peek() {
        Some(word) if begins_control(word) => {
            words.skip();
            control(word, words)
        }
        _ => Ok(None),
    }
}

fn unknown(word: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("Bad action type {word}")).at(place).remedy(
        "The actions are pass, drop, continue, reclassify, pipe, goto chain N, police, skbedit and mirred egress.",
    )
}

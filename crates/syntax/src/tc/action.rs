//! `action …` at the end of a filter: the words, and how they are listed.

mod connection;
mod count;
mod csum;
mod ct;
mod mirred;
mod nat;
mod pedit;
mod police;
mod show;
mod skbedit;
mod skbmod;
mod vlan;

pub use show::show_actions;
pub(super) use show::{old_counts, old_policer, show};

use super::build::later;
use super::words::{Words, begins};
use crate::number::u32_in;
use crate::{Env, Refusal};
use tidegate_policy::spec::{ACTIONS, REFUSED_ACTIONS, why_not};
use tidegate_policy::{Act, Action, CardCounts, Control, Gact, Only, RandomGact};

/// The most actions of a filter.
const MOST: usize = 32;

/// Reads the words after the first `action`: one action after the other, until they end or the filter's class is named.
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

/// Reads the words after `police` in a filter that has no `action` before it.
pub(super) fn old_police(words: &mut Words<'_>) -> Result<Vec<Action>, Refusal> {
    let place = words.last();
    match police::parse(words) {
        Ok((police, index)) => Ok(vec![Action { index, old_style: true, ..Act::Police(police).into() }]),
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
        _ if words.peek() == Some("help") && ACTIONS.iter().any(|(kind, _)| *kind == word) => {
            return Err(usage(word, words.place()));
        }
        "police" => {
            let (police, index) = police::parse(words).map_err(fail)?;
            Action { index, ..Act::Police(police).into() }
        }
        "mirred" => mirred::parse(words, env)?,
        "skbedit" => skbedit::parse(words).map_err(fail)?,
        "connmark" => connection::connmark(words).map_err(fail)?,
        "ct" => ct::parse(words).map_err(fail)?,
        "simple" => count::simple(words).map_err(fail)?,
        "sample" => count::sample(words).map_err(fail)?,
        "ctinfo" => connection::ctinfo(words).map_err(fail)?,
        "nat" => nat::parse(words).map_err(fail)?,
        "pedit" => pedit::parse(words).map_err(fail)?,
        "csum" => csum::parse(words).map_err(fail)?,
        "skbmod" => skbmod::parse(words).map_err(fail)?,
        "vlan" => vlan::parse(words).map_err(fail)?,
        // A number alone leads to the action that has it, or makes one that lets pass.
        _ if word.len() > 1 && begins(word, "gact") && words.begins("index") => Act::decide(Control::Pass).into(),
        _ if word.len() > 1 && begins(word, "gact") => {
            let control = words.need()?;
            gact(control, words).map_err(|it| partly(it, word, left))?
        }
        "index" => Action {
            index: number("index", words).map_err(|it| unparsed(it, word, left))?,
            ..Act::decide(Control::Pass).into()
        },
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

/// What is wrong with an action's own words, told so that nothing else follows, or not.
fn partly(refusal: Refusal, kind: &str, left: usize) -> Refusal {
    match refusal.code {
        1 => unparsed(refusal, kind, left),
        _ => refusal,
    }
}

/// What tc adds where an action's own words are wrong: `left` words from its name on.
fn unparsed(refusal: Refusal, kind: &str, left: usize) -> Refusal {
    refusal.then(&format!("bad action parsing\nparse_action: bad value ({left}:{kind})!\nIllegal \"action\"\n"))
}

/// What any action may end with, in tc's order.
fn options(action: &mut Action, words: &mut Words<'_>) -> Result<(), Refusal> {
    // Behind ct's decision it is the number of an action of its own.
    if words.begins("index") && !matches!(action.act, Act::Ct(_)) {
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
        action.card =
            all.into_iter().find(|known| known.name().is_some_and(|name| begins(text, name))).ok_or_else(|| {
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
    octets(text).ok_or_else(|| {
        Refusal::wrong(text, &format!("{why}\n"))
            .at(words.last())
            .remedy("A cookie is up to 16 bytes in hexadecimal, such as 0011.")
    })
}

/// `help` behind an action's name.
fn usage(kind: &str, place: usize) -> Refusal {
    let what = ACTIONS.iter().find(|(known, _)| *known == kind).map_or("", |(_, what)| what);
    let form = match kind {
        "connmark" => "connmark [zone N] [CONTROL] [index N]",
        "ctinfo" => "ctinfo [dscp MASK [STATEMASK]] [cpmark [MASK]] [zone N] [CONTROL] [index N]",
        "simple" => "simple sdata TEXT [CONTROL] [index N]",
        "sample" => "sample rate N group N [trunc OCTETS] [CONTROL] [index N]",
        "ct" => {
            "ct clear | ct [nat] | ct commit [force] [mark N[/MASK]] [nat src|dst addr ADDRESS[-ADDRESS] [port PORT[-PORT]]] [CONTROL] [index N]"
        }
        "mirred" => "mirred egress|ingress redirect|mirror [index N] dev NAME",
        "skbedit" => {
            "skbedit [queue_mapping N] [priority CLASS] [mark N[/MASK]] [ptype TYPE] [inheritdsfield] [CONTROL] [index N]"
        }
        "police" => {
            "police [rate RATE burst BYTES] [mtu BYTES] [peakrate RATE] [pkts_rate N pkts_burst N] [CONTROL] [index N]"
        }
        _ => "gact CONTROL [random netrand|determ CONTROL N] [index N]",
    };
    Refusal::new(255, format!("Usage: {form}")).then(&format!("{kind} {what}")).at(place)
}

fn octets(text: &str) -> Option<Vec<u8>> {
    let whole = text.len().is_multiple_of(2) && (2..=32).contains(&text.len()) && text.is_ascii();
    let octet = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(octet).collect::<Option<Vec<u8>>>().filter(|_| whole)
}

fn number(name: &str, words: &mut Words<'_>) -> Result<u32, Refusal> {
    let text = words.need()?;
    u32_in(text, 10).ok_or_else(|| {
        Refusal::new(1, format!("Illegal \"{name}\""))
            .at(words.last())
            .remedy(format!("\"{text}\" is not a number for {name}."))
    })
}

/// The number that may follow an action's own words; what is said where it is none depends on the action.
fn own_index(words: &mut Words<'_>, complaint: impl Fn(&str) -> String) -> Result<u32, Failed> {
    if !words.begins("index") {
        return Ok(0);
    }
    words.skip();
    let text = words.need()?;
    u32_in(text, 10).ok_or_else(|| Failed::say(complaint(text), format!("\"{text}\" is not the number of an action.")))
}

/// A decision, and another one now and then (`random`).
fn gact(word: &str, words: &mut Words<'_>) -> Result<Action, Refusal> {
    let control = control(word, words)?.ok_or_else(|| unknown(word, words.last()))?;
    let mut gact = Gact { control, random: None };
    if words.begins("random") {
        words.skip();
        let kind = words.need()?;
        let drawn = begins(kind, "netrand");
        if !drawn && !begins(kind, "determ") {
            return Err(Refusal::new(1, "Illegal \"random type\"")
                .at(words.last())
                .remedy("random takes netrand (by draws) or determ (every so many), a decision and a number."));
        }
        let other = words.need()?;
        let control = self::control(other, words)?.ok_or_else(|| unknown(other, words.last()))?;
        let said = words.take().and_then(|text| u32_in(text, 10));
        let one_in = said.and_then(|val| u16::try_from(val).ok()).filter(|val| *val <= 10_000);
        let one_in = one_in.ok_or_else(|| {
            let told = said.map_or("0x1000".to_owned(), |val| format!(" {val:#x}"));
            Refusal::new(1, format!("Illegal probability val {told}"))
                .at(words.last())
                .remedy("One packet in so many: from 1 to 10000.")
        })?;
        // The kernel takes none for one.
        gact.random = Some(RandomGact { drawn, control, one_in: one_in.max(1) });
    }
    Ok(Act::Gact(gact).into())
}

/// Does a word name a decision, or begin to?
fn begins_control(word: &str) -> bool {
    plain_control(word).is_some() || begins(word, "goto") || begins(word, "jump")
}

/// A decision by its name alone, or by what its name begins with: the first that fits.
fn plain_control(word: &str) -> Option<Control> {
    const NAMES: [(&str, Control); 8] = [
        ("pass", Control::Pass),
        ("ok", Control::Pass),
        ("drop", Control::Drop),
        ("shot", Control::Drop),
        ("continue", Control::Continue),
        ("reclassify", Control::Reclassify),
        ("pipe", Control::Pipe),
        ("trap", Control::Trap),
    ];
    NAMES.into_iter().find(|(name, _)| begins(word, name)).map(|(_, control)| control)
}

/// A decision; `word` was taken, what belongs to it follows.
fn control(word: &str, words: &mut Words<'_>) -> Result<Option<Control>, Refusal> {
    const MOST: u32 = 0x0fff_ffff;
    let bounded = |value: u32, name: &str, place: usize| match value {
        0..=MOST => Ok(value),
        _ => Err(Refusal::new(255, format!("Illegal \"{name}\"")).at(place)),
    };
    Ok(match word {
        _ if begins(word, "goto") => {
            if !begins(words.need()?, "chain") {
                return Err(Refusal::new(255, "\"chain index\" expected").at(words.last()).remedy("goto chain N"));
            }
            let chain = number("chain index", words).map_err(|refusal| Refusal { code: 255, ..refusal })?;
            Some(Control::Goto(bounded(chain, "chain index", words.last())?))
        }
        _ if begins(word, "jump") => {
            let text = words.need()?;
            let count = u32_in(text, 10).ok_or_else(|| {
                Refusal::new(255, format!("Invalid \"jump count\" ({text})"))
                    .at(words.last())
                    .remedy("jump N: the filter's actions are carried out again, without the first N.")
            })?;
            if count > MOST {
                return Err(Refusal::new(255, format!("Invalid \"jump count\" ({text})")).at(words.last()));
            }
            Some(Control::Jump(count))
        }
        _ => plain_control(word),
    })
}

/// The decision that may follow an action, if there is one.
fn control_after(words: &mut Words<'_>) -> Result<Option<Control>, Refusal> {
    match words.peek() {
        Some(word) if begins_control(word) => {
            words.skip();
            control(word, words).map_err(twice)
        }
        _ => Ok(None),
    }
}

/// Behind an action's own words tc tells twice what is wrong with a decision's number.
fn twice(refusal: Refusal) -> Refusal {
    let told = refusal.stderr.clone();
    if told.contains("chain index") || told.contains("jump count") { refusal.then(&told) } else { refusal }
}

fn unknown(word: &str, place: usize) -> Refusal {
    Refusal::new(255, format!("Bad action type {word}")).at(place).remedy(
        "The actions are pass, drop, continue, reclassify, pipe, goto chain N, police, mirred, skbedit, nat, pedit, csum, vlan, skbmod, \
         connmark, ctinfo, ct, simple and sample.",
    )
}

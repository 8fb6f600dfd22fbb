//! What an action's file contains, as its row lists it, and what those files share.

use crate::json::Json;
use crate::number::u32_in;
use crate::tc::command_line::ShowFlags;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Action, Control};

/// A kind of action: how tc reads its options, and how it lists it.
pub(super) struct Row {
    /// The kind's name, the word behind `action`.
    pub(super) name: &'static str,
    /// How it is written, for its help.
    pub(super) form: &'static str,
    /// Reads the words behind its name.
    pub(super) parse: fn(&mut Words<'_>, &Env) -> Result<Action, Failed>,
    /// What it does, up to its number.
    pub(super) show: fn(&ActionDump, &ShowFlags, &mut Entry),
    /// The text between that and its index; `None`: it shows its index in its own words.
    pub(super) lead: Option<&'static str>,
}

/// An error in an action: a refusal as it is, or lines after which tc reports that it cannot parse actions.
pub(super) enum Failed {
    Whole(Box<Refusal>),
    Partly(String, String),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        Failed::Whole(Box::new(refusal))
    }
}

impl Failed {
    pub(super) fn say(line: impl Into<String>, remedy: impl Into<String>) -> Failed {
        Failed::Partly(line.into(), remedy.into())
    }

    /// After `action`: `left` words from the action's name on.
    pub(super) fn refusal(self, kind: &str, left: usize, place: usize) -> Refusal {
        match self {
            Failed::Whole(refusal) => *refusal,
            Failed::Partly(line, remedy) => {
                let rest = format!(
                    "bad action parsing\nparse_action: bad value ({left}:{kind})!\nIllegal \"action\"\n"
                );
                let text = if line.is_empty() { rest } else { format!("{line}\n{rest}") };
                Refusal { stderr: text, code: 1, ..Refusal::default() }.at(place).remedy(remedy)
            }
        }
    }

    /// After `police`.
    pub(super) fn alone(self, place: usize) -> Refusal {
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

/// An error in an action's own options, after which tc prints nothing else, or does.
pub(super) fn partly(refusal: Refusal, kind: &str, left: usize) -> Refusal {
    match refusal.code {
        1 => unparsed(refusal, kind, left),
        _ => refusal,
    }
}

/// What tc adds where an action's own words are wrong: `left` words from its name on.
pub(super) fn unparsed(refusal: Refusal, kind: &str, left: usize) -> Refusal {
    refusal
        .then(&format!("bad action parsing\nparse_action: bad value ({left}:{kind})!\nIllegal \"action\"\n"))
}

pub(super) fn number(name: &str, words: &mut Words<'_>) -> Result<u32, Refusal> {
    let text = words.need()?;
    u32_in(text, 10).ok_or_else(|| {
        Refusal::new(1, format!("Illegal \"{name}\""))
            .at(words.last())
            .remedy(format!("\"{text}\" is not a number for {name}."))
    })
}

/// The index that may follow an action's own options; the error message depends on the action.
pub(super) fn own_index(words: &mut Words<'_>, complaint: impl Fn(&str) -> String) -> Result<u32, Failed> {
    if !words.begins("index") {
        return Ok(0);
    }
    words.skip();
    let text = words.need()?;
    u32_in(text, 10)
        .ok_or_else(|| Failed::say(complaint(text), format!("\"{text}\" is not the number of an action.")))
}

/// Does a word name a decision, or begin to?
pub(super) fn begins_control(word: &str) -> bool {
    plain_control(word).is_some() || begins(word, "goto") || begins(word, "jump")
}

/// A decision by its name alone, or by what its name begins with: the first that fits.
pub(super) fn plain_control(word: &str) -> Option<Control> {
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
pub(super) fn control(word: &str, words: &mut Words<'_>) -> Result<Option<Control>, Refusal> {
    const MOST: u32 = 0x0fff_ffff;
    let bounded = |value: u32, name: &str, place: usize| match value {
        0..=MOST => Ok(value),
        _ => Err(Refusal::new(255, format!("Illegal \"{name}\"")).at(place)),
    };
    Ok(match word {
        _ if begins(word, "goto") => {
            if !begins(words.need()?, "chain") {
                return Err(Refusal::new(255, "\"chain index\" expected")
                    .at(words.last())
                    .remedy("goto chain N"));
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
pub(super) fn control_after(words: &mut Words<'_>) -> Result<Option<Control>, Refusal> {
    match words.peek() {
        Some(word) if begins_control(word) => {
            words.skip();
            control(word, words).map_err(twice)
        }
        _ => Ok(None),
    }
}

/// Behind an action's own options tc prints an error in a control's number twice.
fn twice(refusal: Refusal) -> Refusal {
    let stderr = refusal.stderr.clone();
    if stderr.contains("chain index") || stderr.contains("jump count") {
        refusal.then(&stderr)
    } else {
        refusal
    }
}

/// A decision in words.
pub(super) fn control_name(control: Control) -> String {
    match control {
        Control::Goto(chain) => format!("goto chain {chain}"),
        Control::Jump(count) => format!("jump {count}"),
        Control::Number(number) => number.to_string(),
        _ => control.name().into(),
    }
}

pub(super) fn type_of(control: Control) -> Json {
    let kind = match control {
        Control::Number(number) => number.to_string(),
        named => named.name().into(),
    };
    let mut members = vec![("type", Json::text(kind))];
    match control {
        Control::Goto(chain) => members.push(("chain", Json::number(chain))),
        Control::Jump(count) => members.push(("jump", Json::number(count))),
        _ => {}
    }
    Json::Object(members)
}

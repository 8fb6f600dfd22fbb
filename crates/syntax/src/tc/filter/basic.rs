//! basic: its words, and how it is listed.

use super::row::{Given, ListedFilter, Read, Row, class, leading_number, old_style};
use crate::json::Json;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::tc::{action, ematch};
use crate::{Env, Refusal};
use tidegate_policy::spec::BASIC;
use tidegate_policy::{BasicParams, FilterParams};

/// `basic`.
pub(super) const ROW: Row = Row { name: "basic", parse, show };

fn parse(handle: Given<'_>, _: u16, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let number = leading_number(handle);
    if words.peek().is_none() {
        return Ok(Read { handle: number, ..Read::default() });
    }
    let (mut params, mut actions) = (BasicParams::default(), Vec::new());
    while let Some(word) = words.take() {
        match word {
            _ if begins(word, "match") => params.terms = ematch::parse_before_end(words, &unknown)?,
            _ if begins(word, "classid") || word == "flowid" => params.classid = Some(class(words)?),
            _ if begins(word, "action") => action::replace(&mut actions, action::parse(words, env)?),
            _ if begins(word, "police") => actions = action::old_police(words, env)?,
            "help" => return Err(Refusal { stderr: BASIC.help(), code: 1, ..Refusal::default() }),
            _ => {
                return Err(unknown(word, words).remedy(
                    "basic takes match and an expression, classid (or flowid) and a class, and action.",
                ));
            }
        }
    }
    Ok(Read { handle: number, params: Some(FilterParams::Basic(params)), actions })
}

fn unknown(word: &str, words: &Words<'_>) -> Refusal {
    Refusal::new(1, format!("What is \"{word}\"?")).then(&BASIC.help()).at(words.last())
}

fn show(filter: &ListedFilter<'_>) -> Option<Entry> {
    let (FilterParams::Basic(params), handle) = (filter.params, filter.handle) else { return None };
    let mut entry = Entry::new();
    entry.say(&format!("handle {handle:#x} "));
    entry.member("handle", Json::text(format!("{handle:x}")));
    if let Some(class) = params.classid.filter(|class| !class.is_none()) {
        entry.word("flowid", &class.to_string());
    }
    if !params.terms.is_empty() {
        let text = ematch::show(&params.terms, 2);
        entry.say(&format!("\n{text}"));
        // tc writes what is no JSON here.
        entry.member("ematch", Json::text(text.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    if old_style(filter.actions) {
        entry.say("\n");
    }
    action::show(filter.actions, filter.flags, &mut entry);
    Some(entry)
}

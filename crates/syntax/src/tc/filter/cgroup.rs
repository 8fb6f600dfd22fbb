//! cgroup: its words, and how it is listed.

use super::row::{Given, ListedFilter, Read, Row, leading_number, old_style};
use crate::json::Json;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::tc::{action, ematch};
use crate::{Env, Refusal};
use tidegate_policy::spec::CGROUP;
use tidegate_policy::{CgroupParams, FilterParams};

/// `cgroup`.
pub(super) const ROW: Row = Row { name: "cgroup", parse, show };

fn parse(handle: Given<'_>, _: u16, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let (mut params, mut actions) = (CgroupParams::default(), Vec::new());
    while let Some(word) = words.take() {
        match word {
            _ if begins(word, "match") => params.terms = ematch::parse_before_end(words, &unknown)?,
            _ if begins(word, "action") => action::replace(&mut actions, action::parse(words, env)?),
            _ if begins(word, "police") => actions = action::old_police(words, env)?,
            "help" => return Err(Refusal { stderr: CGROUP.help(), code: 1, ..Refusal::default() }),
            _ => return Err(unknown(word, words).remedy("cgroup takes match and an expression, and action.")),
        }
    }
    Ok(Read { handle: leading_number(handle), params: Some(FilterParams::Cgroup(params)), actions })
}

fn unknown(word: &str, words: &Words<'_>) -> Refusal {
    Refusal::new(1, format!("What is \"{word}\"?")).then(&CGROUP.help()).at(words.last())
}

fn show(filter: &ListedFilter<'_>) -> Option<Entry> {
    let (FilterParams::Cgroup(params), handle) = (filter.params, filter.handle) else { return None };
    let mut entry = Entry::new();
    entry.say(&format!("handle {handle:#x} "));
    entry.member("handle", Json::text(format!("{handle:x}")));
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

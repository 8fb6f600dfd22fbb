//! matchall: its words, and how it is listed.

use super::row::{Given, ListedFilter, Read, Row, both_skipped, class, leading_number, no_card};
use crate::json::Json;
use crate::tc::action;
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_policy::spec::MATCHALL;
use tidegate_policy::{FilterParams, MatchallParams};

/// `matchall`.
pub(super) const ROW: Row = Row { name: "matchall", parse, show };

fn parse(handle: Given<'_>, _: u16, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let number = leading_number(handle);
    if words.peek().is_none() {
        return Ok(Read { handle: number, ..Read::default() });
    }
    let (mut params, mut actions, mut only_card) = (MatchallParams::default(), Vec::new(), None);
    while let Some(word) = words.take() {
        match word {
            _ if begins(word, "classid") || word == "flowid" => params.classid = Some(class(words)?),
            _ if begins(word, "action") => actions = action::parse(words, env)?,
            "skip_hw" => {
                params.skip_hw = true;
                // tc wants a word behind it.
                if words.peek().is_none() {
                    words.need()?;
                }
            }
            "skip_sw" => only_card = Some(words.last()),
            "help" => return Err(Refusal { stderr: MATCHALL.help(), code: 1, ..Refusal::default() }),
            _ => {
                return Err(Refusal::new(1, format!("What is \"{word}\"?"))
                    .then(&MATCHALL.help())
                    .at(words.last())
                    .remedy("matchall takes classid (or flowid) and a class, and action."));
            }
        }
    }
    if let Some(place) = only_card {
        return Err(if params.skip_hw { both_skipped(place) } else { no_card(place) });
    }
    Ok(Read { handle: number, params: Some(FilterParams::Matchall(params)), actions })
}

fn show(filter: &ListedFilter<'_>) -> Option<Entry> {
    let (FilterParams::Matchall(params), handle) = (filter.params, filter.handle) else { return None };
    let mut entry = Entry::new();
    entry.number("handle", handle, &format!("handle {handle:#x} "));
    if let Some(class) = params.classid.filter(|class| !class.is_none()) {
        entry.say(&format!("flowid {class} "));
        entry.member("flowid", Json::text(class.to_string()));
    }
    if params.skip_hw {
        entry.say("\n  skip_hw");
        entry.member("skip_hw", Json::Bool(true));
    }
    entry.say("\n  not_in_hw");
    entry.member("not_in_hw", Json::Bool(true));
    if let Some(hits) = filter.hits.filter(|_| filter.flags.stats) {
        entry.number("rule_hit", hits.lookups, &format!(" (rule hit {})", hits.lookups));
    }
    action::show(filter.actions, filter.flags, &mut entry);
    Some(entry)
}

//! The words of skbprio.

use super::options::Reader;
use super::show::Entry;
use super::words::Words;
use crate::Refusal;
use crate::units::parse_size;
use tidegate_policy::SkbprioParams;

pub(super) fn qdisc(reader: &Reader<'_>, words: &mut Words<'_>) -> Result<SkbprioParams, Refusal> {
    let mut params = SkbprioParams::default();
    while let Some(word) = words.take() {
        match word {
            "limit" => {
                let text = words.need()?;
                let limit = parse_size(text).ok_or_else(|| {
                    Refusal::new(1, format!("skbprio: Illegal \"limit\" value:\"{text}\""))
                        .then(&reader.usage())
                        .at(words.last())
                        .remedy(format!("limit takes a number of packets such as 64 or 1k; \"{text}\" is none."))
                })?;
                params.limit = Some(limit);
            }
            "help" => return Err(Refusal { stderr: reader.usage(), code: 1, ..Refusal::default() }),
            _ => {
                return Err(Refusal::new(1, format!("skbprio: unknown parameter \"{word}\""))
                    .then(&reader.usage())
                    .at(words.last())
                    .remedy("skbprio knows limit."));
            }
        }
    }
    Ok(params)
}

pub(super) fn show(params: &SkbprioParams, entry: &mut Entry) {
    let limit = params.limit.unwrap_or(0);
    entry.number("limit", limit, &format!("limit {limit} "));
}

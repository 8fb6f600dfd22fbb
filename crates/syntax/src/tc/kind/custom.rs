//! A qdisc from outside. tc has no words for it; a listing has its own name and options after `custom`.

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::Reader;
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::QdiscParams;
use tidegate_policy::dump::QdiscDump;

pub(super) struct Custom;

impl Syntax for Custom {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        super::row::unparsable(reader.spec.name, words).map(|()| None)
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        let QdiscParams::Custom(params) = &dump.params else { return };
        entry.say(params.name());
        entry.member("name", Json::text(params.name()));
        if !params.words().is_empty() {
            entry.say(" ");
            entry.say(params.words());
            entry.member("words", Json::text(params.words()));
        }
        entry.say(" ");
    }
}

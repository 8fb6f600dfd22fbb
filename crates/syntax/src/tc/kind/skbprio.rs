//! skbprio.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::Reader;
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{QdiscParams, SkbprioParams};

pub(super) struct Skbprio;

impl Syntax for Skbprio {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(Some(QdiscParams::Skbprio(SkbprioParams { limit: values.number("limit") })))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Skbprio(params) = &dump.params {
            let limit = params.limit.unwrap_or(0);
            entry.number("limit", limit, &format!("limit {limit} "));
        }
    }
}

//! multiq.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::Reader;
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{MultiqParams, QdiscParams};

pub(super) struct Multiq;

impl Syntax for Multiq {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        reader.options(words)?;
        Ok(Some(QdiscParams::Multiq(MultiqParams::default())))
    }

    /// In JSON tc 6.1 writes its text, which is none; here the two numbers have names.
    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Multiq(MultiqParams { bands, max_bands }) = dump.params {
            entry.number("bands", bands, &format!("bands {bands}/{max_bands} "));
            entry.number("max_bands", max_bands, "");
        }
    }
}

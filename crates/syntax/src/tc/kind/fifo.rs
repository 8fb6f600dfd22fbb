//! pfifo, bfifo and pfifo_head_drop.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::Reader;
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{FifoParams, Kind, QdiscParams};

pub(super) struct Fifo;

impl Syntax for Fifo {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(values.number("limit").map(|limit| QdiscParams::Fifo(FifoParams { limit: Some(limit) })))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Fifo(params) = &dump.params {
            let limit = params.limit.unwrap_or(0);
            match dump.kind {
                Kind::Bfifo => entry.size("limit", limit, "limit {}"),
                _ => entry.number("limit", limit, &format!("limit {limit}p")),
            }
        }
    }
}

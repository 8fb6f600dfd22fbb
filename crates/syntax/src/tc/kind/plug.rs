//! plug.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::options::Reader;
use crate::tc::words::Words;
use tidegate_policy::{PlugCommand, PlugParams, QdiscParams};

pub(super) struct Plug;

impl Syntax for Plug {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        // The last keyword gives the operation, also with a limit before it. Without one tc sends nothing.
        let command = values.0.last().map(|(key, _)| match *key {
            "block" => PlugCommand::Block,
            "release" => PlugCommand::Release,
            "release_indefinite" => PlugCommand::ReleaseIndefinite,
            _ => PlugCommand::Limit,
        });
        let limit = values.number("limit").unwrap_or(0);
        Ok(command.map(|command| QdiscParams::Plug(PlugParams { command: Some(command), limit })))
    }
}

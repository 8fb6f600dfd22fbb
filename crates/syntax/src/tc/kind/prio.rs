//! prio and pfifo_fast: bands.

use super::row::Syntax;
use crate::Refusal;
use crate::json::Json;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Values};
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{PrioParams, QdiscParams};

pub(super) struct Prio;

impl Syntax for Prio {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let values = reader.options(words)?;
        Ok(Some(QdiscParams::Prio(read(&values))))
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Prio(params) = &dump.params {
            show(params, entry);
        }
    }
}

fn read(values: &Values) -> PrioParams {
    let mut priomap = PrioParams::MAP;
    for (slot, band) in priomap.iter_mut().zip(values.map("priomap").unwrap_or(&[])) {
        *slot = *band;
    }
    PrioParams { bands: values.signed("bands").unwrap_or(3) as u32, priomap }
}

/// pfifo_fast: it has no options; it is listed as a prio with the default bands.
pub(super) struct PfifoFast;

impl Syntax for PfifoFast {
    fn show(&self, _dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        show(&PrioParams::default(), entry);
    }
}

fn show(params: &PrioParams, entry: &mut Entry) {
    entry.number("bands", params.bands, &format!("bands {} priomap", params.bands));
    for band in params.priomap {
        entry.say(&format!(" {band}"));
    }
    entry.member("priomap", Json::Numbers(params.priomap.map(u32::from).into()));
    entry.member("multiqueue", Json::Bool(false));
}

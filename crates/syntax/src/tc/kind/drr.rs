//! drr.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::Reader;
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::{ClassDump, Xstats};
use tidegate_policy::{ClassParams, DrrClassParams};

pub(super) struct Drr;

impl Syntax for Drr {
    fn class(&self, reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ClassParams, Refusal> {
        let values = reader.class_options(words)?;
        Ok(ClassParams::Drr(DrrClassParams { quantum: values.number("quantum") }))
    }

    fn show_class(&self, dump: &ClassDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let ClassParams::Drr(params) = &dump.params {
            entry.size("quantum", params.quantum.unwrap_or(0), "quantum {} ");
        }
    }

    fn show_class_stats(&self, dump: &ClassDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let Xstats::DrrClass { deficit } = &dump.xstats {
            entry.size("deficit", *deficit, " deficit {} \n");
        }
    }
}

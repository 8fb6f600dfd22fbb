//! qfq.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::Reader;
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::ClassDump;
use tidegate_policy::{ClassParams, QfqClassParams};

pub(super) struct Qfq;

impl Syntax for Qfq {
    fn class(&self, reader: &Reader<'_>, words: &mut Words<'_>) -> Result<ClassParams, Refusal> {
        let values = reader.class_options(words)?;
        Ok(ClassParams::Qfq(QfqClassParams {
            weight: values.number("weight"),
            maxpkt: values.number("maxpkt"),
        }))
    }

    fn show_class(&self, dump: &ClassDump, _flags: &ShowFlags, entry: &mut Entry) {
        if let ClassParams::Qfq(params) = &dump.params {
            for (key, value) in [("weight", params.weight), ("maxpkt", params.maxpkt)] {
                let value = value.unwrap_or(0);
                entry.number(key, value, &format!("{key} {value} "));
            }
        }
    }
}

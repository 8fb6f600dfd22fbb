//! ingress and clsact.

use super::row::Syntax;
use crate::Refusal;
use crate::tc::command_line::ShowFlags;
use crate::tc::options::Reader;
use crate::tc::show::Entry;
use crate::tc::words::Words;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{Kind, QdiscParams};

pub(super) struct Hook;

impl Syntax for Hook {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        match words.peek() {
            None => Ok(None),
            Some(option) => {
                let kind = reader.spec.name;
                Err(Refusal::new(1, format!("What is \"{option}\"?"))
                    .then(&format!("{kind}: takes no options\n"))
                    .at(words.place()))
            }
        }
    }

    fn show(&self, dump: &QdiscDump, _flags: &ShowFlags, entry: &mut Entry) {
        if dump.kind == Kind::Ingress {
            entry.say("---------------- ");
        }
    }
}

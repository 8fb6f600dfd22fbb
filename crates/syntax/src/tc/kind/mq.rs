//! mq: tc does not know it, and hands its name on.

use super::row::{Syntax, unparsable};
use crate::Refusal;
use crate::tc::options::Reader;
use crate::tc::words::Words;
use tidegate_policy::QdiscParams;

pub(super) struct Mq;

impl Syntax for Mq {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        unparsable(reader.spec.name, words).map(|()| None)
    }
}

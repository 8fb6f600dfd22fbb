//! custom: qdiscs that are implemented outside this workspace. No command of tc names them; programs put them
//! in operations.

use super::name::Kind;
use super::row::{ClassLayout, Filters, Waits};
use crate::spec::table::KindSpec;
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt;

/// Parameters of a qdisc that was made outside this workspace. `tidegate_qdisc::custom` makes them.
///
/// Two are equal if they have the same name and the same words.
#[derive(Clone)]
pub struct CustomParams {
    name: String,
    words: String,
    /// What makes the qdisc. This crate knows nothing of it.
    maker: Arc<dyn Any + Send + Sync>,
}

impl CustomParams {
    /// Parameters of the qdisc `name` in words, as a listing shows them after its name, and what makes the
    /// qdisc.
    pub fn new(name: String, words: String, maker: Arc<dyn Any + Send + Sync>) -> CustomParams {
        CustomParams { name, words, maker }
    }

    /// The name of the qdisc.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameters in words: `limit 100`.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// What makes the qdisc.
    pub fn maker(&self) -> &(dyn Any + Send + Sync) {
        &*self.maker
    }
}

impl fmt::Debug for CustomParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomParams")
            .field("name", &self.name)
            .field("words", &self.words)
            .finish_non_exhaustive()
    }
}

impl PartialEq for CustomParams {
    fn eq(&self, other: &CustomParams) -> bool {
        self.name == other.name && self.words == other.words
    }
}

pub(super) const CUSTOM: KindSpec = KindSpec {
    classes: ClassLayout::Bands,
    filters: Filters::OfQdisc,
    waits: Waits::Otherwise,
    queues: false,
    ..KindSpec::new(Kind::Custom, "custom", "a qdisc of the program that uses this library")
};

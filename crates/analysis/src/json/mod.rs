//! Documents: every value knows its place, and what is wrong is told with it; objects are written indented, lists of
//! figures on one line.

mod at;
mod layout;

pub use at::ReadError;
pub(crate) use at::{At, Read, document, plain_document};
pub(crate) use layout::laid_out;

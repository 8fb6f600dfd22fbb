//! Documents in JSON. Ours are types of `tidegate-measure` and of this crate, read and written by serde; of
//! other programs' documents every value knows its place. Errors name the place either way. Objects are
//! written indented, lists of figures on one line.

mod at;
mod error;
mod layout;
mod typed;

pub(crate) use at::{At, Read, plain_document};
pub use error::DocumentError;
pub(crate) use layout::laid_out;
pub(crate) use typed::{document, required, text};

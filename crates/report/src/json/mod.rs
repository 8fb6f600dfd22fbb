//! A trial as JSON and back: for programs, and for comparing trials later.
//!
//! Member names are those of the structs in [`tidegate_measure::trial`], units included; times are nanoseconds, sizes bytes, rates
//! bits per second. `answers` holds pairs `[sent, took]`, `took` being `null` where none came; `window` is `[began, ended]`.
//! `tidegate_trial` is the form's number and changes when a member changes its meaning or goes away.

mod at;
mod read;
mod write;

pub use at::ReadError;
pub(crate) use at::{At, Read, document, plain_document};
pub(crate) use read::class as read_class;
pub use read::from_json;
pub use write::to_json;
pub(crate) use write::{class as write_class, laid_out};

/// The form's number.
const FORM: u64 = 1;

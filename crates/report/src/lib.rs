#![forbid(unsafe_code)]
//! Results as tables and pictures.
//!
//! A trial ([`tidegate_measure::trial::Trial`]) becomes [`text`] for a terminal and [`json`] for programs
//! (and [`from_json`] back).

mod figures;
mod json;
mod numbers;
mod table;
mod text;

pub use json::{ReadError, from_json, to_json as json};
pub use numbers::{milliseconds, percent, rate, size, span};
pub use table::{Align, Table};
pub use text::text;

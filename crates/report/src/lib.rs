#![forbid(unsafe_code)]
//! Results as tables and pictures.

mod numbers;
mod table;

pub use numbers::{milliseconds, percent, rate, size};
pub use table::{Align, Table};

//! Results beside each other: the same cases, figure by figure, and what cannot be compared.

mod apart;
mod json;
mod rows;
mod side;
mod significance;

pub use json::comparison_json;
pub use rows::{Change, Comparing, ComparisonRow};
pub use side::{Side, by};

//! Files of tidegate in TOML: what is wrong with one is reported with its place, the reason, and what to
//! write instead.

mod diagnostic;
mod keys;
mod values;

pub use diagnostic::{Diagnostic, parse};
pub use keys::{Keys, TableValue, in_order};
pub use values::*;

//! A visit to the gym as one page: the front, the comparison, and cases in detail.

mod detail;
mod page;

pub use page::{cells, page};

//! A visit to the gym as one page: the front, the comparison, and cases in detail.

mod detail;
mod page;

pub use detail::case_drawing;
pub use page::{cells, page};

//! Results beside each other, as text and as a page.

mod page;
mod text;

pub use page::comparison_page;
pub use text::comparison_text;

//! What measurements of real links showed, as tables, pages and documents; each from its document alone.

pub mod ping;

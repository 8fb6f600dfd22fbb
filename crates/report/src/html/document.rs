//! A whole document around the content of a page of an experiment, a measurement or a capture.

use super::parts::capital;
use super::sealed;
use crate::chart::{SERIES_STYLE, STYLE};
use maud::{Markup, html};

/// How every page looks.
pub(super) const PAGE_STYLE: &str = include_str!("page.css");
/// What makes tabs and reads out what is under a pointer.
pub(super) const SCRIPT: &str = include_str!("page.js");
/// What pages have besides that show more than a trial.
const OWN_STYLE: &str = include_str!("series.css");

/// A document around the content of a page.
pub(crate) fn document(title: &str, body: Markup) -> String {
    sealed::document(title, &[STYLE, SERIES_STYLE, PAGE_STYLE, OWN_STYLE], SCRIPT, body)
}

/// What a chart shows, at the beginning of its caption.
pub(crate) fn caption(text: &str) -> Markup {
    html! { b { (capital(text)) } }
}

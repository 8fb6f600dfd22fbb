#![forbid(unsafe_code)]
//! Results as tables and pictures.
//!
//! A trial ([`tidegate_measure::trial::Trial`]) becomes [`text`] for a terminal, [`html`] as one page that needs no network,
//! and [`json`] for programs (and [`from_json`] back); [`experiment`] does the same for a scenario that was carried out. [`chart`] draws; its charts stand alone as well, through [`svg`].
//! [`watch`] shows what devices do whose policy is at work.

pub mod chart;
pub mod experiment;
mod figures;
mod html;
mod json;
pub mod measuring;
pub mod replayed;
mod table;
mod text;
pub mod watch;

pub use chart::alone as svg;
pub use html::{page as html, picture};
pub use json::{ReadError, from_json, to_json as json};
pub use table::{Align, Table};
pub use text::text;
pub use tidegate_measure::numbers::{milliseconds, percent, rate, size, span};

use tidegate_measure::numbers;

#![forbid(unsafe_code)]
//! Results as tables and pictures.
//!
//! A trial ([`tidegate_measure::trial::Trial`]) becomes [`text`] for a terminal and [`html`] as one page that
//! needs no network; [`experiment`] does the same for a scenario that was carried out. [`chart`] draws; its
//! charts are files of their own as well, through [`svg`]. The figures, and documents for programs, are
//! `tidegate_analysis`'s.
//!
//! Pictures as PNG and PDF need the feature `png`, which is on by default: it brings `resvg` and `svg2pdf`,
//! half of all dependencies.

pub mod chart;
pub mod experiment;
pub mod gym;
mod html;
pub mod measuring;
pub mod replayed;
mod spark;
mod sweep;
mod table;
mod text;
pub mod watch;

pub use chart::alone as svg;
pub use html::{page as html, picture};
pub use sweep::{BadPlot, sweep_drawing};
pub use table::{Align, Table, set_columns, width};
pub use text::text;
pub use tidegate_measure::numbers::{format_duration, milliseconds, percent, rate, size};

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

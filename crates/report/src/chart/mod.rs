//! Charts as SVG.
//!
//! A chart is made of figures and gives a [`Drawing`], which goes into a page ([`Drawing::inline`]) or a file
//! of its own ([`Drawing::alone`]). In a page a plot is as wide as its box while its text keeps its size: an
//! outer `svg`, its margins being padding, holds text and grid in percent and pixels, an inner one the marks,
//! stretched from a width of [`WIDE`] units. Colours are variables of the style sheet in `style.css`, light
//! and dark.

mod axis;
mod cases;
mod cdf;
mod compact;
mod curves;
mod drawing;
mod file;
mod labels;
mod lines;
mod look;
mod network;
mod packets;
mod panel;
#[cfg(feature = "png")]
mod pdf_order;
mod pingexp;
mod plot;
mod png;
mod ranges;
mod scale;
mod sheet;
mod stack;
mod steps;
mod thin;
mod time_series;
mod tree;

pub use axis::{Axis, WIDE_RANGE};
pub use cases::{Group, Mark, cases, cases_rates, cases_spans};
pub use cdf::{Sample, cdf};
pub use curves::{PlotCurve, curves};
pub use drawing::{COLOURS, Drawing, Margin, OTHERS, SERIES_STYLE, STYLE, WIDE, alone, escape};
pub use file::{Theme, column, file};
pub use lines::{ChartLine, lines};
pub use look::{LOOKS, Look};
pub use network::{NetworkLink, NetworkNode, network};
pub use packets::{PacketSpan, SpanEnd, packets};
pub use pingexp::{PingRow, pingexp};
pub use plot::Reference;
pub use png::{PngError, pdf, png};
pub use ranges::{Range, ranges};
pub use scale::Scale;
pub use sheet::{Cell, sheet};
pub use stack::{Band, stack};
pub use steps::{Steps, steps};
pub use time_series::{ChartSeries, Moment, SeriesStyle, TimeSeriesChart, time_series};
pub use tree::{Legend, TreeBox, TreeEdge, forest, tree};

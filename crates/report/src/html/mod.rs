//! A trial as one page: everything in one file, nothing from the network, readable without scripts.
//!
//! The page is text first: each chart is a figure with its text alternative and a table of its figures; a
//! small script makes tabs of the loads and reads out what is under the pointer, from those tables.

mod capacity;
pub(crate) mod chain;
mod classes;
mod csv;
pub(crate) mod document;
mod head;
mod latency;
mod palette;
pub(crate) mod parts;
mod policy;
mod queues;
mod sealed;
mod tables;
mod tree;

use crate::chart::STYLE;
use document::{PAGE_STYLE, SCRIPT};
use maud::{Markup, html};
use palette::Palette;
use tidegate_analysis::trial::{Pair, every_class, hardest, pairs};
use tidegate_measure::trial::TrialDocument;

pub use latency::picture;

/// The page of a trial: an HTML document that needs nothing else.
pub fn page(trial: &TrialDocument) -> String {
    let pairs = pairs(trial);
    let palette = Palette::new(trial);
    let content = html! {
        header { (head::head(trial, &pairs)) }
        main {
            (head::overview(&pairs))
            (loads(trial, &pairs, &palette))
            (policy::section(trial, &pairs, &palette))
            (tables::section(trial, &pairs))
            (policy::simulated(trial))
            (head::again(trial))
        }
    };
    sealed::document(&trial.script, &[STYLE, PAGE_STYLE], SCRIPT, content)
}

/// A panel for each load, and the links that become tabs.
fn loads(trial: &TrialDocument, pairs: &[Pair<'_>], palette: &Palette) -> Markup {
    let first = hardest(pairs).map_or("", |pair| pair.load());
    let every = every_class(trial);
    html! {
        @if pairs.len() + usize::from(every.is_some()) > 1 {
            nav.tabs data-tabs aria-label="Load" {
                @for (n, pair) in pairs.iter().enumerate() {
                    a href={ "#load-" (n) } data-first[pair.load() == first] { (parts::capital(pair.title())) }
                }
                @if every.is_some() {
                    a href={ "#load-" (pairs.len()) } { "Every class" }
                }
            }
        }
        @for (n, pair) in pairs.iter().enumerate() {
            section.panel id={ "load-" (n) } {
                h2 { "Load: " (pair.title()) }
                (latency::section(pair, n))
                (capacity::section(pair))
                (classes::shares(trial, pair, palette))
                (queues::section(pair))
                (classes::cards(trial, pair, palette))
            }
        }
        @if let Some(run) = every {
            @let pair = Pair { without: None, with: Some(run) };
            section.panel id={ "load-" (pairs.len()) } {
                h2 { "Load: " (run.title) }
                (classes::shares(trial, &pair, palette))
                (classes::cards(trial, &pair, palette))
            }
        }
    }
}

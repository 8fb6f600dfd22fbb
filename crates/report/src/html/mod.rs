//! A trial as one page: everything in one file, nothing from the network, readable without scripts.
//!
//! The page is text first: each chart is a figure with its text alternative and a table of its figures; a small script makes tabs of the
//! loads and reads out what is under the pointer, from those tables.

mod classes;
pub(crate) mod document;
mod head;
mod latency;
mod palette;
pub(crate) mod parts;
mod policy;
mod queues;
mod sealed;
mod tables;

use crate::chart::{STYLE, escape};
use document::{PAGE_STYLE, SCRIPT};
use palette::Palette;
use std::fmt::Write as _;
use tidegate_analysis::trial::{Pair, every_class, hardest, pairs};
use tidegate_measure::trial::Trial;

pub use latency::picture;

/// The page of a trial: an HTML document that needs nothing else.
pub fn page(trial: &Trial) -> String {
    let pairs = pairs(trial);
    let palette = Palette::new(trial);
    let mut out = String::new();
    let _ = writeln!(out, "<header>\n{}</header>\n<main>", head::head(trial, &pairs));
    out.push_str(&head::overview(&pairs));
    out.push_str(&loads(trial, &pairs, &palette));
    out.push_str(&policy::section(trial, &pairs, &palette));
    out.push_str(&tables::section(trial, &pairs));
    out.push_str(&policy::simulated(trial));
    out.push_str(&head::again(trial));
    out.push_str("</main>\n");
    sealed::document(&trial.script, &[STYLE, PAGE_STYLE], SCRIPT, &out)
}

/// A panel for each load, and the links that become tabs.
fn loads(trial: &Trial, pairs: &[Pair<'_>], palette: &Palette) -> String {
    let first = hardest(pairs).map_or("", |pair| pair.load());
    let mut links = String::new();
    let mut panels = String::new();
    for (n, pair) in pairs.iter().enumerate() {
        let chosen = if pair.load() == first { " data-first" } else { "" };
        let name = parts::capital(pair.title());
        let _ = write!(links, "<a href=\"#load-{n}\"{chosen}>{}</a>", escape(&name));
        let _ = writeln!(panels, "<section class=\"panel\" id=\"load-{n}\">\n<h2>Load: {}</h2>", escape(pair.title()));
        panels.push_str(&latency::section(pair, n));
        panels.push_str(&classes::shares(trial, pair, palette));
        panels.push_str(&queues::section(pair));
        panels.push_str(&classes::cards(trial, pair, palette));
        panels.push_str("</section>\n");
    }
    if let Some(run) = every_class(trial) {
        let (n, pair) = (pairs.len(), Pair { without: None, with: Some(run) });
        let _ = write!(links, "<a href=\"#load-{n}\">Every class</a>");
        let _ = writeln!(panels, "<section class=\"panel\" id=\"load-{n}\">\n<h2>Load: {}</h2>", escape(&run.title));
        panels.push_str(&classes::shares(trial, &pair, palette));
        panels.push_str(&classes::cards(trial, &pair, palette));
        panels.push_str("</section>\n");
    }
    let many = if pairs.len() + usize::from(every_class(trial).is_some()) > 1 {
        format!("<nav class=\"tabs\" data-tabs aria-label=\"Load\">{links}</nav>\n")
    } else {
        String::new()
    };
    format!("{many}{panels}")
}

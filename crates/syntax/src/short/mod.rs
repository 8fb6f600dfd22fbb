//! The short policy: what most people want of a link, in ten lines, compiled to tc and nft.
//!
//! ```text
//! TOML ─▶ tree (cli) ─▶ read ─▶ Short ─▶ compile ─▶ Line… (tc, ip, nft)
//!                        ▲                  machine ─▶ from_machine ─▶ text
//!                  keys, apps, links, presets (one table each)
//! ```
//!
//! [`keys`] is the one table of what may be said: the reader, `tidegate policy help`, the schema for editors and the documents are made
//! from it.

pub mod apps;
mod asks;
mod back;
mod compile;
mod fireqos;
pub mod help;
pub mod keys;
mod leads;
mod left;
pub mod links;
mod numbers;
pub mod presets;
mod read;
mod schema;
mod sqm;
mod text;
mod tree;
mod writing;

pub use back::{Conversion, Counterpart, Misfit, Rules, from_machine};
pub use compile::{Compiled, Line, compile};
pub use fireqos::read_fireqos;
pub use left::{filter_text, rule_text};
pub use read::{Class, Fair, Link, Network, PortEnd, Ports, Queue, Rank, Said, Share, Short, read};
pub use schema::schema;
pub use sqm::{Imported, read_iface_conf, read_uci};
pub use tree::{Entry, Node, Value};

pub use crate::nft::Span;

/// Something in a short policy that is wrong, or that its writer should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub span: Span,
    /// What, in a sentence without its full stop.
    pub what: String,
    /// What to write instead.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(span: Span, what: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { span, what: what.into(), remedy: remedy.into() }
    }

    /// In the form of a compiler's complaints: the place, the text, a mark beneath, the remedy.
    pub fn tell(&self, file: &str, text: &str) -> String {
        let Span { line, from, to } = self.span;
        let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or("");
        let gap = " ".repeat(line.to_string().len());
        let before: String =
            shown.chars().take(from.saturating_sub(1)).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let mark = "^".repeat((to + 1).saturating_sub(from).max(1));
        let (what, remedy) = (&self.what, &self.remedy);
        format!("{file}:{line}:{from}: {what}\n  {line} | {shown}\n  {gap} | {before}{mark}\n  remedy: {remedy}\n")
    }
}

/// Words as a person would list them.
pub(crate) fn listed<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

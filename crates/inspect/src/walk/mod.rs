//! All packets at once, as sets, through the machine: netfilter's tables, filters, and trees of qdiscs.

pub(crate) mod list;
mod rules;
mod state;
pub(crate) mod tree;
pub(crate) mod ways;

pub(crate) use rules::{RuleKey, RuleSeen, fits};
pub(crate) use state::Parts;

//! All packets at once, as sets, through the machine: netfilter's tables, filters, and trees of qdiscs.

pub(crate) mod list;
pub(crate) mod outcome;
mod rules;
mod state;
pub(crate) mod tree;
mod u32;
pub(crate) mod ways;

pub(crate) use rules::{RuleKey, RuleSeen, fits};
pub(crate) use state::Parts;

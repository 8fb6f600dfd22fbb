//! nft, as far as traffic control needs it: tables, chains and the rules that set marks, priorities and DS
//! fields.
//!
//! [`parse`] reads a text of commands, as `nft -f` takes it or as the words of a command line joined by
//! blanks. Each command keeps the places of its parts, so that the kernel's refusals are reported in nft's
//! form: place, text, and a mark beneath.

mod commands;
mod cursor;
mod lex;
mod marks;
mod names;
mod print;
mod rule;
mod unknown;
mod values;
mod wrong;

pub use commands::{Ask, Command, Listing, Scope, parse};
pub use lex::Span;
pub use names::dscp_number;
pub use print::{
    ChainListing, Style, TableListing, print_ops, print_parts, print_rule, print_table, print_tables,
};
pub use wrong::complaint;

pub(crate) use values::mark_blocks;

/// The version whose words and formats are followed.
pub const VERSION: &str = "nftables v1.0.6 (Lester Gooch #5)";

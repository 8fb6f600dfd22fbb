//! The short policy: what most people want of a link, in ten lines, compiled to tc and nft.
//!
//! ```text
//! TOML ─▶ tree (cli) ─▶ read ─▶ Short ─▶ compile ─▶ Line… (tc, ip, nft)
//!                        ▲                  machine ─▶ from_machine ─▶ text
//!                  keys, apps, links, presets (one table each)
//! ```
//!
//! [`keys`] is the one table of the keys: the reader, `tidegate policy help`, the schema for editors and the
//! documents are made from it.

pub mod apps;
mod back;
mod class_match;
mod compile;
mod direction;
mod feeds;
mod fireqos;
mod found;
pub mod help;
pub mod keys;
mod leads;
mod left;
pub mod links;
mod machine;
mod numbers;
mod policy;
pub mod presets;
mod problem;
mod read;
mod schema;
mod sqm;
mod text;
mod tree;
mod variables;
mod writing;

pub use back::from_machine;
pub use class_match::acknowledgements;
pub use compile::CONTROL_NAME;
pub use compile::{Compiled, CompiledCommand, compile};
pub use direction::leads_to_lan;
pub use fireqos::read_fireqos;
pub use found::{Conversion, Counterpart, Misfit, Rules};
pub use left::{filter_text, rule_text};
pub use policy::{
    Class, Fair, LinkOverhead, Network, PortEnd, Ports, Queue, Rank, Share, Short, Spanned, TreeKind,
    TreeReason,
};
pub use problem::Problem;
pub use read::read;
pub use schema::schema;
pub use sqm::{Imported, read_iface_conf, read_uci};
pub use tree::{Entry, SpannedValue, TomlValue};

pub use crate::nft::Span;

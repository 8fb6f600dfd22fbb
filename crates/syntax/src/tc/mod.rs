//! tc: its command line into operations, dumps into its words.

mod action;
mod actions;
mod build;
mod chain;
mod command;
mod command_line;
mod conditions;
mod early;
mod ematch;
mod filter;
mod get;
mod help;
mod kind;
mod listing;
mod options;
mod prefix;
mod protocols;
mod read;
mod refuse;
mod show;
mod show_class;
mod show_filter;
mod show_qdisc;
mod size_table;
mod spelling;
mod words;

pub use action::show_actions;
pub use chain::show_chains;
pub use command::no_device_name;
pub use command_line::{
    GetFilter, Object, ShowActions, ShowChains, ShowFlags, ShowWhat, TcCommand, TcCommandLine, VERSION,
};
pub use conditions::{Joined, conditions};
pub use get::find_filter;
pub use help::help_kind;
pub use listing::{
    FilterHead, Listed, ListedObject, ListingDifference, ListingHeading, NotListed, commands_of_listing,
    compare, is_listing, listing_heading, number_tables, object_of_members, objects_of_listing, read_listing,
    without_classes,
};
pub(crate) use prefix::{dotted, parse_masked4, parse_prefix6};
pub use read::{parse, parse_line};
pub use refuse::{action_not_found, refusal_lines, refusal_text};
pub use show_class::show_classes;
pub use show_filter::{show_filters, show_filters_brief};
pub use show_qdisc::show_qdiscs;
pub use spelling::ListedValue;

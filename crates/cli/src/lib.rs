#![forbid(unsafe_code)]
//! What the `tidegate` command is made of.

// First: its macros take the place of `println!` and its like in all that follows.
#[macro_use]
pub mod output;

pub mod autorate;
pub mod bundle;
pub mod check;
pub mod command_line;
pub mod compare;
pub mod daemon;
pub mod exit;
pub mod expect;
#[cfg(feature = "experiments")]
mod experiments;
pub mod explain;
#[doc(hidden)]
pub mod fuzzing;
pub mod graph;
pub mod gym;
pub mod import;
mod input;
mod kernel_options;
mod left_out;
pub mod live;
#[cfg(feature = "manual")]
pub mod manual;
pub mod measuring;
pub mod outputs;
mod pcap_file;
pub mod policy;
pub mod replay;
pub mod run;
mod script_options;
pub mod sim;
pub mod sweep;
pub mod trial;
pub mod tune;
mod values;
pub mod watch;
mod words;
mod wrapping;

pub use values::is_negative;

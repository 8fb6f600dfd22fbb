#![forbid(unsafe_code)]
//! What the `tidegate` command is made of.

pub mod capture;
pub mod check;
pub mod compare;
mod courses;
pub mod daemon;
mod dissect;
mod errands;
pub mod expect;
pub mod explain;
pub mod faces;
#[doc(hidden)]
pub mod fuzzing;
pub mod graph;
pub mod import;
pub mod intake;
pub mod live;
pub mod measuring;
mod pcapng;
pub mod policy;
mod rebind;
pub mod replay;
pub mod run;
mod session;
pub mod sim;
mod tables;
pub mod trial;
mod values;
pub mod watch;

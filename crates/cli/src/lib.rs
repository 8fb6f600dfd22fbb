#![forbid(unsafe_code)]
//! What the `tidegate` command is made of.

pub mod capture;
pub mod check;
mod dissect;
pub mod expect;
pub mod explain;
pub mod faces;
pub mod graph;
pub mod import;
pub mod intake;
pub mod policy;
pub mod replay;
pub mod run;
pub mod trial;
mod values;

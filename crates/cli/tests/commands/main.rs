//! The commands' output and files: no clock and no device of this machine is read. One executable, so that it
//! is linked once; `cargo test -p tidegate --test commands check::` runs one file's tests.

#[path = "../common/mod.rs"]
mod common;

mod article;
mod bundle;
mod captured;
mod chapters;
mod check;
mod check_lines;
mod check_refused;
mod compare;
mod dialect;
mod docs;
mod documents;
mod endings;
mod exits;
mod failures;
mod folds;
mod gallery;
mod grammar;
mod gym;
mod import;
mod kernel;
mod metamorphic;
mod namespaces;
mod nft;
mod outputs;
mod places;
mod policy;
mod predicted;
mod replay;
mod run;
mod scenarios;
mod scores;
mod sessions;
mod shims;
mod sim;
mod sweep;
mod trial;
mod tune;
mod understand;
mod verdicts;
mod wizard;

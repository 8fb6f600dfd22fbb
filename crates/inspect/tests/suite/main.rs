//! All of this crate's integration tests in one executable, so that it is linked once.

#[path = "../common/mod.rs"]
mod common;

mod claims;
mod classification;
mod explain;
mod hostile;
mod missed;
mod probe;
mod published;
mod reach;
mod rules;
mod said;
mod sentences;
mod served;
mod uses;
mod waits;

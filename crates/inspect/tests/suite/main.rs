//! All of this crate's integration tests in one executable, so that it is linked once.

#[path = "../common/mod.rs"]
mod common;

mod advice;
mod beside;
mod claims;
mod classification;
mod explain;
mod findings;
mod followed;
mod hostile;
mod lengths;
mod makers;
mod missed;
mod overtaken;
mod probe;
mod published;
mod reach;
mod rounds;
mod rules;
mod sentences;
mod served;
mod shares;
mod strangers;
mod uses;
mod waits;

//! Conditions: a list in which a parenthesis is a reference to where its inside begins.

mod numbers;
mod sent;
mod told;

pub(super) use sent::encode;
pub(super) use told::decode;

//! Conditions: a list in which a parenthesis is a reference to where its inside begins.

mod decode;
mod encode;
mod numbers;

pub(super) use decode::decode;
pub(super) use encode::encode;

//! nftables over netlink: tables of our own, in one batch that the kernel takes as a whole or not at all.
//!
//! [`Batch`] gathers messages, [`Expressions`] are what a rule is made of, and [`ruleset`] makes both of
//! netfilter's rules as the model has them. Nothing here names a table that is not ours: a batch makes its
//! table again, so what others set is neither read nor touched.

mod batch;
mod expression;
mod ruleset;
mod sets;
mod words;

pub use batch::{Batch, TABLE_NAME, TABLE_USERDATA, comment, rules_question, tables_question};
pub use expression::{Expressions, NftCmp, NftCt, NftHeader, NftMeta, NftQueue, NftVerdict, Payload};
pub use ruleset::{UnsupportedRule, own_ruleset, ruleset};
pub use sets::Member;

//! All of this crate's integration tests in one executable, so that it is linked once.

mod answers;
mod filters_page;
mod iptables;
mod listings;
mod mangled;
mod nft;
mod restore;
mod rules;

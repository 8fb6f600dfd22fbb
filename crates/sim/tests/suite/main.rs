//! All of this crate's integration tests in one executable, so that it is linked once.

#[path = "../common/mod.rs"]
mod common;

mod dumbbell;
mod home;
mod l4s;
mod late;
mod links;
mod linux_tcp;
mod observe;
mod path;
mod queueing;
mod redirect;
mod tcp_models;
mod tcp_responses;
mod transactions;
mod world;

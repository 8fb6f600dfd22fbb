//! What real hosts do: transfers, pings, datagrams, what people wait for, and programs. Each is a few threads
//! in the hosts' namespaces, with real sockets; what they saw is kept here and read while they go on.

mod clock;
mod datagrams;
mod door;
pub(crate) mod doors;
mod errand;
mod ping;
mod program;
mod transfer;

pub use clock::Clock;
pub use datagrams::{Datagrams, DatagramsPlan, Pace};
pub use errand::{Errand, ErrandPlan, Go};
pub use ping::{Ping, PingPlan};
pub use program::{Fate, Program, ProgramPlan};
pub use transfer::{Flow, Transfer, TransferPlan};

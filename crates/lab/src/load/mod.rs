//! What real hosts do: transfers, pings, datagrams, what people wait for, and programs. Each is a few threads
//! in the hosts' namespaces, with real sockets; what they saw is kept here and read while they continue.

mod clock;
mod datagrams;
mod listener;
pub(crate) mod listeners;
mod ping;
mod program;
mod transaction;
mod transfer;

pub use clock::LoadClock;
pub use datagrams::{DatagramLoad, DatagramsPlan, Pace};
pub use ping::{PingLoad, PingPlan};
pub use program::{ProgramLoad, ProgramOutcome, ProgramPlan};
pub use transaction::{TransactionLoad, TransactionPlan, TransactionRecord};
pub use transfer::{TransferFlow, TransferLoad, TransferPlan};

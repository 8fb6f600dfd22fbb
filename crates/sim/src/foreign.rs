//! Packets from outside: of real hosts at the edge of the network. They are injected, cross it like all
//! others, and are handed out.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use tidegate_packet::{Head, Pkt, Time};

/// What is known about the packets of others.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// Those that have come to the end of their way.
    pub(crate) arrived: VecDeque<Landed>,
    /// Copies that machines made of them.
    pub(crate) copies: Vec<(usize, usize)>,
}

/// One that waits to be given out.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) pkt: Option<Pkt>,
    pub(crate) at: Time,
    pub(crate) owner: u32,
}

impl Drop for Landed {
    /// It ends with its network.
    fn drop(&mut self) {
        core::mem::forget(self.pkt.take());
    }
}

/// A packet that has crossed the network.
#[derive(Debug)]
pub struct Arrived<'n> {
    /// Its slot, for tables kept beside the network: free again when this is gone.
    pub slot: usize,
    /// When it arrived.
    pub at: Time,
    /// What it was put in with.
    pub owner: u32,
    /// Its header bytes as they are now, but for the DS field.
    pub head: &'n Head,
    /// Its DS field, congestion marks included.
    pub dsfield: u8,
}

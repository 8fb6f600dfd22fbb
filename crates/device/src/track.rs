//! Which of the caller's packets are in the device, each with its copies.

use crate::packet::{DropCause, DroppedPacket};
use std::collections::VecDeque;
use tidegate_packet::{Handle, Time};

/// A packet of the caller in the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracked {
    /// The caller's number.
    pub(crate) id: u64,
    /// When it was offered.
    pub(crate) offered: Time,
    /// Its ECN field then.
    pub(crate) ecn: u8,
    /// It and its copies whose end was not reported; 0: the place is free.
    parts: u32,
}

/// A drop that the caller has not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnreadDrop {
    /// The packet's number in the pool.
    pub(crate) ident: u32,
    pub(crate) dropped: Time,
    pub(crate) length: u32,
    pub(crate) cause: DropCause,
    pub(crate) qdisc: Handle,
}

/// The caller's packets by the numbers that the pool carries for them, and drops that were not read yet.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    packets: Vec<Tracked>,
    free: Vec<u32>,
    drops: VecDeque<UnreadDrop>,
}

impl Tracker {
    /// Takes a packet in; its number in the pool.
    pub(crate) fn begin(&mut self, id: u64, offered: Time, ecn: u8) -> u32 {
        let packet = Tracked { id, offered, ecn, parts: 1 };
        match self.free.pop() {
            Some(ident) => {
                self.packets[ident as usize] = packet;
                ident
            }
            None => {
                self.packets.push(packet);
                self.packets.len() as u32 - 1
            }
        }
    }

    /// So many copies of a packet were made.
    pub(crate) fn copied(&mut self, ident: u32, copies: u32) {
        if let Some(packet) = self.packets.get_mut(ident as usize) {
            packet.parts += copies;
        }
    }

    /// The end of one part of a packet is reported: the packet, and whether this was its last part.
    pub(crate) fn end(&mut self, ident: u32) -> Option<(Tracked, bool)> {
        let packet = self.packets.get_mut(ident as usize).filter(|packet| packet.parts > 0)?;
        packet.parts -= 1;
        let last = packet.parts == 0;
        if last {
            self.free.push(ident);
        }
        Some((*packet, last))
    }

    /// One part of a packet was dropped. It ends when that is read, so that the report that comes last is
    /// marked as the last, whichever is read first.
    pub(crate) fn drop(&mut self, drop: UnreadDrop) {
        self.drops.push_back(drop);
    }

    /// Drops that were not read.
    pub(crate) fn unread(&self) -> usize {
        self.drops.len()
    }

    /// The oldest drop that was not read.
    pub(crate) fn next_drop(&mut self) -> Option<DroppedPacket> {
        let UnreadDrop { ident, dropped, length, cause, qdisc } = self.drops.pop_front()?;
        let (Tracked { id, offered, .. }, last) = self.end(ident)?;
        Some(DroppedPacket { id, last, offered, dropped, length, cause, qdisc })
    }
}

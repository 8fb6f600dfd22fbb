//! Foreign packets that cross a network.

use super::Net;
use crate::foreign::{Arrived, Landed};
use crate::machine::{Forwarder, OfferResult};
use crate::transport_meta::{PathId, Role, TransportMeta};
use tidegate_packet::{Head, Meta, Pkt, Time};

impl<M: Forwarder> Net<M> {
    /// Puts a packet on its way now: the front of an IP packet of `len` bytes. Returns its slot; `None` when
    /// there is no space. `owner` comes out with it.
    ///
    /// [`Net::run`] must have been called for the present time.
    pub fn inject(&mut self, head: Head, len: u32, path: PathId, owner: u32) -> Option<usize> {
        let mut meta = Meta::of(&head, len + Head::ETHERNET as u32);
        meta.watched = true;
        let Some(pkt) = self.pool.insert(meta, head) else {
            self.overflow += 1;
            return None;
        };
        let slot = pkt.slot();
        let transport =
            TransportMeta { role: Role::Foreign, owner, sent: self.now, ..TransportMeta::default() };
        let (OfferResult::Queued | OfferResult::Congested | OfferResult::Dropped) =
            self.launch(pkt, transport, path);
        Some(slot)
    }

    /// When the network has something to do next, if nothing is injected before.
    pub fn due(&mut self) -> Option<Time> {
        self.events.due()
    }

    /// The copies made of foreign packets since the last call, each with the slot of its original. Call it
    /// before anything is put in again, as slots are reused then.
    pub fn take_copies(&mut self) -> impl Iterator<Item = (usize, usize)> {
        self.foreign.copies.drain(..)
    }

    /// Gives the next packet that has come to the end of its way to `f`; false when there is none.
    pub fn take_arrived(&mut self, f: impl FnOnce(Arrived<'_>)) -> bool {
        let Some(mut landed) = self.foreign.arrived.pop_front() else { return false };
        if let Some(pkt) = landed.pkt.take() {
            let dsfield = self.pool.meta(&pkt).dsfield;
            let head = self.pool.head(&pkt);
            f(Arrived { slot: pkt.slot(), at: landed.at, owner: landed.owner, head, dsfield });
            self.discard(pkt);
        }
        true
    }

    pub(crate) fn foreign_deliver(&mut self, pkt: Pkt, meta: TransportMeta) {
        self.foreign.arrived.push_back(Landed { pkt: Some(pkt), at: self.now, owner: meta.owner });
    }
}

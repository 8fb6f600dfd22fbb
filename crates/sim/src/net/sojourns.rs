//! Stays on links are observed in a network.

use super::Net;
use crate::link::{LinkId, LinkQueue};
use crate::machine::{DropRecord, Forwarder, Port};
use crate::observe::{Open, SojournEnd, SojournRecord};
use crate::transport_meta::Role;
use tidegate_packet::{Pkt, Time};

impl<M: Forwarder> Net<M> {
    /// Records sojourns at this link from now on; [`Net::take_sojourns`] must then be called regularly.
    pub fn observe(&mut self, link: LinkId) {
        self.pool.track_queue_locations();
        let at = link.0 as usize;
        let waiting = self.links[at].spec.waiting;
        let observed = self.observed.get_or_insert_default();
        if observed.links.len() <= at {
            observed.links.resize(at + 1, false);
        }
        observed.links[at] = true;
        if let LinkQueue::Port { port, .. } = waiting {
            observed.ports.push(port);
        }
    }

    /// The link before which packets wait for a port of the machine, if there is one.
    pub fn link_of_port(&self, port: Port) -> Option<LinkId> {
        let is_its = |waiting: LinkQueue| matches!(waiting, LinkQueue::Port { port: of, .. } if of == port);
        self.links.iter().position(|link| is_its(link.spec.waiting)).map(|at| LinkId(at as u32))
    }

    /// The sojourns that have ended since the last call, at each link in their order.
    pub fn take_sojourns(&mut self) -> impl Iterator<Item = SojournRecord> {
        self.observed.iter_mut().flat_map(|observed| observed.done.drain(..))
    }

    /// A packet comes to wait.
    pub(crate) fn begin_sojourn(&mut self, pkt: &Pkt) {
        let Some(observed) = &mut self.observed else { return };
        self.pool.clear_queue_location(pkt);
        let slot = pkt.slot();
        if observed.open.len() <= slot {
            observed.open.resize(slot + 1, None);
        }
        observed.open[slot] = Some(Open { came: self.now, came_with: self.pool.meta(pkt).dsfield });
    }

    /// A copy waits where its original does.
    pub(crate) fn copy_sojourn(&mut self, copy: usize) {
        let (now, pool) = (self.now, &self.pool);
        let Some(observed) = &mut self.observed else { return };
        if observed.open.len() <= copy {
            observed.open.resize(copy + 1, None);
        }
        let dsfield = pool.last_known(copy).map_or(0, |meta| meta.dsfield);
        observed.open[copy] = Some(Open { came: now, came_with: dsfield });
    }

    /// It continues without having waited.
    pub(crate) fn discard_sojourn(&mut self, pkt: &Pkt) {
        if let Some(open) = self.observed.as_mut().and_then(|observed| observed.open.get_mut(pkt.slot())) {
            *open = None;
        }
    }

    /// The stay of the packet in a slot ends at a link.
    pub(crate) fn end_sojourn(&mut self, slot: usize, at: usize, ended: Time, outcome: SojournEnd) {
        let Some(observed) = &mut self.observed else { return };
        let Some(Open { came, came_with }) = observed.open.get_mut(slot).and_then(Option::take) else {
            return;
        };
        let known = self.pool.last_known(slot).zip(self.pool.last_head(slot));
        let Some((meta, head)) = known.filter(|_| observed.links.get(at) == Some(&true)) else { return };
        let cargo = self.transport.get(slot).copied().unwrap_or_default();
        observed.done.push(SojournRecord {
            link: LinkId(at as u32),
            came,
            ended,
            end: outcome,
            queue: self.pool.queue_location(slot),
            head: head.clone(),
            len: meta.frame_len,
            came_with,
            dsfield: meta.dsfield,
            owner: (cargo.role == Role::Foreign).then_some(cargo.owner),
            copy: cargo.copy,
        });
    }

    /// Ends the sojourns of packets that the machine has just dropped.
    pub(crate) fn drop_sojourns(&mut self, at: usize) {
        let Some(observed) = &mut self.observed else { return };
        let mut losses = core::mem::take(&mut observed.losses);
        for port in &observed.ports {
            self.machine.losses(*port, &mut |loss| losses.push(loss));
        }
        for DropRecord { slot, at: qdisc, why } in losses.drain(..) {
            self.end_sojourn(slot, at, self.now, SojournEnd::Dropped(Some((qdisc, why))));
        }
        if let Some(observed) = &mut self.observed {
            observed.losses = losses;
        }
    }
}

//! What packets did at links that somebody observes: when each came to wait there, when it left, and how.

use crate::link::{LinkId, Waiting};
use crate::machine::{Machine, Port};
use crate::net::{Net, Role};
use alloc::vec::Vec;
use tidegate_gateway::Why;
use tidegate_packet::{Handle, Head, Pkt, Stand, Time};

/// A packet's stay before a link, from the moment it came until its transmission began or it was lost.
#[derive(Clone, Debug)]
pub struct Stay {
    /// Where it ended. A packet that filters led from one device to another is told of where it left.
    pub link: LinkId,
    /// When it came.
    pub came: Time,
    /// When its transmission began, or when it was lost.
    pub ended: Time,
    /// How it ended.
    pub fate: Fate,
    /// The qdisc and class it waited in; nothing where no policy governs.
    pub stand: Stand,
    /// Its header bytes in the end, but for the DS field.
    pub head: Head,
    /// The frame's length in the end, bytes.
    pub len: u32,
    /// Its DS field when it came.
    pub came_with: u8,
    /// And in the end.
    pub dsfield: u8,
    /// What it was put in with, if it is somebody else's: see [`Net::inject`].
    pub owner: Option<u32>,
    /// A machine made it of another packet.
    pub copy: bool,
}

/// How a stay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its transmission began.
    Sent,
    /// It was lost: in which qdisc and why; `None` where a full buffer refused it.
    Lost(Option<(Handle, Why)>),
}

/// A packet that a machine lost or led away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its slot.
    pub slot: usize,
    /// The qdisc.
    pub at: Handle,
    /// Why it was lost.
    pub why: Why,
}

/// What is observed.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    links: Vec<bool>,
    /// The machine's ports behind them.
    ports: Vec<Port>,
    /// By slot, those that wait.
    open: Vec<Option<Open>>,
    done: Vec<Stay>,
    losses: Vec<Loss>,
}

/// A stay that goes on.
#[derive(Clone, Copy, Debug)]
struct Open {
    came: Time,
    came_with: u8,
}

impl<M: Machine> Net<M> {
    /// From now on stays before this link are told by [`Net::take_stays`], which must be asked now and then.
    pub fn observe(&mut self, link: LinkId) {
        self.pool.follow_stands();
        let at = link.0 as usize;
        let waiting = self.links[at].spec.waiting;
        let observed = self.observed.get_or_insert_default();
        if observed.links.len() <= at {
            observed.links.resize(at + 1, false);
        }
        observed.links[at] = true;
        if let Waiting::Port { port, .. } = waiting {
            observed.ports.push(port);
        }
    }

    /// The link before which packets wait for a port of the machine, if there is one.
    pub fn link_of_port(&self, port: Port) -> Option<LinkId> {
        let is_its = |waiting: Waiting| matches!(waiting, Waiting::Port { port: of, .. } if of == port);
        self.links.iter().position(|link| is_its(link.spec.waiting)).map(|at| LinkId(at as u32))
    }

    /// The stays that have ended since this was last asked, at each link in their order.
    pub fn take_stays(&mut self) -> impl Iterator<Item = Stay> {
        self.observed.iter_mut().flat_map(|observed| observed.done.drain(..))
    }

    /// A packet comes to wait.
    pub(crate) fn stay_begins(&mut self, pkt: &Pkt) {
        let Some(observed) = &mut self.observed else { return };
        self.pool.forget_stand(pkt);
        let slot = pkt.slot();
        if observed.open.len() <= slot {
            observed.open.resize(slot + 1, None);
        }
        observed.open[slot] = Some(Open { came: self.now, came_with: self.pool.meta(pkt).dsfield });
    }

    /// A copy waits where its original does.
    pub(crate) fn copy_stays(&mut self, copy: usize) {
        let (now, pool) = (self.now, &self.pool);
        let Some(observed) = &mut self.observed else { return };
        if observed.open.len() <= copy {
            observed.open.resize(copy + 1, None);
        }
        let dsfield = pool.last_known(copy).map_or(0, |meta| meta.dsfield);
        observed.open[copy] = Some(Open { came: now, came_with: dsfield });
    }

    /// It goes on without having waited.
    pub(crate) fn stay_is_none(&mut self, pkt: &Pkt) {
        if let Some(open) = self.observed.as_mut().and_then(|observed| observed.open.get_mut(pkt.slot())) {
            *open = None;
        }
    }

    /// The stay of the packet in a slot ends at a link.
    pub(crate) fn stay_ends(&mut self, slot: usize, at: usize, ended: Time, fate: Fate) {
        let Some(observed) = &mut self.observed else { return };
        let Some(Open { came, came_with }) = observed.open.get_mut(slot).and_then(Option::take) else { return };
        let known = self.pool.last_known(slot).zip(self.pool.last_head(slot));
        let Some((meta, head)) = known.filter(|_| observed.links.get(at) == Some(&true)) else { return };
        let cargo = self.cargo.get(slot).copied().unwrap_or_default();
        observed.done.push(Stay {
            link: LinkId(at as u32),
            came,
            ended,
            fate,
            stand: self.pool.stand(slot),
            head: head.clone(),
            len: meta.frame_len,
            came_with,
            dsfield: meta.dsfield,
            owner: (cargo.role == Role::Foreign).then_some(cargo.owner),
            copy: cargo.copy,
        });
    }

    /// Those that the machine has just lost stay no longer.
    pub(crate) fn stays_are_lost(&mut self, at: usize) {
        let Some(observed) = &mut self.observed else { return };
        let mut losses = core::mem::take(&mut observed.losses);
        for port in &observed.ports {
            self.machine.losses(*port, &mut |loss| losses.push(loss));
        }
        for Loss { slot, at: qdisc, why } in losses.drain(..) {
            self.stay_ends(slot, at, self.now, Fate::Lost(Some((qdisc, why))));
        }
        if let Some(observed) = &mut self.observed {
            observed.losses = losses;
        }
    }
}

//! The machine's actions.

use super::live::{self, ActionContext, Live};
use super::police::Policers;
use crate::conntrack::Conntrack;
use crate::query::{ActionInput, Done, FilterRandom, Outgoing, Redirect};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::{Pkt, Pool, Time};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::spec::action_kind;
use tidegate_policy::{Act, Action, ActionId, ActionsOp, Control, Errno, Only, TcError, Verb};

/// The actions of a machine, with the filters that have them.
#[derive(Debug, Default)]
pub struct Actions {
    slots: Vec<Option<Live>>,
    free: Vec<u32>,
    policers: Policers,
    /// Their places, by kind and number.
    known: BTreeMap<(&'static str, u32), u32>,
    /// Filters may have gone since references were last counted, the last of them at this time.
    stale: Option<Time>,
    /// Packets on their way to other devices, in the order in which actions led them there.
    pub(crate) outgoing: Vec<Outgoing>,
    /// Who drives the devices carries on a root that stops because packets are on their way to other devices.
    pub carries_on: bool,
    /// A root has stopped for that.
    paused: bool,
    /// At so many devices filters had the packet arrive before.
    pub led_before: u32,
    /// The devices that are down: actions lead nothing to them.
    down: Vec<u32>,
    /// The machine's connections, while they are lent ([`Actions::swap_connections`]).
    pub(crate) connections: Conntrack,
    /// Some action requests connections, or did.
    uses_conntrack: bool,
    /// The kernel was built without zones and labels of connections.
    no_zones: bool,
}

impl Actions {
    /// How often one packet may be redirected to another device in one go.
    pub const MAX_REDIRECTS: u32 = live::MAX_REDIRECTS;

    /// Has a packet go through the action in a place.
    #[inline]
    pub(crate) fn run(
        &mut self,
        place: u32,
        pool: &mut Pool,
        pkt: &Pkt,
        meter: ActionInput,
        random: &mut FilterRandom<'_>,
    ) -> Done {
        let Actions { slots, outgoing, led_before, down, connections, policers, .. } = self;
        match slots.get_mut(place as usize) {
            Some(Some(live)) => {
                let backends = &mut ActionContext {
                    place,
                    outgoing,
                    redirects_before: *led_before,
                    down,
                    connections,
                    policers,
                };
                live.run(pool, pkt, meter, random, backends)
            }
            _ => unreachable!("a filter holds an action that is gone"),
        }
    }

    /// Has the machine no actions?
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The device to which an action redirected a packet refused it, or dropped another one of its flow for
    /// it.
    pub fn note_refused(&mut self, place: u32) {
        if let Some(Some(live)) = self.slots.get_mut(place as usize) {
            live.note_refused();
        }
    }

    /// Connection tracking is needed.
    pub(crate) fn need_connections(&mut self) {
        self.uses_conntrack = true;
    }

    /// Does any action ask for connections, so that they must be lent?
    #[inline]
    pub fn needs_connections(&self) -> bool {
        self.uses_conntrack
    }

    /// Lends the machine's connections to the actions, or takes them back: they get what is given, and what
    /// they had is in its place.
    pub fn swap_connections(&mut self, connections: &mut Conntrack) {
        core::mem::swap(&mut self.connections, connections);
    }

    /// A filter takes hold of these; those that are not there are made, or where one cannot be, none.
    pub(crate) fn bind(&mut self, actions: &[Action], now: Time) -> Result<Vec<u32>, TcError> {
        let mut places = Vec::with_capacity(actions.len());
        for action in actions {
            match self.find_or_make(action, now) {
                Ok(place) => places.push(place),
                Err(error) => {
                    self.unbind(&places);
                    return Err(error);
                }
            }
        }
        Ok(places)
    }

    /// Has actions refuse zones and labels of connections, as a kernel that was built without them does.
    pub fn without_zones(&mut self) {
        self.no_zones = true;
    }

    /// The action as this kernel keeps it: ct is always about a zone where there are any.
    fn completed(&self, action: &Action) -> Result<Action, TcError> {
        let mut action = action.clone();
        if let Act::Ct(ct) = &mut action.act {
            if self.no_zones && ct.zone.is_some() {
                return Err(TcError::new(Errno::OpNotSupp, "act_ct: Conntrack zones isn't enabled"));
            }
            if self.no_zones && ct.label.is_some() {
                return Err(TcError::new(Errno::OpNotSupp, "act_ct: Conntrack labels isn't enabled"));
            }
            if !self.no_zones && !ct.clear {
                ct.zone.get_or_insert(0);
            }
        }
        Ok(action)
    }

    fn find_or_make(&mut self, action: &Action, now: Time) -> Result<u32, TcError> {
        let there = self.known.get(&(action.act.kind(), action.index)).copied().filter(|_| action.index != 0);
        if action.only.is_some()
            || there.and_then(|place| self.at(place)).is_some_and(|live| live.action.only.is_some())
        {
            return Err(TcError::new(Errno::Inval, "Mismatch between action and filter offload flags"));
        }
        let place = match there {
            Some(place) => {
                if let Some(live) = self.at_mut(place) {
                    live.take_labels(action);
                }
                place
            }
            None => self.make(action, now)?,
        };
        if let Some(live) = self.at_mut(place) {
            live.binds += 1;
            live.counted_old |= action.old_style;
        }
        Ok(place)
    }

    /// Takes back what a filter took hold of that was not made after all.
    pub(crate) fn unbind(&mut self, places: &[u32]) {
        for place in places {
            let Some(live) = self.at_mut(*place) else { continue };
            live.binds -= 1;
            if live.binds == 0 && !live.kept {
                self.remove(*place);
            }
        }
    }

    fn make(&mut self, action: &Action, now: Time) -> Result<u32, TcError> {
        let kind = action.act.kind();
        let index = if action.index == 0 { self.free_number(kind) } else { action.index };
        let live = Live::new(&Action { index, ..self.completed(action)? }, now)?;
        self.uses_conntrack |= uses_conntrack(&action.act);
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.slots.push(None);
                self.slots.len() as u32 - 1
            }
        };
        self.slots[place as usize] = Some(live);
        self.fill(place, now);
        self.known.insert((kind, index), place);
        Ok(place)
    }

    /// The least number that no action of the kind has.
    fn free_number(&self, kind: &'static str) -> u32 {
        let mut next = 1;
        for ((_, index), _) in self.known.range((kind, 1)..=(kind, u32::MAX)) {
            if *index != next {
                break;
            }
            next += 1;
        }
        next
    }

    /// Fills the buckets of a policing action, by its present parameters.
    fn fill(&mut self, place: u32, now: Time) {
        let Some(Some(live)) = self.slots.get_mut(place as usize) else { return };
        if let Some(old) = live.policer.take() {
            self.policers.remove(old);
        }
        if let Act::Police(police) = &live.action.act {
            live.policer = Some(self.policers.add(police, now));
        }
    }

    fn remove(&mut self, place: u32) {
        if let Some(live) = self.slots[place as usize].take() {
            if let Some(policer) = live.policer {
                self.policers.remove(policer);
            }
            self.known.remove(&(live.action.act.kind(), live.action.index));
            self.free.push(place);
        }
    }

    /// What the action in a place does.
    pub(crate) fn act_at(&self, place: u32) -> Option<&Act> {
        self.at(place).map(|live| &live.action.act)
    }

    fn at(&self, place: u32) -> Option<&Live> {
        self.slots.get(place as usize)?.as_ref()
    }

    fn at_mut(&mut self, place: u32) -> Option<&mut Live> {
        self.slots.get_mut(place as usize)?.as_mut()
    }

    /// Says that filters may have been deleted since then, so that references and binds must be counted again
    /// ([`Actions::must_count`]).
    pub fn filters_may_be_gone(&mut self, now: Time) {
        if !self.is_empty() {
            self.stale = Some(now);
        }
    }

    /// Must references and binds be counted again? The kernel releases what a deleted filter held a little
    /// later (an RCU grace period), so a command at the same instant still finds it: `deferred`.
    pub fn must_count(&self, now: Time, deferred: bool) -> bool {
        self.stale.is_some_and(|gone| !deferred || gone < now)
    }

    /// Counts again: `show` calls what it is given with the places that each filter there is has. Actions
    /// that none has are removed. Filters of shared blocks count too: [`crate::Shared::count`].
    pub fn count(&mut self, show: impl FnOnce(&mut dyn FnMut(&[u32]))) {
        let mut binds = vec![0; self.slots.len()];
        let mut count = |places: &[u32]| places.iter().for_each(|place| binds[*place as usize] += 1);
        show(&mut count);
        for (place, binds) in (0..).zip(binds) {
            let Some(live) = self.at_mut(place) else { continue };
            live.binds = binds;
            if binds == 0 && !live.kept {
                self.remove(place);
            }
        }
        self.stale = None;
    }

    /// Makes actions on their own, changes or deletes them (`tc actions`). What comes back is a warning.
    ///
    /// # Errors
    /// As the kernel refuses; then none is made. Those that were changed or deleted before stay so.
    pub fn apply(&mut self, op: &ActionsOp, now: Time) -> Result<Option<String>, TcError> {
        match op {
            ActionsOp::Set(verb, actions) => self.set(*verb, actions, now),
            ActionsOp::Delete(ids) => self.delete(ids).map(|()| None),
            ActionsOp::Flush(kind) => self.flush(kind),
        }
    }

    fn set(&mut self, verb: Verb, actions: &[Action], now: Time) -> Result<Option<String>, TcError> {
        let mut made = Vec::new();
        for action in actions {
            if let Err(error) = self.set_one(verb, action, &mut made, now) {
                made.iter().for_each(|place| self.remove(*place));
                return Err(error);
            }
        }
        for place in made {
            if let Some(live) = self.at_mut(place) {
                live.kept = true;
            }
        }
        let soft = actions.iter().any(|action| action.only.is_none() && in_software_only(&action.act));
        Ok(soft.then(|| "act_api: Failed to setup tc actions for offload.".into()))
    }

    fn set_one(
        &mut self,
        verb: Verb,
        action: &Action,
        made: &mut Vec<u32>,
        now: Time,
    ) -> Result<(), TcError> {
        if action.only == Some(Only::Card) {
            // No card here takes actions over.
            return Err(TcError::bare(Errno::Inval));
        }
        match self.known.get(&(action.act.kind(), action.index)).copied().filter(|_| action.index != 0) {
            // The number is taken and the action not there yet: the kernel has its caller try again.
            Some(place) if made.contains(&place) => Err(TcError::bare(Errno::Again)),
            Some(_) if verb == Verb::Add => Err(TcError::bare(Errno::Exist)),
            // Chains belong to the qdisc of a filter.
            _ if goes_to_chain(&action.act) => Err(TcError::new(Errno::Inval, "can't goto NULL proto/chain")),
            Some(place) => {
                let action = self.completed(action)?;
                self.at_mut(place).map_or(Ok(()), |live| live.change(&action, now))?;
                self.fill(place, now);
                Ok(())
            }
            None => {
                made.push(self.make(action, now)?);
                Ok(())
            }
        }
    }

    fn find(&self, id: ActionId) -> Result<u32, TcError> {
        if id.index == 0 {
            return Err(TcError::new(Errno::Inval, "Invalid TC action index value"));
        }
        let place = self.known.get(&(id.kind, id.index)).copied();
        place.ok_or(TcError::new(Errno::NoEnt, "TC action with specified index not found"))
    }

    /// All must be there before the first goes.
    fn delete(&mut self, ids: &[ActionId]) -> Result<(), TcError> {
        let places = ids.iter().map(|id| self.find(*id)).collect::<Result<Vec<u32>, TcError>>()?;
        for place in places {
            if self.at(place).is_some_and(|live| live.binds > 0) {
                return Err(TcError::new(Errno::Perm, "Failed to delete TC action"));
            }
            self.remove(place);
        }
        Ok(())
    }

    /// Deletes those of a kind by number, up to the first that a filter has.
    fn flush(&mut self, kind: &str) -> Result<Option<String>, TcError> {
        if action_kind(kind).is_none() {
            return Err(TcError::new(Errno::Inval, "Cannot flush unknown TC action"));
        }
        let places: Vec<u32> =
            self.known.iter().filter(|((known, _), _)| *known == kind).map(|(_, at)| *at).collect();
        for (gone, place) in places.into_iter().enumerate() {
            match self.at(place) {
                Some(live) if live.binds > 0 && gone == 0 => return Err(TcError::bare(Errno::Perm)),
                Some(live) if live.binds > 0 => return Ok(Some("Unable to flush all TC actions.".into())),
                _ => self.remove(place),
            }
        }
        Ok(None)
    }

    /// Those that are requested, by number.
    ///
    /// # Errors
    /// When one is not there.
    pub fn get(&self, ids: &[ActionId], now: Time) -> Result<Vec<ActionDump>, TcError> {
        let places = ids.iter().map(|id| self.find(*id)).collect::<Result<Vec<u32>, TcError>>()?;
        Ok(places.into_iter().filter_map(|place| self.dump_at(place, now)).collect())
    }

    /// Those of a kind, by number.
    pub fn dump(&self, kind: &str, now: Time) -> Vec<ActionDump> {
        let ours = self.known.iter().filter(|((known, _), _)| *known == kind);
        ours.filter_map(|(_, place)| self.dump_at(*place, now)).collect()
    }

    pub(crate) fn dump_at(&self, place: u32, now: Time) -> Option<ActionDump> {
        self.at(place).map(|live| live.dump(now))
    }

    /// A device is gone: no action leads there any more.
    pub fn forget_device(&mut self, gone: u32) {
        for live in self.slots.iter_mut().flatten() {
            if let Act::Mirred(mirred) = &mut live.action.act
                && mirred.device == gone
            {
                mirred.device = Act::NOWHERE;
            }
        }
    }

    /// A device went up or down. At first every one is up.
    pub fn set_device_up(&mut self, device: u32, up: bool) {
        self.down.retain(|known| *known != device);
        if !up {
            self.down.push(device);
        }
    }

    /// Are packets on their way to other devices?
    #[inline]
    pub fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether a root must stop now, so that packets on their way to other devices reach them before it goes
    /// on: then it is polled again after that.
    #[inline]
    pub fn pause(&mut self) -> bool {
        if self.outgoing.is_empty() || !self.carries_on {
            return false;
        }
        self.paused = true;
        true
    }

    /// Whether a root has stopped ([`Actions::pause`]) since this was asked last.
    pub fn take_paused(&mut self) -> bool {
        core::mem::take(&mut self.paused)
    }

    /// Exchanges the packets on their way to other devices, in order, for an empty list: the two lists keep
    /// their memory in turn.
    pub fn swap_outgoing(&mut self, with: &mut Vec<Outgoing>) {
        debug_assert!(with.is_empty(), "packets that were taken before have been sent on");
        core::mem::swap(&mut self.outgoing, with);
    }

    /// A packet was redirected while it moved inside its device's tree, and not when it was offered. (The
    /// list is no longer than the pool, which holds each packet once.)
    #[cold]
    pub fn push_redirected(&mut self, pkt: Pkt, way: Redirect) {
        self.outgoing.push(Outgoing { pkt, way, is_copy: false });
    }

    /// The first packet that was redirected in such a way.
    pub fn take_redirected(&mut self) -> Option<(Pkt, Redirect)> {
        let at = self.outgoing.iter().position(|one| !one.is_copy)?;
        let Outgoing { pkt, way, .. } = self.outgoing.remove(at);
        Some((pkt, way))
    }
}

fn goes_to_chain(act: &Act) -> bool {
    let leads = |control: Control| matches!(control, Control::Goto(_));
    match act {
        // What is done now and then cannot lead there at all, see the check of an action.
        Act::Gact(gact) => leads(gact.control),
        other => other.controls().into_iter().any(leads),
    }
}

fn uses_conntrack(act: &Act) -> bool {
    matches!(act, Act::Connmark(_) | Act::Ctinfo(_) | Act::Ct(_))
}

/// Decisions that the kernel cannot offload: it has no encoding for them when it asks a card whether it would
/// do a policer's work.
fn in_software_only(act: &Act) -> bool {
    let unknown = |control: Control| {
        matches!(control, Control::Reclassify | Control::Trap | Control::Stolen | Control::Number(_))
    };
    match act {
        Act::Police(police) => unknown(police.exceed) || police.conform.is_some_and(unknown),
        _ => false,
    }
}

//! What is written on packets on their way (marks, the DS field, a priority): a [`State`] for each packet.

use crate::sets::bdd::{Map, Set, TooLarge};
use crate::sets::field::Field;
use crate::sets::set::{Rewrite, Space};
use std::collections::BTreeMap;
use tidegate_packet::Handle;

/// `skb->priority`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// This number, or class.
    Is(u32),
    /// What routing made of the DS field as it was then.
    OfDs(Rewrite),
}

impl Priority {
    /// The class it names, if it can.
    pub(crate) fn class(self) -> Handle {
        match self {
            Priority::Is(number) => Handle(number),
            Priority::OfDs(_) => Handle::NONE,
        }
    }
}

/// What was written on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State {
    pub(crate) mark: u32,
    pub(crate) connmark: u32,
    pub(crate) ds: Rewrite,
    pub(crate) priority: Priority,
    /// A rule has switched connection tracking off.
    pub(crate) untracked: bool,
}

impl State {
    /// Nothing yet.
    pub(crate) const BARE: State =
        State { mark: 0, connmark: 0, ds: Rewrite::NONE, priority: Priority::Is(0), untracked: false };
}

/// All states that were met, by number.
#[derive(Debug, Default)]
pub(crate) struct States {
    all: Vec<State>,
    numbers: BTreeMap<State, u32>,
}

impl States {
    pub(crate) fn number(&mut self, state: State) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(state).or_insert(next);
        if number == next {
            self.all.push(state);
        }
        number
    }

    pub(crate) fn get(&self, number: u32) -> State {
        self.all.get(number as usize).copied().unwrap_or(State::BARE)
    }
}

/// Packets on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    pub(crate) set: Set,
    pub(crate) states: Map,
}

/// Sets of packets by the way they come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts(pub(crate) Vec<(usize, Set)>);

impl Parts {
    pub(crate) fn add(&mut self, space: &mut Space, way: usize, set: Set) -> Result<(), TooLarge> {
        if set.is_empty() {
            return Ok(());
        }
        match self.0.iter_mut().find(|(known, _)| *known == way) {
            Some((_, known)) => *known = space.store.or(*known, set)?,
            None => self.0.push((way, set)),
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The set that comes by one way.
    pub(crate) fn by(&self, way: usize) -> Set {
        self.0.iter().find(|(known, _)| *known == way).map_or(Set::NONE, |(_, set)| *set)
    }
}

impl Space {
    /// A set by the rewriting of the DS field.
    pub(crate) fn by_rewrite(
        &mut self,
        states: &States,
        of: Set,
        map: Map,
    ) -> Result<Vec<(Rewrite, Set)>, TooLarge> {
        let same = states.all.iter().all(|state| state.ds == Rewrite::NONE);
        if same {
            return Ok(vec![(Rewrite::NONE, of)]);
        }
        let group = |n: u32| {
            let ds = states.get(n).ds;
            u32::from(ds.keep) << 8 | u32::from(ds.flip)
        };
        let parts = self.store.split(map, of, &group)?;
        let rewrite = |key: u32| Rewrite { keep: (key >> 8) as u8, flip: key as u8 };
        Ok(parts.into_iter().map(|(key, set)| (rewrite(key), set)).collect())
    }

    /// All packets of a set with nothing written on them but the mark that their connection has.
    pub(crate) fn begin(
        &mut self,
        states: &mut States,
        set: Set,
        priority: Priority,
    ) -> Result<Passing, TooLarge> {
        let mut map = Map::constant(states.number(State { priority, ..State::BARE }));
        let connmarks = self.words.connmarks.clone();
        for (at, connmark) in connmarks.into_iter().enumerate() {
            let having = self.is(Field::Connmark, at as u128)?;
            let number = states.number(State { priority, connmark, ..State::BARE });
            map = self.store.alter(map, having, &mut |_| number)?;
        }
        Ok(Passing { set, states: map })
    }
}

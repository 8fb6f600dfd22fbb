//! All packets at once through netfilter's tables: which of them meet and match each rule, and what they carry afterwards.
//!
//! What rules write on a packet (marks, the DS field, a priority) is a [`State`]; a map tells the state of each packet. A rule's
//! conditions on octets are a set; its conditions on what was written are looked up in the map, within that set only.

use crate::bdd::{Map, Set, TooLarge};
use crate::field::{Field, View};
use crate::set::{Rewrite, Space};
use crate::walk_tree::Parts;
use std::collections::BTreeMap;
use tidegate_classify::netfilter::{Chain, Table};
use tidegate_packet::Handle;
use tidegate_policy::netfilter::{Condition, Connmark, Connstate, Match, Rule, Target};

/// How deep chains may call one another.
const DEEPEST_CHAIN: usize = 40;
/// Rules asked in all, over all ways and chains.
const MOST_STEPS: usize = 200_000;

/// `skb->priority`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// This number, or class.
    Is(u32),
    /// What routing made of the DS field as it was then.
    OfDs(Rewrite),
}

/// What was written on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State {
    pub(crate) mark: u32,
    pub(crate) connmark: u32,
    pub(crate) ds: Rewrite,
    pub(crate) priority: Priority,
    /// A rule said that nobody shall look for its connection.
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = &State> {
        self.all.iter()
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

/// Where on its way a packet is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook<'a> {
    /// The built-in chain.
    pub(crate) chain: &'static str,
    /// The device it came in by is known here.
    pub(crate) input: bool,
    /// The device it leaves by; empty before routing.
    pub(crate) output: &'a str,
    /// What translation has changed.
    pub(crate) view: View,
}

/// A rule of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RuleKey {
    pub(crate) ipv6: bool,
    pub(crate) table: String,
    pub(crate) chain: String,
    pub(crate) at: usize,
}

/// What is known of a rule, over all ways.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleSeen {
    /// Packets that came to its chain.
    pub(crate) entered: Parts,
    /// Those of them that are as it asks, marks and connections aside.
    pub(crate) asked: Parts,
    /// Those of them that came to the rule.
    pub(crate) met: Parts,
    /// Those that it matched, marks and all.
    pub(crate) matched: Parts,
    /// Packets whose way through the chain ended at it.
    pub(crate) left: Parts,
}

/// The same of one way.
#[derive(Clone, Copy)]
struct Met {
    asked: Set,
    met: Set,
    matched: Set,
}

/// A walk through the tables.
pub(crate) struct Walk<'a> {
    pub(crate) space: &'a mut Space,
    pub(crate) states: &'a mut States,
    pub(crate) rules: &'a mut BTreeMap<RuleKey, RuleSeen>,
    pub(crate) way: usize,
    pub(crate) steps: usize,
}

/// Packets in a chain.
#[derive(Clone, Copy)]
struct Inside {
    /// Those that came to it.
    entered: Set,
    /// Those that are still in it.
    here: Set,
    /// Those that go on behind the table.
    accepted: Set,
    /// Those that go back to the calling chain.
    returned: Set,
}

impl Walk<'_> {
    /// Sends packets through a table at a hook; those that are lost are missing after it.
    pub(crate) fn table(&mut self, table: &Table, hook: Hook<'_>, passing: Passing) -> Result<Passing, TooLarge> {
        let Some(chain) = table.chains().iter().find(|chain| chain.name == hook.chain) else { return Ok(passing) };
        let family = if table.is_ipv6() { self.space.v6 } else { self.space.v4 };
        let set = self.space.store.and(passing.set, family)?;
        let others = self.space.store.minus(passing.set, family)?;
        let mut states = passing.states;
        let inside = self.chain(table, chain, hook, set, &mut states, 0)?;
        let mut passed = inside.accepted;
        if chain.policy.unwrap_or(true) {
            let to_policy = self.space.store.or(inside.here, inside.returned)?;
            passed = self.space.store.or(passed, to_policy)?;
        }
        Ok(Passing { set: self.space.store.or(passed, others)?, states })
    }

    fn chain(
        &mut self,
        table: &Table,
        chain: &Chain,
        hook: Hook<'_>,
        entered: Set,
        states: &mut Map,
        depth: usize,
    ) -> Result<Inside, TooLarge> {
        let mut inside = Inside { entered, here: entered, accepted: Set::NONE, returned: Set::NONE };
        if depth > DEEPEST_CHAIN {
            return Err(TooLarge);
        }
        for (at, counted) in chain.rules.iter().enumerate() {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(TooLarge);
            }
            let rule = &counted.rule;
            let met = self.met(rule, table.is_ipv6(), hook, &inside, *states)?;
            let before = inside.here;
            if !met.matched.is_empty() {
                self.carry_out(table, rule, hook, met.matched, &mut inside, states, depth)?;
            }
            let left = self.space.store.minus(before, inside.here)?;
            let key = RuleKey { ipv6: table.is_ipv6(), table: table.name().to_owned(), chain: chain.name.clone(), at };
            self.note(key, entered, met, left)?;
        }
        Ok(inside)
    }

    /// What a rule asks of the packets in its chain, and which of those that came to it it matches.
    fn met(&mut self, rule: &Rule, ipv6: bool, hook: Hook<'_>, inside: &Inside, states: Map) -> Result<Met, TooLarge> {
        let (mut asked, mut later) = (inside.entered, Vec::new());
        for m in &rule.matches {
            match self.plain(m, ipv6, hook)? {
                Some(set) => asked = self.space.store.and(asked, set)?,
                None => later.push(m),
            }
        }
        let met = self.space.store.and(asked, inside.here)?;
        let mut matched = met;
        for m in later {
            matched = self.written(m, matched, states)?;
        }
        Ok(Met { asked, met, matched })
    }

    /// The set that a condition names; `None`: it asks for what rules write.
    fn plain(&mut self, m: &Match, ipv6: bool, hook: Hook<'_>) -> Result<Option<Set>, TooLarge> {
        let set = match &m.what {
            Condition::In(pattern) if hook.input => self.space.came_in(|name| fits(pattern, name))?,
            Condition::In(pattern) => either(fits(pattern, "")),
            Condition::Out(pattern) => either(fits(pattern, hook.output)),
            // Their truth hangs on the connection that rules may hide.
            Condition::Connstate(_) | Condition::State(_) | Condition::Connbytes(_) => return Ok(None),
            what => match self.space.condition(what, ipv6, hook.view)? {
                Some(set) => set,
                None => return Ok(None),
            },
        };
        if m.not && !matches!(m.what, Condition::Comment(_)) {
            return self.space.store.not(set).map(Some);
        }
        Ok(Some(set))
    }

    /// Those of a set that a condition on what was written holds for.
    fn written(&mut self, m: &Match, of: Set, map: Map) -> Result<Set, TooLarge> {
        let states = &*self.states;
        match &m.what {
            Condition::Mark(value, mask) => {
                self.space.store.select(map, of, &mut |n| (states.get(n).mark & mask == *value) != m.not)
            }
            Condition::Connmark(value, mask) => {
                let connected = self.space.store.and(of, self.space.connected())?;
                let holds = |state: State| !state.untracked && (state.connmark & mask == *value) != m.not;
                self.space.store.select(map, connected, &mut |n| holds(states.get(n)))
            }
            Condition::Connstate(asked) | Condition::State(asked) => {
                let hidden = self.space.store.select(map, of, &mut |n| states.get(n).untracked)?;
                let open = self.space.store.minus(of, hidden)?;
                let named = self.space.condition(&m.what, false, View::PLAIN)?.unwrap_or(Set::NONE);
                let named = if m.not { self.space.store.not(named)? } else { named };
                let open = self.space.store.and(open, named)?;
                let hidden = if asked.has(Connstate::Untracked) != m.not { hidden } else { Set::NONE };
                self.space.store.or(open, hidden)
            }
            Condition::Connbytes(_) => {
                // Without a connection the match fails, inverted or not.
                let open = self.space.store.select(map, of, &mut |n| !states.get(n).untracked)?;
                let open = self.space.store.and(open, self.space.connected())?;
                let named = self.space.condition(&m.what, false, View::PLAIN)?.unwrap_or(Set::NONE);
                if m.not { self.space.store.minus(open, named) } else { self.space.store.and(open, named) }
            }
            Condition::Dscp(code) => self.by_ds(of, map, code << 2, 0xfc, m.not),
            Condition::Tos(value, mask) => self.by_ds(of, map, *value, *mask, m.not),
            _ => Ok(of),
        }
    }

    fn by_ds(&mut self, of: Set, map: Map, value: u8, mask: u8, not: bool) -> Result<Set, TooLarge> {
        let mut found = Set::NONE;
        for (rewrite, part) in self.space.by_rewrite(self.states, of, map)? {
            let named = self.space.ds(value, mask, rewrite)?;
            let held = if not { self.space.store.minus(part, named)? } else { self.space.store.and(part, named)? };
            found = self.space.store.or(found, held)?;
        }
        Ok(found)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a rule acts on everything that is known of the packets in its chain"
    )]
    fn carry_out(
        &mut self,
        table: &Table,
        rule: &Rule,
        hook: Hook<'_>,
        matched: Set,
        inside: &mut Inside,
        states: &mut Map,
        depth: usize,
    ) -> Result<(), TooLarge> {
        match &rule.target {
            None | Some(Target::Log { .. } | Target::Tcpmss(_)) => {}
            Some(Target::Accept | Target::Translate(_)) => {
                inside.here = self.space.store.minus(inside.here, matched)?;
                inside.accepted = self.space.store.or(inside.accepted, matched)?;
            }
            Some(Target::Drop | Target::Reject(_)) => inside.here = self.space.store.minus(inside.here, matched)?,
            Some(Target::Return) => {
                inside.here = self.space.store.minus(inside.here, matched)?;
                inside.returned = self.space.store.or(inside.returned, matched)?;
            }
            Some(Target::Jump(name) | Target::Goto(name)) => {
                let Some(called) = table.chains().iter().find(|chain| chain.name == *name) else { return Ok(()) };
                let below = self.chain(table, called, hook, matched, states, depth + 1)?;
                let back = self.space.store.or(below.here, below.returned)?;
                inside.here = self.space.store.minus(inside.here, matched)?;
                inside.accepted = self.space.store.or(inside.accepted, below.accepted)?;
                let goes_on =
                    if matches!(rule.target, Some(Target::Jump(_))) { &mut inside.here } else { &mut inside.returned };
                *goes_on = self.space.store.or(*goes_on, back)?;
            }
            Some(target) => {
                let within = match target {
                    Target::Connmark(_) => self.space.store.and(matched, self.space.connected())?,
                    _ => matched,
                };
                let all = &mut *self.states;
                *states = self.space.store.alter(*states, within, &mut |n| {
                    let state = all.get(n);
                    all.number(altered(state, target))
                })?;
            }
        }
        Ok(())
    }

    /// Adds what was seen of a rule on this way to what is known of it.
    fn note(&mut self, key: RuleKey, entered: Set, met: Met, left: Set) -> Result<(), TooLarge> {
        let known = self.rules.entry(key).or_default();
        for (known, set) in [
            (&mut known.entered, entered),
            (&mut known.asked, met.asked),
            (&mut known.met, met.met),
            (&mut known.matched, met.matched),
            (&mut known.left, left),
        ] {
            known.add(self.space, self.way, set)?;
        }
        Ok(())
    }
}

impl Space {
    /// A set by what became of the DS field.
    pub(crate) fn by_rewrite(&mut self, states: &States, of: Set, map: Map) -> Result<Vec<(Rewrite, Set)>, TooLarge> {
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
    pub(crate) fn begin(&mut self, states: &mut States, set: Set, priority: Priority) -> Result<Passing, TooLarge> {
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

/// What a target writes.
fn altered(state: State, target: &Target) -> State {
    let mut new = state;
    match target {
        Target::Mark { value, mask } => new.mark = (state.mark & !mask) ^ value,
        Target::Classify(class) => new.priority = Priority::Is(class.0),
        Target::Dscp(code) => new.ds = state.ds.then(0xfc, code << 2),
        Target::Tos(value, mask) => new.ds = state.ds.then(*mask, *value),
        Target::Notrack(_) => new.untracked = true,
        Target::Connmark(_) if state.untracked => {}
        Target::Connmark(Connmark::Set { value, mask }) => new.connmark = (state.connmark & !mask) ^ value,
        Target::Connmark(Connmark::Save { nfmask, ctmask }) => {
            new.connmark = (state.connmark & !ctmask) ^ (state.mark & nfmask);
        }
        Target::Connmark(Connmark::Restore { nfmask, ctmask }) => {
            new.mark = (state.mark & !nfmask) ^ (state.connmark & ctmask);
        }
        _ => {}
    }
    new
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

fn either(truth: bool) -> Set {
    if truth { Set::ALL } else { Set::NONE }
}

/// Does a device's name fit a pattern of `-i` or `-o`?
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('+') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

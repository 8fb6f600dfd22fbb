//! All packets at once through netfilter's tables: which of them meet and match each rule, and what they
//! carry afterwards.
//!
//! What rules write on a packet (marks, the DS field, a priority) is a [`State`]; a map gives the state of
//! each packet. A rule's conditions on bytes are a set; its conditions on what was written are looked up in
//! the map, within that set only.

use crate::sets::bdd::{Map, Set, TooLarge};
use crate::sets::field::View;
use crate::sets::set::{Space, Truth};
use crate::walk::state::{Parts, Passing, Priority, State, States};
use std::collections::BTreeMap;
use tidegate_classify::netfilter::{NetfilterChain, NetfilterTable};
use tidegate_policy::netfilter::{
    self, Condition, ConnmarkTarget, Connstate, Connstates, Family, NetfilterRule, NetfilterTarget,
};

/// How deep chains may call one another.
const DEEPEST_CHAIN: usize = 40;
/// The most rules that are evaluated, over all paths and chains.
const MOST_STEPS: usize = 200_000;

/// Where on its way a packet is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hook<'a> {
    /// The hook of netfilter, from PREROUTING to POSTROUTING.
    pub(crate) at: netfilter::Hook,
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
    pub(crate) family: Family,
    pub(crate) table: String,
    pub(crate) chain: String,
    pub(crate) at: usize,
}

/// What is known of a rule, over all ways.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleSeen {
    /// Packets that came to its chain.
    pub(crate) entered: Parts,
    /// Those of them that meet its conditions, marks and connections aside.
    pub(crate) eligible: Parts,
    /// Those of them that came to the rule.
    pub(crate) met: Parts,
    /// Those that it matched, marks and all.
    pub(crate) matched: Parts,
    /// Packets whose way through the chain ended at it.
    pub(crate) left: Parts,
}

/// What is known of a rule on one path.
#[derive(Clone, Copy)]
struct Met {
    eligible: Set,
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

/// Where rules are evaluated.
#[derive(Clone, Copy)]
struct HookPoint<'a> {
    table: &'a NetfilterTable,
    hook: Hook<'a>,
    /// Packets of IPv6, or of IPv4.
    ipv6: bool,
}

/// Packets in a chain.
#[derive(Clone, Copy)]
struct Inside {
    /// Those that are still in it.
    here: Set,
    /// Those that go on behind the table.
    accepted: Set,
    /// Those that go back to the calling chain.
    returned: Set,
}

impl Walk<'_> {
    /// Sends packets of one IP version through a base chain; dropped ones are missing after it.
    pub(crate) fn base(
        &mut self,
        table: &NetfilterTable,
        chain: usize,
        ipv6: bool,
        hook: Hook<'_>,
        passing: Passing,
    ) -> Result<Passing, TooLarge> {
        let Some(chain) = table.chains().get(chain) else { return Ok(passing) };
        let family = if ipv6 { self.space.v6 } else { self.space.v4 };
        let set = self.space.store.and(passing.set, family)?;
        let others = self.space.store.minus(passing.set, family)?;
        let mut states = passing.states;
        let inside = self.chain(HookPoint { table, hook, ipv6 }, chain, set, &mut states, 0)?;
        let mut passed = inside.accepted;
        if chain.policy.unwrap_or(true) {
            let to_policy = self.space.store.or(inside.here, inside.returned)?;
            passed = self.space.store.or(passed, to_policy)?;
        }
        Ok(Passing { set: self.space.store.or(passed, others)?, states })
    }

    fn chain(
        &mut self,
        point: HookPoint<'_>,
        chain: &NetfilterChain,
        entered: Set,
        states: &mut Map,
        depth: usize,
    ) -> Result<Inside, TooLarge> {
        let mut inside = Inside { here: entered, accepted: Set::NONE, returned: Set::NONE };
        if depth > DEEPEST_CHAIN {
            return Err(TooLarge);
        }
        for (at, counted) in chain.rules.iter().enumerate() {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(TooLarge);
            }
            let met = self.met(&counted.rule, point, entered, inside.here, *states)?;
            let before = inside.here;
            if !met.matched.is_empty() {
                for target in counted.rule.targets() {
                    self.carry_out(point, target, met.matched, &mut inside, states, depth)?;
                }
            }
            let left = self.space.store.minus(before, inside.here)?;
            let (family, table) = (point.table.family(), point.table.name().to_owned());
            self.note(RuleKey { family, table, chain: chain.name.clone(), at }, entered, met, left)?;
        }
        Ok(inside)
    }

    /// The packets in its chain that meet a rule's conditions, and which of those that are still here it
    /// matches.
    fn met(
        &mut self,
        rule: &NetfilterRule,
        point: HookPoint<'_>,
        entered: Set,
        here: Set,
        states: Map,
    ) -> Result<Met, TooLarge> {
        let (mut part, mut later) = (entered, Vec::new());
        for m in &rule.matches {
            match self.plain(&m.what, point)? {
                Some(truth) => {
                    let set = self.as_wanted(truth, m.not)?;
                    part = self.space.store.and(part, set)?;
                }
                None => later.push(m),
            }
        }
        let met = if here == entered { part } else { self.space.store.and(part, here)? };
        let mut matched = met;
        for m in later {
            let truth = self.truth(&m.what, point, matched, states)?;
            matched = self.as_wanted(truth, m.not)?;
        }
        Ok(Met { eligible: part, met, matched })
    }

    /// Where a condition holds or, inverted, where it is known not to.
    fn as_wanted(&mut self, truth: Truth, not: bool) -> Result<Set, TooLarge> {
        if not { self.space.store.minus(truth.known, truth.holding) } else { Ok(truth.holding) }
    }

    /// What is known of a condition by a packet's bytes and devices; `None`: it depends on what rules write.
    fn plain(&mut self, what: &Condition, point: HookPoint<'_>) -> Result<Option<Truth>, TooLarge> {
        let hook = point.hook;
        let holding = match what {
            Condition::In(pattern) if hook.input => self.space.came_in(|name| fits(pattern, name))?,
            Condition::In(pattern) => either(fits(pattern, "")),
            Condition::Out(pattern) => either(fits(pattern, hook.output)),
            Condition::Version6(v6) => either(*v6 == point.ipv6),
            Condition::Any(several) => {
                let mut any = Truth::any_of(several, Set::ALL);
                for what in several {
                    let Some(one) = self.plain(what, point)? else { return Ok(None) };
                    any = self.or(any, one)?;
                }
                return Ok(Some(any));
            }
            what => return self.space.condition(what, point.ipv6, hook.view),
        };
        Ok(Some(Truth { holding, known: Set::ALL }))
    }

    fn or(&mut self, a: Truth, b: Truth) -> Result<Truth, TooLarge> {
        let holding = self.space.store.or(a.holding, b.holding)?;
        Ok(Truth { holding, known: self.space.store.or(a.known, b.known)? })
    }

    /// For which packets a condition is true, and for which that is known at all.
    fn truth(
        &mut self,
        what: &Condition,
        point: HookPoint<'_>,
        of: Set,
        map: Map,
    ) -> Result<Truth, TooLarge> {
        let states = &*self.states;
        let matched = match what {
            Condition::Mark(value, mask) => {
                self.space.store.select(map, of, &mut |n| states.get(n).mark & mask == *value)?
            }
            Condition::Connmark(value, mask) => {
                let known = self.tracked(of, map)?;
                let states = &*self.states;
                let matched =
                    self.space.store.select(map, known, &mut |n| states.get(n).connmark & mask == *value)?;
                return Ok(Truth { holding: matched, known });
            }
            Condition::Connbytes(range) => {
                let known = self.tracked(of, map)?;
                let named = self.space.carried(range)?;
                return Ok(Truth { holding: self.space.store.and(known, named)?, known });
            }
            Condition::Connstate(asked) | Condition::State(asked) => self.in_state(*asked, of, map)?,
            Condition::Dscp(code) => self.by_ds(of, map, code << 2, 0xfc)?,
            Condition::Tos(value, mask) => self.by_ds(of, map, *value, *mask)?,
            Condition::Any(several) => return self.any(several, point, of, map),
            what => {
                let all = Truth { holding: Set::ALL, known: Set::ALL };
                let Truth { holding, known } = self.plain(what, point)?.unwrap_or(all);
                let (holding, known) = (self.space.store.and(of, holding)?, self.space.store.and(of, known)?);
                return Ok(Truth { holding, known });
            }
        };
        Ok(Truth { holding: matched, known: of })
    }

    fn any(
        &mut self,
        several: &[Condition],
        point: HookPoint<'_>,
        of: Set,
        map: Map,
    ) -> Result<Truth, TooLarge> {
        let mut any = Truth::any_of(several, of);
        for what in several {
            let one = self.truth(what, point, of, map)?;
            any = self.or(any, one)?;
        }
        Ok(any)
    }

    /// Those of a set whose connection is known.
    fn tracked(&mut self, of: Set, map: Map) -> Result<Set, TooLarge> {
        let states = &*self.states;
        let connected = self.space.store.and(of, self.space.connected())?;
        self.space.store.select(map, connected, &mut |n| !states.get(n).untracked)
    }

    fn in_state(&mut self, wanted: Connstates, of: Set, map: Map) -> Result<Set, TooLarge> {
        let states = &*self.states;
        let hidden = self.space.store.select(map, of, &mut |n| states.get(n).untracked)?;
        let open = self.space.store.minus(of, hidden)?;
        let named = self.space.state(wanted)?;
        let open = self.space.store.and(open, named)?;
        if wanted.has(Connstate::Untracked) { self.space.store.or(open, hidden) } else { Ok(open) }
    }

    fn by_ds(&mut self, of: Set, map: Map, value: u8, mask: u8) -> Result<Set, TooLarge> {
        let mut found = Set::NONE;
        for (rewrite, part) in self.space.by_rewrite(self.states, of, map)? {
            let named = self.space.ds(value, mask, rewrite)?;
            let matched = self.space.store.and(part, named)?;
            found = self.space.store.or(found, matched)?;
        }
        Ok(found)
    }

    fn carry_out(
        &mut self,
        point: HookPoint<'_>,
        target: &NetfilterTarget,
        matched: Set,
        inside: &mut Inside,
        states: &mut Map,
        depth: usize,
    ) -> Result<(), TooLarge> {
        let leaves = match target {
            NetfilterTarget::Log { .. } | NetfilterTarget::Tcpmss(_) => return Ok(()),
            NetfilterTarget::Jump(name) | NetfilterTarget::Goto(name) => {
                let Some(called) = point.table.chains().iter().find(|chain| chain.name == *name) else {
                    return Ok(());
                };
                let below = self.chain(point, called, matched, states, depth + 1)?;
                let back = self.space.store.or(below.here, below.returned)?;
                inside.here = self.space.store.minus(inside.here, matched)?;
                inside.accepted = self.space.store.or(inside.accepted, below.accepted)?;
                let goes_on = if matches!(target, NetfilterTarget::Jump(_)) {
                    &mut inside.here
                } else {
                    &mut inside.returned
                };
                *goes_on = self.space.store.or(*goes_on, back)?;
                return Ok(());
            }
            NetfilterTarget::Accept | NetfilterTarget::Translate(_) => Some(&mut inside.accepted),
            NetfilterTarget::Return => Some(&mut inside.returned),
            NetfilterTarget::Drop | NetfilterTarget::Reject(_) => None,
            written => return self.write(written, matched, states),
        };
        if let Some(leaves) = leaves {
            *leaves = self.space.store.or(*leaves, matched)?;
        }
        inside.here = self.space.store.minus(inside.here, matched)?;
        Ok(())
    }

    fn write(&mut self, target: &NetfilterTarget, matched: Set, states: &mut Map) -> Result<(), TooLarge> {
        let within = match target {
            NetfilterTarget::Connmark(_) => self.space.store.and(matched, self.space.connected())?,
            _ => matched,
        };
        let all = &mut *self.states;
        *states = self.space.store.alter(*states, within, &mut |n| {
            let state = all.get(n);
            all.number(altered(state, target))
        })?;
        Ok(())
    }

    /// Adds what was seen of a rule on this way to what is known of it.
    fn note(&mut self, key: RuleKey, entered: Set, met: Met, left: Set) -> Result<(), TooLarge> {
        let known = self.rules.entry(key).or_default();
        for (known, set) in [
            (&mut known.entered, entered),
            (&mut known.eligible, met.eligible),
            (&mut known.met, met.met),
            (&mut known.matched, met.matched),
            (&mut known.left, left),
        ] {
            known.add(self.space, self.way, set)?;
        }
        Ok(())
    }
}

/// What a target writes.
fn altered(state: State, target: &NetfilterTarget) -> State {
    let mut new = state;
    match target {
        NetfilterTarget::Mark { value, mask } => new.mark = (state.mark & !mask) ^ value,
        NetfilterTarget::Classify(class) => new.priority = Priority::Is(class.0),
        NetfilterTarget::Dscp(code) => new.ds = state.ds.then(0xfc, code << 2),
        NetfilterTarget::Tos(value, mask) => new.ds = state.ds.then(*mask, *value),
        NetfilterTarget::Notrack(_) => new.untracked = true,
        NetfilterTarget::Connmark(_) if state.untracked => {}
        NetfilterTarget::Connmark(ConnmarkTarget::Set { value, mask }) => {
            new.connmark = (state.connmark & !mask) ^ value
        }
        NetfilterTarget::Connmark(ConnmarkTarget::Save { nfmask, ctmask }) => {
            new.connmark = (state.connmark & !ctmask) ^ (state.mark & nfmask);
        }
        NetfilterTarget::Connmark(ConnmarkTarget::Restore { nfmask, ctmask }) => {
            new.mark = (state.mark & !nfmask) ^ (state.connmark & ctmask);
        }
        _ => {}
    }
    new
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

//! Lists of filters that tc's words fill: the root's, and that of clsact's egress, which packets meet before
//! it.

use std::collections::BTreeSet;
use tidegate_classify::{
    ActionInput, Actions, ClassifyContext, DumpContext, FilterList, FilterRandom, FilterVerdict, Owner,
};
use tidegate_packet::{Handle, Head, Jiffies, LinuxVersion, Meta, Pkt, Pool, Seeded, Time, Wheel};
use tidegate_policy::{Act, ActionsOp, FilterOp, Op, QdiscOp, TcError, Verb};
use tidegate_syntax::tc::{self, Object, ShowActions, ShowFlags, ShowWhat, TcCommand};
use tidegate_syntax::{Device, Env};

/// The device that commands name.
pub(crate) const LINK: &str = "link0";
/// clsact's egress hook.
const LEAVING: Handle = Handle(0xffff_fff3);
const CLSACT: Handle = Handle(0xffff_0000);

/// A command that this place cannot carry out, or that is about something else than these two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere;

pub(crate) struct Lists {
    root: Handle,
    classes: BTreeSet<u32>,
    filters: FilterList,
    clsact: bool,
    leaving: FilterList,
    actions: Actions,
    pool: Pool,
    random: Seeded,
    flow_key_drawn: bool,
    wheel: Wheel,
}

impl Lists {
    pub(crate) fn new() -> Lists {
        Lists {
            root: Handle::NONE,
            classes: BTreeSet::new(),
            filters: FilterList::new(),
            clsact: false,
            leaving: FilterList::new(),
            actions: Actions::default(),
            pool: Pool::new(64),
            random: Seeded::new(1),
            flow_key_drawn: false,
            wheel: Wheel::new(Jiffies { hz: 1000 }),
        }
    }

    /// Carries out tc's words. A command that the kernel refuses changes nothing.
    pub(crate) fn tc(&mut self, now: Time, words: &[String]) -> Result<(), Elsewhere> {
        let devices = vec![Device { name: LINK.to_owned(), speed_mbit: Some(1000), ..Device::default() }];
        match tc::parse(words, &Env { devices: Some(devices), ..Env::default() }) {
            Err(_) => Err(Elsewhere),
            Ok(parsed) => match parsed.command {
                TcCommand::Apply(Op::Qdisc(op)) => self.qdisc(&op),
                TcCommand::Apply(Op::Class(op)) if op.verb == Verb::Add => {
                    if op.classid.qdisc() == self.root {
                        self.classes.insert(op.classid.0);
                    }
                    Ok(())
                }
                TcCommand::Apply(Op::Filter(op)) if op.block == 0 => self.filter(now, &op),
                TcCommand::Show(_) => Ok(()),
                _ => Err(Elsewhere),
            },
        }
    }

    /// What tc prints when it is given these words: of the root's filters and chains, and of actions.
    pub(crate) fn answer(&mut self, now: Time, words: &[String]) -> String {
        let devices = vec![Device { name: LINK.to_owned(), speed_mbit: Some(1000), ..Device::default() }];
        let parsed = match tc::parse(words, &Env { devices: Some(devices), ..Env::default() }) {
            Err(refusal) => return refusal.stderr,
            Ok(parsed) => parsed,
        };
        self.count_actions(now);
        match parsed.command {
            TcCommand::Apply(op) => {
                let done = self.apply(now, &op);
                // The kernel's refusals, with their messages, and a warning.
                parsed.stderr
                    + &match done {
                        Ok(None) => String::new(),
                        Ok(Some(warning)) => format!("Warning: {warning}\n"),
                        Err(error) => tc::refusal_text(&op, &error).0,
                    }
            }
            TcCommand::Show(what) => {
                let mut dumps = Vec::new();
                let context = DumpContext { now, actions: &self.actions };
                self.filters.dump(context, LINK, self.root, None, &mut dumps);
                tc::show_filters(&dumps, &what, &parsed.flags)
            }
            TcCommand::ShowActions(what) => {
                let dumps = match &what {
                    ShowActions::Kind(kind) => Ok(self.actions.dump(kind, now)),
                    ShowActions::Numbered(ids) => self.actions.get(ids, now),
                };
                // tc reads a refusal of `get` as it does one of `delete`.
                let refused = |error| tc::refusal_text(&Op::Actions(ActionsOp::Delete(Vec::new())), &error).0;
                dumps.map_or_else(refused, |dumps| tc::show_actions(&dumps, &what, &parsed.flags))
            }
            other => panic!("{other:?}"),
        }
    }

    fn apply(&mut self, now: Time, op: &Op) -> Result<Option<String>, TcError> {
        let done = match op {
            Op::Qdisc(op) => {
                self.qdisc(op).expect("a root");
                Ok(None)
            }
            Op::Filter(op) => {
                let classes = &self.classes;
                let has_class = |class: Handle| classes.contains(&class.0);
                let owner = Owner {
                    qdisc: self.root,
                    holder: self.root,
                    has_class: &has_class,
                    now,
                    wheel: &self.wheel,
                };
                let mut random =
                    FilterRandom { source: &mut self.random, flow_key_drawn: &mut self.flow_key_drawn };
                self.filters.apply(op, owner, &mut self.actions, &mut random).map(|()| None)
            }
            Op::Chain(op) => self.filters.apply_chain(op, &self.actions).map(|()| None),
            Op::Actions(op) => return self.actions.apply(op, now),
            other => panic!("{other:?}"),
        };
        let removes = match op {
            Op::Filter(op) => op.verb != Verb::Add,
            Op::Chain(op) => !op.add,
            _ => false,
        };
        if removes {
            self.actions.filters_may_be_gone(now);
        }
        done
    }

    fn qdisc(&mut self, op: &QdiscOp) -> Result<(), Elsewhere> {
        // A size table changes what policers count.
        if op.verb != Verb::Add || op.stab.is_some() {
            return Err(Elsewhere);
        }
        match op.kind.as_deref() {
            Some("clsact") => self.clsact = true,
            Some(kind) if op.parent == Handle::ROOT => {
                self.root = op.handle;
                if kind == "prio" {
                    self.classes.extend((1..=3).map(|band| op.handle.class(band).0));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn filter(&mut self, now: Time, op: &FilterOp) -> Result<(), Elsewhere> {
        let matches = |act: &Act| {
            // A sample is drawn at random, but for one of every packet.
            let draws = matches!(act, Act::Sample(sample) if sample.rate != Some(1));
            draws || matches!(act, Act::Mirred(_) | Act::Ct(_))
        };
        let indev = op.params.clone().is_some_and(|mut params| params.indev_mut().is_some());
        if indev || op.actions.iter().any(|action| matches(&action.act)) {
            return Err(Elsewhere);
        }
        let (classes, root) = (&self.classes, self.root);
        let has_class = |class: Handle| classes.contains(&class.0);
        let at_root = op.parent == root || op.parent.is_none() || op.parent == Handle::ROOT;
        let (list, holder) = match op.parent {
            LEAVING if self.clsact => (&mut self.leaving, LEAVING),
            _ if at_root && !root.is_none() => (&mut self.filters, root),
            _ => return Err(Elsewhere),
        };
        let qdisc = if holder == LEAVING { CLSACT } else { root };
        let owner = Owner { qdisc, holder, has_class: &has_class, now, wheel: &self.wheel };
        let mut random = FilterRandom { source: &mut self.random, flow_key_drawn: &mut self.flow_key_drawn };
        let _ = list.apply(op, owner, &mut self.actions, &mut random);
        if op.verb != Verb::Add {
            self.actions.filters_may_be_gone(now);
        }
        Ok(())
    }

    /// The result for a packet: the root's filters' verdict (`None`: none matched), and the frame as it
    /// continues. What clsact's filters drop does not come to the root.
    pub(crate) fn offer(
        &mut self,
        now: Time,
        meta: Meta,
        head: Head,
    ) -> (Option<FilterVerdict>, Option<Vec<u8>>) {
        let pkt = self.pool.insert(meta, head).expect("the pool has room");
        let at_hook = if self.clsact { self.ask(now, &pkt, true) } else { None };
        let mut verdict = at_hook.filter(|verdict| !matches!(verdict, FilterVerdict::Class(_)));
        let mut frame = None;
        if verdict.is_none() {
            let named = self.pool.meta(&pkt).priority_class().qdisc() == self.root && !self.root.is_none();
            verdict = if named { None } else { self.ask(now, &pkt, false) };
            if !matches!(verdict, Some(FilterVerdict::Drop | FilterVerdict::Stolen)) {
                frame = Some(self.pool.settle(&pkt).on_wire().frame().to_vec());
            }
        }
        self.pool.release(pkt);
        (verdict, frame)
    }

    fn ask(&mut self, now: Time, pkt: &Pkt, leaving: bool) -> Option<FilterVerdict> {
        let len = self.pool.meta(pkt).len;
        let mut context = ClassifyContext {
            pkt,
            meter: ActionInput { len, whole: len, now, passed_over: false, linux: LinuxVersion::default() },
            pool: &mut self.pool,
            actions: &mut self.actions,
            random: FilterRandom { source: &mut self.random, flow_key_drawn: &mut self.flow_key_drawn },
            link_header: Head::ETHERNET as u32,
        };
        match leaving {
            true => self.leaving.classify(CLSACT, &mut context),
            false => self.filters.classify(self.root, &mut context),
        }
    }

    /// Actions of deleted filters go once time has passed.
    pub(crate) fn count_actions(&mut self, now: Time) {
        if self.actions.must_count(now, true) {
            let (leaving, filters) = (&self.leaving, &self.filters);
            self.actions.count(|show| {
                leaving.each_action(show);
                filters.each_action(show);
            });
        }
    }

    /// `tc -s -d filter show dev link0 parent ROOT`.
    pub(crate) fn listing(&self, now: Time) -> String {
        let mut dumps = Vec::new();
        let context = DumpContext { now, actions: &self.actions };
        self.filters.dump(context, LINK, self.root, None, &mut dumps);
        let what = ShowWhat { parent: Some(self.root), ..ShowWhat::on(Object::Filter, LINK) };
        tc::show_filters(&dumps, &what, &ShowFlags::FULL)
    }
}

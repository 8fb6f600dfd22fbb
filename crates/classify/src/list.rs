//! The filters that hang on one qdisc or class.

use crate::actions::{Actions, Meter, Said, Verdict};
use crate::flow::Flow;
use crate::fw::Fw;
use crate::matchall::Matchall;
use crate::u32::{FIRST_TABLE, U32, U32Listing};
use alloc::string::ToString;
use alloc::vec::Vec;
use tidegate_packet::{Draws, Handle, Mark, Pkt, Pool, Time, Timer, Wheel};
use tidegate_policy::dump::{FilterDump, FilterEntry, U32Hits};
use tidegate_policy::{Errno, FilterOp, FilterParams, FwParams, MatchallParams, TcError, Verb};

/// The preference a filter gets when it names none and is alone.
const AUTO_PREF: u16 = 0xc000;
/// The lowest preference that automatic ones go down to.
const AUTO_FLOOR: u16 = 0x8000;
const LAST_TABLE: u32 = 0xfff;

/// How often one packet may have all filters asked anew (`reclassify`); then it is dropped, as the kernel does (6.1).
const MOST_RESTARTS: u32 = 16;

/// A question: which class for this packet?
#[derive(Debug)]
pub struct Asked<'a> {
    /// Where the packet lives.
    pub pool: &'a mut Pool,
    /// The packet.
    pub pkt: &'a Pkt,
    /// What actions must know.
    pub meter: Meter,
}

/// Randomness for filters, with the memory that the first flow filter on a machine draws a key that later ones share.
pub struct RandomSource<'a> {
    /// Where draws come from.
    pub draws: &'a mut dyn Draws,
    /// Has that key been drawn?
    pub flow_key_drawn: &'a mut bool,
}

impl RandomSource<'_> {
    pub(crate) fn word(&mut self) -> u64 {
        self.draws.word()
    }

    /// The seed of a new flow filter.
    pub(crate) fn flow_seed(&mut self) -> u32 {
        self.draws.word() as u32
    }

    fn first_flow_filter(&mut self) {
        if !*self.flow_key_drawn {
            *self.flow_key_drawn = true;
            let _ = self.draws.key();
        }
    }
}

/// What a filter list must know of whom it hangs on.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    /// The qdisc's handle.
    pub qdisc: Handle,
    /// Does this class exist in it?
    pub has_class: &'a dyn Fn(Handle) -> bool,
    /// Has another list of the qdisc a u32 table of this number?
    pub has_table: &'a dyn Fn(u32) -> bool,
    /// The present time.
    pub now: Time,
    /// Where timers are armed.
    pub wheel: &'a Wheel,
}

/// The filters of one qdisc or class, in the order in which they are asked.
#[derive(Debug, Default)]
pub struct FilterList {
    prefs: Vec<Pref>,
    /// The number last given to a table of u32, also of one that is gone.
    last_table: u32,
}

#[derive(Debug)]
struct Pref {
    pref: u16,
    protocol: u16,
    chain: u32,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Fw(Fw),
    U32(U32),
    Flow(Flow),
    Matchall(Matchall),
}

impl Body {
    fn kind(&self) -> &'static str {
        match self {
            Body::Fw(_) => "fw",
            Body::U32(_) => "u32",
            Body::Flow(_) => "flow",
            Body::Matchall(_) => "matchall",
        }
    }
    fn is_empty(&self) -> bool {
        match self {
            Body::Fw(fw) => fw.is_empty(),
            Body::U32(u32) => u32.is_empty(),
            Body::Flow(flow) => flow.is_empty(),
            Body::Matchall(all) => all.entry().is_none(),
        }
    }
}

impl FilterList {
    /// An empty list.
    pub const fn new() -> FilterList {
        FilterList { prefs: Vec::new(), last_table: 0 }
    }

    /// No filters at all?
    pub fn is_empty(&self) -> bool {
        self.prefs.is_empty()
    }

    /// What the first matching filter decides; `None` when none matches.
    ///
    /// A class may be [`Handle::NONE`] (a filter without classid), foreign, or not there: what that means is each qdisc's own.
    pub fn classify(&mut self, qdisc: Handle, asked: &mut Asked<'_>) -> Option<Verdict> {
        for _ in 0..=MOST_RESTARTS {
            match self.ask(qdisc, asked) {
                Said::No => return None,
                Said::Decided(verdict) => return Some(verdict),
                Said::Again => {}
            }
        }
        Some(Verdict::Drop)
    }

    /// The class where a lone `fw` says that the mark is its name, so that nothing needs to be asked; `None`: it must be asked.
    #[inline]
    pub fn obvious(&self, mark: Mark, ethertype: u16, qdisc: Handle) -> Option<Handle> {
        match &self.prefs[..] {
            [Pref { protocol, chain: 0, body: Body::Fw(fw), .. }] if fw.is_empty() && *protocol == ethertype => {
                fw.guess(mark, qdisc)
            }
            _ => None,
        }
    }

    /// The class that a firewall mark leads to, as far as that shows without asking anyone: a guess about what [`Self::classify`] will
    /// say, for those who prepare.
    #[inline]
    pub fn guess(&self, mark: Mark, qdisc: Handle) -> Option<Handle> {
        match &self.prefs.first()?.body {
            Body::Fw(fw) => fw.guess(mark, qdisc),
            _ => None,
        }
    }

    #[inline]
    fn ask(&mut self, qdisc: Handle, asked: &mut Asked<'_>) -> Said {
        let meta = asked.pool.meta(asked.pkt);
        let (ethertype, mark) = (meta.ethertype, meta.mark);
        for pref in &mut self.prefs {
            if pref.protocol != ethertype && pref.protocol != FilterOp::ALL || pref.chain != 0 {
                continue;
            }
            let found = match &mut pref.body {
                Body::Fw(fw) => fw.classify(mark, qdisc, &mut asked.meter),
                Body::U32(u32) => u32.classify(asked),
                Body::Flow(flow) => flow.classify(asked),
                Body::Matchall(all) => all.classify(&mut asked.meter),
            };
            if found != Said::No {
                return found;
            }
        }
        Said::No
    }

    /// Is a class held by a filter that was made when the class was there? Such a class cannot be deleted.
    pub fn binds(&self, class: Handle) -> bool {
        self.prefs.iter().any(|pref| match &pref.body {
            Body::Fw(fw) => fw.entries().iter().any(|e| e.bound && e.classid == Some(class)),
            Body::U32(u32) => u32.nodes().iter().any(|n| n.bound && n.params.classid == Some(class)),
            Body::Flow(_) => false,
            Body::Matchall(all) => all.entry().is_some_and(|e| e.bound && e.classid == Some(class)),
        })
    }

    /// Has it a u32 table of this number?
    pub fn has_table(&self, number: u32) -> bool {
        self.prefs.iter().any(|p| matches!(&p.body, Body::U32(u) if u.table == number))
    }

    /// Counts the filters that lead to `class` as holding it, or no longer.
    pub fn rebind(&mut self, class: Handle, bound: bool) {
        for pref in &mut self.prefs {
            match &mut pref.body {
                Body::Fw(fw) => fw.rebind(class, bound),
                Body::U32(u32) => u32.rebind(class, bound),
                Body::Flow(_) => {}
                Body::Matchall(all) => {
                    if let Some(entry) = all.entry_mut().filter(|entry| entry.classid == Some(class)) {
                        entry.bound = bound;
                    }
                }
            }
        }
    }

    /// A device is gone: no action leads there any more.
    pub fn forget_device(&mut self, gone: u32) {
        for pref in &mut self.prefs {
            match &mut pref.body {
                Body::Fw(fw) => fw.entries_mut().iter_mut().for_each(|e| e.actions.forget_device(gone)),
                Body::U32(u32) => u32.nodes_mut().iter_mut().for_each(|e| e.actions.forget_device(gone)),
                Body::Flow(flow) => flow.entries_mut().iter_mut().for_each(|e| e.actions.forget_device(gone)),
                Body::Matchall(all) => all.entry_mut().into_iter().for_each(|e| e.actions.forget_device(gone)),
            }
        }
    }

    /// Carries out an operation.
    ///
    /// # Errors
    /// As the kernel refuses: unknown kind, wrong kind at that preference, exists already, not found.
    pub fn apply(&mut self, op: &FilterOp, owner: Owner<'_>, random: &mut RandomSource<'_>) -> Result<(), TcError> {
        match op.verb {
            Verb::Delete => self.delete(op),
            Verb::Add | Verb::Change | Verb::Replace => self.set(op, owner, random),
            Verb::Link => Err(TcError::bare(Errno::OpNotSupp)),
        }
    }

    fn set(&mut self, op: &FilterOp, owner: Owner<'_>, random: &mut RandomSource<'_>) -> Result<(), TcError> {
        const NEEDS_CREATE: TcError =
            TcError::new(Errno::NoEnt, "Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter");
        let create = op.verb != Verb::Change;
        if op.pref == 0 && !create {
            return Err(TcError::new(Errno::NoEnt, "Invalid filter command with priority of zero"));
        }
        let found =
            if op.pref == 0 { None } else { self.prefs.iter().position(|p| p.pref == op.pref && p.chain == op.chain) };
        let Some(at) = found else {
            let (Some(kind), true) = (op.kind.as_deref(), op.protocol != 0) else {
                return Err(TcError::new(Errno::Inval, "Filter kind and protocol must be specified"));
            };
            if !create {
                return Err(NEEDS_CREATE);
            }
            let pref = if op.pref == 0 { self.auto_pref() } else { op.pref };
            let body = self.new_body(kind, owner)?;
            if kind == "flow" {
                random.first_flow_filter();
            }
            let mut new = Pref { pref, protocol: op.protocol, chain: op.chain, body };
            new.set(op, owner, random)?;
            let at = self.prefs.partition_point(|p| (p.chain, p.pref) < (op.chain, pref));
            self.prefs.insert(at, new);
            return Ok(());
        };
        let pref = &mut self.prefs[at];
        if op.protocol != 0 && op.protocol != pref.protocol {
            return Err(TcError::new(Errno::Inval, "Filter with specified priority/protocol not found"));
        }
        if op.kind.as_deref().is_some_and(|kind| kind != pref.body.kind()) {
            return Err(TcError::new(Errno::Inval, "Specified filter kind does not match existing one"));
        }
        let exists = pref.has(op.handle);
        match (exists, op.verb) {
            (true, Verb::Add) => Err(TcError::new(Errno::Exist, "Filter already exists")),
            (true, _) => pref.change(op, owner),
            (false, Verb::Change) => Err(NEEDS_CREATE),
            (false, _) => pref.set(op, owner, random),
        }
    }

    fn delete(&mut self, op: &FilterOp) -> Result<(), TcError> {
        if op.pref == 0 {
            if op.protocol != 0 || op.handle != 0 || op.kind.is_some() {
                return Err(TcError::new(Errno::NoEnt, "Cannot flush filters with protocol, handle or kind set"));
            }
            self.prefs.retain(|p| p.chain != op.chain);
            return Ok(());
        }
        if self.prefs.iter().all(|p| p.chain != op.chain) {
            return Err(TcError::new(Errno::Inval, "Cannot find specified filter chain"));
        }
        let at = self
            .prefs
            .iter()
            .position(|p| p.pref == op.pref && p.chain == op.chain && (op.protocol == 0 || p.protocol == op.protocol))
            .ok_or(TcError::new(Errno::NoEnt, "Filter with specified priority/protocol not found"))?;
        let pref = &mut self.prefs[at];
        if op.kind.as_deref().is_some_and(|kind| kind != pref.body.kind()) {
            return Err(TcError::new(Errno::Inval, "Specified filter kind does not match existing one"));
        }
        if op.handle == 0 {
            self.prefs.remove(at);
            return Ok(());
        }
        let removed = match &mut pref.body {
            Body::Fw(fw) => fw.remove(op.handle),
            Body::U32(u32) => u32.remove(op.handle),
            Body::Flow(flow) => flow.remove(op.handle),
            Body::Matchall(all) => all.remove(op.handle),
        };
        if !removed {
            return Err(TcError::new(Errno::NoEnt, "Specified filter handle not found"));
        }
        if pref.body.is_empty() {
            self.prefs.remove(at);
        }
        Ok(())
    }

    fn new_body(&mut self, kind: &str, owner: Owner<'_>) -> Result<Body, TcError> {
        match kind {
            "fw" => Ok(Body::Fw(Fw::new())),
            "flow" => Ok(Body::Flow(Flow::default())),
            "matchall" => Ok(Body::Matchall(Matchall::default())),
            "u32" => {
                let table = self.new_table(owner).ok_or(TcError::bare(Errno::NoSpc))?;
                self.last_table = table;
                Ok(Body::U32(U32::new(table)))
            }
            _ => Err(TcError::new(Errno::NoEnt, "TC classifier not found")),
        }
    }

    /// A number for a table of u32: the next after the last one given, as long as there are tables at all.
    fn new_table(&self, owner: Owner<'_>) -> Option<u32> {
        let taken = |table: &u32| self.has_table(*table) || (owner.has_table)(*table);
        let mut all = FIRST_TABLE..=LAST_TABLE;
        let next = if all.clone().any(|table| taken(&table)) { self.last_table + 1 } else { FIRST_TABLE };
        (next.max(FIRST_TABLE)..=LAST_TABLE).find(|table| !taken(table)).or_else(|| all.find(|table| !taken(table)))
    }

    fn auto_pref(&self) -> u16 {
        let lowest = self.prefs.iter().map(|p| p.pref).find(|pref| *pref >= AUTO_FLOOR);
        lowest.map_or(AUTO_PREF, |pref| pref.saturating_sub(1))
    }

    /// When the next change of a flow filter's seed is due.
    pub fn perturb_due(&self) -> Timer {
        let due = |p: &Pref| match &p.body {
            Body::Flow(flow) => flow.perturb_due(),
            _ => Timer::NEVER,
        };
        self.prefs.iter().map(due).min().unwrap_or(Timer::NEVER)
    }

    /// Changes the seed of the filter that was due then and arms it again from `now`.
    pub fn perturb(&mut self, due: Timer, now: Time, wheel: &Wheel, random: &mut RandomSource<'_>) {
        for pref in &mut self.prefs {
            if let Body::Flow(flow) = &mut pref.body
                && flow.perturb(due, random, |secs| wheel.arm(now, secs))
            {
                return;
            }
        }
    }

    /// When the next change after `due` is due.
    pub fn perturb_due_after(&self, due: Timer) -> Timer {
        let later = |p: &Pref| match &p.body {
            Body::Flow(flow) => flow.perturb_due_after(due),
            _ => Timer::NEVER,
        };
        self.prefs.iter().map(later).min().unwrap_or(Timer::NEVER)
    }

    /// Its u32 tables, for the listings of other lists of the qdisc.
    pub fn u32_tables(&self, now: Time) -> Vec<U32Listing> {
        let listing = |p: &Pref| match &p.body {
            Body::U32(table) => Some(table.listing(p.pref, now)),
            _ => None,
        };
        self.prefs.iter().filter_map(listing).collect()
    }

    /// As `tc filter show` lists them.
    ///
    /// `others`: the u32 tables of the qdisc's other lists. Tables are known to the qdisc as a whole, so those made for the same
    /// preference are listed wherever it is, the latest first.
    pub fn dump(&self, now: Time, dev: &str, parent: Handle, others: &[U32Listing], out: &mut Vec<FilterDump>) {
        for pref in &self.prefs {
            let mut line = |entry| {
                out.push(FilterDump {
                    dev: dev.to_string(),
                    parent,
                    protocol: pref.protocol,
                    pref: pref.pref,
                    kind: pref.body.kind(),
                    chain: pref.chain,
                    entry,
                });
            };
            line(FilterEntry::Heading);
            match &pref.body {
                Body::Fw(fw) => {
                    for e in fw.in_dump_order() {
                        let params = FilterParams::Fw(FwParams { classid: e.classid, mask: fw.mask() });
                        line(FilterEntry::Filter { handle: e.mark, params, hits: None, actions: e.actions.dump(now) });
                    }
                }
                Body::U32(table) => {
                    let own = table.listing(pref.pref, now);
                    let mut tables: Vec<&U32Listing> =
                        others.iter().filter(|t| t.pref == pref.pref).chain([&own]).collect();
                    tables.sort_by_key(|t| core::cmp::Reverse(t.table));
                    for entry in tables.into_iter().flat_map(|t| t.entries.iter().cloned()) {
                        line(entry);
                    }
                }
                Body::Flow(flow) => {
                    for e in flow.entries() {
                        let params = FilterParams::Flow(e.params.clone());
                        line(FilterEntry::Filter {
                            handle: e.handle,
                            params,
                            hits: None,
                            actions: e.actions.dump(now),
                        });
                    }
                }
                Body::Matchall(all) => {
                    if let Some(e) = all.entry() {
                        let params = FilterParams::Matchall(MatchallParams { classid: e.classid });
                        line(FilterEntry::Filter {
                            handle: e.handle,
                            params,
                            hits: Some(U32Hits { asked: e.asked, ..U32Hits::default() }),
                            actions: e.actions.dump(now),
                        });
                    }
                }
            }
        }
    }
}

impl Pref {
    fn has(&self, handle: u32) -> bool {
        match &self.body {
            Body::Fw(fw) => fw.has(handle),
            Body::U32(u32) => u32.has(handle),
            Body::Flow(flow) => flow.has(handle),
            Body::Matchall(all) => all.has(handle),
        }
    }

    fn set(&mut self, op: &FilterOp, owner: Owner<'_>, random: &mut RandomSource<'_>) -> Result<(), TcError> {
        let bound = |classid: Option<Handle>| classid.is_some_and(|class| (owner.has_class)(class));
        let actions = Actions::new(&op.actions, owner.now);
        match (&mut self.body, &op.params) {
            (Body::Fw(fw), Some(FilterParams::Fw(params))) => fw.add(op.handle, params, bound(params.classid), actions),
            // `fw` without words: the mark names the class.
            (Body::Fw(fw), None) if op.handle == 0 => fw.add(0, &FwParams::default(), false, actions),
            (Body::U32(u32), Some(FilterParams::U32(params))) if !params.keys.is_empty() || params.mark.is_some() => {
                u32.add(op.handle, params, bound(params.classid), actions)
            }
            (Body::U32(_), Some(FilterParams::U32(_)) | None) => {
                Err(TcError::new(Errno::Inval, "cls_u32: Selector not specified"))
            }
            (Body::Flow(flow), Some(FilterParams::Flow(params))) => {
                let timer = owner.wheel.arm(owner.now, params.perturb);
                flow.add(op.handle, params, owner.qdisc, timer, actions, random)
            }
            (Body::Matchall(all), Some(FilterParams::Matchall(params))) => {
                all.add(op.handle, params, bound(params.classid), actions)
            }
            _ => Err(TcError::bare(Errno::Inval)),
        }
    }

    fn change(&mut self, op: &FilterOp, owner: Owner<'_>) -> Result<(), TcError> {
        let bound = |classid: Option<Handle>| classid.is_some_and(|class| (owner.has_class)(class));
        let actions = Actions::new(&op.actions, owner.now);
        match (&mut self.body, &op.params) {
            (Body::Fw(fw), Some(FilterParams::Fw(params))) => {
                fw.change(op.handle, params, bound(params.classid), actions)
            }
            (Body::U32(u32), Some(FilterParams::U32(params))) => {
                u32.change(op.handle, params, bound(params.classid), actions)
            }
            (Body::Flow(flow), Some(FilterParams::Flow(params))) => {
                let timer = owner.wheel.arm(owner.now, params.perturb);
                flow.change(op.handle, params, owner.qdisc, timer, actions)
            }
            // It cannot be changed: the kernel says that it is there.
            (Body::Matchall(_), Some(FilterParams::Matchall(_))) => Err(TcError::bare(Errno::Exist)),
            _ => Err(TcError::bare(Errno::Inval)),
        }
    }
}

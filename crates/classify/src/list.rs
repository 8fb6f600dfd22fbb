//! The filters that hang on one qdisc or class.

use crate::actions::{Actions, Meter, Said, Told, Verdict};
use crate::pref::{Body, Making, Pref};
use crate::u32::{FIRST_TABLE, Tables, U32Listing};
use alloc::string::ToString;
use alloc::vec::Vec;
use tidegate_packet::{Draws, Handle, Mark, Pkt, Pool, Time, Timer, Wheel};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{Errno, FilterOp, FilterParams, TcError, U32Params, Verb};

/// The preference a filter gets when it names none and is alone.
const AUTO_PREF: u16 = 0xc000;
/// The lowest preference that automatic ones go down to.
const AUTO_FLOOR: u16 = 0x8000;
const LAST_TABLE: u32 = 0xfff;

/// How often one packet may have all filters asked anew (`reclassify`); then it is dropped, as the kernel does (6.1).
const MOST_RESTARTS: u32 = 16;

/// A question: which class for this packet?
pub struct Asked<'a> {
    /// Where the packet lives.
    pub pool: &'a mut Pool,
    /// The packet.
    pub pkt: &'a Pkt,
    /// What actions must know.
    pub meter: Meter,
    /// The machine's actions.
    pub actions: &'a mut Actions,
    /// Randomness.
    pub random: RandomSource<'a>,
    /// Bytes of the link header.
    pub link_header: u32,
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

    pub(crate) fn below(&mut self, n: u32) -> u32 {
        self.draws.below(n)
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
    tables: Tables,
    /// The number last given to a table of u32, also of one that is gone.
    last_table: u32,
}

impl FilterList {
    /// An empty list.
    pub const fn new() -> FilterList {
        FilterList { prefs: Vec::new(), tables: Tables::new(), last_table: 0 }
    }

    /// No filters at all?
    pub fn is_empty(&self) -> bool {
        self.prefs.is_empty()
    }

    /// What the first matching filter decides; `None` when none matches.
    ///
    /// A class may be [`Handle::NONE`] (a filter without classid), foreign, or not there: what that means is each qdisc's own.
    pub fn classify(&mut self, qdisc: Handle, asked: &mut Asked<'_>) -> Option<Verdict> {
        let mut chain = 0;
        for _ in 0..=MOST_RESTARTS {
            match self.ask(qdisc, chain, asked) {
                Said::No => return None,
                Said::Decided(verdict) => return Some(verdict),
                Said::Again => chain = 0,
                Said::Goto(next) => chain = next,
            }
        }
        Some(Verdict::Drop)
    }

    /// The class where a lone `fw` says that the mark is its name, so that nothing needs to be asked; `None`: it must be asked.
    #[inline]
    pub fn obvious(&self, mark: Mark, ethertype: u16, qdisc: Handle) -> Option<Handle> {
        match &self.prefs[..] {
            [Pref { protocol, chain: 0, body: Body::Fw(fw), .. }] if fw.is_bare() && *protocol == ethertype => {
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
    fn ask(&mut self, qdisc: Handle, chain: u32, asked: &mut Asked<'_>) -> Said {
        let ethertype = asked.pool.meta(asked.pkt).ethertype;
        let FilterList { prefs, tables, .. } = self;
        for pref in prefs {
            if pref.protocol != ethertype && pref.protocol != FilterOp::ALL || pref.chain != chain {
                continue;
            }
            let found = match &mut pref.body {
                Body::Fw(fw) => fw.classify(qdisc, asked),
                Body::U32(root) => tables.classify(*root, asked),
                Body::Flow(flow) => flow.classify(asked),
                Body::Matchall(all) => all.classify(asked),
                Body::Basic(basic) => basic.classify(asked),
                Body::Flower(flower) => flower.classify(asked),
            };
            if found != Said::No {
                return found;
            }
        }
        Said::No
    }

    /// Is a class held by a filter that was made when the class was there? Such a class cannot be deleted.
    pub fn binds(&self, class: Handle) -> bool {
        self.tables.binds(class) || self.prefs.iter().any(|pref| pref.body.get().is_some_and(|of| of.binds(class)))
    }

    /// Has it a u32 table of this number?
    pub fn has_table(&self, number: u32) -> bool {
        self.tables.has(number)
    }

    /// Counts the filters that lead to `class` as holding it, or no longer.
    pub fn rebind(&mut self, class: Handle, bound: bool) {
        self.tables.rebind(class, bound);
        self.prefs.iter_mut().filter_map(|pref| pref.body.get_mut()).for_each(|of| of.rebind(class, bound));
    }

    /// Shows the places in the machine's table that each filter's actions have.
    pub fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.tables.each_action(show);
        self.prefs.iter().filter_map(|pref| pref.body.get()).for_each(|of| of.each_action(show));
    }

    /// Carries out an operation.
    ///
    /// # Errors
    /// As the kernel refuses: unknown kind, wrong kind at that preference, exists already, not found.
    pub fn apply(
        &mut self,
        op: &FilterOp,
        owner: Owner<'_>,
        actions: &mut Actions,
        random: &mut RandomSource<'_>,
    ) -> Result<(), TcError> {
        match op.verb {
            Verb::Delete => self.delete(op),
            Verb::Add | Verb::Change | Verb::Replace => self.set(op, owner, actions, random),
            Verb::Link => Err(TcError::bare(Errno::OpNotSupp)),
        }
    }

    fn set(
        &mut self,
        op: &FilterOp,
        owner: Owner<'_>,
        actions: &mut Actions,
        random: &mut RandomSource<'_>,
    ) -> Result<(), TcError> {
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
            let body = self.new_body(kind, pref, owner)?;
            if kind == "flow" {
                random.first_flow_filter();
            }
            let mut new = Pref { pref, protocol: op.protocol, chain: op.chain, body };
            let free_table = self.number_for(op, owner);
            let mut with = Making { owner, actions, random, tables: &mut self.tables, free_table };
            if let Err(refused) = new.set(op, &mut with) {
                self.forget_root(&new.body);
                return Err(refused);
            }
            let at = self.prefs.partition_point(|p| (p.chain, p.pref) < (op.chain, pref));
            self.prefs.insert(at, new);
            return Ok(());
        };
        let free_table = self.number_for(op, owner);
        let pref = &mut self.prefs[at];
        if op.protocol != 0 && op.protocol != pref.protocol {
            return Err(TcError::new(Errno::Inval, "Filter with specified priority/protocol not found"));
        }
        if op.kind.as_deref().is_some_and(|kind| kind != pref.body.kind()) {
            return Err(TcError::new(Errno::Inval, "Specified filter kind does not match existing one"));
        }
        let exists = pref.has(op.handle, &mut self.tables);
        let mut with = Making { owner, actions, random, tables: &mut self.tables, free_table };
        match (exists, op.verb) {
            (true, Verb::Add) => Err(TcError::new(Errno::Exist, "Filter already exists")),
            (true, _) => pref.change(op, &mut with),
            (false, Verb::Change) => Err(NEEDS_CREATE),
            (false, _) => pref.set(op, &mut with),
        }
    }

    fn delete(&mut self, op: &FilterOp) -> Result<(), TcError> {
        if op.pref == 0 {
            if op.protocol != 0 || op.handle != 0 || op.kind.is_some() {
                return Err(TcError::new(Errno::NoEnt, "Cannot flush filters with protocol, handle or kind set"));
            }
            let (gone, stay) = core::mem::take(&mut self.prefs).into_iter().partition(|p| p.chain == op.chain);
            self.prefs = stay;
            let gone: Vec<Pref> = gone;
            gone.iter().for_each(|pref| self.forget_root(&pref.body));
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
            let gone = self.prefs.remove(at);
            self.forget_root(&gone.body);
            return Ok(());
        }
        let removed = match pref.body.get_mut() {
            Some(filters) => filters.remove(op.handle),
            None => self.tables.remove(op.handle)?,
        };
        if !removed {
            return Err(TcError::new(Errno::NoEnt, "Specified filter handle not found"));
        }
        if pref.body.get().map_or_else(|| self.tables.are_done(), |filters| filters.is_empty()) {
            let gone = self.prefs.remove(at);
            self.forget_root(&gone.body);
        }
        Ok(())
    }

    /// The number that a table of u32 gets if it names none.
    fn number_for(&mut self, op: &FilterOp, owner: Owner<'_>) -> Option<u32> {
        let Some(FilterParams::U32(U32Params { divisor: Some(_), .. })) = &op.params else { return None };
        let free = self.new_table(owner).filter(|_| op.handle >> 20 == 0)?;
        self.last_table = free;
        Some(free)
    }

    /// A preference is gone: so is its root table, if it is one of u32.
    fn forget_root(&mut self, body: &Body) {
        if let Body::U32(root) = body {
            self.tables.remove_root(*root);
        }
    }

    fn new_body(&mut self, kind: &str, pref: u16, owner: Owner<'_>) -> Result<Body, TcError> {
        if kind == "u32" {
            let table = self.new_table(owner).ok_or(TcError::bare(Errno::NoSpc))?;
            self.last_table = table;
            self.tables.add_root(pref, table);
            return Ok(Body::U32(table));
        }
        Body::new(kind).ok_or(TcError::new(Errno::NoEnt, "TC classifier not found"))
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
    pub fn u32_tables(&self, told: Told<'_>) -> Vec<U32Listing> {
        self.tables.listings(told)
    }

    /// As `tc filter show` lists them.
    ///
    /// `others`: the u32 tables of the qdisc's other lists. Tables are known to the qdisc as a whole, so those made for the same
    /// preference are listed wherever it is, the latest first.
    pub fn dump(&self, told: Told<'_>, dev: &str, parent: Handle, others: &[U32Listing], out: &mut Vec<FilterDump>) {
        let own = self.tables.listings(told);
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
            if let Some(filters) = pref.body.get() {
                filters.dump(told, &mut line);
                continue;
            }
            let mut tables: Vec<&U32Listing> = others.iter().chain(&own).filter(|t| t.pref == pref.pref).collect();
            tables.sort_by_key(|table| core::cmp::Reverse(table.order));
            tables.into_iter().flat_map(|t| t.entries.iter().cloned()).for_each(line);
        }
    }
}

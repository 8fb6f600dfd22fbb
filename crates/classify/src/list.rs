//! The filters that are attached to one qdisc or class.

use crate::actions::Actions;
use crate::context::{ClassifyContext, DumpContext};
use crate::pref::{Body, Making, Pref};
use crate::query::{FilterRandom, FilterResult, FilterVerdict, Owner};
use crate::u32::{Root, Tables};
use alloc::string::ToString;
use alloc::vec::Vec;
use tidegate_packet::{FwMark, Handle, Time, Timer, Wheel};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{Act, ChainOp, Control, Errno, FilterOp, FilterParams, TcError, U32Params, Verb};

/// The preference a filter gets when it names none and is alone.
const AUTO_PREF: u16 = 0xc000;
/// The lowest preference that automatic ones go down to.
const AUTO_FLOOR: u16 = 0x8000;

/// Whether a deletion without a preference is one of all filters: the kernel asks that before it looks for
/// the device's qdisc or for the block.
///
/// # Errors
/// It names a protocol, a handle or a kind.
pub fn flushes_all(op: &FilterOp) -> Result<(), TcError> {
    let flushes = op.verb == Verb::Delete && op.pref == 0;
    if flushes && (op.protocol != 0 || op.handle != 0 || op.kind.is_some()) {
        return Err(TcError::new(Errno::NoEnt, "Cannot flush filters with protocol, handle or kind set"));
    }
    Ok(())
}

const NO_CHAIN: TcError = TcError::new(Errno::Inval, "Cannot find specified filter chain");

/// How often classification of one packet may start again (`reclassify`); then it is dropped, as the kernel
/// does (6.1).
const MOST_RESTARTS: u32 = 16;

/// The chains that an action may send a packet to.
fn goes_to(act: &Act) -> impl Iterator<Item = u32> {
    act.controls().into_iter().filter_map(|control| match control {
        Control::Goto(chain) => Some(chain),
        _ => None,
    })
}

/// The filters of one qdisc or class, in the order in which they are evaluated.
///
/// The tables of u32 belong to the whole qdisc: its own list keeps them and lends them to a class's list
/// ([`FilterList::swap_tables`]) while that is evaluated or changed.
#[derive(Debug, Default)]
pub struct FilterList {
    prefs: Vec<Pref>,
    /// The chains that are there, oldest first: a filter makes its own, and those that its actions go to.
    chains: Vec<u32>,
    /// Those of them that were made on their own (`tc chain add`): they stay without filters.
    made: Vec<u32>,
    tables: Tables,
}

impl FilterList {
    /// An empty list.
    pub const fn new() -> FilterList {
        FilterList { prefs: Vec::new(), chains: Vec::new(), made: Vec::new(), tables: Tables::new() }
    }

    /// Does no packet meet a filter here? Packets begin at chain 0; other chains alone are as good as none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.prefs.iter().any(|pref| pref.chain == 0)
    }

    /// What the first matching filter decides; `None` when none matches.
    ///
    /// A class may be [`Handle::NONE`] (a filter without classid), foreign, or not there: what that means is
    /// each qdisc's own.
    pub fn classify(&mut self, qdisc: Handle, context: &mut ClassifyContext<'_>) -> Option<FilterVerdict> {
        let mut chain = 0;
        for _ in 0..=MOST_RESTARTS {
            match self.lookup(qdisc, chain, context) {
                FilterResult::No => return None,
                FilterResult::Decided(verdict) => return Some(verdict),
                FilterResult::Restart => chain = 0,
                FilterResult::Goto(next) => chain = next,
            }
        }
        Some(FilterVerdict::Drop)
    }

    /// The class that a mark names, where a lone `fw` filter maps marks to classes; `None`: the list must be
    /// evaluated.
    #[inline]
    pub fn obvious(&self, mark: FwMark, ethertype: u16, qdisc: Handle) -> Option<Handle> {
        match &self.prefs[..] {
            [Pref { protocol, chain: 0, body: Body::Fw(fw), .. }]
                if fw.is_bare() && *protocol == ethertype =>
            {
                fw.guess(mark, qdisc)
            }
            _ => None,
        }
    }

    /// The class that a firewall mark leads to, as far as that shows without evaluating a filter: a guess at
    /// the result of [`Self::classify`], for prefetching.
    #[inline]
    pub fn guess(&self, mark: FwMark, qdisc: Handle) -> Option<Handle> {
        match &self.prefs.first()?.body {
            Body::Fw(fw) => fw.guess(mark, qdisc),
            _ => None,
        }
    }

    #[inline]
    fn lookup(&mut self, qdisc: Handle, chain: u32, context: &mut ClassifyContext<'_>) -> FilterResult {
        let mut ethertype = context.pool.meta(context.pkt).ethertype;
        let FilterList { prefs, tables, .. } = self;
        for pref in prefs {
            if pref.protocol != ethertype && pref.protocol != FilterOp::ALL || pref.chain != chain {
                continue;
            }
            let found = match &mut pref.body {
                Body::Fw(fw) => fw.classify(qdisc, context),
                Body::U32(root) => tables.classify(*root, context),
                Body::Flow(flow) => flow.classify(context),
                Body::Matchall(all) => all.classify(context),
                Body::Basic(basic) => basic.classify(context),
                Body::Flower(flower) => flower.classify(context),
                // No packet here has a control group, and no route a realm.
                Body::Cgroup(_) | Body::Route(_) => FilterResult::No,
            };
            if found != FilterResult::No {
                return found;
            }
            // An action may have put a tag on it, or taken it off.
            ethertype = context.pool.meta(context.pkt).ethertype;
        }
        FilterResult::No
    }

    /// Is a class held by a filter that was made when the class was there? Such a class cannot be deleted.
    pub fn binds(&self, class: Handle) -> bool {
        self.tables.binds(class)
            || self.prefs.iter().any(|pref| pref.body.get().is_some_and(|of| of.binds(class)))
    }

    /// Whether a filter in the list of the class `holder` binds `class`; `of_qdisc`, which keeps the u32
    /// tables, is the list of its qdisc.
    pub fn binds_for(&self, holder: Handle, of_qdisc: &FilterList, class: Handle) -> bool {
        of_qdisc.tables.binds_for(holder, class) || self.binds(class)
    }

    /// Lends the tables of u32 to another list of the qdisc, or takes them back.
    pub fn swap_tables(&mut self, other: &mut FilterList) {
        core::mem::swap(&mut self.tables, &mut other.tables);
    }

    /// Takes away every filter, and the tables of u32 that go with them. The tables are there when it is
    /// called.
    pub fn clear(&mut self) {
        for pref in core::mem::take(&mut self.prefs) {
            self.forget_root(&pref.body);
        }
        self.made.clear();
    }

    /// Makes a chain, or deletes one with its filters.
    ///
    /// # Errors
    /// As the kernel refuses: there already, not there, beyond the last number.
    pub fn apply_chain(&mut self, op: &ChainOp, actions: &Actions) -> Result<(), TcError> {
        const LAST: u32 = 0x0fff_ffff;
        if op.chain > LAST {
            return Err(TcError::new(Errno::Inval, "Specified chain index exceeds upper limit"));
        }
        match (op.add, self.has_chain(op.chain)) {
            (true, true) => return Err(TcError::new(Errno::Exist, "Filter chain already exists")),
            (false, false) => return Err(NO_CHAIN),
            (true, false) => {
                self.made.push(op.chain);
                self.chains.retain(|chain| *chain != op.chain);
                self.chains.push(op.chain);
            }
            (false, true) => {
                self.made.retain(|chain| *chain != op.chain);
                self.flush(op.chain);
                self.forget_chains(actions);
            }
        }
        Ok(())
    }

    /// The chains that a listing shows, oldest first: those with filters, and those made on their own.
    pub fn chains(&self) -> Vec<u32> {
        self.chains.iter().copied().filter(|chain| self.has_chain(*chain)).collect()
    }

    fn has_chain(&self, chain: u32) -> bool {
        self.made.contains(&chain) || self.prefs.iter().any(|pref| pref.chain == chain)
    }

    /// Deletes the filters of a chain.
    fn flush(&mut self, chain: u32) {
        let all = core::mem::take(&mut self.prefs);
        let (gone, sojourn): (Vec<Pref>, Vec<Pref>) = all.into_iter().partition(|pref| pref.chain == chain);
        self.prefs = sojourn;
        gone.iter().for_each(|pref| self.forget_root(&pref.body));
    }

    /// Counts the filters that lead to `class` as holding it, or no longer.
    pub fn rebind(&mut self, class: Handle, bound: bool) {
        for pref in &mut self.prefs {
            match pref.body.get_mut() {
                Some(filters) => filters.rebind(class, bound),
                None => self.tables.rebind(pref.pref, class, bound),
            }
        }
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
        random: &mut FilterRandom<'_>,
    ) -> Result<(), TcError> {
        match op.verb {
            Verb::Delete => {
                let deleted = self.delete(op);
                self.forget_chains(actions);
                deleted
            }
            Verb::Add | Verb::Change | Verb::Replace => self.set(op, owner, actions, random),
            Verb::Link => Err(TcError::bare(Errno::OpNotSupp)),
        }
    }

    fn set(
        &mut self,
        op: &FilterOp,
        owner: Owner<'_>,
        actions: &mut Actions,
        random: &mut FilterRandom<'_>,
    ) -> Result<(), TcError> {
        const NEEDS_CREATE: TcError =
            TcError::new(Errno::NoEnt, "Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter");
        const EXISTS: TcError = TcError::new(Errno::Exist, "Filter already exists");
        let create = op.verb != Verb::Change;
        if op.pref == 0 && !create {
            return Err(TcError::new(Errno::NoEnt, "Invalid filter command with priority of zero"));
        }
        let found = if op.pref == 0 {
            None
        } else {
            self.prefs.iter().position(|p| p.pref == op.pref && p.chain == op.chain)
        };
        let Some(at) = found else {
            let (Some(kind), true) = (op.kind.as_deref(), op.protocol != 0) else {
                return Err(TcError::new(Errno::Inval, "Filter kind and protocol must be specified"));
            };
            if !create {
                return Err(NEEDS_CREATE);
            }
            let pref = if op.pref == 0 { self.auto_pref(op.chain) } else { op.pref };
            let body = self.new_body(kind, pref, owner)?;
            if kind == "flow" {
                random.first_flow_filter();
            }
            let mut new = Pref { pref, protocol: op.protocol, chain: op.chain, body };
            let free_table = self.number_for(op);
            // u32's tables are the whole qdisc's: one of another preference, or of another class, may go by
            // this handle.
            let exists = new.has(op.handle, &mut self.tables);
            let mut with = Making { owner, actions, random, tables: &mut self.tables, free_table };
            let made = match (exists, op.verb) {
                (true, Verb::Add) => Err(EXISTS),
                (true, _) => new.change(op, &mut with),
                (false, _) => new.set(op, &mut with),
            };
            if let Err(refused) = made {
                self.forget_root(&new.body);
                return Err(refused);
            }
            let at = self.prefs.partition_point(|p| (p.chain, p.pref) < (op.chain, pref));
            self.prefs.insert(at, new);
            self.note_chains(op);
            return Ok(());
        };
        let free_table = self.number_for(op);
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
            (true, Verb::Add) => return Err(EXISTS),
            (true, _) => pref.change(op, &mut with)?,
            (false, Verb::Change) => return Err(NEEDS_CREATE),
            (false, _) => pref.set(op, &mut with)?,
        }
        self.note_chains(op);
        Ok(())
    }

    /// Notes the chains that a filter makes. Those without filters and without a `goto` to them are gone, and
    /// are the latest if they come again; the target of a `goto` exists as long as any filter does.
    fn note_chains(&mut self, op: &FilterOp) {
        let FilterList { prefs, chains, made, .. } = self;
        chains.retain(|chain| {
            made.contains(chain) || prefs.iter().any(|p| p.chain == *chain) || prefs.len() > 1
        });
        let leads = op.actions.iter().flat_map(|action| goes_to(&action.act));
        for chain in core::iter::once(op.chain).chain(leads) {
            if !chains.contains(&chain) {
                chains.push(chain);
            }
        }
    }

    /// Filters are gone: so are the chains without any that no filter's action goes to. They are the latest
    /// if they come again.
    fn forget_chains(&mut self, actions: &Actions) {
        let mut redirected = Vec::new();
        self.each_action(&mut |places| {
            redirected.extend(places.iter().filter_map(|place| actions.act_at(*place)).flat_map(goes_to))
        });
        let mut chains = core::mem::take(&mut self.chains);
        chains.retain(|chain| redirected.contains(chain) || self.has_chain(*chain));
        self.chains = chains;
    }

    fn delete(&mut self, op: &FilterOp) -> Result<(), TcError> {
        if op.pref == 0 {
            flushes_all(op)?;
            self.flush(op.chain);
            return Ok(());
        }
        if !self.has_chain(op.chain) {
            return Err(NO_CHAIN);
        }
        let at = self
            .prefs
            .iter()
            .position(|p| {
                p.pref == op.pref && p.chain == op.chain && (op.protocol == 0 || p.protocol == op.protocol)
            })
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
    fn number_for(&mut self, op: &FilterOp) -> Option<u32> {
        let makes_table = matches!(&op.params, Some(FilterParams::U32(U32Params { divisor: Some(_), .. })));
        if makes_table && op.handle >> 20 == 0 { self.tables.take_number() } else { None }
    }

    /// A preference is gone: so is its root table, if it is one of u32.
    fn forget_root(&mut self, body: &Body) {
        if let Body::U32(root) = body {
            self.tables.remove_root(*root);
        }
    }

    fn new_body(&mut self, kind: &str, pref: u16, owner: Owner<'_>) -> Result<Body, TcError> {
        if kind == "u32" {
            let table = self.tables.take_number().ok_or(TcError::bare(Errno::NoSpc))?;
            self.tables.add_root(Root { holder: owner.holder, pref, table });
            return Ok(Body::U32(table));
        }
        Body::new(kind).ok_or(TcError::new(Errno::NoEnt, "TC classifier not found"))
    }

    fn auto_pref(&self, chain: u32) -> u16 {
        let lowest =
            self.prefs.iter().filter(|p| p.chain == chain).map(|p| p.pref).find(|pref| *pref >= AUTO_FLOOR);
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
    pub fn perturb(&mut self, due: Timer, now: Time, wheel: &Wheel, random: &mut FilterRandom<'_>) {
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

    /// As `tc filter show` lists them.
    ///
    /// u32's tables are known to the qdisc as a whole, so those made for a preference are listed wherever it
    /// is, the latest first. `only`: those made in the list of this holder.
    pub fn dump(
        &self,
        context: DumpContext<'_>,
        dev: &str,
        parent: Handle,
        only: Option<Handle>,
        out: &mut Vec<FilterDump>,
    ) {
        let by_chain =
            self.chains.iter().flat_map(|chain| self.prefs.iter().filter(|pref| pref.chain == *chain));
        for pref in by_chain {
            let mut line = |entry| {
                out.push(FilterDump {
                    dev: dev.to_string(),
                    block: 0,
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
                filters.dump(context, &mut line);
                continue;
            }
            self.tables.dump(pref.pref, only, context).into_iter().for_each(line);
        }
    }
}

//! u32: by words of the header, in hash tables that refer to each other (tc-u32(8)).
//!
//! Tables belong to a qdisc as a whole, whatever list of filters and preference they were made for. A filter
//! that matches may refer to a table: its hash picks the bucket, its offset gives the beginning of the header
//! that the filters there match. Where none of them matches, the search continues behind the filter that
//! referred to them.

use crate::context::{Bound, ClassifyContext, DumpContext};
use crate::query::FilterResult;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterEntry, U32Hits};
use tidegate_policy::{Errno, FilterParams, TcError, U32Params};

/// The first table's number; each preference gets the next free one.
const FIRST_TABLE: u32 = 0x800;
const LAST_TABLE: u32 = 0xfff;
/// The first node's number when none is given.
const FIRST_NODE: u32 = 0x800;
/// Tables that may refer to each other in a row.
const DEEPEST: usize = 8;

/// All tables of a qdisc.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    all: Vec<Table>,
    /// The number last given to one, also of one that is gone (recorded: answers/u32-table-numbers-go-on).
    last: u32,
}

/// Where a preference is: its list, its number and its root table.
#[derive(Clone, Copy)]
pub(crate) struct Root {
    /// The qdisc or class whose list it is in.
    pub(crate) holder: Handle,
    pub(crate) pref: u16,
    pub(crate) table: u32,
}

#[derive(Debug)]
struct Table {
    number: u32,
    /// The qdisc or class whose list it was made in.
    holder: Handle,
    /// The preference it was made for.
    pref: u16,
    root: bool,
    /// Later ones are listed first.
    order: u64,
    /// In each, nodes in ascending order of number.
    buckets: Vec<Vec<Node>>,
}

#[derive(Debug)]
struct Node {
    number: u32,
    params: U32Params,
    /// The qdisc or class whose list it was made in.
    holder: Handle,
    bound: bool,
    hits: U32Hits,
    actions: Bound,
}

/// A node, and the base of its offsets while it is evaluated.
#[derive(Clone, Copy)]
struct U32Cursor {
    table: usize,
    bucket: usize,
    node: usize,
    base: i32,
    next: i32,
}

/// What a node's comparisons come to.
enum Compared {
    Matches,
    Fails,
    /// The packet ends before the word.
    Beyond,
}

impl Table {
    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.buckets.iter().flatten()
    }
    fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.buckets.iter_mut().flatten()
    }
    fn is_empty(&self) -> bool {
        self.buckets.iter().all(Vec::is_empty)
    }
}

impl Tables {
    pub(crate) const fn new() -> Tables {
        Tables { all: Vec::new(), last: 0 }
    }

    /// Takes a number for a table: the next after the last one given, as long as there are tables at all.
    pub(crate) fn take_number(&mut self) -> Option<u32> {
        let mut all = FIRST_TABLE..=LAST_TABLE;
        let next = if all.clone().any(|table| self.has(table)) { self.last + 1 } else { FIRST_TABLE };
        let mut behind = next.max(FIRST_TABLE)..=LAST_TABLE;
        let free = behind.find(|table| !self.has(*table)).or_else(|| all.find(|table| !self.has(*table)))?;
        self.last = free;
        Some(free)
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        self.position(number).is_some()
    }

    fn position(&self, number: u32) -> Option<usize> {
        self.all.iter().position(|table| table.number == number)
    }

    /// Shows a packet to the filters of a preference, by its root table.
    pub(crate) fn classify(&mut self, root: u32, context: &mut ClassifyContext<'_>) -> FilterResult {
        let Some(table) = self.position(root) else { return FilterResult::No };
        let mut at = U32Cursor { table, bucket: 0, node: 0, base: 0, next: 0 };
        let mut from = [at; DEEPEST];
        let mut depth = 0;
        loop {
            let Some(node) = self.all[at.table].buckets[at.bucket].get_mut(at.node) else {
                if depth == 0 {
                    return FilterResult::No;
                }
                // Nothing there matched: the filter that referred to the table decides, if it names a class.
                depth -= 1;
                at = from[depth];
                let node = &mut self.all[at.table].buckets[at.bucket][at.node];
                match node.decide(context) {
                    FilterResult::No => at.node += 1,
                    said => return said,
                }
                continue;
            };
            match node.compare(context, at) {
                Compared::Beyond => return FilterResult::No,
                Compared::Fails => at.node += 1,
                Compared::Matches => match node.params.link {
                    None => match node.decide(context) {
                        FilterResult::No => at.node += 1,
                        said => return said,
                    },
                    Some(link) => {
                        let Some(next) = self.follow(link, at, context).filter(|_| depth < DEEPEST) else {
                            return FilterResult::No;
                        };
                        from[depth] = at;
                        depth += 1;
                        at = next;
                    }
                },
            }
        }
    }

    /// The first place in the bucket that a node refers to; `None`: the packet ends before what it must read.
    fn follow(&self, link: u32, at: U32Cursor, context: &ClassifyContext<'_>) -> Option<U32Cursor> {
        let params = &self.all[at.table].buckets[at.bucket][at.node].params;
        let table = self.position(link)?;
        let wrap = self.all[table].buckets.len() - 1;
        let (mut base, mut next) = (at.base, at.next);
        let mut bucket = 0;
        if wrap > 0 {
            // Without a hash the bits of no word pick the first bucket.
            let (mask, offset) = params.hash.unwrap_or((0, 0));
            let word = word(context, base + offset)?;
            bucket = ((word & mask).checked_shr(mask.trailing_zeros()).unwrap_or(0)) as usize & wrap;
        }
        let offset = &params.offset;
        if offset.plus != 0 || offset.field.is_some() {
            next = i32::from(offset.plus) + 3;
            if let Some(field) = offset.field {
                let half = word(context, base + field.at)? >> 16;
                next += (half & u32::from(field.mask)).checked_shr(field.shift.into()).unwrap_or(0) as i32;
            }
            next &= !3;
        }
        if offset.eat {
            base += next;
            next = 0;
        }
        // Beyond the packet's end a table counts as empty (recorded: answers-filters/u32-far).
        let before = i64::from(context.link_header + context.pool.head(context.pkt).tags_len());
        let is_inside = i64::from(base) + before < i64::from(context.pool.meta(context.pkt).frame_len);
        let node = if is_inside { 0 } else { usize::MAX };
        Some(U32Cursor { table, bucket, node, base, next })
    }

    /// The root table of a new preference.
    pub(crate) fn add_root(&mut self, Root { holder, pref, table: number }: Root) {
        let order = u64::from(number) << 16;
        self.all.push(Table { number, holder, pref, root: true, order, buckets: vec![Vec::new()] });
    }

    /// `handle`: as tc gives it, `table(12) bucket(8) node(12)`; zero parts are chosen here. `free`: the
    /// number for a table that has none.
    pub(crate) fn add(
        &mut self,
        root: Root,
        handle: u32,
        params: &U32Params,
        (bound, actions): (bool, Bound),
        free: Option<u32>,
    ) -> Result<(), TcError> {
        if let Some(divisor) = params.divisor {
            return self.add_table(root, handle, divisor, free);
        }
        let (number, bucket) = match params.table {
            0 => (root.table, 0),
            table => (table >> 20, (table >> 12 & 0xff) as usize),
        };
        let refuse = |message: &'static str| Err(TcError::new(Errno::Inval, message));
        let Some(at) = self.position(number) else {
            return refuse("cls_u32: Specified hash table not found");
        };
        let Some(nodes) = self.all[at].buckets.get(bucket) else {
            return refuse("cls_u32: Specified hash table buckets exceed configured value");
        };
        if handle >> 20 != 0 && handle >> 20 != number {
            return refuse("cls_u32: Handle specified hash table address mismatch");
        }
        let node = match handle & 0xfff {
            0 => free_number(nodes).ok_or(TcError::bare(Errno::NoSpc))?,
            // Asked of Linux 6.1: only a handle with its table finds the filter that is there.
            taken if nodes.iter().any(|node| node.number == taken) => {
                return Err(TcError::bare(Errno::NoSpc));
            }
            given => given,
        };
        if params.keys.is_empty() && params.mark.is_none() {
            return refuse("cls_u32: Selector not specified");
        }
        self.must_link(params.link)?;
        let hits = U32Hits { keys: vec![0; params.keys.len()], ..U32Hits::default() };
        let nodes = &mut self.all[at].buckets[bucket];
        let place = nodes.partition_point(|n| n.number < node);
        nodes.insert(
            place,
            Node { number: node, params: params.clone(), holder: root.holder, bound, hits, actions },
        );
        Ok(())
    }

    fn add_table(
        &mut self,
        Root { holder, pref, .. }: Root,
        handle: u32,
        divisor: u32,
        free: Option<u32>,
    ) -> Result<(), TcError> {
        if handle & 0xf_ffff != 0 {
            return Err(TcError::new(Errno::Inval, "cls_u32: Divisor can only be used on a hash table"));
        }
        let latest = self.all.iter().map(|table| table.order).max().unwrap_or(0);
        let (number, order) = match handle >> 20 {
            0 => {
                let number = free.ok_or(TcError::bare(Errno::NoSpc))?;
                (number, u64::from(number) << 16)
            }
            given => (given, latest + 1),
        };
        let buckets = (0..divisor).map(|_| Vec::new()).collect();
        self.all.push(Table { number, holder, pref, root: false, order, buckets });
        Ok(())
    }

    fn must_link(&self, link: Option<u32>) -> Result<(), TcError> {
        let Some(link) = link else { return Ok(()) };
        match self.position(link) {
            None => Err(TcError::new(Errno::Inval, "cls_u32: Link hash table not found")),
            Some(at) if self.all[at].root => {
                Err(TcError::new(Errno::Inval, "cls_u32: Not linking to root node"))
            }
            Some(_) => Ok(()),
        }
    }

    pub(crate) fn change(
        &mut self,
        handle: u32,
        params: &U32Params,
        holder: Handle,
        (bound, actions): (bool, Bound),
    ) -> Result<(), TcError> {
        self.must_link(params.link)?;
        if handle & 0xfff == 0 {
            return Err(TcError::new(Errno::Inval, "cls_u32: Key node id cannot be zero"));
        }
        let node = self.node_mut(handle).ok_or(TcError::bare(Errno::Inval))?;
        if node.params.skip_hw != params.skip_hw {
            return Err(TcError::new(Errno::Inval, "cls_u32: Key node flags do not match passed flags"));
        }
        // The keys stay, whatever the change gives.
        if params.classid.is_some() {
            node.params.classid = params.classid;
            (node.holder, node.bound) = (holder, bound);
        }
        if params.link.is_some() {
            node.params.link = params.link;
        }
        if params.indev.is_some() {
            node.params.indev.clone_from(&params.indev);
        }
        node.actions = actions;
        Ok(())
    }

    fn node_mut(&mut self, handle: u32) -> Option<&mut Node> {
        let at = self.position(handle >> 20)?;
        let bucket = self.all[at].buckets.get_mut((handle >> 12 & 0xff) as usize)?;
        bucket.iter_mut().find(|node| node.number == handle & 0xfff)
    }

    /// Is there a node, or a table, of this handle?
    pub(crate) fn has_handle(&mut self, handle: u32) -> bool {
        match handle & 0xf_ffff {
            0 => self.has(handle >> 20),
            _ => self.node_mut(handle).is_some(),
        }
    }

    /// Takes a node or a table away; false: it is not there.
    pub(crate) fn remove(&mut self, handle: u32) -> Result<bool, TcError> {
        let Some(at) = self.position(handle >> 20) else { return Ok(false) };
        if handle & 0xf_ffff != 0 {
            let Some(bucket) = self.all[at].buckets.get_mut((handle >> 12 & 0xff) as usize) else {
                return Ok(false);
            };
            let before = bucket.len();
            bucket.retain(|node| node.number != handle & 0xfff);
            return Ok(bucket.len() < before);
        }
        if self.all[at].root {
            return Err(TcError::new(Errno::Inval, "cls_u32: Not allowed to delete root node"));
        }
        if self.all.iter().flat_map(Table::nodes).any(|node| node.params.link == Some(handle >> 20)) {
            return Err(TcError::new(Errno::Busy, "cls_u32: Can not delete in-use filter"));
        }
        self.all.remove(at);
        Ok(true)
    }

    /// A preference is gone, and with it its root table; with the last one all others too.
    pub(crate) fn remove_root(&mut self, root: u32) {
        self.all.retain(|table| table.number != root);
        if self.all.iter().all(|table| !table.root) {
            self.all.clear();
        }
    }

    /// Is there one preference only in the whole qdisc, and no filter in any table?
    pub(crate) fn are_done(&self) -> bool {
        self.all.iter().filter(|table| table.root).count() <= 1 && self.all.iter().all(Table::is_empty)
    }

    pub(crate) fn binds(&self, class: Handle) -> bool {
        self.all.iter().flat_map(Table::nodes).any(|node| node.pins_class(class))
    }

    /// Whether a node made in the list of `holder` binds `class`.
    pub(crate) fn binds_for(&self, holder: Handle, class: Handle) -> bool {
        self.all.iter().flat_map(Table::nodes).any(|node| node.holder == holder && node.pins_class(class))
    }

    /// Nodes are gone through by preference, whatever list made them.
    pub(crate) fn rebind(&mut self, pref: u16, class: Handle, bound: bool) {
        let nodes = self.all.iter_mut().filter(|table| table.pref == pref).flat_map(Table::nodes_mut);
        nodes.filter(|node| node.params.classid == Some(class)).for_each(|node| node.bound = bound);
    }

    pub(crate) fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.all.iter().flat_map(Table::nodes).for_each(|node| show(node.actions.places()));
    }

    /// The tables made for a preference and their nodes, as a dump shows them: the latest first. `only`:
    /// those made in this list.
    pub(crate) fn dump(&self, pref: u16, only: Option<Handle>, context: DumpContext<'_>) -> Vec<FilterEntry> {
        let mine = |table: &&Table| table.pref == pref && only.is_none_or(|holder| table.holder == holder);
        let mut tables: Vec<&Table> = self.all.iter().filter(mine).collect();
        tables.sort_by_key(|table| core::cmp::Reverse(table.order));
        tables.into_iter().flat_map(|table| table.dump(context)).collect()
    }
}

impl Table {
    fn dump(&self, context: DumpContext<'_>) -> Vec<FilterEntry> {
        let mut entries =
            vec![FilterEntry::U32Table { table: self.number, divisor: self.buckets.len() as u32 }];
        for (bucket, nodes) in (0..).zip(&self.buckets) {
            let place: u32 = self.number << 20 | bucket << 12;
            entries.extend(nodes.iter().map(|node| FilterEntry::Filter {
                handle: place | node.number,
                params: FilterParams::U32(U32Params {
                    table: place,
                    // The kernel lists no mark where no bit of it is compared.
                    mark: node.params.mark.filter(|(value, mask)| value | mask != 0),
                    ..node.params.clone()
                }),
                hits: Some(node.hits.clone()),
                actions: node.actions.dump(context),
            }));
        }
        entries
    }
}

impl Node {
    /// Does it hold a class that was there when it was made?
    fn pins_class(&self, class: Handle) -> bool {
        self.bound && self.params.classid == Some(class)
    }

    /// Do mark and words hold?
    fn compare(&mut self, context: &ClassifyContext<'_>, at: U32Cursor) -> Compared {
        self.hits.lookups += 1;
        if let Some((value, mask)) = self.params.mark {
            if context.pool.meta(context.pkt).mark.0 & mask != value {
                return Compared::Fails;
            }
            self.hits.mark += 1;
        }
        for (key, hits) in self.params.keys.iter().zip(&mut self.hits.keys) {
            // A word beyond the packet ends the search in this preference.
            let Some(word) = word(context, at.base + key.offset + (at.next & key.offset_mask)) else {
                return Compared::Beyond;
            };
            if (word ^ key.value) & key.mask != 0 {
                return Compared::Fails;
            }
            *hits += 1;
        }
        Compared::Matches
    }

    /// The result for a packet that matches. A node that neither names a class nor has actions only counts.
    fn decide(&mut self, context: &mut ClassifyContext<'_>) -> FilterResult {
        if self.params.indev.as_ref().is_some_and(|indev| !indev.is(context.pool.meta(context.pkt).came_in)) {
            return FilterResult::No;
        }
        if self.params.classid.is_none() && self.actions.is_empty() {
            return FilterResult::No;
        }
        self.hits.matched += 1;
        self.actions.run(self.params.classid.unwrap_or(Handle::NONE), context)
    }
}

/// The lowest free number from [`FIRST_NODE`] on, else below it. Nodes are in ascending order of number.
fn free_number(nodes: &[Node]) -> Option<u32> {
    let (below, above) = nodes.split_at(nodes.partition_point(|node| node.number < FIRST_NODE));
    let upper = first_gap(above, FIRST_NODE);
    if upper <= 0xfff { Some(upper) } else { Some(first_gap(below, 1)).filter(|number| *number < FIRST_NODE) }
}

/// The first number that nodes, which begin with `first` or later, leave out: where a node's number is ahead
/// of its place. A list of thousands is made one by one, so it is halved, not walked.
fn first_gap(nodes: &[Node], first: u32) -> u32 {
    let (mut gapless, mut beyond) = (0, nodes.len());
    while gapless < beyond {
        let middle = gapless.midpoint(beyond);
        if nodes[middle].number == first + middle as u32 { gapless = middle + 1 } else { beyond = middle }
    }
    first + gapless as u32
}

/// A word of the packet. The header's bytes are as the packet came; its DS field may have been rewritten
/// since.
fn word(context: &ClassifyContext<'_>, offset: i32) -> Option<u32> {
    match context.pool.head(context.pkt).word(offset) {
        Some(word) if offset == 0 => Some(with_dsfield(word, context.pool.meta(context.pkt).dsfield)),
        None => word_beyond(context, offset),
        found => found,
    }
}

/// A word that is not among the bytes kept of a packet, or not wholly: the others count as zero, as far as
/// the packet goes.
#[cold]
fn word_beyond(context: &ClassifyContext<'_>, offset: i32) -> Option<u32> {
    let (head, meta) = (context.pool.head(context.pkt), context.pool.meta(context.pkt));
    let before = i64::from(context.link_header + head.tags_len());
    if offset < 0 || i64::from(offset) + 4 + before > i64::from(meta.frame_len) {
        return None;
    }
    let bytes = core::array::from_fn(|at| head.byte_at(offset.saturating_add(at as i32)).unwrap_or(0));
    Some(u32::from_be_bytes(bytes))
}

/// The first word of a network header with the present DS field in it.
pub(crate) fn with_dsfield(word: u32, dsfield: u8) -> u32 {
    let ds = u32::from(dsfield);
    match word >> 28 {
        4 => word & 0xff00_ffff | ds << 16,
        6 => word & 0xf00f_ffff | ds << 20,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_numbers_are_the_lowest_as_a_walk_finds_them() {
        let node = |number| Node {
            number,
            params: U32Params::default(),
            holder: Handle::NONE,
            bound: false,
            hits: U32Hits::default(),
            actions: Bound::default(),
        };
        let walked = |nodes: &[Node]| {
            (FIRST_NODE..=0xfff).chain(1..FIRST_NODE).find(|n| nodes.iter().all(|node| node.number != *n))
        };
        let full = || (1..=0xfff).map(node);
        let mut lists: Vec<Vec<Node>> = vec![vec![], full().collect(), full().take(5).collect()];
        for gap in [1, 2, 0x7ff, FIRST_NODE, FIRST_NODE + 1, 0xffe, 0xfff] {
            lists.push(full().filter(|node| node.number != gap).collect());
            lists.push(full().filter(|node| node.number != gap && node.number % 7 != 3).collect());
            lists.push(full().filter(|node| node.number >= FIRST_NODE && node.number != gap).collect());
        }
        for nodes in lists {
            assert_eq!(free_number(&nodes), walked(&nodes), "{} nodes", nodes.len());
        }
    }
}

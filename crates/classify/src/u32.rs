//! u32: by words of the header (tc-u32(8)); so far the plain form, one root table without links.

use crate::actions::{Bound, Said, Told};
use crate::list::Asked;
use crate::pref::Filters;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterEntry, U32Hits};
use tidegate_policy::{Errno, FilterParams, TcError, U32Params};

/// The first table's number; each preference gets the next free one.
pub(crate) const FIRST_TABLE: u32 = 0x800;
/// The first node's number when none is given.
const FIRST_NODE: u32 = 0x800;

/// A u32 table with its nodes, as listings show it.
#[derive(Clone, Debug)]
pub struct U32Listing {
    /// The preference it was made for.
    pub pref: u16,
    pub(crate) table: u32,
    pub(crate) entries: Vec<FilterEntry>,
}

/// The u32 filters of one preference.
#[derive(Debug)]
pub(crate) struct U32 {
    /// The root table's number.
    pub(crate) table: u32,
    /// In ascending order of node number.
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    number: u32,
    params: U32Params,
    bound: bool,
    hits: U32Hits,
    actions: Bound,
}

impl U32 {
    pub(crate) fn new(table: u32) -> U32 {
        U32 { table, nodes: Vec::new() }
    }

    pub(crate) fn classify(&mut self, asked: &mut Asked<'_>) -> Said {
        'nodes: for node in &mut self.nodes {
            let (head, meta) = (asked.pool.head(asked.pkt), asked.pool.meta(asked.pkt));
            let (dsfield, mark) = (meta.dsfield, meta.mark);
            node.hits.asked += 1;
            if let Some((value, mask)) = node.params.mark {
                if mark.0 & mask != value {
                    continue;
                }
                node.hits.mark += 1;
            }
            for (key, hits) in node.params.keys.iter().zip(&mut node.hits.keys) {
                // A word beyond the packet ends the search in this preference.
                let Some(mut word) = head.word(key.offset) else { return Said::No };
                if key.offset == 0 {
                    // The header's octets are as the packet came; its DS field may have been rewritten since.
                    word = with_dsfield(word, dsfield);
                }
                if (word ^ key.value) & key.mask != 0 {
                    continue 'nodes;
                }
                *hits += 1;
            }
            // A node that neither names a class nor does anything only counts.
            if node.params.classid.is_none() && node.actions.is_empty() {
                continue;
            }
            node.hits.matched += 1;
            match node.actions.run(node.params.classid.unwrap_or(Handle::NONE), asked) {
                Said::No => {}
                said => return said,
            }
        }
        Said::No
    }

    /// `handle`: as tc gives it, `table(12) bucket(8) node(12)`; zero parts are chosen here.
    pub(crate) fn add(&mut self, handle: u32, params: &U32Params, bound: bool, actions: Bound) -> Result<(), TcError> {
        let table = handle >> 20;
        if table != 0 && table != self.table {
            return Err(TcError::new(Errno::Inval, "Handle specified hash table address mismatch"));
        }
        let number = match handle & 0xfff {
            0 => self.free_number().ok_or(TcError::bare(Errno::NoSpc))?,
            given => given,
        };
        let hits = U32Hits { keys: vec![0; params.keys.len()], ..U32Hits::default() };
        let at = self.nodes.partition_point(|n| n.number < number);
        self.nodes.insert(at, Node { number, params: params.clone(), bound, hits, actions });
        Ok(())
    }

    pub(crate) fn change(
        &mut self,
        handle: u32,
        params: &U32Params,
        bound: bool,
        actions: Bound,
    ) -> Result<(), TcError> {
        let node = self.nodes.iter_mut().find(|n| n.number == handle & 0xfff).ok_or(TcError::bare(Errno::NoEnt))?;
        if params.keys != node.params.keys {
            return Err(TcError::bare(Errno::Inval));
        }
        if params.classid.is_some() {
            node.params.classid = params.classid;
            node.bound = bound;
        }
        node.actions.take_over(actions);
        Ok(())
    }

    /// The table and its nodes, as a dump shows them.
    pub(crate) fn listing(&self, pref: u16, told: Told<'_>) -> U32Listing {
        let mut entries = vec![FilterEntry::U32Table { table: self.table, divisor: 1 }];
        entries.extend(self.nodes.iter().map(|node| FilterEntry::Filter {
            handle: self.handle(node),
            params: FilterParams::U32(U32Params { table: self.table, ..node.params.clone() }),
            hits: Some(node.hits.clone()),
            actions: node.actions.dump(told),
        }));
        U32Listing { pref, table: self.table, entries }
    }

    /// The full handle of a node, as a dump shows it.
    fn handle(&self, node: &Node) -> u32 {
        self.table << 20 | node.number
    }

    fn free_number(&self) -> Option<u32> {
        (FIRST_NODE..=0xfff).chain(1..FIRST_NODE).find(|n| self.nodes.iter().all(|node| node.number != *n))
    }
}

impl Filters for U32 {
    fn kind(&self) -> &'static str {
        "u32"
    }
    fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
    fn has(&self, handle: u32) -> bool {
        handle & 0xfff != 0 && self.nodes.iter().any(|n| n.number == handle & 0xfff)
    }
    fn remove(&mut self, handle: u32) -> bool {
        let before = self.nodes.len();
        self.nodes.retain(|n| n.number != handle & 0xfff);
        self.nodes.len() < before
    }
    fn binds(&self, class: Handle) -> bool {
        self.nodes.iter().any(|node| node.bound && node.params.classid == Some(class))
    }
    fn rebind(&mut self, class: Handle, bound: bool) {
        for node in self.nodes.iter_mut().filter(|node| node.params.classid == Some(class)) {
            node.bound = bound;
        }
    }
    fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.nodes.iter().for_each(|node| show(node.actions.places()));
    }
    /// The list tells of u32's tables itself, because they are known to the whole qdisc.
    fn dump(&self, told: Told<'_>, line: &mut dyn FnMut(FilterEntry)) {
        self.listing(0, told).entries.into_iter().for_each(line);
    }
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

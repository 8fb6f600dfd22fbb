//! Shared blocks: filter lists that several hooks of a machine have in common (`tc … ingress_block N`).
//!
//! A packet that meets any of these hooks is shown the same filters, with the same counters and actions. A
//! block is made by the first hook that names it and ends with the last.

use crate::list::FilterList;
use alloc::collections::BTreeMap;

/// The shared blocks of a machine, by number.
#[derive(Debug, Default)]
pub struct Blocks {
    blocks: BTreeMap<u32, Block>,
}

#[derive(Debug, Default)]
struct Block {
    filters: FilterList,
    /// The hooks that have it.
    users: u32,
}

impl Blocks {
    /// A hook begins to use a block; number 0 is none.
    pub fn join(&mut self, number: u32) {
        if number != 0 {
            self.blocks.entry(number).or_default().users += 1;
        }
    }

    /// A hook uses it no longer. The last one takes the filters with it.
    pub fn leave(&mut self, number: u32) {
        let Some(block) = self.blocks.get_mut(&number) else { return };
        block.users -= 1;
        if block.users == 0 {
            self.blocks.remove(&number);
        }
    }

    /// The filters of a block, if there is one of this number.
    pub fn get(&self, number: u32) -> Option<&FilterList> {
        self.blocks.get(&number).map(|block| &block.filters)
    }

    /// A block's filters, writable.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut FilterList> {
        self.blocks.get_mut(&number).map(|block| &mut block.filters)
    }

    /// Lends the filters of a block, which is empty until [`Blocks::give_back`].
    pub fn lend(&mut self, number: u32) -> Option<FilterList> {
        self.get_mut(number).map(core::mem::take)
    }

    /// Takes back what was lent.
    pub fn give_back(&mut self, number: u32, filters: FilterList) {
        if let Some(place) = self.get_mut(number) {
            *place = filters;
        }
    }

    /// Shows the places in the machine's table that each filter's actions have.
    pub fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.blocks.values().for_each(|block| block.filters.each_action(show));
    }
}

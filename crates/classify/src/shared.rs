//! What all filters of a machine have in common.

use crate::actions::Actions;
use crate::blocks::Blocks;

/// A machine's actions and shared blocks, which every classification needs.
#[derive(Debug, Default)]
pub struct Shared {
    /// The machine's actions.
    pub actions: Actions,
    /// The filter lists that devices share.
    pub blocks: Blocks,
}

impl Shared {
    /// As [`Actions::count`], where `show` shows the filters that are in no shared block.
    pub fn count(&mut self, show: impl FnOnce(&mut dyn FnMut(&[u32]))) {
        let Shared { actions, blocks } = self;
        actions.count(|count| {
            blocks.each_action(count);
            show(count);
        });
    }
}

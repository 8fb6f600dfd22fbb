//! The path from the root to each qdisc, by handle, so that operations need not walk the tree.

use crate::node::QdiscNode;
use alloc::collections::BTreeMap;
use tidegate_packet::Handle;

/// How deep a tree may be.
pub(crate) const MAX_DEPTH: u32 = 8;

/// The class that each qdisc was attached to when it was made.
///
/// A removed qdisc stays noted until its handle is used again; following its path shows that it is gone.
/// There are no more handles than 65,535, so this is bounded.
#[derive(Debug, Default)]
pub(crate) struct ParentIndex {
    parents: BTreeMap<Handle, Handle>,
}

/// The classes to descend by, from the root.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClassPath {
    classes: [Handle; MAX_DEPTH as usize],
    len: usize,
}

impl ClassPath {
    /// The classes, in order.
    pub(crate) fn classes(&self) -> &[Handle] {
        &self.classes[..self.len]
    }
}

impl ParentIndex {
    /// A qdisc was attached to a class.
    pub(crate) fn note(&mut self, qdisc: Handle, class: Handle) {
        self.parents.insert(qdisc, class);
    }

    /// The way from the root to a qdisc; `None`: there is no such qdisc.
    pub(crate) fn to(&self, root: &mut QdiscNode, qdisc: Handle) -> Option<ClassPath> {
        let mut up = ClassPath::default();
        let mut at = qdisc;
        while at != root.handle() {
            let class = *self.parents.get(&at).filter(|_| up.len < MAX_DEPTH as usize)?;
            up.classes[up.len] = class;
            up.len += 1;
            at = class.qdisc();
        }
        let len = up.len;
        up.classes[..len].reverse();
        let found = follow(root, up.classes()).is_some_and(|node| node.handle() == qdisc);
        found.then_some(up)
    }
}

/// The qdisc at the end of a way.
pub(crate) fn follow<'n>(root: &'n mut QdiscNode, classes: &[Handle]) -> Option<&'n mut QdiscNode> {
    let mut node = root;
    for class in classes {
        // A class of another qdisc may have the same place in its table.
        if class.qdisc() != node.handle() || !node.has_class(*class) {
            return None;
        }
        node = node.attached(*class)?;
    }
    Some(node)
}

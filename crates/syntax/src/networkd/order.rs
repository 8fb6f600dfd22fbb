//! Parents first: systemd-networkd carries its sections out as what they hang on is there, whatever their
//! order in the file.

use super::object::{Object, Parent};
use super::rows::Makes;
use std::collections::BTreeSet;
use tidegate_packet::Handle;

/// The objects so that each stands behind its parent, else in the order of the file; and those whose parent
/// no object is.
pub(super) fn parents_first(objects: Vec<Object>) -> (Vec<Object>, Vec<Object>) {
    let (mut ordered, mut waiting, mut there) = (Vec::new(), objects, Made::default());
    loop {
        let before = ordered.len();
        let mut rest = Vec::with_capacity(waiting.len());
        for object in waiting {
            if there.has_parent_of(&object) {
                there.add(&object);
                ordered.push(object);
            } else {
                rest.push(object);
            }
        }
        waiting = rest;
        if ordered.len() == before || waiting.is_empty() {
            return (ordered, waiting);
        }
    }
}

/// What has been made.
#[derive(Default)]
struct Made {
    qdiscs: BTreeSet<Handle>,
    /// Qdiscs that come with classes of their own.
    with_bands: BTreeSet<Handle>,
    classes: BTreeSet<Handle>,
    /// The root, with a handle or without.
    root: bool,
}

impl Made {
    fn add(&mut self, object: &Object) {
        self.root |= object.parent == Parent::Root && matches!(object.makes, Makes::Qdisc(_));
        let Some(id) = object.id else { return };
        match object.makes {
            Makes::Class(_) => self.classes.insert(id),
            Makes::Qdisc(_) => {
                if object.makes.has_bands() {
                    self.with_bands.insert(id);
                }
                self.qdiscs.insert(id)
            }
        };
    }

    fn has_parent_of(&self, object: &Object) -> bool {
        let is_class = |id: Handle| self.classes.contains(&id) || self.with_bands.contains(&id.qdisc());
        match (object.makes, object.parent) {
            (Makes::Class(_), Parent::Of(parent)) if parent.minor() == 0 => self.qdiscs.contains(&parent),
            (_, Parent::Of(parent)) => is_class(parent),
            (Makes::Qdisc(_), _) => true,
            // The qdisc that its number names, or the root's.
            (Makes::Class(_), _) => object.id.map_or(self.root, |id| self.qdiscs.contains(&id.qdisc())),
        }
    }
}

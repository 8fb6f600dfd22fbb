//! Parents first: systemd-networkd carries its sections out as what they hang on is there, whatever their
//! order in the file.

use super::rows::Makes;
use std::collections::BTreeSet;
use tidegate_packet::Handle;

/// Where a qdisc or class is, and what hangs on it knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) makes: Makes,
    pub(super) parent: Parent,
    /// The handle of a qdisc, the number of a class.
    pub(super) id: Option<Handle>,
}

impl Place {
    /// What no two of a device have in common: the number of a class, what a qdisc hangs on.
    pub(super) fn key(self) -> (bool, Option<Handle>, Option<Parent>) {
        match self.makes {
            Makes::Class(_) => (true, self.id, None),
            // A device has one hook, whatever its kind.
            Makes::Qdisc(None) => (false, None, Some(Parent::Ingress)),
            Makes::Qdisc(_) => (false, None, Some(self.parent)),
        }
    }
}

/// What a qdisc or class hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Parent {
    /// The device; of a class, the qdisc that its number names.
    Root,
    Ingress,
    Clsact,
    Of(Handle),
}

/// The objects so that each stands behind its parent, else in their order; and those whose parent none is.
pub(super) fn parents_first<T>(objects: Vec<T>, place: impl Fn(&T) -> Place) -> (Vec<T>, Vec<T>) {
    let (mut ordered, mut waiting, mut there) = (Vec::new(), objects, Made::default());
    loop {
        let before = ordered.len();
        let mut rest = Vec::with_capacity(waiting.len());
        for object in waiting {
            let place = place(&object);
            if there.has_parent_of(place) {
                there.add(place);
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
    fn add(&mut self, Place { makes, parent, id }: Place) {
        self.root |= parent == Parent::Root && matches!(makes, Makes::Qdisc(_));
        let Some(id) = id else { return };
        match makes {
            Makes::Class(_) => self.classes.insert(id),
            Makes::Qdisc(_) => {
                if makes.has_bands() {
                    self.with_bands.insert(id);
                }
                self.qdiscs.insert(id)
            }
        };
    }

    fn has_parent_of(&self, Place { makes, parent, id }: Place) -> bool {
        match (makes, parent) {
            (_, Parent::Of(parent)) => {
                let of_qdisc = parent.minor() == 0 && self.qdiscs.contains(&parent);
                of_qdisc || self.classes.contains(&parent) || self.with_bands.contains(&parent.qdisc())
            }
            (Makes::Qdisc(_), _) => true,
            (Makes::Class(_), _) => id.map_or(self.root, |id| self.qdiscs.contains(&id.qdisc())),
        }
    }
}

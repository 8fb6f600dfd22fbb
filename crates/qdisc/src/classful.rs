//! The part of a qdisc that has classes, and the part of one that has inner classes.

use crate::algo::Sent;
use crate::context::Context;
use crate::discipline::{QdiscState, Visit};
use crate::node::QdiscNode;
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Time};
use tidegate_policy::dump::ClassDump;
use tidegate_policy::{ClassOp, Errno, Kind, TcError};

/// A qdisc with classes: those that commands make, bands, one below a shaper, or flows that only show in a
/// listing.
///
/// A class may carry a child, a [`QdiscNode`] that the qdisc owns ([`QdiscNode::hidden`] makes one). All
/// packets of a child come and go through its qdisc, which hands them on by [`QdiscNode::enqueue`] and
/// [`QdiscNode::dequeue`]; the counts of both stay right on their own.
pub trait Classful {
    /// Whether this class exists.
    fn has_class(&self, class: Handle) -> bool {
        let _ = class;
        false
    }

    /// Lists the classes in `out`, in the order of a dump. `dev` and `kind` are filled in by the Node.
    fn classes(&mut self, now: Time, qdisc: Handle, out: &mut Vec<ClassDump>);

    /// Makes, changes or deletes a class. What comes back is a warning.
    ///
    /// # Errors
    /// As the kernel refuses; kinds whose classes are not made by command refuse with `EOPNOTSUPP`.
    fn class_op(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        op: &ClassOp,
    ) -> Result<Option<String>, TcError> {
        let _ = (cx, own, filters, op);
        Err(TcError::bare(Errno::OpNotSupp))
    }

    /// What a class has sent, where the rates of classes can be estimated.
    fn class_sent(&self, class: Handle) -> Option<Sent> {
        let _ = class;
        None
    }

    /// The place of the class's child; `None` if the class does not exist or takes no child.
    fn child(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        let _ = class;
        None
    }

    /// The child that a class gets when its own is deleted.
    fn default_child(&self, cx: &mut Context<'_>, class: Handle) -> QdiscNode {
        QdiscNode::hidden(cx, Kind::Pfifo, class)
    }

    /// The child of `class` was emptied or replaced from outside.
    fn child_emptied(&mut self, cx: &mut Context<'_>, class: Handle) {
        let _ = (cx, class);
    }

    /// Shows every child.
    fn visit(&mut self, visit: &mut dyn Visit) {
        let _ = visit;
    }

    /// Its inner classes' part, if it has such.
    fn as_inner_classes(&self) -> Option<&dyn InnerClasses> {
        None
    }

    /// The inner classes, mutable; see `as_inner_classes`.
    fn as_inner_classes_mut(&mut self) -> Option<&mut dyn InnerClasses> {
        None
    }
}

/// Classes below classes, with filters of their own: HTB's and HFSC's.
pub trait InnerClasses: Classful {
    /// Whether a filter in the list of `holder` (the qdisc or a class) that leads to `class` holds it, so
    /// that it cannot be deleted.
    fn may_pin(&self, holder: Handle, class: Handle) -> bool {
        let _ = holder;
        self.has_class(class)
    }

    /// The filters of a class.
    fn class_filters(&mut self, class: Handle) -> Option<&mut FilterList>;

    /// Shows the places that the actions of the classes' filters have.
    fn each_class_action(&self, show: &mut dyn FnMut(&[u32]));

    /// The child of a class, even where the class takes no child any more: HFSC's inner classes keep theirs.
    fn attached(&mut self, class: Handle) -> Option<&mut QdiscNode> {
        self.child(class)
    }

    /// A qdisc made for `class` was refused: the class reports itself empty before it goes, though its child
    /// may hold packets.
    fn child_refused(&mut self, cx: &mut Context<'_>, class: Handle) {
        self.child_emptied(cx, class);
    }

    /// A qdisc is made for `class`, of a kind that reports, whenever it takes its options, what they left no
    /// space for: nothing then, but the class hears that its child is empty, before the qdisc is attached and
    /// even if it never will be. A leaf's own child is about to go, so that this shows on inner classes only.
    fn child_made(&mut self, class: Handle);
}

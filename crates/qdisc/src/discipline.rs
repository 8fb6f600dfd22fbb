//! What a kind of qdisc is asked: to take a packet, to give one, to change. The counting around it is [`Node`]'s.

use crate::algo::Sent;
use crate::cx::{Cx, Device};
use crate::node::Node;
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, Pkt, Pool, Time, Timer};
use tidegate_policy::dump::{ClassDump, Xstats};
use tidegate_policy::{ClassOp, Errno, Kind, QdiscParams, TcError};

/// What became of a packet that was handed to a qdisc.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    /// It waits.
    Queued,
    /// It waits or is gone, and its own flow lost a packet: slow down.
    Congested,
    /// It is gone.
    Dropped,
    /// It is gone, but the sender must not know (netem's loss): a drop to every ancestor.
    Lost,
    /// It was taken elsewhere (stolen, redirected): neither sent nor dropped.
    Taken,
    /// The shaper must first offer a copy at the root (netem's duplicate), then resume.
    Parked,
}

/// What a qdisc has to send.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// This packet, now.
    Packet(Pkt),
    /// Nothing waits.
    Empty,
    /// Something waits but may not go yet; whoever holds it back has armed its watchdog.
    Throttled,
}

/// What a qdisc would send next, left in place.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// A packet of this many bytes.
    Packet(u32),
    /// Nothing waits.
    Empty,
    /// Something waits but may not go yet.
    Throttled,
}

/// A packet that a qdisc gives up because a change left no room for it.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// It counts as dropped here.
    Dropped(Pkt),
    /// It counts as sent here, and as dropped by the ancestors.
    Sent(Pkt),
    /// There is none.
    Nothing,
}

/// The state of a qdisc that its discipline may need: limits read these, not a private list, because a packet held back for a peek
/// still counts.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Its handle.
    pub handle: Handle,
    /// Packets waiting.
    pub qlen: u32,
    /// Bytes waiting.
    pub backlog: u64,
    /// Its watchdog, if the kind shapes.
    pub(crate) watchdog: u32,
}

/// How much may be taken in a row.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Packets.
    pub packets: usize,
    /// Bytes; the last packet may be longer than what is left.
    pub bytes: i64,
}

impl Budget {
    /// A packet of `len` bytes is taken.
    #[inline]
    pub(crate) fn take(&mut self, len: u32) {
        self.packets -= 1;
        self.bytes -= i64::from(len);
    }

    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.packets == 0 || self.bytes <= 0
    }
}

/// What a plain enqueue needs to know of the qdisc.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Its handle.
    pub(crate) qdisc: Handle,
    /// Its filters.
    pub(crate) filters: &'a FilterList,
}

/// What a walk over a tree is shown.
pub trait Visit {
    /// A qdisc; called before its children's.
    fn node(&mut self, node: &mut Node);
}

/// The policy of one kind of qdisc. The counting is [`Node`]'s.
pub trait Discipline {
    /// Takes a packet. `filters` are those of the qdisc.
    fn enqueue(&mut self, cx: &mut Cx<'_>, own: Own, filters: &mut FilterList, pkt: Pkt) -> Enqueue;

    /// Takes a packet of `len` bytes where that is plain: the way down is obvious, there is room at its end, and nobody loses, marks or
    /// refuses anything for it. Otherwise gives it back, with nothing done.
    fn enqueue_plain(&mut self, pool: &mut Pool, at: Place<'_>, pkt: Pkt, len: u32) -> Result<(), Pkt> {
        let _ = (pool, at, len);
        Err(pkt)
    }

    /// The child that a packet will be handed to, as far as that shows at a glance. Taking in a batch goes down the tree with all its
    /// packets at once first, so that they wait for their cache lines together; nothing depends on the answer but time.
    fn toward(&self, pool: &mut Pool, qdisc: Handle, filters: &FilterList, pkt: &Pkt) -> Option<&Node> {
        let _ = (pool, qdisc, filters, pkt);
        None
    }

    /// Loads what the next packets to leave will need, `depth` steps down from here: see [`Node::touch_next`].
    fn touch_next(&self, pool: &mut Pool, depth: u32, room: u32) {
        let _ = (pool, depth, room);
    }

    /// Gives the next packet. Never called while a packet is held back for a peek.
    fn dequeue(&mut self, cx: &mut Cx<'_>, own: Own) -> Dequeue;

    /// Gives several packets in a row, at least one, appended to `out`: those that as many calls of [`Discipline::dequeue`] at this
    /// moment would give, with the same effects, and without losing any on the way. `false`: it does not know how, or cannot be sure;
    /// then nothing has happened.
    fn dequeue_run(&mut self, cx: &mut Cx<'_>, own: Own, budget: &mut Budget, out: &mut Vec<Pkt>) -> bool {
        let _ = (cx, own, budget, out);
        false
    }

    /// Kinds that can look at their next packet without taking it do so; `None` means that the Node must take it and hold it.
    fn look(&mut self, cx: &mut Cx<'_>) -> Option<Peek> {
        let _ = cx;
        None
    }

    /// The slot of the packet that [`Discipline::look`] told of; nothing has changed since.
    fn seen_slot(&self) -> Option<usize> {
        None
    }

    /// Takes new parameters.
    ///
    /// # Errors
    /// Kinds without a change operation refuse; others refuse what the kernel would.
    fn change(&mut self, cx: &mut Cx<'_>, own: Own, params: Option<&QdiscParams>) -> Result<(), TcError>;

    /// Runs the maintenance that was due up to `now`, when `own` was as it is. A kind that has such runs it at the beginning of every
    /// call; the Node asks for it where it does something behind the kind's back.
    fn catch_up(&mut self, now: Time, own: Own) {
        let _ = (now, own);
    }

    /// Is more waiting than the parameters allow? Asked after a change.
    fn over_limit(&self, own: Own) -> bool {
        let _ = own;
        false
    }

    /// Gives up a packet because of that.
    fn give_up(&mut self, cx: &mut Cx<'_>, own: Own) -> GivenUp {
        let _ = (cx, own);
        GivenUp::Nothing
    }

    /// What giving up a packet that was held for a peek counts as.
    fn as_given_up(&self, pkt: Pkt) -> GivenUp {
        GivenUp::Dropped(pkt)
    }

    /// The device's transmit queue has another length; for the kinds that take their size from it at any time. Nothing waits.
    fn resize(&mut self, device: Device) {
        let _ = device;
    }

    /// Loses every packet, children's included.
    fn purge(&mut self, cx: &mut Cx<'_>, own: Own);

    /// The parameters in force, as a dump brings them.
    fn params(&self) -> QdiscParams;

    /// What only this kind counts.
    fn xstats(&mut self, now: Time) -> Xstats {
        let _ = now;
        Xstats::None
    }

    /// `overlimits`, for kinds that count it themselves.
    fn overlimits(&self) -> u32 {
        0
    }

    /// The backlog that it tells, in place of what its Node counted; for kinds that forget to count.
    fn told_backlog(&self, counted: u32) -> u32 {
        counted
    }

    /// Drops that a kind counts beside the packets it loses: netem's marks.
    fn further_drops(&self) -> u32 {
        0
    }

    /// `requeues`, for kinds that count something there.
    fn requeues(&self) -> u32 {
        0
    }

    /// Does this class exist?
    fn has_class(&self, class: Handle) -> bool {
        let _ = class;
        false
    }

    /// Does a filter in the list of `holder` (the qdisc or a class) that leads to `class` hold it, so that it cannot be deleted?
    fn may_hold(&self, holder: Handle, class: Handle) -> bool {
        let _ = holder;
        self.has_class(class)
    }

    /// Makes, changes or deletes a class.
    ///
    /// # Errors
    /// As the kernel refuses.
    fn class_op(
        &mut self,
        cx: &mut Cx<'_>,
        own: Own,
        filters: &mut FilterList,
        op: &ClassOp,
    ) -> Result<Option<String>, TcError> {
        let _ = (cx, own, filters, op);
        Err(TcError::bare(Errno::OpNotSupp))
    }

    /// Shows the places that the actions of the classes' filters have.
    fn each_class_action(&self, show: &mut dyn FnMut(&[u32])) {
        let _ = show;
    }

    /// What a class has sent, where classes can be measured.
    fn class_sent(&self, class: Handle) -> Option<Sent> {
        let _ = class;
        None
    }

    /// The filters of an inner class, where the kind has such.
    fn class_filters(&mut self, class: Handle) -> Option<&mut FilterList> {
        let _ = class;
        None
    }

    /// The slot where the class's child hangs; `None` if the class is not there or takes no child.
    fn child(&mut self, class: Handle) -> Option<&mut Node> {
        let _ = class;
        None
    }

    /// What hangs on a class, even where the class takes no child any more: HFSC's inner classes keep theirs.
    fn hung(&mut self, class: Handle) -> Option<&mut Node> {
        self.child(class)
    }

    /// Tells the discipline that the child of `class` was emptied or replaced from outside.
    fn child_emptied(&mut self, cx: &mut Cx<'_>, class: Handle) {
        let _ = (cx, class);
    }

    /// Tells the discipline that a qdisc made for `class` was refused: it says that its class is empty before it goes, though what hangs there
    /// may have packets.
    fn child_refused(&mut self, cx: &mut Cx<'_>, class: Handle) {
        self.child_emptied(cx, class);
    }

    /// Tells the discipline that a qdisc is made for `class`, of a kind that reports, whenever it takes its options, what they left no room for:
    /// nothing then, but the class is told that its child is empty, before the qdisc hangs there and even if it never will. A leaf's own
    /// child is about to go, so that this shows on inner classes only.
    fn child_made(&mut self, class: Handle) {
        let _ = class;
    }

    /// What hangs on `class` when its child is deleted.
    fn default_child(&self, cx: &mut Cx<'_>, class: Handle) -> Node {
        Node::hidden(cx, Kind::Pfifo, class)
    }

    /// Shows every child.
    fn visit(&mut self, visit: &mut dyn Visit) {
        let _ = visit;
    }

    /// The classes, in the order of a dump. `dev` and `kind` are filled in by the Node.
    fn classes(&mut self, now: Time, qdisc: Handle, out: &mut Vec<ClassDump>) {
        let _ = (now, qdisc, out);
    }

    /// When the hash key is due to change; [`Timer::NEVER`] for kinds without one.
    fn perturb_due(&self) -> Timer {
        Timer::NEVER
    }

    /// The same, of those that fire at a later time than `due`.
    fn perturb_due_after(&self, due: Timer) -> Timer {
        Some(self.perturb_due()).filter(|timer| timer.at > due.at).unwrap_or(Timer::NEVER)
    }

    /// Changes the hash key that was due at `due`, and arms the next change.
    fn perturb(&mut self, cx: &mut Cx<'_>, own: Own, due: Timer, filtered: bool) {
        let _ = (cx, own, due, filtered);
    }
}

//! One device's egress: the root of its tree, with everything the tree shares.

use crate::algo::adjusted_size;
use crate::cx::{Cx, Device, Draw, Event, EventRing, Lost, Watchdogs, What, Why};
use crate::node::{Dequeue, Enqueue, Node, Visit};
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_classify::{FilterList, Owner};
use tidegate_packet::{Draws, Handle, Jiffies, Pkt, Pool, Time};
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump};
use tidegate_policy::{ClassOp, Errno, FilterOp, Kind, QdiscOp, TcError, Verb};

/// What a sender learns about the packet it offered.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It waits or is on its way.
    Queued,
    /// Its flow lost a packet: slow down.
    Congested,
    /// It was refused.
    Refused,
}

/// The egress of one device.
///
/// The driver's contract: [`Shaper::offer`] each packet; after every offer (refused ones too) and whenever [`Shaper::timeout`] has come,
/// [`Shaper::poll`] until it gives nothing, unless the link is busy, then when it is free again. The timeout may change with every
/// call; nothing else changes it.
pub struct Shaper {
    device: Device,
    root: Option<Node>,
    watchdogs: Watchdogs,
    events: EventRing,
    flow_key_drawn: bool,
    births: u64,
    next_handle: u16,
}

/// The first handle the kernel gives out by itself.
const FIRST_AUTO: u16 = 0x8001;
/// How deep a tree may be.
const MAX_DEPTH: u32 = 8;

impl Shaper {
    /// The egress of a device with nothing configured: packets wait in a pfifo_fast, which no dump shows.
    pub fn new(device: Device, events: EventRing) -> Shaper {
        Shaper {
            device,
            root: None,
            watchdogs: Watchdogs::default(),
            events,
            flow_key_drawn: false,
            births: 0,
            next_handle: FIRST_AUTO,
        }
    }

    /// What it knows of the device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Changes what it knows of the device; limits taken over before stay as they are.
    pub fn set_device(&mut self, device: Device) {
        self.device = device;
    }

    /// Is a qdisc configured?
    pub fn is_configured(&self) -> bool {
        self.root.is_some()
    }

    /// Packets waiting in the tree.
    pub fn qlen(&self) -> u32 {
        self.root.as_ref().map_or(0, Node::qlen)
    }

    /// Offers a packet for sending.
    pub fn offer(&mut self, now: Time, pool: &mut Pool, draws: &mut dyn Draws, pkt: Pkt) -> Offer {
        let (root, mut cx) = self.enter(now, pool, draws);
        let root = root.get_or_insert_with(|| Node::hidden(&mut cx, Kind::PfifoFast, Handle::ROOT));
        if let Some(stab) = root.stab() {
            let len = adjusted_size(stab, cx.pool.meta(&pkt).len);
            cx.pool.meta_mut(&pkt).len = len;
        }
        match root.enqueue(&mut cx, pkt) {
            Enqueue::Queued | Enqueue::Lost | Enqueue::Taken | Enqueue::Parked => Offer::Queued,
            Enqueue::Congested => Offer::Congested,
            Enqueue::Dropped => Offer::Refused,
        }
    }

    /// Takes the next packet to send; `None` when nothing waits or nothing may go yet.
    pub fn poll(&mut self, now: Time, pool: &mut Pool, draws: &mut dyn Draws) -> Option<Pkt> {
        let (root, mut cx) = self.enter(now, pool, draws);
        match root.as_mut()?.dequeue_fresh(&mut cx) {
            Dequeue::Packet(pkt) => Some(pkt),
            Dequeue::Empty | Dequeue::Throttled => None,
        }
    }

    /// When the tree wants to be polled again.
    pub fn timeout(&mut self) -> Option<Time> {
        self.watchdogs.next()
    }

    /// Disarms the watchdogs that are due; when any was, the root must be polled.
    pub fn fire(&mut self, now: Time) -> bool {
        self.watchdogs.fire(now)
    }

    /// When the earliest change of a hash key is due ([`Time::NEVER`] if none), found by a walk over the tree.
    pub fn perturb_due(&mut self) -> Time {
        struct Earliest(Time);
        impl Visit for Earliest {
            fn node(&mut self, node: &mut Node) {
                self.0 = self.0.min(node.perturb_due());
                node.visit(self);
            }
        }
        let mut earliest = Earliest(Time::NEVER);
        if let Some(root) = &mut self.root {
            earliest.node(root);
        }
        earliest.0
    }

    /// Changes the hash key that was due first, drawing the new one.
    pub fn perturb(&mut self, now: Time, pool: &mut Pool, draws: &mut dyn Draws) {
        let due = self.perturb_due();
        let Some(handle) = self.find(|node| node.perturb_due() == due) else { return };
        let (root, mut cx) = self.enter(now, pool, draws);
        if let Some(root) = root {
            root.with(&mut cx, handle, &mut |node, cx| node.perturb(cx, due));
        }
    }

    /// What happened since the last reading.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain()
    }

    /// Loses a packet that something outside the tree refused (a rule of netfilter), so that it is counted like any other.
    pub fn refuse(&mut self, now: Time, pool: &mut Pool, draws: &mut dyn Draws, pkt: Pkt, why: Why) {
        let (_, mut cx) = self.enter(now, pool, draws);
        cx.drop(Handle::NONE, pkt, why);
    }

    fn enter<'a>(
        &'a mut self,
        now: Time,
        pool: &'a mut Pool,
        draws: &'a mut dyn Draws,
    ) -> (&'a mut Option<Node>, Cx<'a>) {
        let cx = Cx {
            now,
            pool,
            draw: Draw { source: draws, flow_key_drawn: &mut self.flow_key_drawn },
            device: self.device,
            watchdogs: &mut self.watchdogs,
            events: &mut self.events,
            lost: Lost::default(),
        };
        (&mut self.root, cx)
    }

    /// The handle of the first qdisc, from the root down, for which `test` holds.
    fn find(&mut self, test: impl Fn(&mut Node) -> bool) -> Option<Handle> {
        struct First<F>(F, Option<Handle>);
        impl<F: Fn(&mut Node) -> bool> Visit for First<F> {
            fn node(&mut self, node: &mut Node) {
                if self.1.is_none() && !node.handle().is_none() && (self.0)(node) {
                    self.1 = Some(node.handle());
                }
                node.visit(self);
            }
        }
        let mut first = First(test, None);
        if let Some(root) = &mut self.root {
            first.node(root);
        }
        first.1
    }

    fn has_qdisc(&mut self, handle: Handle) -> bool {
        self.find(|node| node.handle() == handle).is_some()
    }

    /// Runs `f` on the qdisc with this handle.
    fn on<R>(
        &mut self,
        now: Time,
        pool: &mut Pool,
        draws: &mut dyn Draws,
        handle: Handle,
        mut f: impl FnMut(&mut Node, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let (root, mut cx) = self.enter(now, pool, draws);
        root.as_mut()?.with(&mut cx, handle, &mut f)
    }
}

/// Configuration.
impl Shaper {
    /// Carries out an operation on a qdisc of this device.
    ///
    /// # Errors
    /// As the kernel refuses, in its words. Nothing has changed then.
    pub fn qdisc_op(&mut self, now: Time, pool: &mut Pool, draws: &mut dyn Draws, op: &QdiscOp) -> Result<(), TcError> {
        if op.parent == Handle::INGRESS {
            return Err(TcError::new(Errno::NoEnt, "Specified qdisc kind is unknown"));
        }
        let at = self.place(op)?;
        if op.verb == Verb::Delete {
            return self.delete(now, pool, draws, op, at);
        }
        let there = at.there;
        if let Some((handle, kind)) = there
            && (op.handle.is_none() || op.handle == handle || at.by_handle)
            && !handle.is_none()
        {
            let same_kind = op.kind.as_deref().is_none_or(|k| k == kind.name());
            match op.verb {
                Verb::Add => return Err(TcError::new(Errno::Exist, "Exclusivity flag on, cannot modify")),
                Verb::Change if !same_kind => return Err(TcError::new(Errno::Inval, "Invalid qdisc name")),
                Verb::Replace | Verb::Link if !same_kind && !op.handle.is_none() => {
                    return Err(TcError::new(Errno::Inval, "Invalid qdisc name"));
                }
                Verb::Change => return self.change(now, pool, draws, op, handle),
                _ if same_kind => return self.change(now, pool, draws, op, handle),
                _ => {}
            }
        } else if let Some((handle, _)) = there
            && !handle.is_none()
        {
            // Another handle is asked for here.
            if op.verb == Verb::Add {
                return Err(TcError::new(Errno::Exist, "Exclusivity flag on, cannot override"));
            }
            if op.verb == Verb::Change {
                return Err(TcError::new(Errno::NoEnt, "Qdisc not found. To create specify NLM_F_CREATE flag"));
            }
        }
        if op.verb == Verb::Change || op.verb == Verb::Link {
            return Err(TcError::new(Errno::NoEnt, "Qdisc not found. To create specify NLM_F_CREATE flag"));
        }
        self.create(now, pool, draws, op, at)
    }

    /// Finds where a qdisc operation means.
    fn place(&mut self, op: &QdiscOp) -> Result<Place, TcError> {
        if op.parent.is_none() && op.verb == Verb::Delete || op.parent.is_none() && !op.handle.is_none() {
            // Named by its handle alone.
            let handle = op.handle;
            let found = self.node_info(handle).ok_or(TcError::new(Errno::NoEnt, "Failed to find specified qdisc"))?;
            return Ok(Place { parent: found.1, there: Some((handle, found.0)), by_handle: true });
        }
        if op.parent == Handle::ROOT {
            let there = self.root.as_ref().map(|node| (node.handle(), node.kind()));
            return Ok(Place { parent: Handle::ROOT, there, by_handle: false });
        }
        let qdisc = op.parent.qdisc();
        if !self.has_qdisc(qdisc) {
            return Err(TcError::new(Errno::NoEnt, "Failed to find specified qdisc"));
        }
        let class = op.parent;
        let mut there = None;
        let mut classful = None;
        self.each(&mut |node| {
            if node.handle() == qdisc {
                classful = Some(is_classful(node.kind()));
                if node.has_class(class) {
                    there = node.child(class).map(|child| (child.handle(), child.kind()));
                }
            }
        });
        match (classful, there) {
            (Some(false), _) => Err(TcError::new(Errno::Inval, "Parent qdisc is not classful")),
            (_, None) if op.verb == Verb::Delete => Err(TcError::new(Errno::NoEnt, "Specified class not found")),
            (_, there) => Ok(Place { parent: class, there, by_handle: false }),
        }
    }

    fn delete(
        &mut self,
        now: Time,
        pool: &mut Pool,
        draws: &mut dyn Draws,
        op: &QdiscOp,
        at: Place,
    ) -> Result<(), TcError> {
        let Some((handle, kind)) = at.there.filter(|(handle, _)| !handle.is_none()) else {
            let text = "Cannot delete qdisc with handle of zero";
            return Err(TcError::new(Errno::NoEnt, text));
        };
        if !op.handle.is_none() && op.handle != handle {
            return Err(TcError::new(Errno::Inval, "Invalid handle"));
        }
        if op.kind.as_deref().is_some_and(|k| k != kind.name()) {
            return Err(TcError::new(Errno::Inval, "Invalid qdisc name"));
        }
        self.graft(now, pool, draws, at.parent, None);
        Ok(())
    }

    fn change(
        &mut self,
        now: Time,
        pool: &mut Pool,
        draws: &mut dyn Draws,
        op: &QdiscOp,
        handle: Handle,
    ) -> Result<(), TcError> {
        let stab = op.stab.clone();
        self.on(now, pool, draws, handle, |node, cx| {
            if op.params.is_some() {
                node.change(cx, op.params.as_ref())?;
            }
            if let Some(stab) = &stab {
                node.set_stab(Some(stab.clone()));
            }
            Ok(())
        })
        .unwrap_or(Err(TcError::new(Errno::NoEnt, "Failed to find specified qdisc")))
    }

    fn create(
        &mut self,
        now: Time,
        pool: &mut Pool,
        draws: &mut dyn Draws,
        op: &QdiscOp,
        at: Place,
    ) -> Result<(), TcError> {
        let name = op.kind.as_deref().ok_or(TcError::new(Errno::Inval, "Qdisc kind must be specified"))?;
        let kind = Kind::from_name(name).ok_or(TcError::new(Errno::NoEnt, "Specified qdisc kind is unknown"))?;
        if !op.handle.is_none() {
            if op.handle.minor() != 0 {
                return Err(TcError::new(Errno::Inval, "Invalid minor handle"));
            }
            if self.has_qdisc(op.handle) {
                let text = if op.verb == Verb::Replace {
                    "Cannot move an existing qdisc to a different parent"
                } else {
                    "Exclusivity flag on, cannot override"
                };
                return Err(TcError::new(Errno::Exist, text));
            }
        }
        if op.stab.is_some() && at.parent != Handle::ROOT {
            return Err(TcError::new(Errno::Inval, "STAB not supported on a non root"));
        }
        if at.parent != Handle::ROOT && self.depth_of(at.parent.qdisc()) + 1 > MAX_DEPTH {
            return Err(TcError::new(Errno::Loop, "Qdisc hierarchy is too deep"));
        }
        let handle = if op.handle.is_none() { self.auto_handle()? } else { op.handle };
        self.births += 1;
        let births = self.births;
        let (_, mut cx) = self.enter(now, pool, draws);
        let mut node = Node::new(&mut cx, kind, handle, at.parent, op.params.as_ref(), births)?;
        node.set_stab(op.stab.clone());
        if at.parent != Handle::ROOT && at.there.is_none() {
            node.destroy(&mut cx);
            return Err(TcError::new(Errno::NoEnt, "Specified class not found"));
        }
        self.graft(now, pool, draws, at.parent, Some(node));
        Ok(())
    }

    fn graft(&mut self, now: Time, pool: &mut Pool, draws: &mut dyn Draws, parent: Handle, new: Option<Node>) {
        let (root, mut cx) = self.enter(now, pool, draws);
        if parent == Handle::ROOT {
            if let Some(old) = core::mem::replace(root, new) {
                old.destroy(&mut cx);
            }
            return;
        }
        let mut new = Some(new);
        if let Some(root) = root {
            root.with(&mut cx, parent.qdisc(), &mut |node, cx| {
                if let Some(new) = new.take() {
                    node.graft(cx, parent, new);
                }
            });
        }
    }

    fn auto_handle(&mut self) -> Result<Handle, TcError> {
        for _ in FIRST_AUTO..=u16::MAX {
            let handle = Handle::new(self.next_handle, 0);
            self.next_handle = if self.next_handle == 0xfffe { FIRST_AUTO } else { self.next_handle + 1 };
            if !self.has_qdisc(handle) {
                return Ok(handle);
            }
        }
        Err(TcError::new(Errno::NoSpc, "Maximum number of qdisc handles was exceeded"))
    }

    /// Carries out an operation on a class of this device; what comes back is a warning.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub fn class_op(
        &mut self,
        now: Time,
        pool: &mut Pool,
        draws: &mut dyn Draws,
        op: &ClassOp,
    ) -> Result<Option<String>, TcError> {
        let major = if op.classid.major() != 0 { op.classid.qdisc() } else { op.parent.qdisc() };
        let qdisc = if major.is_none() || major == Handle::ROOT.qdisc() {
            self.root.as_ref().map_or(Handle::NONE, Node::handle)
        } else {
            major
        };
        if qdisc.is_none() || !self.has_qdisc(qdisc) {
            return Err(TcError::new(Errno::NoEnt, "Failed to find specified qdisc"));
        }
        // A parent given by its minor number alone is this qdisc's class.
        let mut op = op.clone();
        if !op.parent.is_none() && op.parent != Handle::ROOT && op.parent.major() == 0 {
            op.parent = qdisc.class(op.parent.minor());
        }
        if op.classid.major() == 0 {
            op.classid = if op.classid.is_none() { Handle::NONE } else { qdisc.class(op.classid.minor()) };
        }
        if op.classid.is_none() && op.verb == Verb::Delete {
            return Err(TcError::bare(Errno::NoEnt));
        }
        self.on(now, pool, draws, qdisc, |node, cx| {
            if !is_classful(node.kind()) {
                return Err(TcError::bare(Errno::Inval));
            }
            let exists = node.has_class(op.classid);
            match (exists, op.verb) {
                (true, Verb::Add) => Err(TcError::bare(Errno::Exist)),
                (false, Verb::Change | Verb::Delete) => Err(TcError::bare(Errno::NoEnt)),
                _ => node.class_op(cx, &op),
            }
        })
        .unwrap_or(Err(TcError::new(Errno::NoEnt, "Failed to find specified qdisc")))
    }

    /// Carries out an operation on a filter of this device.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub fn filter_op(
        &mut self,
        now: Time,
        pool: &mut Pool,
        draws: &mut dyn Draws,
        op: &FilterOp,
    ) -> Result<(), TcError> {
        let parent = self.filter_parent(op.parent)?;
        let jiffies: Jiffies = self.device.jiffies;
        self.on(now, pool, draws, parent.qdisc(), |node, cx| {
            let mut filters = core::mem::take(node.filters_of(parent)?);
            let has_class = |class: Handle| node.has_class(class);
            let owner = Owner { qdisc: parent.qdisc(), has_class: &has_class, now: cx.now, jiffies };
            let result = filters.apply(op, owner, &mut cx.draw.random());
            *node.filters_of(parent)? = filters;
            result
        })
        .unwrap_or(Err(NO_PARENT))
    }

    fn filter_parent(&mut self, parent: Handle) -> Result<Handle, TcError> {
        let parent = if parent.is_none() || parent == Handle::ROOT {
            self.root.as_ref().map(Node::handle).filter(|h| !h.is_none()).ok_or(NO_PARENT)?
        } else {
            parent
        };
        if self.has_qdisc(parent.qdisc()) { Ok(parent) } else { Err(NO_PARENT) }
    }

    /// The filters of a qdisc or class, as `tc filter show` lists them.
    ///
    /// # Errors
    /// When there is no such parent.
    pub fn dump_filters(&mut self, dev: &str, parent: Handle) -> Result<Vec<FilterDump>, TcError> {
        let parent = self.filter_parent(parent)?;
        let mut out = Vec::new();
        self.each(&mut |node| {
            if node.handle() == parent.qdisc()
                && let Ok(filters) = node.filters_of(parent)
            {
                filters.dump(dev, parent, &mut out);
            }
        });
        Ok(out)
    }

    /// The qdiscs, as `tc qdisc show` lists them: the root, then by a hash of the handle.
    pub fn dump_qdiscs(&mut self, dev: &str, now: Time) -> Vec<QdiscDump> {
        let mut out = Vec::new();
        for handle in self.listing() {
            self.each(&mut |node| {
                if node.handle() == handle {
                    out.push(node.dump(dev, now));
                }
            });
        }
        out
    }

    /// The classes, as `tc class show` lists them.
    pub fn dump_classes(&mut self, dev: &str, now: Time) -> Vec<ClassDump> {
        let mut out = Vec::new();
        for handle in self.listing() {
            self.each(&mut |node| {
                if node.handle() == handle {
                    node.dump_classes(dev, now, &mut out);
                }
            });
        }
        out
    }

    /// Handles in the order of a dump.
    fn listing(&mut self) -> Vec<Handle> {
        let mut all: Vec<(u32, u64, Handle)> = Vec::new();
        let root = self.root.as_ref().map(Node::handle);
        self.each(&mut |node| {
            if !node.handle().is_none() {
                // The root comes first; the rest by bucket of 16, the newest of a bucket before the older.
                let bucket = (node.handle().0.wrapping_mul(0x61c8_8647) >> 28) + 1;
                let first = Some(node.handle()) == root;
                all.push((if first { 0 } else { bucket }, u64::MAX - node.born(), node.handle()));
            }
        });
        all.sort_unstable();
        all.into_iter().map(|(_, _, handle)| handle).collect()
    }

    fn each(&mut self, f: &mut dyn FnMut(&mut Node)) {
        struct Each<'a>(&'a mut dyn FnMut(&mut Node));
        impl Visit for Each<'_> {
            fn node(&mut self, node: &mut Node) {
                (self.0)(node);
                node.visit(self);
            }
        }
        if let Some(root) = &mut self.root {
            Each(f).node(root);
        }
    }

    fn node_info(&mut self, handle: Handle) -> Option<(Kind, Handle)> {
        let mut found = None;
        self.each(&mut |node| {
            if node.handle() == handle && !handle.is_none() {
                found = Some((node.kind(), node.parent()));
            }
        });
        found
    }

    fn depth_of(&mut self, handle: Handle) -> u32 {
        let (mut depth, mut at) = (0, handle);
        while let Some((_, parent)) = self.node_info(at) {
            depth += 1;
            if parent == Handle::ROOT || depth > MAX_DEPTH {
                break;
            }
            at = parent.qdisc();
        }
        depth
    }
}

impl Node {
    /// The filter list of the qdisc itself (minor 0) or of one of its classes.
    fn filters_of(&mut self, parent: Handle) -> Result<&mut FilterList, TcError> {
        if parent.minor() == 0 {
            if !takes_filters(self.kind()) {
                return Err(TcError::new(Errno::OpNotSupp, "Qdisc not classful"));
            }
            return Ok(self.filters_mut());
        }
        if !self.has_class(parent) {
            return Err(TcError::new(Errno::NoEnt, "Specified class doesn't exist"));
        }
        self.class_filters(parent).ok_or(TcError::bare(Errno::Inval))
    }
}

const NO_PARENT: TcError = TcError::new(Errno::Inval, "Parent Qdisc doesn't exists");

/// Where a qdisc operation means, and what is there.
struct Place {
    parent: Handle,
    there: Option<(Handle, Kind)>,
    /// It was named by its handle alone.
    by_handle: bool,
}

fn is_classful(kind: Kind) -> bool {
    matches!(kind, Kind::Prio | Kind::Tbf | Kind::Htb | Kind::Drr | Kind::Sfq | Kind::FqCodel)
}

fn takes_filters(kind: Kind) -> bool {
    matches!(kind, Kind::Prio | Kind::Htb | Kind::Drr | Kind::Sfq | Kind::FqCodel)
}

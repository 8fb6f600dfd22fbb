//! Configuring a device's tree: operations as the kernel takes or refuses them, and dumps.

use crate::context::Context;
use crate::discipline::Visit;
use crate::ingress;
use crate::node::QdiscNode;
use crate::pages::Page;
use crate::paths::MAX_DEPTH;
use crate::shaper::{FIRST_AUTO, Shaper};
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_classify::{DumpContext, FilterList, Owner, Shared};
use tidegate_packet::{Handle, LinuxChange, Pool, RandomSource, Time};
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump};
use tidegate_policy::{
    ChainOp, ClassLayout, ClassOp, Errno, FilterOp, Filters, Kind, QdiscOp, QdiscParams, Reports,
    SharedBlocks, TcError, Verb,
};

const CANNOT_MOVE: TcError =
    TcError::new(Errno::Inval, "Cannot move an existing qdisc to a different parent");

const UNKNOWN_KIND: TcError = TcError::new(Errno::NoEnt, "Specified qdisc kind is unknown");

impl Shaper {
    /// Carries out an operation on a qdisc of this device.
    ///
    /// # Errors
    /// As the kernel refuses, in its words. Nothing has changed then.
    pub fn qdisc_op(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        op: &QdiscOp,
    ) -> Result<(), TcError> {
        self.configure(|shaper| shaper.do_qdisc(now, pool, random, op))
    }

    /// What all operations have in common: timers may change, and dropped packets are freed in the kernel's
    /// order.
    pub(crate) fn configure<R>(&mut self, operation: impl FnOnce(&mut Shaper) -> R) -> R {
        self.note_pending_timers();
        let mark = self.events.mark();
        let result = operation(self);
        self.events.settle_purged(mark);
        if let Some(mq) = self.root.as_mq_mut() {
            mq.forget_watchdogs();
        }
        self.perturb_known = None;
        result
    }

    /// Linux 6.1 stops the device while its hooks come or go: the backlog of its tree is dropped without
    /// being counted.
    fn do_ingress(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        op: &QdiscOp,
    ) -> Result<(), TcError> {
        let before = self.ingress.is_there();
        if op.verb == Verb::Delete {
            self.ingress.delete(op, &mut self.shared.blocks)?;
        } else {
            self.set_ingress(op)?;
        }
        let kept = self.device().switches.linux.has(LinuxChange::BacklogKept);
        if self.ingress.is_there() != before && !kept {
            self.empty(now, pool, random);
        }
        Ok(())
    }

    fn set_ingress(&mut self, op: &QdiscOp) -> Result<(), TcError> {
        self.ingress.open();
        let there = self.ingress.there();
        if self.must_create(op, there)? {
            may_create(op, there)?;
            let kind = op.kind.as_deref().and_then(Kind::named).ok_or(UNKNOWN_KIND)?;
            if kind.is_hook() {
                self.device.restore_queue();
            }
            return self.ingress.create(kind, op.blocks, &mut self.shared.blocks);
        }
        // Blocks named in a change are overlooked (6.1).
        there.map_or(Ok(()), |(_, kind)| may_change(op, kind))
    }

    /// Stops the device: the backlog of its tree is dropped without being counted.
    pub fn stop(&mut self, now: Time, pool: &mut Pool, random: &mut dyn RandomSource) {
        self.configure(|shaper| shaper.empty(now, pool, random));
    }

    fn empty(&mut self, now: Time, pool: &mut Pool, random: &mut dyn RandomSource) {
        let (root, _, mut cx) = self.enter_all(now, pool, random);
        root.purge(&mut cx);
    }

    fn do_qdisc(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        op: &QdiscOp,
    ) -> Result<(), TcError> {
        // A deletion takes every class of `ffff:` for the hook, though a qdisc of the tree may be called so.
        let at_hook = op.parent.qdisc() == ingress::HANDLE && op.parent != Handle::ROOT;
        if op.parent == Handle::INGRESS || op.verb == Verb::Delete && at_hook {
            return self.do_ingress(now, pool, random, op);
        }
        if op.verb == Verb::Delete {
            return self.delete(now, pool, random, op);
        }
        let there = if op.parent.is_none() {
            if op.handle.is_none() {
                return Err(TcError::new(Errno::Inval, "Handle cannot be zero"));
            }
            self.node_info(op.handle).map(|(kind, _)| (op.handle, kind))
        } else {
            const NO_QDISC: TcError = TcError::new(Errno::NoEnt, "Failed to find specified qdisc");
            if self.is_below_hook(op.parent) && self.device().switches.linux.has(LinuxChange::HookChildren) {
                return Err(ingress::NO_CHILDREN);
            }
            let there = self.hangs_on(op.parent).ok_or(NO_QDISC)?;
            if there.is_none() {
                self.must_take_child(op.parent)?;
            }
            let there = there.filter(|(handle, _)| !handle.is_none());
            if self.must_create(op, there)? {
                may_create(op, there)?;
                return self.create(now, pool, random, op);
            }
            there
        };
        let (handle, kind) = there.ok_or(TcError::new(Errno::NoEnt, "Specified qdisc not found"))?;
        may_change(op, kind)?;
        self.change(now, pool, random, op, handle)
    }

    /// Does an operation that names a parent make a new qdisc there (or else change what is `there`)?
    fn must_create(&mut self, op: &QdiscOp, there: Option<(Handle, Kind)>) -> Result<bool, TcError> {
        let replaces = matches!(op.verb, Verb::Replace | Verb::Link);
        if op.handle.is_none() {
            let other_kind =
                there.is_some_and(|(_, kind)| op.kind.as_deref().is_some_and(|name| name != kind.name()));
            // Whatever names another kind makes a new qdisc, even `add` and `change` (6.1).
            return Ok(there.is_none() || op.verb != Verb::Link && other_kind);
        }
        if there.is_some_and(|(handle, _)| handle == op.handle) {
            return Ok(false);
        }
        if there.is_some() && !replaces {
            return Err(TcError::new(Errno::Exist, "NLM_F_REPLACE needed to override"));
        }
        if op.handle.minor() != 0 {
            return Err(TcError::new(Errno::Inval, "Invalid minor handle"));
        }
        if op.handle == ingress::HANDLE && self.ingress.is_there() {
            return Err(CANNOT_MOVE);
        }
        let Some((_, parent)) = self.node_info(op.handle) else { return Ok(true) };
        Err(if parent == op.parent {
            // It is attached there, where its class takes no child any more.
            TcError::bare(Errno::Inval)
        } else {
            CANNOT_MOVE
        })
    }

    /// What is attached to a parent: `None` if there is no such qdisc, `Some(None)` if the class is not there
    /// or takes nothing.
    fn hangs_on(&mut self, parent: Handle) -> Option<Option<(Handle, Kind)>> {
        if parent == Handle::ROOT {
            return Some(Some((self.root.handle(), self.root.kind())));
        }
        if self.is_below_hook(parent) {
            return Some(None);
        }
        let node = self.node(parent.qdisc())?;
        let child = if node.has_class(parent) { node.child(parent) } else { None };
        Some(child.and_then(|child| child.there_mut()).map(|child| (child.handle(), child.kind())))
    }

    /// Is it below an ingress or clsact that is there?
    fn is_below_hook(&mut self, parent: Handle) -> bool {
        parent != Handle::ROOT && self.ingress.is_there() && self.is_hook(parent)
    }

    fn delete(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        op: &QdiscOp,
    ) -> Result<(), TcError> {
        const NO_CLASS: TcError = TcError::new(Errno::NoEnt, "Failed to find qdisc with specified classid");
        const NOT_THERE: TcError =
            TcError::new(Errno::NoEnt, "Cannot find specified qdisc on specified device");
        let (handle, kind) = if op.parent.is_none() {
            const NO_HANDLE: TcError =
                TcError::new(Errno::NoEnt, "Failed to find qdisc with specified handle");
            if op.handle == ingress::HANDLE && self.ingress.is_there() {
                return Err(TcError::new(Errno::Inval, "Classid cannot be zero"));
            }
            (op.handle, self.node_info(op.handle).ok_or(NO_HANDLE)?.0)
        } else {
            let there = match self.hangs_on(op.parent).ok_or(NO_CLASS)? {
                Some(there) => there,
                None => return Err(self.must_take_child(op.parent).err().unwrap_or(NOT_THERE)),
            };
            if !op.handle.is_none() && op.handle != there.0 {
                return Err(TcError::new(Errno::Inval, "Invalid handle"));
            }
            there
        };
        if op.kind.as_deref().is_some_and(|name| name != kind.name()) {
            return Err(TcError::new(Errno::Inval, "Invalid qdisc name"));
        }
        if op.parent.is_none() {
            return Err(TcError::new(Errno::Inval, "Classid cannot be zero"));
        }
        if handle.is_none() {
            return Err(TcError::new(Errno::NoEnt, "Cannot delete qdisc with handle of zero"));
        }
        self.graft(now, pool, random, op.parent, None)
    }

    fn change(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        op: &QdiscOp,
        handle: Handle,
    ) -> Result<(), TcError> {
        if op.params.is_some() && op.blocks != SharedBlocks::default() {
            return Err(TcError::new(Errno::OpNotSupp, "Change of blocks is not supported"));
        }
        let stab = op.stab.clone();
        if let Err(refused) = self.check_copies(op, Some(handle)) {
            if let (Some(QdiscParams::Netem(params)), Some(node)) = (&op.params, self.node(handle)) {
                node.change_partly(params);
            }
            return Err(refused);
        }
        self.on(now, pool, random, handle, |node, cx| {
            if op.params.is_some() {
                node.change(cx, op.params.as_ref())?;
            }
            node.estimate(cx, handle, op.estimator);
            // A change that names no size table takes the one there is away.
            node.set_stab(stab.clone());
            Ok(())
        })
        .unwrap_or(Err(TcError::new(Errno::NoEnt, "Failed to find specified qdisc")))
    }

    fn create(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        op: &QdiscOp,
    ) -> Result<(), TcError> {
        let kind = match &op.params {
            Some(QdiscParams::Custom(_)) => Some(Kind::Custom),
            _ => op.kind.as_deref().and_then(Kind::named).filter(|kind| !kind.is_hook()),
        };
        let kind = kind.ok_or(UNKNOWN_KIND)?;
        if op.stab.is_some() && op.parent != Handle::ROOT {
            return Err(TcError::new(Errno::Inval, "STAB not supported on a non root"));
        }
        if op.parent != Handle::ROOT && self.depth_of(op.parent.qdisc()) + 1 > MAX_DEPTH {
            return Err(TcError::new(Errno::Loop, "Qdisc hierarchy is too deep"));
        }
        let handle = if op.handle.is_none() { self.auto_handle()? } else { op.handle };
        // Even if the kind refuses its parameters (6.1 and 7.2 were asked).
        self.device.restore_queue();
        ingress::shares_nothing(op.blocks)?;
        self.births += 1;
        let births = self.births;
        self.check_copies(op, None)?;
        let (_, mut cx) = self.enter(now, pool, random);
        let made = QdiscNode::new(&mut cx, kind, handle, op.parent, op.params.as_ref(), births);
        if op.params.is_some() && reports_when_made(kind, made.is_ok()) && op.parent != Handle::ROOT {
            let accepted = made.is_ok();
            self.on(now, pool, random, op.parent.qdisc(), |node, cx| {
                node.child_made(cx, op.parent, accepted)
            });
        }
        let mut node = made?;
        if kind == Kind::Mq && op.estimator.is_some() {
            let (_, mut cx) = self.enter(now, pool, random);
            node.end(&mut cx);
            return Err(TcError::new(
                Errno::OpNotSupp,
                "Cannot attach rate estimator to a multi-queue root qdisc",
            ));
        }
        let (_, cx) = self.enter(now, pool, random);
        node.set_stab(op.stab.clone());
        node.estimate(&cx, handle, op.estimator);
        self.graft(now, pool, random, op.parent, Some(node))?;
        self.parents.note(handle, op.parent);
        Ok(())
    }

    /// A netem that makes second copies tolerates no other netem in its tree, as both would copy the other's;
    /// in 7.2 it does.
    fn check_copies(&mut self, op: &QdiscOp, own: Option<Handle>) -> Result<(), TcError> {
        let Some(QdiscParams::Netem(params)) = &op.params else { return Ok(()) };
        if self.device().switches.linux.has(LinuxChange::NetemCopies) {
            return Ok(());
        }
        let copies = params.duplicate > 0;
        let other = |node: &mut QdiscNode| {
            Some(node.handle()) != own && node.as_netem().is_some_and(|theirs| theirs || copies)
        };
        if self.find(other).is_some() {
            return Err(TcError::new(
                Errno::Inval,
                "netem: cannot mix duplicating netems with other netems in tree",
            ));
        }
        Ok(())
    }

    /// Is there a class of that name, if no child is attached to it?
    fn must_take_child(&mut self, parent: Handle) -> Result<(), TcError> {
        if self.is_below_hook(parent) {
            return Ok(());
        }
        match self.node(parent.qdisc()) {
            Some(node) if node.kind().classes() == ClassLayout::None => {
                // Recorded: answers/parent-not-classful.
                Err(TcError::new(Errno::OpNotSupp, "Parent qdisc is not classful"))
            }
            Some(node) if node.has_class(parent) => Ok(()),
            // Recorded: answers/class-not-found.
            _ => Err(TcError::new(Errno::NoEnt, "Specified class not found")),
        }
    }

    fn graft(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        parent: Handle,
        new: Option<QdiscNode>,
    ) -> Result<(), TcError> {
        if parent == Handle::ROOT {
            let (root, mut cx) = self.enter(now, pool, random);
            let new = new.unwrap_or_else(|| QdiscNode::instead(&mut cx));
            core::mem::replace(root, new).destroy(&mut cx);
            return Ok(());
        }
        if self.is_below_hook(parent) {
            return Err(self.ingress.refuse_child(parent));
        }
        if self.root.kind() == Kind::Mq && self.root.handle() == parent.qdisc() {
            // Linux stops the device, with all its queues, while one of them gets another qdisc.
            self.empty(now, pool, random);
        }
        let mut new = Some(new);
        let mut graft =
            |node: &mut QdiscNode, cx: &mut Context<'_>| node.graft(cx, parent, new.take().flatten());
        self.on(now, pool, random, parent.qdisc(), &mut graft).unwrap_or(Err(TcError::bare(Errno::NoEnt)))
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
        random: &mut dyn RandomSource,
        op: &ClassOp,
    ) -> Result<Option<String>, TcError> {
        self.configure(|shaper| shaper.do_class(now, pool, random, op))
    }

    fn do_class(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        op: &ClassOp,
    ) -> Result<Option<String>, TcError> {
        let root = self.root.handle();
        let (above, own) =
            (if op.parent == Handle::ROOT { Handle::NONE } else { op.parent.qdisc() }, op.classid.qdisc());
        if !above.is_none() && !own.is_none() && above != own {
            return Err(TcError::bare(Errno::Inval));
        }
        let qdisc = [own, above, root].into_iter().find(|handle| !handle.is_none()).unwrap_or_default();
        if self.is_below_hook(qdisc) {
            return Err(self.ingress.refuse_class(op));
        }
        if qdisc.is_none() || !self.has_qdisc(qdisc) {
            return Err(TcError::bare(Errno::NoEnt));
        }
        // Ids given by their minor number alone are this qdisc's.
        let mut op = op.clone();
        if !op.parent.is_none() && op.parent != Handle::ROOT {
            op.parent = qdisc.class(op.parent.minor());
        }
        if !op.classid.is_none() {
            op.classid = qdisc.class(op.classid.minor());
        } else if op.parent == Handle::ROOT {
            op.classid = qdisc;
        }
        self.on(now, pool, random, qdisc, |node, cx| {
            if node.kind().classes() == ClassLayout::None {
                return Err(TcError::bare(Errno::Inval));
            }
            let exists = node.has_class(op.classid);
            match (exists, op.verb) {
                (true, Verb::Add) => Err(TcError::bare(Errno::Exist)),
                (false, Verb::Change | Verb::Delete) => Err(TcError::bare(Errno::NoEnt)),
                _ => node.class_op(cx, &op),
            }
        })
        .unwrap_or(Err(TcError::bare(Errno::NoEnt)))
    }

    /// Carries out an operation on a filter of this device.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub fn filter_op(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        op: &FilterOp,
    ) -> Result<(), TcError> {
        self.configure(|shaper| shaper.do_filter(now, pool, random, op))
    }

    fn do_filter(
        &mut self,
        now: Time,
        pool: &mut Pool,
        source: &mut dyn RandomSource,
        op: &FilterOp,
    ) -> Result<(), TcError> {
        if self.is_hook(op.parent) {
            let (_, ingress, mut cx) = self.enter_all(now, pool, source);
            return ingress.filter_op(&mut cx, op);
        }
        if op.parent.is_none() && self.root.handle().is_none() {
            return Err(TcError::new(Errno::Inval, "Qdisc not classful"));
        }
        let parent = self.filter_parent(op.parent)?;
        self.on(now, pool, source, parent.qdisc(), |node, cx| {
            node.with_filters(parent, |node, filters| {
                let has_class = |class: Handle| node.may_pin(parent, class);
                let owner = Owner {
                    qdisc: parent.qdisc(),
                    holder: parent,
                    has_class: &has_class,
                    now: cx.now,
                    wheel: cx.wheel,
                };
                filters.apply(op, owner, cx.actions, &mut cx.random.random())
            })?
        })
        .unwrap_or(Err(NO_PARENT))
    }

    /// Carries out an operation on a chain of filters of this device.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub fn chain_op(
        &mut self,
        now: Time,
        pool: &mut Pool,
        random: &mut dyn RandomSource,
        op: &ChainOp,
    ) -> Result<(), TcError> {
        if op.parent.is_none() && self.root.handle().is_none() {
            return Err(TcError::new(Errno::Inval, "Qdisc not classful"));
        }
        self.configure(|shaper| {
            if shaper.is_hook(op.parent) {
                let (_, ingress, cx) = shaper.enter_all(now, pool, random);
                return ingress.with_filters(op.parent, |filters| filters.apply_chain(op, cx.actions))?;
            }
            let parent = shaper.filter_parent(op.parent)?;
            let applied = shaper.on(now, pool, random, parent.qdisc(), |node, cx| {
                node.with_filters(parent, |_, filters| filters.apply_chain(op, cx.actions))?
            });
            applied.unwrap_or(Err(NO_PARENT))
        })
    }

    /// The chains of filters of a qdisc or class, and the handle of the qdisc.
    ///
    /// # Errors
    /// When there is no such parent.
    pub fn chains(&mut self, parent: Handle) -> Result<(Handle, Vec<u32>), TcError> {
        if self.is_hook(parent) {
            return Ok((ingress::HANDLE, self.ingress.chains(parent, &self.shared.blocks)?));
        }
        let parent = self.filter_parent(parent)?;
        let node = self.node(parent.qdisc()).ok_or(NO_PARENT)?;
        Ok((parent.qdisc(), node.with_filters(parent, |_, filters| filters.chains())?))
    }

    /// The shared block of a hook, 0 if it has none or is none.
    pub fn block_at(&mut self, parent: Handle) -> u32 {
        if self.is_hook(parent) { self.ingress.block_at(parent).unwrap_or(0) } else { 0 }
    }

    /// The shared blocks of this device's hooks.
    pub fn blocks(&self) -> SharedBlocks {
        self.ingress.blocks()
    }

    /// Carries out an operation on a filter of a shared block that this device has.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub fn block_filter_op(
        &mut self,
        now: Time,
        pool: &mut Pool,
        source: &mut dyn RandomSource,
        op: &FilterOp,
    ) -> Result<(), TcError> {
        self.configure(|shaper| {
            let (_, mut cx) = shaper.enter(now, pool, source);
            let mut filters = cx.blocks.lend(op.block).ok_or(ingress::NO_BLOCK)?;
            let owner = ingress::owner(Handle::NONE, &cx);
            let done = filters.apply(op, owner, cx.actions, &mut cx.random.random());
            cx.blocks.give_back(op.block, filters);
            done
        })
    }

    /// Is it a place of ingress and clsact? A qdisc of the tree may have their handle instead.
    fn is_hook(&mut self, parent: Handle) -> bool {
        parent.qdisc() == ingress::HANDLE && !self.has_qdisc(ingress::HANDLE)
    }

    fn filter_parent(&mut self, parent: Handle) -> Result<Handle, TcError> {
        let parent = if parent.is_none() || parent == Handle::ROOT {
            Some(self.root.handle()).filter(|h| !h.is_none()).ok_or(NO_PARENT)?
        } else {
            parent
        };
        if self.has_qdisc(parent.qdisc()) { Ok(parent) } else { Err(NO_PARENT) }
    }

    /// The filters of a qdisc or class, as `tc filter show` lists them.
    ///
    /// # Errors
    /// When there is no such parent.
    pub fn dump_filters(&mut self, now: Time, dev: &str, parent: Handle) -> Result<Vec<FilterDump>, TcError> {
        self.filters_there(now, dev, parent, true)
    }

    /// The filters that packets are shown at a qdisc or class. The listing has more: u32 shows the tables
    /// that other lists of the qdisc have at the same preference.
    ///
    /// # Errors
    /// When there is no such parent.
    pub fn own_filters(&mut self, now: Time, dev: &str, parent: Handle) -> Result<Vec<FilterDump>, TcError> {
        self.filters_there(now, dev, parent, false)
    }

    fn filters_there(
        &mut self,
        now: Time,
        dev: &str,
        parent: Handle,
        all: bool,
    ) -> Result<Vec<FilterDump>, TcError> {
        // They are looked at while the tree is walked.
        let shared = core::mem::take(&mut self.shared);
        let out = self.dump_filter_list(&shared, now, dev, parent, all);
        self.shared = shared;
        out
    }

    fn dump_filter_list(
        &mut self,
        shared: &Shared,
        now: Time,
        dev: &str,
        parent: Handle,
        all: bool,
    ) -> Result<Vec<FilterDump>, TcError> {
        let mut out = Vec::new();
        if self.is_hook(parent) {
            self.ingress.dump_filters(shared, now, dev, parent, all, &mut out)?;
            return Ok(out);
        }
        let parent = self.filter_parent(parent)?;
        if let Some(node) = self.node(parent.qdisc()) {
            let only = (!all).then_some(parent);
            let context = DumpContext { now, actions: &shared.actions };
            // A parent that can have no filters lists none.
            let _ =
                node.with_filters(parent, |_, filters| filters.dump(context, dev, parent, only, &mut out));
        }
        Ok(out)
    }

    /// The qdiscs that commands made, and the root, in the order of [`Self::list_qdiscs`].
    pub fn dump_qdiscs(&mut self, dev: &str, now: Time) -> Vec<QdiscDump> {
        let mut out = Vec::new();
        for handle in self.listing() {
            out.extend(self.listed(handle).map(|node| node.dump(dev, now)));
        }
        self.complete(dev, &mut out);
        out
    }

    /// The qdiscs as `tc qdisc show` lists them, invisible ones among them: the root, then by a hash of the
    /// handle.
    pub fn list_qdiscs(&mut self, dev: &str, now: Time) -> Vec<QdiscDump> {
        let mut all: Vec<(Place, QdiscDump)> = Vec::new();
        // An mq lists what its queues begin with.
        let shown = if self.root.kind() == Kind::Mq { self.root.handle() } else { Handle::NONE };
        let root = self.root.handle();
        self.each(&mut |node| {
            if !node.is_noop() {
                let mut dump = node.dump(dev, now);
                dump.invisible = dump.handle.is_none()
                    && dump.parent != Handle::ROOT
                    && (shown.is_none() || dump.parent.qdisc() != shown);
                all.push((node.place(root), dump));
            }
        });
        // Qdiscs without a handle are in one bucket: what was made last, for the last class, comes first.
        all.reverse();
        all.sort_by_key(|(place, _)| *place);
        let mut out = all.into_iter().map(|(_, dump)| dump).collect();
        self.complete(dev, &mut out);
        out
    }

    /// Adds to a listing of the tree what stands outside it.
    fn complete(&mut self, dev: &str, out: &mut Vec<QdiscDump>) {
        // Each transmit queue refers to the root, unless it has a qdisc of its own.
        let queues = self.device().tx_queues;
        for root in out.iter_mut().filter(|dump| dump.parent == Handle::ROOT && !dump.handle.is_none()) {
            root.refcnt = if root.kind == Kind::Mq { 1 } else { 1 + queues };
        }
        out.extend(self.ingress.dump(dev));
    }

    /// All classes, in the order of [`Self::list_classes`].
    pub fn dump_classes(&mut self, dev: &str, now: Time) -> Vec<ClassDump> {
        let mut out = Vec::new();
        for handle in self.listing() {
            if let Some(node) = self.listed(handle) {
                node.dump_classes(dev, now, &mut out);
            }
        }
        out
    }

    /// The classes that `tc class show` lists. SFB cannot dump its class, nor netem one without a child, and
    /// Linux ends the whole listing there; the classes behind exist all the same. Of many flows of CAKE some
    /// are left out ([`Page`]).
    pub fn list_classes(&mut self, dev: &str, now: Time) -> Vec<ClassDump> {
        let (mut out, mut page) = (Vec::new(), Page::new(self.device.switches.linux));
        for handle in self.listing() {
            let Some(node) = self.listed(handle) else { continue };
            let from = out.len();
            node.dump_classes(dev, now, &mut out);
            if let Some(tins) = node.cake_tins(now) {
                let flows = out.split_off(from);
                out.extend(page.cake(flows, tins));
            } else if out.len() > from {
                page.others(&out[from..]);
            }
            if node.kind() == Kind::Sfb || node.is_bare_netem() {
                break;
            }
        }
        out
    }

    /// The qdisc of a listing: an unconfigured root has no handle.
    fn listed(&mut self, handle: Handle) -> Option<&mut QdiscNode> {
        if handle == self.root.handle() { Some(&mut self.root) } else { self.node(handle) }
    }

    /// Handles in the order of a dump.
    fn listing(&mut self) -> Vec<Handle> {
        let mut all: Vec<(Place, Handle)> = Vec::new();
        let root = self.root.handle();
        self.each(&mut |node| {
            if !node.handle().is_none() || node.parent() == Handle::ROOT {
                all.push((node.place(root), node.handle()));
            }
        });
        all.sort_unstable();
        all.into_iter().map(|(_, handle)| handle).collect()
    }

    pub(crate) fn each(&mut self, f: &mut dyn FnMut(&mut QdiscNode)) {
        struct Each<'a>(&'a mut dyn FnMut(&mut QdiscNode));
        impl Visit for Each<'_> {
            fn node(&mut self, node: &mut QdiscNode) {
                (self.0)(node);
                node.visit(self);
            }
        }
        Each(f).node(&mut self.root);
    }

    fn node_info(&mut self, handle: Handle) -> Option<(Kind, Handle)> {
        self.node(handle).map(|node| (node.kind(), node.parent()))
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

/// Does the verb of an operation allow a new qdisc where this one is `there`?
fn may_create(op: &QdiscOp, there: Option<(Handle, Kind)>) -> Result<(), TcError> {
    if op.verb == Verb::Link || op.verb == Verb::Change && there.is_none() {
        return Err(TcError::new(Errno::NoEnt, "Qdisc not found. To create specify NLM_F_CREATE flag"));
    }
    Ok(())
}

/// Does an operation allow the qdisc of this kind, which is there, to be changed?
fn may_change(op: &QdiscOp, kind: Kind) -> Result<(), TcError> {
    if op.verb == Verb::Add {
        return Err(TcError::new(Errno::Exist, "Exclusivity flag on, cannot modify"));
    }
    if op.kind.as_deref().is_some_and(|name| name != kind.name()) {
        return Err(TcError::new(Errno::Inval, "Invalid qdisc name"));
    }
    Ok(())
}

/// Where a qdisc comes in a dump.
type Place = (u32, u64);

impl QdiscNode {
    /// Its place in a dump of the tree with this root, which comes first; the rest follow by bucket of 16,
    /// the newest of a bucket before the older.
    fn place(&self, root: Handle) -> Place {
        let bucket = (self.handle().0.wrapping_mul(0x61c8_8647) >> 28) + 1;
        let first = self.handle() == root && self.parent() == Handle::ROOT;
        (if first { 0 } else { bucket }, u64::MAX - self.born())
    }

    /// Has something done with the filter list of the qdisc itself or of a class, while the tables of u32 are
    /// with that list.
    fn with_filters<R>(
        &mut self,
        parent: Handle,
        does: impl FnOnce(&QdiscNode, &mut FilterList) -> R,
    ) -> Result<R, TcError> {
        let mut filters = core::mem::take(self.filters_of(parent)?);
        let of_class = parent.minor() != 0;
        if of_class {
            self.filters_mut().swap_tables(&mut filters);
        }
        let result = does(self, &mut filters);
        if of_class {
            self.filters_mut().swap_tables(&mut filters);
        }
        *self.filters_of(parent)? = filters;
        Ok(result)
    }

    /// The filter list of the qdisc itself (minor 0) or of one of its classes.
    fn filters_of(&mut self, parent: Handle) -> Result<&mut FilterList, TcError> {
        match self.kind().filters() {
            Filters::None | Filters::OfDevice => {
                return Err(TcError::new(Errno::Inval, "Qdisc not classful"));
            }
            Filters::Unsupported => {
                return Err(TcError::new(Errno::OpNotSupp, "Class doesn't support blocks"));
            }
            Filters::OfQdisc | Filters::OfClassesToo => {}
        }
        if parent.minor() == 0 {
            return Ok(self.filters_mut());
        }
        if !self.has_class(parent) {
            return Err(TcError::new(Errno::NoEnt, "Specified class doesn't exist"));
        }
        let refusal = match self.kind() {
            Kind::Drr => TcError::new(Errno::Inval, "DRR classid must be zero"),
            Kind::Ets => TcError::new(Errno::Inval, "ETS classid must be zero"),
            _ => TcError::bare(Errno::Inval),
        };
        self.class_filters(parent).ok_or(refusal)
    }
}

const NO_PARENT: TcError = TcError::new(Errno::Inval, "Parent Qdisc doesn't exists");

/// Whether a kind reports to its parent, while it is made with options, the packets that no longer fit.
fn reports_when_made(kind: Kind, accepted: bool) -> bool {
    match kind.reports() {
        Reports::Never => false,
        Reports::IfAccepted => accepted,
        Reports::EvenIfRefused => true,
    }
}

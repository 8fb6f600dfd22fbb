//! ingress and clsact: filters on what arrives at a device, and on what leaves it before its tree. They queue
//! nothing.

use crate::classify;
use crate::context::{Context, DropReason};
use alloc::vec::Vec;
use tidegate_classify::{Blocks, DumpContext, FilterList, FilterVerdict, Owner, Redirect, Shared};
use tidegate_packet::{Handle, Pkt, Time};
use tidegate_policy::dump::{FilterDump, QdiscDump, QueueStats, Xstats};
use tidegate_policy::{ClassOp, Errno, FilterOp, Kind, QdiscOp, QdiscParams, SharedBlocks, TcError, Verb};

/// The handle of both.
pub(crate) const HANDLE: Handle = Handle::new(0xffff, 0);
/// The handle of clsact's filters on arrivals.
const ARRIVING: Handle = Handle(0xffff_fff2);
/// The handle of clsact's filters on packets that leave.
const LEAVING: Handle = Handle(0xffff_fff3);

/// The filters of a device that belong to no tree.
#[derive(Default)]
pub(crate) struct Ingress {
    /// [`Kind::Ingress`] or [`Kind::Clsact`], while one is there.
    kind: Option<Kind>,
    /// A command has named the hook to attach a qdisc: the kernel answers deletions differently then.
    opened: bool,
    arriving: Hook,
    leaving: Hook,
    bytes: u64,
    packets: u64,
    drops: u32,
}

#[derive(Default)]
struct Hook {
    filters: FilterList,
    /// The parent that was named last when a filter was set: all are listed under it.
    named: Handle,
    /// The shared block whose filters it has instead; 0: it has its own.
    block: u32,
}

/// The refusal of a block that no hook has.
pub const NO_BLOCK: TcError = TcError::new(Errno::Inval, "Block of given index was not found");
const SHARED: TcError = TcError::new(
    Errno::Inval,
    "This filter block is shared. Please use the block index to manipulate the filters",
);
const NO_INGRESS_BLOCK: TcError = TcError::new(Errno::OpNotSupp, "Ingress block sharing is not supported");
const NO_EGRESS_BLOCK: TcError = TcError::new(Errno::OpNotSupp, "Egress block sharing is not supported");
pub(crate) const NO_CHILDREN: TcError =
    TcError::new(Errno::OpNotSupp, "Cannot add children to ingress/clsact qdisc");

/// A qdisc of the tree has no hooks that could share a block.
pub(crate) fn shares_nothing(blocks: SharedBlocks) -> Result<(), TcError> {
    match blocks {
        SharedBlocks { ingress: 0, egress: 0 } => Ok(()),
        SharedBlocks { ingress: 0, .. } => Err(NO_EGRESS_BLOCK),
        _ => Err(NO_INGRESS_BLOCK),
    }
}

/// What a hook makes of a packet.
pub(crate) enum Hooked {
    Passed(Pkt),
    Lost,
    Led(Pkt, Redirect),
}

impl Ingress {
    pub(crate) fn is_there(&self) -> bool {
        self.kind.is_some()
    }

    /// Which hook `parent ffff:…` means here; the error of a clsact is the kernel's for classes it has not.
    fn holder(&self, parent: Handle) -> Result<Handle, TcError> {
        match (self.kind, parent) {
            (None, _) => Err(TcError::new(Errno::Inval, "Parent Qdisc doesn't exists")),
            (Some(Kind::Clsact), LEAVING) => Ok(LEAVING),
            (Some(Kind::Clsact), parent) if parent.minor() == 0 => Err(TcError::bare(Errno::Inval)),
            (Some(Kind::Clsact), parent) if parent != ARRIVING => {
                Err(TcError::new(Errno::NoEnt, "Specified class doesn't exist"))
            }
            // An ingress qdisc has one list of filters, whatever class of it is named.
            _ => Ok(ARRIVING),
        }
    }

    /// What is said of a qdisc that was to be attached below.
    pub(crate) fn refuse_child(&self, parent: Handle) -> TcError {
        if self.kind == Some(Kind::Clsact) && parent != ARRIVING && parent != LEAVING {
            return TcError::new(Errno::NoEnt, "Specified class not found");
        }
        TcError::bare(Errno::OpNotSupp)
    }

    /// The answer to a command about a class of the hooks: an ingress takes any number for one of its own, a
    /// clsact has two (asked of Linux 6.1 and 7.2).
    pub(crate) fn refuse_class(&self, op: &ClassOp) -> TcError {
        let exists = self.kind == Some(Kind::Ingress) || op.classid == ARRIVING || op.classid == LEAVING;
        TcError::bare(match (exists, op.verb) {
            (true, Verb::Add) => Errno::Exist,
            (false, Verb::Change | Verb::Delete) => Errno::NoEnt,
            _ => Errno::OpNotSupp,
        })
    }

    fn hook(&self, holder: Handle) -> &Hook {
        if holder == LEAVING { &self.leaving } else { &self.arriving }
    }

    fn hook_mut(&mut self, holder: Handle) -> &mut Hook {
        if holder == LEAVING { &mut self.leaving } else { &mut self.arriving }
    }

    /// The shared block of the hook that a parent means; 0: none.
    ///
    /// # Errors
    /// When there is no such hook.
    pub(crate) fn block_at(&self, parent: Handle) -> Result<u32, TcError> {
        Ok(self.hook(self.holder(parent)?).block)
    }

    /// The shared blocks of both hooks.
    pub(crate) fn blocks(&self) -> SharedBlocks {
        SharedBlocks { ingress: self.arriving.block, egress: self.leaving.block }
    }

    /// Runs an operation on a hook while the u32 tables, which both hooks share, are with it: the arrival
    /// hook keeps them.
    fn with_hook<R>(&mut self, holder: Handle, does: impl FnOnce(&mut Hook) -> R) -> R {
        if self.hook(holder).block != 0 {
            return does(self.hook_mut(holder));
        }
        if holder != LEAVING {
            return does(&mut self.arriving);
        }
        self.arriving.filters.swap_tables(&mut self.leaving.filters);
        let result = does(&mut self.leaving);
        self.arriving.filters.swap_tables(&mut self.leaving.filters);
        result
    }

    /// The qdisc that is there: what an operation on `parent ffff:fff1` is about.
    pub(crate) fn there(&self) -> Option<(Handle, Kind)> {
        self.kind.map(|kind| (HANDLE, kind))
    }

    /// An operation that may attach a qdisc names the hook. Even if it is refused, the kernel has made the
    /// place for one, and answers a deletion differently from then on.
    pub(crate) fn open(&mut self) {
        self.opened = true;
    }

    /// Attaches the qdisc of a kind, with the shared blocks of an operation.
    ///
    /// # Errors
    /// When the kind's qdiscs have no place at a hook.
    pub(crate) fn create(
        &mut self,
        kind: Kind,
        shared: SharedBlocks,
        blocks: &mut Blocks,
    ) -> Result<(), TcError> {
        const RESERVED: TcError =
            TcError::new(Errno::Inval, "Specified parent ID is reserved for ingress and clsact Qdiscs");
        if !kind.is_hook() {
            return Err(RESERVED);
        }
        if kind == Kind::Ingress && shared.egress != 0 {
            return Err(NO_EGRESS_BLOCK);
        }
        self.remove(blocks);
        self.kind = Some(kind);
        (self.arriving.block, self.leaving.block) = (shared.ingress, shared.egress);
        blocks.join(shared.ingress);
        blocks.join(shared.egress);
        Ok(())
    }

    /// Carries out the deletion of the qdisc itself.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub(crate) fn delete(&mut self, op: &QdiscOp, blocks: &mut Blocks) -> Result<(), TcError> {
        if !self.opened {
            return Err(TcError::new(Errno::NoEnt, "Cannot find specified qdisc on specified device"));
        }
        let handle = if self.is_there() { HANDLE } else { Handle::NONE };
        if !op.handle.is_none() && op.handle != handle {
            return Err(TcError::new(Errno::Inval, "Invalid handle"));
        }
        // An empty place has a qdisc that no command can name.
        let own = self.kind.map(Kind::name);
        if op.kind.as_deref().is_some_and(|name| Some(name) != own) {
            return Err(TcError::new(Errno::Inval, "Invalid qdisc name"));
        }
        if handle.is_none() {
            return Err(TcError::new(Errno::NoEnt, "Cannot delete qdisc with handle of zero"));
        }
        self.remove(blocks);
        Ok(())
    }

    fn remove(&mut self, blocks: &mut Blocks) {
        let had = self.blocks();
        *self = Ingress { opened: true, ..Ingress::default() };
        blocks.leave(had.ingress);
        blocks.leave(had.egress);
    }

    /// Carries out an operation on a filter under `ffff:`.
    pub(crate) fn filter_op(&mut self, cx: &mut Context<'_>, op: &FilterOp) -> Result<(), TcError> {
        let holder = self.holder(op.parent)?;
        if self.hook(holder).block != 0 {
            return Err(SHARED);
        }
        let owner = owner(holder, cx);
        self.with_hook(holder, |hook| {
            hook.filters.apply(op, owner, cx.actions, &mut cx.random.random())?;
            if op.verb != Verb::Delete {
                hook.named = op.parent;
            }
            Ok(())
        })
    }

    /// Has something changed in the filters of the hook that a parent means, which it must have for itself.
    pub(crate) fn with_filters<R>(
        &mut self,
        parent: Handle,
        does: impl FnOnce(&mut FilterList) -> R,
    ) -> Result<R, TcError> {
        let holder = self.holder(parent)?;
        if self.hook(holder).block != 0 {
            return Err(SHARED);
        }
        Ok(self.with_hook(holder, |hook| does(&mut hook.filters)))
    }

    /// The chains at the hook that a parent means, its own or those of its block.
    pub(crate) fn chains(&mut self, parent: Handle, blocks: &Blocks) -> Result<Vec<u32>, TcError> {
        let holder = self.holder(parent)?;
        Ok(match blocks.get(self.hook(holder).block) {
            Some(shared) => shared.chains(),
            None => self.with_hook(holder, |hook| hook.filters.chains()),
        })
    }

    /// The filters of a hook, or of its block.
    fn filters_at<'a>(&'a self, hook: &'a Hook, blocks: &'a Blocks) -> &'a FilterList {
        blocks.get(hook.block).unwrap_or(&hook.filters)
    }

    /// A packet arrives at the device.
    pub(crate) fn arrive(&mut self, cx: &mut Context<'_>, pkt: Pkt) -> Hooked {
        // Without filters the kernel does not come to the qdisc, which then counts nothing.
        if self.kind.is_none() || self.filters_at(&self.arriving, cx.blocks).is_empty() {
            return Hooked::Passed(pkt);
        }
        // The link header was taken off before.
        let whole = cx.pool.meta(&pkt).frame_len;
        let len = whole.saturating_sub(cx.device.link_header);
        self.bytes += u64::from(len);
        self.packets += 1;
        let drops = &mut self.drops;
        decide(&mut self.arriving, drops, cx, pkt, (len, whole))
    }

    /// A packet is about to enter the device's tree.
    pub(crate) fn leave(&mut self, cx: &mut Context<'_>, pkt: Pkt) -> Hooked {
        let len = cx.pool.meta(&pkt).len;
        if self.filters_at(&self.leaving, cx.blocks).is_empty() {
            return Hooked::Passed(pkt);
        }
        self.bytes += u64::from(len);
        self.packets += 1;
        let mut drops = self.drops;
        let hooked = self.with_hook(LEAVING, |hook| decide(hook, &mut drops, cx, pkt, (len, len)));
        self.drops = drops;
        hooked
    }

    pub(crate) fn each_action(&self, show: &mut dyn FnMut(&[u32])) {
        self.arriving.filters.each_action(show);
        self.leaving.filters.each_action(show);
    }

    pub(crate) fn dump(&self, dev: &str) -> Option<QdiscDump> {
        let stats = QueueStats {
            bytes: self.bytes,
            packets: self.packets,
            drops: self.drops,
            ..QueueStats::default()
        };
        Some(QdiscDump {
            dev: dev.into(),
            kind: self.kind?,
            handle: HANDLE,
            parent: Handle::INGRESS,
            refcnt: 1,
            params: QdiscParams::Ingress,
            stab: None,
            blocks: self.blocks(),
            invisible: false,
            stats,
            xstats: Xstats::None,
        })
    }

    /// The filters of a hook; the kernel lists none for a parent it does not know.
    pub(crate) fn dump_filters(
        &mut self,
        shared: &Shared,
        now: Time,
        dev: &str,
        parent: Handle,
        all: bool,
        out: &mut Vec<FilterDump>,
    ) -> Result<(), TcError> {
        let context = DumpContext { now, actions: &shared.actions };
        let holder = self.holder(parent)?;
        let block = self.hook(holder).block;
        if let Some(filters) = shared.blocks.get(block) {
            dump_shared(filters, context, (dev, parent), block, out);
            return Ok(());
        }
        let only = (!all).then_some(holder);
        // tc lists the class that was named last; the list is the same for all.
        let place = match (all, self.kind) {
            (false, Some(Kind::Ingress)) => Some(HANDLE),
            _ => None,
        };
        self.with_hook(holder, |hook| {
            hook.filters.dump(context, dev, place.unwrap_or(hook.named), only, out)
        });
        Ok(())
    }
}

/// The owner of a hook's or a block's filters: no classes are known there.
pub(crate) fn owner<'a>(holder: Handle, cx: &Context<'a>) -> Owner<'a> {
    Owner { qdisc: HANDLE, holder, has_class: &|_| true, now: cx.now, wheel: cx.wheel }
}

/// The filters of a shared block of a machine, as tc lists them.
///
/// # Errors
/// When there is no such block.
pub fn dump_block(shared: &Shared, now: Time, number: u32) -> Result<Vec<FilterDump>, TcError> {
    let filters = shared.blocks.get(number).ok_or(NO_BLOCK)?;
    let mut out = Vec::new();
    dump_shared(filters, DumpContext { now, actions: &shared.actions }, ("", Handle::NONE), number, &mut out);
    Ok(out)
}

/// Dumps a shared block's hook at a device.
fn dump_shared(
    filters: &FilterList,
    context: DumpContext<'_>,
    (dev, parent): (&str, Handle),
    block: u32,
    out: &mut Vec<FilterDump>,
) {
    let before = out.len();
    filters.dump(context, dev, parent, None, out);
    out[before..].iter_mut().for_each(|dump| dump.block = block);
}

fn decide(hook: &mut Hook, drops: &mut u32, cx: &mut Context<'_>, pkt: Pkt, counted: (u32, u32)) -> Hooked {
    let verdict = match cx.blocks.lend(hook.block) {
        Some(mut shared) => {
            let verdict = classify(&mut shared, cx, &pkt, counted);
            cx.blocks.give_back(hook.block, shared);
            verdict
        }
        None => classify(&mut hook.filters, cx, &pkt, counted),
    };
    match verdict {
        None | Some(FilterVerdict::Class(_)) => Hooked::Passed(pkt),
        Some(FilterVerdict::Drop) => {
            *drops = drops.wrapping_add(1);
            cx.drop(HANDLE, pkt, DropReason::Policy);
            Hooked::Lost
        }
        Some(FilterVerdict::Stolen) => {
            cx.steal(HANDLE, pkt);
            Hooked::Lost
        }
        Some(FilterVerdict::Redirect(way)) => Hooked::Led(pkt, way),
    }
}

fn classify(
    filters: &mut FilterList,
    cx: &mut Context<'_>,
    pkt: &Pkt,
    counted: (u32, u32),
) -> Option<FilterVerdict> {
    if filters.is_empty() {
        return None;
    }
    classify::decide(filters, cx, HANDLE, pkt, counted)
}

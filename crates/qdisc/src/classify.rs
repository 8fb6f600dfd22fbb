//! How a qdisc has its filters classify a packet, and what happens to a packet that does not stay.

use crate::context::{Context, DropReason};
use crate::discipline::{Enqueue, QdiscState};
use tidegate_classify::{ActionInput, ClassifyContext, FilterList, FilterVerdict, Redirect};
use tidegate_packet::{Handle, Pkt};

/// The result of a qdisc's filters for a packet.
#[non_exhaustive]
pub enum ClassifyResult {
    /// None matches.
    Nothing,
    /// It takes this class.
    Class(Handle),
    /// It does not stay.
    Consumed(Consumed),
}

/// Why a packet does not stay.
#[non_exhaustive]
pub enum Consumed {
    /// An action drops it.
    Dropped,
    /// An action takes it away.
    Stolen,
    /// An action leads it to another device.
    Redirected(Redirect),
}

/// What a list of filters decides about a packet that counts `len` bytes there, `whole` with a link header
/// that was taken off.
#[inline]
pub(crate) fn decide(
    filters: &mut FilterList,
    cx: &mut Context<'_>,
    at: Handle,
    pkt: &Pkt,
    (len, whole): (u32, u32),
) -> Option<FilterVerdict> {
    let before = cx.pool.meta(pkt).passed_over;
    let meter = ActionInput { len, whole, now: cx.now, passed_over: before, linux: cx.device.switches.linux };
    let mut context = ClassifyContext {
        pool: cx.pool,
        pkt,
        meter,
        actions: cx.actions,
        random: cx.random.random(),
        link_header: cx.device.link_header,
    };
    let verdict = filters.classify(at, &mut context);
    if before && !context.meter.passed_over {
        cx.pool.meta_mut(pkt).passed_over = false;
    }
    verdict
}

/// Asks a qdisc's filters about a packet.
#[inline]
pub(crate) fn classify(
    filters: &mut FilterList,
    cx: &mut Context<'_>,
    qdisc: Handle,
    pkt: &Pkt,
) -> ClassifyResult {
    if filters.is_empty() {
        return ClassifyResult::Nothing;
    }
    let len = cx.pool.meta(pkt).len;
    match decide(filters, cx, qdisc, pkt, (len, len)) {
        None => ClassifyResult::Nothing,
        Some(FilterVerdict::Class(class)) => ClassifyResult::Class(class),
        Some(FilterVerdict::Drop) => ClassifyResult::Consumed(Consumed::Dropped),
        Some(FilterVerdict::Stolen) => ClassifyResult::Consumed(Consumed::Stolen),
        Some(FilterVerdict::Redirect(way)) => ClassifyResult::Consumed(Consumed::Redirected(way)),
    }
}

impl Context<'_> {
    /// Asks the filters of the qdisc `own` about a packet. `filters` are those that came with
    /// [`Discipline::enqueue`].
    ///
    /// [`Discipline::enqueue`]: crate::Qdisc::enqueue
    pub fn classify(&mut self, filters: &mut FilterList, own: QdiscState, pkt: &Pkt) -> ClassifyResult {
        classify(filters, self, own.handle, pkt)
    }
}

/// Asks the filters of a class, to which its qdisc's list lends the tables of u32.
pub(crate) fn classify_at_class(
    filters: &mut FilterList,
    of_class: &mut FilterList,
    cx: &mut Context<'_>,
    qdisc: Handle,
    pkt: &Pkt,
) -> ClassifyResult {
    filters.swap_tables(of_class);
    let answer = classify(of_class, cx, qdisc, pkt);
    filters.swap_tables(of_class);
    answer
}

/// The class of a packet where there is no default: the one that its priority names, otherwise the one that
/// the filters name, if `find` knows it.
#[inline]
pub(crate) fn choose_class(
    cx: &mut Context<'_>,
    own: QdiscState,
    filters: &mut FilterList,
    pkt: &Pkt,
    find: impl Fn(Handle) -> Option<u32>,
) -> Result<Option<u32>, Consumed> {
    let priority = cx.pool.meta(pkt).priority_class();
    if priority.qdisc() == own.handle
        && let Some(at) = find(priority)
    {
        return Ok(Some(at));
    }
    match classify(filters, cx, own.handle, pkt) {
        ClassifyResult::Nothing => Ok(None),
        ClassifyResult::Class(class) => Ok(find(class)),
        ClassifyResult::Consumed(gone) => Err(gone),
    }
}

impl Consumed {
    /// Carries it out in the name of the qdisc with the handle `at`: what comes back is what `enqueue`
    /// returns.
    #[cold]
    pub fn carry_out(self, cx: &mut Context<'_>, at: Handle, pkt: Pkt) -> Enqueue {
        match self {
            Consumed::Dropped => {
                // Ancestors count it; the sender is not reported.
                cx.drop(at, pkt, DropReason::Policy);
                Enqueue::DroppedSilently
            }
            Consumed::Stolen => {
                cx.steal(at, pkt);
                Enqueue::Taken
            }
            Consumed::Redirected(way) => {
                cx.redirect(at, pkt, way);
                Enqueue::Taken
            }
        }
    }
}

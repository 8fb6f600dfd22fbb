//! Qdiscs made outside this crate, and how they come into a tree.

use crate::batch::BuiltIn;
use crate::context::Context;
use crate::discipline::Discipline;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::ops::{Deref, DerefMut};
use tidegate_packet::Handle;
use tidegate_policy::{CustomParams, Errno, QdiscParams, TcError};

/// A kind of qdisc that a program brings along: its parameters, and how one with these is made.
///
/// A value of it goes into [`custom`], and that into a `QdiscOp`, which any gateway carries out: simulated or
/// live, below other qdiscs or above them.
///
/// ```
/// use tidegate_classify::FilterList;
/// use tidegate_packet::{Fifo, Handle, Pkt};
/// use tidegate_policy::{QdiscParams, TcError};
/// use tidegate_qdisc::{Context, CustomKind, Dequeue, Discipline, Enqueue, QdiscState, DropReason, custom,
/// custom_params};
///
/// /// A queue of so many packets.
/// #[derive(Clone)]
/// struct Short {
///     limit: u32,
/// }
///
/// impl CustomKind for Short {
///     fn name(&self) -> &str {
///         "short"
///     }
///     fn words(&self) -> String {
///         format!("limit {}", self.limit)
///     }
///     fn make(&self, _: &mut Context<'_>, _: Handle) -> Result<Box<dyn Discipline>, TcError> {
///         Ok(Box::new(CodelQueue { params: self.clone(), queue: Fifo::default() }))
///     }
/// }
///
/// struct CodelQueue {
///     params: Short,
///     queue: Fifo,
/// }
///
/// impl Discipline for CodelQueue {
///     fn enqueue(&mut self, cx: &mut Context<'_>, own: QdiscState, _: &mut FilterList, pkt: Pkt) -> Enqueue
///     { if own.qlen >= self.params.limit {
///             cx.drop(own.handle, pkt, DropReason::Full);
///             return Enqueue::Dropped;
///         }
///         self.queue.push_back(cx.pool, pkt);
///         Enqueue::Queued
///     }
///     fn dequeue(&mut self, cx: &mut Context<'_>, _: QdiscState) -> Dequeue {
///         self.queue.pop_front(cx.pool).map_or(Dequeue::Empty, Dequeue::Packet)
///     }
///     fn change(&mut self, _: &mut Context<'_>, _: QdiscState, to: Option<&QdiscParams>) -> Result<(),
///     TcError> { if let Some(params) = to.and_then(custom_params::<Short>) {
///             self.params = params.clone();
///         }
///         Ok(())
///     }
///     fn purge(&mut self, cx: &mut Context<'_>, own: QdiscState) {
///         while let Some(pkt) = self.queue.pop_front(cx.pool) {
///             cx.purge(own.handle, pkt);
///         }
///     }
///     fn params(&self) -> QdiscParams {
///         custom(self.params.clone())
///     }
/// }
///
/// let params = custom(Short { limit: 10 });
/// assert_eq!(custom_params::<Short>(&params).map(|short| short.limit), Some(10));
/// ```
pub trait CustomKind: Any + Send + Sync {
    /// Its name: one word, as in `tc qdisc show`.
    fn name(&self) -> &str;

    /// Its parameters in words, as they are after the name in `tc qdisc show`: `limit 100`. Two values with
    /// the same name and words are taken for the same.
    fn words(&self) -> String;

    /// Makes the qdisc.
    ///
    /// # Errors
    /// If the parameters make no sense; the operation is refused with this error, and nothing has changed.
    fn make(&self, cx: &mut Context<'_>, handle: Handle) -> Result<Box<dyn Discipline>, TcError>;
}

/// What is behind the [`Any`] of [`CustomParams`].
struct Erased(Box<dyn CustomKind>);

/// Parameters of a qdisc of this kind, for `QdiscOp::params` and [`Discipline::params`].
pub fn custom(kind: impl CustomKind) -> QdiscParams {
    let (name, words) = (kind.name().into(), kind.words());
    QdiscParams::Custom(CustomParams::new(name, words, Arc::new(Erased(Box::new(kind)))))
}

/// The value of `K` behind these parameters; `None` if they are another kind's.
pub fn custom_params<K: CustomKind>(params: &QdiscParams) -> Option<&K> {
    let QdiscParams::Custom(params) = params else { return None };
    let kind: &dyn Any = &*erased(params)?.0;
    kind.downcast_ref()
}

fn erased(params: &CustomParams) -> Option<&Erased> {
    params.maker().downcast_ref()
}

/// A qdisc made outside, as one of the bodies of a Node.
pub(crate) struct Custom(pub(crate) Box<dyn Discipline>);

impl Custom {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        handle: Handle,
        params: Option<&CustomParams>,
    ) -> Result<Custom, TcError> {
        let kind = params.and_then(erased).ok_or(TcError::bare(Errno::Inval))?;
        kind.0.make(cx, handle).map(Custom)
    }
}

impl Deref for Custom {
    type Target = dyn Discipline;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Custom {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl BuiltIn for Custom {}

//! The kinds, one file each.

mod blackhole;
mod cake;
mod choke;
mod codel;
mod drr;
mod dualpi2;
mod ets;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod gred;
mod hfsc;
mod hhf;
mod htb;
mod mq;
mod multiq;
mod netem;
mod pfifo_fast;
mod pie;
mod plug;
mod prio;
mod qfq;
mod red;
mod sfb;
mod sfq;
mod skbprio;
mod tbf;

pub use cake::{CakeReason, CakeTin};

use crate::batch::{Batch, Budget, BuiltIn, ParentQdisc};
use crate::context::{Context, DeviceInfo, DropReason};
use crate::custom::Custom;
use crate::discipline::{Dequeue, Discipline, Enqueue, Peek, QdiscState};
use crate::node::QdiscNode;
use alloc::boxed::Box;
use alloc::vec::Vec;
pub(crate) use mq::Mq;
use tidegate_classify::FilterList;
use tidegate_packet::{Handle, LinuxChange, Pkt, Pool, Time};
use tidegate_policy::dump::{ClassDump, Xstats};
use tidegate_policy::{ClassParams, Errno, FifoParams, Kind, QdiscParams, TcError};

/// Every body there is: hands the list to a macro, behind what the macro is given.
macro_rules! bodies {
    ($with:ident $($given:tt)*) => {
        $with! {
            [$($given)*]
            Noop(Noop),
            Fifo(fifo::Fifo),
            Blackhole(blackhole::Blackhole),
            PfifoFast(Box<pfifo_fast::PfifoFast>),
            Plug(Box<plug::Plug>),
            Prio(Box<prio::Prio>),
            Tbf(Box<tbf::Tbf>),
            Htb(Box<htb::Htb>),
            Sfq(Box<sfq::Sfq>),
            Drr(Box<drr::Drr>),
            Codel(Box<codel::Codel>),
            FqCodel(Box<fq_codel::FqCodel>),
            Red(Box<red::Red>),
            Choke(Box<choke::Choke>),
            Sfb(Box<sfb::Sfb>),
            Pie(Box<pie::Pie>),
            DualPi2(Box<dualpi2::DualPi2>),
            Hfsc(Box<hfsc::Hfsc>),
            Qfq(Box<qfq::Qfq>),
            Cake(Box<cake::Cake>),
            Multiq(Box<multiq::Multiq>),
            Mq(Box<Mq>),
            Ets(Box<ets::Ets>),
            Fq(Box<fq::Fq>),
            FqPie(Box<fq_pie::FqPie>),
            Gred(Box<gred::Gred>),
            Hhf(Box<hhf::Hhf>),
            Netem(Box<netem::Netem>),
            Skbprio(Box<skbprio::Skbprio>),
        }
    };
}

macro_rules! declare {
    ([] $($body:ident($type:ty),)*) => {
        /// The qdisc of a node.
        pub(crate) enum Body {
            $($body($type),)*
            Custom(Box<Custom>),
        }

        impl Body {
            pub(crate) fn get(&self) -> &dyn Discipline {
                match self {
                    $(Body::$body(body) => body.any(),)*
                    Body::Custom(body) => &*body.0,
                }
            }

            pub(crate) fn get_mut(&mut self) -> &mut dyn Discipline {
                match self {
                    $(Body::$body(body) => body.any_mut(),)*
                    Body::Custom(body) => &mut *body.0,
                }
            }
        }
    };
}

bodies!(declare);

/// What calls a method of whichever body it is, without a table of functions.
macro_rules! dispatch {
    ($body:expr, $d:ident => $call:expr) => { bodies!(dispatch_to $body, $d => $call) };
}

macro_rules! dispatch_to {
    ([$of:expr, $d:ident => $call:expr] $($body:ident($type:ty),)*) => {
        match $of {
            $(Body::$body($d) => $call,)*
            Body::Custom($d) => $call,
        }
    };
}

/// The same dispatch for the kinds that have a [`Batch`] part, and the default for all others.
macro_rules! batches {
    ($of:expr, $d:ident => $call:expr, $otherwise:expr) => {
        match $of {
            Body::Htb($d) => $call,
            Body::Prio($d) => $call,
            Body::Drr($d) => $call,
            _ => $otherwise,
        }
    };
}

/// In `impl Discipline`: it has a [`Classful`](crate::classful::Classful) part.
macro_rules! classful {
    () => {
        fn as_classful(&self) -> Option<&dyn crate::classful::Classful> {
            Some(self)
        }
        fn as_classful_mut(&mut self) -> Option<&mut dyn crate::classful::Classful> {
            Some(self)
        }
    };
}
use classful;

/// In `impl Classful`: it has an [`InnerClasses`](crate::classful::InnerClasses) part.
macro_rules! inner_classes {
    () => {
        fn as_inner_classes(&self) -> Option<&dyn crate::classful::InnerClasses> {
            Some(self)
        }
        fn as_inner_classes_mut(&mut self) -> Option<&mut dyn crate::classful::InnerClasses> {
            Some(self)
        }
    };
}
use inner_classes;

/// In `impl Discipline`: it has a [`Rehash`](crate::discipline::Rehash) part.
macro_rules! rehashes {
    () => {
        fn as_rehash(&self) -> Option<&dyn crate::discipline::Rehash> {
            Some(self)
        }
        fn as_rehash_mut(&mut self) -> Option<&mut dyn crate::discipline::Rehash> {
            Some(self)
        }
    };
}
use rehashes;

/// A body as any qdisc, be it in a box or not.
trait Any {
    fn any(&self) -> &dyn Discipline;
    fn any_mut(&mut self) -> &mut dyn Discipline;
}

impl<D: Discipline + 'static> Any for D {
    fn any(&self) -> &dyn Discipline {
        self
    }
    fn any_mut(&mut self) -> &mut dyn Discipline {
        self
    }
}

impl Body {
    pub(crate) fn new(
        cx: &mut Context<'_>,
        kind: Kind,
        handle: Handle,
        parent: Handle,
        params: Option<&QdiscParams>,
    ) -> Result<Body, TcError> {
        let device = cx.device;
        // tc sends parameters of the kind it names; anything else is a caller's mistake and answered as the
        // kernel would.
        macro_rules! of {
            ($variant:ident) => {
                match params {
                    Some(QdiscParams::$variant(params)) => Some(params),
                    None => None,
                    Some(_) => return Err(TcError::bare(Errno::Inval)),
                }
            };
        }
        Ok(match kind {
            Kind::Pfifo | Kind::Bfifo | Kind::PfifoHeadDrop => {
                Body::Fifo(fifo::Fifo::new(device, kind, of!(Fifo)))
            }
            // Recorded: queue-of-0-pfifo_fast.
            Kind::PfifoFast if device.tx_queue_len == 0 => return Err(TcError::bare(Errno::Inval)),
            Kind::PfifoFast => Body::pfifo_fast(device, false),
            // What a card cannot take at once would be dropped, and whether it can is not known here.
            Kind::Noqueue if !device.queueless => return Err(TcError::bare(Errno::OpNotSupp)),
            Kind::Noqueue => Body::pfifo_fast(device, true),
            Kind::Prio => Body::Prio(Box::new(prio::Prio::new(cx, handle, of!(Prio))?)),
            Kind::Tbf => Body::Tbf(Box::new(tbf::Tbf::new(cx, handle, of!(Tbf))?)),
            Kind::Htb => Body::Htb(Box::new(htb::Htb::new(device, handle, of!(Htb))?)),
            Kind::Sfq => Body::Sfq(Box::new(sfq::Sfq::new(cx, of!(Sfq))?)),
            Kind::Drr => Body::Drr(Box::default()),
            Kind::Codel => Body::Codel(Box::new(codel::Codel::new(device, of!(Codel)))),
            Kind::FqCodel => Body::FqCodel(Box::new(fq_codel::FqCodel::new(device, of!(FqCodel))?)),
            Kind::Red => Body::Red(Box::new(red::Red::new(cx, handle, of!(Red))?)),
            Kind::Choke => Body::Choke(Box::new(choke::Choke::new(of!(Choke))?)),
            Kind::Sfb => Body::Sfb(Box::new(sfb::Sfb::new(cx, handle, of!(Sfb)))),
            Kind::Pie => Body::Pie(Box::new(pie::Pie::new(cx, of!(Pie)))),
            Kind::DualPi2 => Body::DualPi2(Box::new(dualpi2::DualPi2::new(cx, of!(DualPi2))?)),
            Kind::Hfsc => Body::Hfsc(Box::new(hfsc::Hfsc::new(cx, handle, of!(Hfsc))?)),
            Kind::Qfq => Body::Qfq(Box::new(qfq::Qfq::new(device))),
            Kind::Cake => Body::Cake(Box::new(cake::Cake::new(device, of!(Cake).map(|params| &**params)))),
            Kind::Ets => Body::Ets(Box::new(ets::Ets::new(cx, handle, of!(Ets))?)),
            Kind::Fq => Body::Fq(Box::new(fq::Fq::new(cx, of!(Fq))?)),
            Kind::FqPie => Body::FqPie(Box::new(fq_pie::FqPie::new(cx, of!(FqPie))?)),
            Kind::Gred => Body::Gred(Box::new(gred::Gred::new(cx, of!(Gred))?)),
            Kind::Hhf => Body::Hhf(Box::new(hhf::Hhf::new(cx, of!(Hhf))?)),
            Kind::Netem => {
                Body::Netem(Box::new(netem::Netem::new(cx, parent, of!(Netem).map(|params| &**params))?))
            }
            Kind::Skbprio => Body::Skbprio(Box::new(skbprio::Skbprio::new(of!(Skbprio)))),
            Kind::Blackhole => Body::Blackhole(blackhole::Blackhole),
            Kind::Plug => Body::Plug(Box::new(plug::Plug::new(device, of!(Plug)))),
            Kind::Mq => Body::Mq(Box::new(Mq::new(cx, handle, parent)?)),
            Kind::Multiq => Body::Multiq(Box::new(multiq::Multiq::new(cx, handle, of!(Multiq))?)),
            Kind::Custom => Body::Custom(Box::new(Custom::new(cx, handle, of!(Custom))?)),
            // The hooks are beside the tree, not in it.
            Kind::Ingress | Kind::Clsact => return Err(TcError::bare(Errno::OpNotSupp)),
        })
    }

    /// The fifo that was not requested.
    pub(crate) fn default_of(device: DeviceInfo, kind: Kind) -> Body {
        Body::Fifo(fifo::Fifo::new(device, kind, None))
    }

    pub(crate) fn pfifo_fast(device: DeviceInfo, noqueue: bool) -> Body {
        Body::PfifoFast(Box::new(pfifo_fast::PfifoFast::new(device, noqueue)))
    }

    pub(crate) fn fifo(kind: Kind, limit: u32) -> Body {
        Body::Fifo(fifo::Fifo::new(DeviceInfo::default(), kind, Some(&FifoParams { limit: Some(limit) })))
    }

    /// Sets a fifo's limit from above; other kinds do not listen.
    pub(crate) fn set_fifo_limit(&mut self, limit: u32) {
        if let Body::Fifo(fifo) = self {
            fifo.set_limit(limit);
        }
    }

    #[inline]
    pub(crate) fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        dispatch!(self, d => d.enqueue(cx, own, filters, pkt))
    }

    /// Classification without filters.
    #[inline(never)]
    pub(crate) fn enqueue_unfiltered(&mut self, cx: &mut Context<'_>, own: QdiscState, pkt: Pkt) -> Enqueue {
        self.enqueue(cx, own, &mut FilterList::new(), pkt)
    }

    #[inline]
    pub(crate) fn enqueue_plain(
        &mut self,
        pool: &mut Pool,
        at: ParentQdisc<'_>,
        pkt: Pkt,
        len: u32,
    ) -> Result<(), Pkt> {
        batches!(self, d => d.enqueue_plain(pool, at, pkt, len), Err(pkt))
    }

    #[inline]
    pub(crate) fn child_hint(
        &self,
        pool: &mut Pool,
        qdisc: Handle,
        filters: &FilterList,
        pkt: &Pkt,
    ) -> Option<&QdiscNode> {
        batches!(self, d => d.child_hint(pool, qdisc, filters, pkt), None)
    }

    #[inline]
    pub(crate) fn prefetch(&self, pool: &mut Pool, depth: u32, room: u32) {
        batches!(self, d => d.prefetch(pool, depth, room), ());
    }

    #[inline]
    pub(crate) fn dequeue(&mut self, cx: &mut Context<'_>, own: QdiscState) -> Dequeue {
        dispatch!(self, d => d.dequeue(cx, own))
    }

    #[inline]
    pub(crate) fn dequeue_run(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        budget: &mut Budget,
        out: &mut Vec<Pkt>,
    ) -> bool {
        batches!(self, d => d.dequeue_run(cx, own, budget, out), false)
    }

    /// May it know how to give packets in a row?
    #[inline]
    pub(crate) fn knows_runs(&self) -> bool {
        matches!(self, Body::Fifo(_)) || batches!(self, _d => true, false)
    }

    #[inline]
    pub(crate) fn catch_up(&mut self, now: Time, own: QdiscState) {
        dispatch!(self, d => d.catch_up(now, own));
    }

    #[inline]
    pub(crate) fn peek(&mut self, cx: &mut Context<'_>) -> Option<Peek> {
        dispatch!(self, d => d.peek(cx))
    }

    pub(crate) fn peek_slot(&self) -> Option<usize> {
        dispatch!(self, d => d.peek_slot())
    }

    pub(crate) fn resize(&mut self, device: DeviceInfo) {
        dispatch!(self, d => d.resize(device));
    }
}

/// Drops everything: what is attached where a child was deleted and nothing takes its place.
pub(crate) struct Noop;

impl Discipline for Noop {
    fn enqueue(
        &mut self,
        cx: &mut Context<'_>,
        own: QdiscState,
        _filters: &mut FilterList,
        pkt: Pkt,
    ) -> Enqueue {
        cx.drop(own.handle, pkt, DropReason::Full);
        Enqueue::Congested
    }

    fn dequeue(&mut self, _cx: &mut Context<'_>, _own: QdiscState) -> Dequeue {
        Dequeue::Empty
    }

    fn change(
        &mut self,
        _cx: &mut Context<'_>,
        _own: QdiscState,
        _params: Option<&QdiscParams>,
    ) -> Result<(), TcError> {
        Err(NO_CHANGE)
    }

    fn purge(&mut self, _cx: &mut Context<'_>, _own: QdiscState) {}
    fn params(&self) -> QdiscParams {
        QdiscParams::Drr
    }
}

impl BuiltIn for Noop {
    fn peek(&mut self, _cx: &mut Context<'_>) -> Option<Peek> {
        Some(Peek::Empty)
    }
}

/// What kinds without a change operation answer.
pub(crate) const NO_CHANGE: TcError =
    TcError::new(Errno::Inval, "Change operation not supported by specified qdisc");

/// What kinds answer who want a class gone that filters or other classes need: newer releases say it in
/// words.
pub(crate) fn class_in_use(cx: &Context<'_>, words: &'static str) -> TcError {
    match cx.device.switches.linux.has(LinuxChange::ClassInUse) {
        true => TcError::new(Errno::Busy, words),
        false => TcError::bare(Errno::Busy),
    }
}

/// Drops all of a queue, as one group.
pub(crate) fn purge_queue(cx: &mut Context<'_>, at: Handle, queue: &mut tidegate_packet::Fifo) {
    cx.next_purge_group();
    while let Some(pkt) = queue.pop_front(cx.pool) {
        cx.purge(at, pkt);
    }
}

/// The one class of a kind with one child: it counts nothing.
fn only_class(kind: Kind, qdisc: Handle, child: &QdiscNode) -> ClassDump {
    ClassDump {
        dev: Default::default(),
        kind,
        classid: qdisc.class(1),
        parent: qdisc,
        leaf: child.handle(),
        params: ClassParams::None,
        stats: None,
        xstats: Xstats::None,
    }
}

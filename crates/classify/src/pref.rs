//! The filters of one preference: all of one kind.

use crate::actions::{Actions, Bound, Told};
use crate::basic::Basic;
use crate::flow::Flow;
use crate::flower::Flower;
use crate::fw::Fw;
use crate::list::{Owner, RandomSource};
use crate::matchall::Matchall;
use crate::u32::U32;
use tidegate_packet::Handle;
use tidegate_policy::dump::FilterEntry;
use tidegate_policy::{Errno, FilterOp, FilterParams, FwParams, TcError};

/// What lists do with filters of any kind, but for asking and making them.
pub(crate) trait Filters {
    /// The kind's name.
    fn kind(&self) -> &'static str;
    fn is_empty(&self) -> bool;
    /// Is there one of this handle?
    fn has(&self, handle: u32) -> bool;
    /// Removes it; false: there is none.
    fn remove(&mut self, handle: u32) -> bool;
    /// Does one hold a class?
    fn binds(&self, class: Handle) -> bool;
    /// Those that lead to a class hold it, or no longer.
    fn rebind(&mut self, class: Handle, bound: bool);
    /// Shows the places of each one's actions.
    fn each_action(&self, show: &mut dyn FnMut(&[u32]));
    /// Tells of each, in the kernel's order.
    fn dump(&self, told: Told<'_>, line: &mut dyn FnMut(FilterEntry));
}

#[derive(Debug)]
pub(crate) struct Pref {
    pub(crate) pref: u16,
    pub(crate) protocol: u16,
    pub(crate) chain: u32,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Fw(Fw),
    U32(U32),
    Flow(Flow),
    Matchall(Matchall),
    Basic(Basic),
    Flower(Flower),
}

impl Body {
    /// Of any kind but u32, which needs a number for its table.
    pub(crate) fn new(kind: &str) -> Option<Body> {
        Some(match kind {
            "fw" => Body::Fw(Fw::new()),
            "flow" => Body::Flow(Flow::default()),
            "matchall" => Body::Matchall(Matchall::default()),
            "basic" => Body::Basic(Basic::default()),
            "flower" => Body::Flower(Flower::default()),
            _ => return None,
        })
    }

    pub(crate) fn get(&self) -> &dyn Filters {
        match self {
            Body::Fw(fw) => fw,
            Body::U32(u32) => u32,
            Body::Flow(flow) => flow,
            Body::Matchall(all) => all,
            Body::Basic(basic) => basic,
            Body::Flower(flower) => flower,
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut dyn Filters {
        match self {
            Body::Fw(fw) => fw,
            Body::U32(u32) => u32,
            Body::Flow(flow) => flow,
            Body::Matchall(all) => all,
            Body::Basic(basic) => basic,
            Body::Flower(flower) => flower,
        }
    }
}

impl Pref {
    /// Makes a filter.
    pub(crate) fn set(
        &mut self,
        op: &FilterOp,
        owner: Owner<'_>,
        actions: &mut Actions,
        random: &mut RandomSource<'_>,
    ) -> Result<(), TcError> {
        let with = Bound::new(&op.actions, actions, owner.now)?;
        let places = with.places().to_vec();
        self.make(op, owner, with, random).inspect_err(|_| actions.unbind(&places))
    }

    fn make(
        &mut self,
        op: &FilterOp,
        owner: Owner<'_>,
        with: Bound,
        random: &mut RandomSource<'_>,
    ) -> Result<(), TcError> {
        let bound = op.params.as_ref().and_then(FilterParams::classid).is_some_and(|class| (owner.has_class)(class));
        match (&mut self.body, &op.params) {
            (Body::Fw(fw), Some(FilterParams::Fw(params))) => fw.add(op.handle, params, bound, with),
            // `fw` without words: the mark names the class.
            (Body::Fw(fw), None) if op.handle == 0 => fw.add(0, &FwParams::default(), false, with),
            (Body::U32(u32), Some(FilterParams::U32(params))) if !params.keys.is_empty() || params.mark.is_some() => {
                u32.add(op.handle, params, bound, with)
            }
            (Body::U32(_), Some(FilterParams::U32(_)) | None) => {
                Err(TcError::new(Errno::Inval, "cls_u32: Selector not specified"))
            }
            (Body::Flow(flow), Some(FilterParams::Flow(params))) => {
                let timer = owner.wheel.arm(owner.now, params.perturb);
                flow.add(op.handle, params, owner.qdisc, timer, with, random)
            }
            (Body::Matchall(all), Some(FilterParams::Matchall(params))) => all.add(op.handle, params, bound, with),
            (Body::Basic(basic), Some(FilterParams::Basic(params))) => basic.add(op.handle, params, bound, with),
            (Body::Flower(flower), Some(FilterParams::Flower(params))) => flower.add(op.handle, params, bound, with),
            _ => Err(TcError::bare(Errno::Inval)),
        }
    }

    /// Changes a filter that is there.
    pub(crate) fn change(&mut self, op: &FilterOp, owner: Owner<'_>, actions: &mut Actions) -> Result<(), TcError> {
        let with = Bound::new(&op.actions, actions, owner.now)?;
        let places = with.places().to_vec();
        self.alter(op, owner, with).inspect_err(|_| actions.unbind(&places))
    }

    fn alter(&mut self, op: &FilterOp, owner: Owner<'_>, with: Bound) -> Result<(), TcError> {
        let bound = op.params.as_ref().and_then(FilterParams::classid).is_some_and(|class| (owner.has_class)(class));
        match (&mut self.body, &op.params) {
            (Body::Fw(fw), Some(FilterParams::Fw(params))) => fw.change(op.handle, params, bound, with),
            (Body::U32(u32), Some(FilterParams::U32(params))) => u32.change(op.handle, params, bound, with),
            (Body::Flow(flow), Some(FilterParams::Flow(params))) => {
                let timer = owner.wheel.arm(owner.now, params.perturb);
                flow.change(op.handle, params, owner.qdisc, timer, with)
            }
            // It cannot be changed: the kernel says that it is there.
            (Body::Matchall(_), Some(FilterParams::Matchall(_))) => Err(TcError::bare(Errno::Exist)),
            (Body::Basic(basic), Some(FilterParams::Basic(params))) => basic.change(op.handle, params, bound, with),
            (Body::Flower(flower), Some(FilterParams::Flower(params))) => flower.change(op.handle, params, bound, with),
            _ => Err(TcError::bare(Errno::Inval)),
        }
    }
}

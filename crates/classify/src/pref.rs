//! The filters of one preference: all of one kind.

use crate::actions::Actions;
use crate::basic::Basic;
use crate::cgroup::Cgroup;
use crate::context::Bound;
use crate::entries::Filters;
use crate::flow::Flow;
use crate::flower::Flower;
use crate::fw::Fw;
use crate::matchall::Matchall;
use crate::query::{FilterRandom, Owner};
use crate::route::Route;
use crate::u32::{Root, Tables};
use tidegate_packet::Handle;
use tidegate_policy::{Act, Errno, FilterOp, FilterParams, FlowerField, FlowerParams, FwParams, TcError};

/// The handle of ingress and clsact.
const HOOKS: Handle = Handle(0xffff_0000);

#[derive(Debug)]
pub(crate) struct Pref {
    pub(crate) pref: u16,
    pub(crate) protocol: u16,
    pub(crate) chain: u32,
    pub(crate) body: Body,
}

/// The kind is a number of its own, not hidden in a list's capacity: four instructions fewer per packet.
#[derive(Debug)]
#[repr(u32)]
pub(crate) enum Body {
    Fw(Fw),
    /// The number of its root table; the qdisc has them.
    U32(u32),
    Flow(Flow),
    Matchall(Matchall),
    Basic(Basic),
    Flower(Flower),
    Cgroup(Cgroup),
    Route(Route),
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
            "cgroup" => Body::Cgroup(Cgroup::default()),
            "route" => Body::Route(Route::default()),
            _ => return None,
        })
    }

    /// The kind's name.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Body::U32(_) => "u32",
            Body::Fw(_) => "fw",
            Body::Flow(_) => "flow",
            Body::Matchall(_) => "matchall",
            Body::Basic(_) => "basic",
            Body::Flower(_) => "flower",
            Body::Cgroup(_) => "cgroup",
            Body::Route(_) => "route",
        }
    }

    /// Its filters, unless they are u32's.
    pub(crate) fn get(&self) -> Option<&dyn Filters> {
        Some(match self {
            Body::U32(_) => return None,
            Body::Fw(fw) => fw,
            Body::Flow(flow) => flow,
            Body::Matchall(all) => all,
            Body::Basic(basic) => basic,
            Body::Flower(flower) => flower,
            Body::Cgroup(cgroup) => cgroup,
            Body::Route(route) => route,
        })
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut dyn Filters> {
        Some(match self {
            Body::U32(_) => return None,
            Body::Fw(fw) => fw,
            Body::Flow(flow) => flow,
            Body::Matchall(all) => all,
            Body::Basic(basic) => basic,
            Body::Flower(flower) => flower,
            Body::Cgroup(cgroup) => cgroup,
            Body::Route(route) => route,
        })
    }
}

/// What making or changing a filter needs beside it.
pub(crate) struct Making<'a, 'o, 'r> {
    pub(crate) owner: Owner<'o>,
    pub(crate) actions: &'a mut Actions,
    pub(crate) random: &'a mut FilterRandom<'r>,
    /// u32's tables.
    pub(crate) tables: &'a mut Tables,
    /// The number for a table of u32 that has none.
    pub(crate) free_table: Option<u32>,
}

/// Checks that a filter's conditions and actions are allowed here, as far as they need connection tracking.
fn attach(op: &FilterOp, with: &mut Making<'_, '_, '_>) -> Result<(), TcError> {
    let asks_mark = |params: &FlowerParams| params.key(FlowerField::CtMark).is_some();
    if matches!(&op.params, Some(FilterParams::Flower(params)) if asks_mark(params)) {
        with.actions.need_connections();
    }
    if with.owner.qdisc != HOOKS && op.actions.iter().any(|action| matches!(action.act, Act::Ct(_))) {
        let why = "act_ct: Attaching ct to a non ingress/clsact qdisc is unsupported";
        return Err(TcError::new(Errno::OpNotSupp, why));
    }
    Ok(())
}

/// Is the class there that the filter names?
fn holds_class(op: &FilterOp, owner: Owner<'_>) -> bool {
    op.params.as_ref().and_then(FilterParams::classid).is_some_and(|class| (owner.has_class)(class))
}

impl Pref {
    /// Is there a filter of this handle?
    pub(crate) fn has(&self, handle: u32, tables: &mut Tables) -> bool {
        match self.body.get() {
            Some(filters) => filters.has(handle),
            None => tables.has_handle(handle),
        }
    }

    /// Makes a filter.
    pub(crate) fn set(&mut self, op: &FilterOp, with: &mut Making<'_, '_, '_>) -> Result<(), TcError> {
        self.bind(op, with, Pref::make)
    }

    /// Binds the filter's actions, and releases them where it is refused.
    fn bind(
        &mut self,
        op: &FilterOp,
        with: &mut Making<'_, '_, '_>,
        carry_out: fn(&mut Pref, &FilterOp, Bound, &mut Making<'_, '_, '_>) -> Result<(), TcError>,
    ) -> Result<(), TcError> {
        attach(op, with)?;
        let actions = Bound::new(&op.actions, with.actions, with.owner.now)?;
        let places = actions.places().to_vec();
        carry_out(self, op, actions, with).inspect_err(|_| with.actions.unbind(&places))
    }

    fn make(&mut self, op: &FilterOp, actions: Bound, with: &mut Making<'_, '_, '_>) -> Result<(), TcError> {
        let Making { owner, .. } = *with;
        let bound = holds_class(op, owner);
        match (&mut self.body, &op.params) {
            (Body::Fw(fw), Some(FilterParams::Fw(params))) => fw.add(op.handle, params, bound, actions),
            // `fw` without words: the mark names the class.
            (Body::Fw(fw), None) if op.handle == 0 => fw.add(0, &FwParams::default(), false, actions),
            (Body::U32(root), Some(FilterParams::U32(params))) => {
                let root = Root { holder: owner.holder, pref: self.pref, table: *root };
                with.tables.add(root, op.handle, params, (bound, actions), with.free_table)
            }
            // Without words it is the root table alone.
            (Body::U32(_), None) if op.handle == 0 => Ok(()),
            (Body::Flow(flow), Some(FilterParams::Flow(params))) => {
                let timer = owner.wheel.arm(owner.now, params.perturb);
                flow.add(op.handle, params, owner.qdisc, timer, actions, with.random)
            }
            (Body::Matchall(all), Some(FilterParams::Matchall(params))) => {
                all.add(op.handle, params, bound, actions)
            }
            (Body::Basic(basic), Some(FilterParams::Basic(params))) => {
                basic.add(op.handle, params, bound, actions)
            }
            (Body::Flower(flower), Some(FilterParams::Flower(params))) => {
                flower.add(op.handle, params, bound, actions)
            }
            (Body::Cgroup(cgroup), Some(FilterParams::Cgroup(params))) => {
                cgroup.set(op.handle, params, actions)
            }
            (Body::Route(route), Some(FilterParams::Route(params))) => {
                route.add(op.handle, params, bound, actions)
            }
            (Body::Route(_), None) if op.handle == 0 => {
                Err(TcError::new(Errno::Inval, "Creating with handle of 0 is invalid"))
            }
            _ => Err(TcError::bare(Errno::Inval)),
        }
    }

    /// Changes a filter that is there.
    pub(crate) fn change(&mut self, op: &FilterOp, with: &mut Making<'_, '_, '_>) -> Result<(), TcError> {
        self.bind(op, with, Pref::alter)
    }

    fn alter(&mut self, op: &FilterOp, actions: Bound, with: &mut Making<'_, '_, '_>) -> Result<(), TcError> {
        let Making { owner, .. } = *with;
        let bound = holds_class(op, owner);
        match (&mut self.body, &op.params) {
            (Body::Fw(fw), Some(FilterParams::Fw(params))) => fw.change(op.handle, params, bound, actions),
            (Body::U32(_), Some(FilterParams::U32(params))) => {
                with.tables.change(op.handle, params, owner.holder, (bound, actions))
            }
            (Body::Flow(flow), Some(FilterParams::Flow(params))) => {
                flow.change(op.handle, params, owner.qdisc, |secs| owner.wheel.arm(owner.now, secs), actions)
            }
            // It cannot be changed: the kernel reports that it is there.
            (Body::Matchall(_), Some(FilterParams::Matchall(_))) => Err(TcError::bare(Errno::Exist)),
            (Body::Basic(basic), Some(FilterParams::Basic(params))) => {
                basic.change(op.handle, params, bound, actions)
            }
            (Body::Flower(flower), Some(FilterParams::Flower(params))) => {
                flower.change(op.handle, params, bound, actions)
            }
            (Body::Route(route), Some(FilterParams::Route(params))) => {
                route.change(op.handle, params, bound, actions)
            }
            _ => Err(TcError::bare(Errno::Inval)),
        }
    }
}

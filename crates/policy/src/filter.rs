//! What each kind of filter is configured with.

mod ematch;
mod flower;
mod parts;

use alloc::vec::Vec;
pub use ematch::{BasicParams, CanRule, Ematch, EmatchCompare, Layer, MetaId, MetaValue, Term, Width};
pub use flower::{FlowerField, FlowerKey, FlowerParams};
pub use parts::{Indev, U32Key, U32Offset, U32OffsetField, U32Params};

use tidegate_packet::Handle;

/// The parameters of a filter, by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterParams {
    /// By firewall mark; the filter's handle is the mark.
    Fw(FwParams),
    /// By words of the header.
    U32(U32Params),
    /// By a hash or a map of flow keys.
    Flow(FlowParams),
    /// Every packet.
    Matchall(MatchallParams),
    /// By an expression of several conditions.
    Basic(BasicParams),
    /// By fields of the headers.
    Flower(FlowerParams),
    /// By the control group of the process that sent the packet.
    Cgroup(CgroupParams),
    /// By the realms of the packet's route.
    Route(RouteParams),
}

impl FilterParams {
    /// The kind's name in tc.
    pub const fn kind(&self) -> &'static str {
        match self {
            FilterParams::Fw(_) => "fw",
            FilterParams::U32(_) => "u32",
            FilterParams::Flow(_) => "flow",
            FilterParams::Matchall(_) => "matchall",
            FilterParams::Basic(_) => "basic",
            FilterParams::Flower(_) => "flower",
            FilterParams::Cgroup(_) => "cgroup",
            FilterParams::Route(_) => "route",
        }
    }

    /// The device that packets must have come in by, if the filter has such a condition.
    pub fn indev(&self) -> Option<&Indev> {
        match self {
            FilterParams::Fw(params) => params.indev.as_ref(),
            FilterParams::U32(params) => params.indev.as_ref(),
            FilterParams::Flower(params) => params.indev.as_ref(),
            FilterParams::Route(params) => params.fromif.as_ref(),
            FilterParams::Flow(_)
            | FilterParams::Matchall(_)
            | FilterParams::Basic(_)
            | FilterParams::Cgroup(_) => None,
        }
    }

    /// The same, to change.
    pub fn indev_mut(&mut self) -> Option<&mut Indev> {
        match self {
            FilterParams::Fw(params) => params.indev.as_mut(),
            FilterParams::U32(params) => params.indev.as_mut(),
            FilterParams::Flower(params) => params.indev.as_mut(),
            FilterParams::Route(params) => params.fromif.as_mut(),
            FilterParams::Flow(_)
            | FilterParams::Matchall(_)
            | FilterParams::Basic(_)
            | FilterParams::Cgroup(_) => None,
        }
    }

    /// The class it leads to by name; flow computes its classes, and cgroup's are those of control groups.
    pub fn classid(&self) -> Option<Handle> {
        match self {
            FilterParams::Fw(params) => params.classid,
            FilterParams::U32(params) => params.classid,
            FilterParams::Flow(_) | FilterParams::Cgroup(_) => None,
            FilterParams::Matchall(params) => params.classid,
            FilterParams::Basic(params) => params.classid,
            FilterParams::Flower(params) => params.classid,
            FilterParams::Route(params) => params.classid,
        }
    }
}

/// fw: packets are classified by their firewall mark (tc-fw(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FwParams {
    /// The class that matching packets take.
    pub classid: Option<Handle>,
    /// Bits of the mark that are compared. In a dump `None` = all.
    pub mask: Option<u32>,
    /// The device that packets must have come in by.
    pub indev: Option<Indev>,
}

/// matchall: every packet matches (tc-matchall(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchallParams {
    /// The class that packets take.
    pub classid: Option<Handle>,
    /// No card shall do its work.
    pub skip_hw: bool,
}

/// cgroup: packets take the class that the control group of their process names (net_cls.classid), if they
/// meet the conditions (tc-cgroup(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupParams {
    /// What must hold beside; empty: everything does.
    pub terms: Vec<Term>,
}

/// route: packets are classified by the realms of their route (tc-route(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteParams {
    /// The class that matching packets take.
    pub classid: Option<Handle>,
    /// The realm of the source.
    pub from: Option<u8>,
    /// The device that packets must have come in by; never beside `from`.
    pub fromif: Option<Indev>,
    /// The realm of the destination.
    pub to: Option<u8>,
    /// Its place among filters of the same realms, 0 to 127.
    pub order: u8,
}

impl RouteParams {
    /// Its handle, if that does not depend on the number of a device.
    pub fn handle(&self) -> Option<u32> {
        self.fromif.is_none().then(|| self.handle_at(0))
    }

    /// Its handle, where the device has this number.
    pub fn handle_at(&self, device: u32) -> u32 {
        const ANY: u32 = 0x8000;
        let above = match (self.from, &self.fromif) {
            (Some(realm), _) => u32::from(realm),
            (None, Some(_)) => ANY | device & 0x7fff,
            (None, None) => 0xffff,
        };
        above << 16 | u32::from(self.order & 0x7f) << 8 | self.to.map_or(ANY, u32::from)
    }
}

/// Which of flow's keys are used: a bit set, bit 0 = `src`, in the order of [`FlowKeySet::NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKeySet(pub u32);

impl FlowKeySet {
    /// tc's names, in the order in which the keys are hashed; then those of the inside of a tunnel, which
    /// were never in Linux itself (Siemon's patch of 2011).
    pub const NAMES: [&'static str; 24] = [
        "src",
        "dst",
        "proto",
        "proto-src",
        "proto-dst",
        "iif",
        "priority",
        "mark",
        "nfct",
        "nfct-src",
        "nfct-dst",
        "nfct-proto-src",
        "nfct-proto-dst",
        "rt-classid",
        "sk-uid",
        "sk-gid",
        "vlan-tag",
        "rxhash",
        "flow-label",
        "tunnel-src",
        "tunnel-dst",
        "tunnel-proto",
        "tunnel-proto-src",
        "tunnel-proto-dst",
    ];

    /// The first of the keys of a tunnel's inside.
    pub const TUNNEL: usize = 19;

    /// Is key number `bit` in it?
    pub const fn has(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }
}

/// Hash the keys, or map one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowMode {
    /// Several keys are hashed.
    #[default]
    Hash,
    /// One key is computed with.
    Map,
}

/// flow: packets are dealt to classes by a hash or a map of flow keys (tc-flow(8)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowParams {
    /// Hash or map; `None` in a change that keeps the mode.
    pub mode: Option<FlowMode>,
    /// Which keys are hashed or mapped.
    pub keys: FlowKeySet,
    /// map: the key is masked with this,
    pub mask: u32,
    /// then exclusive-ored with this,
    pub xor: u32,
    /// shifted right by this,
    pub rshift: u32,
    /// and this is added.
    pub addend: u32,
    /// The result is taken modulo this; 0 = not.
    pub divisor: u32,
    /// The class for result 0. Default: class 1 of the qdisc.
    pub baseclass: Option<Handle>,
    /// Seconds between changes of the hash's seed; 0 = never.
    pub perturb: u32,
    /// Packets must also fulfil these conditions (`match`).
    pub terms: Vec<Term>,
    /// The options that a change gives; the others stay.
    pub given: FlowOptions,
}

/// Which of flow's numbers were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOptions {
    /// and, or, xor.
    pub bits: bool,
    /// rshift.
    pub rshift: bool,
    /// addend.
    pub addend: bool,
    /// divisor.
    pub divisor: bool,
    /// perturb.
    pub perturb: bool,
}

impl Default for FlowParams {
    fn default() -> FlowParams {
        FlowParams {
            mode: None,
            keys: FlowKeySet(0),
            mask: u32::MAX,
            xor: 0,
            rshift: 0,
            addend: 0,
            divisor: 0,
            baseclass: None,
            perturb: 0,
            terms: Vec::new(),
            given: FlowOptions::default(),
        }
    }
}

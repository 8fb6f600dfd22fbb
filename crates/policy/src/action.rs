//! Actions: what a filter does with a packet beside naming a class (tc-actions(8)).

mod connection;
mod control;
mod count;
mod csum;
mod edit;
mod gate;
mod mpls;
mod nat;
mod pedit;
mod police;
mod skbmod;
mod tunnel_key;
mod vlan;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
pub use connection::{Connmark, Ct, CtNat, Ctinfo, CtinfoCounts};
pub use control::Control;
pub use count::{SampleAction, Simple};
pub use csum::Csum;
pub use edit::{PacketType, Skbedit};
pub use gate::{Gate, GateClock, GateEntry};
pub use mpls::{Mpls, MplsFields, MplsHow};
pub use nat::Nat;
pub use pedit::{Pedit, PeditAt, PeditHeader, PeditKey};
pub use police::Police;
pub use skbmod::Skbmod;
pub use tunnel_key::{GeneveOption, TunnelFields, TunnelHow, TunnelKey, TunnelOptions};
pub use vlan::{Vlan, VlanHow, VlanTag};

/// An action of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The kind of action with its parameters.
    pub act: Act,
    /// Its number among the machine's actions of its kind, from 1, by which `tc actions` names it; 0: the
    /// machine chooses the lowest that is free.
    pub index: u32,
    /// Written as `police …` without `action` before it; the kernel keeps that and dumps it in another form.
    pub old_style: bool,
    /// Bytes that its owner can know it by (`cookie`), at most 16 (`TC_COOKIE_MAX_SIZE`); empty without.
    pub cookie: Vec<u8>,
    /// How cards are to count for it.
    pub card: CardCounts,
    /// It shall count in one place for all processors (`no_percpu`).
    pub no_percpu: bool,
    /// Restricts it to software or hardware, if given (`skip_hw`, `skip_sw`).
    pub only: Option<Only>,
}

/// Where alone an action may be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// A card (`skip_sw`).
    Card,
    /// The machine itself (`skip_hw`).
    Software,
}

/// How cards are to count for an action that they do (`hw_stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardCounts {
    /// Somehow.
    #[default]
    Any,
    /// At once.
    Immediate,
    /// Now and then.
    Delayed,
    /// Not at all.
    Disabled,
}

impl CardCounts {
    /// Its name in tc; none where it was not given.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            CardCounts::Any => None,
            CardCounts::Immediate => Some("immediate"),
            CardCounts::Delayed => Some("delayed"),
            CardCounts::Disabled => Some("disabled"),
        }
    }
}

impl From<Act> for Action {
    fn from(act: Act) -> Action {
        Action {
            act,
            index: 0,
            old_style: false,
            cookie: Vec::new(),
            card: CardCounts::Any,
            no_percpu: false,
            only: None,
        }
    }
}

/// An action by its kind: one variant for each that tc 6.1 knows and that can be carried out here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A decision and nothing else.
    Gact(Gact),
    /// What comes too fast is treated otherwise.
    Police(Police),
    /// The packet, or a copy of it, leaves by another device.
    Mirred(Mirred),
    /// What the kernel knows of the packet is changed: mark, priority.
    Skbedit(Skbedit),
    /// The packet gets its connection's mark.
    Connmark(Connmark),
    /// The packet gets what is written in its connection's mark.
    Ctinfo(Ctinfo),
    /// The packet is shown to connection tracking.
    Ct(Ct),
    /// The kernel's log gets a line.
    Simple(Simple),
    /// Some packets are copied to listening programs.
    Sample(SampleAction),
    /// Addresses become others.
    Nat(Nat),
    /// Bytes become others.
    Pedit(Pedit),
    /// Checksums are computed again.
    Csum(Csum),
    /// The link header is rewritten.
    Skbmod(Skbmod),
    /// Tags of VLANs are put on and taken off.
    Vlan(Vlan),
    /// Labels of MPLS are put on and taken off.
    Mpls(Mpls),
    /// The packet gets the metadata of a tunnel.
    TunnelKey(TunnelKey),
    /// Packets pass while a gate is open.
    Gate(Gate),
}

/// A decision, and another one now and then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gact {
    /// The decision that packets get unless a draw selects the other one.
    pub control: Control,
    /// With which others this one is mixed.
    pub random: Option<RandomGact>,
}

/// Another decision for some packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomGact {
    /// By a draw for each packet (`netrand`); else every so many packets (`determ`).
    pub drawn: bool,
    /// The decision for the packets that are chosen; the others get [`Gact::control`].
    pub control: Control,
    /// One packet in so many is chosen.
    pub one_in: u16,
}

/// mirred: the packet, or a copy of it, goes to another device (tc-mirred(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirred {
    /// The device's name, as given; in a dump, as it is called now (`*`: it is gone).
    pub to: String,
    /// Its number on the machine; [`Act::NOWHERE`] until the machine has looked it up, and when it is gone.
    pub device: u32,
    /// A copy goes there and the packet continues (`mirror`); otherwise the packet itself goes (`redirect`).
    pub copy: bool,
    /// It arrives there (`ingress`); otherwise it leaves there.
    pub arrives: bool,
    /// What happens to the packet here: `stolen` for a redirect, `pipe` for a mirror, by default.
    pub control: Control,
}

impl Mirred {
    /// Where packets go, in words: `eth1`, or `ingress of eth1`.
    pub fn target(&self) -> String {
        if self.arrives { format!("ingress of {}", self.to) } else { self.to.clone() }
    }
}

impl Act {
    /// The number of no device: not looked up yet, or gone.
    pub const NOWHERE: u32 = u32::MAX;

    /// `mirred egress redirect dev TO`.
    pub fn redirect(to: impl Into<String>) -> Act {
        Act::Mirred(Mirred {
            to: to.into(),
            device: Act::NOWHERE,
            copy: false,
            arrives: false,
            control: Control::Stolen,
        })
    }

    /// A decision and nothing else.
    pub const fn decide(control: Control) -> Act {
        Act::Gact(Gact { control, random: None })
    }

    /// The kind's name in tc.
    pub const fn kind(&self) -> &'static str {
        match self {
            Act::Gact(_) => "gact",
            Act::Police(_) => "police",
            Act::Mirred(_) => "mirred",
            Act::Skbedit(_) => "skbedit",
            Act::Connmark(_) => "connmark",
            Act::Ctinfo(_) => "ctinfo",
            Act::Ct(_) => "ct",
            Act::Simple(_) => "simple",
            Act::Sample(_) => "sample",
            Act::Nat(_) => "nat",
            Act::Pedit(_) => "pedit",
            Act::Csum(_) => "csum",
            Act::Skbmod(_) => "skbmod",
            Act::Vlan(_) => "vlan",
            Act::Mpls(_) => "mpls",
            Act::TunnelKey(_) => "tunnel_key",
            Act::Gate(_) => "gate",
        }
    }

    /// The decisions that it may come to.
    pub fn controls(&self) -> Vec<Control> {
        match self {
            Act::Gact(gact) => {
                [gact.control].into_iter().chain(gact.random.map(|other| other.control)).collect()
            }
            Act::Police(police) => vec![police.exceed, police.conform.unwrap_or_default()],
            Act::Mirred(Mirred { control, .. })
            | Act::Skbedit(Skbedit { control, .. })
            | Act::Connmark(Connmark { control, .. })
            | Act::Ctinfo(Ctinfo { control, .. })
            | Act::Ct(Ct { control, .. })
            | Act::Simple(Simple { control, .. })
            | Act::Sample(SampleAction { control, .. })
            | Act::Nat(Nat { control, .. })
            | Act::Pedit(Pedit { control, .. })
            | Act::Csum(Csum { control, .. })
            | Act::Skbmod(Skbmod { control, .. })
            | Act::Vlan(Vlan { control, .. })
            | Act::TunnelKey(TunnelKey { control, .. }) => vec![*control],
            // A packet that cannot be changed is dropped.
            Act::Mpls(Mpls { how: MplsHow::Modify(_) | MplsHow::DecTtl, control }) => {
                vec![*control, Control::Drop]
            }
            Act::Mpls(Mpls { control, .. }) => vec![*control],
            Act::Gate(Gate { control, .. }) => vec![*control, Control::Drop],
        }
    }

    /// The device that the packet itself leaves by (not the one where it is made to arrive), if that is what
    /// it does.
    pub fn redirects_to(&self) -> Option<&str> {
        match self {
            Act::Mirred(Mirred { copy: false, arrives: false, to, .. }) => Some(to),
            _ => None,
        }
    }
}

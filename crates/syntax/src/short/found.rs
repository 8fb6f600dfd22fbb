//! What was found of a machine, and how it fits a short policy.

use super::class_match::ClassMatch;
use super::policy::{Fair, Queue};
use tidegate_packet::Handle;
use tidegate_policy::netfilter::{Family, NetfilterRule};

/// Rates that a short policy knows, bit/s.
pub(super) const RATES: core::ops::RangeInclusive<u64> = 8_000..=100_000_000_000;
/// The rules of a chain, with its hook where that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Its table's family.
    pub family: Family,
    /// The table's name.
    pub table: String,
    /// The table is nft's, not one of iptables'.
    pub is_nft: bool,
    /// The chain's name.
    pub chain: String,
    /// The chain's rules, in order.
    pub rules: Vec<NetfilterRule>,
}

/// What a short policy has no words for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What it is.
    pub what: String,
    /// What the short policy has instead.
    pub instead: String,
}

impl Misfit {
    pub(super) fn new(what: impl Into<String>, instead: impl Into<String>) -> Misfit {
        Misfit { what: what.into(), instead: instead.into() }
    }
}

/// A class of the installed policy, and its name in the short policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterpart {
    /// The device's name.
    pub device: String,
    /// The class's handle on the device.
    pub class: Handle,
    /// The name, as [`super::Short::class_names`] has it.
    pub name: String,
}

/// The installed policy as a short policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// The policy; `None`: there is no tree that it could be made of.
    pub text: Option<String>,
    /// What it leaves out or changes.
    pub misfits: Vec<Misfit>,
    /// The classes that it takes up.
    pub classes: Vec<Counterpart>,
    /// The shaped devices that it takes up: away from the LAN, and towards it.
    pub devices: [Option<String>; 2],
}

/// A class found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) id: Handle,
    /// Its guaranteed rate in bits per second, and its ceiling.
    pub(super) rate: u64,
    pub(super) ceil: u64,
    pub(super) prio: u32,
    pub(super) queue: Queue,
    pub(super) fair: Fair,
    pub(super) matching: ClassMatch,
    pub(super) is_default: bool,
    /// What of it does not fit, if it is taken up.
    pub(super) notes: Vec<Misfit>,
}

/// What the link adds to each frame, as a device counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Framing {
    pub(super) overhead: i64,
    pub(super) mpu: u32,
    pub(super) atm: bool,
    pub(super) ptm: bool,
}

/// A device found.
pub(super) struct Tree {
    pub(super) dev: String,
    /// Whose packets it shapes: its own, or, on an ifb that gets what leaves by another device, that one.
    pub(super) on: String,
    pub(super) rate: u64,
    pub(super) classes: Vec<Found>,
    pub(super) framing: Framing,
    /// By what the link is shared, where it has no classes.
    pub(super) fair: Fair,
}

/// A rule for hosts that are not at the end of the packet where its class's device has them.
pub(super) struct WrongWay {
    /// The class's minor number, which it has on both devices.
    pub(super) class: u16,
    pub(super) hosts: Vec<String>,
    pub(super) misfit: Misfit,
}

/// Is a device one towards the LAN, by its name?
pub(super) fn is_lan(dev: &str) -> bool {
    dev.starts_with("br") || dev.starts_with("lan") || dev.starts_with("wl")
}

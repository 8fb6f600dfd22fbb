//! What filters have in common, and what a kind's row holds.

use crate::action::policer;
use crate::encode::action::list;
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_packet::Handle;
use tidegate_policy::{Action, FilterOp, FilterParams, Indev, U32Key};

/// A kind of filter: its attributes.
pub(crate) struct Row {
    /// The kind's name, as `TCA_KIND` has it.
    pub(crate) name: &'static str,
    /// The attribute of its actions.
    pub(crate) actions: u16,
    /// The attribute of a policer without `action` before it; `None`: the one of the actions.
    pub(crate) police: Option<u16>,
    /// Writes its attributes, with its actions.
    pub(super) encode: fn(&mut Attributes, &FilterOp, &FilterParams, Devices<'_>) -> Result<(), Unsent>,
    /// What is reported of it, without its actions.
    pub(crate) decode: fn(&Found<'_>) -> Option<FilterParams>,
}

/// Writes the filter's actions.
pub(super) fn actions(
    to: &mut Attributes,
    row: &Row,
    all: &[Action],
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    match all {
        [] => Ok(()),
        [only] if only.old_style => policer(to, row.police.unwrap_or(row.actions), only),
        all => list(to, row.actions, all, devices),
    }
}

/// The class that it leads to.
pub(super) fn class(to: &mut Attributes, number: u16, class: Option<Handle>) {
    to.maybe(number, class.map(|class| class.0));
}

/// The device that packets came in by.
pub(super) fn indev(to: &mut Attributes, number: u16, indev: Option<&Indev>) {
    if let Some(indev) = indev {
        to.text(number, &indev.name);
    }
}

/// The key in these 16 bytes.
pub(super) fn key(bytes: &[u8]) -> U32Key {
    let be = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let own = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    U32Key { mask: be(0), value: be(4), offset: own(8), offset_mask: own(12) }
}

//! What actions have in common, and what a kind's row holds.

use crate::decode::message::{Names, numbers};
use crate::encode::message::{Devices, Unsent};
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Attributes, Found, words};
use tidegate_policy::{Act, Action, Control};

/// Bytes of how most actions' structures begin.
const GENERAL: usize = 20;

/// A kind of action: its attributes.
pub(crate) struct Row {
    /// The kind's name, as `TCA_ACT_KIND` has it.
    pub(crate) name: &'static str,
    /// The attribute of its structure.
    pub(crate) structure: u16,
    /// The attribute of its ages.
    pub(crate) ages: u16,
    /// Writes its attributes.
    pub(crate) encode: fn(&mut Attributes, &Action, Devices<'_>) -> Result<(), Unsent>,
    /// What is reported of it.
    pub(crate) decode: fn(ActionAttributes<'_>) -> Option<(Head, Act)>,
}

/// What is reported of an action.
#[derive(Clone, Copy)]
pub(crate) struct ActionAttributes<'a> {
    /// The bytes of its structure.
    pub(crate) structure: &'a [u8],
    /// All its attributes.
    pub(crate) options: &'a Found<'a>,
    /// The names of devices.
    pub(crate) names: Names<'a>,
}

impl ActionAttributes<'_> {
    /// How most structures begin, and what follows that.
    pub(super) fn begun(&self) -> Option<(Head, &[u8])> {
        let (general, own) = self.structure.split_at_checked(GENERAL)?;
        match numbers(general).as_slice() {
            [index, _, decision, refs, binds] => {
                Some((Head { index: *index, control: control(*decision), refs: *refs, binds: *binds }, own))
            }
            _ => None,
        }
    }
}

/// Number, decision and reference counts.
pub(crate) struct Head {
    pub(crate) index: u32,
    pub(super) control: Control,
    pub(crate) refs: u32,
    pub(crate) binds: u32,
}

/// The decision of this number.
pub(super) const fn control(number: u32) -> Control {
    Control::of_number(number as i32)
}

/// How the structures of actions begin: number, capabilities, decision, and two counts that the kernel keeps.
pub(super) fn general(index: u32, goes_on: Control) -> Vec<u8> {
    words(&[index, 0, goes_on.number() as u32, 0, 0])
}

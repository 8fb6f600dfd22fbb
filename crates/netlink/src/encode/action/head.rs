//! How the structures of actions begin.

use tidegate_policy::Control;
use tidegate_sys::attribute::words;

/// A decision as the kernel numbers it.
pub(super) const fn control(control: Control) -> u32 {
    control.number() as u32
}

/// How the structures of actions begin: number, capabilities, decision, and two counts that the kernel keeps.
pub(super) fn general(index: u32, goes_on: Control) -> Vec<u8> {
    words(&[index, 0, control(goes_on), 0, 0])
}

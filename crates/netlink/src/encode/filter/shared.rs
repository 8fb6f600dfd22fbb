//! What filters of several kinds have.

use tidegate_packet::Handle;
use tidegate_policy::Indev;
use tidegate_sys::attribute::Attributes;

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

//! What the rules about queues and buckets offer to them, and where.

use crate::reading::PolicyModel;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{NetemLoss, QdiscParams};

/// Segments that a TCP connection may begin with (RFC 6928).
pub(super) const FIRST_WINDOW: u32 = 10;

/// Shapes of leaves that are measured.
pub(super) const MOST_SHAPES: usize = 64;
/// An acknowledgement with timestamps and SACK blocks, on Ethernet.
pub(super) const ACKNOWLEDGEMENT: u32 = 94;

/// The class by whose number packets are sent to a qdisc; [`Handle::NONE`]: all come to the root. `None`:
/// they cannot be.
pub(super) fn led_to(reading: &PolicyModel, qdisc: &QdiscDump) -> Option<Handle> {
    match qdisc.parent {
        Handle::ROOT => Some(Handle::NONE),
        class if reading.is_led_by_number(&qdisc.dev, class.qdisc()) => Some(class),
        _ => None,
    }
}

/// Bytes of the longest packets that a class is meant for, or that come to it: acknowledgements are short.
pub(super) fn longest_of(reading: &PolicyModel, class: &ClassDump) -> u32 {
    let meant = if reading.takes_acks(class) { ACKNOWLEDGEMENT } else { reading.frame(&class.dev) };
    let comes = reading.short.get(&(class.dev.clone(), class.classid)).copied();
    comes.map_or(meant, |longest| longest.min(meant))
}

/// Is it a netem that treats each packet by a draw?
pub(super) fn draws(params: &QdiscParams) -> bool {
    let QdiscParams::Netem(netem) = params else { return false };
    let loses = !matches!(netem.loss, NetemLoss::Random(0));
    netem.jitter_ns != 0 || loses || netem.reorder.is_some() || netem.duplicate != 0
}

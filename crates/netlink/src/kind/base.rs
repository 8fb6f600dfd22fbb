//! What each kind must implement, and what several need for it.

use crate::decode::message::Message;
use tidegate_netlink_wire::attribute::Attributes;
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::dump::Xstats;
use tidegate_policy::{ClassParams, QdiscParams};

/// How a kind's parameters are sent, and what the kernel reports of it is read.
pub(crate) trait Codec: Sync {
    /// Writes the options of a qdisc, if anything is. Kinds older than attributes have a structure of their
    /// own; `change`: it is there already.
    fn encode(&self, _to: &mut Attributes, _params: &QdiscParams, _change: bool) {}

    /// Reads the parameters in force; `None`: they are not as they should be.
    fn decode(&self, options: &[u8]) -> Option<QdiscParams>;

    /// What only this kind counts.
    fn stats(&self, _message: &Message<'_>) -> Option<Xstats> {
        None
    }

    /// Writes the options of a class, if anything is.
    fn encode_class(&self, _to: &mut Attributes, _params: &ClassParams) {}

    /// Reads the parameters of a class; `None`: they are not as they should be.
    fn decode_class(&self, _options: &[u8]) -> Option<ClassParams> {
        Some(ClassParams::None)
    }

    /// What only this kind's classes count.
    fn class_stats(&self, _message: &Message<'_>) -> Option<Xstats> {
        None
    }
}

/// Options that are attributes.
pub(super) fn nested(to: &mut Attributes, write: impl FnOnce(&mut Attributes)) {
    let mut inner = Attributes::default();
    write(&mut inner);
    to.nest(TCA_OPTIONS, &inner);
}

/// A nest with the flag `NLA_F_NESTED`, where the kernel looks for it.
pub(super) fn nested_and_marked(to: &mut Attributes, write: impl FnOnce(&mut Attributes)) {
    let mut inner = Attributes::default();
    write(&mut inner);
    to.marked_nest(TCA_OPTIONS, &inner);
}

/// A number of 64 bits from its two halves, one after the other.
pub(super) fn wide(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// Numbers of 32 bits become the fields of a structure, in this order; `None`: there are more of them, or
/// fewer.
macro_rules! structure {
    ($words:expr => $structure:ident { $($field:ident),* $(,)? }) => {
        match *$words {
            [$($field),*] => Some($structure { $($field),* }),
            _ => None,
        }
    };
}
pub(super) use structure;

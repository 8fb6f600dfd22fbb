//! Why packets are dropped, in words.

use tidegate_gateway::DropReason;
use tidegate_packet::Handle;

/// Why a packet was dropped, in words; `in_device`: at a machine's device, not before a plain line.
pub fn reason(why: Option<(Handle, DropReason)>, in_device: bool) -> &'static str {
    match why.map(|(_, why)| why) {
        None if in_device => "the machine has no way for it",
        None => "the modem's buffer is full",
        Some(DropReason::Full) => "the queue takes nothing",
        Some(DropReason::Overflow) => "the queue is full",
        Some(DropReason::Codel) => "CoDel",
        Some(DropReason::Early) => "the queue's management",
        Some(DropReason::TooLong) => "longer than the bucket holds",
        Some(DropReason::Unclassified) => "no class would have it",
        Some(DropReason::Policy) => "a filter",
        Some(DropReason::Netfilter | DropReason::NetfilterLeaving) => "netfilter",
        Some(DropReason::Superseded) => "later acknowledgements make it needless",
        Some(
            DropReason::Purged(_) | DropReason::PurgedUnseen | DropReason::PurgedAtOnce | DropReason::Rehash,
        ) => "its queue was taken away",
    }
}

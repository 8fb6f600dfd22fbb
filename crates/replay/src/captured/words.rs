//! Why packets are dropped, in words.

use tidegate_gateway::Why;
use tidegate_packet::Handle;

/// Why a packet was lost, in words; `in_device`: at a machine's device, not before a plain line.
pub fn reason(why: Option<(Handle, Why)>, in_device: bool) -> &'static str {
    match why.map(|(_, why)| why) {
        None if in_device => "the machine has no way for it",
        None => "the modem's buffer is full",
        Some(Why::Full) => "the queue takes nothing",
        Some(Why::Overflow) => "the queue is full",
        Some(Why::Codel) => "CoDel",
        Some(Why::Early) => "the queue's management",
        Some(Why::TooLong) => "longer than the bucket holds",
        Some(Why::Unclassified) => "no class would have it",
        Some(Why::Policy) => "a filter",
        Some(Why::Netfilter | Why::NetfilterLeaving) => "a rule of netfilter",
        Some(Why::Superseded) => "later acknowledgements make it needless",
        Some(Why::Purged(_) | Why::PurgedUnseen | Why::PurgedAtOnce | Why::Rehash) => {
            "its queue was taken away"
        }
    }
}

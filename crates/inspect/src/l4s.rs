//! Which queues treat L4S (RFC 9331) as classic ECN.

use tidegate_policy::{CakeFlows, QdiscParams};

/// Does a qdisc mark ECN-capable packets, ECT(0) and ECT(1) alike, in one queue for all flows? What is left
/// to a qdisc below it is that one's.
pub(crate) fn marks_in_one_queue(params: &QdiscParams) -> bool {
    match params {
        QdiscParams::Codel(codel) => codel.ecn == Some(true),
        QdiscParams::Pie(pie) => pie.ecn == Some(true),
        QdiscParams::Red(red) | QdiscParams::Choke(red) => red.ecn,
        QdiscParams::FqCodel(fair) => fair.flows == Some(1) && fair.ecn != Some(false),
        QdiscParams::Cake(cake) => cake.flows == Some(CakeFlows::Blind),
        _ => false,
    }
}

//! cake.

use tidegate_os::attribute::Found;
use tidegate_packet::Rate;
use tidegate_policy::{CakeAckFilter, CakeFlows, CakeFraming, CakeParams, CakeTins};

pub(crate) fn cake(from: &Found<'_>) -> Option<CakeParams> {
    const ACK_FILTERS: [CakeAckFilter; 3] = [CakeAckFilter::Off, CakeAckFilter::On, CakeAckFilter::Aggressive];
    const FRAMINGS: [CakeFraming; 3] = [CakeFraming::None, CakeFraming::Atm, CakeFraming::Ptm];
    Some(CakeParams {
        bandwidth: from.u64(2).map(Rate),
        autorate: from.switch(9),
        rtt_us: from.u32(7),
        target_us: from.u32(8),
        tins: numbered(from, 3, &CakeTins::ALL)?,
        flows: numbered(from, 5, &CakeFlows::ALL)?,
        nat: from.switch(11),
        wash: from.switch(13),
        ingress: from.switch(15),
        ack_filter: numbered(from, 16, &ACK_FILTERS)?,
        split_gso: from.switch(17),
        memory_limit: from.u32(10),
        fwmark: from.u32(18),
        framing: numbered(from, 4, &FRAMINGS)?,
        overhead: from.u32(6).map(|bytes| bytes as i32),
        raw: from.get(12).is_some(),
        mpu: from.u32(14),
    })
}

/// One of several by its number, if it is told; `None`: by a number that there is not.
fn numbered<T: Copy>(from: &Found<'_>, attribute: u16, all: &[T]) -> Option<Option<T>> {
    match from.u32(attribute) {
        None => Some(None),
        Some(number) => all.get(number as usize).copied().map(Some),
    }
}

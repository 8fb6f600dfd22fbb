//! flower: the attributes of its fields, as in [`crate::encode`].

use tidegate_packet::Handle;
use tidegate_policy::{FlowerField as F, FlowerKey, FlowerParams, Indev};
use tidegate_sys::attribute::Found;

/// How a number stands there.
#[derive(Clone, Copy)]
enum Order {
    Network,
    Own,
}
use Order::{Network, Own};

/// Fields with the attributes of their values and of the bits compared (0: all of them).
const PLACES: [(F, u16, u16, Order); 38] = [
    (F::DstMac, 4, 5, Network),
    (F::SrcMac, 6, 7, Network),
    (F::EthType, 8, 0, Network),
    (F::IpProto, 9, 0, Network),
    (F::SrcIp, 10, 11, Network),
    (F::DstIp, 12, 13, Network),
    (F::SrcIp, 14, 15, Network),
    (F::DstIp, 16, 17, Network),
    (F::SrcPort, 18, 35, Network),
    (F::DstPort, 19, 36, Network),
    (F::SrcPort, 20, 37, Network),
    (F::DstPort, 21, 38, Network),
    (F::SrcPort, 41, 39, Network),
    (F::DstPort, 42, 40, Network),
    (F::VlanId, 23, 0, Own),
    (F::VlanPrio, 24, 0, Network),
    (F::VlanEthtype, 25, 0, Network),
    (F::CvlanId, 77, 0, Own),
    (F::CvlanPrio, 78, 0, Network),
    (F::CvlanEthtype, 79, 0, Network),
    (F::IpFlags, 47, 48, Network),
    (F::IcmpCode, 49, 50, Network),
    (F::IcmpType, 51, 52, Network),
    (F::IcmpCode, 53, 54, Network),
    (F::IcmpType, 55, 56, Network),
    (F::ArpSip, 57, 58, Network),
    (F::ArpTip, 59, 60, Network),
    (F::ArpOp, 61, 62, Network),
    (F::ArpSha, 63, 64, Network),
    (F::ArpTha, 65, 66, Network),
    (F::TcpFlags, 71, 72, Network),
    (F::IpTos, 73, 74, Network),
    (F::IpTtl, 75, 76, Network),
    (F::CtState, 91, 92, Own),
    (F::CtMark, 95, 96, Own),
    (F::NumVlans, 102, 0, Network),
    // Ranges of ports: the lowest and the highest.
    (F::SrcPort, 87, 88, Network),
    (F::DstPort, 89, 90, Network),
];

const FIRST_RANGE: u16 = 87;
const LAST_RANGE: u16 = 89;

pub(super) fn flower(from: &Found<'_>) -> FlowerParams {
    let flags = from.u32(22).unwrap_or(0);
    let mut params = FlowerParams {
        classid: from.u32(1).map(Handle),
        indev: from.text(2).map(Indev::named),
        keys: Vec::new(),
        skip_sw: flags & 2 != 0,
        skip_hw: flags & 1 != 0,
    };
    for (field, value, mask, order) in PLACES {
        let Some(bytes) = from.get(value) else { continue };
        // Of an address of 32 bits these are all.
        let all = if bytes.len() == 4 { field.all() & u128::from(u32::MAX) } else { field.all() };
        let range = (FIRST_RANGE..=LAST_RANGE).contains(&value);
        let mask = from.get(mask).filter(|_| mask != 0).map_or(all, |bytes| number(bytes, order));
        params.set(FlowerKey { field, value: number(bytes, order), mask, range });
    }
    params
}

fn number(bytes: &[u8], order: Order) -> u128 {
    let one_more = |sum: u128, byte: &u8| sum << 8 | u128::from(*byte);
    match order {
        Network => bytes.iter().fold(0, one_more),
        Own if cfg!(target_endian = "little") => bytes.iter().rev().fold(0, one_more),
        Own => bytes.iter().fold(0, one_more),
    }
}

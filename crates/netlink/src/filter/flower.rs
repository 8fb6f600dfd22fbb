//! flower: each field has an attribute for its value and most have one for the bits compared.

use super::base::{Row, actions, class, indev};
use crate::encode::message::{Devices, Unsent};
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_packet::Handle;
use tidegate_policy::{
    FilterOp, FilterParams, FlowerField, FlowerField as F, FlowerKey, FlowerParams, Indev,
};

/// `flower`.
pub(super) const ROW: Row = Row { name: "flower", actions: 3, police: None, encode, decode };

fn encode(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let FilterParams::Flower(params) = params else { return Ok(()) };
    fields(to, params);
    actions(to, &ROW, &op.actions, devices)?;
    end(to, params, op.protocol);
    Ok(())
}

fn decode(options: &Found<'_>) -> Option<FilterParams> {
    Some(FilterParams::Flower(decode_params(options)))
}

const TCA_FLOWER_CLASSID: u16 = 1;
const TCA_FLOWER_INDEV: u16 = 2;
const TCA_FLOWER_ETH_TYPE: u16 = 8;
const TCA_FLOWER_FLAGS: u16 = 22;
const SKIP_HW: u32 = 1;
const SKIP_SW: u32 = 2;
/// The number for every protocol (`ETH_P_ALL`).
const ALL: u16 = 3;

const TCP: u128 = 6;
const UDP: u128 = 17;
const SCTP: u128 = 132;
const ICMPV6: u128 = 58;
const IPV6: u16 = 0x86dd;

/// How a field is encoded.
#[derive(Clone, Copy)]
enum Order {
    /// As the network has it, in this many bytes.
    Network(usize),
    /// As this machine has it.
    Own16,
    /// In the machine's byte order, 32 bits.
    Own32,
}

/// A field's attributes: the value, the bits compared (0: there is none), and the encoding.
struct FlowerAttributes(u16, u16, Order);

/// Class, device and fields.
fn fields(to: &mut Attributes, params: &FlowerParams) {
    class(to, TCA_FLOWER_CLASSID, params.classid);
    indev(to, TCA_FLOWER_INDEV, params.indev.as_ref());
    for key in &params.keys {
        field(to, params, key);
    }
}

/// The last attributes: flags, and the network's protocol.
fn end(to: &mut Attributes, params: &FlowerParams, protocol: u16) {
    let flags = if params.skip_hw { SKIP_HW } else { 0 } | if params.skip_sw { SKIP_SW } else { 0 };
    to.u32(TCA_FLOWER_FLAGS, flags);
    if protocol != ALL {
        to.payload(TCA_FLOWER_ETH_TYPE, &protocol.to_be_bytes());
    }
}

fn field(to: &mut Attributes, params: &FlowerParams, key: &FlowerKey) {
    if key.range {
        let (low, high) = if key.field == FlowerField::SrcPort { (87, 88) } else { (89, 90) };
        to.payload(low, &(key.value as u16).to_be_bytes()).payload(high, &(key.mask as u16).to_be_bytes());
        return;
    }
    let Some(FlowerAttributes(value, mask, order)) = place(params, key) else { return };
    to.payload(value, &written(key.value, order));
    let all = key.mask == key.field.all() || short_address(key) && key.mask == u128::from(u32::MAX);
    let always = !matches!(key.field, FlowerField::SrcPort | FlowerField::DstPort);
    if mask != 0 && (always || !all) {
        to.payload(mask, &written(key.mask, order));
    }
}

fn short_address(key: &FlowerKey) -> bool {
    matches!(key.field, FlowerField::SrcIp | FlowerField::DstIp) && key.mask <= u128::from(u32::MAX)
}

fn written(value: u128, order: Order) -> Vec<u8> {
    match order {
        Order::Network(bytes) => value.to_be_bytes()[16 - bytes..].to_vec(),
        Order::Own16 => (value as u16).to_ne_bytes().to_vec(),
        Order::Own32 => (value as u32).to_ne_bytes().to_vec(),
    }
}

/// Where a field has its place depends on the protocols that others name.
fn place(params: &FlowerParams, key: &FlowerKey) -> Option<FlowerAttributes> {
    use FlowerField as F;
    use Order::{Network, Own16, Own32};
    let protocol = params.key(F::IpProto).map_or(TCP, |key| key.value);
    let v6 = params.key(F::EthType).is_some_and(|key| key.value == u128::from(IPV6))
        || key.value > u32::MAX.into();
    Some(match key.field {
        F::DstMac => FlowerAttributes(4, 5, Network(6)),
        F::SrcMac => FlowerAttributes(6, 7, Network(6)),
        F::EthType => return None,
        F::IpProto => FlowerAttributes(9, 0, Network(1)),
        F::SrcIp if v6 => FlowerAttributes(14, 15, Network(16)),
        F::SrcIp => FlowerAttributes(10, 11, Network(4)),
        F::DstIp if v6 => FlowerAttributes(16, 17, Network(16)),
        F::DstIp => FlowerAttributes(12, 13, Network(4)),
        F::SrcPort => match protocol {
            UDP => FlowerAttributes(20, 37, Network(2)),
            SCTP => FlowerAttributes(41, 39, Network(2)),
            _ => FlowerAttributes(18, 35, Network(2)),
        },
        F::DstPort => match protocol {
            UDP => FlowerAttributes(21, 38, Network(2)),
            SCTP => FlowerAttributes(42, 40, Network(2)),
            _ => FlowerAttributes(19, 36, Network(2)),
        },
        F::VlanId => FlowerAttributes(23, 0, Own16),
        F::VlanPrio => FlowerAttributes(24, 0, Network(1)),
        F::VlanEthtype => FlowerAttributes(25, 0, Network(2)),
        F::CvlanId => FlowerAttributes(77, 0, Own16),
        F::CvlanPrio => FlowerAttributes(78, 0, Network(1)),
        F::CvlanEthtype => FlowerAttributes(79, 0, Network(2)),
        F::IpFlags => FlowerAttributes(47, 48, Network(4)),
        F::IcmpCode if protocol == ICMPV6 => FlowerAttributes(53, 54, Network(1)),
        F::IcmpType if protocol == ICMPV6 => FlowerAttributes(55, 56, Network(1)),
        F::IcmpCode => FlowerAttributes(49, 50, Network(1)),
        F::IcmpType => FlowerAttributes(51, 52, Network(1)),
        F::ArpSip => FlowerAttributes(57, 58, Network(4)),
        F::ArpTip => FlowerAttributes(59, 60, Network(4)),
        F::ArpOp => FlowerAttributes(61, 62, Network(1)),
        F::ArpSha => FlowerAttributes(63, 64, Network(6)),
        F::ArpTha => FlowerAttributes(65, 66, Network(6)),
        F::TcpFlags => FlowerAttributes(71, 72, Network(2)),
        F::IpTos => FlowerAttributes(73, 74, Network(1)),
        F::IpTtl => FlowerAttributes(75, 76, Network(1)),
        F::CtState => FlowerAttributes(91, 92, Own16),
        F::CtMark => FlowerAttributes(95, 96, Own32),
        F::NumVlans => FlowerAttributes(102, 0, Network(1)),
    })
}

/// How a number is in what is reported.
#[derive(Clone, Copy)]
enum ByteOrder {
    Network,
    Host,
}
use ByteOrder::{Host, Network};

/// Fields with the attributes of their values and of the bits compared (0: all of them).
const PLACES: [(F, u16, u16, ByteOrder); 38] = [
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
    (F::VlanId, 23, 0, Host),
    (F::VlanPrio, 24, 0, Network),
    (F::VlanEthtype, 25, 0, Network),
    (F::CvlanId, 77, 0, Host),
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
    (F::CtState, 91, 92, Host),
    (F::CtMark, 95, 96, Host),
    (F::NumVlans, 102, 0, Network),
    // Ranges of ports: the lowest and the highest.
    (F::SrcPort, 87, 88, Network),
    (F::DstPort, 89, 90, Network),
];

const FIRST_RANGE: u16 = 87;
const LAST_RANGE: u16 = 89;

fn decode_params(from: &Found<'_>) -> FlowerParams {
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

fn number(bytes: &[u8], order: ByteOrder) -> u128 {
    let one_more = |sum: u128, byte: &u8| sum << 8 | u128::from(*byte);
    match order {
        Network => bytes.iter().fold(0, one_more),
        Host if cfg!(target_endian = "little") => bytes.iter().rev().fold(0, one_more),
        Host => bytes.iter().fold(0, one_more),
    }
}

//! ct.

use super::base::{ActionAttributes, Head, Row, general};
use crate::encode::message::{Devices, Unsent};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_policy::{Act, Action, Control, Ct, CtNat};

/// `ct`.
pub(super) const ROW: Row = Row { name: "ct", structure: 1, ages: 2, encode, decode };

fn encode(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Ct(act), index) = (&action.act, action.index) else { return Ok(()) };
    let mut how = u16::from(act.commit) | u16::from(act.force) << 1 | u16::from(act.clear) << 2;
    if let Some((mark, mask)) = act.mark {
        to.u32(5, mark).u32(6, mask);
    }
    if let Some(zone) = act.zone {
        to.u16(4, zone);
    }
    if let Some((label, mask)) = act.label {
        to.payload(7, &label.to_be_bytes()).payload(8, &mask.to_be_bytes());
    }
    match act.nat {
        None => {}
        Some(CtNat::Known) => how |= 8,
        Some(CtNat::New { source, addresses: (low, high), ports }) => {
            how |= 8 | if source { 16 } else { 32 };
            let numbers = if low.is_ipv4() { [9, 10] } else { [11, 12] };
            for (number, address) in numbers.into_iter().zip([low, high]) {
                to.payload(number, &bytes(address));
            }
            if let Some((low, high)) = ports {
                to.payload(13, &low.to_be_bytes()).payload(14, &high.to_be_bytes());
            }
        }
    }
    to.u16(3, how).payload(1, &general(index, act.control));
    Ok(())
}

/// An address as it is in a packet.
fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, _) = dump.begun()?;
    let control = head.control;
    Some((head, Act::Ct(ct(control, dump.options)?)))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)))).ok()
}

fn ct(control: Control, options: &Found<'_>) -> Option<Ct> {
    let how = options.u16(3).unwrap_or(0);
    let of = |number: u16| options.get(number).and_then(address);
    let label =
        |number: u16| options.get(number).and_then(|all| Some(u128::from_be_bytes(all.try_into().ok()?)));
    let port =
        |number: u16| options.get(number).and_then(|two| Some(u16::from_be_bytes(two.try_into().ok()?)));
    let low = of(9).or(of(11));
    let high = of(10).or(of(12)).or(low);
    let nat = match (how & 8 != 0, low, high) {
        (false, ..) => None,
        (true, Some(low), Some(high)) => {
            let ports = port(13).map(|from| (from, port(14).unwrap_or(from)));
            Some(CtNat::New { source: how & 16 != 0, addresses: (low, high), ports })
        }
        (true, ..) => Some(CtNat::Known),
    };
    Some(Ct {
        clear: how & 4 != 0,
        commit: how & 1 != 0,
        force: how & 2 != 0,
        mark: options.u32(5).map(|mark| (mark, options.u32(6).unwrap_or(u32::MAX))),
        nat,
        zone: options.u16(4),
        label: label(7).map(|value| (value, label(8).unwrap_or(u128::MAX))),
        control,
    })
}

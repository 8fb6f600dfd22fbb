//! ICMP messages of machines and relays in the network: echo replies and "time exceeded".

use std::net::IpAddr;

use tidegate_packet::checksum;
use tidegate_packet::header::proto;

/// The longest message about a packet: what every host takes in one piece (RFC 1812 4.3.2.3, RFC 4443 2.4).
const LONGEST: [usize; 2] = [576, 1280];
/// The hop limit of a router's own messages.
const HOPS: u8 = 64;

/// How many routers a packet still passes; `None`: it is no packet.
pub(crate) fn hops_left(packet: &[u8]) -> Option<u8> {
    match packet.first()? >> 4 {
        4 => packet.get(8),
        6 => packet.get(7),
        _ => None,
    }
    .copied()
}

/// The reply of the router with these addresses to a packet whose hop limit runs out there: "time exceeded"
/// (RFC 792, RFC 4443), from the address nearest to its sender's. `None` for such messages themselves, and if
/// it has no address of the packet's family.
pub(crate) fn expired(packet: &[u8], router: &[IpAddr]) -> Option<Vec<u8>> {
    match packet.first()? >> 4 {
        4 => {
            let sender = u32::from_be_bytes(packet.get(12..16)?.try_into().ok()?);
            let own = router
                .iter()
                .filter_map(|address| if let IpAddr::V4(own) = address { Some(own) } else { None });
            let nearest = own.min_by_key(|own| u32::from(**own) ^ sender)?;
            expired4(packet, nearest.octets())
        }
        6 => {
            let sender = u128::from_be_bytes(packet.get(8..24)?.try_into().ok()?);
            let own = router
                .iter()
                .filter_map(|address| if let IpAddr::V6(own) = address { Some(own) } else { None });
            let nearest = own.min_by_key(|own| u128::from(**own) ^ sender)?;
            expired6(packet, nearest.octets())
        }
        _ => None,
    }
}

fn expired4(packet: &[u8], router: [u8; 4]) -> Option<Vec<u8>> {
    const HEAD: usize = 28;
    let header = usize::from(packet[0] & 15) * 4;
    let is_echo = |kind: u8| matches!(kind, 0 | 8);
    if packet.len() < 20 || (packet[9] == proto::ICMP && !is_echo(*packet.get(header)?)) {
        return None;
    }
    let quoted = &packet[..packet.len().min(LONGEST[0] - HEAD)];
    let mut bytes = vec![0; HEAD];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&((HEAD + quoted.len()) as u16).to_be_bytes());
    (bytes[8], bytes[9]) = (HOPS, proto::ICMP);
    bytes[12..16].copy_from_slice(&router);
    bytes[16..20].copy_from_slice(&packet[12..16]);
    bytes[20] = 11;
    bytes.extend_from_slice(quoted);
    let sum = checksum::updated(0xffff, &[], &bytes[..20]);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    let sum = checksum::updated(0xffff, &[], &bytes[20..]);
    bytes[22..24].copy_from_slice(&sum.to_be_bytes());
    Some(bytes)
}

fn expired6(packet: &[u8], router: [u8; 16]) -> Option<Vec<u8>> {
    const HEAD: usize = 48;
    if packet.len() < 40 || (packet[6] == proto::ICMPV6 && *packet.get(40)? < 128) {
        return None;
    }
    let quoted = &packet[..packet.len().min(LONGEST[1] - HEAD)];
    let length = (HEAD - 40 + quoted.len()) as u16;
    let mut bytes = vec![0; HEAD];
    bytes[0] = 0x60;
    bytes[4..6].copy_from_slice(&length.to_be_bytes());
    (bytes[6], bytes[7]) = (proto::ICMPV6, HOPS);
    bytes[8..24].copy_from_slice(&router);
    bytes[24..40].copy_from_slice(&packet[8..24]);
    bytes[40] = 3;
    bytes.extend_from_slice(quoted);
    // The sum goes over the addresses, the length and the protocol too (RFC 8200 8.1).
    let beside = [&bytes[8..40], &[0, 0], &length.to_be_bytes()[..], &[0, 0, 0, proto::ICMPV6]].concat();
    let sum = checksum::updated(checksum::updated(0xffff, &[], &beside), &[], &bytes[40..]);
    bytes[42..44].copy_from_slice(&sum.to_be_bytes());
    Some(bytes)
}

/// The answer to an echo request over IPv4 (RFC 792) or IPv6 (RFC 4443); `None`: it is none.
pub(crate) fn echoed(packet: &[u8]) -> Option<Vec<u8>> {
    let v6 = packet.first()? >> 4 == 6;
    let (header, protocol, request, reply, addresses) = match v6 {
        true => (40, *packet.get(6)?, 128, 129, 8..40),
        false => (usize::from(packet[0] & 15) * 4, *packet.get(9)?, 8, 0, 12..20),
    };
    let wanted = if v6 { proto::ICMPV6 } else { proto::ICMP };
    if protocol != wanted || *packet.get(header)? != request {
        return None;
    }
    let mut answer = packet.to_vec();
    let half = (addresses.end - addresses.start) / 2;
    let turned =
        [&packet[addresses.start + half..addresses.end], &packet[addresses.start..addresses.start + half]];
    checksum::rewrite(&mut answer, addresses.start, &turned.concat());
    checksum::rewrite(&mut answer, header, &[reply]);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_right() {
        let mut bytes = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 1, 17, 0, 0, 192, 168, 1, 2, 198, 51, 100, 7];
        bytes.resize(60, 7);
        let routers = [[192, 0, 2, 1].into(), [192, 168, 1, 1].into(), IpAddr::from([1; 16])];
        let output = expired(&bytes, &routers).expect("an answer");
        // A sum over what holds its own sum is nothing.
        assert_eq!(checksum::updated(0xffff, &[], &output[..20]), 0);
        assert_eq!(checksum::updated(0xffff, &[], &output[20..]), 0);
        assert_eq!(
            (&output[12..20], output[20], &output[28..]),
            (&[192, 168, 1, 1, 192, 168, 1, 2][..], 11, &bytes[..])
        );
        assert_eq!(expired(&output, &routers), None, "about messages nothing is said");

        let mut bytes = vec![0; 60];
        (bytes[0], bytes[6], bytes[7], bytes[23]) = (0x60, 17, 1, 9);
        let output = expired(&bytes, &routers).expect("an answer");
        let beside = [&output[8..40], &[0, 0], &output[4..6], &[0, 0, 0, 58]].concat();
        assert_eq!(checksum::updated(checksum::updated(0xffff, &[], &beside), &[], &output[40..]), 0);
        assert_eq!((&output[24..40], output[40], &output[48..]), (&bytes[8..24], 3, &bytes[..]));
    }
}

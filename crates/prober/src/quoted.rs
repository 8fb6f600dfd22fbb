//! Packets as routers quote them that dropped them: an ICMP error has the head of the dropped packet, DS
//! field included (RFC 792, RFC 4443).

use crate::Error;
use crate::hops::{MOST_HOPS, SLOWLY};
use crate::ping::message::behind_ip;
use crate::ping::{PingMethod, PingSchedule, Pinger, USUAL_SIZE};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Duration;
use tidegate_sys::icmp::Errors;
use tidegate_sys::{poll, stamped};

/// How many requests each hop gets.
const TRIES: u64 = 2;
/// From one look to the next.
const LOOK: Duration = Duration::from_millis(20);
/// The longest message that is read.
const BUFFER: usize = 2048;
/// Bytes of the header of an ICMP message, which the quoted packet follows.
const HEAD: usize = 8;

/// The routers that quoted a packet, and the DS field that it had there, in the order of the path.
pub type Quoted = Vec<(IpAddr, u8)>;

/// Sends packets with a DS field towards an address, and reports the field in the packets that the first
/// `most` hops quote in their ICMP errors.
///
/// # Errors
/// It is not allowed (that needs CAP_NET_RAW), or there is no way.
pub fn find(to: IpAddr, ds_field: u8, most: u8) -> Result<Quoted, Error> {
    let errors = Errors::open(to.is_ipv6()).map_err(|why| match why.kind() {
        io::ErrorKind::PermissionDenied => Error::NotAllowed {
            what: "hearing what routers quote".to_owned(),
            remedy: "It needs root, or `setcap cap_net_raw+ep $(command -v tidegate)`.".to_owned(),
        },
        _ => Error::Io { what: "open a socket for ICMP errors".to_owned(), why },
    })?;
    let plans: Vec<PingSchedule> =
        (1..=most.clamp(1, MOST_HOPS)).map(|hops| plan(to, ds_field, hops)).collect();
    let pinger = Pinger::begin(&plans)?;
    let mut heard: BTreeMap<IpAddr, u8> = BTreeMap::new();
    while !pinger.is_over() {
        listen(&errors, to, &mut heard).map_err(Error::io("listen to ICMP errors"))?;
    }
    let seen = pinger.finish();
    listen(&errors, to, &mut heard).map_err(Error::io("listen to ICMP errors"))?;
    let on_the_way = seen.answered_by.iter().flatten();
    Ok(on_the_way.filter_map(|by| heard.remove_entry(by)).collect())
}

fn plan(to: IpAddr, ds_field: u8, hops: u8) -> PingSchedule {
    PingSchedule {
        id: String::new(),
        host: to.to_string(),
        address: to,
        way: PingMethod::Icmp,
        ds_field,
        size: USUAL_SIZE,
        hop_limit: Some(hops),
        interval: SLOWLY,
        count: Some(TRIES),
    }
}

/// Takes what has come, or comes soon.
fn listen(errors: &Errors, to: IpAddr, heard: &mut BTreeMap<IpAddr, u8>) -> io::Result<()> {
    poll::readable(&[errors.as_fd()], LOOK)?;
    let mut buffer = [0; BUFFER];
    // Bounded: other processes may get many messages.
    for _ in 0..1024 {
        let Some(came) = stamped::receive(errors, &mut buffer)? else { break };
        let by = came.from.map(|from| from.ip());
        if let Some((by, field)) = by.zip(field_of(&buffer[..came.bytes], to)) {
            heard.insert(by, field);
        }
    }
    Ok(())
}

/// The DS field of the quoted packet, if that was an echo request to this address.
fn field_of(message: &[u8], to: IpAddr) -> Option<u8> {
    match to {
        IpAddr::V4(to) => {
            let packet = behind_ip(message).get(HEAD..)?;
            let is_ours =
                packet.first()? >> 4 == 4 && packet.get(16..20)? == to.octets() && *packet.get(9)? == 1;
            (is_ours && behind_ip(packet).first() == Some(&8)).then_some(packet[1])
        }
        IpAddr::V6(to) => {
            let packet = message.get(HEAD..)?;
            let is_ours =
                packet.first()? >> 4 == 6 && packet.get(24..40)? == to.octets() && *packet.get(6)? == 58;
            (is_ours && packet.get(40) == Some(&128)).then_some(packet[0] << 4 | packet[1] >> 4)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: [u8; 4] = [192, 0, 2, 9];

    /// What a router sends back for an echo request to TO with this DS field.
    fn message(field: u8) -> Vec<u8> {
        let request =
            [&[0x45, field, 0, 28, 0, 0, 0, 0, 1, 1, 0, 0, 10, 0, 0, 1][..], &TO, &[8, 0, 0, 0, 0, 1, 0, 2]]
                .concat();
        [&[0x46][..], &[0; 23], &[11, 0, 0, 0, 0, 0, 0, 0], &request].concat()
    }

    #[test]
    fn the_field_is_in_the_quoted_header() {
        let to = IpAddr::from(TO);
        assert_eq!(field_of(&message(0x8a), to), Some(0x8a));
        assert_eq!(field_of(&message(0x8a), IpAddr::from([192, 0, 2, 8])), None, "it went to somebody else");
        let whole = message(0x8a);
        for length in 0..whole.len() - 7 {
            assert_eq!(field_of(&whole[..length], to), None, "cut to {length}");
        }
        let mut other = whole;
        other[24 + 8 + 9] = 17;
        assert_eq!(field_of(&other, to), None, "it was no echo request");
    }

    #[test]
    fn and_over_ipv6_in_two_bytes() {
        let to = IpAddr::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        let IpAddr::V6(address) = to else { return };
        let head = [0x68, 0xa0, 0, 0, 0, 8, 58, 1];
        let message =
            [&[3, 0, 0, 0, 0, 0, 0, 0][..], &head, &[0; 16], &address.octets(), &[128, 0, 0, 0]].concat();
        assert_eq!(field_of(&message, to), Some(0x8a));
        assert_eq!(field_of(&message[..40], to), None);
    }
}

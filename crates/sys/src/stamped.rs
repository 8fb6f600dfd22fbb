//! Datagrams with what the kernel knows of them: when they came and when they left, their hop limit and DS
//! field, and errors that others sent back for them.

use std::io::{self, IoSliceMut};
use std::mem::offset_of;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use libc::{c_int, c_uint, sock_extended_err};

use crate::address::{self, Address};
use crate::control::{self, Buffer};
use crate::messages::{self, InMessage};
use crate::sockopt;

/// When the driver gets it, when it is received, by the wall clock; numbered, and without the packet.
const STAMPS: c_uint = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | RECEIVED_ONLY
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;
const RECEIVED_ONLY: c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
/// Bytes of `sock_extended_err`, which the sender's address follows.
const EXTENDED: usize = size_of::<sock_extended_err>();
/// Bytes of control data: a time, hop limit and DS field, or an error with its sender.
const CONTROL: usize = 512;

const _: () = assert!(EXTENDED == 16 && offset_of!(sock_extended_err, ee_errno) == 0);
const _: () =
    assert!(offset_of!(sock_extended_err, ee_origin) == 4 && offset_of!(sock_extended_err, ee_type) == 5);
const _: () =
    assert!(offset_of!(sock_extended_err, ee_code) == 6 && offset_of!(sock_extended_err, ee_data) == 12);

/// A datagram that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Bytes of it in the buffer.
    pub bytes: usize,
    /// The sender's address.
    pub from: Option<SocketAddr>,
    /// When it came, ns since 1970 by the wall clock.
    pub stamp_ns: Option<u64>,
    /// What its hop limit had left.
    pub hops: Option<u8>,
    /// Its DS field, with ECN.
    pub ds_field: Option<u8>,
}

/// What is reported about a datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The driver got the so-manyth since stamps were turned on (from 0).
    Left(u32),
    /// An ICMP message came back.
    Icmp {
        /// The ICMP type.
        kind: u8,
        /// The ICMP code.
        code: u8,
        /// Sender of the ICMP error, if it is known.
        by: Option<IpAddr>,
    },
    /// Our own kernel could not send it: the error's number.
    Here(i32),
}

/// A report about a datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitReport {
    /// Bytes of that datagram in the buffer, without the heads that the kernel made.
    pub bytes: usize,
    /// The report itself.
    pub about: About,
    /// When, ns since 1970 by the wall clock.
    pub stamp_ns: Option<u64>,
}

/// Has the kernel note when datagrams arrive, their hop limit and DS field, and keep the errors that come
/// back. With `departures` it also reports when each one that is sent reaches the driver, numbered from 0
/// again; false: it cannot.
///
/// # Errors
/// It is no socket for datagrams.
pub fn note(socket: &impl AsFd, v6: bool, departures: bool) -> io::Result<bool> {
    let options = match v6 {
        false => [
            (libc::SOL_IP, libc::IP_RECVERR),
            (libc::SOL_IP, libc::IP_RECVTTL),
            (libc::SOL_IP, libc::IP_RECVTOS),
        ],
        true => [
            (libc::SOL_IPV6, libc::IPV6_RECVERR),
            (libc::SOL_IPV6, libc::IPV6_RECVHOPLIMIT),
            (libc::SOL_IPV6, libc::IPV6_RECVTCLASS),
        ],
    };
    for (level, name) in options {
        sockopt::set(socket, level, name, 1)?;
    }
    sockopt::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, RECEIVED_ONLY as c_int)?;
    Ok(departures && sockopt::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, STAMPS as c_int).is_ok())
}

/// Sets after how many hops what a socket sends is thrown away.
///
/// # Errors
/// What the kernel reports.
pub fn hop_limit(socket: &impl AsFd, v6: bool, hops: u8) -> io::Result<()> {
    let (level, name) =
        if v6 { (libc::SOL_IPV6, libc::IPV6_UNICAST_HOPS) } else { (libc::SOL_IP, libc::IP_TTL) };
    sockopt::set(socket, level, name, hops.into())
}

/// The next datagram that came; `None`: there is none now.
///
/// # Errors
/// The kernel's error; an error that came back for a datagram may be returned here as well as by [`notice`].
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<Datagram>> {
    let Some(read) = take(socket, buffer, 0)? else { return Ok(None) };
    let mut datagram = Datagram { bytes: read.bytes, from: read.name.get(), ..Datagram::default() };
    for (level, kind, value) in read.control.read(read.control_len) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => datagram.stamp_ns = control::time_ns(value, 3),
            (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                datagram.hops = value.first().copied()
            }
            (libc::SOL_IP, libc::IP_TOS) | (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                datagram.ds_field = value.first().copied()
            }
            _ => {}
        }
    }
    Ok(Some(datagram))
}

/// The next report about what was sent; `None`: there is none now.
///
/// # Errors
/// What the kernel reports.
pub fn notice(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<TransmitReport>> {
    let Some(read) = take(socket, buffer, libc::MSG_ERRQUEUE)? else { return Ok(None) };
    let mut report = TransmitReport { bytes: read.bytes, about: About::Here(0), stamp_ns: None };
    for (level, kind, value) in read.control.read(read.control_len) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) => report.stamp_ns = control::time_ns(value, 3),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                report.about = about(value).unwrap_or(report.about)
            }
            _ => {}
        }
    }
    Ok(Some(report))
}

/// What one call gave.
struct Read {
    bytes: usize,
    name: Address,
    control: Buffer<CONTROL>,
    control_len: usize,
}

/// The content of a `sock_extended_err`.
fn about(value: &[u8]) -> Option<About> {
    let word = |at: usize| Some(u32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?));
    let (origin, kind, code) = (*value.get(4)?, *value.get(5)?, *value.get(6)?);
    Some(match origin {
        libc::SO_EE_ORIGIN_TIMESTAMPING => About::Left(word(12)?),
        libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6 => {
            let by = address::read(value.get(EXTENDED..)?).map(|address| address.ip());
            About::Icmp { kind, code, by }
        }
        _ => About::Here(word(0)? as i32),
    })
}

/// Takes the next message of a queue; `None`: it is empty.
fn take(socket: &impl AsFd, buffer: &mut [u8], queue: c_int) -> io::Result<Option<Read>> {
    let mut read = Read { bytes: 0, name: Address::NONE, control: Buffer::new(), control_len: 0 };
    let mut pieces = [IoSliceMut::new(buffer)];
    let mut message = InMessage::new(&mut pieces).from(&mut read.name).with(&mut read.control);
    let received = messages::receive_one(socket, &mut message, queue);
    let control_len = message.control_len();
    match received {
        Ok(bytes) => Ok(Some(Read { bytes, control_len, ..read })),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn fuzz(value: &[u8]) {
    about(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// Waits until the socket has something to read.
    fn wait(socket: &UdpSocket) {
        crate::poll::readable(&[socket.as_fd()], Duration::from_secs(5)).expect("it is a socket");
    }

    #[test]
    fn a_datagram_has_its_time_its_hops_and_its_ds_field() {
        let near = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let session = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        near.connect(session.local_addr().expect("it has one")).expect("it is there");
        note(&session, false, false).expect("it is a socket for datagrams");
        let stamped = note(&near, false, true).expect("it is a socket for datagrams");
        crate::socket::ds_field(&near, false, 0xb9).expect("the field can be set");
        hop_limit(&near, false, 7).expect("the limit can be set");
        let mut buffer = [0; 64];
        // The kernel begins to stamp arrivals a moment after it was asked to.
        let came = (0..100_000).find_map(|_| {
            near.send(b"one").expect("it is sent");
            wait(&session);
            receive(&session, &mut buffer).expect("it is open").filter(|came| came.stamp_ns.is_some())
        });
        let came = came.expect("what comes is stamped");
        assert_eq!((&buffer[..came.bytes], came.hops, came.ds_field), (&b"one"[..], Some(7), Some(0xb9)));
        assert_eq!(came.from, near.local_addr().ok());
        assert_eq!(receive(&session, &mut buffer).expect("it is open"), None);
        if stamped {
            wait(&near);
            let left = notice(&near, &mut buffer).expect("it is open").expect("it left");
            assert_eq!(left.about, About::Left(0));
            assert!(
                left.stamp_ns.is_some() && left.stamp_ns <= came.stamp_ns,
                "it left before it came: {left:?}, {came:?}"
            );
        }
    }

    #[test]
    fn the_sender_of_a_refusal_is_reported() {
        let near = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let closed = UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("it has one");
        near.connect(closed).expect("a port need not be open for that");
        note(&near, false, false).expect("it is a socket for datagrams");
        near.send(b"whoever").expect("it is sent");
        wait(&near);
        let mut buffer = [0; 64];
        let report = notice(&near, &mut buffer).expect("it is open").expect("it was refused");
        let by = Some(IpAddr::from([127, 0, 0, 1]));
        assert_eq!(
            (report.about, &buffer[..report.bytes]),
            (About::Icmp { kind: 3, code: 3, by }, &b"whoever"[..])
        );
    }
}

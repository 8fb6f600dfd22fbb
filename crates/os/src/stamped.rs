//! Datagrams with what the kernel knows of them: when they came and when they left, their hop limit and DS field, and errors that others sent
//! back for them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

const SOL_SOCKET: i32 = 1;
const SO_TIMESTAMPING: i32 = 37;
/// When the driver gets it, when it is received, by the wall clock; numbered, and without the packet.
const STAMPS: i32 = TX_SOFTWARE | RX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY;
const RECEIVED_ONLY: i32 = RX_SOFTWARE | SOFTWARE;
const TX_SOFTWARE: i32 = 1 << 1;
const RX_SOFTWARE: i32 = 1 << 3;
const SOFTWARE: i32 = 1 << 4;
const OPT_ID: i32 = 1 << 7;
const OPT_TSONLY: i32 = 1 << 11;
const SOL_IP: i32 = 0;
const IP_TOS: i32 = 1;
const IP_TTL: i32 = 2;
const IP_RECVERR: i32 = 11;
const IP_RECVTTL: i32 = 12;
const IP_RECVTOS: i32 = 13;
const SOL_IPV6: i32 = 41;
const IPV6_UNICAST_HOPS: i32 = 16;
const IPV6_RECVERR: i32 = 25;
const IPV6_RECVHOPLIMIT: i32 = 51;
const IPV6_HOPLIMIT: i32 = 52;
const IPV6_RECVTCLASS: i32 = 66;
const IPV6_TCLASS: i32 = 67;
const MSG_DONTWAIT: i32 = 0x40;
const MSG_ERRQUEUE: i32 = 0x2000;
/// Who tells of an error (`SO_EE_ORIGIN_*`).
const FROM_ICMP: u8 = 2;
const FROM_ICMP6: u8 = 3;
const FROM_STAMPS: u8 = 4;
/// Octets of `sock_extended_err`, after which the address of whoever sent it stands.
const EXTENDED: usize = 16;
/// Octets of `cmsghdr`.
const CONTROL_HEAD: usize = size_of::<usize>() + 8;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// `msghdr`
#[repr(C)]
struct Message {
    name: *mut u8,
    name_len: u32,
    pieces: *mut Piece,
    pieces_len: usize,
    control: *mut u64,
    control_len: usize,
    flags: i32,
}

#[repr(C)]
struct Piece {
    base: *mut u8,
    len: usize,
}

unsafe extern "C" {
    /// As POSIX has it.
    fn recvmsg(socket: i32, message: *mut Message, flags: i32) -> isize;
    /// As POSIX has it.
    fn setsockopt(socket: i32, level: i32, name: i32, value: *const i32, octets: u32) -> i32;
}

/// A datagram that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Octets of it in the buffer.
    pub octets: usize,
    /// From whom.
    pub from: Option<SocketAddr>,
    /// When it came, ns since 1970 by the wall clock.
    pub stamp_ns: Option<u64>,
    /// What its hop limit had left.
    pub hops: Option<u8>,
    /// Its DS field, with ECN.
    pub ds_field: Option<u8>,
}

/// What is told about a datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The driver got the so-manyth since stamps were turned on (from 0).
    Left(u32),
    /// Somebody sent an ICMP message back.
    Icmp {
        /// Its type.
        kind: u8,
        /// Its code.
        code: u8,
        /// Who sent it.
        by: Option<IpAddr>,
    },
    /// Our own kernel could not send it: the error's number.
    Here(i32),
}

/// Something that is told about a datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Octets of that datagram in the buffer, without the heads that the kernel made.
    pub octets: usize,
    /// What.
    pub about: About,
    /// When, ns since 1970 by the wall clock.
    pub stamp_ns: Option<u64>,
}

/// Has the kernel note when datagrams come, their hop limit and DS field, and keep the errors that come back. With `departures` it also tells when
/// each one that is sent reaches the driver, numbered anew from 0; false: it cannot.
///
/// # Errors
/// It is no socket for datagrams.
pub fn note(socket: &impl AsFd, v6: bool, departures: bool) -> io::Result<bool> {
    let options = match v6 {
        false => [(SOL_IP, IP_RECVERR), (SOL_IP, IP_RECVTTL), (SOL_IP, IP_RECVTOS)],
        true => [(SOL_IPV6, IPV6_RECVERR), (SOL_IPV6, IPV6_RECVHOPLIMIT), (SOL_IPV6, IPV6_RECVTCLASS)],
    };
    for (level, name) in options {
        set(socket, level, name, 1)?;
    }
    set(socket, SOL_SOCKET, SO_TIMESTAMPING, RECEIVED_ONLY)?;
    Ok(departures && set(socket, SOL_SOCKET, SO_TIMESTAMPING, STAMPS).is_ok())
}

/// Sets after how many hops what a socket sends is thrown away.
///
/// # Errors
/// What the kernel says.
pub fn hop_limit(socket: &impl AsFd, v6: bool, hops: u8) -> io::Result<()> {
    let (level, name) = if v6 { (SOL_IPV6, IPV6_UNICAST_HOPS) } else { (SOL_IP, IP_TTL) };
    set(socket, level, name, hops.into())
}

/// The next datagram that came; `None`: there is none now.
///
/// # Errors
/// What the kernel says; an error that came back for a datagram may be told here as well as by [`notice`].
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<Datagram>> {
    let Some(read) = take(socket, buffer, 0)? else { return Ok(None) };
    let mut datagram = Datagram { octets: read.octets, from: address(&read.name), ..Datagram::default() };
    for (level, kind, value) in read.controls() {
        match (level, kind) {
            (SOL_SOCKET, SO_TIMESTAMPING) => datagram.stamp_ns = stamp(value),
            (SOL_IP, IP_TTL) | (SOL_IPV6, IPV6_HOPLIMIT) => datagram.hops = value.first().copied(),
            (SOL_IP, IP_TOS) | (SOL_IPV6, IPV6_TCLASS) => datagram.ds_field = value.first().copied(),
            _ => {}
        }
    }
    Ok(Some(datagram))
}

/// The next thing that is told about what was sent; `None`: there is nothing now.
///
/// # Errors
/// What the kernel says.
pub fn notice(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<Notice>> {
    let Some(read) = take(socket, buffer, MSG_ERRQUEUE)? else { return Ok(None) };
    let mut told = Notice { octets: read.octets, about: About::Here(0), stamp_ns: None };
    for (level, kind, value) in read.controls() {
        match (level, kind) {
            (SOL_SOCKET, SO_TIMESTAMPING) => told.stamp_ns = stamp(value),
            (SOL_IP, IP_RECVERR) | (SOL_IPV6, IPV6_RECVERR) => told.about = about(value).unwrap_or(told.about),
            _ => {}
        }
    }
    Ok(Some(told))
}

/// What one call gave.
struct Read {
    octets: usize,
    name: [u8; 28],
    control: [u64; 64],
    control_len: usize,
}

impl Read {
    /// Level, type and value of each control message.
    fn controls(&self) -> Vec<(i32, i32, &[u8])> {
        let (all, mut rest): (&[u64], _) = (&self.control, Vec::new());
        // SAFETY: numbers are made of octets, eight each; any octet is a value of u8.
        let octets: &[u8] = unsafe { std::slice::from_raw_parts(all.as_ptr().cast(), size_of_val(all)) };
        let mut left = &octets[..self.control_len.min(octets.len())];
        while let Some((level, kind, value, after)) = control(left) {
            rest.push((level, kind, value));
            left = after;
        }
        rest
    }
}

/// The first control message, and what follows it.
fn control(octets: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    let word = |at: usize| Some(i32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?));
    let length = usize::from_ne_bytes(octets.get(..size_of::<usize>())?.try_into().ok()?);
    let value = octets.get(CONTROL_HEAD..length)?;
    let after = octets.get(length.next_multiple_of(size_of::<usize>())..).unwrap_or(&[]);
    Some((word(size_of::<usize>())?, word(size_of::<usize>() + 4)?, value, after))
}

/// The first of three times (`scm_timestamping`): when, ns since 1970.
fn stamp(value: &[u8]) -> Option<u64> {
    let half = value.len() / 6;
    let number = |at: usize| match half {
        8 => Some(u64::from_ne_bytes(value.get(at * 8..at * 8 + 8)?.try_into().ok()?)),
        4 => Some(u32::from_ne_bytes(value.get(at * 4..at * 4 + 4)?.try_into().ok()?).into()),
        _ => None,
    };
    let ns = number(0)?.checked_mul(1_000_000_000)?.checked_add(number(1)?)?;
    (ns > 0).then_some(ns)
}

/// What a `sock_extended_err` says.
fn about(value: &[u8]) -> Option<About> {
    let word = |at: usize| Some(u32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?));
    let (origin, kind, code) = (*value.get(4)?, *value.get(5)?, *value.get(6)?);
    Some(match origin {
        FROM_STAMPS => About::Left(word(12)?),
        FROM_ICMP | FROM_ICMP6 => {
            let by = address(value.get(EXTENDED..)?).map(|address| address.ip());
            About::Icmp { kind, code, by }
        }
        _ => About::Here(word(0)? as i32),
    })
}

/// A `sockaddr`.
fn address(octets: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(octets.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(octets.get(2..4)?.try_into().ok()?);
    let ip = match family {
        AF_INET => IpAddr::from(<[u8; 4]>::try_from(octets.get(4..8)?).ok()?),
        AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(octets.get(8..24)?).ok()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Takes the next message of a queue; `None`: it is empty.
fn take(socket: &impl AsFd, buffer: &mut [u8], queue: i32) -> io::Result<Option<Read>> {
    let mut read = Read { octets: 0, name: [0; 28], control: [0; 64], control_len: 0 };
    let mut piece = Piece { base: buffer.as_mut_ptr(), len: buffer.len() };
    let mut message = Message {
        name: read.name.as_mut_ptr(),
        name_len: read.name.len() as u32,
        pieces: ptr::from_mut(&mut piece),
        pieces_len: 1,
        control: read.control.as_mut_ptr(),
        control_len: size_of_val(&read.control),
        flags: 0,
    };
    // SAFETY: the kernel writes no more than the given lengths into the name, the buffer and the control messages, which all live until the call
    // returns.
    let octets = unsafe { recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, MSG_DONTWAIT | queue) };
    read.control_len = message.control_len;
    match usize::try_from(octets) {
        Ok(octets) => {
            read.octets = octets;
            Ok(Some(read))
        }
        Err(_) => match io::Error::last_os_error() {
            error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            error => Err(error),
        },
    }
}

fn set(socket: &impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the kernel reads the four octets of `value`, which lives until the call returns.
    let result = unsafe { setsockopt(socket.as_fd().as_raw_fd(), level, name, &raw const value, 4) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// Waits until the socket has something to tell.
    fn wait(socket: &UdpSocket) {
        crate::poll::readable(&[socket.as_fd()], Duration::from_secs(5)).expect("it is a socket");
    }

    #[test]
    fn a_datagram_has_its_time_its_hops_and_its_ds_field() {
        let near = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let far = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        near.connect(far.local_addr().expect("it has one")).expect("it is there");
        note(&far, false, false).expect("it is a socket for datagrams");
        let stamped = note(&near, false, true).expect("it is a socket for datagrams");
        crate::socket::ds_field(&near, false, 0xb9).expect("the field can be set");
        hop_limit(&near, false, 7).expect("the limit can be set");
        let mut buffer = [0; 64];
        // The kernel begins to stamp what comes a moment after it was asked to.
        let came = (0..1000).find_map(|_| {
            near.send(b"one").expect("it is sent");
            wait(&far);
            receive(&far, &mut buffer).expect("it is open").filter(|came| came.stamp_ns.is_some())
        });
        let came = came.expect("what comes is stamped");
        assert_eq!((&buffer[..came.octets], came.hops, came.ds_field), (&b"one"[..], Some(7), Some(0xb9)));
        assert_eq!(came.from, near.local_addr().ok());
        assert_eq!(receive(&far, &mut buffer).expect("it is open"), None);
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
    fn who_refuses_a_datagram_is_told() {
        let near = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let closed = UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("it has one");
        near.connect(closed).expect("a port need not be open for that");
        note(&near, false, false).expect("it is a socket for datagrams");
        near.send(b"whoever").expect("it is sent");
        wait(&near);
        let mut buffer = [0; 64];
        let told = notice(&near, &mut buffer).expect("it is open").expect("it was refused");
        let by = Some(IpAddr::from([127, 0, 0, 1]));
        assert_eq!((told.about, &buffer[..told.octets]), (About::Icmp { kind: 3, code: 3, by }, &b"whoever"[..]));
    }
}

//! UDP, many packets at a time: each with its own DS field on the way out, with the kernel's stamp and the DS field it came with on the way in.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

const SOL_IP: i32 = 0;
const IP_TOS: i32 = 1;
const IP_RECVTOS: i32 = 13;
const SOL_SOCKET: i32 = 1;
const SO_SNDBUF: i32 = 7;
const SO_RCVBUF: i32 = 8;
const SO_SNDBUFFORCE: i32 = 32;
const SO_RCVBUFFORCE: i32 = 33;
const SO_TIMESTAMPNS: i32 = 35;
const SO_RXQ_OVFL: i32 = 40;
const SOL_IPV6: i32 = 41;
const IPV6_RECVTCLASS: i32 = 66;
const IPV6_TCLASS: i32 = 67;
const MSG_DONTWAIT: i32 = 0x40;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// The most packets of one call.
pub const BATCH: usize = 32;
/// Octets of a packet that are kept.
const KEPT: usize = 2048;
/// Octets of what is told beside a packet.
const BESIDE: usize = 128;
/// Octets of packets that may wait in the kernel, on either side.
const ROOM: i32 = 4 << 20;

/// `sockaddr_in` or `sockaddr_in6`, octet by octet.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Address([u8; 28]);

#[repr(C)]
#[derive(Clone, Copy)]
struct Piece {
    base: *mut u8,
    len: usize,
}

/// `mmsghdr`
#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    name: *mut Address,
    name_len: u32,
    pieces: *mut Piece,
    pieces_len: usize,
    control: *mut u8,
    control_len: usize,
    flags: i32,
    /// `msghdr` ends on a multiple of eight octets.
    padding: u32,
    octets: u32,
}

const NO_MESSAGE: Message = Message {
    name: ptr::null_mut(),
    name_len: 0,
    pieces: ptr::null_mut(),
    pieces_len: 1,
    control: ptr::null_mut(),
    control_len: 0,
    flags: 0,
    padding: 0,
    octets: 0,
};

/// The DS field of one packet (`cmsghdr` and its value).
#[repr(C)]
#[derive(Clone, Copy)]
struct Marked {
    len: usize,
    level: i32,
    kind: i32,
    value: i32,
    padding: u32,
}

unsafe extern "C" {
    /// As POSIX has it.
    fn setsockopt(socket: i32, level: i32, name: i32, value: *const i32, octets: u32) -> i32;
    /// As Linux has it.
    fn sendmmsg(socket: i32, messages: *mut Message, count: u32, flags: i32) -> i32;
    /// As Linux has it; the last is a limit of time.
    fn recvmmsg(socket: i32, messages: *mut Message, count: u32, flags: i32, limit: *const u8) -> i32;
}

/// A packet that is to go.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// Its DS field, all eight bits.
    pub ds: u8,
    /// Its payload.
    pub octets: &'a [u8],
}

/// A packet that came.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Where from.
    pub from: SocketAddr,
    /// Its payload, as much as is kept.
    pub octets: &'a [u8],
    /// When the kernel had it: ns of Unix time.
    pub stamp: Option<u64>,
    /// The DS field it came with.
    pub ds: Option<u8>,
    /// How many found no room in this socket so far, if any did.
    pub lost_here: Option<u32>,
}

/// A UDP socket.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    v6: bool,
}

/// Where packets are received into.
pub struct Room {
    octets: Vec<[u8; KEPT]>,
    beside: Vec<[u64; BESIDE / 8]>,
    addresses: Vec<Address>,
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

impl Default for Room {
    fn default() -> Room {
        Room {
            octets: vec![[0; KEPT]; BATCH],
            beside: vec![[0; BESIDE / 8]; BATCH],
            addresses: vec![Address([0; 28]); BATCH],
        }
    }
}

impl Datagrams {
    /// A socket of an address's family only (one of IPv6 takes no packets of IPv4), which is asked for stamps and DS fields.
    ///
    /// # Errors
    /// What the kernel says: the port is taken, the family is not there.
    pub fn bind(at: SocketAddr) -> io::Result<Datagrams> {
        let family = if at.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        if at.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        rustix::net::bind(&socket, &at)?;
        let datagrams = Datagrams { socket: UdpSocket::from(socket), v6: at.is_ipv6() };
        datagrams.set(SOL_SOCKET, SO_TIMESTAMPNS, 1)?;
        datagrams.set(SOL_SOCKET, SO_RXQ_OVFL, 1)?;
        match datagrams.v6 {
            true => datagrams.set(SOL_IPV6, IPV6_RECVTCLASS, 1)?,
            false => datagrams.set(SOL_IP, IP_RECVTOS, 1)?,
        }
        for (usual, forced) in [(SO_RCVBUF, SO_RCVBUFFORCE), (SO_SNDBUF, SO_SNDBUFFORCE)] {
            // More than anybody may have needs CAP_NET_ADMIN; without it, it is what anybody may have.
            if datagrams.set(SOL_SOCKET, forced, ROOM).is_err() {
                datagrams.set(SOL_SOCKET, usual, ROOM)?;
            }
        }
        Ok(datagrams)
    }

    /// Its own address.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends packets, as many as [`BATCH`] of them, without waiting; `went` is told the place of each that went. The others found no room, or
    /// there is no way to where they go.
    pub fn send(&self, packets: &[Outgoing<'_>], mut went: impl FnMut(usize)) {
        let packets = &packets[..packets.len().min(BATCH)];
        let mut messages = [NO_MESSAGE; BATCH];
        let mut pieces = [Piece { base: ptr::null_mut(), len: 0 }; BATCH];
        let mut addresses = [Address([0; 28]); BATCH];
        let (level, kind) = if self.v6 { (SOL_IPV6, IPV6_TCLASS) } else { (SOL_IP, IP_TOS) };
        let mut marks = [Marked { len: 20, level, kind, value: 0, padding: 0 }; BATCH];
        for (at, packet) in packets.iter().enumerate() {
            let (address, name_len) = address(packet.to);
            addresses[at] = address;
            marks[at].value = packet.ds.into();
            pieces[at] = Piece { base: packet.octets.as_ptr().cast_mut(), len: packet.octets.len() };
            messages[at] = Message {
                name: &raw mut addresses[at],
                name_len,
                pieces: &raw mut pieces[at],
                control: (&raw mut marks[at]).cast(),
                control_len: size_of::<Marked>(),
                ..NO_MESSAGE
            };
        }
        let mut done = 0;
        while done < packets.len() {
            let rest = &mut messages[done..packets.len()];
            // SAFETY: every message points to its piece, mark and address, which are arrays of this function, and the pieces to octets that
            // `packets` borrows; all live until the call returns, and the kernel only reads them.
            let sent = unsafe { sendmmsg(self.socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as u32, MSG_DONTWAIT) };
            match usize::try_from(sent) {
                Ok(sent) if sent > 0 => {
                    (done..done + sent).for_each(&mut went);
                    done += sent;
                }
                _ if Errno::from_io_error(&io::Error::last_os_error()) == Some(Errno::INTR) => {}
                // An earlier packet's error is told at the next one, too: each is tried alone, and those that fail are left.
                _ => done += 1,
            }
        }
    }

    /// Takes what has come, at most [`BATCH`] packets, without waiting; how many there were.
    ///
    /// # Errors
    /// What the kernel says. That somebody refused an earlier packet is none.
    pub fn receive(&self, room: &mut Room, mut each: impl FnMut(Incoming<'_>)) -> io::Result<usize> {
        let mut messages = [NO_MESSAGE; BATCH];
        let mut pieces = [Piece { base: ptr::null_mut(), len: KEPT }; BATCH];
        for at in 0..BATCH {
            pieces[at].base = room.octets[at].as_mut_ptr();
            messages[at] = Message {
                name: &raw mut room.addresses[at],
                name_len: size_of::<Address>() as u32,
                pieces: &raw mut pieces[at],
                control: room.beside[at].as_mut_ptr().cast(),
                control_len: BESIDE,
                ..NO_MESSAGE
            };
        }
        // SAFETY: every message points to its piece and to a row of each of `room`'s three lists, which have as many rows as there are
        // messages and are not touched until the call returns; the lengths given are those rows' sizes.
        let count = unsafe {
            recvmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), BATCH as u32, MSG_DONTWAIT, ptr::null())
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return match Errno::from_io_error(&error) {
                Some(Errno::AGAIN | Errno::INTR | Errno::CONNREFUSED | Errno::HOSTUNREACH | Errno::NETUNREACH) => Ok(0),
                _ => Err(error),
            };
        };
        for (at, message) in messages[..count].iter().enumerate() {
            let Some(from) = socket_address(&room.addresses[at]) else { continue };
            let octets = &room.octets[at][..(message.octets as usize).min(KEPT)];
            let beside = Beside::read(&room.beside[at], message.control_len);
            each(Incoming { from, octets, stamp: beside.stamp, ds: beside.ds, lost_here: beside.lost });
        }
        Ok(count)
    }

    fn set(&self, level: i32, name: i32, value: i32) -> io::Result<()> {
        // SAFETY: the kernel reads the four octets of `value`, which lives until the call returns.
        let result = unsafe { setsockopt(self.socket.as_raw_fd(), level, name, &raw const value, 4) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What is told beside a packet.
#[derive(Default)]
struct Beside {
    stamp: Option<u64>,
    ds: Option<u8>,
    lost: Option<u32>,
}

impl Beside {
    /// Reads one `cmsghdr` after the other, in as many octets as were written.
    fn read(words: &[u64; BESIDE / 8], length: usize) -> Beside {
        let mut beside = Beside::default();
        let octets: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take(length).collect();
        let mut rest = &octets[..];
        while let Some((head, _)) = rest.split_first_chunk::<16>() {
            let size = usize::from_ne_bytes(std::array::from_fn(|n| head[n]));
            let word = |at: usize| i32::from_ne_bytes(std::array::from_fn(|n| head[at + n]));
            let Some(value) = rest.get(16..size) else { break };
            beside.take(word(8), word(12), value);
            rest = rest.get(size.next_multiple_of(8)..).unwrap_or_default();
        }
        beside
    }

    fn take(&mut self, level: i32, kind: i32, value: &[u8]) {
        match (level, kind) {
            (SOL_SOCKET, SO_TIMESTAMPNS) => {
                let long = |at: usize| value.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
                let stamp = |seconds: u64, ns: u64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
                self.stamp = long(0).zip(long(8)).map(|(seconds, ns)| stamp(seconds, ns));
            }
            (SOL_SOCKET, SO_RXQ_OVFL) => self.lost = value.try_into().ok().map(u32::from_ne_bytes),
            // Of IPv4 it is one octet, of IPv6 a number of which all but the lowest octet is nothing.
            (SOL_IP, IP_TOS) => self.ds = value.first().copied(),
            (SOL_IPV6, IPV6_TCLASS) => {
                self.ds = value.try_into().ok().map(i32::from_ne_bytes).and_then(|value| u8::try_from(value).ok());
            }
            _ => {}
        }
    }
}

/// An address as the kernel has it, and its length.
fn address(of: SocketAddr) -> (Address, u32) {
    let mut octets = [0; 28];
    let family = if of.is_ipv4() { AF_INET } else { AF_INET6 };
    octets[..2].copy_from_slice(&family.to_ne_bytes());
    octets[2..4].copy_from_slice(&of.port().to_be_bytes());
    match of {
        SocketAddr::V4(of) => {
            octets[4..8].copy_from_slice(&of.ip().octets());
            (Address(octets), 16)
        }
        SocketAddr::V6(of) => {
            octets[8..24].copy_from_slice(&of.ip().octets());
            octets[24..].copy_from_slice(&of.scope_id().to_ne_bytes());
            (Address(octets), 28)
        }
    }
}

fn socket_address(of: &Address) -> Option<SocketAddr> {
    let octets = &of.0;
    let port = u16::from_be_bytes([octets[2], octets[3]]);
    match u16::from_ne_bytes([octets[0], octets[1]]) {
        AF_INET => Some((Ipv4Addr::new(octets[4], octets[5], octets[6], octets[7]), port).into()),
        AF_INET6 => {
            let ip: [u8; 16] = std::array::from_fn(|n| octets[8 + n]);
            let scope = u32::from_ne_bytes(std::array::from_fn(|n| octets[24 + n]));
            Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn packets_arrive_with_stamp_and_ds_field() {
        let mut families = 0;
        for home in ["127.0.0.1:0", "[::1]:0"] {
            let at: SocketAddr = home.parse().unwrap();
            // A machine may have no IPv6.
            let (Ok(from), Ok(to)) = (Datagrams::bind(at), Datagrams::bind(at)) else { continue };
            families += 1;
            let there = to.local().unwrap();
            let packets = [(0xb8, &b"one"[..]), (0x20, &b"two more"[..])];
            let packets = packets.map(|(ds, octets)| Outgoing { to: there, ds, octets });
            let mut went = Vec::new();
            from.send(&packets, |place| went.push(place));
            assert_eq!(went, [0, 1]);
            let mut room = Room::default();
            let mut came = Vec::new();
            while came.len() < 2 {
                assert_eq!(crate::poll::readable(&[to.as_fd()], Duration::from_secs(10)).unwrap(), [true]);
                to.receive(&mut room, |packet| {
                    came.push((packet.from, packet.octets.to_vec(), packet.ds, packet.stamp.is_some()));
                })
                .unwrap();
            }
            let home = from.local().unwrap();
            assert_eq!(came[0], (home, b"one".to_vec(), Some(0xb8), true));
            assert_eq!(came[1], (home, b"two more".to_vec(), Some(0x20), true));
        }
        assert!(families > 0);
    }

    #[test]
    fn nothing_to_take_is_no_error() {
        let socket = Datagrams::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(socket.receive(&mut Room::default(), |_| {}).unwrap(), 0);
    }
}

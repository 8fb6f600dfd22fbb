//! UDP, many packets at a time: each with its own DS field on the way out, with the kernel's stamp and the DS
//! field it came with on the way in.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::sockopt::set_ipv6_v6only;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::address::Address;
use crate::control::{self, Buffer, Number};
use crate::messages::{self, InMessage, OutMessage};
use crate::sockopt;

/// The most packets of one call.
pub const BATCH: usize = 32;
/// Bytes of a packet that are kept.
const KEPT: usize = 2048;
/// Bytes of what is reported beside a packet.
const BESIDE: usize = 128;
/// Bytes of packets that may wait in the kernel, on either side.
const ROOM: usize = 4 << 20;

/// A packet that is to go.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingDatagram<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// Its DS field, all eight bits.
    pub ds: u8,
    /// The payload.
    pub bytes: &'a [u8],
}

/// A packet that came.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Where from.
    pub from: SocketAddr,
    /// Its payload, as much as is kept.
    pub bytes: &'a [u8],
    /// When the kernel had it: ns of Unix time.
    pub stamp: Option<u64>,
    /// The DS field it came with.
    pub ds: Option<u8>,
    /// How many found no space in this socket so far, if any did.
    pub lost_here: Option<u32>,
}

/// A UDP socket.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
    v6: bool,
}

/// Where packets are received into.
pub struct ReceiveBuffers {
    bytes: Vec<[u8; KEPT]>,
    beside: Vec<Buffer<BESIDE>>,
    addresses: Vec<Address>,
}

impl std::fmt::Debug for ReceiveBuffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

impl Default for ReceiveBuffers {
    fn default() -> ReceiveBuffers {
        ReceiveBuffers {
            bytes: vec![[0; KEPT]; BATCH],
            beside: vec![Buffer::new(); BATCH],
            addresses: vec![Address::NONE; BATCH],
        }
    }
}

impl DatagramSocket {
    /// A socket of an address's family only (one of IPv6 takes no packets of IPv4), which is requested stamps
    /// and DS fields.
    ///
    /// # Errors
    /// What the kernel reports: the port is taken, the family is not there.
    pub fn bind(at: SocketAddr) -> io::Result<DatagramSocket> {
        let family = if at.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        if at.is_ipv6() {
            set_ipv6_v6only(&socket, true)?;
        }
        rustix::net::bind(&socket, &at)?;
        let datagrams = DatagramSocket { socket: UdpSocket::from(socket), v6: at.is_ipv6() };
        let socket = &datagrams.socket;
        sockopt::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        sockopt::set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
        match datagrams.v6 {
            true => sockopt::set(socket, libc::SOL_IPV6, libc::IPV6_RECVTCLASS, 1)?,
            false => sockopt::set(socket, libc::SOL_IP, libc::IP_RECVTOS, 1)?,
        }
        sockopt::receive_buffer(socket, ROOM)?;
        sockopt::send_buffer(socket, ROOM)?;
        Ok(datagrams)
    }

    /// Its own address.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends packets, as many as [`BATCH`] of them, without waiting; `went` gets the index of each that was
    /// sent. For the others there was no space, or there is no route.
    pub fn send(&self, packets: &[OutgoingDatagram<'_>], mut went: impl FnMut(usize)) {
        let packets = &packets[..packets.len().min(BATCH)];
        let (level, kind) =
            if self.v6 { (libc::SOL_IPV6, libc::IPV6_TCLASS) } else { (libc::SOL_IP, libc::IP_TOS) };
        let mut pieces = [[IoSlice::new(&[])]; BATCH];
        let mut addresses = [Address::NONE; BATCH];
        let mut marks = [Number::new(level, kind, 0); BATCH];
        for (at, packet) in packets.iter().enumerate() {
            pieces[at] = [IoSlice::new(packet.bytes)];
            addresses[at] = Address::new(packet.to);
            marks[at] = Number::new(level, kind, packet.ds.into());
        }
        let mut messages = [OutMessage::new(&[]); BATCH];
        for at in 0..packets.len() {
            messages[at] = OutMessage::new(&pieces[at]).to(&addresses[at]).with(&marks[at]);
        }
        let mut done = 0;
        while done < packets.len() {
            let rest = &mut messages[done..packets.len()];
            match messages::send(&self.socket, rest) {
                Ok(sent) if sent > 0 => {
                    (done..done + sent).for_each(&mut went);
                    done += sent;
                }
                Err(error) if Errno::from_io_error(&error) == Some(Errno::INTR) => {}
                // An earlier packet's error is returned for the next one, too: each is tried alone, and those
                // that fail are left.
                _ => done += 1,
            }
        }
    }

    /// Takes what has come, at most [`BATCH`] packets, without waiting; how many there were.
    ///
    /// # Errors
    /// The kernel's error. That an earlier packet was refused is none.
    pub fn receive(
        &self,
        room: &mut ReceiveBuffers,
        mut each: impl FnMut(Incoming<'_>),
    ) -> io::Result<usize> {
        let (count, lengths) = match self.take(room) {
            Ok(taken) => taken,
            Err(error) => {
                return match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN | Errno::INTR | Errno::CONNREFUSED) => Ok(0),
                    Some(Errno::HOSTUNREACH | Errno::NETUNREACH) => Ok(0),
                    _ => Err(error),
                };
            }
        };
        for (at, (bytes, control)) in lengths[..count].iter().enumerate() {
            let Some(from) = room.addresses[at].get() else { continue };
            let bytes = &room.bytes[at][..(*bytes).min(KEPT)];
            let beside = Beside::read(&room.beside[at], *control);
            each(Incoming { from, bytes, stamp: beside.stamp, ds: beside.ds, lost_here: beside.lost });
        }
        Ok(count)
    }

    /// Receives into the room: how many, and the bytes and control bytes of each.
    fn take(&self, room: &mut ReceiveBuffers) -> io::Result<(usize, [(usize, usize); BATCH])> {
        let mut pieces: Vec<_> = room.bytes.iter_mut().map(|bytes| [IoSliceMut::new(bytes)]).collect();
        let beside = room.addresses.iter_mut().zip(&mut room.beside);
        let message = |(pieces, (address, control))| InMessage::new(pieces).from(address).with(control);
        let mut messages: Vec<_> =
            pieces.iter_mut().map(|pieces| &mut pieces[..]).zip(beside).map(message).collect();
        let count = messages::receive(&self.socket, &mut messages)?;
        let mut lengths = [(0, 0); BATCH];
        for (length, message) in lengths.iter_mut().zip(&messages[..count]) {
            *length = (message.len(), message.control_len());
        }
        Ok((count, lengths))
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What is reported beside a packet.
#[derive(Default)]
struct Beside {
    stamp: Option<u64>,
    ds: Option<u8>,
    lost: Option<u32>,
}

impl Beside {
    /// Reads the control messages in as many bytes as were written.
    fn read(control: &Buffer<BESIDE>, length: usize) -> Beside {
        let mut beside = Beside::default();
        control.read(length).for_each(|(level, kind, value)| beside.take(level, kind, value));
        beside
    }

    fn take(&mut self, level: i32, kind: i32, value: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => self.stamp = control::time_ns(value, 1),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                self.lost = value.try_into().ok().map(u32::from_ne_bytes)
            }
            // Of IPv4 it is one byte, of IPv6 a number of which all but the lowest byte is nothing.
            (libc::SOL_IP, libc::IP_TOS) => self.ds = value.first().copied(),
            (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                self.ds =
                    value.try_into().ok().map(i32::from_ne_bytes).and_then(|value| u8::try_from(value).ok());
            }
            _ => {}
        }
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
            let (Ok(from), Ok(to)) = (DatagramSocket::bind(at), DatagramSocket::bind(at)) else { continue };
            families += 1;
            let there = to.local().unwrap();
            let packets = [(0xb8, &b"one"[..]), (0x20, &b"two more"[..])];
            let packets = packets.map(|(ds, bytes)| OutgoingDatagram { to: there, ds, bytes });
            let mut went = Vec::new();
            from.send(&packets, |place| went.push(place));
            assert_eq!(went, [0, 1]);
            let mut room = ReceiveBuffers::default();
            let mut came = Vec::new();
            while came.len() < 2 {
                assert_eq!(crate::poll::readable(&[to.as_fd()], Duration::from_secs(10)).unwrap(), [true]);
                to.receive(&mut room, |packet| {
                    came.push((packet.from, packet.bytes.to_vec(), packet.ds, packet.stamp.is_some()));
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
        let socket = DatagramSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(socket.receive(&mut ReceiveBuffers::default(), |_| {}).unwrap(), 0);
    }
}

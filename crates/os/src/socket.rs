//! What the standard library's sockets lack: TCP's own account of a connection, its congestion control, echo requests.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass, set_tcp_congestion};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt};

/// The longest bytes of `tcp_info` that we read.
const TCP_INFO_OCTETS: usize = 168;
const IPPROTO_TCP: i32 = 6;
const TCP_INFO: i32 = 11;
const TCP_NOTSENT_LOWAT: i32 = 25;
const SOL_SOCKET: i32 = 1;
const SO_MAX_PACING_RATE: i32 = 47;

unsafe extern "C" {
    /// As POSIX has it.
    fn getsockopt(socket: i32, level: i32, name: i32, value: *mut u8, octets: *mut u32) -> i32;
    /// Likewise.
    fn setsockopt(socket: i32, level: i32, name: i32, value: *const i32, octets: u32) -> i32;
}

/// What TCP knows of a connection (`tcp_info` of Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round trip, µs.
    pub srtt_us: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Segments sent again so far.
    pub retransmissions: u32,
    /// Payload bytes acknowledged so far.
    pub acked: u64,
    /// Payload bytes per second, as TCP estimates them.
    pub delivery_rate: u64,
}

/// TCP's account of a connected socket.
///
/// # Errors
/// It is no TCP socket.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let mut octets = [0_u8; TCP_INFO_OCTETS];
    let mut length = TCP_INFO_OCTETS as u32;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes, which is the size of the buffer, and then says how many it wrote.
    let result = unsafe { getsockopt(fd, IPPROTO_TCP, TCP_INFO, octets.as_mut_ptr(), &raw mut length) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let word = |at: usize| u32::from_ne_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
    let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|n| octets[at + n]));
    Ok(TcpInfo {
        srtt_us: word(68),
        cwnd: word(80),
        retransmissions: word(100),
        acked: long(120),
        delivery_rate: long(160),
    })
}

/// Lets no more than so many octets of a TCP socket wait to be sent for the first time: what is written is on its way soon.
///
/// # Errors
/// It is no TCP socket.
pub fn most_unsent(socket: &impl AsFd, octets: u32) -> io::Result<()> {
    set(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, octets)
}

/// Lets a TCP socket send no faster than so many octets per second.
///
/// # Errors
/// What the kernel says.
pub fn most_per_second(socket: &impl AsFd, octets: u32) -> io::Result<()> {
    set(socket, SOL_SOCKET, SO_MAX_PACING_RATE, octets)
}

fn set(socket: &impl AsFd, level: i32, name: i32, value: u32) -> io::Result<()> {
    let value = value as i32;
    // SAFETY: the kernel reads the four octets of `value`, which lives until the call returns.
    let result = unsafe { setsockopt(socket.as_fd().as_raw_fd(), level, name, &raw const value, 4) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A TCP socket that listens, of an address's family only.
///
/// # Errors
/// What the kernel says: the port is taken, the family is not there.
pub fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let family = if at.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if at.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &at)?;
    rustix::net::listen(&socket, 64)?;
    Ok(TcpListener::from(socket))
}

/// Chooses the congestion control of a TCP socket.
///
/// # Errors
/// This kernel does not have it.
pub fn congestion_control(socket: &impl AsFd, name: &str) -> io::Result<()> {
    Ok(set_tcp_congestion(socket, name)?)
}

/// Sets the DS field of what a socket sends.
///
/// # Errors
/// What the kernel says.
pub fn ds_field(socket: &impl AsFd, v6: bool, value: u8) -> io::Result<()> {
    match v6 {
        true => set_ipv6_tclass(socket, value.into())?,
        false => set_ip_tos(socket, value)?,
    }
    Ok(())
}

/// Echo requests (ping) without privileges: the group must be allowed to (`net.ipv4.ping_group_range`).
#[derive(Debug)]
pub struct Echo {
    socket: OwnedFd,
    v6: bool,
}

impl Echo {
    /// A socket for echo requests to somebody.
    ///
    /// # Errors
    /// It is not allowed, or there is no way to him.
    pub fn open(to: IpAddr) -> io::Result<Echo> {
        let (family, protocol): (_, Protocol) = match to {
            IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
            IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let socket = rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(protocol))?;
        rustix::net::connect(&socket, &SocketAddr::new(to, 0))?;
        Ok(Echo { socket, v6: to.is_ipv6() })
    }

    /// Sends request `number` with so many octets of data.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn ask(&self, number: u16, data: u32) -> io::Result<()> {
        let mut message = vec![0_u8; 8 + data as usize];
        message[0] = if self.v6 { 128 } else { 8 };
        message[6..8].copy_from_slice(&number.to_be_bytes());
        rustix::net::send(&self.socket, &message, SendFlags::empty())?;
        Ok(())
    }

    /// The number of the next answer; `None`: none came within `limit`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn answer(&self, limit: Duration) -> io::Result<Option<u16>> {
        if crate::poll::readable(&[self.socket.as_fd()], limit)? != [true] {
            return Ok(None);
        }
        let mut message = [0_u8; 8];
        let (read, _) = rustix::net::recv(&self.socket, &mut message[..], RecvFlags::empty())?;
        let is_answer = read == 8 && message[0] == if self.v6 { 129 } else { 0 };
        Ok(is_answer.then(|| u16::from_be_bytes([message[6], message[7]])))
    }
}

impl AsFd for Echo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

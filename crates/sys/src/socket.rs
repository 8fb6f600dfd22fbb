//! What the standard library's sockets lack: TCP's own account of a connection, its congestion control, echo
//! requests.

use std::io;
use std::mem::offset_of;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use libc::c_int;
use rustix::net::sockopt::{
    set_ip_tos, set_ipv6_tclass, set_ipv6_v6only, set_socket_reuseaddr, set_tcp_congestion,
};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto};

use crate::sockopt;

/// Bytes of [`KernelTcpInfo`].
const TCP_INFO_BYTES: usize = size_of::<KernelTcpInfo>();

/// `tcp_info` up to what is read of it; kernels write as much of it as they have (linux/tcp.h).
#[allow(dead_code, reason = "only offsets of it are used")]
#[repr(C)]
struct KernelTcpInfo {
    state_to_options: [u8; 8],
    rto_and_ato: [u32; 2],
    snd_mss: u32,
    rcv_mss: u32,
    unacked_to_rcv_ssthresh: [u32; 11],
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss_to_rcv_space: [u32; 4],
    total_retrans: u32,
    pacing_rate: [u64; 2],
    bytes_acked: u64,
    bytes_received: u64,
    segs_to_min_rtt: [u32; 4],
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_to_sndbuf_limited: [u64; 3],
    delivered: u32,
    delivered_ce: u32,
}

const _: () = assert!(offset_of!(KernelTcpInfo, rtt) == 68 && offset_of!(KernelTcpInfo, snd_cwnd) == 80);
const _: () =
    assert!(offset_of!(KernelTcpInfo, total_retrans) == 100 && offset_of!(KernelTcpInfo, bytes_acked) == 120);
const _: () = assert!(offset_of!(KernelTcpInfo, delivery_rate) == 160 && TCP_INFO_BYTES == 200);
const _: () =
    assert!(offset_of!(KernelTcpInfo, data_segs_in) == 152 && offset_of!(KernelTcpInfo, delivered) == 192);
const _: () = assert!(offset_of!(libc::tcp_info, tcpi_snd_mss) == offset_of!(KernelTcpInfo, snd_mss));
const _: () = assert!(offset_of!(libc::tcp_info, tcpi_rcv_mss) == offset_of!(KernelTcpInfo, rcv_mss));
const _: () = assert!(offset_of!(libc::tcp_info, tcpi_rtt) == offset_of!(KernelTcpInfo, rtt));
const _: () =
    assert!(offset_of!(libc::tcp_info, tcpi_total_retrans) == offset_of!(KernelTcpInfo, total_retrans));

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
    /// Payload bytes that arrived here so far in whatever order, counted in full segments; those that came
    /// twice are in it.
    pub arrived: u64,
    /// Payload bytes that the other side has so far in whatever order, counted in full segments; 0 before
    /// Linux 4.18.
    pub delivered: u64,
}

/// TCP's account of a connected socket.
///
/// # Errors
/// It is no TCP socket.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let mut bytes = [0_u8; TCP_INFO_BYTES];
    // An older kernel writes less; what it lacks stays zero.
    sockopt::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|n| bytes[at + n]));
    let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|n| bytes[at + n]));
    Ok(TcpInfo {
        srtt_us: word(offset_of!(KernelTcpInfo, rtt)),
        cwnd: word(offset_of!(KernelTcpInfo, snd_cwnd)),
        retransmissions: word(offset_of!(KernelTcpInfo, total_retrans)),
        acked: long(offset_of!(KernelTcpInfo, bytes_acked)),
        delivery_rate: long(offset_of!(KernelTcpInfo, delivery_rate)),
        arrived: u64::from(word(offset_of!(KernelTcpInfo, data_segs_in)))
            * u64::from(word(offset_of!(KernelTcpInfo, rcv_mss))),
        delivered: u64::from(word(offset_of!(KernelTcpInfo, delivered)))
            * u64::from(word(offset_of!(KernelTcpInfo, snd_mss))),
    })
}

/// Lets no more than this many bytes of a TCP socket wait to be sent for the first time: what is written is
/// on its way soon.
///
/// # Errors
/// It is no TCP socket.
pub fn most_unsent(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    sockopt::set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes as c_int)
}

/// Lets a TCP socket send no faster than this many bytes per second.
///
/// # Errors
/// What the kernel reports.
pub fn most_per_second(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    sockopt::set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes as c_int)
}

/// A TCP socket that listens, of an address's family only.
///
/// # Errors
/// What the kernel reports: the port is taken, the family is not there.
pub fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let family = if at.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if at.is_ipv6() {
        set_ipv6_v6only(&socket, true)?;
    }
    set_socket_reuseaddr(&socket, true)?;
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
/// What the kernel reports.
pub fn ds_field(socket: &impl AsFd, v6: bool, value: u8) -> io::Result<()> {
    match v6 {
        true => set_ipv6_tclass(socket, value.into())?,
        false => set_ip_tos(socket, value)?,
    }
    Ok(())
}

/// Echo requests (ping) without privileges: the group must be allowed to (`net.ipv4.ping_group_range`).
#[derive(Debug)]
pub struct EchoSocket {
    socket: OwnedFd,
    v6: bool,
}

impl EchoSocket {
    /// A socket for echo requests to a host.
    ///
    /// # Errors
    /// It is not allowed, or there is no way to him.
    pub fn open(to: IpAddr) -> io::Result<EchoSocket> {
        let (family, protocol): (_, Protocol) = match to {
            IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
            IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let socket =
            rustix::net::socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(protocol))?;
        rustix::net::connect(&socket, &SocketAddr::new(to, 0))?;
        Ok(EchoSocket { socket, v6: to.is_ipv6() })
    }

    /// Sends request `number` with this many bytes of data.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn send_request(&self, number: u16, data: u32) -> io::Result<()> {
        let mut message = vec![0_u8; 8 + data as usize];
        message[0] = if self.v6 { 128 } else { 8 };
        message[6..8].copy_from_slice(&number.to_be_bytes());
        rustix::net::send(&self.socket, &message, SendFlags::empty())?;
        Ok(())
    }

    /// The number of the next answer; `None`: none came within `limit`.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn reply(&self, limit: Duration) -> io::Result<Option<u16>> {
        if crate::poll::readable(&[self.socket.as_fd()], limit)? != [true] {
            return Ok(None);
        }
        let mut message = [0_u8; 8];
        let (read, _) = rustix::net::recv(&self.socket, &mut message[..], RecvFlags::empty())?;
        let is_answer = read == 8 && message[0] == if self.v6 { 129 } else { 0 };
        Ok(is_answer.then(|| u16::from_be_bytes([message[6], message[7]])))
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

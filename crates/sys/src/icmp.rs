//! Sockets for ICMP: those that any user may open whom `ping_group_range` allows, and raw ones.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::c_int;
use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, ipproto};

use crate::sockopt;

// `libc` lacks the names of these two (linux/icmp.h, linux/icmpv6.h).
const ICMP_FILTER: c_int = 1;
const ICMPV6_FILTER: c_int = 1;
const ECHO_REPLY: usize = 0;
const ECHO_REPLY_V6: usize = 129;
/// Unreachable, and the end of a hop limit.
const ERRORS: [usize; 2] = [3, 11];
const ERRORS_V6: [usize; 2] = [1, 3];

/// A socket for echo requests to a host and its replies.
#[derive(Debug)]
pub struct Icmp {
    socket: OwnedFd,
    raw: bool,
}

impl Icmp {
    /// One that needs no privilege, or else a raw one.
    ///
    /// # Errors
    /// `PermissionDenied`: neither is allowed; otherwise there is no way to him, or the kernel has no such
    /// sockets.
    pub fn open(to: IpAddr) -> io::Result<Icmp> {
        let made = match made(to, SocketType::DGRAM) {
            Err(Errno::ACCESS | Errno::PERM | Errno::PROTONOSUPPORT) => {
                let socket = made(to, SocketType::RAW)?;
                filter(&socket, to.is_ipv6(), &[if to.is_ipv6() { ECHO_REPLY_V6 } else { ECHO_REPLY }])?;
                Icmp { socket, raw: true }
            }
            made => Icmp { socket: made?, raw: false },
        };
        rustix::net::connect(&made.socket, &SocketAddr::new(to, 0))?;
        Ok(made)
    }

    /// A raw one, which receives messages of these ICMP types from that host, also where another program
    /// asked for them.
    ///
    /// # Errors
    /// What the kernel reports; it needs CAP_NET_RAW.
    pub fn raw(to: IpAddr, types: &[u8]) -> io::Result<Icmp> {
        let socket = made(to, SocketType::RAW)?;
        let types: Vec<usize> = types.iter().map(|kind| usize::from(*kind)).collect();
        filter(&socket, to.is_ipv6(), &types)?;
        rustix::net::connect(&socket, &SocketAddr::new(to, 0))?;
        Ok(Icmp { socket, raw: true })
    }

    /// Does it see the answers to everyone's requests? Then messages carry the identifier that the sender
    /// chose, and over IPv4 arrive with the IP header and need their checksum.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.raw
    }
}

impl AsFd for Icmp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket that hears the errors which others send back for anything this computer sent, as whole messages:
/// over IPv4 with the IP header, over IPv6 without.
#[derive(Debug)]
pub struct Errors {
    socket: OwnedFd,
}

impl Errors {
    /// Begins to listen.
    ///
    /// # Errors
    /// What the kernel reports; it needs CAP_NET_RAW.
    pub fn open(v6: bool) -> io::Result<Errors> {
        let anybody = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let socket = made(anybody, SocketType::RAW)?;
        filter(&socket, v6, if v6 { &ERRORS_V6 } else { &ERRORS })?;
        Ok(Errors { socket })
    }
}

impl AsFd for Errors {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends a datagram by a connected socket of any kind; it never waits for space.
///
/// # Errors
/// What the kernel reports.
pub fn send(socket: &impl AsFd, bytes: &[u8]) -> io::Result<()> {
    rustix::net::send(socket, bytes, SendFlags::DONTWAIT)?;
    Ok(())
}

fn made(to: IpAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let (family, protocol): (_, Protocol) = match to {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol))
}

/// Lets these types through and nothing else: other messages to this computer are not for us.
fn filter(socket: &OwnedFd, v6: bool, kinds: &[usize]) -> io::Result<()> {
    // Set bits are types that are kept away.
    let mut words = [-1_i32; 8];
    for kind in kinds {
        words[kind / 32] &= !(1_i32 << (kind % 32));
    }
    match v6 {
        true => sockopt::set_words(socket, libc::SOL_ICMPV6, ICMPV6_FILTER, &words),
        false => sockopt::set_words(socket, libc::SOL_RAW, ICMP_FILTER, &words[..1]),
    }
}

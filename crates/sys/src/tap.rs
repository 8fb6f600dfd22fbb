//! A TAP or TUN device whose packets may be unfinished: super-packets stay whole, checksums uncomputed, with
//! a header that describes that (see [`crate::offload`]).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{c_int, c_uint};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};

use crate::{ethtool, ifreq};

const CONTROL: &str = "/dev/net/tun";
/// `TUNSETIFF`: make or take a device. Its direction bits differ between architectures.
const SET_INTERFACE: Opcode = opcode::write::<c_int>(b'T', 202);
/// `TUNSETOFFLOAD`: what may come unfinished.
const SET_OFFLOAD: Opcode = opcode::write::<c_uint>(b'T', 208);
/// `TUNSETVNETHDRSZ`
const SET_HEAD: Opcode = opcode::write::<c_int>(b'T', 216);
const CHECKSUM: c_uint = libc::TUN_F_CSUM;
/// Super-packets of UDP (Linux 6.2).
const UDP: c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;
/// Kinds of super-packets, each with the feature of the devices that send it.
const KINDS: [(c_uint, &str); 4] = [
    (libc::TUN_F_TSO4, "tx-tcp-segmentation"),
    (libc::TUN_F_TSO6, "tx-tcp6-segmentation"),
    (libc::TUN_F_TSO_ECN, "tx-tcp-ecn-segmentation"),
    (UDP, "tx-udp-segmentation"),
];

/// Kinds of super-packets: of TCP over IPv4 and IPv6, with ECN, and of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperPackets(c_uint);

impl SuperPackets {
    /// None: all are split.
    pub const NONE: SuperPackets = SuperPackets(0);
    /// All kinds.
    pub const ALL: SuperPackets =
        SuperPackets(libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN | UDP);

    /// The kinds that a device sends itself. Others the kernel splits before the device, but not for a socket
    /// that bypasses the qdiscs: there it drops them.
    #[must_use]
    pub fn sent_by(device: &str) -> SuperPackets {
        SuperPackets::by(&ethtool::features(device).unwrap_or_default())
    }

    fn by(features: &[String]) -> SuperPackets {
        let has = |name: &str| features.iter().any(|feature| feature == name);
        let sent = KINDS.iter().filter(|(_, name)| has(name)).fold(0, |all, (kind, _)| all | kind);
        // ECN is a property of TCP's; the kernel takes it with one of them only.
        let tcp = libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
        SuperPackets(if sent & tcp == 0 { sent & UDP } else { sent })
    }
}

/// What comes through a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Frames of Ethernet.
    Frames,
    /// IP packets.
    Packets,
}

/// A device of the network namespace it was made in; it goes with this.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    name: String,
}

impl Tap {
    /// Makes a device in the network namespace of the calling thread; `%d` in its name becomes the first
    /// number that is free.
    ///
    /// # Errors
    /// `NotFound` where the kernel has no such devices, `PermissionDenied` where we may not make them here.
    pub fn create(name: &str, carries: Carries) -> io::Result<Tap> {
        let kind = if carries == Carries::Frames { libc::IFF_TAP } else { libc::IFF_TUN };
        let mut request = ifreq::with_flags(name, kind | libc::IFF_NO_PI | libc::IFF_VNET_HDR)?;
        let fd = rustix::fs::open(CONTROL, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, and keeps no pointer to it.
        unsafe { ioctl(&fd, Updater::<SET_INTERFACE, libc::ifreq>::new(&mut request)) }?;
        let size = crate::offload::HEADER_LEN as c_int;
        // SAFETY: TUNSETVNETHDRSZ reads one `int`.
        unsafe { ioctl(&fd, Setter::<SET_HEAD, c_int>::new(size)) }?;
        let tap = Tap { fd, name: ifreq::name(&request) };
        tap.keep(SuperPackets::ALL)?;
        Ok(tap)
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Super-packets of these kinds come whole, of others split.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn keep(&self, SuperPackets(kinds): SuperPackets) -> io::Result<()> {
        // A kernel before 6.2 knows none of UDP.
        self.take_unfinished(CHECKSUM | kinds).or_else(|_| self.take_unfinished(CHECKSUM | kinds & !UDP))
    }

    fn take_unfinished(&self, what: c_uint) -> io::Result<()> {
        // SAFETY: TUNSETOFFLOAD takes flags by value.
        Ok(unsafe { ioctl(&self.fd, IntegerSetter::<SET_OFFLOAD>::new_usize(what as usize)) }?)
    }

    /// The next packet that was sent by the device, its offload head first; what no space is left for is cut
    /// off. `None`: there is none now.
    ///
    /// # Errors
    /// The device is gone, or down.
    pub fn read(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        match rustix::io::readv(&self.fd, into) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a packet arrive there, its offload head first; false: no space, or the kernel takes it for no
    /// packet.
    ///
    /// # Errors
    /// The device is gone, or down.
    pub fn write(&self, packet: &[IoSlice<'_>]) -> io::Result<bool> {
        match rustix::io::writev(&self.fd, packet) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INVAL | Errno::NOBUFS | Errno::NOMEM) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_send_the_kinds_of_super_packets_that_their_features_name() {
        let by = |names: &[&str]| {
            SuperPackets::by(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(by(&[]), SuperPackets::NONE);
        assert_eq!(by(&["tx-tcp-segmentation"]), SuperPackets(libc::TUN_F_TSO4));
        // Without TCP's the kernel refuses ECN's.
        assert_eq!(by(&["tx-tcp-ecn-segmentation", "loopback"]), SuperPackets::NONE);
        assert_eq!(by(&["tx-tcp-ecn-segmentation", "tx-udp-segmentation"]), SuperPackets(UDP));
        assert_eq!(by(&KINDS.map(|(_, name)| name)), SuperPackets::ALL);
    }
}

//! A TAP or TUN device whose packets may be unfinished: super-packets stay whole, checksums uncomputed, with
//! a header that describes that (see [`crate::offload`]).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::{c_int, c_uint};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};

use crate::ifreq;

const CONTROL: &str = "/dev/net/tun";
/// `TUNSETIFF`: make or take a device. Its direction bits differ between architectures.
const SET_INTERFACE: Opcode = opcode::write::<c_int>(b'T', 202);
/// `TUNSETOFFLOAD`: what may come unfinished.
const SET_OFFLOAD: Opcode = opcode::write::<c_uint>(b'T', 208);
/// `TUNSETVNETHDRSZ`
const SET_HEAD: Opcode = opcode::write::<c_int>(b'T', 216);
const CHECKSUM: c_uint = libc::TUN_F_CSUM;
/// Super-packets of TCP over IPv4 and IPv6, with ECN.
const TCP: c_uint = libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// Those of UDP (Linux 6.2).
const UDP: c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

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
        tap.split(false)?;
        Ok(tap)
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel cuts super-packets before they come here (true), or does not.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn split(&self, split: bool) -> io::Result<()> {
        if split {
            return self.take_unfinished(CHECKSUM);
        }
        self.take_unfinished(CHECKSUM | TCP | UDP).or_else(|_| self.take_unfinished(CHECKSUM | TCP))
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

//! A TAP or TUN device whose packets may be unfinished: super-packets stay whole, checksums uncomputed, and each says so (see [`crate::offload`]).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl};

use crate::netlink::MAX_NAME;

const CONTROL: &str = "/dev/net/tun";
/// `TUNSETIFF`: make or take a device.
const SET_INTERFACE: Opcode = 0x4004_54ca;
/// `TUNSETOFFLOAD`: what may come unfinished.
const SET_OFFLOAD: Opcode = 0x4004_54d0;
/// `TUNSETVNETHDRSZ`
const SET_HEAD: Opcode = 0x4004_54d8;
const FLAG_TUN: u16 = 0x0001;
const FLAG_TAP: u16 = 0x0002;
const FLAG_NO_PROTOCOL: u16 = 0x1000;
const FLAG_OFFLOAD_HEAD: u16 = 0x4000;
const CHECKSUM: usize = 1;
/// Super-packets of TCP over IPv4 and IPv6, with ECN.
const TCP: usize = 2 | 4 | 8;
/// Those of UDP (Linux 6.2).
const UDP: usize = 0x20 | 0x40;
/// Bytes of `ifreq`, of which the first are the name.
const REQUEST: usize = 40;
const NAME: usize = MAX_NAME + 1;

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
    /// Makes a device in the network namespace of the calling thread; `%d` in its name becomes the first number that is free.
    ///
    /// # Errors
    /// `NotFound` where the kernel has no such devices, `PermissionDenied` where we may not make them here.
    pub fn create(name: &str, carries: Carries) -> io::Result<Tap> {
        let octets = name.as_bytes();
        if octets.is_empty() || octets.len() > MAX_NAME {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` cannot be the name of a link")));
        }
        let fd = rustix::fs::open(CONTROL, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
        let mut request = [0_u8; REQUEST];
        request[..octets.len()].copy_from_slice(octets);
        let kind = if carries == Carries::Frames { FLAG_TAP } else { FLAG_TUN };
        request[NAME..NAME + 2].copy_from_slice(&(kind | FLAG_NO_PROTOCOL | FLAG_OFFLOAD_HEAD).to_ne_bytes());
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, which has 40 bytes on every 64-bit Linux, and keeps no pointer to it.
        unsafe { ioctl(&fd, Updater::<SET_INTERFACE, [u8; REQUEST]>::new(&mut request)) }?;
        let size = crate::offload::OCTETS as i32;
        // SAFETY: TUNSETVNETHDRSZ reads one `int`.
        unsafe { ioctl(&fd, Setter::<SET_HEAD, i32>::new(size)) }?;
        let given = request[..NAME].split(|octet| *octet == 0).next().unwrap_or_default();
        let tap = Tap { fd, name: String::from_utf8_lossy(given).into_owned() };
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
    /// What the kernel says.
    pub fn split(&self, split: bool) -> io::Result<()> {
        if split {
            return self.take_unfinished(CHECKSUM);
        }
        self.take_unfinished(CHECKSUM | TCP | UDP).or_else(|_| self.take_unfinished(CHECKSUM | TCP))
    }

    fn take_unfinished(&self, what: usize) -> io::Result<()> {
        // SAFETY: TUNSETOFFLOAD takes flags by value.
        Ok(unsafe { ioctl(&self.fd, IntegerSetter::<SET_OFFLOAD>::new_usize(what)) }?)
    }

    /// The next packet that was sent by the device, its offload head first; what no room is left for is cut off. `None`: there is none now.
    ///
    /// # Errors
    /// The device is gone, or down.
    pub fn read(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        match rustix::io::readv(&self.fd, into) {
            Ok(octets) => Ok(Some(octets)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a packet arrive there, its offload head first; false: no room, or the kernel takes it for no packet.
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

//! TUN devices: what a namespace sends out by one comes here as IP packets, and what is written here arrives there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};

use crate::netlink::MAX_NAME;

/// Where such devices are made.
const CONTROL: &str = "/dev/net/tun";
/// `TUNSETIFF`: make or take a device.
const SET_INTERFACE: Opcode = 0x4004_54ca;
/// IP packets without a header of the driver's before them.
const PLAIN: u16 = 0x0001 | 0x1000;
/// Bytes of `ifreq`, of which the first are the name.
const REQUEST: usize = 40;
const NAME: usize = MAX_NAME + 1;

/// A device of the network namespace it was made in; it goes with this.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
}

impl Tun {
    /// Makes a device in the network namespace of the calling thread.
    ///
    /// # Errors
    /// `NotFound` where the kernel has no such devices, `PermissionDenied` where we may not make them here.
    pub fn create(name: &str) -> io::Result<Tun> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::open(CONTROL, flags, Mode::empty())?;
        let mut request = [0_u8; REQUEST];
        let octets = name.as_bytes();
        if octets.is_empty() || octets.len() > MAX_NAME {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` cannot be the name of a link")));
        }
        request[..octets.len()].copy_from_slice(octets);
        request[NAME..NAME + 2].copy_from_slice(&PLAIN.to_ne_bytes());
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, which has 40 bytes on every 64-bit Linux, and keeps no pointer to it.
        unsafe { ioctl(&fd, Updater::<SET_INTERFACE, [u8; REQUEST]>::new(&mut request)) }?;
        Ok(Tun { fd })
    }

    /// The next packet that the namespace sent; `None`: there is none now.
    ///
    /// # Errors
    /// The device is gone, or down.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.fd, into) {
            Ok(octets) => Ok(Some(octets)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a packet arrive there; false: its queue was full, or it is no packet.
    ///
    /// # Errors
    /// The device is gone, or down.
    pub fn write(&self, packet: &[u8]) -> io::Result<bool> {
        match rustix::io::write(&self.fd, packet) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INVAL | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

//! TUN devices: packets that a namespace sends out by one come here as IP packets, and packets written here
//! arrive there. TAP devices do the same with frames of Ethernet.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::c_int;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use crate::ifreq;

/// Where such devices are made.
const CONTROL: &str = "/dev/net/tun";
/// `TUNSETIFF`: make or take a device. Its direction bits differ between architectures.
const SET_INTERFACE: Opcode = opcode::write::<c_int>(b'T', 202);
/// IP packets without a header of the driver's before them.
const PLAIN: c_int = libc::IFF_TUN | libc::IFF_NO_PI;
/// Frames of Ethernet, without a header.
const FRAMES: c_int = libc::IFF_TAP | libc::IFF_NO_PI;
/// Bytes of a frame's head.
const FRAME_HEAD: usize = 14;
/// The address of every TAP device: nothing else is on its wire.
pub const WIRE_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// The sender of what arrives there.
const OTHER_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A device of the network namespace it was made in; it goes with this.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    /// Its namespace sees frames, not packets.
    frames: bool,
}

impl Tun {
    /// Makes a device in the network namespace of the calling thread.
    ///
    /// # Errors
    /// `NotFound` where the kernel has no such devices, `PermissionDenied` where we may not make them here.
    pub fn create(name: &str) -> io::Result<Tun> {
        Tun::of_kind(name, false)
    }

    /// Makes a TAP device: qdiscs on it count frames. Packets are read and written here all the same.
    ///
    /// # Errors
    /// As for [`Tun::create`].
    pub fn with_frames(name: &str) -> io::Result<Tun> {
        Tun::of_kind(name, true)
    }

    /// A device that [`crate::attach::attach`] made in another network namespace.
    #[must_use]
    pub fn attached(fd: OwnedFd) -> Tun {
        Tun { fd, frames: false }
    }

    fn of_kind(name: &str, frames: bool) -> io::Result<Tun> {
        let mut request = ifreq::with_flags(name, if frames { FRAMES } else { PLAIN })?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = rustix::fs::open(CONTROL, flags, Mode::empty())?;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, and keeps no pointer to it.
        unsafe { ioctl(&fd, Updater::<SET_INTERFACE, libc::ifreq>::new(&mut request)) }?;
        Ok(Tun { fd, frames })
    }

    /// The next packet that the namespace sent; `None`: there is none now.
    ///
    /// # Errors
    /// The device is gone, or down.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.fd, &mut *into) {
            Ok(bytes) if self.frames => {
                let bytes = bytes.min(into.len());
                into.copy_within(FRAME_HEAD.min(bytes)..bytes, 0);
                Ok(Some(bytes.saturating_sub(FRAME_HEAD)))
            }
            Ok(bytes) => Ok(Some(bytes)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a packet arrive there; false: its queue was full, or it is no packet.
    ///
    /// # Errors
    /// The device is gone, or down.
    pub fn write(&self, packet: &[u8]) -> io::Result<bool> {
        let written = if self.frames {
            let head = frame_head(packet);
            rustix::io::writev(&self.fd, &[io::IoSlice::new(&head), io::IoSlice::new(packet)])
        } else {
            rustix::io::write(&self.fd, packet)
        };
        match written {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::INVAL | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The head of the frame that a packet arrives in.
fn frame_head(packet: &[u8]) -> [u8; FRAME_HEAD] {
    let mut head = [0; FRAME_HEAD];
    head[..6].copy_from_slice(&WIRE_ADDRESS);
    head[6..12].copy_from_slice(&OTHER_ADDRESS);
    let protocol: u16 = if packet.first().is_some_and(|byte| byte >> 4 == 6) { 0x86dd } else { 0x0800 };
    head[12..].copy_from_slice(&protocol.to_be_bytes());
    head
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

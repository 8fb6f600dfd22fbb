//! Frames out by a device past its disciplines and filters, many at a time (AF_PACKET).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::offload::Offload;

const SOL_PACKET: i32 = 263;
/// Each frame says in front what is unfinished of it.
const PACKET_VNET_HDR: i32 = 15;
/// Straight to the driver.
const PACKET_QDISC_BYPASS: i32 = 20;
const SOL_SOCKET: i32 = 1;
const SO_MARK: i32 = 36;
const SO_SNDBUFFORCE: i32 = 32;
const MSG_DONTWAIT: i32 = 0x40;
const AF_PACKET: u16 = 17;
/// The most frames of one call.
const BATCH: usize = 32;
/// Octets of frames that may be on their way to the driver.
const ROOM: i32 = 16 << 20;

/// `sockaddr_ll`
#[repr(C)]
#[derive(Clone, Copy)]
struct Address {
    family: u16,
    protocol: u16,
    index: i32,
    hatype: u16,
    pkttype: u8,
    halen: u8,
    addr: [u8; 8],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Piece {
    base: *const u8,
    len: usize,
}

/// `mmsghdr`
#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    name: *const Address,
    name_len: u32,
    pieces: *const Piece,
    pieces_len: usize,
    control: *const Control,
    control_len: usize,
    flags: i32,
    /// `msghdr` ends on a multiple of eight octets.
    padding: u32,
    sent: u32,
}

/// A mark that goes with one frame (`cmsghdr` and its value).
#[repr(C)]
#[derive(Clone, Copy)]
struct Control {
    len: usize,
    level: i32,
    kind: i32,
    mark: u32,
    padding: u32,
}

unsafe extern "C" {
    /// As POSIX has it.
    fn setsockopt(socket: i32, level: i32, name: i32, value: *const i32, octets: u32) -> i32;
    /// As POSIX has it.
    fn bind(socket: i32, address: *const Address, octets: u32) -> i32;
    /// As Linux has it.
    fn sendmmsg(socket: i32, messages: *mut Message, count: u32, flags: i32) -> i32;
}

/// A frame that is to go.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// What is unfinished of it.
    pub offload: Offload,
    /// Its octets, in up to three pieces.
    pub pieces: [&'a [u8]; 3],
    /// The mark it goes with.
    pub mark: u32,
    /// The protocol (EtherType), where there is no link header to tell it; 0 otherwise.
    pub protocol: u16,
}

/// A way out by one device.
#[derive(Debug)]
pub struct Sender {
    socket: OwnedFd,
    device: u32,
}

impl Sender {
    /// Opens the way. With `bypass` past the device's disciplines and filters; without, like anybody's frames.
    ///
    /// # Errors
    /// What the kernel says; it needs CAP_NET_RAW.
    pub fn open(device: u32, bypass: bool) -> io::Result<Sender> {
        let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        set(&socket, SOL_PACKET, PACKET_VNET_HDR, 1)?;
        if bypass {
            set(&socket, SOL_PACKET, PACKET_QDISC_BYPASS, 1)?;
        }
        // Without CAP_NET_ADMIN the room stays what it is for everybody.
        let _ = set(&socket, SOL_SOCKET, SO_SNDBUFFORCE, ROOM);
        let address = address(device, 0);
        // SAFETY: the kernel reads one `sockaddr_ll`, which lives until the call returns.
        let result = unsafe { bind(socket.as_raw_fd(), &raw const address, size_of::<Address>() as u32) };
        if result == 0 { Ok(Sender { socket, device }) } else { Err(io::Error::last_os_error()) }
    }

    /// Sends frames; `went` is told of each in turn whether it went (true), or the device had no room.
    ///
    /// # Errors
    /// The device is gone or down. Frames that `went` was not told of have not gone.
    pub fn send<'a>(&self, frames: &mut dyn Iterator<Item = Frame<'a>>, went: &mut dyn FnMut(bool)) -> io::Result<()> {
        let mut batch: [Option<Frame<'a>>; BATCH] = [None; BATCH];
        loop {
            let mut count = 0;
            while count < BATCH {
                let Some(frame) = frames.next() else { break };
                batch[count] = Some(frame);
                count += 1;
            }
            if count == 0 {
                return Ok(());
            }
            self.send_batch(&batch[..count], went)?;
        }
    }

    fn send_batch(&self, frames: &[Option<Frame<'_>>], went: &mut dyn FnMut(bool)) -> io::Result<()> {
        let nothing = Piece { base: ptr::null(), len: 0 };
        let mut pieces = [[nothing; 4]; BATCH];
        let mut controls = [Control { len: 20, level: SOL_SOCKET, kind: SO_MARK, mark: 0, padding: 0 }; BATCH];
        let mut addresses = [address(self.device, 0); BATCH];
        let none = Message {
            name: ptr::null(),
            name_len: 0,
            pieces: ptr::null(),
            pieces_len: 4,
            control: ptr::null(),
            control_len: 0,
            flags: 0,
            padding: 0,
            sent: 0,
        };
        let mut messages = [none; BATCH];
        for (at, frame) in frames.iter().flatten().enumerate() {
            let [first, second, third] = frame.pieces;
            pieces[at] = [&frame.offload.0[..], first, second, third]
                .map(|octets| Piece { base: octets.as_ptr(), len: octets.len() });
            messages[at].pieces = pieces[at].as_ptr();
            if frame.mark != 0 {
                controls[at].mark = frame.mark;
                messages[at].control = &raw const controls[at];
                messages[at].control_len = size_of::<Control>();
            }
            if frame.protocol != 0 {
                addresses[at].protocol = frame.protocol.to_be();
                messages[at].name = &raw const addresses[at];
                messages[at].name_len = size_of::<Address>() as u32;
            }
        }
        let mut rest = &mut messages[..frames.len()];
        while !rest.is_empty() {
            // SAFETY: every message points to its pieces, control and address, which are arrays of this function, and the pieces to octets that
            // `frames` borrows; all live until the call returns, and the kernel only reads them.
            let sent = unsafe { sendmmsg(self.socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as u32, MSG_DONTWAIT) };
            let done = usize::try_from(sent).unwrap_or(0);
            (0..done).for_each(|_| went(true));
            if done == 0 {
                no_room(io::Error::last_os_error())?;
                went(false);
            }
            rest = &mut rest[done.max(1)..];
        }
        Ok(())
    }
}

/// Whether a frame did not go for want of room, or because the driver does not take such a frame; anything else is an error.
fn no_room(error: io::Error) -> io::Result<()> {
    match Errno::from_io_error(&error) {
        Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR | Errno::INVAL | Errno::MSGSIZE) => Ok(()),
        _ => Err(error),
    }
}

fn address(device: u32, protocol: u16) -> Address {
    let index = i32::try_from(device).unwrap_or(0);
    Address { family: AF_PACKET, protocol, index, hatype: 0, pkttype: 0, halen: 0, addr: [0; 8] }
}

fn set(socket: &OwnedFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the kernel reads the four octets of `value`, which lives until the call returns.
    let result = unsafe { setsockopt(socket.as_raw_fd(), level, name, &raw const value, 4) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

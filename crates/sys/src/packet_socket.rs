//! Frames out by a device past its qdiscs and filters, many at a time (AF_PACKET).

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};

use libc::sockaddr_ll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::control::Number;
use crate::messages::{self, OutMessage};
use crate::offload::Offload;
use crate::sockopt;

/// The most frames of one call.
const BATCH: usize = 32;
/// Bytes of frames that may be on their way to the driver.
const ROOM: usize = 16 << 20;

// `sockaddr_ll` is the same on every Linux.
const _: () = assert!(size_of::<sockaddr_ll>() == 20 && std::mem::offset_of!(sockaddr_ll, sll_ifindex) == 4);

/// A frame that is to go.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingFrame<'a> {
    /// What is unfinished of it.
    pub offload: Offload,
    /// Its bytes, in up to three pieces.
    pub pieces: [&'a [u8]; 3],
    /// The mark it goes with.
    pub mark: u32,
    /// The protocol (EtherType), where there is no link header with it; 0 otherwise.
    pub protocol: u16,
}

/// A way out by one device.
#[derive(Debug)]
pub struct Sender {
    socket: OwnedFd,
    device: u32,
}

impl Sender {
    /// Opens the socket. With `bypass` frames skip the device's qdiscs and filters; without, they pass them
    /// as any frame.
    ///
    /// # Errors
    /// What the kernel reports; it needs CAP_NET_RAW.
    pub fn open(device: u32, bypass: bool) -> io::Result<Sender> {
        let socket =
            rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        // Each frame begins with the description of its offloads.
        sockopt::set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        if bypass {
            // Straight to the driver.
            sockopt::set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        }
        // Without CAP_NET_ADMIN it is as much as any user may have.
        let _ = sockopt::send_buffer(&socket, ROOM);
        let address = address(device, 0);
        let (at, length) = ((&raw const address).cast(), size_of::<sockaddr_ll>() as libc::socklen_t);
        // SAFETY: the kernel reads one `sockaddr_ll`, which lives until the call returns.
        let result = unsafe { libc::bind(socket.as_raw_fd(), at, length) };
        if result == 0 { Ok(Sender { socket, device }) } else { Err(io::Error::last_os_error()) }
    }

    /// Sends frames; `went` is called for each in turn: true if it was sent, false if the device had no
    /// space.
    ///
    /// # Errors
    /// The device is gone or down. Frames without a call of `went` were not sent.
    pub fn send<'a>(
        &self,
        frames: &mut dyn Iterator<Item = OutgoingFrame<'a>>,
        went: &mut dyn FnMut(bool),
    ) -> io::Result<()> {
        let mut batch: [Option<OutgoingFrame<'a>>; BATCH] = [None; BATCH];
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

    fn send_batch(&self, frames: &[Option<OutgoingFrame<'_>>], went: &mut dyn FnMut(bool)) -> io::Result<()> {
        let mut pieces = [[IoSlice::new(&[]); 4]; BATCH];
        let mut controls = [Number::new(libc::SOL_SOCKET, libc::SO_MARK, 0); BATCH];
        let mut addresses = [address(self.device, 0); BATCH];
        for (at, frame) in frames.iter().flatten().enumerate() {
            let [first, second, third] = frame.pieces;
            pieces[at] = [&frame.offload.0[..], first, second, third].map(IoSlice::new);
            controls[at] = Number::new(libc::SOL_SOCKET, libc::SO_MARK, frame.mark);
            addresses[at].sll_protocol = frame.protocol.to_be();
        }
        let mut messages = [OutMessage::new(&[]); BATCH];
        for (at, frame) in frames.iter().flatten().enumerate() {
            messages[at] = OutMessage::new(&pieces[at]);
            if frame.mark != 0 {
                messages[at] = messages[at].with(&controls[at]);
            }
            if frame.protocol != 0 {
                messages[at] = messages[at].by(&addresses[at]);
            }
        }
        let mut rest = &mut messages[..frames.len()];
        while !rest.is_empty() {
            let done = match messages::send(&self.socket, rest) {
                Ok(done) => done,
                Err(error) => {
                    no_room(error)?;
                    went(false);
                    0
                }
            };
            (0..done).for_each(|_| went(true));
            rest = &mut rest[done.max(1)..];
        }
        Ok(())
    }
}

/// Whether a frame did not go for lack of space, or because the driver does not take such a frame; anything
/// else is an error.
fn no_room(error: io::Error) -> io::Result<()> {
    match Errno::from_io_error(&error) {
        Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR | Errno::INVAL | Errno::MSGSIZE) => {
            Ok(())
        }
        _ => Err(error),
    }
}

fn address(device: u32, protocol: u16) -> sockaddr_ll {
    sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::sa_family_t,
        sll_protocol: protocol,
        sll_ifindex: i32::try_from(device).unwrap_or(0),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

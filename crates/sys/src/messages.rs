//! Messages with an address and control data: sendmmsg(2), recvmmsg(2) and recvmsg(2) behind safe types.
//!
//! [`OutMessage`] and [`InMessage`] are `mmsghdr`s that borrow everything they point to, so a batch of them
//! can be handed to the kernel without a promise by the caller.

use std::io::{self, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use libc::{c_int, c_uint, c_void, mmsghdr};

use crate::address::Address;
use crate::control::{Buffer, Number};

/// The most messages of one call (`UIO_MAXIOV`).
const MAX_BATCH: usize = 1024;

// `IoSlice` and `IoSliceMut` are iovecs; a message is an `mmsghdr` and nothing else.
const _: () = assert!(size_of::<IoSlice<'_>>() == size_of::<libc::iovec>());
const _: () = assert!(size_of::<IoSliceMut<'_>>() == size_of::<libc::iovec>());
const _: () = assert!(size_of::<OutMessage<'_>>() == size_of::<mmsghdr>());
const _: () = assert!(size_of::<InMessage<'_>>() == size_of::<mmsghdr>());
// The kernel's `msghdr` has seven fields of a pointer's size, some narrower with padding; then comes the
// length.
const _: () = assert!(std::mem::offset_of!(mmsghdr, msg_len) == 7 * size_of::<usize>());

/// A message without address, pieces or control data.
fn empty() -> mmsghdr {
    // SAFETY: an `mmsghdr` holds numbers and raw pointers only; zero and null are values of those.
    unsafe { std::mem::zeroed() }
}

/// A message to be sent.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct OutMessage<'a>(mmsghdr, PhantomData<&'a [u8]>);

impl<'a> OutMessage<'a> {
    /// A message whose payload is the pieces in order.
    pub(crate) fn new(pieces: &'a [IoSlice<'a>]) -> OutMessage<'a> {
        let mut message = empty();
        // The kernel only reads through it. `as _`: the field is `size_t` in glibc, `int` in musl.
        message.msg_hdr.msg_iov = pieces.as_ptr().cast_mut().cast();
        message.msg_hdr.msg_iovlen = pieces.len() as _;
        OutMessage(message, PhantomData)
    }

    /// With a destination address.
    pub(crate) fn to(mut self, address: &'a Address) -> OutMessage<'a> {
        self.0.msg_hdr.msg_name = ptr::from_ref(address.bytes()).cast_mut().cast();
        self.0.msg_hdr.msg_namelen = address.len();
        self
    }

    /// With the device to send by.
    pub(crate) fn by(mut self, device: &'a libc::sockaddr_ll) -> OutMessage<'a> {
        self.0.msg_hdr.msg_name = ptr::from_ref(device).cast_mut().cast();
        self.0.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        self
    }

    /// With a number as control data.
    pub(crate) fn with(mut self, control: &'a Number) -> OutMessage<'a> {
        self.0.msg_hdr.msg_control = ptr::from_ref(control).cast_mut().cast();
        self.0.msg_hdr.msg_controllen = size_of::<Number>() as _;
        self
    }
}

/// Sends messages without waiting; returns how many were sent, in order, at least one.
///
/// # Errors
/// What sendmmsg(2) reports of the first message.
pub(crate) fn send(socket: &impl AsFd, messages: &mut [OutMessage<'_>]) -> io::Result<usize> {
    let (first, count) = (messages.as_mut_ptr().cast::<mmsghdr>(), messages.len().min(MAX_BATCH) as c_uint);
    // SAFETY: `first` points to at least `count` `mmsghdr`s (asserted above), whose addresses, pieces and
    // control data are borrowed for as long as `messages` is; the kernel reads those, and writes the lengths
    // in the `mmsghdr`s.
    let sent = unsafe { libc::sendmmsg(socket.as_fd().as_raw_fd(), first, count, libc::MSG_DONTWAIT as _) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Where a message is received.
#[repr(transparent)]
pub(crate) struct InMessage<'a>(mmsghdr, PhantomData<&'a mut [u8]>);

impl<'a> InMessage<'a> {
    /// Space for a message, which fills the pieces in order.
    pub(crate) fn new(pieces: &'a mut [IoSliceMut<'a>]) -> InMessage<'a> {
        let mut message = empty();
        message.msg_hdr.msg_iov = pieces.as_mut_ptr().cast();
        message.msg_hdr.msg_iovlen = pieces.len() as _;
        InMessage(message, PhantomData)
    }

    /// With space for the sender's address.
    pub(crate) fn from(mut self, address: &'a mut Address) -> InMessage<'a> {
        let bytes = address.bytes_mut();
        self.0.msg_hdr.msg_name = bytes.as_mut_ptr().cast::<c_void>();
        self.0.msg_hdr.msg_namelen = bytes.len() as libc::socklen_t;
        self
    }

    /// With space for control data.
    pub(crate) fn with<const N: usize>(mut self, control: &'a mut Buffer<N>) -> InMessage<'a> {
        self.0.msg_hdr.msg_control = control.0.as_mut_ptr().cast::<c_void>();
        self.0.msg_hdr.msg_controllen = N as _;
        self
    }

    /// Bytes received.
    pub(crate) fn len(&self) -> usize {
        self.0.msg_len as usize
    }

    /// Bytes of control data received.
    pub(crate) fn control_len(&self) -> usize {
        #[allow(clippy::unnecessary_cast, reason = "`size_t` in glibc, `socklen_t` in musl")]
        {
            self.0.msg_hdr.msg_controllen as usize
        }
    }
}

/// Receives messages without waiting; returns how many were received.
///
/// # Errors
/// What recvmmsg(2) reports before the first message.
pub(crate) fn receive(socket: &impl AsFd, messages: &mut [InMessage<'_>]) -> io::Result<usize> {
    let (first, count) = (messages.as_mut_ptr().cast::<mmsghdr>(), messages.len().min(MAX_BATCH) as c_uint);
    let (fd, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT as _);
    // SAFETY: `first` points to at least `count` `mmsghdr`s (asserted above), whose room is borrowed mutably
    // for as long as
    // `messages` is, with lengths as given; there is no time limit to point to.
    let received = unsafe { libc::recvmmsg(fd, first, count, flags, ptr::null_mut()) };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// Receives one message without waiting; returns its length. `flags` as for recvmsg(2).
///
/// # Errors
/// What recvmsg(2) reports.
pub(crate) fn receive_one(
    socket: &impl AsFd,
    message: &mut InMessage<'_>,
    flags: c_int,
) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | flags;
    // SAFETY: the header's room is borrowed mutably for as long as `message` is, with lengths as given.
    let received = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message.0.msg_hdr, flags) };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

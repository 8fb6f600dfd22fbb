//! Socket options that `rustix` has no function for. Every setsockopt(2) and getsockopt(2) of this crate is
//! here.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_void, socklen_t};
use rustix::net::sockopt;

/// Sets an option whose value is an `int`.
///
/// # Errors
/// What setsockopt(2) reports.
pub(crate) fn set(socket: &impl AsFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    set_words(socket, level, name, &[value])
}

/// Sets an option whose value is a structure of words of 32 bits.
///
/// # Errors
/// What setsockopt(2) reports.
pub(crate) fn set_words(socket: &impl AsFd, level: c_int, name: c_int, words: &[c_int]) -> io::Result<()> {
    let length = socklen_t::try_from(size_of_val(words)).map_err(io::Error::other)?;
    let value = words.as_ptr().cast::<c_void>();
    // SAFETY: `value` points to `length` readable bytes, borrowed until the call returns; the kernel only
    // reads them.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, value, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option into `into`; returns how many bytes the kernel wrote.
///
/// # Errors
/// What getsockopt(2) reports.
pub(crate) fn get(socket: &impl AsFd, level: c_int, name: c_int, into: &mut [u8]) -> io::Result<usize> {
    let mut length = socklen_t::try_from(into.len()).map_err(io::Error::other)?;
    let value = into.as_mut_ptr().cast::<c_void>();
    // SAFETY: `value` points to `length` writable bytes, borrowed until the call returns; the kernel writes
    // no more than that, and then stores how many it wrote in `length`, which is ours too.
    let result = unsafe { libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, value, &raw mut length) };
    if result == 0 { Ok((length as usize).min(into.len())) } else { Err(io::Error::last_os_error()) }
}

/// Sets the size of a socket's receive buffer in bytes; beyond `net.core.rmem_max` only with `CAP_NET_ADMIN`.
///
/// # Errors
/// What setsockopt(2) reports.
pub(crate) fn receive_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    sockopt::set_socket_recv_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes))
        .map_err(Into::into)
}

/// Sets the size of a socket's send buffer in bytes; beyond `net.core.wmem_max` only with `CAP_NET_ADMIN`.
///
/// # Errors
/// What setsockopt(2) reports.
pub(crate) fn send_buffer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    sockopt::set_socket_send_buffer_size_force(socket, bytes)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, bytes))
        .map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn an_option_reads_back_as_it_was_set() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for value in [1, 0] {
            set(&socket, libc::SOL_SOCKET, libc::SO_BROADCAST, value).expect("an option of every socket");
            let mut read = [0xff_u8; 4];
            assert_eq!(
                get(&socket, libc::SOL_SOCKET, libc::SO_BROADCAST, &mut read).expect("it is readable"),
                4
            );
            assert_eq!(c_int::from_ne_bytes(read), value);
        }
    }

    #[test]
    fn a_short_buffer_is_not_overrun() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let mut read = [0xee_u8; 6];
        let length = get(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &mut read[..2]).expect("it is readable");
        assert_eq!((length, &read[2..]), (2, &[0xee; 4][..]));
    }

    #[test]
    fn an_unknown_option_is_an_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let error = set(&socket, libc::SOL_SOCKET, 0x7fff, 1).expect_err("no such option");
        assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT));
    }
}

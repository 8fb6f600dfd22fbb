//! Ways into the readers of what the kernel reports, for `crates/fuzz`: any bytes must be read without a
//! panic.

use crate::control::Buffer;

/// Bytes of control data.
const CONTROL: usize = 512;

/// What comes over a netlink socket: acknowledgements, links, packets of a queue.
pub fn netlink(bytes: &[u8]) {
    crate::netlink_socket::fuzz(bytes);
    crate::link_monitor::fuzz(bytes);
    crate::nfqueue::fuzz(bytes);
}

/// Control data of a received message, with addresses, times and errors in it.
pub fn control(bytes: &[u8]) {
    let mut buffer = Buffer::<CONTROL>::new();
    let length = bytes.len().min(CONTROL);
    buffer.0[..length].copy_from_slice(&bytes[..length]);
    for (_, _, value) in buffer.read(length) {
        crate::control::time_ns(value, 1);
        crate::control::time_ns(value, 3);
        crate::address::read(value);
        crate::stamped::fuzz(value);
    }
}

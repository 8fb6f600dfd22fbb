//! Features of devices, as `ethtool -k` shows them (SIOCETHTOOL).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};

const GET_STRINGS: u32 = 0x1b;
const GET_SET_INFO: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
/// The set of strings that names features.
const FEATURES: u32 = 4;
/// Bytes of a string.
const NAME: usize = 32;
/// Features that a kernel may have; today's have about 64.
const MOST: usize = 256;

/// The names of a device's features that are on.
///
/// # Errors
/// There is no such device, or it has no features.
pub fn features(device: &str) -> io::Result<Vec<String>> {
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let names = names(&socket, device)?;
    let blocks = names.len().div_ceil(32);
    // The command, how many blocks there is space for, and of each block four words: which can be had, were
    // requested, are on, never change.
    let mut words = vec![0_u32; 2 + 4 * blocks];
    (words[0], words[1]) = (GET_FEATURES, blocks as u32);
    ask(&socket, device, &mut words)?;
    let is_on = |n: usize| words.get(2 + 4 * (n / 32) + 2).is_some_and(|block| block & (1 << (n % 32)) != 0);
    Ok(names
        .into_iter()
        .enumerate()
        .filter(|(n, name)| is_on(*n) && !name.is_empty())
        .map(|(_, name)| name)
        .collect())
}

/// What the kernel calls features, in the order of their numbers.
fn names(socket: &OwnedFd, device: &str) -> io::Result<Vec<String>> {
    // The command, nothing, which sets are requested (64 bits), and how many strings the one has.
    let mut info = [GET_SET_INFO, 0, 0, 0, 0];
    let wanted = (1_u64 << FEATURES).to_ne_bytes();
    info[2] = u32::from_ne_bytes([wanted[0], wanted[1], wanted[2], wanted[3]]);
    info[3] = u32::from_ne_bytes([wanted[4], wanted[5], wanted[6], wanted[7]]);
    ask(socket, device, &mut info)?;
    let count = info[4] as usize;
    if info[2] == 0 && info[3] == 0 || count > MOST {
        return Err(io::Error::other("the kernel does not name its features"));
    }
    let mut words = vec![0_u32; 3 + count * NAME / 4];
    (words[0], words[1], words[2]) = (GET_STRINGS, FEATURES, count as u32);
    ask(socket, device, &mut words)?;
    let bytes: Vec<u8> = words[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = |bytes: &[u8]| {
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    };
    Ok(bytes.chunks(NAME).map(name).collect())
}

/// Sends one request; the kernel writes no more than the request has space for.
fn ask(socket: &OwnedFd, device: &str, words: &mut [u32]) -> io::Result<()> {
    let mut request = crate::ifreq::request(device)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the request holds a name that ends in zero, and points to `words`, which is borrowed mutably
    // until the call returns and begins with a request that gives its own size.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_features() {
        let known = features("lo").expect("every machine has it");
        assert!(known.iter().any(|name| name == "loopback"), "{known:?}");
        assert!(features("no-such-dev").is_err() && features("").is_err());
    }
}

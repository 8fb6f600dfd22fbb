//! Requests about a device by its name (`ifreq`, netdevice(7)).

use std::io;

use libc::{c_char, c_int, ifreq};

use crate::netlink::MAX_NAME;

const NAME: usize = libc::IFNAMSIZ;

// A name of 16 bytes, then a union that `ifmap` fills: two numbers of a pointer's size and eight bytes more.
const _: () = assert!(NAME == MAX_NAME + 1 && std::mem::offset_of!(ifreq, ifr_ifru) == NAME);
const _: () = assert!(size_of::<ifreq>() == NAME + 2 * size_of::<usize>() + 8);

/// A request about this device, with nothing else in it.
///
/// # Errors
/// The name is empty, longer than a device's can be, or holds a zero.
pub(crate) fn request(name: &str) -> io::Result<ifreq> {
    if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{name}` cannot be the name of a device"),
        ));
    }
    // SAFETY: an `ifreq` holds numbers and raw pointers only; zero and null are values of those.
    let mut request: ifreq = unsafe { std::mem::zeroed() };
    for (to, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = byte as c_char;
    }
    Ok(request)
}

/// A request about this device with flags.
///
/// # Errors
/// As for [`request`].
pub(crate) fn with_flags(name: &str, flags: c_int) -> io::Result<ifreq> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    Ok(request)
}

/// The name in a request, up to its closing zero.
pub(crate) fn name(request: &ifreq) -> String {
    let bytes: Vec<u8> =
        request.ifr_name.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back_and_one_too_long_is_refused() {
        for whole in ["lo", "fifteen-letters"] {
            assert_eq!(name(&request(whole).expect(whole)), whole);
        }
        for bad in ["", "sixteen-letters-", "a\0b"] {
            assert_eq!(request(bad).expect_err(bad).kind(), io::ErrorKind::InvalidInput);
        }
    }
}

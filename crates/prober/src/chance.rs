//! Unpredictable numbers: the kernel's random source.

use std::fs::File;
use std::io::{self, Read};

/// So many random bytes.
///
/// # Errors
/// The kernel's source of them is not there.
pub(crate) fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

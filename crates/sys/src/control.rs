//! Control data of messages (cmsg(3)): what is beside a packet's bytes, in the kernel's own layout.

use libc::{c_int, cmsghdr};

/// Bytes of `cmsghdr`; the value follows at once, as the header is a multiple of the alignment.
const HEAD: usize = size_of::<cmsghdr>();
/// Headers begin at a multiple of this.
const ALIGN: usize = size_of::<usize>();
const LEVEL: usize = ALIGN;
const KIND: usize = ALIGN + 4;

// The kernel's header: a length of `size_t`, then level and type. (musl's length is narrower, with padding
// beside it.)
const _: () = assert!(HEAD == ALIGN + 8 && HEAD.is_multiple_of(4));
const _: () = assert!(std::mem::offset_of!(cmsghdr, cmsg_level) == LEVEL);
const _: () = assert!(std::mem::offset_of!(cmsghdr, cmsg_type) == KIND);
// SAFETY: CMSG_SPACE and CMSG_LEN compute with their argument and touch no memory.
const _: () = assert!(unsafe { libc::CMSG_SPACE(4) } as usize == size_of::<Number>());
// SAFETY: as above.
const _: () = assert!(unsafe { libc::CMSG_LEN(4) } as usize == HEAD + 4);

/// Control data of one number.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Number {
    len: usize,
    level: c_int,
    kind: c_int,
    value: u32,
    /// Fills the space of a whole control message on 64-bit machines; on 32-bit ones there is nothing to
    /// fill.
    padding: [u8; size_of::<usize>() - 4],
}

impl Number {
    /// Control data of this level and type.
    pub(crate) const fn new(level: c_int, kind: c_int, value: u32) -> Number {
        Number { len: HEAD + 4, level, kind, value, padding: [0; size_of::<usize>() - 4] }
    }
}

/// Space for control data, aligned as its headers are.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Buffer<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> Buffer<N> {
    /// Empty room.
    pub(crate) const fn new() -> Buffer<N> {
        Buffer([0; N])
    }

    /// Level, type and value of each control message in the first `length` bytes; what is cut short ends
    /// them.
    pub(crate) fn read(&self, length: usize) -> impl Iterator<Item = (c_int, c_int, &[u8])> {
        each(&self.0[..length.min(N)])
    }
}

fn each(mut bytes: &[u8]) -> impl Iterator<Item = (c_int, c_int, &[u8])> {
    std::iter::from_fn(move || {
        let word = |at: usize| Some(c_int::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let length = usize::from_ne_bytes(bytes.get(..ALIGN)?.try_into().ok()?);
        let found = (word(LEVEL)?, word(KIND)?, bytes.get(HEAD..length)?);
        bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some(found)
    })
}

/// Nanoseconds of the first of `count` times of the kernel (`timespec`, of 32 or 64 bits a field).
pub(crate) fn time_ns(value: &[u8], count: usize) -> Option<u64> {
    let fields = 2 * count;
    let number = |at: usize| match value.len() {
        length if length == fields * 8 => {
            Some(u64::from_ne_bytes(value.get(at * 8..at * 8 + 8)?.try_into().ok()?))
        }
        length if length == fields * 4 => {
            Some(u32::from_ne_bytes(value.get(at * 4..at * 4 + 4)?.try_into().ok()?).into())
        }
        _ => None,
    };
    let ns = number(0)?.checked_mul(1_000_000_000)?.checked_add(number(1)?)?;
    (ns > 0).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(level: c_int, kind: c_int, value: &[u8]) -> Vec<u8> {
        let mut bytes = (HEAD + value.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        bytes
    }

    #[test]
    fn control_messages_are_read_one_after_the_other() {
        let mut bytes = control(1, 2, &[9]);
        bytes.extend(control(3, 4, &[7; 16]));
        let read: Vec<_> = each(&bytes).collect();
        assert_eq!(read, [(1, 2, &[9][..]), (3, 4, &[7; 16][..])]);
    }

    #[test]
    fn lengths_that_lie_end_the_list() {
        let whole = control(1, 2, &[9; 8]);
        for cut in 0..whole.len() {
            assert_eq!(each(&whole[..cut]).count(), 0, "{cut} bytes");
        }
        for length in [0, 1, HEAD - 1, usize::MAX, usize::MAX - ALIGN] {
            let mut bytes = whole.clone();
            bytes[..ALIGN].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(each(&bytes).count(), 0, "a length of {length}");
        }
    }

    #[test]
    fn times_of_either_width_are_read() {
        let wide: Vec<u8> = [2_u64, 5].iter().flat_map(|field| field.to_ne_bytes()).collect();
        let narrow: Vec<u8> = [2_u32, 5, 0, 0, 0, 0].iter().flat_map(|field| field.to_ne_bytes()).collect();
        assert_eq!((time_ns(&wide, 1), time_ns(&narrow, 3)), (Some(2_000_000_005), Some(2_000_000_005)));
        assert_eq!((time_ns(&[], 1), time_ns(&wide[..9], 1), time_ns(&[0xff; 16], 1)), (None, None, None));
    }
}

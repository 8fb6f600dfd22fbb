//! Bytes that come piece by piece, made visible: characters may be cut between two pieces.

use crate::visible::lines;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

/// The longest character of UTF-8, in bytes.
const MAX_CHAR: usize = 4;

/// Makes a stream of foreign bytes visible: what [`lines`] does to text, and bytes that are not UTF-8 as
/// `\xff`.
///
/// Holds back at most three bytes, the begin of a character that the next piece may complete.
#[derive(Debug, Default)]
pub struct Filter {
    begun: Vec<u8>,
}

impl Filter {
    /// A filter that has seen nothing yet.
    pub fn new() -> Filter {
        Filter::default()
    }

    /// The next piece of the stream, as text that is safe to print.
    pub fn push(&mut self, piece: &[u8]) -> String {
        let mut bytes = core::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let mut out = String::new();
        let mut rest = bytes.as_slice();
        loop {
            let (good, after) = match core::str::from_utf8(rest) {
                Ok(good) => (good, None),
                Err(error) => {
                    let (good, after) = rest.split_at(error.valid_up_to());
                    // Valid up to here, by the error.
                    (core::str::from_utf8(good).unwrap_or_default(), Some((after, error.error_len())))
                }
            };
            let _ = write!(out, "{}", lines(good));
            match after {
                None => return out,
                Some((begun, None)) => {
                    debug_assert!(begun.len() < MAX_CHAR);
                    self.begun = begun.to_vec();
                    return out;
                }
                Some((bad, Some(length))) => {
                    write_bytes(&bad[..length], &mut out);
                    rest = &bad[length..];
                }
            }
        }
    }

    /// The stream is over: what was held back.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        write_bytes(&core::mem::take(&mut self.begun), &mut out);
        out
    }

    /// Bytes that are there whole.
    pub fn whole(bytes: &[u8]) -> String {
        let mut filter = Filter::new();
        let mut out = filter.push(bytes);
        out.push_str(&filter.finish());
        out
    }
}

fn write_bytes(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_stream_is_cut_makes_no_difference() {
        let stream = "a\x1b[2Jb\u{202e}é網\u{1f600}\n"
            .as_bytes()
            .iter()
            .copied()
            .chain([0xff, 0xc3, 0x28, 0xe2, 0x80]);
        let stream: Vec<u8> = stream.collect();
        let whole = Filter::whole(&stream);
        assert_eq!(whole, "a\\x1b[2Jb\\u{202e}é網\u{1f600}\n\\xff\\xc3(\\xe2\\x80");
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let mut filter = Filter::new();
                let mut out = String::new();
                for piece in [&stream[..first], &stream[first..second], &stream[second..]] {
                    out.push_str(&filter.push(piece));
                }
                out.push_str(&filter.finish());
                assert_eq!(out, whole, "cut at {first} and {second}");
            }
        }
    }
}

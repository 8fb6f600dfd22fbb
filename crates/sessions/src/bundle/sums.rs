//! Digests of files, in the form of `sha256sum` (FIPS 180-4).

use super::names;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read};

/// A SHA-256 in hexadecimal digits.
pub(super) type Hex = String;

/// The digest of bytes.
pub(super) fn of_bytes(bytes: &[u8]) -> Hex {
    hex(&Sha256::digest(bytes))
}

/// The digest of what is read to its end, and its length.
///
/// # Errors
/// It cannot be read.
pub(super) fn of_reader(mut from: impl Read) -> io::Result<(Hex, u64)> {
    const PIECE: usize = 1 << 20;
    let (mut digest, mut length, mut piece) = (Sha256::new(), 0_u64, vec![0; PIECE]);
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok((hex(&digest.finalize()), length)),
            Ok(count) => {
                digest.update(&piece[..count]);
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> Hex {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The list of `sha256sum`, sorted by name.
pub(super) fn written(sums: &BTreeMap<String, Hex>) -> String {
    sums.iter().map(|(name, hex)| format!("{hex}  {name}\n")).collect()
}

/// Reads such a list.
///
/// # Errors
/// The line that is none, and why.
pub(super) fn read(text: &str) -> Result<BTreeMap<String, Hex>, String> {
    let mut sums = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |why: &str| format!("line {number}: {why}");
        let (hex, name) = line.split_once("  ").ok_or_else(|| wrong("no digest, two blanks and a name"))?;
        let is_hex = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hex {
            return Err(wrong("no SHA-256 in 64 hexadecimal digits"));
        }
        let name = names::checked(name).map_err(|why| wrong(&why))?;
        if sums.insert(name.to_owned(), hex.to_owned()).is_some() {
            return Err(wrong(&format!("`{name}` is listed twice")));
        }
    }
    if sums.is_empty() { Err("it lists nothing".into()) } else { Ok(sums) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digests of nothing and of `abc`: FIPS 180-4's examples.
    #[test]
    fn digests_are_those_of_the_standard() {
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((of_bytes(b""), of_bytes(b"abc")), (nothing.to_owned(), abc.to_owned()));
        assert_eq!(of_reader(&b"abc"[..]).ok(), Some((abc.to_owned(), 3)));
    }

    #[test]
    fn lists_are_read_as_they_are_written() {
        let sums: BTreeMap<String, Hex> =
            ["inputs/a b.toml", "README.md"].map(|name| (name.to_owned(), of_bytes(name.as_bytes()))).into();
        assert_eq!(read(&written(&sums)), Ok(sums.clone()));
        let hex = of_bytes(b"x");
        for (text, why) in [
            (String::new(), "lists nothing"),
            ("abc  x\n".into(), "line 1: no SHA-256"),
            (format!("{hex} x\n"), "line 1: no digest"),
            (format!("{hex}  x\n{hex}  ../x\n"), "line 2: `../x` is no path below"),
            (format!("{hex}  x\n{hex}  x\n"), "line 2: `x` is listed twice"),
            (format!("\\{hex}  x\n"), "line 1: no SHA-256"),
        ] {
            let wrong = read(&text).expect_err(&text);
            assert!(wrong.contains(why), "{wrong}");
        }
    }
}

//! Keys of a terminal in raw mode, read from the bytes that it sends (ECMA-48; xterm's control sequences).

/// A key that `top` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A letter or another character.
    Char(char),
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

/// The longest control sequence that is waited for; what follows a longer one is read as characters.
const LONGEST: usize = 16;

/// Reads keys from bytes, across reads.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    /// A sequence that has begun and not ended.
    unfinished: Vec<u8>,
}

impl KeyReader {
    /// The keys that are complete with these bytes.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().filter_map(|&byte| self.step(byte)).collect()
    }

    fn step(&mut self, byte: u8) -> Option<Key> {
        let begun = self.unfinished.len();
        match (begun, byte) {
            (_, 0x1b) => {
                self.unfinished = vec![byte];
                None
            }
            (0, _) => byte.is_ascii().then_some(Key::Char(byte.into())),
            // Alt and a key: the key.
            (1, byte) if !matches!(byte, b'[' | b'O') => {
                self.unfinished.clear();
                byte.is_ascii().then_some(Key::Char(byte.into()))
            }
            (1, _) | (_, 0x20..0x40) if begun < LONGEST => {
                self.unfinished.push(byte);
                None
            }
            _ => {
                let sequence = std::mem::take(&mut self.unfinished);
                key(&sequence[2..], byte)
            }
        }
    }
}

/// The key of a control sequence with these parameters and this last byte.
fn key(parameters: &[u8], last: u8) -> Option<Key> {
    match (parameters, last) {
        (_, b'A') => Some(Key::Up),
        (_, b'B') => Some(Key::Down),
        (_, b'H') | (b"1" | b"7", b'~') => Some(Key::Home),
        (_, b'F') | (b"4" | b"8", b'~') => Some(Key::End),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_control_sequences() {
        let keys = KeyReader::default().read(b"q\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[1;5Ai");
        let expected = [
            Key::Char('q'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::PageDown,
            Key::Home,
            Key::End,
            Key::Up,
            Key::Char('i'),
        ];
        assert_eq!(keys, expected);
    }

    /// F1 is `ESC O P`, F5 `ESC [ 15 ~`: neither their letters nor their digits are keys.
    #[test]
    fn other_sequences_are_passed_over_whole() {
        assert_eq!(KeyReader::default().read(b"\x1bOq\x1b[15~\x1b[200~\xc3\xa4"), []);
        assert_eq!(KeyReader::default().read(b"\x1bq"), [Key::Char('q')]);
    }

    #[test]
    fn a_sequence_may_come_in_pieces() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(b"\x1b"), []);
        assert_eq!(reader.read(b"["), []);
        assert_eq!(reader.read(b"Bq"), [Key::Down, Key::Char('q')]);
    }

    #[test]
    fn endless_sequences_end() {
        let mut reader = KeyReader::default();
        let keys = reader.read(&[b"\x1b[".as_slice(), &[b'1'; 40], b"q"].concat());
        assert_eq!(keys.last(), Some(&Key::Char('q')));
        assert!(reader.unfinished.is_empty());
    }
}

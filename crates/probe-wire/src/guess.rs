//! How hard a token is to guess, at most: what is left of it when all that follows from what precedes is
//! left out.
//!
//! Whether a text is random cannot be seen. What can be seen is what chance would not make: a character that
//! continues with a repeat or a sequence (of the alphabet, of digits, of a keyboard's row; also of every
//! second, third or fourth character), and three characters or more that occurred before. The rest counts as
//! if drawn at random from the characters that occur. Words of a language are not known here, so a long
//! sentence counts for more than it is worth.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Bytes that are looked at; what follows counts nothing.
const EXAMINED: usize = 1024;
/// Characters that was there before count as a copy from so many on; a copy counts as one character.
const COPY: usize = 3;
/// The longest step of a sequence, in characters.
const STEP: usize = 4;
/// Characters of a sequence from which on the next one follows: of neighbours, and of those farther apart,
/// which chance makes more often.
const NEIGHBOURS: usize = 2;
const APART: usize = 3;
/// Sequences that people type, round and round.
const ORDERS: [&[u8]; 6] =
    [b"abcdefghijklmnopqrstuvwxyza", b"01234567890", b"qwertyuiop", b"qwertzuiop", b"asdfghjkl", b"zxcvbnm"];
/// The power of the number of characters whose whole logarithm is taken, for fractions of a bit: 256 to the
/// power of it is no overflow.
const FRACTIONS: u32 = 15;

/// Bits that a text could hold at most, whole.
pub(crate) fn bits(text: &str) -> usize {
    let text = &text.as_bytes()[..text.len().min(EXAMINED)];
    let different = text.iter().collect::<BTreeSet<_>>().len();
    let each = (different as u128).checked_pow(FRACTIONS).and_then(u128::checked_ilog2).unwrap_or(0) as usize;
    surprises(text) * each / FRACTIONS as usize
}

/// Characters that do not follow from those before them.
fn surprises(text: &[u8]) -> usize {
    let text: Vec<u8> = text.iter().map(u8::to_ascii_lowercase).collect();
    let (mut at, mut count) = (0, 0);
    while at < text.len() {
        let copied = copied(&text, at);
        if copied >= COPY {
            count += 1;
            at += copied;
        } else {
            count += usize::from(!(1..=STEP).any(|step| goes_on(&text, at, step)));
            at += 1;
        }
    }
    count
}

/// How many characters from here on repeat earlier text.
fn copied(text: &[u8], at: usize) -> usize {
    let same =
        |from: usize| text[from..].iter().zip(&text[at..]).take_while(|(one, other)| one == other).count();
    (0..at).map(same).max().unwrap_or(0)
}

/// Does a character continue with what every `step`-th before it begins?
fn goes_on(text: &[u8], at: usize, step: usize) -> bool {
    let before = if step == 1 { NEIGHBOURS } else { APART };
    let relation = |back: usize| {
        let of = |steps: usize| at.checked_sub(steps * step).map(|at| text[at]);
        of(back + 1).zip(of(back)).map_or(0, |(one, next)| relations(one, next))
    };
    (0..before).map(relation).fold(u8::MAX, |all, one| all & one) != 0
}

/// How a character may follow another, a bit each: the same, up a sequence, down one.
fn relations(one: u8, next: u8) -> u8 {
    let leads =
        |one: u8, next: u8| ORDERS.iter().any(|order| order.windows(2).any(|pair| pair == [one, next]));
    u8::from(one == next) | u8::from(leads(one, next)) << 1 | u8::from(leads(next, one)) << 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_what_is_before_it_counts_nothing() {
        for (text, count) in [
            ("", 0),
            ("aaaaaaaa", 2),
            ("1234567890", 2),
            ("9876543210", 2),
            ("abcdefghijklmnopqrstuvwxyz", 2),
            ("xyzabc", 2),
            ("qwertyuiop", 2),
            ("ABcdEF", 2),
            // A sequence, and a copy of it.
            ("12345678901234567890", 3),
            // Two sequences, one within the other.
            ("a1b2c3d4e5f6", 6),
            ("kwv9kwv9kwv9", 5),
            ("fEJW3nXcZ0tq8pYkLr1vB2uMs9", 26),
        ] {
            assert_eq!(surprises(text.as_bytes()), count, "{text}");
        }
    }

    #[test]
    fn a_character_is_worth_the_bits_of_those_that_occur() {
        assert_eq!(bits("f0E9"), 8);
        assert_eq!(bits("aq"), 2);
        assert_eq!(bits("x"), 0);
        assert_eq!(bits("12345678901234567890123456789012"), 9, "as docs/measure.md says");
        // What is too long is cut, and takes no time.
        assert!(bits(&"0123456789abcdef".repeat(10_000)) < 200);
    }
}

//! A part of a long line, around a place in it.

use crate::visible::line;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The longest line that is shown whole, in characters, on the widest terminal and in files.
const WIDEST: usize = 162;
/// The fewest characters that are shown.
const NARROWEST: usize = 20;

/// What is shown of a line around a place, tabs as blanks and control characters as escapes, with the place's
/// columns in it. A line longer than `columns` characters is cut, with `…` where something is missing.
pub fn excerpt(text: &str, (from, to): (usize, usize), columns: usize) -> (String, usize, usize) {
    let letters: Vec<char> =
        text.trim_end().chars().map(|letter| if letter == '\t' { ' ' } else { letter }).collect();
    let columns = columns.clamp(NARROWEST, WIDEST);
    let (begin, end) = if letters.len() <= columns {
        (0, letters.len())
    } else {
        let room = columns - 2;
        let before = room.saturating_sub(to.saturating_sub(from)) / 2;
        let begin = from.saturating_sub(before).min(letters.len() - room);
        (begin, begin + room)
    };
    let visible = |part: &[char]| line(&part.iter().collect::<String>()).to_string();
    // Escapes are longer than the characters they replace, so columns are counted in the escaped text.
    let column = |at: usize| visible(&letters[begin..at.clamp(begin, end)]).chars().count();
    let shown = visible(&letters[begin..end]);
    if end - begin == letters.len() {
        // Words at the end of a line that has none there are underlined beyond it.
        let beyond = |at: usize| column(at) + at.saturating_sub(end);
        return (shown, beyond(from), beyond(to));
    }
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    let (front, back) = (mark(begin > 0), mark(end < letters.len()));
    let before = usize::from(begin > 0);
    (format!("{front}{shown}{back}"), column(from) + before, column(to) + before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underlines_are_below_escapes() {
        assert_eq!(excerpt("tc a\x1bb word", (5, 9), 80), ("tc a\\x1bb word".to_string(), 8, 12));
        assert_eq!(excerpt("a\tword", (2, 6), 80), ("a word".to_string(), 2, 6));
        assert_eq!(excerpt("ab", (2, 3), 80), ("ab".to_string(), 2, 3));
        let long = format!("{}\u{202e}word{}", "x".repeat(200), "y".repeat(200));
        let (shown, from, to) = excerpt(&long, (201, 205), usize::MAX);
        assert_eq!(shown.chars().skip(from).take(to - from).collect::<String>(), "word");
    }
    #[test]
    fn what_is_shown_fits() {
        let line = "tc filter add dev eth0 parent 1: u32 match ip dport 443 0xffff flowid 1:30";
        let rows = [
            ((0, 2), "tc filter add dev …"),
            ((3, 9), "tc filter add dev …"),
            ((50, 52), "… ip dport 443 0xff…"),
            ((70, 74), "…0xffff flowid 1:30"),
            ((10, 60), "…add dev eth0 paren…"),
            ((0, 0), "tc filter add dev …"),
        ];
        for (place, expected) in rows {
            let (shown, from, to) = excerpt(line, place, 20);
            assert_eq!(shown, expected, "{place:?}");
            assert!(shown.chars().count() <= 20 && from <= to && to <= 20, "{place:?} {from} {to}");
        }
        assert_eq!(excerpt(line, (0, 2), 74).0, line);
        assert_eq!(excerpt(line, (0, 2), 1), excerpt(line, (0, 2), 20));
    }
}

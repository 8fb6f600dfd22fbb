//! A part of a long line, around a place in it.

use crate::visible::line;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The longest line shown whole, in characters; of longer ones the part around the place is shown.
const WIDE: usize = 160;

/// The part of a line around a place, tabs as blanks and control characters as escapes, with the place's
/// columns in it.
pub fn excerpt(text: &str, from: usize, to: usize) -> (String, usize, usize) {
    let letters: Vec<char> =
        text.trim_end().chars().map(|letter| if letter == '\t' { ' ' } else { letter }).collect();
    let begin =
        if letters.len() <= WIDE { 0 } else { from.saturating_sub(WIDE / 2).min(letters.len() - WIDE) };
    let end = letters.len().min(begin + WIDE);
    let visible = |part: &[char]| line(&part.iter().collect::<String>()).to_string();
    // Escapes are longer than the characters they replace, so columns are counted in the escaped text.
    let column = |at: usize| visible(&letters[begin..at.clamp(begin, end)]).chars().count();
    let shown = visible(&letters[begin..end]);
    if letters.len() <= WIDE {
        // Words at the end of a line that has none there are underlined beyond it.
        let beyond = |at: usize| column(at) + at.saturating_sub(end);
        return (shown, beyond(from), beyond(to));
    }
    (format!("…{shown}…"), column(from) + 1, (column(to) + 1).min(shown.chars().count() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underlines_are_below_escapes() {
        assert_eq!(excerpt("tc a\x1bb word", 5, 9), ("tc a\\x1bb word".to_string(), 8, 12));
        assert_eq!(excerpt("a\tword", 2, 6), ("a word".to_string(), 2, 6));
        assert_eq!(excerpt("ab", 2, 3), ("ab".to_string(), 2, 3));
        let long = format!("{}\u{202e}word{}", "x".repeat(200), "y".repeat(200));
        let (shown, from, to) = excerpt(&long, 201, 205);
        assert_eq!(shown.chars().skip(from).take(to - from).collect::<String>(), "word");
    }
}

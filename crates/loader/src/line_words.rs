//! The words of a line, found at their places without a search through the line for each.

use std::collections::BTreeMap;

/// A line's words by their places: between blanks, quotes, commas, semicolons and braces.
pub(super) struct LineWords {
    letters: Vec<char>,
    /// The columns at which a word begins, ascending.
    begins: BTreeMap<String, Vec<usize>>,
}

/// Does it part words?
fn parts(letter: char) -> bool {
    letter.is_whitespace() || "\"';,{}".contains(letter)
}

impl LineWords {
    pub(super) fn of(line: &str) -> LineWords {
        let letters: Vec<char> = line.chars().collect();
        let mut begins: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut at = 0;
        for word in letters.split(|letter| parts(*letter)) {
            if !word.is_empty() {
                begins.entry(word.iter().collect()).or_default().push(at);
            }
            at += word.len() + 1;
        }
        LineWords { letters, begins }
    }

    /// The columns of the first place, from a column on, at which `wanted` is a separate word.
    pub(super) fn find(&self, wanted: &str, from: usize) -> Option<(usize, usize)> {
        // Words with separators inside begin at the place of their first part; words that begin with a
        // separator, anywhere.
        let first = wanted.split(parts).next()?;
        let length = wanted.chars().count();
        let is_here = |at: usize| {
            let end = at + length;
            let same = self.letters.get(at..end)?.iter().copied().eq(wanted.chars());
            let blank = |at: usize| self.letters.get(at).is_none_or(|letter| parts(*letter));
            (same && (at == 0 || blank(at - 1)) && blank(end)).then_some((at, end))
        };
        if wanted.is_empty() {
            return None;
        }
        if first.is_empty() {
            return (from..self.letters.len()).find_map(is_here);
        }
        let begins = self.begins.get(first)?;
        begins[begins.partition_point(|at| *at < from)..].iter().find_map(|at| is_here(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_where_it_is_separate() {
        let line = LineWords::of("tc filter add \"udp 1\", udp;{1:1} é udp 1, x");
        let find = |wanted: &str, from: usize| line.find(wanted, from);
        assert_eq!(find("udp", 0), Some((15, 18)));
        assert_eq!(find("udp", 16), Some((23, 26)));
        assert_eq!(find("udp 1", 0), Some((15, 20)));
        assert_eq!(find("udp 1", 16), Some((35, 40)));
        assert_eq!(find("1:1", 0), Some((28, 31)));
        assert_eq!(find("\"udp", 0), Some((14, 18)));
        for absent in ["", "fil", "dp", "1:", "udp 1, y", "none"] {
            assert_eq!(find(absent, 0), None, "{absent}");
        }
        assert_eq!(find("x", 99), None);
    }
}

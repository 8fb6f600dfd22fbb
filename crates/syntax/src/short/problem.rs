//! What is wrong in a short policy, and how its writer is shown it.

use crate::nft::Span;

/// Something in a short policy that is wrong, or that its writer should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place of the problem.
    pub span: Span,
    /// What, in a sentence without its full stop.
    pub what: String,
    /// What to write instead.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(span: Span, what: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem { span, what: what.into(), remedy: remedy.into() }
    }

    /// In the form of a compiler's complaints: the place, the text, a mark beneath, the remedy.
    pub fn tell(&self, file: &str, text: &str) -> String {
        let Span { line, from, to } = self.span;
        let whole = text.lines().nth(line.saturating_sub(1)).unwrap_or("");
        // Of a long line, the part around the place.
        let skipped = if whole.len() <= WIDE { 0 } else { from.saturating_sub(1 + WIDE / 2) };
        let (shown, more): (String, bool) = match whole.char_indices().nth(skipped + WIDE) {
            Some((end, _)) => (whole[..end].chars().skip(skipped).collect(), true),
            None => (whole.chars().skip(skipped).collect(), false),
        };
        let shown = format!("{}{shown}{}", if skipped > 0 { "…" } else { "" }, if more { "…" } else { "" });
        let column = from;
        // The ellipsis takes a column.
        let shift = |at: usize| at.saturating_sub(skipped) + usize::from(skipped > 0);
        let (from, to) = (shift(from), shift(to).min(WIDE + 2));
        let gap = " ".repeat(line.to_string().len());
        let before: String =
            shown.chars().take(from.saturating_sub(1)).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let mark = "^".repeat((to + 1).saturating_sub(from).max(1));
        let [what, remedy] = [&self.what, &self.remedy].map(|sentence| clipped(sentence));
        format!(
            "{file}:{line}:{column}: {what}\n  {line} | {shown}\n  {gap} | {before}{mark}\n  help: \
            {remedy}\n"
        )
    }
}

/// A sentence that may quote the file, at most so long that the place can still be seen.
fn clipped(sentence: &str) -> String {
    match sentence.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &sentence[..end]),
        None => sentence.to_owned(),
    }
}

/// The longest sentence, in characters.
const LONGEST: usize = 500;
/// The longest line shown whole, in characters.
const WIDE: usize = 160;

/// Words as a person would list them.
pub(crate) fn listed<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_of_the_file_is_cut() {
        let problem = Problem::new(Span { line: 1, from: 1, to: 9 }, "x".repeat(10_000), "leave it out");
        assert!(problem.tell("a", &"x".repeat(10_000)).chars().count() < 1500);
    }

    #[test]
    fn a_place_in_a_long_line_is_shown_with_what_is_around_it() {
        let problem =
            |from, to| Problem { span: Span { line: 1, from, to }, what: "w".into(), remedy: "r".into() };
        let text = problem(5, 6).tell("f", "abc déf\n");
        assert_eq!(text, "f:1:5: w\n  1 | abc déf\n    |     ^^\n  help: r\n");
        let long = format!("{}WORD{}", "x".repeat(500), "y".repeat(500));
        let text = problem(501, 504).tell("f", &long);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "f:1:501: w");
        let mark = lines[2].find('^').expect("is marked");
        let under: String = lines[1].chars().skip(mark).take(lines[2].matches('^').count()).collect();
        assert_eq!(under, "WORD");
        assert!(
            lines[1].chars().count() < WIDE + 10 && lines[1].ends_with("y…") && lines[1].contains("| …x"),
            "{text}"
        );
        // What begins before the end of the shown part is marked up to it.
        assert!(problem(501, 4000).tell("f", &long).lines().all(|line| line.chars().count() < WIDE + 10));
    }
}

//! Foreign text as text that a terminal only shows.

use alloc::string::String;
use core::fmt::{self, Display};

/// Foreign text of one line: control characters, newline and tab among them, and invisible characters as
/// escapes.
pub fn line(text: &str) -> Visible<'_> {
    Visible { text, breaks: false, form: Form::Text }
}

/// Foreign text of any number of lines: like [`line()`], but newline and tab stay.
pub fn lines(text: &str) -> Visible<'_> {
    Visible { text, breaks: true, form: Form::Text }
}

/// A document in JSON: characters that a terminal could take as commands become `\u001b`, which a JSON parser
/// reads as the same characters. In valid JSON they occur only inside strings.
pub fn json(text: &str) -> Visible<'_> {
    Visible { text, breaks: true, form: Form::Json }
}

/// A word as a shell takes it for one word: in single quotes, unless it is harmless without. With characters
/// that a terminal obeys, or that are invisible, as `$'…'` with escapes (POSIX.1-2024, Shell Command Language
/// 2.2.4).
///
/// ```
/// assert_eq!(tidegate_text::shell_word("eth0"), "eth0");
/// assert_eq!(tidegate_text::shell_word("it's"), r"'it'\''s'");
/// assert_eq!(tidegate_text::shell_word("two\nlines"), r"$'two\nlines'");
/// ```
pub fn shell_word(word: &str) -> String {
    shell_bytes(word.as_bytes())
}

/// The same of bytes that need not be UTF-8, such as a file's name.
pub fn shell_bytes(word: &[u8]) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    match core::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && text.chars().all(is_plain) => text.into(),
        Ok(text) if text.chars().all(is_visible) => alloc::format!("'{}'", text.replace('\'', r"'\''")),
        _ => with_escapes(word),
    }
}

/// `$'…'`: three octal digits are read alike by all shells that know this form.
fn with_escapes(word: &[u8]) -> String {
    let mut out = String::from("$'");
    let octal = |out: &mut String, bytes: &[u8]| {
        bytes.iter().for_each(|byte| *out += &alloc::format!("\\{byte:03o}"));
    };
    for chunk in word.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\'' => out += "\\'",
                '\\' => out += "\\\\",
                '\n' => out += "\\n",
                '\t' => out += "\\t",
                '\r' => out += "\\r",
                visible if is_visible(visible) => out.push(visible),
                hidden => octal(&mut out, hidden.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        octal(&mut out, chunk.invalid());
    }
    out + "'"
}

/// Text that displays control and invisible characters as escapes.
#[derive(Debug, Clone, Copy)]
pub struct Visible<'a> {
    text: &'a str,
    /// Newline and tab stay as they are.
    breaks: bool,
    form: Form,
}

/// How an escape is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `\x1b`, `\u{202e}`.
    Text,
    /// `\u001b`, in pairs above U+FFFF.
    Json,
}

impl Display for Visible<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.text;
        // Runs of harmless characters go out whole.
        while let Some((at, letter)) = rest.char_indices().find(|(_, letter)| self.hides(*letter)) {
            out.write_str(&rest[..at])?;
            escape(letter, self.form, out)?;
            rest = &rest[at + letter.len_utf8()..];
        }
        out.write_str(rest)
    }
}

impl Visible<'_> {
    fn hides(&self, letter: char) -> bool {
        !(is_visible(letter) || self.breaks && matches!(letter, '\n' | '\t'))
    }
}

impl From<Visible<'_>> for String {
    fn from(text: Visible<'_>) -> String {
        alloc::format!("{text}")
    }
}

/// True for characters that a terminal shows and does not obey; false for C0, DEL, C1, and Unicode's
/// invisible format characters (bidirectional controls, zero-width characters, line and paragraph separators,
/// fillers, annotations, tags). The joiners U+200C and U+200D are invisible too. Variation selectors and
/// combining marks pass: they belong to the character before them.
pub fn is_visible(letter: char) -> bool {
    !matches!(letter as u32,
        0x00..=0x1f | 0x7f..=0x9f
        | 0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
        | 0x3164 | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0xfffe | 0xffff
        | 0x1_bca0..=0x1_bca3 | 0x1_d173..=0x1_d17a | 0xe_0000..=0xe_0fff)
}

fn escape(letter: char, form: Form, out: &mut impl fmt::Write) -> fmt::Result {
    match (form, letter) {
        (Form::Json, _) => {
            let mut units = [0; 2];
            letter.encode_utf16(&mut units).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))
        }
        (Form::Text, '\n') => out.write_str("\\n"),
        (Form::Text, '\t') => out.write_str("\\t"),
        (Form::Text, '\r') => out.write_str("\\r"),
        (Form::Text, '\0'..='\u{ff}') => write!(out, "\\x{:02x}", letter as u32),
        (Form::Text, _) => write!(out, "\\u{{{:x}}}", letter as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// POSIX.1-2017, Shell Command Language 2.2.2: within single quotes every character is literal.
    #[test]
    fn shell_words_are_one_word() {
        let table = [
            ("eth0", "eth0"),
            ("a-b_c./=:,+@%9", "a-b_c./=:,+@%9"),
            ("", "''"),
            ("two words", "'two words'"),
            ("$HOME;rm", "'$HOME;rm'"),
            ("it's", r"'it'\''s'"),
            ("ä", "'ä'"),
            ("a\nb\t\r", r"$'a\nb\t\r'"),
            ("\x1b[31m'\\", r"$'\033[31m\'\\'"),
            ("\u{202e}1", r"$'\342\200\2561'"),
        ];
        for (word, expected) in table {
            assert_eq!(shell_word(word), expected);
            assert!(shell_word(word).chars().all(is_visible));
        }
        assert_eq!(shell_bytes(b"a\xffb"), r"$'a\377b'");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        let table = [
            ("plain, Übergröße 網路 → ─", "plain, Übergröße 網路 → ─"),
            ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
            ("\u{9b}31m\u{7f}\u{85}", "\\x9b31m\\x7f\\x85"),
            ("a\u{202e}txt.exe\u{2066}", "a\\u{202e}txt.exe\\u{2066}"),
            ("zero\u{200b}width\u{feff}\u{ad}", "zero\\u{200b}width\\u{feff}\\xad"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("", ""),
        ];
        for (foreign, shown) in table {
            assert_eq!(line(foreign).to_string(), shown, "{foreign:?}");
        }
        assert_eq!(lines("a\nb\tc\rd\x1b").to_string(), "a\nb\tc\\rd\\x1b");
        assert_eq!(String::from(line("\0")), "\\x00");
    }

    #[test]
    fn nothing_printed_is_obeyed_whatever_comes_in() {
        let every: String = ('\0'..=char::MAX).collect();
        assert!(line(&every).to_string().chars().all(is_visible));
        assert!(
            json(&every)
                .to_string()
                .chars()
                .all(|letter| matches!(letter, '\n' | '\t') || is_visible(letter))
        );
        let ascii = |letter: &char| matches!(letter, ' '..='~');
        assert!(every.chars().filter(ascii).all(is_visible), "ASCII that prints is printed");
    }

    #[test]
    fn a_document_stays_the_same_document() {
        assert_eq!(
            json("{\n\t\"a\": \"\u{9b}\u{202e}\u{e0041}é\"\n}").to_string(),
            "{\n\t\"a\": \"\\u009b\\u202e\\udb40\\udc41é\"\n}"
        );
    }
}

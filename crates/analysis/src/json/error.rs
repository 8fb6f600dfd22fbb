//! Why a text is no document of tidegate, and how long one may be.

use std::fmt;

/// The most values (numbers, texts, lists, members) of a document: each takes some 30 to 150 bytes once it is
/// read, in the file as few as two. The longest scenario here (choke-sweep) writes more than four million.
pub(super) const MAX_VALUES: usize = 16_000_000;

/// Why a text is no document of tidegate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// Where: `runs[3].probes[0].answers[17]`, or line and column of what is no JSON.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// What the document should be, and the command that writes such: ``a trial is written by `tidegate try
    /// SCRIPT --json` ``.
    pub origin: &'static str,
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.origin)
    }
}

impl std::error::Error for DocumentError {}

/// The most values of a text in JSON: each begins behind `[`, `{`, `,` or `:` outside strings.
pub(super) fn values(text: &str) -> usize {
    let (mut count, mut inside, mut escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'[' | b'{' | b',' | b':' if !inside => count += 1,
            _ => {}
        }
    }
    count
}

/// serde_json's reason, without the place it adds.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

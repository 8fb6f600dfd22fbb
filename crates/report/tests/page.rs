//! The page as text: one file, nothing from elsewhere, nothing that a script could smuggle in.

mod common;

use std::path::Path;
use tidegate_report::html;

/// Two million bytes: what a mail takes and a browser opens at once.
const MOST_BYTES: usize = 2_000_000;

#[test]
fn one_file_of_bearable_size() {
    let page = html(&common::fixture());
    // For whoever wants to look at it.
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixture.html"), &page).expect("target/tmp is writable");
    assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    let foreign =
        ["http:", "https:", "url(//", "@import", "<link rel=\"stylesheet\"", "<iframe", "<img", "NaN", "inf%"];
    let found: Vec<&str> = foreign.into_iter().filter(|word| page.contains(word)).collect();
    assert!(found.is_empty(), "{found:?}");
}

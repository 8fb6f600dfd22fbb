//! Names inside a bundle: relative, below it, and safe to print, to quote and to list with their digests.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Where the inputs are.
pub(super) const INPUTS: &str = "inputs";
/// Where results and drawings are put.
pub(super) const RESULTS: &str = "results";
/// See [`RESULTS`].
pub(super) const FIGURES: &str = "figures";
/// The digests of all other files.
pub(super) const SUMS: &str = "SHA256SUMS";
/// What was done with what.
pub(super) const PROVENANCE: &str = "provenance.json";
/// Does it all again.
pub(super) const REPRODUCE: &str = "reproduce.sh";
/// How it is cited.
pub(super) const CITATION: &str = "CITATION.cff";
/// What is where.
pub(super) const README: &str = "README.md";

/// Bytes of the longest name.
const MAX_NAME: usize = 1024;
/// Directories in one another.
const MAX_DEPTH: usize = 32;

/// A name of a file inside a bundle: parts with slashes between them.
///
/// # Errors
/// Why it is none: it leaves the bundle, or has characters that lists and shells take for something else.
pub(super) fn checked(name: &str) -> Result<&str, String> {
    let shown = || tidegate_text::line(name).to_string();
    if name.len() > MAX_NAME {
        return Err(format!(
            "`{}…` is longer than {MAX_NAME} bytes",
            shown().chars().take(40).collect::<String>()
        ));
    }
    if !name.chars().all(tidegate_text::is_visible) {
        return Err(format!("`{}` has control characters or invisible ones; rename it", shown()));
    }
    if name.contains('\\') {
        return Err(format!("`{name}` has a backslash, which lists of digests write otherwise; rename it"));
    }
    let parts: Vec<&str> = name.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return Err(format!("`{name}` is no path below the bundle"));
    }
    if parts.len() > MAX_DEPTH {
        return Err(format!("`{name}` is in more than {MAX_DEPTH} directories"));
    }
    Ok(name)
}

/// A path relative to a directory as a name inside a bundle.
///
/// # Errors
/// As for [`checked`]; besides, it is no UTF-8.
pub(super) fn of_path(path: &Path) -> Result<String, String> {
    let parts: Option<Vec<&str>> = path.components().map(|part| part.as_os_str().to_str()).collect();
    let parts = parts.ok_or_else(|| {
        let shown = tidegate_text::line(&path.to_string_lossy()).to_string();
        format!("`{shown}` is no UTF-8; rename it")
    })?;
    checked(&parts.join("/")).map(str::to_owned)
}

/// An absolute path without `.` and `..`, by its letters alone.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// The path that leads from one absolute directory to another absolute path.
pub(super) fn relative(from: &Path, to: &Path) -> PathBuf {
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (from.components().collect(), to.components().collect());
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[shared..].iter().map(|_| OsStr::new(".."));
    up.chain(to[shared..].iter().map(|part| part.as_os_str())).collect()
}

/// The directory that all of these absolute directories are in.
pub(super) fn common<'p>(mut all: impl Iterator<Item = &'p Path>) -> PathBuf {
    let Some(first) = all.next() else { return PathBuf::from("/") };
    all.fold(first.to_owned(), |base, next| {
        base.components().zip(next.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
    })
}

/// Letters that stand for themselves everywhere, of any text: for names of drawings.
pub(super) fn slug(text: &str) -> String {
    const MOST: usize = 60;
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '_' { c } else { '-' };
    text.chars().map(letter).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_and_are_harmless() {
        for good in ["inputs/s.toml", "a b/it's $HOME.sh", "-x", "..x/y..", "ü"] {
            assert_eq!(checked(good), Ok(good));
        }
        for (bad, why) in [
            ("../x", "no path below"),
            ("a/../b", "no path below"),
            ("/etc/passwd", "no path below"),
            ("", "no path below"),
            ("a//b", "no path below"),
            ("a/.", "no path below"),
            ("a\nb", "`a\\nb` has control characters"),
            ("a\u{1b}[2Jb", "has control characters"),
            ("a\u{202e}b", "invisible"),
            ("a\\b", "backslash"),
        ] {
            let wrong = checked(bad).expect_err(bad);
            assert!(wrong.contains(why), "{bad:?}: {wrong}");
        }
        assert!(checked(&"x/".repeat(40)).is_err() && checked(&"x".repeat(2000)).is_err());
        use std::os::unix::ffi::OsStrExt;
        let bytes = Path::new(OsStr::from_bytes(b"a\xff"));
        assert!(of_path(bytes).is_err_and(|why| why.contains("no UTF-8")));
    }

    #[test]
    fn paths_lead_from_one_to_the_other() {
        let of = |from: &str, to: &str| relative(Path::new(from), Path::new(to)).display().to_string();
        assert_eq!([of("/a/b", "/a/c/d"), of("/a", "/a/s"), of("/", "/x")], ["../c/d", "s", "x"]);
        assert_eq!(plain(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(plain(Path::new("/../x")), Path::new("/x"));
        let all = ["/w/a/b", "/w/a", "/w/ab"].map(Path::new);
        assert_eq!(common(all.into_iter()), Path::new("/w"));
        assert_eq!(common([Path::new("/w/a")].into_iter()), Path::new("/w/a"));
        assert_eq!(slug("rtt,ping.p95 /x"), "rtt-ping.p95--x");
    }
}

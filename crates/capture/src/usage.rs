//! What a script prints of how it wants to be called.

/// The usage line of a script.
pub fn usage(stdout: &[u8], stderr: &[u8]) -> Option<String> {
    [stderr, stdout].iter().find_map(|output| {
        let text = String::from_utf8_lossy(output);
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines.find(|line| line.to_ascii_lowercase().starts_with("usage"))?;
        // `Usage:` alone is a heading.
        let next = line.trim_end_matches(':').eq_ignore_ascii_case("usage").then(|| lines.next()).flatten();
        let line = next.map_or_else(|| line.to_owned(), |next| format!("{line} {next}"));
        Some(short(&by_name(&line)))
    })
}

/// Is a usage line that was printed the script's own? Then its lines have the word. Otherwise a program that
/// it ran did not understand its arguments, and those of the script are no remedy.
pub fn speaks_of_usage<'l>(lines: impl IntoIterator<Item = &'l str>) -> bool {
    lines.into_iter().any(|line| line.to_ascii_lowercase().contains("usage"))
}

/// A usage line that names its program without its directory (`$0` is the whole path), so that its arguments
/// are seen.
fn by_name(line: &str) -> String {
    let name = |word: &str| match (word.strip_prefix('/'), word.rsplit_once('/')) {
        (Some(_), Some((_, name))) if !name.is_empty() => name.to_owned(),
        _ => word.to_owned(),
    };
    let words: Vec<String> = line
        .split(' ')
        .enumerate()
        .map(|(at, word)| if at == 1 { name(word) } else { word.to_owned() })
        .collect();
    words.join(" ")
}

/// At most a line of a terminal.
pub(crate) fn short(line: &str) -> String {
    const MAX_LETTERS: usize = 100;
    match line.char_indices().nth(MAX_LETTERS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_explains_its_arguments_is_quoted() {
        let rows: [(&str, &str, Option<&str>); 6] = [
            ("", "Usage: x {on|off}\n", Some("Usage: x {on|off}")),
            ("usage:\n   x DEV RATE\n", "", Some("usage: x DEV RATE")),
            ("USAGE\n\n", "", Some("USAGE")),
            ("", "usage: /home/ann/scripts/x.sh <DEV> </etc/rate>\n", Some("usage: x.sh <DEV> </etc/rate>")),
            ("what usage is low\n", "no\n", None),
            ("", "", None),
        ];
        for (stdout, stderr, expected) in rows {
            assert_eq!(usage(stdout.as_bytes(), stderr.as_bytes()).as_deref(), expected, "{stdout}{stderr}");
        }
    }
}

//! Files that the programs of a script did not find, by what they say on standard error.

use super::few::first_few;
use super::lines::Finder;
use std::collections::BTreeSet;
use tidegate_shims::TOOLS;

/// How a message about such a file goes on behind its name, in the C library's words and dash's.
const NO_FILE: &str = "No such file";
/// What dash says where `.` is given a file that is not there; what it says of a redirection is about a line
/// that is not run, and a trouble of its own.
const SOURCED: &str = ".: cannot open ";

/// Which files programs of the script did not find, in a sentence; `None`: no message is about one.
///
/// A script that goes on without such a file may do something else where the file is. The tools that are
/// answered here say so elsewhere.
pub(super) fn sentence(finder: &Finder, stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let main = finder.main().file_name()?.to_str()?;
    let found: BTreeSet<(&str, &str)> = text.lines().filter_map(|line| read(line, main)).collect();
    let files = found.iter().map(|(who, file)| tidegate_text::line(&format!("{who}: {file}")).to_string());
    Some(format!(
        "{}: files that are not here ({}): what the script would do with them is not in this",
        finder.main().display(),
        first_few(files)?
    ))
}

/// The program that a message is from, and the file that it did not find. `main` is the script's name.
fn read<'t>(line: &'t str, main: &str) -> Option<(&'t str, &'t str)> {
    let (before, _) = line.split_once(NO_FILE)?;
    let (program, rest) = before.split_once(": ")?;
    let program = program.rsplit('/').next().unwrap_or(program);
    // Messages of tools that name no program: `Error: Could not process rule`.
    if ["error", "warning", "fatal", "note"].iter().any(|word| program.eq_ignore_ascii_case(word)) {
        return None;
    }
    if program == main {
        // Its number, and what could not be opened.
        let (_, said) = rest.split_once(": ")?;
        let file = said.strip_prefix(SOURCED)?.trim_end().strip_suffix(':')?;
        return Some((".", file));
    }
    let is_program = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    if !is_program(program) || TOOLS.contains(&program) {
        return None;
    }
    // Python's number of the error.
    let rest = rest.trim_end().trim_end_matches(['(', '[']);
    let rest = rest.split_once("[Errno").map_or(rest, |(before, _)| before);
    let rest = rest.trim_end().trim_end_matches(':');
    // cat quotes nothing, head and awk do.
    let rest = rest.strip_suffix(" for reading").unwrap_or(rest).trim_end();
    let quoted = ['\'', '"', '\u{2019}'].iter().find_map(|quote| rest.strip_suffix(*quote));
    let file = match quoted {
        Some(inside) => inside.rsplit(['\'', '"', '\u{2018}']).next()?,
        None => rest.rsplit(' ').next()?,
    };
    (!file.is_empty()).then_some((program, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_name_the_files_they_do_not_find() {
        let rows = [
            ("cat: x: No such file or directory", Some(("cat", "x"))),
            ("/usr/bin/cat: 'a b': No such file or directory", Some(("cat", "a b"))),
            ("sed: can't read /etc/x.conf: No such file or directory", Some(("sed", "/etc/x.conf"))),
            ("head: cannot open 'x' for reading: No such file or directory", Some(("head", "x"))),
            ("awk: cannot open \"x\" (No such file or directory)", Some(("awk", "x"))),
            ("sh: 0: cannot open nofile.sh: No such file", Some(("sh", "nofile.sh"))),
            ("bash: line 1: ./x: No such file or directory", Some(("bash", "./x"))),
            (
                "/usr/bin/python3: can't open file '/q/no.py': [Errno 2] No such file or directory",
                Some(("python3", "/q/no.py")),
            ),
            ("/q/home.sh: 2: .: cannot open ./x: No such file", Some((".", "./x"))),
            // Of these the script's line is told.
            ("/q/home.sh: 2: cannot open x: No such file", None),
            ("/q/home.sh: line 2: x: No such file or directory", None),
            // The tools' answers are told, too; a remark is none.
            ("tc: x: No such file or directory", None),
            ("RTNETLINK answers: No such file or directory", None),
            ("oh my: No such file", None),
            ("No such file", None),
            (": No such file", None),
        ];
        for (line, expected) in rows {
            assert_eq!(read(line, "home.sh"), expected, "{line}");
        }
    }
}

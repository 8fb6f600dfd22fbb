//! Words of a line, split as a shell splits them; names of an option, separated by commas.

use std::path::{Path, PathBuf};

/// Splits at blanks; quotes of either kind hold a word together.
pub(crate) fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in text.chars() {
        match (quote, letter) {
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == letter => quote = None,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The names of an option that separates them by commas; `\,` is a comma of a name.
pub(crate) fn names(values: &[String]) -> Vec<String> {
    values.iter().flat_map(|value| tidegate_scenario::split_names(value, ',')).collect()
}

/// The file and the arguments of `--policy 'FILE ARGS'`; a file whose name has blanks is found first.
pub(crate) fn file_and_args(path: &Path) -> (PathBuf, Vec<String>) {
    let text = path.to_str().filter(|_| !path.exists()).unwrap_or_default();
    let mut words = split(text).into_iter();
    match words.next() {
        Some(file) => (file.into(), words.collect()),
        None => (path.to_owned(), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_a_shell_would() {
        assert_eq!(split("start eth1"), ["start", "eth1"]);
        assert_eq!(split("  'a b'  c\"d e\"f '' "), ["a b", "cd ef", ""]);
        assert_eq!(split(""), [""; 0]);
    }

    #[test]
    fn a_policy_has_its_arguments_behind_its_file() {
        let of = |text: &str| file_and_args(Path::new(text));
        assert_eq!(of("gw.sh"), ("gw.sh".into(), vec![]));
        assert_eq!(of("gw.sh eth0 'a b'"), ("gw.sh".into(), vec!["eth0".to_owned(), "a b".to_owned()]));
        let dir = std::env::temp_dir().join(format!("tidegate words {}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        assert_eq!(file_and_args(&dir), (dir.clone(), vec![]));
        let _ = std::fs::remove_dir_all(&dir);
    }
}

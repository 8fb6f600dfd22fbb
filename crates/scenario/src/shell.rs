//! Words and figures as they are typed: on a shell, and in tc's commands.

use std::path::Path;
use tidegate_packet::Nanos;

/// A word as a shell takes it for one: in quotes where it needs them.
///
/// ```
/// use tidegate_scenario::shell::quoted;
///
/// assert_eq!([quoted("eth0"), quoted("two words")], ["eth0", "'two words'"]);
/// ```
pub fn quoted(word: &str) -> String {
    tidegate_text::shell_word(word)
}

/// A file's name as a word of a command line: exactly, quoted for a shell, and never taken for an option.
pub fn quoted_path(path: &Path) -> String {
    let name = path.as_os_str().as_encoded_bytes();
    let prefix = if name.len() > 1 && name.starts_with(b"-") { "./" } else { "" };
    tidegate_text::shell_bytes(&[prefix.as_bytes(), name].concat())
}

/// The file of a policy or scenario as a command line names it again: standard input has to be given again.
///
/// ```
/// use tidegate_scenario::shell::quoted_input;
///
/// assert_eq!(quoted_input("my home.toml".as_ref()), "'my home.toml'");
/// assert_eq!(quoted_input("-".as_ref()), "- < FILE");
/// ```
pub fn quoted_input(path: &Path) -> String {
    if path == Path::new("-") { "- < FILE".to_owned() } else { quoted_path(path) }
}

/// A time, exactly, in the largest unit in which it is a whole number: `10s`, `1500us`, `250ns`.
///
/// ```
/// use tidegate_packet::Nanos;
/// use tidegate_scenario::shell::exact_time;
///
/// assert_eq!([exact_time(Nanos(1_500)), exact_time(Nanos::millis(30))], ["1500ns", "30ms"]);
/// ```
pub fn exact_time(span: Nanos) -> String {
    let scales = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let fits = scales.iter().find(|(scale, _)| span.0.is_multiple_of(*scale));
    fits.map_or_else(String::new, |(scale, unit)| format!("{}{unit}", span.0 / scale))
}

/// A rate in bits per second as tc takes it: `5mbit`.
pub fn tc_rate(bits: u64) -> String {
    match bits {
        b if b.is_multiple_of(1_000_000) => format!("{}mbit", b / 1_000_000),
        b if b.is_multiple_of(1000) => format!("{}kbit", b / 1000),
        b => format!("{b}bit"),
    }
}

/// A time as tc takes it, in the unit in which it is a whole number (rounded to microseconds): `30ms`.
pub fn tc_time(span: Nanos) -> String {
    match span.0 / 1000 {
        us if us.is_multiple_of(1_000_000) => format!("{}s", us / 1_000_000),
        us if us.is_multiple_of(1000) => format!("{}ms", us / 1000),
        us => format!("{us}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word_and_no_option() {
        let of = |name: &str| quoted_path(Path::new(name));
        assert_eq!([of("gw.sh"), of("-x"), of("-")], ["gw.sh", "./-x", "-"]);
        assert_eq!(quoted_input(Path::new("-")), "- < FILE");
        assert_eq!([of("a b"), of("a\nb")], ["'a b'", r"$'a\nb'"]);
    }
}

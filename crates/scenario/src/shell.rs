//! Words and figures as they are typed: on a shell, and in tc's commands.

use tidegate_packet::Nanos;

/// A word as a shell takes it for one: in quotes where it needs them.
///
/// ```
/// use tidegate_scenario::shell::quoted;
///
/// assert_eq!([quoted("eth0"), quoted("two words")], ["eth0", "'two words'"]);
/// ```
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
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

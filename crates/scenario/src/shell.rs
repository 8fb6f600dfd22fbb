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
    tidegate_text::shell_word(word)
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

//! Figures in words.

use tidegate_gateway::DropReason;
use tidegate_packet::Nanos;
pub(crate) use tidegate_syntax::units::{bytes_in_words as bytes, rate_in_words as rate};

/// `2.4 s`, `310 ms`.
pub(crate) fn time(span: Nanos) -> String {
    match span.0 {
        ns if ns >= 1_000_000_000 => format!("{:.1} s", ns as f64 / 1e9),
        ns if ns >= 10_000_000 => format!("{} ms", (ns + 500_000) / 1_000_000),
        ns if ns >= 1_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        ns => format!("{} µs", ns / 1000),
    }
}

/// Lines that a sentence names at most.
const MOST_NAMED: usize = 3;

/// Lines in words, a few of them by name.
pub(crate) fn named(lines: &[String]) -> String {
    let more = lines.len().saturating_sub(MOST_NAMED);
    let mut text = lines.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// `1 class`, `3 classes`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Why a packet is dropped.
pub(crate) fn dropped(why: DropReason) -> &'static str {
    match why {
        DropReason::Full => "the queue takes nothing",
        DropReason::Overflow => "the queue is full",
        DropReason::Codel => "CoDel drops it",
        DropReason::Early => "the queue's management drops it",
        DropReason::TooLong => "it is longer than the qdisc takes",
        DropReason::Unclassified => "no class takes it",
        DropReason::Policy => "a filter drops it",
        DropReason::Netfilter | DropReason::NetfilterLeaving => "netfilter drops it",
        DropReason::Superseded => "later acknowledgements make it needless",
        DropReason::Purged(_) | DropReason::PurgedUnseen | DropReason::PurgedAtOnce | DropReason::Rehash => {
            "its queue is taken away"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_packet::Rate;

    #[test]
    fn figures_are_short() {
        let rates =
            [160_000, 1_000_000, 1_234_000, 12_340_000, 999, 1_500_000_000].map(|bits| rate(Rate(bits / 8)));
        assert_eq!(
            rates,
            ["160 kbit/s", "1 Mbit/s", "1.23 Mbit/s", "12.3 Mbit/s", "992 bit/s", "1.5 Gbit/s"]
        );
        let times = [2_422_000_000, 310_400_000, 4_600_000, 12_000].map(|ns| time(Nanos(ns)));
        assert_eq!(times, ["2.4 s", "310 ms", "4.6 ms", "12 µs"]);
    }
}

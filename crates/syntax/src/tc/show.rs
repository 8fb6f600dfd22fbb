//! What the three listings share: lines and members, written once for text and JSON.

use super::command_line::ShowFlags;
use crate::TcVersion;
use crate::json::Json;
use crate::number::general;
use crate::units::{print_rate, print_size_by, print_time};
use tidegate_packet::{Handle, Rate};
use tidegate_policy::dump::QueueStats;

/// A listing's entry under way: its text and its JSON members.
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) members: Vec<(&'static str, Json)>,
    /// The release of tc that lists it.
    tc: TcVersion,
}

impl Entry {
    /// Of what lists no amounts, such as filters.
    pub(super) fn new() -> Entry {
        Entry::by(TcVersion::default())
    }
    pub(super) fn by(tc: TcVersion) -> Entry {
        Entry { text: String::new(), members: Vec::new(), tc }
    }
    /// Text only.
    pub(super) fn say(&mut self, text: &str) {
        self.text.push_str(text);
    }
    /// A member only.
    pub(super) fn member(&mut self, key: &'static str, value: Json) {
        self.members.push((key, value));
    }
    /// A number in both.
    pub(super) fn number(&mut self, key: &'static str, number: impl std::fmt::Display + Copy, text: &str) {
        self.text.push_str(text);
        self.members.push((key, Json::number(number)));
    }
    /// A name and a word, in both.
    pub(super) fn word(&mut self, key: &'static str, word: &str) {
        self.text.push_str(&format!("{key} {word} "));
        self.members.push((key, Json::text(word)));
    }
    /// Appends another entry's text and JSON.
    pub(super) fn append(&mut self, other: Entry) {
        self.text.push_str(&other.text);
        self.members.extend(other.members);
    }
    /// A word that is there or not.
    pub(super) fn flag(&mut self, key: &'static str, on: bool) {
        if on {
            self.text.push_str(key);
            self.text.push(' ');
            self.members.push((key, Json::Bool(true)));
        }
    }
    /// An amount in words.
    pub(super) fn amount(&self, bytes: u32) -> String {
        print_size_by(bytes, self.tc)
    }
    /// An amount: `text` around it in the listing, a number in JSON.
    pub(super) fn size(&mut self, key: &'static str, bytes: u32, text: &str) {
        self.number(key, bytes, &text.replace("{}", &self.amount(bytes)));
    }

    /// The two lines of counters. `sent` is missing where the kernel keeps none (flows).
    pub(super) fn counters(&mut self, stats: &QueueStats, sent: bool) {
        if sent {
            self.number("bytes", stats.bytes, &format!(" Sent {} bytes", stats.bytes));
            self.number("packets", stats.packets, &format!(" {} pkt", stats.packets));
        }
        self.number("drops", stats.drops, &format!(" (dropped {}", stats.drops));
        self.number("overlimits", stats.overlimits, &format!(", overlimits {}", stats.overlimits));
        self.number("requeues", stats.requeues, &format!(" requeues {}) ", stats.requeues));
        self.say("\n");
        if let Some(rate) = stats.rate {
            self.number("rate", rate.bytes, &format!(" rate {}", print_rate(Rate(rate.bytes), false)));
            self.number("pps", rate.packets, &format!(" {}pps", rate.packets));
        }
        self.size("backlog", stats.backlog, " backlog {}");
        self.number("qlen", stats.qlen, &format!(" {}p requeues {}", stats.qlen, stats.requeues));
    }
}

/// With `-o` lines end in a backslash; the one before a rate does not.
pub(super) fn ended(text: String, flags: &ShowFlags) -> String {
    if flags.oneline { text.replace('\n', "\\").replace(") \\ rate ", ") \n rate ") } else { text }
}

/// A qdisc's handle: `0:` for the hidden ones.
pub(super) fn handle_text(handle: Handle) -> String {
    format!("{:x}:", handle.major())
}

/// The probability of a mark at `max`.
pub(super) fn probability(max_p: u32, entry: &mut Entry) {
    let share = general(f64::from(max_p) / 4_294_967_296.0, 6);
    entry.say(&format!("probability {share} "));
    entry.member("probability", Json::Number(share));
}

/// Flags: shown in the listing when they are true, and in JSON always.
pub(super) fn marks(words: &[(&'static str, bool)], entry: &mut Entry) {
    for (word, matches) in words {
        if *matches {
            entry.say(&format!("{word} "));
        }
        entry.member(word, Json::Bool(*matches));
    }
}

/// A time, and a blank.
pub(super) fn time(key: &'static str, us: u32, entry: &mut Entry) {
    entry.number(key, us, &format!("{key} {} ", print_time(us)));
}

/// The time until the next drop, with its sign.
pub(super) fn drop_next(us: i32) -> String {
    format!("{}{}", if us < 0 { "-" } else { "" }, print_time(us.unsigned_abs()))
}

/// Counters in a row, each with the text before it.
pub(super) fn row(counters: &[(&'static str, &str, u32)], entry: &mut Entry) {
    for (key, before, value) in counters {
        entry.number(key, *value, &format!("{before}{key} {value}"));
    }
}

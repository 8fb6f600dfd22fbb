//! Recorded sessions of the real tc, replayed beside what they hold here: its parsers, words and listings.

#[path = "../../cli/tests/commands/sessions.rs"]
mod sessions;

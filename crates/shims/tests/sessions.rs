//! Recorded sessions of the real tc, replayed beside what they hold here: its tools' answers.

#[path = "../../cli/tests/commands/sessions.rs"]
mod sessions;

//! What tc says when the kernel refuses.

use tidegate_policy::{Op, TcError};

/// tc's words on stderr for an operation that was refused, and its exit code (2).
pub fn refusal_text(op: &Op, error: &TcError) -> (String, u8) {
    let mut text = format!("{error}\n");
    if matches!(op, Op::Filter(_)) {
        text.push_str("We have an error talking to the kernel\n");
    }
    (text, 2)
}

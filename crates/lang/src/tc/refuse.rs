//! What tc says when the kernel refuses.

use tidegate_policy::{ActionsOp, Op, TcError};

/// tc's words on stderr for an operation that was refused, and its exit code.
pub fn refusal_text(op: &Op, error: &TcError) -> (String, u8) {
    const NOT_DONE: &str = "We have an error talking to the kernel";
    match op {
        Op::Actions(ActionsOp::Set(..)) => (format!("{error}\n{NOT_DONE}\n"), 255),
        Op::Actions(ActionsOp::Delete(_)) => action_not_found(error),
        Op::Actions(ActionsOp::Flush(_)) => (format!("{error}\nWe have an error flushing\n"), 1),
        Op::Filter(_) | Op::Chain(_) => (format!("{error}\n{NOT_DONE}\n"), 2),
        _ => (format!("{error}\n"), 2),
    }
}

/// The same where actions are asked for by number. tc goes on as if it did not know the command, and blames the word after it.
pub fn action_not_found(error: &TcError) -> (String, u8) {
    let after = "Command \"action\" is unknown, try \"tc actions help\".";
    (format!("{error}\nWe have an error talking to the kernel\n{after}\n"), 255)
}

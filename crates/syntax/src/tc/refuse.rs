//! tc's messages for the kernel's refusals.

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

/// What tc prints before a refusal and is none: values that it chose itself, and warnings, ours among them.
const NOTES: [&str; 10] = [
    "Warning: ",
    "RED: WARNING. ",
    "RED: set bandwidth to ",
    "GRED: set bandwidth to ",
    "GRED: set burst to ",
    "Auto-config [",
    "dst MAC address <",
    "src MAC address <",
    "skbmod etype 0x",
    "tidegate: warning: ",
];

/// The lines of a tool's stderr that may give the reason of a refusal, in order: all but notes.
pub fn refusal_lines(stderr: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    let lines = stderr.trim().lines();
    lines.filter(|line| !NOTES.iter().any(|note| line.starts_with(note)))
}

/// The message where actions are requested by number. tc continues as if it did not know the command, and
/// blames the word after it.
pub fn action_not_found(error: &TcError) -> (String, u8) {
    let after = "Command \"action\" is unknown, try \"tc actions help\".";
    (format!("{error}\nWe have an error talking to the kernel\n{after}\n"), 255)
}

#[cfg(test)]
mod tests {
    use super::refusal_lines;

    #[test]
    fn a_note_is_not_the_reason() {
        let text = "RED: set bandwidth to 10Mbit\ntc_red_eval_ewma() burst 20 is too small ? Try burst \
        31\ntc: help\n";
        let lines: Vec<&str> = refusal_lines(text).collect();
        assert_eq!(lines, ["tc_red_eval_ewma() burst 20 is too small ? Try burst 31", "tc: help"]);
        // skbmod says what it writes, refused or not (asked of tc 6.1).
        let skbmod = "dst MAC address <02:15:15:15:15:15>\nError: Parent Qdisc doesn't exists.\n";
        assert_eq!(refusal_lines(skbmod).next(), Some("Error: Parent Qdisc doesn't exists."));
        assert_eq!(refusal_lines("\n").next(), None);
    }
}

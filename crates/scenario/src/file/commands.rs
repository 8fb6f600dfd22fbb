//! Commands of a machine, as written in a file or on a command line.

use crate::model::MachineCommand;
use crate::tables::Diagnostic;
use std::fmt;
use std::ops::Range;
use tidegate_shims::TOOLS;

/// What only a shell understands.
const SHELL: [char; 9] = ['$', '|', '>', '<', ';', '&', '`', '*', '('];

/// A command in the file.
pub(crate) fn command(line: &str, at: Range<usize>) -> Result<MachineCommand, Diagnostic> {
    match parse_command(line) {
        Ok(words) => Ok(MachineCommand { words, at }),
        Err(BadCommand { reason, remedy }) => Err(Diagnostic::new(at, reason, remedy)),
    }
}

/// Why a line is no command that a machine can carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCommand {
    /// What is wrong, in one line.
    pub reason: String,
    /// What to write instead.
    pub remedy: String,
}

impl BadCommand {
    fn new(reason: impl Into<String>, remedy: impl Into<String>) -> BadCommand {
        BadCommand { reason: reason.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for BadCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

impl std::error::Error for BadCommand {}

/// The words of a command: split as a shell does, without `sudo` and the path of the tool.
///
/// # Errors
/// Why it is none that can be carried out, and what to do.
pub fn parse_command(line: &str) -> Result<Vec<String>, BadCommand> {
    let words = words(line).ok_or_else(|| BadCommand::new("a quote is not closed", "close it"))?;
    let words = command_of(words)?;
    if line.contains(SHELL) {
        return Err(BadCommand::new(
            "only a shell understands this",
            "put it into a file: `gateway = \"policy.sh\"`",
        ));
    }
    Ok(words)
}

/// The words of a command that a shell has split, without `sudo` and the path of the tool.
///
/// # Errors
/// As for [`parse_command`].
pub fn command_of(mut words: Vec<String>) -> Result<Vec<String>, BadCommand> {
    if words.first().is_some_and(|first| first == "sudo") {
        words.remove(0);
    }
    let Some(first) = words.first() else {
        return Err(BadCommand::new("an empty command", "write `tc …`, `ip …`, `iptables …`, `ethtool …`"));
    };
    let tool = first.rsplit('/').next().unwrap_or(first);
    if !TOOLS.contains(&tool) {
        let known = "write tc, ip, iptables, ip6tables, nft, ifconfig, ethtool, modprobe or sysctl; a shell \
        script goes into a file";
        return Err(BadCommand::new(format!("`{tool}` is no tool that a machine has here"), known));
    }
    let tool = tool.to_owned();
    words[0] = tool;
    Ok(words)
}

/// Splits at blanks, but not in quotes, which go.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut open, mut inside) = (None, false);
    for c in line.chars() {
        match open {
            Some(quote) if c == quote => open = None,
            Some(_) => words.last_mut()?.push(c),
            None if c.is_whitespace() => inside = false,
            None => {
                if !std::mem::replace(&mut inside, true) {
                    words.push(String::new());
                }
                if c == '"' || c == '\'' {
                    open = Some(c);
                } else {
                    words.last_mut()?.push(c);
                }
            }
        }
    }
    open.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command() {
        let quoted = r#"iptables -A INPUT -m comment --comment "two words" -j ACCEPT"#;
        let found = parse_command(quoted).expect("a command");
        assert_eq!(found[6], "two words");
        assert_eq!(parse_command("/sbin/tc qdisc show").map(|words| words[0].clone()), Ok("tc".into()));
        let refused = ["", "echo 1", "tc qdisc add dev $DEV root", "tc 'qdisc"]
            .map(|line| parse_command(line).is_err());
        assert_eq!(refused, [true; 4]);
    }
}

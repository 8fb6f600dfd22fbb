//! Commands with their tools, a line each, that need no shell: what `tidegate run --print tc` writes.
//!
//! Quotes, backslashes, comments and lines that go on are read as a shell reads them; `2>/dev/null` and
//! `|| true` say that a command may fail. Everything else that only a shell can do makes it a script.

use crate::lists::ListedCall;
use std::path::PathBuf;
use tidegate_capture::TOOLS;
use tidegate_shims::Call;

/// What a shell takes for more than letters.
const SHELL_LETTERS: &str = "|&;<>()$`*?[]{}~!";

/// The commands of a text; `None`: it needs a shell.
pub(super) fn commands(text: &str) -> Option<Vec<ListedCall>> {
    let mut listed = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let mut whole = line.to_owned();
        while whole.ends_with('\\') && !whole.trim_start().starts_with('#') {
            whole.pop();
            whole += lines.next().map_or("", |(_, next)| next);
        }
        let (command, may_fail) = without_excuses(&whole);
        let words = words(command)?;
        let Some((tool, args)) = words.split_first() else { continue };
        let tool = tool.rsplit('/').next().filter(|tool| TOOLS.contains(tool))?;
        // An earlier run may have left nothing to delete.
        let clears = args.iter().any(|word| matches!(word.as_str(), "del" | "delete"));
        let call = Call {
            tool: tool.into(),
            args: args.to_vec(),
            stdin: None,
            cwd: PathBuf::from("/"),
            netns: None,
        };
        listed.push(ListedCall { may_fail: may_fail || clears, ..ListedCall::new(call, Some(number + 1)) });
    }
    Some(listed).filter(|listed| !listed.is_empty())
}

/// A line without what says that its command may fail, and whether it said so.
fn without_excuses(line: &str) -> (&str, bool) {
    let mut rest = line.trim();
    loop {
        let shorter = ["|| true", "||true", "|| :", "||:", "2>/dev/null", "2> /dev/null", ">/dev/null 2>&1"]
            .iter()
            .find_map(|end| rest.strip_suffix(end));
        match shorter {
            Some(shorter) => rest = shorter.trim_end(),
            None => return (rest, rest.len() < line.trim().len()),
        }
    }
}

/// The words of a line; `None`: only a shell can read it.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        letter => word.push(letter),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        '\\' => word.push(letters.next()?),
                        letter => word.push(letter),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(letters.next()?),
            // `!` alone is a word of iptables.
            '!' if word.is_none() && letters.as_str().starts_with(' ') => word = Some("!".to_owned()),
            letter if SHELL_LETTERS.contains(letter) => return None,
            letter if letter.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Option<Vec<String>> {
        let one = |one: ListedCall| {
            let Call { tool, args, .. } = one.call;
            format!(
                "{}{}: {tool} {}",
                one.line.unwrap_or(0),
                if one.may_fail { "?" } else { "" },
                args.join("|")
            )
        };
        Some(commands(text)?.into_iter().map(one).collect())
    }

    #[test]
    fn lists_need_no_shell() {
        let text = "#!/bin/sh\n# a list\n\n/sbin/tc qdisc add dev eth0 \\\n  root cake # why\n\
            tc class del dev eth0 classid 1:1\niptables -A OUTPUT ! -o lo -m comment --comment 'a b'\n\
            ip link add ifb0 type ifb 2>/dev/null || true\n";
        let expected = [
            "4: tc qdisc|add|dev|eth0|root|cake",
            "6?: tc class|del|dev|eth0|classid|1:1",
            "7: iptables -A|OUTPUT|!|-o|lo|-m|comment|--comment|a b",
            "8?: ip link|add|ifb0|type|ifb",
        ];
        assert_eq!(listed(text).unwrap(), expected);
    }

    #[test]
    fn what_a_shell_does_is_no_list() {
        for text in [
            "tc qdisc add dev $DEV root cake",
            "DEV=eth0",
            "for i in 1 2; do tc qdisc show; done",
            "tc qdisc show | grep cake",
            "rm -rf /",
            "tc qdisc add dev \"$1\" root fq",
            "tc 'unfinished",
            "# nothing",
            "",
        ] {
            assert!(listed(text).is_none(), "{text}");
        }
    }
}

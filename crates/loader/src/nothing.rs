//! Policies without traffic control: every command reports them the same way, to a user who named the wrong
//! file, or whose `tc` runs where it is not followed.

use tidegate_capture::{Exit, ScriptRun, asks, usage};
use tidegate_policy::netfilter::NfCommand;
use tidegate_policy::{Op, Verb};
use tidegate_shims::Machine;

/// The message for them.
pub(crate) const NOTHING_FOUND: &str = "no traffic control command was run";

/// Tools that show and configure nothing else, and what the names of others begin with.
const TOOLS: [&str; 4] = ["tc", "nft", "iptables", "ip6tables"];
/// Programs that run another one in another namespace, container or machine.
const ELSEWHERE: [&str; 4] = ["machinectl", "chroot", "ssh", "vagrant"];

/// Why a policy has no result: none of its files, each with its name and lines, came to a call of tc, nft or
/// iptables. `None`: one did, or a script was ended before its end.
pub fn nothing_found<'t>(
    outcomes: &[ScriptRun],
    files: impl IntoIterator<Item = (&'t str, &'t [String])>,
) -> Option<String> {
    let called =
        |tool: &str| TOOLS.iter().any(|known| tool == *known || tool.starts_with(&format!("{known}-")));
    // A script that was cut off may have called tc later: its warning has the reason.
    let cut = outcomes.iter().any(|outcome| !outcome.exit.is_own());
    if cut || outcomes.iter().flat_map(|outcome| &outcome.calls).any(|recorded| called(&recorded.call.tool)) {
        return None;
    }
    let mut text = format!("{NOTHING_FOUND} (tc, nft, iptables), so nothing can be said of it");
    let usage = outcomes.iter().find_map(|outcome| usage::usage(&outcome.stdout, &outcome.stderr));
    let files: Vec<(&str, &[String])> = files.into_iter().collect();
    let is_own = files.iter().any(|(_, lines)| usage::speaks_of_usage(lines.iter().map(String::as_str)));
    for (name, lines) in files {
        if let Some((line, wrapper)) = elsewhere(lines) {
            text += &format!(
                "\n  {name}:{line}: `{wrapper}` runs tc somewhere else, where it is not followed; put what \
                runs there into a file of its own"
            );
        } else if let Some((line, wanted)) = not_reached(lines).filter(|_| usage.is_none() || !is_own) {
            text += &format!("\n  {name}:{line}: tc is named here, and no call of it was made");
            // A failure before the script looked at its arguments is reported where it failed.
            if outcomes.iter().all(|outcome| matches!(outcome.exit, Exit::Code(0 | 1))) {
                text += &wish(outcomes, lines, &wanted).unwrap_or_default();
            }
        }
    }
    if let Some(usage) = usage.filter(|usage| !is_told(outcomes, usage)) {
        text += &match is_own {
            true => format!("\n  the script says `{usage}`: give it its arguments after `--`"),
            false => format!("\n  a program that it ran printed `{usage}`"),
        };
    }
    Some(text)
}

/// Does a trouble quote what a script says of its arguments?
fn is_told(outcomes: &[ScriptRun], usage: &str) -> bool {
    let mut troubles = outcomes.iter().flat_map(|outcome| &outcome.troubles);
    troubles.any(|trouble| trouble.asks_for_arguments() || trouble.reason.contains(usage))
}

/// What a script that came to little may wait for: an argument that it compares with `wanted`, some
/// arguments, an answer.
fn wish(outcomes: &[ScriptRun], lines: &[String], wanted: &[String]) -> Option<String> {
    let is_given = outcomes.iter().any(|outcome| outcome.arguments > 0);
    if !is_given && !wanted.is_empty() {
        let wanted = wanted.join(", ");
        return Some(format!("; it compares its first argument with {wanted}: give it one after `--`"));
    }
    if !is_given && lines.iter().any(|line| line.contains("$#") && !line.trim_start().starts_with('#')) {
        return Some("; it looks at how many arguments it was given: give them after `--`".to_owned());
    }
    if let Some(question) = outcomes.iter().find_map(|outcome| outcome.question.as_ref()) {
        return Some(format!("; line {} {}", question.line, asks(question)));
    }
    match asked_of_environment(lines) {
        Some((line, name, value)) => Some(format!(
            "; line {line} compares ${name}, which no line sets, with `{value}`: set it for the command, as \
            `{name}={value} tidegate …`"
        )),
        None => last_words(outcomes),
    }
}

/// Variables that shells set themselves, or that every environment has.
const OF_SHELLS: [&str; 12] = [
    "EUID", "UID", "USER", "HOME", "LOGNAME", "PWD", "SHELL", "HOSTNAME", "OSTYPE", "PPID", "RANDOM", "SHLVL",
];

/// The first line of a script that compares a variable which no line of it sets with a word: hooks of
/// OpenVPN, pppd and the like are given theirs by their caller.
fn asked_of_environment(lines: &[String]) -> Option<(usize, &str, &str)> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && !name.starts_with(|letter: char| letter.is_ascii_digit())
            && !OF_SHELLS.contains(&name)
            && !name.starts_with("BASH")
    };
    let is_plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
    };
    let code = || (1..).zip(lines).filter(|(_, line)| !line.trim_start().starts_with('#'));
    let split = |line: &'_ str| -> Vec<String> {
        line.split([' ', '\t', ';', '&', '|', '(', ')']).map(str::to_owned).collect()
    };
    // `NAME=`, and what `read`, `for`, `getopts` and others set: their words stand without `$`.
    let is_set = |name: &str| {
        code().flat_map(|(_, line)| split(line)).any(|word| {
            word == name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with(['=', '+', '[']))
        })
    };
    code().find_map(|(number, line)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.windows(3).find_map(|three| {
            let name = three[0].trim_matches('"').strip_prefix('$')?.trim_matches(['{', '}']);
            let value = three[2].trim_end_matches(';').trim_matches(['"', '\'']);
            let is_meant = matches!(three[1], "=" | "==") && is_name(name) && is_plain(value);
            (is_meant && !is_set(name)).then_some((number, name, value))
        })
    })
}

/// The last line that a script wrote which ended well and did nothing: perhaps why.
fn last_words(outcomes: &[ScriptRun]) -> Option<String> {
    let ended_well = outcomes.iter().filter(|outcome| outcome.exit == Exit::Code(0));
    let line = ended_well.flat_map(|outcome| [&outcome.stderr, &outcome.stdout]).find_map(|bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines()
            .map(str::trim)
            .rfind(|line| !line.is_empty())
            .map(|line| line.chars().take(100).collect::<String>())
    })?;
    Some(format!("; the last line that it wrote: `{}`", tidegate_text::line(&line)))
}

/// Does an operation configure traffic control, other than by deleting?
pub(crate) fn configures(op: &Op) -> bool {
    match op {
        Op::Qdisc(op) => op.verb != Verb::Delete,
        Op::Class(op) => op.verb != Verb::Delete,
        Op::Filter(op) => op.verb != Verb::Delete,
        Op::Netfilter(op) => op.command.rule().is_some() && !matches!(op.command, NfCommand::Delete(..)),
        Op::Actions(_) | Op::Chain(_) => true,
        Op::Link(_) | Op::TxQueueLen { .. } | Op::Ring { .. } | Op::Mtu { .. } => false,
    }
}

/// Was traffic control configured on a machine?
pub(crate) fn has_policy(machine: &Machine) -> bool {
    machine.log.iter().any(configures)
}

/// What a policy says whose scripts only delete and list: each with what it may wait for.
pub(crate) fn only_deletes<'t>(
    outcomes: &[ScriptRun],
    ops: &[Op],
    files: impl IntoIterator<Item = (&'t str, &'t [String])>,
) -> Vec<String> {
    let mut calls = outcomes.iter().flat_map(|outcome| &outcome.calls);
    let fails = calls.any(|recorded| recorded.code != 0 && !recorded.deletes_nothing());
    let ended = outcomes.iter().all(|outcome| outcome.exit.is_own() && !outcome.cut_short);
    if fails || !ended || ops.iter().any(configures) {
        return Vec::new();
    }
    let usage = outcomes.iter().find_map(|outcome| usage::usage(&outcome.stdout, &outcome.stderr));
    let said = |(name, lines): (&str, &[String])| {
        let (_, wanted) = not_reached(lines)?;
        let usage = usage
            .as_ref()
            .filter(|_| usage::speaks_of_usage(lines.iter().map(String::as_str)))
            .map(|usage| format!("; it says `{usage}`: give it its arguments after `--`"));
        let wish = usage.or_else(|| wish(outcomes, lines, &wanted)).unwrap_or_default();
        let name = tidegate_text::line(name);
        Some(format!("{name}: what was run only deletes and lists, and adds nothing{wish}"))
    };
    files.into_iter().filter_map(said).collect()
}

/// The first line of a script that has tc run somewhere else, and by what.
fn elsewhere(lines: &[String]) -> Option<(usize, &'static str)> {
    let by = |line: &str| {
        let words: Vec<&str> =
            line.split_whitespace().map(|word| word.trim_matches(['\'', '"', '(', ')', '$'])).collect();
        let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
        let names: Vec<String> = words.iter().map(|word| base(word)).collect();
        ELSEWHERE.into_iter().find(|wrapper| {
            let wrapper: Vec<&str> = wrapper.split(' ').collect();
            let at = names.windows(wrapper.len()).position(|some| some == wrapper);
            at.is_some_and(|at| names[at..].iter().any(|name| name == "tc"))
        })
    };
    let lines = lines.iter().enumerate().filter(|(_, line)| !line.trim_start().starts_with('#'));
    lines.into_iter().find_map(|(at, line)| by(line).map(|wrapper| (at + 1, wrapper)))
}

/// The first line of a script that calls tc, and what the script's first argument is compared with, the first
/// few.
fn not_reached(lines: &[String]) -> Option<(usize, Vec<String>)> {
    const MOST_NAMED: usize = 4;
    let bare = |word: &str| word.trim_matches(['"', '\'', '{', '}', '$', '(', ')', ';', '`']).to_owned();
    let code = |line: &str| !line.trim_start().starts_with('#');
    // A script may put another program in tc's place, as to print what it would do.
    let another = |line: &String| {
        let value = line.trim().strip_prefix("TC=").map(bare);
        value.is_some_and(|value| !value.is_empty() && value.rsplit('/').next() != Some("tc"))
    };
    if lines.iter().any(another) {
        return None;
    }
    let calls = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let tc = |word: &str| {
            let bare = bare(word);
            bare == "TC" && word.contains('$') || bare.rsplit('/').next() == Some("tc")
        };
        words
            .windows(2)
            .any(|two| tc(two[0]) && ["qdisc", "class", "filter"].contains(&bare(two[1]).as_str()))
    };
    let line = lines.iter().position(|line| code(line) && calls(line))?;
    let mut names = vec!["1".to_owned()];
    let mut wanted: Vec<String> = Vec::new();
    let (mut in_case, mut in_function) = (false, false);
    for line in lines.iter().filter(|line| code(line)) {
        // A function's arguments are its own.
        let begins =
            line.contains("() {") && !line.trim_end().ends_with('}') || line.trim_end().ends_with("()");
        in_function = (in_function || begins) && !line.starts_with('}');
        if in_function || line.contains("() {") {
            continue;
        }
        let line = line.trim();
        if let Some((name, "$1" | "\"$1\"")) = line.split_once('=') {
            names.push(name.to_owned());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let first = |word: &str| word.contains('$') && names.contains(&bare(word));
        let compared =
            words.windows(3).filter(|three| first(three[0]) && ["=", "==", "!="].contains(&three[1]));
        wanted.extend(compared.map(|three| bare(three[2])));
        let label = line.split(')').next().filter(|_| in_case && line.contains(')'));
        let plain =
            |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        wanted.extend(
            label.into_iter().flat_map(|label| label.split('|')).map(str::trim).filter(plain).map(bare),
        );
        in_case = (in_case || words.len() > 1 && words[0] == "case" && first(words[1]))
            && !line.starts_with("esac");
    }
    let mut seen = std::collections::BTreeSet::new();
    wanted.retain(|word| !word.is_empty() && seen.insert(word.clone()));
    wanted.truncate(MOST_NAMED);
    Some((line + 1, wanted.into_iter().map(|word| format!("`{word}`")).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_somewhere_else_is_found_by_its_line() {
        for (text, found) in [
            ("#!/bin/sh\nchroot /mnt tc qdisc add dev eth0 root pfifo\n", Some((2, "chroot"))),
            ("docker exec web tc qdisc show\n", None),
            ("ip netns exec blue /sbin/tc qdisc show\n", None),
            ("ssh router 'tc qdisc show'\n", Some((1, "ssh"))),
            ("vagrant ssh a -c \"tc qdisc show\"\n", Some((1, "ssh"))),
            ("# ssh router tc qdisc show\n", None),
            ("ip netns exec blue ping 192.0.2.1\n", None),
            ("docker ps\ntc qdisc show\n", None),
        ] {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            assert_eq!(elsewhere(&lines), found, "{text}");
        }
    }

    #[test]
    fn a_variable_that_no_line_sets_is_asked_of_the_environment() {
        for (text, found) in [
            ("if [ \"$script_type\" = \"up\" ]; then\n tc a\nfi\n", Some((1, "script_type", "up"))),
            ("# x\n[[ ${MODE} == fast ]] && tc a\n", Some((2, "MODE", "fast"))),
            ("MODE=$1\n[[ $MODE == fast ]] && tc a\n", None),
            ("read -r MODE\n[ $MODE = fast ] && tc a\n", None),
            ("[ \"$EUID\" = 0 ] && tc a\n", None),
            ("[ \"$1\" = on ] && tc a\n", None),
            ("[ \"$M\" = \"$(cat x)\" ] && tc a\n", None),
        ] {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            assert_eq!(asked_of_environment(&lines), found, "{text}");
        }
    }

    #[test]
    fn a_missing_argument_is_reported_by_its_comparison() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        for (text, found) in [
            ("if [ \"$1\" = on ]; then\n tc qdisc add dev eth0 root fq\nfi\n", Some((2, vec!["`on`"]))),
            (
                "ACTION=$1\nadd() { $TC qdisc add dev a root fq; }\ncase \"$ACTION\" in\n start|up) add \
                ;;\n stop) ;;\nesac\nx) y\n",
                Some((2, vec!["`start`", "`up`", "`stop`"])),
            ),
            ("[ $1 != on ] && exit\ntc qdisc add dev eth0 root fq\n", Some((2, vec!["`on`"]))),
            ("f() { tc qdisc add dev eth0 root fq; }\n", Some((1, vec![]))),
            (
                "f() {\n [ $1 = a ] && tc qdisc add dev eth0 root fq\n}\n[ $1 = b ] && f\n",
                Some((2, vec!["`b`"])),
            ),
            ("TC=echo\n$TC qdisc add dev eth0 root fq\n", None),
            ("# tc qdisc add dev eth0 root fq\necho tc\n", None),
        ] {
            let found =
                found.map(|(line, words)| (line, words.into_iter().map(str::to_owned).collect::<Vec<_>>()));
            assert_eq!(not_reached(&lines(text)), found, "{text}");
        }
    }
}

//! What was carried out, as commands and as a batch file; the summary.

use super::done::code;
use std::fmt::Write as _;
use tidegate_capture::{Exit, Recorded, ScriptRun};
use tidegate_loader::runs::ScriptRuns;
use tidegate_shims::Carried;

/// One command a line, quoted for a shell.
pub(crate) fn commands<'c>(carried: impl IntoIterator<Item = &'c Carried>) -> String {
    carried
        .into_iter()
        .map(|one| one.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ") + "\n")
        .collect()
}

/// A file for `tc -batch`: tc's commands without its name; what belongs to other tools in its place as a
/// comment.
pub(crate) fn batch<'c>(carried: impl IntoIterator<Item = &'c Carried>) -> String {
    let line = |one: &Carried| match one.words.split_first() {
        Some((tool, words)) if tool == "tc" => {
            words.iter().map(|word| batch_word(word)).collect::<Vec<_>>().join(" ")
        }
        _ => format!("# {}", one.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
    };
    carried.into_iter().map(|one| line(one) + "\n").collect()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "%+,-./:=@_".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let mut out = String::from("'");
    for letter in word.chars() {
        match letter {
            '\'' => out.push_str("'\\''"),
            '\n' | '\t' => out.push(letter),
            // On a terminal it would be an escape: the shell is to make it.
            hidden if !tidegate_text::is_visible(hidden) => {
                let mut bytes = [0; 4];
                let octal: String =
                    hidden.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\{byte:03o}")).collect();
                let _ = write!(out, "'\"$(printf '{octal}')\"'");
            }
            plain => out.push(plain),
        }
    }
    out + "'"
}

/// Commands that change nothing and name the devices a script found, in order: where `commands` name them in
/// another order, or not the first of all, a run of them would find another machine (its first device has the
/// address).
pub(super) fn devices_first(devices: &[String], commands: &[Carried]) -> String {
    let mut named: Vec<&String> = Vec::new();
    for word in commands.iter().flat_map(|one| &one.words) {
        if devices.contains(word) && !named.contains(&word) {
            named.push(word);
        }
    }
    // A device whose commands were all refused is named by none.
    if commands.is_empty() || named.into_iter().eq(devices) {
        return String::new();
    }
    devices.iter().map(|dev| format!("ip link show dev {} > /dev/null\n", quoted(dev))).collect()
}

/// A word for a batch file, which knows quotes and no escapes.
fn batch_word(word: &str) -> String {
    if word.is_empty() || word.contains(|letter: char| letter.is_whitespace()) {
        format!("\"{word}\"")
    } else {
        word.into()
    }
}

/// A few lines for standard error: what went wrong, and what there is now.
pub(super) fn summary(run: &mut ScriptRuns) -> String {
    let mut out = String::new();
    for outcome in &run.outcomes {
        for note in &outcome.notes {
            let _ = writeln!(out, "tidegate run: {note}");
        }
        for trouble in &outcome.troubles {
            let _ = writeln!(out, "{trouble}");
        }
    }
    // What a tool printed, the script's output has shown.
    let calls = || run.outcomes.iter().flat_map(|outcome| &outcome.calls).filter(|call| !call.silenced);
    let is_shown = |warning: &str| {
        let text = warning.strip_prefix("HTB: ").unwrap_or(warning);
        calls().any(|call| call.stderr.contains(text))
    };
    let warnings = calls().filter(|_| !run.is_script).flat_map(|call| call.stderr.lines());
    for warning in warnings.filter(|line| line.starts_with("Warning: ")) {
        let _ = writeln!(out, "{}", tidegate_text::line(warning));
    }
    for warning in run.machine.kernel_log.iter().filter(|warning| !is_shown(warning)) {
        let _ = writeln!(out, "kernel: {warning}");
    }
    let calls: usize = run.outcomes.iter().map(|outcome| outcome.calls.len()).sum();
    let refused: Vec<_> = run.outcomes.iter().flat_map(|o| &o.calls).filter(|call| call.code != 0).collect();
    let refused = how_refused(&refused);
    let _ = writeln!(
        out,
        "tidegate run: {}, {} carried out, {refused}; {}",
        count(calls, "call"),
        count(run.machine.carried.len(), "command"),
        ended(&run.outcomes)
    );
    for (name, what) in devices(run) {
        let _ = writeln!(out, "tidegate run: {name}: {what}");
    }
    out
}

/// `1 case`, `2 cases`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn ended(outcomes: &[ScriptRun]) -> String {
    match outcomes.last().map(|outcome| &outcome.exit) {
        Some(Exit::TimedOut { after, .. }) => format!("ended by us after {} s", after.as_secs_f64()),
        Some(Exit::Signal(signal)) => format!("ended by signal {signal}"),
        Some(Exit::Crowded { limit }) => format!("ended by us with more than {limit} processes"),
        Some(Exit::Exhausted { limit }) => {
            format!("ended by us with more than {} MiB of memory", limit >> 20)
        }
        Some(Exit::Lost(_)) | None => "not run to its end".to_owned(),
        Some(Exit::Code(_)) => format!("code {}", code(outcomes)),
    }
}

/// The devices on which something is configured, and what, in a line each.
fn devices(run: &mut ScriptRuns) -> Vec<(String, String)> {
    let machine = &mut run.machine;
    let mut lines = Vec::new();
    for id in machine.gateway.devices() {
        let qdiscs: Vec<_> = machine
            .gateway
            .qdiscs(machine.now, id)
            .into_iter()
            .filter(|qdisc| !qdisc.handle.is_none())
            .collect();
        let Some(root) = qdiscs.first() else { continue };
        let classes = machine.gateway.classes(machine.now, id).len();
        let what = format!(
            "{} {} {}, {}, {}",
            root.kind.name(),
            tidegate_packet::Handle::new(root.handle.major(), 0),
            if root.kind.is_hook() { "where packets arrive or leave" } else { "at the root" },
            count(qdiscs.len(), "qdisc"),
            count(classes, "class").replace("classs", "classes")
        );
        lines.push((machine.gateway.name(id).to_owned(), what));
    }
    lines
}

/// How many calls were refused, and how many of these mean nothing.
fn how_refused(refused: &[&Recorded]) -> String {
    let all = refused.len();
    let number = |is: fn(&Recorded) -> bool| refused.iter().filter(|call| is(call)).count();
    let reasons = [
        (number(|call| call.may_fail() && !call.makes_loaded_ifb()), "as the script expects"),
        (number(|call| call.deletes_nothing() && !call.may_fail()), "because there was nothing to delete"),
        (number(Recorded::makes_loaded_ifb), "because `modprobe ifb` had made the device"),
    ];
    let out = format!("{all} refused");
    let said: Vec<_> = reasons.into_iter().filter(|(calls, _)| *calls > 0).collect();
    match said.as_slice() {
        [(calls, why)] if *calls == all => format!("{out} {why}"),
        _ => said.into_iter().enumerate().fold(out, |out, (at, (calls, why))| {
            format!("{out}, {calls} {}{why}", if at == 0 { "of them " } else { "" })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_by_the_shell() {
        assert_eq!(quoted("a\u{1b}b"), "'a'\"$(printf '\\033')\"'b'");
        assert_eq!(quoted("\u{202e}'x"), "''\"$(printf '\\342\\200\\256')\"''\\''x'");
    }

    #[test]
    fn devices_are_named_first_where_the_commands_name_others_first() {
        let carried =
            |text: &str| Carried { words: text.split(' ').map(str::to_owned).collect(), ops: 0, line: None };
        let devices = ["eth0", "ifb0", "eth1"].map(str::to_owned);
        let (eth0, ifb0) = (carried("tc qdisc add dev eth0 root sfq"), carried("ip link set dev ifb0 up"));
        let eth1 = carried("tc qdisc add dev eth1 root sfq");
        assert_eq!(devices_first(&devices, &[eth0.clone(), ifb0.clone(), eth1]), "");
        assert_eq!(devices_first(&devices, &[]), "");
        let all = "ip link show dev eth0 > /dev/null\nip link show dev ifb0 > /dev/null\nip link show dev \
        eth1 > /dev/null\n";
        // What should have been done to eth1 was refused.
        assert_eq!(devices_first(&devices, &[eth0.clone(), ifb0.clone()]), all);
        assert_eq!(devices_first(&devices, &[ifb0.clone(), eth0]), all);
        assert_eq!(devices_first(&devices, &[ifb0]), all);
    }

    #[test]
    fn commands_are_quoted_for_their_reader() {
        let carried = |words: &[&str]| Carried {
            words: words.iter().map(|w| (*w).to_owned()).collect(),
            ops: 0,
            line: None,
        };
        let all = [
            carried(&["tc", "qdisc", "add", "dev", "eth 0", "root", "pfifo"]),
            carried(&["iptables", "-A", "X", "!", "-s", "10.0.0.0/8", "--comment", "it's"]),
        ];
        assert_eq!(
            commands(&all),
            "tc qdisc add dev 'eth 0' root pfifo\niptables -A X '!' -s 10.0.0.0/8 --comment 'it'\\''s'\n"
        );
        assert_eq!(
            batch(&all),
            "qdisc add dev \"eth 0\" root pfifo\n# iptables -A X '!' -s 10.0.0.0/8 --comment 'it'\\''s'\n"
        );
    }
}

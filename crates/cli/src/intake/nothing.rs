//! Policies in which there is no traffic control: said the same by every command, for a user who named the wrong
//! file, or whose `tc` runs where it is not followed.

use crate::capture::Outcome;

/// What is said of them.
pub(crate) const NOTHING_FOUND: &str = "no traffic control command found";

/// Tools that show and configure nothing else, and what the names of others begin with.
const TOOLS: [&str; 4] = ["tc", "nft", "iptables", "ip6tables"];
/// Programs that run another one in another namespace, container or machine.
const ELSEWHERE: [&str; 9] =
    ["nsenter", "docker", "podman", "nerdctl", "lxc-attach", "machinectl", "chroot", "ssh", "ip netns exec"];

/// Why nothing can be said of a policy: none of its files, each with its name and lines, came to a call of tc, nft or
/// iptables. `None`: one did.
pub(crate) fn nothing_found<'t>(
    outcomes: &[Outcome],
    files: impl IntoIterator<Item = (&'t str, &'t [String])>,
) -> Option<String> {
    let called = |tool: &str| TOOLS.iter().any(|known| tool == *known || tool.starts_with(&format!("{known}-")));
    if outcomes.iter().flat_map(|outcome| &outcome.calls).any(|recorded| called(&recorded.call.tool)) {
        return None;
    }
    let mut said = format!("{NOTHING_FOUND} (tc, nft, iptables), so nothing can be said of it");
    for (name, lines) in files {
        if let Some((line, wrapper)) = elsewhere(lines) {
            said += &format!(
                "\n  {name}:{line}: `{wrapper}` runs tc somewhere else, where it is not followed; put what runs there into a file of its own"
            );
        }
    }
    Some(said)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_somewhere_else_is_found_by_its_line() {
        for (text, found) in [
            ("#!/bin/sh\nnsenter -t 1 -n tc qdisc add dev eth0 root pfifo\n", Some((2, "nsenter"))),
            ("docker exec web tc qdisc show\n", Some((1, "docker"))),
            ("ip netns exec blue /sbin/tc qdisc show\n", Some((1, "ip netns exec"))),
            ("ssh router 'tc qdisc show'\n", Some((1, "ssh"))),
            ("lxc-attach -n a -- sh -c \"tc qdisc show\"\n", Some((1, "lxc-attach"))),
            ("# nsenter -t 1 -n tc qdisc show\n", None),
            ("ip netns exec blue ping 192.0.2.1\n", None),
            ("docker ps\ntc qdisc show\n", None),
        ] {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            assert_eq!(elsewhere(&lines), found, "{text}");
        }
    }
}

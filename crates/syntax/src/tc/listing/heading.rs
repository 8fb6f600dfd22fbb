//! The lines of a saved listing that say what the lines below them are about: `# dev eth0`, or a command of a
//! session in a terminal.

/// What a heading says of the lines below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListingHeading {
    /// The device that it names.
    pub dev: Option<String>,
    /// The parent (`1:`, `ingress`) that it names.
    pub parent: Option<String>,
    /// It is a command of tc's that changes something, so that a listing before it may be out of date.
    pub changes: bool,
    /// It is a command of a tool's behind the prompt of a shell, not a comment.
    pub is_command: bool,
}

impl ListingHeading {
    /// Why a command that changes something is refused behind a listing.
    pub const CHANGES: &str =
        "is a command that changes what is listed before it; save the last listing alone";
}

/// Words of tc that only list.
const LISTING_VERBS: [&str; 6] = ["show", "list", "ls", "lst", "get", "help"];

/// Reads a heading: `# dev eth0`, `$ tc class show dev eth0`, `ann@gw:~# tc qdisc`. A line of JSON is none.
/// `None`: it is something else.
pub fn listing_heading(line: &str) -> Option<ListingHeading> {
    let line = line.trim();
    let prompted = behind_prompt(line);
    let words: Vec<&str> = prompted.unwrap_or(line).split_whitespace().collect();
    let dev = after(&words, "dev").map(str::to_owned);
    let command = words.iter().skip_while(|word| matches!(**word, "sudo" | "doas"));
    let command: Vec<&str> = command.copied().collect();
    let is_tool = command.first().is_some_and(|word| word.rsplit('/').next() == Some("tc"));
    // `# the uplink` is a comment, `# dev eth0` names a device.
    if line.starts_with(['$', '#']) && dev.is_none() && !is_tool {
        return None;
    }
    let hook = words.iter().find(|word| matches!(**word, "ingress" | "egress")).copied();
    let parent = after(&words, "parent").or(hook).map(str::to_owned);
    let mut behind = command.iter().skip(1).filter(|word| !word.starts_with('-'));
    let verb = behind.nth(1);
    let is_batch = command.iter().any(|word| word.starts_with("-b"));
    let lists = |verb: &str| LISTING_VERBS.iter().any(|known| known.starts_with(verb)) || verb == "dev";
    let changes = is_tool && (is_batch || verb.is_some_and(|verb| !lists(verb)));
    // Without a prompt only a command that lists is a heading.
    if prompted.is_none() && (!is_tool || changes) {
        return None;
    }
    let is_command = is_tool && prompted.is_some() && !line.starts_with('#');
    Some(ListingHeading { dev, parent, changes, is_command })
}

/// What stands behind a shell's prompt: `$ `, `# `, `ann@gw:~$ `, `[ann@gw ~]# `.
fn behind_prompt(line: &str) -> Option<&str> {
    // `$TC qdisc …` is a line of a script.
    if let Some(rest) = line.strip_prefix("$ ").or_else(|| line.strip_prefix('#')) {
        return Some(rest);
    }
    let (who, _) = line.split_once('@')?;
    let is_user = |letter: char| letter.is_ascii_alphanumeric() || "[(_-.".contains(letter);
    if who.is_empty() || !who.chars().all(is_user) {
        return None;
    }
    line.match_indices(['#', '$'])
        .map(|(at, letter)| &line[at + letter.len()..])
        .find(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// The word behind a word.
pub(super) fn after<'w>(words: &[&'w str], name: &str) -> Option<&'w str> {
    words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_a_device_or_are_commands() {
        let heading = |line: &str| {
            listing_heading(line).map(|heading| {
                let words =
                    [heading.dev.as_deref(), heading.parent.as_deref()].map(|word| word.unwrap_or("-"));
                format!("{} {}{}", words[0], words[1], if heading.changes { " changes" } else { "" })
            })
        };
        for (line, expected) in [
            ("# dev eth0", Some("eth0 -")),
            ("  # dev eth0 parent 1:", Some("eth0 1:")),
            ("$ tc -s filter show dev eth0 ingress", Some("eth0 ingress")),
            ("$ tc qdisc", Some("- -")),
            ("$ sudo /sbin/tc -s -d qd ls", Some("- -")),
            ("root@gw:~# tc qdisc show dev eth0", Some("eth0 -")),
            ("[root@gw ~]# tc class ls dev eth0", Some("eth0 -")),
            ("ann@gw-1.lan:/etc (main)$ tc qdisc del dev eth0 root", Some("eth0 - changes")),
            ("# tc qdisc add dev eth0 root fq", Some("eth0 - changes")),
            ("# tc -batch x", Some("- - changes")),
            ("tc -s qdisc show dev eth0", Some("eth0 -")),
            ("tc qdisc add dev eth0 root fq", None),
            ("tcpdump show", None),
            ("root@gw:~# ", Some("- -")),
            ("root@gw:~# uname -a", Some("- -")),
            ("$TC qdisc add dev eth0 root fq", None),
            ("ann@gw:~/été$ tc qdisc show", Some("- -")),
            ("ann@é", None),
            ("# the uplink of ann@example.org", None),
            ("qdisc htb 1: dev eth0 root", None),
            ("tc qdisc add dev eth0 root htb # ann@gw", None),
            ("{\"comment\": \"ann@gw # \"}", None),
            ("", None),
        ] {
            assert_eq!(heading(line).as_deref(), expected, "{line}");
        }
    }
}

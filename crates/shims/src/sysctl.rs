//! sysctl (procps 4), answered: settings of the sandbox's own kernel where it has them, and a memory for the
//! rest.

use crate::call::{Effect, FileChange, Reply};
use crate::shim::ToolShim;

/// Settings that scripts ask for and that a network namespace does not show.
const USUAL: [(&str, &str); 8] = [
    ("net/core/default_qdisc", "pfifo_fast"),
    ("net/core/netdev_max_backlog", "1000"),
    ("net/core/rmem_max", "212992"),
    ("net/core/wmem_max", "212992"),
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/tcp_congestion_control", "cubic"),
    ("net/ipv4/tcp_ecn", "2"),
    ("net/netfilter/nf_conntrack_max", "262144"),
];

/// How the values are printed and what of failures.
#[derive(Clone, Copy, Default)]
struct Manner {
    values: bool,
    names: bool,
    quiet: bool,
    forgiving: bool,
    write: bool,
}

/// `sysctl` with these words; `stdin` is the file of `-p`.
pub(super) fn answer(shim: &mut ToolShim<'_>, words: &[String], stdin: Option<&[u8]>) -> Reply {
    let mut manner = Manner::default();
    let (mut all, mut reply, mut requested) = (false, Reply::ok(), 0);
    let mut args = words.iter().peekable();
    while let Some(word) = args.next() {
        match word.as_str() {
            "--values" => manner.values = true,
            "--names" => manner.names = true,
            "--quiet" => manner.quiet = true,
            "--ignore" => manner.forgiving = true,
            "--write" => manner.write = true,
            "--all" => all = true,
            "--version" | "-V" => return Reply::text("sysctl from procps-ng 4.0.2\n"),
            "--system" => {}
            "-p" | "-f" | "--load" => {
                args.next_if(|next| !next.starts_with('-'));
                settings(shim, stdin.unwrap_or_default(), manner, &mut reply);
                requested += 1;
            }
            option if option.starts_with('-') && !option.starts_with("--") => {
                for letter in option.chars().skip(1) {
                    match letter {
                        'n' => manner.values = true,
                        'N' => manner.names = true,
                        'q' => manner.quiet = true,
                        'e' => manner.forgiving = true,
                        'w' => manner.write = true,
                        'a' | 'A' | 'X' => all = true,
                        'p' => settings(shim, stdin.unwrap_or_default(), manner, &mut reply),
                        _ => {}
                    }
                }
            }
            // `net.x = 1` in three words is one setting.
            key if args.peek().is_some_and(|next| *next == "=") => {
                args.next();
                let value = args.next().map_or("", String::as_str);
                one(shim, &format!("{key}={value}"), manner, &mut reply);
                requested += 1;
            }
            key => {
                one(shim, key, manner, &mut reply);
                requested += 1;
            }
        }
    }
    if all {
        for (path, value) in known(shim) {
            say(&path, &value, manner, &mut reply);
        }
    } else if requested == 0 && reply == Reply::ok() && words.iter().all(|word| word.starts_with('-')) {
        return Reply::error(1, "sysctl [-n] [-q] [-e] [-w] [-p FILE] NAME[=VALUE]…\n");
    }
    if reply.code == 0 && words.iter().any(|word| word.contains('=')) {
        shim.did("sysctl", words);
    }
    reply
}

/// A file of settings: `name = value`, comments with `#` or `;`, a `-` before a name forgives a failure.
fn settings(shim: &mut ToolShim<'_>, text: &[u8], manner: Manner, reply: &mut Reply) {
    for line in String::from_utf8_lossy(text).lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let forgiving = manner.forgiving || line.starts_with('-');
        let manner = Manner { write: true, forgiving, ..manner };
        one(shim, line.trim_start_matches('-'), manner, reply);
    }
}

fn one(shim: &mut ToolShim<'_>, word: &str, manner: Manner, reply: &mut Reply) {
    let (key, value) = match word.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (word, None),
    };
    let fail = |reply: &mut Reply, text: String| {
        if !manner.forgiving {
            reply.stderr.extend(text.into_bytes());
            reply.code = 1;
        }
    };
    let Some(path) = sysctl_path(key) else {
        return fail(reply, format!("sysctl: malformed setting \"{word}\"\n"));
    };
    // Which others Linux has is not known: what is written there is not refused, and changes nothing here.
    let Some(now) = value_of(shim, &path) else {
        return match value {
            Some(value) => say(&path, value, manner, reply),
            None => fail(reply, format!("sysctl: tidegate: what {path} has is not known: not supported\n")),
        };
    };
    match value {
        None if manner.write => fail(reply, format!("sysctl: \"{key}\" must be of the form name=value\n")),
        None => say(&path, &now, manner, reply),
        Some(value) => {
            // A number cannot become a word.
            let numeric = |text: &str| text.split_whitespace().all(|part| part.parse::<i64>().is_ok());
            if numeric(&now) && !numeric(value) {
                return fail(reply, format!("sysctl: setting key \"{key}\": Invalid argument\n"));
            }
            // The namespace's own settings can be written, so their files have the value; others are only
            // remembered.
            let host = &mut shim.machine.host;
            match host.files.get_mut(&path).filter(|_| path.starts_with("/proc/sys/net/")) {
                Some(file) => value.clone_into(file),
                None => drop(host.settings.insert(path.clone(), value.to_owned())),
            }
            shim.effects
                .push(Effect::File(FileChange::Write { path: path.clone(), text: format!("{value}\n") }));
            if !manner.quiet {
                say(&path, value, manner, reply);
            }
        }
    }
}

fn say(path: &str, value: &str, manner: Manner, reply: &mut Reply) {
    let key =
        path.trim_start_matches("/proc/sys/").replace('.', "\u{0}").replace('/', ".").replace('\u{0}', "/");
    let line = match manner {
        Manner { values: true, .. } => format!("{value}\n"),
        Manner { names: true, .. } => format!("{key}\n"),
        _ => format!("{key} = {value}\n"),
    };
    reply.stdout.extend(line.into_bytes());
}

/// The value in the kernel inside, else the one that was written, else the default.
fn value_of(shim: &ToolShim<'_>, path: &str) -> Option<String> {
    let host = &shim.machine.host;
    let usual = || {
        let found = USUAL.iter().find(|(key, _)| path == format!("/proc/sys/{key}"));
        found.map(|(_, value)| (*value).to_owned())
    };
    // Some settings of a device are there for each.
    let device = || {
        let rest = path
            .strip_prefix("/proc/sys/net/ipv4/conf/")
            .or_else(|| path.strip_prefix("/proc/sys/net/ipv6/conf/"));
        let (name, _) = rest?.split_once('/')?;
        let there = ["all", "default", "lo"].contains(&name) || shim.machine.gateway.device(name).is_some();
        there.then(|| "0".to_owned())
    };
    host.settings.get(path).or_else(|| host.files.get(path)).cloned().or_else(usual).or_else(device)
}

fn known(shim: &ToolShim<'_>) -> Vec<(String, String)> {
    let mut all: std::collections::BTreeMap<String, String> =
        USUAL.iter().map(|(key, value)| (format!("/proc/sys/{key}"), (*value).to_owned())).collect();
    all.extend(shim.machine.host.settings.clone());
    all.into_iter().collect()
}

/// The file of a setting named on sysctl's command line: `net.ipv4.ip_forward`, `net.ipv4.ip_forward=1`, with
/// slashes too.
///
/// With the dot as separator a slash means a dot in a name (`eth0/1`), and the other way round.
#[must_use]
pub fn sysctl_path(word: &str) -> Option<String> {
    let key = word.split('=').next().unwrap_or("").trim();
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-/@:".contains(letter);
    if key.is_empty() || key.starts_with('-') || key.contains("..") || !key.chars().all(fits) {
        return None;
    }
    let slashes = key.find('/').is_some_and(|slash| key.find('.').is_none_or(|dot| slash < dot));
    let swap = |letter| match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let path: String = if slashes { key.to_owned() } else { key.chars().map(swap).collect() };
    Some(format!("/proc/sys/{}", path.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_files() {
        let path = |word| sysctl_path(word).unwrap_or_default();
        assert_eq!(path("net.ipv4.ip_forward=1"), "/proc/sys/net/ipv4/ip_forward");
        assert_eq!(path("net/ipv4/conf/eth0.1/forwarding"), "/proc/sys/net/ipv4/conf/eth0.1/forwarding");
        assert_eq!(path("net.ipv4.conf.eth0/1.forwarding"), "/proc/sys/net/ipv4/conf/eth0.1/forwarding");
        assert_eq!([path("-w"), path("a..b"), path("=1"), path("a b")], ["", "", "", ""]);
    }
}

//! Tools that a script calls beside the point: answered as if they had done it.

use super::{Call, Reply};

/// Answers `modprobe`, `insmod`, `sysctl`, `ethtool` and what `ifconfig` does beside the queue.
///
/// `None`: the call matters to the model, `ifconfig DEV txqueuelen N` among them.
#[must_use]
pub fn harmless(call: &Call) -> Option<Reply> {
    match call.tool.as_str() {
        // Every module is there: what a script wants of it, the model has or refuses itself.
        "modprobe" | "insmod" => Some(Reply::ok()),
        "sysctl" => Some(sysctl(&call.args)),
        "ethtool" => Some(ethtool(&call.args)),
        "ifconfig" if !call.args.iter().any(|arg| arg == "txqueuelen") => Some(ifconfig(&call.args)),
        _ => None,
    }
}

/// Settings succeed; a question is answered by an Ethernet device that is up.
fn ifconfig(args: &[String]) -> Reply {
    match args {
        [device] if !device.starts_with('-') => Reply::text(format!(
            "{device}: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n        ether 02:00:00:00:00:01  txqueuelen 1000  (Ethernet)\n"
        )),
        _ => Reply::ok(),
    }
}

fn sysctl(args: &[String]) -> Reply {
    let quiet = args.iter().any(|arg| arg == "-q" || arg == "-qw");
    let values_only = args.iter().any(|arg| arg == "-n");
    let mut reply = Reply::ok();
    for arg in args.iter().filter(|arg| !arg.starts_with('-')) {
        if let Some((key, value)) = arg.split_once('=') {
            if !quiet {
                let line = format!("{} = {}\n", key.trim(), value.trim());
                reply.stdout.extend(line.into_bytes());
            }
            continue;
        }
        let path = arg.replace('.', "/");
        let readable = path.chars().all(|letter| letter.is_ascii_alphanumeric() || "/_-".contains(letter));
        let value = readable.then(|| std::fs::read_to_string(format!("/proc/sys/{path}")).ok()).flatten();
        match value {
            Some(value) if values_only => reply.stdout.extend(value.into_bytes()),
            Some(value) => reply.stdout.extend(format!("{arg} = {}\n", value.trim_end()).into_bytes()),
            None => {
                let line = format!("sysctl: cannot stat /proc/sys/{path}: No such file or directory\n");
                reply.stderr.extend(line.into_bytes());
                reply.code = 1;
            }
        }
    }
    reply
}

fn ethtool(args: &[String]) -> Reply {
    match args {
        [device] if !device.starts_with('-') => {
            Reply::text(format!("Settings for {device}:\n\tSpeed: 1000Mb/s\n\tDuplex: Full\n\tLink detected: yes\n"))
        }
        _ => Reply::ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_calls_succeed_and_shaping_calls_are_left_to_the_model() {
        let ask = |line: &str| {
            let mut words = line.split(' ').map(String::from);
            let reply =
                harmless(&Call { tool: words.next().unwrap(), args: words.collect(), stdin: None, cwd: "/".into() })?;
            Some((reply.code, String::from_utf8(reply.stdout).unwrap()))
        };
        let ok = |text: &str| Some((0, text.to_owned()));
        assert_eq!(ask("modprobe sch_htb"), ok(""));
        assert_eq!(ask("sysctl -w net.x=1"), ok("net.x = 1\n"));
        assert_eq!(ask("sysctl -qw net.x=1"), ok(""));
        assert_eq!(ask("ethtool -K eth0 tso off"), ok(""));
        assert_eq!(ask("sysctl no.such/../../etc"), Some((1, String::new())));
        assert_eq!(ask("ifconfig eth0 up"), ok(""));
        assert_eq!(ask("ifconfig eth0 txqueuelen 1"), None);
        assert_eq!(ask("tc qdisc show"), None);
    }
}

//! Programs that are not run: each of their calls succeeds and prints nothing.

use std::collections::BTreeSet;
use std::path::Path;

use super::few::first_few;
use tidegate_shims::{TOOLS, TRAFFIC_TOOLS};

/// The longest name of one, bytes: it is a file's.
const MAX_NAME: usize = 64;

/// A call of a program that was not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StubbedCall {
    /// The program's name.
    pub tool: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The network namespace that it was called in; `None`: the first.
    pub netns: Option<String>,
}

impl StubbedCall {
    /// Whether the program goes on until a signal ends it: a server, or a recorder of packets.
    pub(crate) fn lasts(&self) -> bool {
        let has = |names: &[&str]| self.args.iter().any(|arg| names.contains(&arg.as_str()));
        // Letters behind one dash: `-sD`.
        let letters = |letter: char| {
            self.args.iter().any(|arg| {
                let cluster = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
                cluster.is_some_and(|rest| rest.chars().all(char::is_alphabetic) && rest.contains(letter))
            })
        };
        match self.tool.as_str() {
            "iperf" | "iperf3" => {
                (letters('s') || has(&["--server"])) && !(letters('D') || has(&["--daemon"]))
            }
            "netserver" => letters('D'),
            "tcpdump" | "tshark" | "dumpcap" => !has(&["-c"]),
            "ping" | "ping6" => !has(&["-c", "-w"]) && !self.args.iter().any(|arg| arg.starts_with("-c")),
            _ => false,
        }
    }
}

/// The names of the programs: those that make traffic, and those that the user gave.
pub(super) fn names(given: &[String]) -> Vec<String> {
    TRAFFIC_TOOLS.iter().map(|tool| (*tool).to_owned()).chain(given.iter().cloned()).collect()
}

/// Whether a program of this name can be taken for one that need not run.
///
/// # Errors
/// What is wrong with the name.
pub fn check_stub(name: &str) -> Result<(), String> {
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._+-".contains(letter));
    match name {
        _ if TOOLS.contains(&name) => Err(format!("tidegate plays {name} itself: it needs no stub")),
        "" | "." | ".." => Err("must be the name of a program".into()),
        _ if name.len() > MAX_NAME || !is_plain => Err(format!(
            "must be the name of a program, without its directory, of at most {MAX_NAME} letters"
        )),
        _ => Ok(()),
    }
}

/// Which programs were not run, in a sentence; `None`: each was.
pub(super) fn sentence(script: &Path, calls: &[StubbedCall]) -> Option<String> {
    let names: BTreeSet<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    Some(format!(
        "{}: not run: {}; each of these calls printed nothing and succeeded",
        script.display(),
        first_few(names.into_iter().map(str::to_owned))?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_recorders_last() {
        let lasts = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let tool = words.next().unwrap();
            StubbedCall { tool, args: words.collect(), netns: None }.lasts()
        };
        for line in
            ["iperf3 -s", "iperf -su -i 1", "tcpdump -i eth0 -w x.pcap", "ping 10.0.0.1", "netserver -D"]
        {
            assert!(lasts(line), "{line}");
        }
        for line in
            ["iperf3 -s -D", "iperf -sD", "iperf3 -c 10.0.0.1 -t 5", "ping -c 3 h", "ping -c3 h", "netserver"]
        {
            assert!(!lasts(line), "{line}");
        }
    }

    #[test]
    fn what_is_played_is_no_stub() {
        for (name, is_one) in [("uci", true), ("iperf3", true), ("tc", false), ("", false), ("/bin/x", false)]
        {
            assert_eq!(check_stub(name).is_ok(), is_one, "{name}");
        }
    }
}

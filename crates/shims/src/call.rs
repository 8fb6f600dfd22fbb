//! Calls of tools, and what is answered: words in, output and an exit code out.

use crate::blame::blamed;
use std::path::PathBuf;

/// A call of a tool by a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The name it was called by, without its directory: `tc`, `iptables-restore`.
    pub tool: String,
    /// The arguments, without the tool's name.
    pub args: Vec<String>,
    /// What it reads, where the call needs it: `-batch FILE`, `iptables-restore`, `nft -f`.
    pub stdin: Option<Vec<u8>>,
    /// The directory it was called in.
    pub cwd: PathBuf,
    /// The network namespace that it was called in (`ip netns exec NAME`); `None`: the one that the script
    /// began in.
    pub netns: Option<String>,
}

impl Call {
    /// Whether it makes an ifb that is there already, by the tool's message: `modprobe ifb` makes ifb0 and
    /// ifb1, and then nothing is missing.
    #[must_use]
    pub fn makes_loaded_ifb(&self, stderr: &str) -> bool {
        let words: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let is_ifb =
            |name: &&str| name.strip_prefix("ifb").is_some_and(|number| number.parse::<u16>().is_ok());
        self.tool == "ip"
            && words.contains(&"link")
            && words.contains(&"add")
            && words.windows(2).any(|pair| pair == ["type", "ifb"])
            && words.iter().any(is_ifb)
            && stderr.contains("File exists")
    }

    /// Whether it deleted something that was not there, by the tool's message. Scripts that first undo an
    /// earlier run do so.
    #[must_use]
    pub fn deletes_nothing(&self, stderr: &str) -> bool {
        const ABSENT: [&str; 6] = [
            NOTHING_THERE,
            "Cannot find specified qdisc on specified device",
            "Cannot delete qdisc with handle of zero",
            "Cannot find device",
            "No chain/target/match by that name",
            "Bad rule (does a matching rule exist in that chain?)",
        ];
        // What only commands that delete are answered so (Linux 6.1, tc and nft on a fresh machine).
        const ABSENT_TOO: [&str; 9] = [
            "Cannot flush filters with protocol, handle or kind set",
            "Failed to find qdisc with specified classid",
            "Parent Qdisc doesn't exists",
            "Qdisc not classful",
            "Filter with specified priority/protocol not found",
            "TC action with specified index not found",
            "No such file or directory",
            "No such process",
            "Index of deletion too big",
        ];
        // What is put down is about to go. A verb, not a flag: `ip link set X down` is answered otherwise.
        let (verb, deletes) = match self.verb() {
            Some(verb) => {
                let deletes = "delete".starts_with(verb) || verb == "flush";
                (deletes, deletes || self.args.iter().any(|word| word == "down"))
            }
            None => {
                let any = |of: &[&str]| self.args.iter().any(|word| of.contains(&word.as_str()));
                (
                    any(&["del", "delete", "flush", "-D"]),
                    any(&["del", "delete", "down", "flush", "-D", "-X", "-F"]),
                )
            }
        };
        let unloads =
            self.tool == "rmmod" || self.tool == "modprobe" && self.args.iter().any(|word| word == "-r");
        if unloads && stderr.contains("is not currently loaded") {
            return true;
        }
        deletes && ABSENT.iter().any(|text| stderr.contains(text))
            || verb && ABSENT_TOO.iter().any(|text| stderr.contains(text))
    }
}

/// How an explanation begins where a deletion fails because the place is empty: Linux's own message may say
/// that the kind or handle is another.
pub(crate) const NOTHING_THERE: &str = "Nothing is configured there";

impl Call {
    /// The verb of tc, ip or bridge, as short as it was given: the word behind the object (`show` where there
    /// is none), not a value that reads like one (`hfsc ls rate 1mbit`). `None`: another tool, or no object.
    fn verb(&self) -> Option<&str> {
        if !self.has_options() {
            return None;
        }
        let mut words = self.args.get(self.options().1..)?.iter().map(String::as_str);
        words.next()?;
        Some(words.next().unwrap_or("show")).filter(|verb| !verb.is_empty())
    }

    /// Whether options of the whole tool stand before an object: `tc -s qdisc`.
    fn has_options(&self) -> bool {
        matches!(self.tool.as_str(), "tc" | "ip" | "bridge")
    }

    /// The places of the options before the object, and that of the object.
    pub(crate) fn options(&self) -> (Vec<usize>, usize) {
        let (mut options, mut next) = (Vec::new(), 0);
        while let Some(word) = self.args.get(next).filter(|word| self.has_options() && word.starts_with('-'))
        {
            options.push(next);
            let has_value = match word.trim_start_matches('-') {
                "n" | "net" | "netns" | "b" | "batch" | "cf" | "conf" => true,
                "f" | "family" | "l" | "loops" | "rc" | "rcvbuf" => self.tool != "tc",
                _ => false,
            };
            next += 1 + usize::from(has_value);
        }
        (options, next)
    }

    /// Whether it only asks, and changes nothing: that it is answered no is no failure of the script's.
    #[must_use]
    pub fn asks(&self) -> bool {
        let words = || self.args.iter().map(String::as_str);
        match self.tool.as_str() {
            "iptables" | "ip6tables" => words().any(|word| {
                // `-nvL`
                let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
                let lists = letters.is_some_and(|letters| {
                    letters.contains(['L', 'S']) && letters.chars().all(|letter| "nvxtLS".contains(letter))
                });
                lists || matches!(word, "-C" | "--check" | "--list" | "--list-rules")
            }),
            "nft" => words().find(|word| !word.starts_with('-')) == Some("list"),
            _ => self.verb().is_some_and(|verb| ["show", "list", "ls", "lst", "get"].contains(&verb)),
        }
    }
}

/// What the tool shall print and return.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Printed to standard output.
    pub stdout: Vec<u8>,
    /// Printed to standard error.
    pub stderr: Vec<u8>,
    /// The exit code; 0 is success.
    pub code: u8,
    /// Which argument is at fault, where the tool's own reading of its words says so.
    pub at_fault: Option<usize>,
    /// What changes in the sandbox.
    pub effects: Vec<Effect>,
    /// The tool does not end on its own, as `tc monitor`: it waits until it is killed, or the script ends.
    pub waits: bool,
}

impl Reply {
    /// Silent success.
    #[must_use]
    pub fn ok() -> Self {
        Self::default()
    }

    /// Which of the call's arguments is at fault, if it failed: as it was read, or as the message names it.
    #[must_use]
    pub fn blamed(&self, args: &[String]) -> Option<usize> {
        // A warning blames no word.
        let failed = Some(self).filter(|reply| reply.code != 0)?;
        failed.at_fault.or_else(|| blamed(args, &String::from_utf8_lossy(&failed.stderr)))
    }

    /// Success with output.
    #[must_use]
    pub fn text(stdout: impl Into<Vec<u8>>) -> Self {
        Self { stdout: stdout.into(), ..Self::default() }
    }

    /// Failure with a message.
    #[must_use]
    pub fn error(code: u8, stderr: impl Into<Vec<u8>>) -> Self {
        Self { stderr: stderr.into(), code, ..Self::default() }
    }

    /// Whether tidegate cannot carry out what Linux may: no refusal of the tool's, so that a batch goes on.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.code != 0 && self.stderr.starts_with(b"tidegate: ")
    }
}

/// The handler of calls: the model of the machine.
pub trait Answer {
    /// Answers one call; the script waits.
    fn answer(&mut self, call: &Call) -> Reply;

    /// Begins a run; once its time is up, `is_over` is true, and a reply of many steps stops.
    fn begin(&mut self, is_over: Box<dyn Fn() -> bool>) {
        let _ = is_over;
    }

    /// The files under `/sys/class/net` and `/sys/module` with which the sandbox begins, given the devices
    /// that the script names.
    fn world(&mut self, devices: &[String]) -> Vec<(PathBuf, String)> {
        let _ = devices;
        Vec::new()
    }

    /// The content of files that scripts write to instead of calling a tool: before each call, and when the
    /// script has ended.
    fn files_written(&mut self, files: &[(String, String)]) {
        let _ = files;
    }
}

impl<F: FnMut(&Call) -> Reply> Answer for F {
    fn answer(&mut self, call: &Call) -> Reply {
        self(call)
    }
}

/// One change inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A file changes: the tool itself does it, as any program inside could.
    File(FileChange),
    /// A network link changes: the sandbox's first process does it, because nothing else inside may.
    Link(LinkChange),
}

/// A change of files inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// A file and its content; directories above it are made.
    Write {
        /// Absolute path.
        path: String,
        /// The whole content.
        text: String,
    },
    /// A directory goes, with what is in it.
    Remove {
        /// Absolute path.
        path: String,
    },
    /// A directory gets another name.
    Rename {
        /// Absolute path.
        from: String,
        /// Absolute path.
        to: String,
    },
}

/// A change of a network link inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkChange {
    /// A link is created.
    Create {
        /// The name of the link to create.
        name: String,
        /// Its kind, as the kernel calls it.
        kind: String,
        /// Packets of its transmit queue.
        txqlen: u32,
    },
    /// A link is deleted.
    Delete(String),
    /// A link is set up or down.
    SetUp {
        /// The name of the link.
        name: String,
        /// Up.
        up: bool,
    },
    /// A link takes packets of another length.
    Mtu {
        /// The name of the link.
        name: String,
        /// Bytes.
        bytes: u32,
    },
    /// A link gets another transmit queue.
    QueueLength {
        /// The name of the link.
        name: String,
        /// Packets.
        packets: u32,
    },
    /// A link gets another name.
    Rename {
        /// The name that the link has so far.
        name: String,
        /// The new one.
        to: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ifb_of_the_module_is_there() {
        let of = |words: &str, stderr: &str| {
            let args = words.split(' ').map(str::to_owned).collect();
            Call { tool: "ip".into(), args, stdin: None, cwd: "/".into(), netns: None }
                .makes_loaded_ifb(stderr)
        };
        let exists = "RTNETLINK answers: File exists";
        assert!(of("link add ifb0 type ifb", exists) && of("link add dev ifb1 up type ifb", exists));
        assert!(!of("link add ifb0 type ifb", "RTNETLINK answers: Operation not permitted"));
        assert!(!of("link add ifb0 type dummy", exists) && !of("link add up0 type ifb", exists));
        assert!(!of("link set ifb0 type ifb", exists));
    }

    #[test]
    fn what_was_not_there_need_not_be_deleted() {
        let rows = [
            ("tc", "qdisc del dev eth0 root", "Error: Cannot delete qdisc with handle of zero.", true),
            ("tc", "filter del dev eth0 parent 1:", "Error: Parent Qdisc doesn't exists.", true),
            ("tc", "filter add dev eth0 parent 1: matchall", "Error: Parent Qdisc doesn't exists.", false),
            ("tc", "class del dev eth0 classid 1:1", "RTNETLINK answers: No such file or directory", true),
            (
                "tc",
                "class add dev eth0 classid 1:1 drr",
                "RTNETLINK answers: No such file or directory",
                false,
            ),
            // There is a qdisc, with another handle: the machine is not as the script wants it.
            ("tc", "qdisc del dev eth0 root handle 2:", "Error: Invalid handle.", false),
            ("tc", "class del dev eth0 classid 1:1", "RTNETLINK answers: Device or resource busy", false),
            ("ip", "route del 10.0.0.0/24", "RTNETLINK answers: No such process", true),
            ("ip", "link set ifb0 down", "Cannot find device \"ifb0\"", true),
            ("ip", "link set ifb0 up", "Cannot find device \"ifb0\"", false),
            (
                "nft",
                "delete table inet qos",
                "Error: Could not process rule: No such file or directory",
                true,
            ),
            (
                "nft",
                "add rule inet qos x accept",
                "Error: Could not process rule: No such file or directory",
                false,
            ),
            ("iptables", "-t mangle -D PREROUTING 1", "iptables: Index of deletion too big.", true),
            ("modprobe", "-r ifb", "modprobe: ERROR: Module ifb is not currently loaded", true),
            ("tc", "class add dev eth0 parent 1: htb rate del", "No such file or directory", false),
            ("tc", "-s q d dev eth0 root", "Cannot delete qdisc with handle of zero", true),
        ];
        for (tool, words, stderr, expected) in rows {
            let args = words.split(' ').map(str::to_owned).collect();
            let call = Call { tool: tool.into(), args, stdin: None, cwd: "/".into(), netns: None };
            assert_eq!(call.deletes_nothing(stderr), expected, "{tool} {words}");
        }
    }

    #[test]
    fn questions_change_nothing() {
        let rows = [
            ("iptables", "-t nat -C POSTROUTING -o eth0 -j MASQUERADE", true),
            ("iptables", "-t mangle -nvL FORWARD", true),
            ("ip6tables", "--list-rules", true),
            ("iptables", "-t nat -A POSTROUTING -j SNAT", false),
            ("nft", "-a list table inet qos", true),
            ("nft", "add table inet list", false),
            ("ip", "link show ifb5", true),
            ("ip", "link add ifb5 type ifb", false),
            ("tc", "-s qdisc ls dev eth0", true),
            ("tc", "qdisc add dev eth0 root fq", false),
            ("tc", "-n ns1 -d qdisc show", true),
            ("ip", "-f inet addr ls", true),
            ("ip", "addr", true),
            ("tc", "class add dev eth0 parent 1:2 classid 1:10 hfsc ls rate 5mbit", false),
            ("tc", "filter add dev eth0 parent 1: u32 match ip dport show 0xffff", false),
            ("modprobe", "list", false),
        ];
        for (tool, words, expected) in rows {
            let args = words.split(' ').map(str::to_owned).collect();
            let call = Call { tool: tool.into(), args, stdin: None, cwd: "/".into(), netns: None };
            assert_eq!(call.asks(), expected, "{tool} {words}");
        }
    }
}

//! Calls of tools, and what is answered: words in, output and an exit code out.

use std::path::PathBuf;

/// A call of a tool by a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The name it was called by, without its directory: `tc`, `iptables-restore`.
    pub tool: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What it was given to read, where the call asks for that: `-batch FILE`, `iptables-restore`, `nft -f`.
    pub stdin: Option<Vec<u8>>,
    /// The directory it was called in.
    pub cwd: PathBuf,
}

impl Call {
    /// Did it ask for something to go that was not there, by what the tool said? Scripts that first undo what an earlier run
    /// left do so.
    #[must_use]
    pub fn deletes_nothing(&self, stderr: &str) -> bool {
        const ABSENT: [&str; 5] = [
            "Cannot find specified qdisc on specified device",
            "Cannot delete qdisc with handle of zero",
            "Cannot find device",
            "No chain/target/match by that name",
            "Bad rule (does a matching rule exist in that chain?)",
        ];
        // tc and ip take `delete` as short as it gets; what is put down is about to go.
        let short = ["tc", "ip"].contains(&self.tool.as_str());
        let deletes = self.args.iter().any(|word| {
            matches!(word.as_str(), "del" | "delete" | "down" | "flush" | "-D" | "-X" | "-F")
                || short && !word.is_empty() && "delete".starts_with(word.as_str())
        });
        let unloads = self.tool == "rmmod" || self.tool == "modprobe" && self.args.iter().any(|word| word == "-r");
        if unloads && stderr.contains("is not currently loaded") {
            return true;
        }
        deletes && ABSENT.iter().any(|text| stderr.contains(text))
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
    /// What changes in the sandbox.
    pub effects: Vec<Effect>,
    /// The tool does not end by itself, as `tc monitor`: it waits until it is killed, or the script ends.
    pub waits: bool,
}

impl Reply {
    /// Silent success.
    #[must_use]
    pub fn ok() -> Self {
        Self::default()
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
}

/// Who answers the calls: the model of the machine.
pub trait Answer {
    /// Answers one call; the script waits.
    fn answer(&mut self, call: &Call) -> Reply;

    /// A run begins; once its time is up, `is_over` says so, and an answer of many steps stops.
    fn begin(&mut self, is_over: Box<dyn Fn() -> bool>) {
        let _ = is_over;
    }

    /// The files under `/sys/class/net` and `/sys/module` with which the sandbox begins, given the devices that the
    /// script names.
    fn world(&mut self, devices: &[String]) -> Vec<(PathBuf, String)> {
        let _ = devices;
        Vec::new()
    }

    /// What stands in files that scripts write to instead of calling a tool: before each call, and when the script has
    /// ended.
    fn told(&mut self, files: &[(String, String)]) {
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

#![forbid(unsafe_code)]
//! The tools that a script calls, answered from the model machine as the real ones would answer.
//!
//! A [`Machine`] is what scripts configure; a [`ToolShim`] is its `tc`, `ip`, `iptables`, `nft`, `sysctl` and
//! company for as long as a command runs. Nothing here reads a clock, a file or the network.
//!
//! ```
//! use tidegate_gateway::DeviceSpec;
//! use tidegate_packet::{Pool, Seeded};
//! use tidegate_shims::Machine;
//!
//! let mut machine = Machine::new(["eth0"], DeviceSpec::default());
//! let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
//! let mut tc = |line: &str| {
//!     let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
//!     machine.shim(&mut pool, &mut draws).tc(&words, None)
//! };
//! assert_eq!(tc("qdisc add dev eth0 root handle 1: tbf rate 5mbit burst 10k latency 20ms").code, 0);
//! let listing = String::from_utf8(tc("qdisc show dev eth0").stdout).unwrap();
//! assert_eq!(listing, "qdisc tbf 1: root refcnt 2 rate 5Mbit burst 10Kb lat 20ms \n");
//! // A refusal has tc's words and exit code.
//! let refused = tc("qdisc add dev eth0 root handle 2: pfifo");
//! assert!(refused.stderr.starts_with(b"Error: NLM_F_REPLACE needed to override.") && refused.code == 2);
//! ```

mod batch;
mod blame;
mod call;
mod caveat;
mod containers;
mod ethtool;
mod explain;
mod host;
mod ifconfig;
mod ip;
mod iptables;
mod machine;
mod missing;
mod modules;
mod namespaces;
mod nft;
mod shim;
mod sysctl;
mod tc;
mod tools;
mod wiring;
mod world;

pub use blame::blamed;
pub use call::{Answer, Call, Effect, FileChange, LinkChange, Reply};
pub use host::Host;
pub use machine::{Carried, Machine};
pub use namespaces::{Namespace, Namespaces, run_in_namespace};
pub use shim::ToolShim;
pub use sysctl::sysctl_path;
pub use tidegate_syntax::nearest;
pub use tidegate_syntax::tc::refusal_lines;
pub use tools::{TOOLS, TRAFFIC_TOOLS};
pub use wiring::{WireEnd, WiredDevice, WiredMachine, Wiring};

use std::path::PathBuf;
use tidegate_policy::Op;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

impl ToolShim<'_> {
    /// `tc` with these words; `stdin` is a batch.
    pub fn tc(&mut self, words: &[String], stdin: Option<&[u8]>) -> Reply {
        tc::answer(self, words, stdin)
    }

    /// The devices of the machine, as ip shows them.
    pub fn links(&mut self) -> Vec<tidegate_syntax::ip::ShownLink> {
        world::meet_all(self);
        ip::links(self, &tidegate_syntax::ip::LinkSelector::default())
    }
}

impl Answer for ToolShim<'_> {
    fn answer(&mut self, call: &Call) -> Reply {
        let mut reply = match call.tool.as_str() {
            "tc" => self.tc(&call.args, call.stdin.as_deref()),
            tool if tool.starts_with("iptables") || tool.starts_with("ip6tables") => self.iptables(call),
            "nft" => nft::answer(self, call),
            "ip" => ip::answer(self, &call.args, call.stdin.as_deref()),
            "ifconfig" => ifconfig::answer(self, &call.args),
            "ethtool" => ethtool::answer(self, &call.args),
            "modprobe" | "insmod" | "rmmod" | "lsmod" => modules::answer(self, &call.tool, &call.args),
            "sysctl" => sysctl::answer(self, &call.args, call.stdin.as_deref()),
            tool => unknown(tool),
        };
        reply.effects = std::mem::take(&mut self.effects);
        reply
    }

    fn begin(&mut self, is_over: Box<dyn Fn() -> bool>) {
        self.is_over = Some(is_over);
    }

    fn world(&mut self, devices: &[String]) -> Vec<(PathBuf, String)> {
        world::begin(self, devices)
    }

    fn files_written(&mut self, files: &[(String, String)]) {
        world::apply_written_files(self, files);
    }
}

impl ToolShim<'_> {
    /// iptables and its company; what a -restore did is noted rule by rule.
    fn iptables(&mut self, call: &Call) -> Reply {
        let before = self.machine.log.len();
        let mut lines = Vec::new();
        // Both backends have one program here.
        let tool = call.tool.replace("-legacy-", "-").replace("-nft-", "-");
        let reply = iptables::answer(self, &Call { tool, ..call.clone() }, &mut lines);
        let done: Vec<Op> = self.machine.log[before..].to_vec();
        if call.tool.contains("restore") {
            for (at, (op, line)) in done.iter().zip(lines).enumerate() {
                if let Some((tool, words)) = machine::iptables_words(op) {
                    self.line = Some(line).filter(|line| *line > 0);
                    self.did(tool, &words);
                    // All of the file was carried out at once.
                    if let Some(carried) = self.machine.carried.last_mut() {
                        carried.ops = before + at + 1;
                    }
                }
            }
            self.line = None;
        } else if !done.is_empty() {
            self.did(&call.tool, &call.args);
        }
        reply
    }
}

fn unknown(tool: &str) -> Reply {
    Reply::error(1, format!("{tool}: tidegate: this tool is not supported in this version\n"))
}

#![forbid(unsafe_code)]
//! The tools that a script calls, answered from the model machine as the real ones would answer.
//!
//! A [`Machine`] is what scripts configure; a [`ToolShim`] is its `tc`, `ip`, `iptables`, `nft`, `sysctl` and company
//! for as long as a command runs. Nothing here reads a clock, a file or the network.
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
mod call;
mod doubt;
mod ethtool;
mod explain;
mod host;
mod ifconfig;
mod ip;
mod iptables;
mod machine;
mod modules;
mod nft;
mod sysctl;
mod tc;
mod tools;
mod world;

pub use call::{Answer, Call, Effect, FileChange, LinkChange, Reply};
pub use host::Host;
pub use machine::{Carried, Machine};
pub use sysctl::sysctl_path;
pub use tidegate_syntax::tc::refusal_lines;
pub use tools::TOOLS;

use std::path::PathBuf;
use tidegate_gateway::World;
use tidegate_packet::{Draws, Pool};
use tidegate_policy::{Op, TcError};
use tidegate_syntax::Refusal;

/// The tools of a machine, with what carrying out an operation needs: see [`Machine::shim`].
///
/// ```
/// # use tidegate_gateway::DeviceSpec;
/// # use tidegate_packet::{Pool, Seeded};
/// use tidegate_shims::{Answer, Call, Machine};
///
/// let mut machine = Machine::for_script(["eth0"]);
/// let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
/// let words = ["link", "add", "ifb0", "type", "ifb"].map(str::to_owned);
/// let call = Call { tool: "ip".into(), args: words.to_vec(), stdin: None, cwd: "/".into() };
/// assert_eq!(machine.shim(&mut pool, &mut draws).answer(&call).code, 0);
/// assert!(machine.gateway.device("ifb0").is_some());
/// ```
pub struct ToolShim<'m> {
    machine: &'m mut Machine,
    pool: &'m mut Pool,
    draws: &'m mut dyn Draws,
    /// What the call under way changes in the sandbox.
    effects: Vec<Effect>,
    /// The line under way of what the call was given to read: a batch, a file of rules.
    line: Option<usize>,
    /// Says whether the time of the run is up: work of many steps stops then.
    is_over: Option<Box<dyn Fn() -> bool>>,
}

impl ToolShim<'_> {
    /// Carries out an operation.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub fn apply(&mut self, op: Op) -> Result<Option<String>, TcError> {
        let world = World { now: self.machine.now, pool: self.pool, draws: self.draws };
        let warning = self.machine.gateway.apply(world, &op)?;
        world::follow(self, &op);
        if let Op::Class(class) = &op {
            self.machine.classes_made.insert((class.dev.clone(), class.classid.minor()));
        }
        self.machine.log.push(op);
        Ok(warning)
    }

    /// Is the time of the run up?
    fn is_late(&self) -> bool {
        self.is_over.as_ref().is_some_and(|is_over| is_over())
    }

    /// `tc` with these words; `stdin` is a batch.
    pub fn tc(&mut self, words: &[String], stdin: Option<&[u8]>) -> Reply {
        tc::answer(self, words, stdin)
    }

    /// The devices of the machine, as ip shows them.
    pub fn links(&mut self) -> Vec<tidegate_syntax::ip::ShownLink> {
        world::meet_all(self);
        ip::links(self, &tidegate_syntax::ip::Which::default())
    }

    /// How many operations and how many commands were carried out so far.
    pub fn counts(&self) -> (usize, usize) {
        (self.machine.log.len(), self.machine.carried.len())
    }

    /// Gives commands that were carried out other lines: of what the lines of their input come from.
    pub fn relabel(&mut self, carried: std::ops::Range<usize>, lines: &[usize]) {
        for one in self.machine.carried.get_mut(carried).unwrap_or_default() {
            one.line = one.line.map(|line| lines.get(line - 1).copied().unwrap_or(line));
        }
    }

    /// Notes a command that was carried out, as it would be written again.
    fn did(&mut self, tool: &str, words: &[String]) {
        let ops = self.machine.log.len();
        let mut all = vec![tool.to_owned()];
        all.extend(words.iter().cloned());
        self.machine.carried.push(Carried { words: all, ops, line: self.line });
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

    fn told(&mut self, files: &[(String, String)]) {
        world::told(self, files);
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
    Reply::error(
        1,
        format!(
            "{tool}: tidegate does not play this tool yet; what the command would have done is missing from the policy\n"
        ),
    )
}

/// A refusal as the tool prints it, our better explanation after its own words.
fn refused(shim: &ToolShim<'_>, tool: &str, refusal: Refusal) -> Reply {
    let mut text = refusal.stderr;
    let missing = text.starts_with("Cannot find device");
    let remedy = refusal.remedy.or_else(|| {
        missing.then(|| "There is no such device on this machine; make it first (ip link add … type …, modprobe ifb), or correct the name.".into())
    });
    if let Some(remedy) = remedy.filter(|_| shim.machine.grows) {
        text.push_str(&format!("{tool}: {remedy}\n"));
    }
    Reply::error(refusal.code, text)
}

//! The tools that a script calls, answered from the model machine as the real ones would answer.

mod explain;
mod ip;
mod iptables;
mod tc;

use crate::capture::{Answer, Call, Reply, harmless};
use tidegate_gateway::{DeviceSpec, Gateway, World};
use tidegate_lang::{Device, Env, Refusal};
use tidegate_packet::{Draws, Pool, Time};
use tidegate_policy::{Op, TcError};

/// A machine that scripts configure: the gateway, and the present on it.
pub struct Machine {
    /// The model.
    pub gateway: Gateway,
    /// When the next command runs.
    pub now: Time,
    /// What was carried out, in order.
    pub log: Vec<Op>,
    /// What the kernel would have written to its log: its warnings.
    pub kernel_log: Vec<String>,
    /// A script is being taken in: devices that a command names come into being, and refusals are explained after the tool's own words.
    pub grows: bool,
}

impl Machine {
    /// A machine with these devices.
    pub fn new<'n>(devices: impl IntoIterator<Item = &'n str>, spec: DeviceSpec) -> Machine {
        let mut gateway = Gateway::new();
        for name in devices {
            gateway.add_device(name, spec);
        }
        Machine { gateway, now: Time::default(), log: Vec::new(), kernel_log: Vec::new(), grows: false }
    }

    /// The machine of the recorded runs: `link0`, and three more like it.
    pub fn recorded(spec: DeviceSpec) -> Machine {
        Machine::new(["link0", "link1", "link2", "link3"], spec)
    }

    /// The tools, for as long as a command runs.
    pub fn face<'m>(&'m mut self, pool: &'m mut Pool, draws: &'m mut dyn Draws) -> Face<'m> {
        Face { machine: self, pool, draws }
    }

    fn env(&self) -> Env {
        let device =
            |id| Device { name: self.gateway.name(id).to_owned(), speed_mbit: self.gateway.spec(id).speed_mbit };
        // Where devices come into being, any name will do.
        Env { devices: (!self.grows).then(|| self.gateway.devices().map(device).collect()) }
    }
}

/// The tools of a machine, with what carrying out an operation needs.
pub struct Face<'m> {
    machine: &'m mut Machine,
    pool: &'m mut Pool,
    draws: &'m mut dyn Draws,
}

impl Face<'_> {
    /// Carries out an operation.
    ///
    /// # Errors
    /// As the kernel refuses.
    pub fn apply(&mut self, op: Op) -> Result<Option<String>, TcError> {
        if self.machine.grows
            && let Some(name) = device_of(&op)
        {
            self.machine.gateway.add_device(name, DeviceSpec::default());
        }
        let world = World { now: self.machine.now, pool: self.pool, draws: self.draws };
        let warning = self.machine.gateway.apply(world, &op)?;
        self.machine.log.push(op);
        Ok(warning)
    }

    /// `tc` with these words; `stdin` is a batch.
    pub fn tc(&mut self, words: &[String], stdin: Option<&[u8]>) -> Reply {
        tc::answer(self, words, stdin)
    }
}

impl Answer for Face<'_> {
    fn answer(&mut self, call: &Call) -> Reply {
        match call.tool.as_str() {
            "tc" => self.tc(&call.args, call.stdin.as_deref()),
            tool if tool.starts_with("iptables") || tool.starts_with("ip6tables") => iptables::answer(self, call),
            "ip" => ip::answer(self, call),
            "ifconfig" => ip::ifconfig(self, call),
            tool => harmless(call).unwrap_or_else(|| unknown(tool)),
        }
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
fn refused(face: &Face<'_>, tool: &str, refusal: Refusal) -> Reply {
    let mut text = refusal.stderr;
    if let Some(remedy) = refusal.remedy.filter(|_| face.machine.grows) {
        text.push_str(&format!("{tool}: {remedy}\n"));
    }
    Reply::error(refusal.code, text)
}

fn device_of(op: &Op) -> Option<&str> {
    match op {
        Op::Qdisc(op) => Some(&op.dev),
        Op::Class(op) => Some(&op.dev),
        Op::Filter(op) => Some(&op.dev),
        Op::TxQueueLen { dev, .. } | Op::Mtu { dev, .. } => Some(dev),
        // A link that is deleted or renamed must be there, and one that is made must not.
        Op::Netfilter(_) | Op::Link(_) => None,
    }
}

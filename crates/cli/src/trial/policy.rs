//! From a script to the operations it comes to.

use super::options::Options;
use anyhow::bail;
use std::sync::OnceLock;
use tidegate_capture::{Exit, Outcome};
use tidegate_gateway::{DeviceKind, DeviceSpec, Gateway};
use tidegate_insight::{CARRIED_OUT_AT, Given, Reached, Reading};
use tidegate_loader::LoadedPolicy;
use tidegate_packet::{Dissector, Handle, Pool, Seeded};
use tidegate_policy::netfilter::{Condition, NfCommand, Rule};
use tidegate_policy::{LinkKind, Op, Verb};
use tidegate_shims::Machine;

/// What a script configured.
#[derive(Default)]
pub(crate) struct Policy {
    /// The operations that were carried out, in order.
    pub(crate) ops: Vec<Op>,
    /// The devices of the machine.
    pub(crate) devices: Vec<String>,
    /// The device whose policy governs the way to the modem.
    pub(crate) wan: String,
    /// The device that it stands on, if it does.
    pub(crate) beneath: Option<String>,
    /// The device towards the LAN.
    pub(crate) lan: String,
    /// Devices that give back what is redirected to them.
    pub(crate) returning: Vec<String>,
    /// How far the machine looks into packets.
    pub(crate) dissector: Dissector,
    /// Commands the script issued.
    pub(crate) commands: usize,
    /// What the reader should know about the capture.
    pub(crate) notes: Vec<String>,
    /// The rules whose marks no packet keeps, once somebody asked.
    pub(crate) overwritten: OnceLock<Vec<Rule>>,
}

impl Policy {
    /// Has it rules for what the machine itself sends, from a TCP port? The port of the first.
    pub(super) fn server_port(&self) -> Option<u16> {
        self.ops.iter().find_map(|op| {
            let Op::Netfilter(nf) = op else { return None };
            let (NfCommand::Append(chain, rule) | NfCommand::Insert(chain, _, rule)) = &nf.command else { return None };
            if !chain.eq_ignore_ascii_case("output") {
                return None;
            }
            rule.matches.iter().find_map(|m| match &m.what {
                Condition::SourcePort(range) if !m.not => Some(range.0),
                Condition::SourcePorts(ranges) if !m.not => ranges.first().map(|(low, _)| *low),
                _ => None,
            })
        })
    }

    /// A machine with this policy, or without any.
    pub(crate) fn machine(&self, with_policy: bool, seed: u64) -> Machine {
        let mut machine = Machine::for_script(self.devices.iter().map(String::as_str));
        machine.now = CARRIED_OUT_AT;
        machine.gateway.set_dissector(self.dissector);
        if with_policy {
            let (mut pool, mut draws) = (Pool::new(0), Seeded::new(seed));
            let mut shim = machine.shim(&mut pool, &mut draws);
            for op in &self.ops {
                // It was carried out once, so it will be again; were it refused, the table of classes would show it.
                let _ = shim.apply(op.clone());
            }
        }
        machine
    }
}

impl Policy {
    /// Does every packet lose what a rule writes on it before it comes to a queue?
    pub(super) fn is_overwritten(&self, rule: &Rule) -> bool {
        let find = || {
            let reading = self.reading();
            Reached::of(&reading).map_or(Vec::new(), |mut reached| reached.overwritten(&reading))
        };
        self.overwritten.get_or_init(find).contains(rule)
    }

    /// The same for those who ask what it means: without the files, which they need not name.
    pub(super) fn reading(&self) -> Reading {
        let spec = |name: &String| (name.clone(), Policy::device_spec(name));
        Reading::new(Given {
            sources: Vec::new(),
            steps: Vec::new(),
            ops: self.ops.clone(),
            devices: self.devices.iter().map(spec).collect(),
            down: Vec::new(),
            dissector: self.dissector,
            kernel_log: Vec::new(),
            scripts: false,
        })
    }
}

impl Policy {
    /// What a device of this name is taken for.
    pub(crate) fn device_spec(name: &str) -> DeviceSpec {
        DeviceSpec::of(&LinkKind::of_name(name))
    }

    /// The transmit ring of the device before the modem, if the script changed it.
    pub(super) fn asked_ring(&self, gateway: &Gateway, with_policy: bool) -> Option<u32> {
        let name = self.beneath.as_ref().unwrap_or(&self.wan);
        let ring = gateway.spec(gateway.device(name)?).ring;
        (with_policy && ring != Policy::device_spec(name).ring).then_some(ring)
    }

    /// Puts the WAN device on the one beneath.
    pub(crate) fn stack(&self, gateway: &mut Gateway) {
        let lower = self.beneath.as_deref().and_then(|name| gateway.device(name));
        if let (Some(upper), Some(lower)) = (gateway.device(&self.wan), lower) {
            gateway.stack_by_kind(upper, lower);
        }
    }
}

/// Runs the script and gathers what it configured.
///
/// # Errors
/// When it cannot be run, does not end, ends with an error, or issues a command that fails (unless told to go on).
pub(super) fn take_in(options: &Options) -> anyhow::Result<Policy> {
    let taken = tidegate_loader::read(std::slice::from_ref(&options.script), &options.how_to_read())?;
    if let Some(nothing) = taken.nothing_found() {
        taken.troubles().for_each(|trouble| eprintln!("{trouble}"));
        bail!("{nothing}");
    }
    taken.outcomes.iter().try_for_each(|outcome| judge(outcome, options))?;
    if let Some(dev) = &options.dev {
        taken.must_concern(dev)?;
    }
    of_taken(taken, options.dev.as_deref(), options.over.as_ref())
}

/// What was taken in, with the devices that lead to the modem and to the LAN; `dev` leads to the modem, or the upper one of `over`, which
/// stands on the lower, if that was said.
///
/// # Errors
/// When nobody says, and several devices are configured or none.
pub(crate) fn of_taken(
    taken: LoadedPolicy,
    dev: Option<&str>,
    over: Option<&(String, String)>,
) -> anyhow::Result<Policy> {
    let LoadedPolicy { machine, outcomes, wan: said, lan: mut towards, .. } = taken;
    let kind = |name: &str| machine.gateway.device(name).map(|id| machine.gateway.spec(id).kind);
    let mut notes: Vec<String> = outcomes.iter().flat_map(|outcome| &outcome.notes).cloned().collect();
    refuse_dead_redirects(&machine)?;
    let wan = match (dev, over) {
        (Some(dev), _) => dev.to_owned(),
        (None, Some((upper, _))) => upper.clone(),
        (None, None) => match said {
            Some(wan) => wan,
            // What a script made to try something out, and took away again, is not there any more.
            None => match wan_of(&machine.log, |name| kind(name).is_none_or(|kind| kind == DeviceKind::Ifb))? {
                name if is_lan(&name) => {
                    notes.push(format!(
                        "{name} is taken for the device towards the LAN, by its name, so that downloads leave by it; --dev {name} takes it \
                         for the one that leads to the modem"
                    ));
                    towards = Some(name);
                    UNNAMED_WAN.to_owned()
                }
                name => name,
            },
        },
    };
    let beneath = over.map(|(_, lower)| lower.clone());
    let mut devices: Vec<String> = machine.gateway.devices().map(|id| machine.gateway.name(id).to_owned()).collect();
    for name in std::iter::once(&wan).chain(&beneath) {
        if !devices.contains(name) {
            devices.push(name.clone());
        }
    }
    let returning: Vec<String> = devices.iter().filter(|name| kind(name) == Some(DeviceKind::Ifb)).cloned().collect();
    let lan = devices
        .iter()
        .find(|name| **name != wan && Some(*name) != beneath.as_ref() && kind(name) == Some(DeviceKind::Ethernet));
    let lan = towards.or_else(|| lan.cloned()).unwrap_or_else(|| "lan0".to_owned());
    let warned = machine.kernel_log.iter().map(|line| format!("the kernel would warn: {line}"));
    notes.extend(warned);
    let dissector = machine.gateway.dissector();
    let commands = outcomes.iter().map(|outcome| outcome.calls.len()).sum();
    let overwritten = OnceLock::new();
    Ok(Policy { ops: machine.log, devices, wan, beneath, lan, returning, dissector, commands, notes, overwritten })
}

/// Says what went wrong in the script; an error unless it may go on.
fn judge(outcome: &Outcome, options: &Options) -> anyhow::Result<()> {
    for trouble in outcome.troubles.iter().filter(|trouble| !trouble.idle) {
        eprintln!("{trouble}");
    }
    let how = match &outcome.exit {
        Exit::Code(0) if outcome.troubles.iter().all(|trouble| trouble.idle) => return Ok(()),
        Exit::Code(0) => "a command in it failed",
        Exit::Code(_) | Exit::Signal(_) => "it ended with an error",
        // Half a policy is another policy: not even --keep-going simulates that.
        _ => bail!("it did not come to its end, so nothing was simulated"),
    };
    if options.keep_going {
        eprintln!("tidegate try: {how}; going on with what was understood");
        return Ok(());
    }
    bail!("{how}, so nothing was simulated (--keep-going does it with what was understood)")
}

/// What the device to the modem is called where the policy names only the one towards the LAN.
const UNNAMED_WAN: &str = "wan0";

/// Does a device's name say that it leads to the LAN: a bridge, or OpenWrt's `lan1`?
fn is_lan(name: &str) -> bool {
    LinkKind::of_name(name) == LinkKind::Bridge || ["lan", "br-"].iter().any(|prefix| name.starts_with(prefix))
}

/// Refuses a policy that redirects packets to a device which is down: the kernel drops them, all of them.
fn refuse_dead_redirects(machine: &Machine) -> anyhow::Result<()> {
    let down: Vec<&str> = machine.host.down().collect();
    let mut targets = machine.log.iter().filter_map(|op| match op {
        Op::Filter(filter) => {
            filter.actions.iter().filter_map(|action| action.act.redirects_to()).find(|name| down.contains(name))
        }
        _ => None,
    });
    match targets.next() {
        Some(name) => bail!(
            "packets are redirected to {name}, which is down, and so dropped: nothing would come through. Set it up in the script: \
             ip link set dev {name} up"
        ),
        None => Ok(()),
    }
}

/// The device on whose root the script hangs a qdisc, those that give back (ifb) not counted; where there is none, the
/// one whose arriving packets it governs.
fn wan_of(ops: &[Op], gives_back: impl Fn(&str) -> bool) -> anyhow::Result<String> {
    let at = |hook: &dyn Fn(Handle) -> bool| {
        let hung = ops.iter().filter_map(|op| match op {
            Op::Qdisc(q) if q.verb != Verb::Delete && hook(q.parent) && !gives_back(&q.dev) => Some(q.dev.as_str()),
            _ => None,
        });
        let mut names: Vec<&str> = hung.collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let mut names = at(&|parent| parent == Handle::ROOT);
    if names.is_empty() {
        names = at(&|parent| parent == Handle::INGRESS);
    }
    match names.as_slice() {
        [] => bail!("{}", nothing_to_try(ops)),
        [one] => Ok((*one).to_owned()),
        several => {
            bail!("it configures several devices ({}); say which one leads to the modem with --dev", several.join(", "))
        }
    }
}

/// Why no device leads to the modem.
fn nothing_to_try(ops: &[Op]) -> String {
    let mut given: Vec<&str> = ops
        .iter()
        .filter_map(|op| match op {
            Op::Qdisc(q) if q.verb != Verb::Delete && q.parent == Handle::ROOT => Some(q.dev.as_str()),
            _ => None,
        })
        .collect();
    given.sort_unstable();
    given.dedup();
    if given.is_empty() {
        return "it hangs no qdisc at the root of any device, so there is nothing to try".to_owned();
    }
    format!(
        "it hangs a qdisc at the root of {} only: what passes there comes from another device, by `action mirred egress redirect`, and \
         goes back to it. Give that device a qdisc or a filter in the script, or name the one that leads to the modem with --dev",
        given.join(", ")
    )
}

//! What a policy wants of this computer's kernel: devices, what is installed on each, and netfilter's rules.

use serde_json::Value;
use std::collections::BTreeSet;
use tidegate_daemon::device_spec;
use tidegate_daemon::{ErrorContext, Result, bail, ensure, error};
use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_inspect::{CARRIED_OUT_AT, PolicyModel};
use tidegate_loader::{ClassNames, ReadOptions};
use tidegate_packet::{Handle, Pool, Seeded};
use tidegate_plan::Item;
use tidegate_plan::rebind::{names_on_device, on_device, real_devices};
use tidegate_policy::dump::Installed;
use tidegate_policy::netfilter::RuleTable;
use tidegate_policy::{LinkDriver, LinkOp, Op, QdiscOp, SharedBlocks};
use tidegate_sys::link_monitor::{self, LinkInfo};
use tidegate_sys::netlink::LinkUpdate;

use crate::notice::{Notice, NoticeHandler};
use crate::options::ApplyOptions;

/// A policy that is to be applied: its operations, and what they come to on this computer's devices.
pub struct Wanted {
    /// What was read.
    pub(crate) reading: PolicyModel,
    /// What it comes to, on the device that it is bound to.
    pub(crate) log: Vec<Op>,
    /// The commands that made it, literally.
    pub(crate) commands: Vec<Vec<String>>,
    /// What it calls its classes, on the devices that it is bound to.
    pub(crate) names: ClassNames,
    /// The devices that it is about: those that lead nowhere else first.
    pub(crate) devices: Vec<String>,
    /// Those of them that must be made.
    pub(crate) made: Vec<(String, LinkDriver)>,
    /// What else of links is set.
    pub(crate) settings: Vec<(String, LinkUpdate)>,
    /// The state to install on each of the devices.
    pub(crate) installed: Vec<Installed>,
    /// The links of this computer when it was read.
    pub(crate) links: Vec<LinkInfo>,
    /// netfilter's tables with rules in them.
    pub(crate) tables: Vec<RuleTable>,
    /// Its queues depend on what the kernel has.
    pub(crate) leaves_queues_open: bool,
}

impl Wanted {
    /// The devices that it is about, those that lead nowhere else first.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// Reads a policy for this computer, with the links that it has now, and for a kernel that has a cake or
    /// has none. Its scripts run in a sandbox; nothing is changed.
    ///
    /// # Errors
    /// It cannot be read, or requests what is not there or not set by us.
    pub(crate) fn read(
        options: &ApplyOptions,
        without_cake: bool,
        report: NoticeHandler<'_>,
    ) -> Result<Wanted> {
        let links = links()?;
        let how = ReadOptions {
            args: options.args.clone(),
            sandbox: options.sandbox.clone(),
            without_cake,
            ..ReadOptions::default()
        };
        let taken = tidegate_loader::read(&options.files, &how)?;
        let leaves_queues_open = taken.leaves_queues_open;
        for warning in taken.warnings() {
            report(Notice::Policy(warning));
        }
        taken.must_be_whole().map_err(|half| error!(Policy, "nothing is applied: {half}"))?;
        let reading = taken.reading();
        let commands = taken.machine.carried.into_iter().map(|carried| carried.words).collect();
        let log = taken.machine.log;
        let mut names = taken.names;
        let log = match &options.dev {
            Some(dev) => {
                names = names_on_device(&names, &log, dev);
                on_device(&log, dev)?
            }
            None => log,
        };
        let wanted = Wanted::of(reading, commands, log, links, report)?;
        Ok(Wanted { names, leaves_queues_open, ..wanted })
    }

    fn of(
        reading: PolicyModel,
        commands: Vec<Vec<String>>,
        log: Vec<Op>,
        links: Vec<LinkInfo>,
        report: NoticeHandler<'_>,
    ) -> Result<Wanted> {
        let made = to_be_made(&log, &links)?;
        let there = |name: &String| links.iter().any(|link| link.name == *name);
        if let Some(name) = real_devices(&log).into_iter().find(|name| !there(name)) {
            let names: Vec<&str> =
                links.iter().map(|link| link.name.as_str()).filter(|name| *name != "lo").collect();
            ensure!(
                !names.is_empty(),
                Device,
                "there is no device `{name}` here, nor any other but the loopback device"
            );
            bail!(
                Device,
                "there is no device `{name}` here; there are {}. --dev binds a policy to another",
                names.join(", ")
            );
        }
        let devices = devices(&log);
        ensure!(
            !devices.is_empty() || log.iter().any(|op| matches!(op, Op::Netfilter(_))),
            Policy,
            "the policy queues nothing on any device and sets no marks; there is nothing to apply"
        );
        let mut machine = machine(&log, &links, &made)?;
        let installed =
            devices.iter().map(|dev| tidegate_plan::installed(&mut machine, CARRIED_OUT_AT, dev)).collect();
        let tables = tidegate_plan::rule_tables(&machine);
        Ok(Wanted {
            reading,
            commands,
            names: ClassNames::new(),
            leaves_queues_open: false,
            settings: settings(&log, report)?,
            log,
            links,
            devices,
            made,
            installed,
            tables,
        })
    }

    /// How many rules of netfilter it has.
    pub(crate) fn rules(&self) -> usize {
        self.tables.iter().flat_map(|table| &table.chains).map(|chain| chain.rules.len()).sum()
    }

    /// What a computer has on this policy's devices that runs no policy, and its tables of rules.
    pub(crate) fn nothing(&self) -> (Vec<Installed>, Vec<RuleTable>) {
        (vec![Installed::default(); self.devices.len()], Vec::new())
    }

    /// What a daemon has on this policy's devices, and its tables of rules. `policy`: its reply to a request
    /// for the policy that it runs.
    ///
    /// # Errors
    /// Its answer has no commands that come to anything here.
    pub(crate) fn running(&self, policy: &Value) -> Result<(Vec<Installed>, Vec<RuleTable>)> {
        let commands: Vec<Vec<String>> =
            serde_json::from_value(policy["commands"].clone()).context("the daemon's commands")?;
        let log = tidegate_daemon::operations(&commands)?;
        let log = policy["dev"].as_str().map_or_else(|| Ok(log.clone()), |dev| on_device(&log, dev))?;
        let mut machine = machine(&log, &self.links, &to_be_made(&log, &self.links)?)?;
        let installed = self.devices.iter().map(|dev| {
            let is_there = machine.device(dev).is_some();
            if is_there {
                tidegate_plan::installed(&mut machine, CARRIED_OUT_AT, dev)
            } else {
                Installed::default()
            }
        });
        Ok((installed.collect(), tidegate_plan::rule_tables(&machine)))
    }

    /// Whether the policy has rules for packets that arrive by a device.
    pub(crate) fn sets_ingress(&self, dev: &str) -> bool {
        let on_hooks = |parent: Handle| parent.major() == Handle::INGRESS.major() && parent != Handle::ROOT;
        self.log.iter().filter(|op| op.device() == Some(dev)).any(|op| match op {
            Op::Qdisc(op) => on_hooks(op.parent) || on_hooks(op.handle),
            Op::Filter(op) => on_hooks(op.parent),
            _ => false,
        })
    }

    /// The place of the words that made an item: `file:line: command`.
    pub(crate) fn place(&self, item: &Item) -> Option<String> {
        let maker = match item {
            Item::Qdisc(dump) => self.reading.maker_of_qdisc(dump),
            Item::Class(dump) => self.reading.maker_of_class(&dump.dev, dump.classid),
            Item::Filter(dump) => self.reading.maker_of_filter(dump),
        };
        let step = self.reading.step_of(maker?)?;
        let place = step.place.as_ref()?;
        let source = self.reading.sources.get(place.file)?;
        Some(format!("{}:{}: {}", source.name, place.line, step.text()))
    }
}

/// The links that the policy makes, or takes for granted as an ifb, and that are not there.
fn to_be_made(log: &[Op], links: &[LinkInfo]) -> Result<Vec<(String, LinkDriver)>> {
    let mut named: Vec<(String, LinkDriver)> = Vec::new();
    for op in log {
        if let Op::Link(LinkOp::Add { name, kind }) = op {
            named.push((name.clone(), kind.clone()));
        }
        let mut note = |name: &mut String| {
            if LinkDriver::of_name(name) == LinkDriver::Ifb {
                named.push((name.clone(), LinkDriver::Ifb));
            }
        };
        op.clone().each_device(&mut note);
    }
    let mut seen = BTreeSet::new();
    named.retain(|(name, _)| seen.insert(name.clone()) && !links.iter().any(|link| link.name == *name));
    for (name, kind) in &named {
        ensure!(
            matches!(kind, LinkDriver::Ifb | LinkDriver::Dummy | LinkDriver::Bridge),
            Policy,
            "the policy makes `{name}`, a {kind:?}, which is not made by us: make it before"
        );
    }
    Ok(named)
}

/// The devices that the policy queues on; an ifb before what leads to it.
fn devices(log: &[Op]) -> Vec<String> {
    let queues = |op: &&Op| matches!(op, Op::Qdisc(_) | Op::Class(_) | Op::Filter(_));
    let named: BTreeSet<&str> = log.iter().filter(queues).filter_map(Op::device).collect();
    let (first, then): (Vec<&str>, Vec<&str>) =
        named.into_iter().partition(|name| LinkDriver::of_name(name) == LinkDriver::Ifb);
    first.into_iter().chain(then).map(str::to_owned).collect()
}

fn settings(log: &[Op], report: NoticeHandler<'_>) -> Result<Vec<(String, LinkUpdate)>> {
    let mut all = Vec::new();
    for op in log {
        match op {
            Op::TxQueueLen { dev, packets } => {
                all.push((dev.clone(), LinkUpdate { txqlen: Some(*packets), ..LinkUpdate::default() }));
            }
            Op::Mtu { dev, bytes } => {
                all.push((dev.clone(), LinkUpdate { mtu: Some(*bytes), ..LinkUpdate::default() }))
            }
            Op::Ring { dev, .. } => report(Notice::Policy(format!(
                "tidegate: the ring of {dev}'s card is left as it is; ethtool -G sets it"
            ))),
            Op::Link(LinkOp::Rename { name, to }) => {
                bail!(
                    Policy,
                    "the policy calls `{name}` `{to}`; names are not changed by us: change it before"
                )
            }
            Op::Qdisc(QdiscOp { blocks, .. }) if *blocks != SharedBlocks::default() => {
                let number = if blocks.ingress == 0 { blocks.egress } else { blocks.ingress };
                bail!(
                    Policy,
                    "the policy has devices share a block of filters (`ingress_block {number}`), which \
                    tidegate apply neither sets nor brings back; \
                     give each device the filters: tc filter add dev NAME ingress ..."
                )
            }
            Op::Chain(_) => {
                bail!(
                    Policy,
                    "the policy creates chains on their own (`tc chain`), which tidegate cannot restore; a \
                    filter creates its chain"
                )
            }
            Op::Actions(_) => {
                bail!(
                    Policy,
                    "the policy creates actions on their own (`tc actions`), which tidegate cannot restore; \
                    write each where it is used"
                )
            }
            _ => {}
        }
    }
    Ok(all)
}

/// A machine like this computer that has carried out all of it.
fn machine(log: &[Op], links: &[LinkInfo], made: &[(String, LinkDriver)]) -> Result<Gateway> {
    let mut gateway = Gateway::new();
    for link in links {
        let known = device_spec(link);
        // Of an ifb the driver knows more than its frames show.
        let of_kind = if link.kind == "ifb" { DeviceSpec::of(&LinkDriver::Ifb) } else { known };
        gateway.add_device(
            &link.name,
            DeviceSpec { mtu: known.mtu, tx_queue_len: known.tx_queue_len, ..of_kind },
        );
    }
    let made_before = |name: &str| {
        log.iter().any(|op| matches!(op, Op::Link(LinkOp::Add { name: known, .. }) if known == name))
    };
    for (name, kind) in made.iter().filter(|(name, _)| !made_before(name)) {
        gateway.add_device(name, DeviceSpec::of(kind));
    }
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    for op in log {
        let already = matches!(op, Op::Link(LinkOp::Add { name, .. }) if gateway.device(name).is_some());
        if already {
            continue;
        }
        let result =
            gateway.apply(GatewayContext { now: CARRIED_OUT_AT, pool: &mut pool, random: &mut draws }, op);
        result.map_err(|error| error!(Policy, "{error}: {op:?}")).context("on a machine with these links")?;
    }
    Ok(gateway)
}

/// All links there are.
pub(crate) fn links() -> Result<Vec<LinkInfo>> {
    link_monitor::links().context("the kernel does not list its links")
}

//! The kernel's qdiscs on the devices: what is installed is noted, what differs is changed, the result of it
//! is looked at, and whatever goes wrong is undone as a whole.

use crate::before::Before;
use crate::record::{self, Raw};
use crate::state::State;
use crate::wanted::{Wanted, links};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_daemon::{ErrorContext, Result, bail, ensure, error};
use tidegate_netlink::encode::nft::{Batch, ruleset};
use tidegate_netlink::{Kernel, KernelError, Netfilter, RawDump};
use tidegate_packet::Handle;
use tidegate_plan::{self as plan, ChangePlan};
use tidegate_policy::dump::Installed;
use tidegate_policy::netfilter::RuleTable;
use tidegate_policy::{LinkDriver, LinkOp, Op};
use tidegate_sys::namespace_thread::NamespaceThread;
use tidegate_sys::netlink::{LinkUpdate, Links};

/// What the kernel reports of a kind that it does not know.
const ENOENT: i32 = 2;

/// What is to be on a device.
struct Target {
    dev: String,
    wanted: Installed,
    /// Its ingress hook belongs to another program, and is not read.
    leaves_ingress: bool,
}

impl Target {
    /// What is compared with what is wanted.
    fn part(&self, live: Installed) -> Installed {
        if self.leaves_ingress { split_ingress(live).0 } else { live }
    }
}

/// What is on a device's root, and what is on its hooks for arriving packets (`ingress`, `clsact`).
fn split_ingress(installed: Installed) -> (Installed, Installed) {
    let (ingress_qdiscs, qdiscs) =
        installed.qdiscs.into_iter().partition(|qdisc| qdisc.parent == Handle::INGRESS);
    let on_hooks = |on: Handle| on.major() == Handle::INGRESS.major() && on != Handle::ROOT;
    let (ingress_classes, classes) = installed.classes.into_iter().partition(|class| on_hooks(class.classid));
    let (ingress_filters, filters) =
        installed.filters.into_iter().partition(|filter| on_hooks(filter.parent));
    let ingress = Installed { qdiscs: ingress_qdiscs, classes: ingress_classes, filters: ingress_filters };
    (Installed { qdiscs, classes, filters }, ingress)
}

/// What is to be done.
pub(crate) struct KernelPlan {
    targets: Vec<Target>,
    /// What was there before.
    pub(crate) before: Before,
    /// For each device.
    pub(crate) plans: Vec<(String, ChangePlan)>,
    /// Rules: what makes our table, if it must be made or recreated; a batch that takes it away, if it must
    /// go.
    rules: Rules,
    /// What could not be brought back.
    pub(crate) caveats: Vec<String>,
}

/// What is done about our table of rules.
enum Rules {
    /// It stays, or there is none.
    Stay,
    /// It is made: how many rules it has, and whether it was there.
    Make(Batch, usize, bool),
    /// The table is removed.
    Remove,
}

impl KernelPlan {
    /// Is nothing to be done?
    pub(crate) fn is_empty(&self) -> bool {
        self.plans.iter().all(|(_, plan)| plan.is_empty()) && matches!(self.rules, Rules::Stay)
    }

    /// What is done about netfilter's rules, for people.
    pub(crate) fn about_rules(&self) -> Option<String> {
        let table = &self.before.table;
        match &self.rules {
            Rules::Stay => None,
            Rules::Make(_, rules, again) => {
                Some(rules_line(if *again { '~' } else { '+' }, table, Some(*rules)))
            }
            Rules::Remove => Some(rules_line('-', table, None)),
        }
    }
}

/// The table that is ours.
pub(crate) fn table_of(name: &str) -> String {
    format!("tidegate-{name}")
}

/// The line of a plan for a table of nftables: it is made (`+`) or replaced (`~`) with so many rules, or
/// removed (`-`).
pub(crate) fn rules_line(sign: char, table: &str, rules: Option<usize>) -> String {
    match rules {
        Some(1) => format!("{sign} nft table inet {table}: 1 rule\n"),
        Some(rules) => format!("{sign} nft table inet {table}: {rules} rules\n"),
        None => format!("{sign} nft table inet {table}\n"),
    }
}

/// A backend to all that is changed.
pub(crate) struct Arm {
    kernel: Kernel,
    netfilter: Option<Netfilter>,
    links: Links,
}

impl Arm {
    /// Opens the netlink sockets.
    ///
    /// # Errors
    /// No socket can be had.
    pub(crate) fn open() -> Result<Arm> {
        // A kernel without netfilter is good enough for policies without marks.
        let netfilter = Netfilter::open().ok();
        Ok(Arm {
            kernel: Kernel::open().context("netlink")?,
            netfilter,
            links: Links::open().context("netlink")?,
        })
    }

    /// What is installed on a device.
    fn read_installed(&mut self, dev: &str) -> Result<Installed> {
        let (wanted, unread) = self.kernel.installed(dev).with_context(|| dev.to_owned())?;
        ensure!(unread.is_empty(), Kernel, "{dev} has what is not read by us: {}", list(&unread));
        Ok(wanted)
    }

    /// Looks at what is installed, and finds the way from there. `known`: messages that make our present
    /// table; `name`: of the policy.
    ///
    /// # Errors
    /// The kernel does not report, or the policy has rules that are not set by us.
    pub(crate) fn plan(&mut self, wanted: &Wanted, name: &str, prior: Option<&State>) -> Result<KernelPlan> {
        let known: Vec<Raw> = prior.map(|prior| record::raw(&prior.0["table"])).unwrap_or_default();
        let mut before = Before { table: table_of(name), rules: known.clone(), ..Before::default() };
        let (mut plans, mut caveats, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for (dev, installed) in wanted.devices.iter().zip(&wanted.installed) {
            let target = self.target(wanted, prior, dev, installed)?;
            let dump = if wanted.links.iter().any(|link| link.name == *dev) {
                Some(self.kernel.raw(dev).with_context(|| dev.clone())?)
            } else {
                None
            };
            let live = match &dump {
                Some(dump) => self.noted(dev, dump, &mut caveats)?,
                None => Installed::default(),
            };
            let log: Vec<Op> = wanted.log.iter().filter(|op| op.device() == Some(dev)).cloned().collect();
            plans.push((dev.clone(), plan::plan(&target.part(live), &target.wanted, &log)?));
            before.devices.push((dev.clone(), dump));
            targets.push(target);
        }
        for (dev, _) in &wanted.settings {
            if let Some(link) = wanted.links.iter().find(|link| link.name == *dev) {
                before.links.push((dev.clone(), link.mtu, link.txqlen));
            }
        }
        for (dev, _) in &wanted.made {
            if !before.devices.iter().any(|(known, _)| known == dev) {
                before.devices.push((dev.clone(), None));
            }
        }
        let rules = self.rules(wanted, &before.table, &known)?;
        Ok(KernelPlan { targets, before, plans, rules, caveats })
    }

    /// The wanted state of a device. A policy without rules for arriving packets leaves the device's ingress
    /// hook alone; an earlier policy of tidegate's there is removed, and what it replaced is restored.
    fn target(
        &mut self,
        wanted: &Wanted,
        prior: Option<&State>,
        dev: &str,
        installed: &Installed,
    ) -> Result<Target> {
        let mut target = Target { dev: dev.to_owned(), wanted: installed.clone(), leaves_ingress: false };
        if wanted.sets_ingress(dev) {
            return Ok(target);
        }
        let by_prior =
            prior.is_some_and(|prior| record::strings(&prior.0["ingress"]).iter().any(|known| known == dev));
        target.leaves_ingress = !by_prior;
        if let Some(prior) = prior.filter(|_| by_prior) {
            let original = Before::of(&prior.0["original"])?;
            if let Some((_, Some(dump))) = original.devices.iter().find(|(known, _)| known == dev) {
                let (_, ingress) = split_ingress(self.kernel.read(dev, dump)?.0);
                target.wanted.qdiscs.extend(ingress.qdiscs);
                target.wanted.classes.extend(ingress.classes);
                target.wanted.filters.extend(ingress.filters);
            }
        }
        Ok(target)
    }

    /// What is installed on a device, with caveats about what could not be restored.
    fn noted(&mut self, dev: &str, dump: &RawDump, caveats: &mut Vec<String>) -> Result<Installed> {
        let (live, unread) = self.kernel.read(dev, dump).with_context(|| dev.to_owned())?;
        if !unread.is_empty() {
            caveats.push(format!(
                "{dev} has what is not read by us and could not be brought back: {}",
                list(&unread)
            ));
        }
        if let Err(incomplete) = plan::remade(&live) {
            caveats.push(incomplete.to_string());
        }
        Ok(live)
    }

    fn rules(&mut self, wanted: &Wanted, table: &str, known: &[Raw]) -> Result<Rules> {
        let present = match &mut self.netfilter {
            Some(netfilter) => netfilter.tables().unwrap_or_default(),
            None => Default::default(),
        };
        let there = present.contains_key(table);
        if wanted.tables.is_empty() {
            return Ok(if there { Rules::Remove } else { Rules::Stay });
        }
        let batch = ruleset(table, COMMENT, there, &wanted.tables)?;
        let fresh = ruleset(table, COMMENT, false, &wanted.tables)?;
        if there && raw(fresh.clone()) == known {
            return Ok(Rules::Stay);
        }
        Ok(Rules::Make(batch, wanted.rules(), there))
    }

    /// Messages that make the table of a policy where there is none.
    ///
    /// # Errors
    /// It has rules that are not set by us.
    pub(crate) fn table_made(wanted: &Wanted, name: &str) -> Result<Vec<Raw>> {
        if wanted.tables.is_empty() {
            return Ok(Vec::new());
        }
        Ok(raw(ruleset(&table_of(name), COMMENT, false, &wanted.tables)?))
    }

    /// Carries out the plan and checks the result.
    ///
    /// # Errors
    /// It failed: the command, the kernel's message, and what may help. The changes up to there stay.
    pub(crate) fn go(&mut self, wanted: &Wanted, way: KernelPlan) -> Result<()> {
        for (name, kind) in &wanted.made {
            let op = Op::Link(LinkOp::Add { name: name.clone(), kind: kind.clone() });
            self.kernel.apply(&op).with_context(|| format!("`{name}` could not be made"))?;
        }
        for (dev, change) in &wanted.settings {
            self.links.change(dev, change).with_context(|| format!("{dev} could not be set"))?;
        }
        self.set_rules(way.rules, &way.before.table)?;
        for (dev, plan) in &way.plans {
            let ops: Vec<&Op> = plan.ops().collect();
            if let Err((at, problem)) = self.kernel.carry_out(ops.iter().copied()) {
                bail!(Kernel, "{}", blame(wanted, plan, at, &problem, dev));
            }
        }
        self.look(wanted, &way.targets)
    }

    /// What is there once a policy is applied, to be compared with later.
    ///
    /// # Errors
    /// The kernel does not report.
    pub(crate) fn installed(&mut self, wanted: &Wanted, name: &str) -> Result<Value> {
        let mut devices = Vec::new();
        for dev in &wanted.devices {
            let dump = self.kernel.raw(dev).with_context(|| dev.clone())?;
            devices.push(json!({"dev": dev, "dump": record::kept(&dump)}));
        }
        Ok(json!({"devices": devices, "rules": self.rule_numbers(&table_of(name))?}))
    }

    /// The rules of our table by their numbers; null, if there is no such table.
    fn rule_numbers(&mut self, table: &str) -> Result<Value> {
        let Some(netfilter) = &mut self.netfilter else { return Ok(Value::Null) };
        if !netfilter.tables().unwrap_or_default().contains_key(table) {
            return Ok(Value::Null);
        }
        Ok(json!(netfilter.rule_numbers(table).context("nftables")?))
    }

    /// Looks whether what was applied is still there.
    ///
    /// # Errors
    /// The kernel does not report, or the state is none of an applied policy.
    pub(crate) fn drift(&mut self, name: &str, state: &State) -> Result<Drift> {
        let mut drift = Drift::default();
        let ours = record::strings(&state.0["ingress"]);
        let installed = &state.0["installed"];
        for one in installed["devices"].as_array().context("the state does not say what was installed")? {
            let dev = one["dev"].as_str().unwrap_or_default();
            if self.links.index(dev).is_err() {
                drift.gone.push(dev.to_owned());
                continue;
            }
            let leaves_ingress = !ours.iter().any(|known| known == dev);
            let target = Target { dev: dev.to_owned(), wanted: Installed::default(), leaves_ingress };
            let then = target.part(self.kernel.read(dev, &record::dump_from_json(&one["dump"])?)?.0);
            let now = target.part(self.kernel.installed(dev).with_context(|| dev.to_owned())?.0);
            match plan::plan(&now, &then, &[]) {
                Ok(back) if back.is_empty() => {}
                Ok(back) => drift.lines.push(tidegate_plan::text::drift(dev, &back)),
                Err(incomplete) => drift.lines.push(format!("{dev}: not as it was applied; {incomplete}\n")),
            }
        }
        let table = table_of(name);
        let now = self.rule_numbers(&table)?;
        if now != installed["rules"] {
            let what = if now.is_null() { "is gone" } else { "was changed" };
            drift.lines.push(format!("~ nft table inet {table} {what}\n"));
        }
        Ok(drift)
    }

    fn set_rules(&mut self, rules: Rules, table: &str) -> Result<()> {
        let batch = match rules {
            Rules::Stay => return Ok(()),
            Rules::Make(batch, ..) => batch,
            Rules::Remove => {
                let mut batch = Batch::new(table);
                batch.delete_table();
                batch
            }
        };
        self.carry_out(
            batch
                .into_messages()
                .into_iter()
                .map(|message| (message.kind, message.flags, message.body))
                .collect(),
        )
    }

    fn carry_out(&mut self, messages: Vec<Raw>) -> Result<()> {
        let Some(netfilter) = &mut self.netfilter else {
            bail!(
                Kernel,
                "this kernel has no netfilter, and the policy sets marks; filters of tc can match addresses \
                and ports"
            )
        };
        let done = netfilter.carry_out_raw(&messages).context("netfilter")?;
        done.map_err(|(_, refused)| {
            error!(
                Kernel,
                "the kernel refused the policy's rules: {refused}; its nftables lacks what they need"
            )
        })
    }

    /// Is there what was requested? Some kernels take what they cannot do without a word.
    fn look(&mut self, wanted: &Wanted, targets: &[Target]) -> Result<()> {
        for target in targets {
            let dev = target.dev.as_str();
            let (live, unread) = self.kernel.installed(dev).with_context(|| dev.to_owned())?;
            let unread = if target.leaves_ingress { BTreeSet::new() } else { unread };
            ensure!(unread.is_empty(), Kernel, "{dev} has what is not read by us: {}", list(&unread));
            let log: Vec<Op> = wanted.log.iter().filter(|op| op.device() == Some(dev)).cloned().collect();
            let left = plan::plan(&target.part(live), &target.wanted, &log)?;
            // What is missing is more helpful than what is there in its place.
            let lacks = left.steps.iter().find(|step| step.sign != plan::Sign::Remove);
            if let Some(step) = lacks.or(left.steps.first()) {
                let place = wanted.place(&step.item).map(|place| format!("{place}\n  ")).unwrap_or_default();
                bail!(
                    Kernel,
                    "{place}the kernel accepted everything, but the configuration of {dev} is not what was \
                    requested; it lacks\n    {}\n  (this kernel does not support it and does not say so; \
                    --backend user does)",
                    tidegate_plan::text::line(step)
                );
            }
        }
        Ok(())
    }

    /// Restores the previous state.
    ///
    /// # Errors
    /// What could not be brought back.
    pub(crate) fn undo(&mut self, before: &Before) -> Result<()> {
        let mut failed: Vec<String> = Vec::new();
        // What leads to an ifb goes before it.
        for (dev, dump) in before.devices.iter().rev() {
            let done = match dump {
                // What was on a device that is gone went with it.
                Some(dump) => match self.is_gone(dev, dump) {
                    Ok(true) => Ok(()),
                    Ok(false) => self.bring_back(dev, dump),
                    Err(renamed) => Err(renamed),
                },
                None => self.unmake(dev),
            };
            failed.extend(done.err().map(|error| format!("{error:#}")));
        }
        for (dev, mtu, queue) in &before.links {
            if self.links.index(dev).is_err() {
                continue;
            }
            let change = LinkUpdate { mtu: Some(*mtu), txqlen: Some(*queue), ..LinkUpdate::default() };
            failed.extend(self.links.change(dev, &change).err().map(|error| format!("{dev}: {error}")));
        }
        failed.extend(self.rules_back(before).err().map(|error| format!("{error:#}")));
        ensure!(failed.is_empty(), Kernel, "{}", failed.join("; "));
        Ok(())
    }

    /// Looks whether everything is as it was before.
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn look_back(&mut self, before: &Before) -> Result<()> {
        for (dev, dump) in &before.devices {
            let there = self.links.index(dev).is_ok();
            let Some(dump) = dump else {
                ensure!(!there, Kernel, "`{dev}`, which was made for the policy, is still there");
                continue;
            };
            if !self.is_gone(dev, dump)? {
                let (then, _) = self.kernel.read(dev, dump)?;
                let (now, _) = self.kernel.installed(dev).with_context(|| dev.clone())?;
                let left = plan::plan(&now, &then, &[])?;
                if let Some(step) = left.steps.first() {
                    bail!(Kernel, "{dev} lacks `{}`", tidegate_plan::text::line(step));
                }
            }
        }
        let Some(netfilter) = &mut self.netfilter else { return Ok(()) };
        let there = netfilter.tables().unwrap_or_default().contains_key(&before.table);
        ensure!(
            there != before.rules.is_empty(),
            Kernel,
            "the nft table `{}` {}",
            before.table,
            if there { "is still there" } else { "is missing" }
        );
        Ok(())
    }

    /// Is a device gone, with all that was on it?
    ///
    /// # Errors
    /// It is there, under another name.
    fn is_gone(&mut self, dev: &str, dump: &RawDump) -> Result<bool> {
        if self.links.index(dev).is_ok() {
            return Ok(false);
        }
        if let Some(link) = links()?.into_iter().find(|link| link.index == dump.number) {
            bail!(
                Kernel,
                "`{dev}` is called `{0}` now; rename it back: ip link set {0} name {dev}",
                link.name
            );
        }
        Ok(true)
    }

    fn bring_back(&mut self, dev: &str, dump: &RawDump) -> Result<()> {
        let (before, _) = self.kernel.read(dev, dump).with_context(|| dev.to_owned())?;
        // Qdiscs that we cannot read go with the root above them.
        let (now, _) = self.kernel.installed(dev).with_context(|| dev.to_owned())?;
        let back = plan::plan(&now, &before, &[])?;
        let ops: Vec<&Op> = back.ops().collect();
        if let Err((at, trouble)) = self.kernel.carry_out(ops.iter().copied()) {
            bail!(Kernel, "{dev}: {trouble}: {:?}", ops[at.min(ops.len() - 1)]);
        }
        Ok(())
    }

    /// Takes away a link that was not there before.
    fn unmake(&mut self, dev: &str) -> Result<()> {
        if self.links.index(dev).is_err() {
            return Ok(());
        }
        self.links.delete(dev).with_context(|| dev.to_owned())
    }

    fn rules_back(&mut self, before: &Before) -> Result<()> {
        let Some(netfilter) = &mut self.netfilter else { return Ok(()) };
        let there = netfilter.tables().unwrap_or_default().contains_key(&before.table);
        let mut messages = Vec::new();
        if there {
            let mut batch = Batch::new(&before.table);
            batch.delete_table();
            let mut away = raw(batch);
            away.pop();
            messages.append(&mut away);
        }
        match before.rules.as_slice() {
            [] if messages.is_empty() => return Ok(()),
            [] => messages.push(batch_end()),
            // Behind what takes the table away comes what makes it as it was, without a second beginning.
            kept if messages.is_empty() => messages.extend_from_slice(kept),
            [_, kept @ ..] => messages.extend_from_slice(kept),
        }
        self.carry_out(messages)
    }
}

/// What `nft list` shows beside our table.
const COMMENT: &str = "made by tidegate; tidegate down takes it away";

fn raw(batch: Batch) -> Vec<Raw> {
    batch.into_messages().into_iter().map(|message| (message.kind, message.flags, message.body)).collect()
}

fn batch_end() -> Raw {
    raw(Batch::new("")).pop().unwrap_or_default()
}

fn list(all: &BTreeSet<String>) -> String {
    all.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// How the present state differs from the applied one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drift {
    /// Devices that are not there any more.
    pub(crate) gone: Vec<String>,
    /// What brings it back, for people.
    pub(crate) lines: Vec<String>,
}

/// Whose fault it was: the command, the kernel's words, and what may help.
fn blame(wanted: &Wanted, plan: &ChangePlan, at: usize, trouble: &KernelError, dev: &str) -> String {
    let mut before = 0;
    let step = plan.steps.iter().find(|step| {
        before += step.ops.len();
        before > at
    });
    let Some(step) = step else { return format!("{dev}: {trouble}") };
    let place = wanted.place(&step.item).map(|place| format!("{place}\n  ")).unwrap_or_default();
    let remedy = match trouble {
        KernelError::Refused(refused) if matches!(refused.errno, 2 | 95) => {
            "; this kernel may lack it (`modprobe`), and --backend user needs none of it"
        }
        KernelError::Refused(refused) if refused.errno == 1 => "; it takes root (CAP_NET_ADMIN)",
        _ => "",
    };
    format!("{place}{trouble}{remedy}\n    {}", tidegate_plan::text::line(step))
}

/// What of a policy is tried in another namespace.
struct Tried {
    devices: Vec<(String, Installed)>,
    log: Vec<Op>,
    tables: Vec<RuleTable>,
}

/// Whether this kernel lacks something that the policy needs. Tried in a namespace of its own, unseen by
/// others; in the words of what is missing.
///
/// # Errors
/// It cannot be tried.
pub(crate) fn lacks(wanted: &Wanted) -> Result<Option<String>> {
    let place = NamespaceThread::new("probe")
        .context("which qdiscs this kernel has cannot be tried in a namespace")?;
    let devices = wanted.devices.iter().cloned().zip(wanted.installed.iter().cloned()).collect();
    let tried = Tried { devices, log: wanted.log.clone(), tables: wanted.tables.clone() };
    place.go(move || tried.lacks())?
}

impl Tried {
    fn lacks(&self) -> Result<Option<String>> {
        let mut arm = Arm::open()?;
        let mut named: BTreeSet<String> = self.devices.iter().map(|(dev, _)| dev.clone()).collect();
        for op in &self.log {
            op.clone().each_device(&mut |name| {
                let _ = named.insert(name.clone());
            });
        }
        for name in named.iter().filter(|name| *name != "lo") {
            let kind = if LinkDriver::of_name(name) == LinkDriver::Ifb { "ifb" } else { "dummy" };
            arm.links.create_like(name, kind, 1000)?;
        }
        for (dev, installed) in &self.devices {
            if let Some(lacks) = self.of_device(&mut arm, dev, installed)? {
                return Ok(Some(lacks));
            }
        }
        if self.tables.is_empty() {
            return Ok(None);
        }
        let made = raw(ruleset("tidegate-probe-wire", COMMENT, false, &self.tables)?);
        Ok(arm
            .carry_out(made)
            .err()
            .map(|error| format!("does not take the rules that set marks ({error:#})")))
    }

    fn of_device(&self, arm: &mut Arm, dev: &str, installed: &Installed) -> Result<Option<String>> {
        let log: Vec<Op> = self.log.iter().filter(|op| op.device() == Some(dev)).cloned().collect();
        for step in &plan::plan(&Installed::default(), installed, &log)?.steps {
            if let Err((_, trouble)) = arm.kernel.carry_out(&step.ops) {
                return Ok(Some(lacking(step, &trouble)));
            }
        }
        let left = plan::plan(&arm.read_installed(dev)?, installed, &log)?;
        let lacks = left.steps.iter().find(|step| step.sign != plan::Sign::Remove).or(left.steps.first());
        Ok(lacks.map(|step| {
            format!("takes `{}` without a word and does not do it", tidegate_plan::text::line(step))
        }))
    }
}

/// That a kernel has no such kind.
pub(crate) fn has_no(kind: &str) -> String {
    format!("has no {kind}")
}

/// What a kernel lacks that refuses a step.
fn lacking(step: &plan::PlanStep, trouble: &KernelError) -> String {
    let kind = match &step.item {
        plan::Item::Qdisc(dump) => dump.kind.name().to_owned(),
        plan::Item::Class(dump) => dump.kind.name().to_owned(),
        plan::Item::Filter(dump) => format!("filters of the kind {}", dump.kind),
    };
    match trouble {
        // The kernel knows no such kind.
        KernelError::Refused(refused) if refused.errno == ENOENT => has_no(&kind),
        trouble => format!("does not do `{}` ({trouble})", tidegate_plan::text::line(step)),
    }
}

/// The qdiscs that were configured on these devices: each device, with its qdisc.
pub(crate) fn shapers(devices: &[String]) -> Vec<(String, String)> {
    let Ok(mut kernel) = Kernel::open() else { return Vec::new() };
    let mut all = Vec::new();
    for dev in devices {
        let Ok(installed) = kernel.qdiscs(dev) else { continue };
        let on_device = |parent: Handle| parent == Handle::ROOT || parent == Handle::INGRESS;
        // One without a handle came on its own.
        let found =
            installed.qdiscs.iter().filter(|qdisc| on_device(qdisc.parent) && !qdisc.handle.is_none());
        all.extend(found.map(|qdisc| (dev.clone(), format!("{} {}", qdisc.kind.name(), qdisc.handle))));
        all.extend(installed.unread.into_iter().map(|kind| (dev.clone(), kind)));
    }
    all
}

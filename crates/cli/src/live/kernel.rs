//! The kernel's disciplines on the devices: what stands is noted, what differs is changed, what came of it is looked at, and whatever goes wrong is
//! undone as a whole.

use super::state::{self, Raw};
use super::wanted::Wanted;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tidegate_live::encode::nft::{Batch, Table, ruleset};
use tidegate_live::plan::{self, Plan, Stand};
use tidegate_live::{Kernel, Netfilter, Told, Trouble};
use tidegate_os::netlink::{Change, Links};
use tidegate_os::news::{self, Link};
use tidegate_os::place::Place;
use tidegate_policy::{LinkKind, LinkOp, Op};

/// What the kernel says of a kind that it does not know.
const ENOENT: i32 = 2;

/// What stood on the devices, and what else would be changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    /// What each device's kernel told; `None`: it was not there.
    pub(super) devices: Vec<(String, Option<Told>)>,
    /// How long packets and queues of links were: maximal packet, transmit queue.
    links: Vec<(String, u32, u32)>,
    /// Messages that make our table of rules as it was, if there was one.
    rules: Vec<Raw>,
    /// The table's name.
    table: String,
}

impl Before {
    /// For a state file.
    pub(super) fn kept(&self) -> Value {
        let devices =
            self.devices.iter().map(|(dev, told)| json!({"dev": dev, "told": told.as_ref().map(state::kept)}));
        let links = self.links.iter().map(|(dev, mtu, queue)| json!({"dev": dev, "mtu": mtu, "txqueuelen": queue}));
        json!({
            "devices": devices.collect::<Vec<_>>(),
            "links": links.collect::<Vec<_>>(),
            "rules": state::kept_raw(&self.rules),
            "table": self.table,
        })
    }

    /// Out of a state file.
    ///
    /// # Errors
    /// It was not kept by us.
    pub(super) fn of(kept: &Value) -> anyhow::Result<Before> {
        let name = |value: &Value| value["dev"].as_str().unwrap_or_default().to_owned();
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        let mut devices = Vec::new();
        for one in kept["devices"].as_array().into_iter().flatten() {
            let told = if one["told"].is_null() { None } else { Some(state::told(&one["told"])?) };
            devices.push((name(one), told));
        }
        let links = kept["links"].as_array().into_iter().flatten();
        Ok(Before {
            devices,
            links: links.map(|one| (name(one), number(&one["mtu"]), number(&one["txqueuelen"]))).collect(),
            rules: state::raw(&kept["rules"]),
            table: kept["table"].as_str().unwrap_or_default().to_owned(),
        })
    }
}

/// What is to be done.
pub(super) struct Way {
    /// What stood there before.
    pub(super) before: Before,
    /// For each device.
    pub(super) plans: Vec<(String, Plan)>,
    /// Rules: what makes our table, if it must be made or made anew; a batch that takes it away, if it must go.
    rules: Rules,
    /// What could not be brought back.
    pub(super) doubts: Vec<String>,
}

/// What is done about our table of rules.
enum Rules {
    /// It stays, or there is none.
    Stay,
    /// It is made: how many rules it has, and whether it was there.
    Make(Batch, usize, bool),
    /// It goes.
    Remove,
}

impl Way {
    /// Is nothing to be done?
    pub(super) fn is_empty(&self) -> bool {
        self.plans.iter().all(|(_, plan)| plan.is_empty()) && matches!(self.rules, Rules::Stay)
    }

    /// What is done about netfilter's rules, for people.
    pub(super) fn about_rules(&self) -> Option<String> {
        let table = &self.before.table;
        match &self.rules {
            Rules::Stay => None,
            Rules::Make(_, rules, again) => {
                let sign = if *again { '~' } else { '+' };
                Some(format!("{sign} nft table inet {table}: {rules} rules\n"))
            }
            Rules::Remove => Some(format!("- nft table inet {table}\n")),
        }
    }
}

/// The table that is ours.
pub(super) fn table_of(name: &str) -> String {
    format!("tidegate-{name}")
}

/// A door to all that is changed.
pub(super) struct Arm {
    kernel: Kernel,
    netfilter: Option<Netfilter>,
    links: Links,
}

impl Arm {
    /// Opens it.
    ///
    /// # Errors
    /// No socket can be had.
    pub(super) fn open() -> anyhow::Result<Arm> {
        // A kernel without netfilter is good enough for policies without marks.
        let netfilter = Netfilter::open().ok();
        Ok(Arm { kernel: Kernel::open().context("netlink")?, netfilter, links: Links::open().context("netlink")? })
    }

    /// What stands on a device.
    fn stand(&mut self, dev: &str) -> anyhow::Result<Stand> {
        let (stand, unread) = self.kernel.stand(dev).with_context(|| dev.to_owned())?;
        anyhow::ensure!(unread.is_empty(), "{dev} has what is not read by us: {}", list(&unread));
        Ok(stand)
    }

    /// Looks at what stands, and finds the way from there. `known`: messages that make our present table; `name`: of the policy.
    ///
    /// # Errors
    /// The kernel does not tell, or the policy has rules that are not set by us.
    pub(super) fn way(&mut self, wanted: &Wanted, name: &str, known: &[Raw], links: &[Link]) -> anyhow::Result<Way> {
        let mut before = Before { table: table_of(name), rules: known.to_vec(), ..Before::default() };
        let (mut plans, mut doubts) = (Vec::new(), Vec::new());
        for (dev, stand) in wanted.devices.iter().zip(&wanted.stands) {
            let told = if links.iter().any(|link| link.name == *dev) {
                Some(self.kernel.told(dev).with_context(|| dev.clone())?)
            } else {
                None
            };
            let live = match &told {
                Some(told) => self.noted(dev, told, &mut doubts)?,
                None => Stand::default(),
            };
            let log: Vec<Op> = wanted.log.iter().filter(|op| op.device() == Some(dev)).cloned().collect();
            plans.push((dev.clone(), plan::plan(&live, stand, &log)?));
            before.devices.push((dev.clone(), told));
        }
        for (dev, _) in &wanted.settings {
            if let Some(link) = links.iter().find(|link| link.name == *dev) {
                before.links.push((dev.clone(), link.mtu, link.txqlen));
            }
        }
        for (dev, _) in &wanted.made {
            if !before.devices.iter().any(|(known, _)| known == dev) {
                before.devices.push((dev.clone(), None));
            }
        }
        let rules = self.rules(wanted, &before.table, known)?;
        Ok(Way { before, plans, rules, doubts })
    }

    /// What stands on a device, with doubts about what could not be brought back.
    fn noted(&mut self, dev: &str, told: &Told, doubts: &mut Vec<String>) -> anyhow::Result<Stand> {
        let (live, unread) = self.kernel.read(dev, told).with_context(|| dev.to_owned())?;
        if !unread.is_empty() {
            doubts.push(format!("{dev} has what is not read by us and could not be brought back: {}", list(&unread)));
        }
        if let Err(incomplete) = plan::remade(&live) {
            doubts.push(incomplete.to_string());
        }
        Ok(live)
    }

    fn rules(&mut self, wanted: &Wanted, table: &str, known: &[Raw]) -> anyhow::Result<Rules> {
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
        let count = wanted.tables.iter().flat_map(|table| &table.chains).map(|chain| chain.rules.len()).sum();
        Ok(Rules::Make(batch, count, there))
    }

    /// Messages that make the table of a policy where there is none.
    ///
    /// # Errors
    /// It has rules that are not set by us.
    pub(super) fn table_made(wanted: &Wanted, name: &str) -> anyhow::Result<Vec<Raw>> {
        if wanted.tables.is_empty() {
            return Ok(Vec::new());
        }
        Ok(raw(ruleset(&table_of(name), COMMENT, false, &wanted.tables)?))
    }

    /// Goes the way and looks whether it led where it should.
    ///
    /// # Errors
    /// It did not: the command, the kernel's words, and what may help. What was done up to there stands.
    pub(super) fn go(&mut self, wanted: &Wanted, way: Way) -> anyhow::Result<()> {
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
            if let Err((at, trouble)) = self.kernel.carry_out(ops.iter().copied()) {
                bail!("{}", blame(wanted, plan, at, &trouble, dev));
            }
        }
        self.look(wanted)
    }

    fn set_rules(&mut self, rules: Rules, table: &str) -> anyhow::Result<()> {
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
            batch.into_messages().into_iter().map(|message| (message.kind, message.flags, message.body)).collect(),
        )
    }

    fn carry_out(&mut self, messages: Vec<Raw>) -> anyhow::Result<()> {
        let Some(netfilter) = &mut self.netfilter else {
            bail!(
                "this kernel has no netfilter, and the policy sets marks; filters of tc can match addresses and ports"
            )
        };
        let done = netfilter.carry_out_raw(&messages).context("netfilter")?;
        done.map_err(|(_, refused)| {
            anyhow::anyhow!("the kernel refused the policy's rules: {refused}; its nftables lacks what they ask")
        })
    }

    /// Is there what was asked for? Some kernels take what they cannot do without a word.
    fn look(&mut self, wanted: &Wanted) -> anyhow::Result<()> {
        for (dev, stand) in wanted.devices.iter().zip(&wanted.stands) {
            let live = self.stand(dev)?;
            let log: Vec<Op> = wanted.log.iter().filter(|op| op.device() == Some(dev)).cloned().collect();
            let left = plan::plan(&live, stand, &log)?;
            // What lacks tells more than what is there in its place.
            let lacks = left.steps.iter().find(|step| step.sign != plan::Sign::Remove);
            if let Some(step) = lacks.or(left.steps.first()) {
                let place = wanted.place(&step.item).map(|place| format!("{place}\n  ")).unwrap_or_default();
                bail!(
                    "{place}the kernel took everything, but what stands on {dev} is not what was asked for; it lacks\n    {}\n  \
                     (this kernel cannot do it and does not say so; --backend user can)",
                    super::diff::line(step)
                );
            }
        }
        Ok(())
    }

    /// Brings back what stood there.
    ///
    /// # Errors
    /// What could not be brought back.
    pub(super) fn undo(&mut self, before: &Before) -> anyhow::Result<()> {
        let mut failed: Vec<String> = Vec::new();
        // What leads to an ifb goes before it.
        for (dev, told) in before.devices.iter().rev() {
            let done = match told {
                Some(told) => self.bring_back(dev, told),
                None => self.unmake(dev),
            };
            failed.extend(done.err().map(|error| format!("{error:#}")));
        }
        for (dev, mtu, queue) in &before.links {
            let change = Change { mtu: Some(*mtu), txqlen: Some(*queue), ..Change::default() };
            failed.extend(self.links.change(dev, &change).err().map(|error| format!("{dev}: {error}")));
        }
        failed.extend(self.rules_back(before).err().map(|error| format!("{error:#}")));
        anyhow::ensure!(failed.is_empty(), "{}", failed.join("; "));
        Ok(())
    }

    fn bring_back(&mut self, dev: &str, told: &Told) -> anyhow::Result<()> {
        let (before, _) = self.kernel.read(dev, told).with_context(|| dev.to_owned())?;
        // What we cannot read goes with the root that it stands below.
        let (now, _) = self.kernel.stand(dev).with_context(|| dev.to_owned())?;
        let back = plan::plan(&now, &before, &[])?;
        let ops: Vec<&Op> = back.ops().collect();
        if let Err((at, trouble)) = self.kernel.carry_out(ops.iter().copied()) {
            bail!("{dev}: {trouble}: {:?}", ops[at.min(ops.len() - 1)]);
        }
        Ok(())
    }

    /// Takes away a link that was not there before.
    fn unmake(&mut self, dev: &str) -> anyhow::Result<()> {
        if self.links.index(dev).is_err() {
            return Ok(());
        }
        self.links.delete(dev).with_context(|| dev.to_owned())
    }

    fn rules_back(&mut self, before: &Before) -> anyhow::Result<()> {
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

/// Whose fault it was: the command, the kernel's words, and what may help.
fn blame(wanted: &Wanted, plan: &Plan, at: usize, trouble: &Trouble, dev: &str) -> String {
    let mut before = 0;
    let step = plan.steps.iter().find(|step| {
        before += step.ops.len();
        before > at
    });
    let Some(step) = step else { return format!("{dev}: {trouble}") };
    let place = wanted.place(&step.item).map(|place| format!("{place}\n  ")).unwrap_or_default();
    let remedy = match trouble {
        Trouble::Refused(refused) if matches!(refused.errno, 2 | 95) => {
            "; this kernel may lack it (`modprobe`), and --backend user needs none of it"
        }
        Trouble::Refused(refused) if refused.errno == 1 => "; it takes root (CAP_NET_ADMIN)",
        _ => "",
    };
    format!("{place}{trouble}{remedy}\n    {}", super::diff::line(step))
}

/// What of a policy is tried in another namespace.
struct Tried {
    devices: Vec<(String, Stand)>,
    log: Vec<Op>,
    tables: Vec<Table>,
}

/// Can this kernel do what the policy asks? Tried in a namespace of its own, which nobody else sees; in the words of what it lacks.
///
/// # Errors
/// It cannot be tried.
pub(super) fn lacks(wanted: &Wanted) -> anyhow::Result<Option<String>> {
    let place = Place::new("probe").context("this kernel's kinds cannot be tried in a namespace")?;
    let devices = wanted.devices.iter().cloned().zip(wanted.stands.iter().cloned()).collect();
    let tried = Tried { devices, log: wanted.log.clone(), tables: wanted.tables.clone() };
    place.go(move || tried.lacks())?
}

impl Tried {
    fn lacks(&self) -> anyhow::Result<Option<String>> {
        let mut arm = Arm::open()?;
        let mut named: BTreeSet<String> = self.devices.iter().map(|(dev, _)| dev.clone()).collect();
        for op in &self.log {
            op.clone().each_device(&mut |name| {
                let _ = named.insert(name.clone());
            });
        }
        for name in named.iter().filter(|name| *name != "lo") {
            let kind = if LinkKind::of_name(name) == LinkKind::Ifb { "ifb" } else { "dummy" };
            arm.links.create_like(name, kind, 1000)?;
        }
        for (dev, stand) in &self.devices {
            if let Some(lacks) = self.of_device(&mut arm, dev, stand)? {
                return Ok(Some(lacks));
            }
        }
        if self.tables.is_empty() {
            return Ok(None);
        }
        let made = raw(ruleset("tidegate-probe", COMMENT, false, &self.tables)?);
        Ok(arm.carry_out(made).err().map(|error| format!("does not take the rules that set marks ({error:#})")))
    }

    fn of_device(&self, arm: &mut Arm, dev: &str, stand: &Stand) -> anyhow::Result<Option<String>> {
        let log: Vec<Op> = self.log.iter().filter(|op| op.device() == Some(dev)).cloned().collect();
        for step in &plan::plan(&Stand::default(), stand, &log)?.steps {
            if let Err((_, trouble)) = arm.kernel.carry_out(&step.ops) {
                return Ok(Some(lacking(step, &trouble)));
            }
        }
        let left = plan::plan(&arm.stand(dev)?, stand, &log)?;
        let lacks = left.steps.iter().find(|step| step.sign != plan::Sign::Remove).or(left.steps.first());
        Ok(lacks.map(|step| format!("takes `{}` without a word and does not do it", super::diff::line(step))))
    }
}

/// What a kernel lacks that refuses a step.
fn lacking(step: &plan::Step, trouble: &Trouble) -> String {
    let kind = match &step.item {
        plan::Item::Qdisc(dump) => dump.kind.name().to_owned(),
        plan::Item::Class(dump) => dump.kind.name().to_owned(),
        plan::Item::Filter(dump) => format!("filters of the kind {}", dump.kind),
    };
    match trouble {
        // The kernel knows no such kind.
        Trouble::Refused(refused) if refused.errno == ENOENT => format!("has no {kind}"),
        trouble => format!("does not do `{}` ({trouble})", super::diff::line(step)),
    }
}

/// All links there are.
pub(super) fn links() -> anyhow::Result<Vec<Link>> {
    news::links().context("the kernel does not tell its links")
}

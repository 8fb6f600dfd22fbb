//! Another policy for a daemon that runs: only what differs is changed, and no packet that waits is dropped
//! by it.

use crate::counter::Counter;
use crate::error::{Error, ErrorContext, Result};
use crate::machine::{START, Wanted};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::PoisonError;
use tidegate_dataplane::daemon::{DaemonContext, DaemonGone};
use tidegate_gateway::GatewayContext;
use tidegate_loader::ReadOptions;
use tidegate_plan::{ChangePlan, plan};
use tidegate_policy::dump::Installed;
use tidegate_policy::{LinkDriver, LinkOp, Op};

/// What the commands of a policy come to, each with its tool first: `["tc", "qdisc", "add", …]`.
///
/// # Errors
/// One of them is refused.
pub fn operations(commands: &[Vec<String>]) -> Result<Vec<Op>> {
    let policy = tidegate_loader::read_commands("the daemon's policy", commands, &ReadOptions::default())
        .map_err(|error| error!(Policy, "{error}"))?;
    if let Some(refused) = policy.troubles().find(|trouble| !trouble.is_idle()) {
        let command = refused.place.as_ref().map_or("", |place| place.text.as_str());
        bail!(Policy, "`{command}`: {}", refused.reason.trim());
    }
    Ok(policy.machine.log)
}

/// A device: its name, whether the machine has it, and what is installed.
type Found = (String, bool, Installed);

/// Has the daemon run this from now on, or leaves all as it was.
///
/// # Errors
/// What the machine or the kernel refuses, or why the policy cannot be reached from the one that runs.
pub(crate) fn reload(counter: &Counter, wanted: &Wanted) -> Result<Value> {
    let mut current = counter.wanted.lock().map_err(|_| error!(Policy, "an earlier change failed"))?;
    let (old, new) = (current.name(), wanted.name());
    ensure!(
        new == old,
        Policy,
        "the policy is for `{new}`, and this daemon shapes `{old}`; `tidegate down {old}` ends it"
    );
    let found = found(counter, &current, wanted)?;
    let (made, plans) = plans(&found, wanted)?;
    counter.marks.replace(&current, wanted)?;
    let ops: Vec<Op> = made.into_iter().chain(plans.iter().flat_map(|plan| plan.ops().cloned())).collect();
    if let Err(error) = carry_out(counter, found, ops, &current, wanted) {
        counter.marks.replace(wanted, &current).context("the policy's marks cannot be brought back")?;
        return Err(error);
    }
    *current = wanted.clone();
    let changed: usize = plans.iter().map(|plan| plan.steps.len()).sum();
    let kept: usize = plans.iter().map(|plan| plan.kept).sum();
    Ok(json!({"reloaded": true, "changed": changed, "kept": kept}))
}

/// Carries out all operations between two packets, or brings back what was found.
fn carry_out(
    counter: &Counter,
    found: Vec<Found>,
    ops: Vec<Op>,
    current: &Wanted,
    wanted: &Wanted,
) -> Result<()> {
    let moved = (wanted.spots != current.spots).then(|| wanted.spots.clone());
    let (places, log) = (counter.places.clone(), current.ops.clone());
    let result = counter.command_sender.run(move |running| -> Result<()> {
        if let Err((at, error)) = running.apply(&ops)? {
            let text = format!("{error}: {:?}", ops[at]);
            return match undo(running, &found, &log) {
                Ok(()) => Err(error!(Policy, "{text}; everything is as it was")),
                Err(problem) => Err(problem.context(format!(
                    "{text}; and it could not be undone: `tidegate down` and `tidegate apply` start again"
                ))),
            };
        }
        if let Some(spots) = moved {
            // The backend is opened there, once this command is done.
            places.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&spots);
            running.settle_in(spots);
        }
        Ok(())
    });
    result.map_err(gone)?
}

/// Brings back what was found, from wherever the machine is now.
fn undo(running: &mut DaemonContext<'_>, found: &[Found], log: &[Op]) -> Result<()> {
    for (name, _, wanted) in found {
        let attached = running
            .visit(|gateway, GatewayContext { now, .. }| tidegate_plan::installed(gateway, now, name))?;
        let back: Vec<Op> = plan(&attached, wanted, log)?.ops().cloned().collect();
        running.apply(&back)?.map_err(|(at, error)| error!(Policy, "{error}: {:?}", back[at]))?;
    }
    Ok(())
}

fn gone(_: DaemonGone) -> Error {
    error!(Policy, "the daemon is ending")
}

/// How what runs differs from the policy that was given, a text for each device: `tidegate tc` can change it.
///
/// # Errors
/// The daemon is ending, or its backend is broken.
pub(crate) fn drift(counter: &Counter) -> Result<Vec<String>> {
    let current = counter.wanted.lock().map_err(|_| error!(Policy, "an earlier change failed"))?.clone();
    let mut machine = current.machine()?;
    let known: BTreeSet<String> = machine.devices().map(|id| machine.name(id).to_owned()).collect();
    let mut texts = Vec::new();
    // One that was renamed meanwhile is not compared.
    for (name, _, runs) in found(counter, &current, &current)?
        .into_iter()
        .filter(|(name, there, _)| *there && known.contains(name))
    {
        let back = plan(&runs, &tidegate_plan::installed(&mut machine, START, &name), &current.ops)?;
        if !back.is_empty() {
            texts.push(tidegate_plan::text::drift(&name, &back));
        }
    }
    Ok(texts)
}

/// What is installed on the devices that run and on those of another policy.
fn found(counter: &Counter, current: &Wanted, wanted: &Wanted) -> Result<Vec<Found>> {
    let machine = wanted.machine()?;
    let mut names: BTreeSet<String> = machine.devices().map(|id| machine.name(id).to_owned()).collect();
    names.extend(current.devices.iter().map(|(link, _)| link.name.clone()));
    let found = counter.command_sender.run(move |running| {
        running.visit(|gateway, GatewayContext { now, .. }| {
            let there: BTreeSet<String> = gateway.devices().map(|id| gateway.name(id).to_owned()).collect();
            names.extend(there.iter().cloned());
            let one =
                |name: String| (there.contains(&name), tidegate_plan::installed(gateway, now, &name), name);
            names.into_iter().map(one).map(|(is_there, attached, name)| (name, is_there, attached)).collect()
        })
    });
    found.map_err(gone)?.context("the packet path is broken")
}

/// The way on each device, and what makes an ifb that is new.
fn plans(found: &[Found], wanted: &Wanted) -> Result<(Vec<Op>, Vec<ChangePlan>)> {
    let mut machine = wanted.machine()?;
    let mut made = Vec::new();
    let mut plans = Vec::new();
    for (name, is_there, attached) in found {
        if !is_there {
            let kind = LinkDriver::of_name(name);
            ensure!(
                kind == LinkDriver::Ifb,
                Policy,
                "`{name}` is new in this policy; `tidegate down` and `tidegate apply` start again with it"
            );
            made.push(Op::Link(LinkOp::Add { name: name.clone(), kind }));
        }
        plans.push(plan(attached, &tidegate_plan::installed(&mut machine, START, name), &wanted.ops)?);
    }
    Ok((made, plans))
}

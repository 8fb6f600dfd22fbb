//! Another policy for a daemon that runs: only what differs is changed, and no packet that waits is lost by it.

use super::answers::Counter;
use super::machine::{START, Wanted};
use crate::capture::{Answer, Call};
use crate::faces::Machine;
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::PoisonError;
use tidegate_gateway::World;
use tidegate_live::daemon::Gone;
use tidegate_live::plan::{Plan, Stand, plan};
use tidegate_packet::{Pool, Seeded};
use tidegate_policy::{LinkKind, LinkOp, Op};

/// What commands come to, each with its tool first.
///
/// # Errors
/// One of them is refused.
pub(super) fn log(commands: &[Vec<String>]) -> anyhow::Result<Vec<Op>> {
    let mut machine = Machine::for_script([]);
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let mut face = machine.face(&mut pool, &mut draws);
    for words in commands {
        let [tool, args @ ..] = words.as_slice() else { continue };
        let call = Call { tool: tool.clone(), args: args.to_vec(), stdin: None, cwd: "/".into() };
        let reply = face.answer(&call);
        ensure!(reply.code == 0, "`{}`: {}", words.join(" "), String::from_utf8_lossy(&reply.stderr).trim());
    }
    Ok(machine.log)
}

/// A device, as it stands and as it should.
struct Way {
    plan: Plan,
    /// The way back.
    undo: Plan,
}

/// Has the daemon run this from now on, or leaves all as it was.
///
/// # Errors
/// What the machine refuses, or why the policy cannot be reached from the one that runs.
pub(super) fn reload(counter: &Counter, wanted: &Wanted) -> anyhow::Result<Value> {
    let mut current = counter.wanted.lock().map_err(|_| anyhow::anyhow!("an earlier change failed"))?;
    if wanted.name() != current.name() {
        bail!(
            "the policy is for `{}`, and this daemon shapes `{}`; `tidegate down {}` ends it",
            wanted.name(),
            current.name(),
            current.name()
        );
    }
    let (made, ways) = ways(counter, &current, wanted)?;
    let forth: Vec<Op> = made.into_iter().chain(ways.iter().flat_map(|way| way.plan.ops().cloned())).collect();
    let back: Vec<Op> = ways.iter().rev().flat_map(|way| way.undo.ops().cloned()).collect();
    let moved = (wanted.spots != current.spots).then(|| wanted.spots.clone());
    let places = counter.places.clone();
    let told = counter.desk.ask(move |running| {
        let told = running.apply(&forth)?;
        if let Err((at, error)) = told {
            let undone = running.apply(&back)?;
            return Ok(Err((format!("{error}: {:?}", forth[at]), undone.is_ok())));
        }
        if let Some(spots) = moved {
            // The door is opened there, once this errand is done.
            places.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&spots);
            running.settle_in(spots);
        }
        std::io::Result::Ok(Ok(()))
    });
    match told.map_err(gone)?.context("the door is broken")? {
        Ok(()) => {}
        Err((error, true)) => bail!("{error}; everything is as it was"),
        Err((error, false)) => {
            bail!("{error}; and it could not be undone: `tidegate down` and `tidegate apply` begin anew")
        }
    }
    counter.marks.replace(&current, wanted)?;
    *current = wanted.clone();
    let changed: usize = ways.iter().map(|way| way.plan.steps.len()).sum();
    let kept: usize = ways.iter().map(|way| way.plan.kept).sum();
    Ok(json!({"reloaded": true, "changed": changed, "kept": kept}))
}

fn gone(_: Gone) -> anyhow::Error {
    anyhow::anyhow!("the daemon is ending")
}

/// The ways on all devices of either policy, and what makes an ifb that is new.
fn ways(counter: &Counter, current: &Wanted, wanted: &Wanted) -> anyhow::Result<(Vec<Op>, Vec<Way>)> {
    let mut machine = wanted.machine()?;
    let names: BTreeSet<String> = machine
        .devices()
        .map(|id| machine.name(id).to_owned())
        .chain(current.devices.iter().map(|(link, _)| link.name.clone()))
        .collect();
    let asked = names.clone();
    let stands = counter.desk.ask(move |running| {
        running.visit(|gateway, World { now, .. }| {
            let there: BTreeSet<String> = gateway.devices().map(|id| gateway.name(id).to_owned()).collect();
            let all: BTreeSet<String> = asked.union(&there).cloned().collect();
            all.into_iter()
                .map(|name| (there.contains(&name), Stand::of(gateway, now, &name), name))
                .collect::<Vec<_>>()
        })
    });
    let stands = stands.map_err(gone)?.context("the door is broken")?;
    let mut made = Vec::new();
    let mut ways = Vec::new();
    for (is_there, stands, name) in stands {
        if !is_there {
            let kind = LinkKind::of_name(&name);
            if kind != LinkKind::Ifb {
                bail!("`{name}` is new in this policy; `tidegate down` and `tidegate apply` begin anew with it");
            }
            made.push(Op::Link(LinkOp::Add { name: name.clone(), kind }));
        }
        let wants = Stand::of(&mut machine, START, &name);
        ways.push(Way { plan: plan(&stands, &wants, &wanted.ops)?, undo: plan(&wants, &stands, &current.ops)? });
    }
    Ok((made, ways))
}

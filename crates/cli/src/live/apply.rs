//! Applying a policy.

use super::kernel::{self, Arm, Before, Way};
use super::options::{Apply, Backend};
use super::state::{self, Raw, State};
use super::wanted::Wanted;
use super::{UNDONE, UNREAD, control, diff, guard, user};
use crate::daemon::room::Room;
use crate::session;
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_live::plan::{Plan, Stand, plan};
use tidegate_os::service::Alone;

/// How long a policy waits to be confirmed over SSH, seconds.
const OVER_SSH: u64 = 60;

/// Plays `tidegate apply`.
pub(super) fn command(options: &Apply) -> ExitCode {
    let read = kernel::links().and_then(|links| Ok((Wanted::read(options, &links)?, links)));
    let (wanted, links) = match read {
        Ok(read) => read,
        Err(error) => {
            eprintln!("tidegate apply: {error:#}");
            return UNREAD.into();
        }
    };
    let done = backend(options, &wanted).and_then(|(backend, why)| match backend {
        Backend::User => by_daemon(options, &wanted, &why),
        _ => by_kernel(options, &wanted, &links, &why),
    });
    match done {
        Ok(told) => {
            if options.json {
                println!("{told:#}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            if options.json {
                println!("{:#}", json!({"applied": false, "error": format!("{error:#}")}));
            }
            eprintln!("tidegate apply: {error:#}");
            UNDONE.into()
        }
    }
}

/// Whose disciplines it is to be, and why.
fn backend(options: &Apply, wanted: &Wanted) -> anyhow::Result<(Backend, String)> {
    let devices = wanted.devices.join(", ");
    let chosen = match options.backend {
        Backend::Auto => match kernel::lacks(wanted) {
            // Whoever may not try may not apply either, but may ask what would be done.
            Err(error) if options.dry_run => (
                Backend::Kernel,
                format!("the kernel's own disciplines, if it has them: that cannot be tried ({error:#})"),
            ),
            Err(error) => return Err(error),
            Ok(None) => {
                (Backend::Kernel, "the kernel's own disciplines: it has all that the policy asks for".to_owned())
            }
            Ok(Some(what)) => (Backend::User, format!("tidegate's own disciplines: this kernel {what}")),
        },
        Backend::Kernel => (Backend::Kernel, "the kernel's own disciplines, as asked".to_owned()),
        Backend::User => (Backend::User, "tidegate's own disciplines, as asked".to_owned()),
    };
    if !options.json {
        println!("{devices}: {}", chosen.1);
    }
    Ok(chosen)
}

/// The device whose name stands for the policy: the last, to which any ifb leads.
fn name(wanted: &Wanted) -> &str {
    wanted.devices.last().map_or("rules", String::as_str)
}

/// How long it waits to be confirmed; `None`: it does not.
fn patience(options: &Apply) -> Option<u64> {
    let usual = session::ssh().map(|_| OVER_SSH);
    options.confirm.or(usual).filter(|seconds| *seconds > 0)
}

fn by_daemon(options: &Apply, wanted: &Wanted, why: &str) -> anyhow::Result<Value> {
    safe(options, wanted)?;
    let room = Room::here()?;
    let prior = State::of_device(&room, name(wanted))?;
    if options.dry_run {
        if !options.json {
            print!("{}", anew(wanted)?);
        }
        return Ok(json!({"applied": false, "dry_run": true, "backend": "user", "why": why}));
    }
    if let Some((known, state)) = &prior
        && state.backend() == "kernel"
    {
        bail!(
            "the kernel's disciplines stand on `{known}` by a policy of ours; `tidegate down {known}` takes them away first"
        );
    }
    // What ran before can be gone back to, whatever becomes of its files.
    let previous = prior.filter(|_| user::status(name(wanted)).is_some()).map(|(_, prior)| before_last(&prior));
    let status = user::apply(options, name(wanted))?;
    let mut state = json!({
        "backend": "user", "why": why, "devices": wanted.devices, "policy": files(options), "applied_at": now(),
        "args": options.args, "dev": options.dev, "commands": wanted.commands, "previous": previous,
    });
    if let Some(seconds) = patience(options) {
        state["confirm"] = guard::awaited(seconds);
    }
    State(state.clone()).write(&room, name(wanted))?;
    guard::start(&state, name(wanted))?;
    told(options, &state, patience(options), name(wanted));
    Ok(json!({"applied": true, "state": state, "daemon": status}))
}

fn files(options: &Apply) -> Vec<String> {
    options.files.iter().map(|file| file.display().to_string()).collect()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn by_kernel(options: &Apply, wanted: &Wanted, links: &[tidegate_os::news::Link], why: &str) -> anyhow::Result<Value> {
    let (room, name) = (Room::here()?, name(wanted));
    let prior = State::read(&room, name)?;
    others(&room, wanted, name)?;
    let known: Vec<Raw> = prior.as_ref().map(|prior| state::raw(&prior.0["table"])).unwrap_or_default();
    let mut arm = Arm::open()?;
    let way = arm.way(wanted, name, &known, links)?;
    if !options.json {
        print!("{}", shown(&way));
    }
    safe(options, wanted)?;
    doubts(options, &way)?;
    if options.dry_run {
        return Ok(json!({"applied": false, "dry_run": true, "backend": "kernel", "why": why, "plan": listed(&way)}));
    }
    if way.is_empty() && prior.is_some() {
        return Ok(json!({"applied": true, "changed": false, "backend": "kernel", "why": why}));
    }
    room.make().context("the directory for what is applied cannot be made (TIDEGATE_RUN names another)")?;
    let _alone = locks(&room, wanted)?;
    let (before, plan) = (way.before.clone(), listed(&way));
    let mut state = noted(options, wanted, prior.as_ref(), &before, why);
    State(state.clone()).write(&room, name)?;
    if let Err(error) = arm.go(wanted, way) {
        return Err(undone(&mut arm, &before, &room, name, prior.as_ref(), &error));
    }
    state["table"] = state::kept_raw(&Arm::table_made(wanted, name)?);
    if let Some(seconds) = patience(options) {
        state["confirm"] = guard::awaited(seconds);
    }
    let kept = State(state.clone()).write(&room, name).and_then(|()| guard::start(&state, name));
    if let Err(error) = kept {
        return Err(undone(&mut arm, &before, &room, name, prior.as_ref(), &error));
    }
    told(options, &state, patience(options), name);
    Ok(
        json!({"applied": true, "changed": true, "backend": "kernel", "why": why, "devices": wanted.devices, "plan": plan,
        "confirm": state["confirm"]}),
    )
}

/// What is kept of it.
fn noted(options: &Apply, wanted: &Wanted, prior: Option<&State>, before: &Before, why: &str) -> Value {
    let kept = before.kept();
    // What stood there before anything of ours.
    let original = prior.map_or_else(|| kept.clone(), |prior| with_new(&prior.0["original"], &kept));
    let previous = prior.map(before_last);
    json!({
        "backend": "kernel", "why": why, "devices": wanted.devices, "policy": files(options), "applied_at": now(),
        "before": kept, "original": original, "previous": previous, "table": [], "confirm": null,
    })
}

/// A state as one that is gone back to: it waits for nobody, and from it the way leads no further back.
fn before_last(prior: &State) -> Value {
    let mut prior = prior.0.clone();
    prior["previous"] = Value::Null;
    prior["confirm"] = Value::Null;
    prior
}

/// What was noted first, and devices that were not yet known then.
fn with_new(original: &Value, kept: &Value) -> Value {
    let mut all = original.clone();
    for part in ["devices", "links"] {
        let known: Vec<String> = names(&all[part]);
        let more = kept[part].as_array().cloned().unwrap_or_default();
        let new = more
            .into_iter()
            .filter(|one| one["dev"].as_str().is_some_and(|dev| !known.iter().any(|known| known == dev)));
        if let Some(list) = all[part].as_array_mut() {
            list.extend(new);
        }
    }
    all
}

fn names(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|one| one["dev"].as_str()).map(str::to_owned).collect()
}

/// Undoes all of it: the error, with what came of that.
fn undone(
    arm: &mut Arm,
    before: &Before,
    room: &Room,
    name: &str,
    prior: Option<&State>,
    error: &anyhow::Error,
) -> anyhow::Error {
    let back = arm.undo(before);
    let kept = match prior {
        Some(prior) => prior.write(room, name),
        None => State::forget(room, name),
    };
    match back.and(kept) {
        Ok(()) => anyhow::anyhow!("{error:#}\n  everything stands as it stood before"),
        Err(left) => anyhow::anyhow!("{error:#}\n  and it could not be undone: {left:#}"),
    }
}

/// A device may be part of one policy of ours, and nobody else's daemon may have it.
fn others(room: &Room, wanted: &Wanted, name: &str) -> anyhow::Result<()> {
    for dev in &wanted.devices {
        if let Some((known, _)) = State::of_device(room, dev)?.filter(|(known, _)| known != name) {
            bail!("`{dev}` is part of what was applied to `{known}`; `tidegate down {known}` takes that away first");
        }
        if user::status(dev).is_some() {
            bail!("`{dev}` is shaped by a daemon of tidegate's; `tidegate down {dev}` ends it first");
        }
    }
    Ok(())
}

fn locks(room: &Room, wanted: &Wanted) -> anyhow::Result<Vec<Alone>> {
    let take = |dev: &String| {
        let path = room.lock(dev);
        let taken = Alone::take(&path).with_context(|| path.display().to_string())?;
        taken.with_context(|| format!("another tidegate is at work on `{dev}`; wait for it, or `tidegate down {dev}`"))
    };
    wanted.devices.iter().map(take).collect()
}

/// What keeps the network alive must get through.
fn safe(options: &Apply, wanted: &Wanted) -> anyhow::Result<()> {
    let dangers = control::dangers(&wanted.reading);
    for danger in &dangers {
        eprintln!("tidegate apply: {danger}");
    }
    ensure!(
        dangers.is_empty() || options.force || options.dry_run,
        "nothing was changed: the policy would cut off what keeps the network alive (above); --force applies it all the same"
    );
    Ok(())
}

fn doubts(options: &Apply, way: &Way) -> anyhow::Result<()> {
    for doubt in &way.doubts {
        eprintln!("tidegate apply: {doubt}");
    }
    ensure!(
        way.doubts.is_empty() || options.force || options.dry_run,
        "nothing was changed: not all that stands now could be brought back (above); --force applies it all the same"
    );
    Ok(())
}

fn shown(way: &Way) -> String {
    if way.is_empty() {
        return "everything stands already as it is wanted\n".into();
    }
    let plans = way.plans.iter().filter(|(_, plan)| !plan.is_empty() || plan.kept > 0);
    let mut out: String = plans.map(|(dev, plan)| diff::text(dev, plan)).collect();
    out.extend(way.about_rules());
    out
}

/// All of a policy, as a daemon's machine is told it.
fn anew(wanted: &Wanted) -> anyhow::Result<String> {
    let mut out = String::new();
    for (dev, stand) in wanted.devices.iter().zip(&wanted.stands) {
        out += &diff::text(dev, &plan(&Stand::default(), stand, &wanted.log)?);
    }
    Ok(out)
}

fn listed(way: &Way) -> Value {
    let steps = |plan: &Plan| -> Vec<Value> {
        plan.steps.iter().map(|step| json!({"sign": diff::word(step.sign), "command": diff::line(step)})).collect()
    };
    let devices = way.plans.iter().map(|(dev, plan)| json!({"dev": dev, "steps": steps(plan), "kept": plan.kept}));
    json!({"devices": devices.collect::<Vec<_>>(), "rules": way.about_rules().map(|text| text.trim_end().to_owned())})
}

fn told(options: &Apply, state: &Value, patience: Option<u64>, name: &str) {
    if options.json {
        return;
    }
    let devices = state::strings(&state["devices"]).join(", ");
    println!("applied to {devices}");
    if let Some(seconds) = patience {
        println!("it is undone in {seconds} s unless you say: tidegate confirm {name}");
    }
    println!("at work: tidegate top {name}; back: tidegate revert {name}");
}

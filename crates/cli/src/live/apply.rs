//! Applying a policy.

use super::guard::Guardian;
use super::job::{self, Does, Job, since_1970};
use super::kernel::{self, Arm, Before, Way};
use super::options::{Apply, Backend};
use super::state::{self, State};
use super::wanted::Wanted;
use super::{UNDONE, UNREAD, guard, kept, undone, user};
use crate::daemon::room::Room;
use crate::session;
use anyhow::{bail, ensure};
use serde_json::{Value, json};
use std::process::ExitCode;
use tidegate_os::boot;
use tidegate_os::service::Alone;
use tidegate_plan::{Plan, essential, plan, text as diff};
use tidegate_policy::dump::Installed;

/// How long a policy waits to be confirmed over SSH, seconds.
const OVER_SSH: u64 = 60;

/// Plays `tidegate apply`.
pub(super) fn command(options: &Apply) -> ExitCode {
    if options.at_boot {
        return at_boot();
    }
    if let Err(error) = in_order(options) {
        eprintln!("tidegate apply: {error:#}");
        return UNDONE.into();
    }
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
            // A plan that this kernel would refuse is none.
            if told["refused"].is_string() { UNDONE.into() } else { ExitCode::SUCCESS }
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

/// Applies what was applied for good before the machine was restarted; those that fail keep no others from being applied.
fn at_boot() -> ExitCode {
    let all = match kept::all() {
        Ok(all) => all,
        Err(error) => {
            eprintln!("tidegate apply: {error:#}");
            return UNREAD.into();
        }
    };
    let mut failed = false;
    for (name, options) in all {
        match waiting(&name) {
            Ok(None) => {
                println!("{name}: as it was before the restart");
                failed |= command(&options) != ExitCode::SUCCESS;
            }
            // Applied for good over it, it would never be undone.
            Ok(Some(why)) => {
                eprintln!("tidegate apply: {why}");
                failed = true;
            }
            Err(error) => {
                eprintln!("tidegate apply: {error:#}");
                failed = true;
            }
        }
    }
    if failed { UNDONE.into() } else { ExitCode::SUCCESS }
}

/// Why a policy is not applied again now: another one of the same device waits to be confirmed.
fn waiting(name: &str) -> anyhow::Result<Option<String>> {
    let known = State::of_device(&Room::here()?, name)?;
    Ok(known.and_then(|(known, state)| {
        let left = state.left_to_confirm()?.as_secs();
        Some(format!(
            "`{known}` has a policy that waits to be confirmed ({left} s left), so nothing was changed there; \
             `tidegate confirm {known}` keeps it, `tidegate revert {known}` undoes it, then `tidegate apply --at-boot`"
        ))
    }))
}

/// Ends or undoes what earlier processes did not end: what is there now is to be looked at afterwards.
fn in_order(options: &Apply) -> anyhow::Result<()> {
    let room = Room::here()?;
    for (name, _) in State::all(&room)?.into_iter().filter(|(_, state)| state.job().is_some()) {
        if options.dry_run {
            eprintln!(
                "tidegate apply: `{name}` is in progress; `tidegate apply` without --dry-run puts that in order first"
            );
            continue;
        }
        let _alone = job::alone(&room)?;
        if let Some(does) = job::resume(&room, &name)? {
            eprintln!(
                "tidegate apply: `tidegate {}` was interrupted on `{name}`; that was put in order first",
                does.name()
            );
        }
    }
    Ok(())
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
    let (room, name) = (Room::here()?, name(wanted));
    if options.dry_run {
        if !options.json {
            print!("{}", anew(wanted)?);
        }
        say_standing(options, &kernel::shapers(&wanted.devices), None);
        return Ok(json!({"applied": false, "dry_run": true, "backend": "user", "why": why}));
    }
    let mut begun = Begun::new(options, &room, name)?;
    let standing = kernel::shapers(&wanted.devices);
    let prior = State::of_device(&room, name)?;
    if let Some((known, state)) = &prior
        && state.backend() == "kernel"
    {
        bail!(
            "the kernel's disciplines stand on `{known}` by a policy of ours; `tidegate down {known}` takes them away first"
        );
    }
    let prior = prior.map(|(_, prior)| prior);
    // What ran before can be gone back to, whatever becomes of its files.
    let before = user::policy(&room, name)?;
    let by_hand = before.is_some() && prior.as_ref().is_none_or(|prior| prior.0["by_hand"] == true);
    let previous = before.as_ref().and_then(|before| Some(before_last(prior.as_ref()?, before)));
    let mut state = json!({
        "backend": "user", "why": why, "devices": wanted.devices, "policy": user::absolute(&options.files),
        "applied_at": now(), "boot": boot::id()?, "args": options.args, "dev": options.dev, "commands": wanted.commands,
        "previous": previous, "before": {"daemon": before}, "confirm": null, "door": options.door.name(),
        "by_hand": by_hand,
        "realtime": options.realtime, "force": options.force,
    });
    let token = begun.write(&mut state, prior)?;
    let status = match user::apply(options, &room, name, &token) {
        Ok(status) => status,
        Err(error) => return Err(begun.undone(&error)),
    };
    if let Err(error) = begun.end(&mut state) {
        return Err(begun.undone(&error));
    }
    // A daemon that ran before may have put something there itself, and has said so before.
    let standing = if state["before"]["daemon"].is_null() { standing } else { Vec::new() };
    say_standing(options, &standing, user::door(&room, name).as_deref());
    told(options, &state, patience(options), name);
    Ok(json!({"applied": true, "state": state, "daemon": status}))
}

/// A policy that is being applied: from the guardian's start on, before anything is changed, until all of it is there.
struct Begun<'o> {
    options: &'o Apply,
    room: &'o Room,
    name: String,
    guardian: Guardian,
    alone: Option<Alone>,
}

impl<'o> Begun<'o> {
    /// Starts the guardian, and ends or undoes what an earlier process did not end.
    fn new(options: &'o Apply, room: &'o Room, name: &str) -> anyhow::Result<Begun<'o>> {
        let alone = job::alone(room)?;
        let guardian = Guardian::start(name)?;
        if State::read(room, name)?.is_some_and(|state| state.job().is_some()) {
            bail!("`{name}` is in progress, as another command left it just now; `tidegate status` shows more");
        }
        Ok(Begun { options, room, name: name.to_owned(), guardian, alone: Some(alone) })
    }

    /// Writes down what is about to be changed, and how to go back; the job's token.
    fn write(&self, state: &mut Value, prior: Option<State>) -> anyhow::Result<String> {
        let job = Job::new(Does::Apply, prior);
        state["job"] = job.kept();
        State(state.clone()).write(self.room, &self.name)?;
        Ok(job.token)
    }

    /// Everything is there: from now on it stays, unless it is to be confirmed.
    fn end(&mut self, state: &mut Value) -> anyhow::Result<()> {
        if let Some(seconds) = patience(self.options) {
            // Without it nobody would go back.
            self.guardian.watches()?;
            state["confirm"] = guard::awaited(seconds);
            state["guardian"] = json!(self.guardian.pid());
        }
        state["job"] = Value::Null;
        let last = State(state.clone());
        last.write(self.room, &self.name)?;
        // What a service manager runs is its own business after a restart.
        if last.left_to_confirm().is_none()
            && last.0["by_hand"] != true
            && let Err(error) = kept::keep(&self.name, &last)
        {
            eprintln!("tidegate apply: {error:#}");
        }
        undone::forget(self.room, &self.name);
        self.alone = None;
        Ok(())
    }

    /// Undoes all of it: the error, with what came of that.
    fn undone(&self, error: &anyhow::Error) -> anyhow::Error {
        match job::resume(self.room, &self.name) {
            Ok(_) => anyhow::anyhow!("{error:#}\n  everything stands as it stood before"),
            Err(left) => anyhow::anyhow!(
                "{error:#}\n  and it could not be undone: {left:#}\n  the guardian (process {}) goes on trying, and logs to {}",
                self.guardian.pid(),
                self.room.guard_log(&self.name).display()
            ),
        }
    }
}

/// Says what the kernel has on the devices that packets do not meet while a daemon of ours has them. `door`: how packets come to it, if that is known.
fn say_standing(options: &Apply, standing: &[(String, String)], door: Option<&str>) {
    if options.json {
        return;
    }
    for (dev, qdisc) in standing {
        let effect = match door {
            Some("nfqueue") => "packets pass it after tidegate's daemon, so they are queued twice".to_owned(),
            Some(door) => format!("packets bypass it while tidegate's daemon has the device ({door})"),
            None => "packets would bypass it with --door capture, and be queued twice with --door nfqueue".to_owned(),
        };
        println!(
            "{dev} has the kernel's {qdisc}: {effect}; it is left as it is, and is in force again after `tidegate down`"
        );
    }
}

fn now() -> u64 {
    since_1970().as_secs()
}

fn by_kernel(options: &Apply, wanted: &Wanted, links: &[tidegate_os::news::Link], why: &str) -> anyhow::Result<Value> {
    let (room, name) = (Room::here()?, name(wanted));
    others(&room, wanted, name)?;
    if options.dry_run {
        return dry_run(options, wanted, links, why);
    }
    if options.realtime {
        eprintln!("tidegate apply: --realtime is for tidegate's daemon; the kernel's disciplines do not need it");
    }
    let mut begun = Begun::new(options, &room, name)?;
    let prior = State::read(&room, name)?;
    others(&room, wanted, name)?;
    let mut arm = Arm::open()?;
    let way = arm.way(wanted, name, prior.as_ref(), links)?;
    if !options.json {
        print!("{}", shown(&way));
    }
    safe(options, wanted)?;
    doubts(options, &way)?;
    if way.is_empty() && prior.is_some() {
        undone::forget(&room, name);
        if let Some(left) = prior.as_ref().and_then(State::left_to_confirm) {
            eprintln!(
                "tidegate apply: it still waits to be confirmed, and is undone in {} s unless you say: tidegate confirm {name}",
                left.as_secs()
            );
        }
        return Ok(json!({"applied": true, "changed": false, "backend": "kernel", "why": why}));
    }
    let plan = listed(&way);
    let mut state = noted(options, wanted, prior.as_ref(), &way.before, why)?;
    begun.write(&mut state, prior)?;
    let done = arm.go(wanted, way).and_then(|()| {
        state["table"] = state::kept_raw(&Arm::table_made(wanted, name)?);
        state["installed"] = arm.installed(wanted, name)?;
        begun.end(&mut state)
    });
    if let Err(error) = done {
        return Err(begun.undone(&error));
    }
    told(options, &state, patience(options), name);
    Ok(
        json!({"applied": true, "changed": true, "backend": "kernel", "why": why, "devices": wanted.devices, "plan": plan,
        "confirm": state["confirm"]}),
    )
}

/// What would be done, and whether this kernel would refuse it.
fn dry_run(options: &Apply, wanted: &Wanted, links: &[tidegate_os::news::Link], why: &str) -> anyhow::Result<Value> {
    let (room, name) = (Room::here()?, name(wanted));
    let way = Arm::open()?.way(wanted, name, State::read(&room, name)?.as_ref(), links)?;
    if !options.json {
        print!("{}", shown(&way));
    }
    safe(options, wanted)?;
    doubts(options, &way)?;
    let lacks = kernel::lacks(wanted);
    if let Err(error) = &lacks {
        eprintln!("tidegate apply: whether this kernel takes all of it cannot be tried ({error:#})");
    }
    let lacks = lacks.ok().flatten();
    if let Some(what) = &lacks {
        eprintln!("tidegate apply: this would be refused: this kernel {what}; --backend user needs none of it");
    }
    Ok(json!({
        "applied": false, "dry_run": true, "backend": "kernel", "why": why, "plan": listed(&way), "refused": lacks,
    }))
}

/// What is kept of it.
fn noted(options: &Apply, wanted: &Wanted, prior: Option<&State>, before: &Before, why: &str) -> anyhow::Result<Value> {
    let kept = before.kept();
    // What stood there before anything of ours.
    let original = prior.map_or_else(|| kept.clone(), |prior| with_new(&prior.0["original"], &kept));
    let previous = prior.map(|prior| {
        let mut previous = prior.0.clone();
        // What waits to be confirmed goes on waiting when it is gone back to: from it the way leads further back.
        if prior.left_to_confirm().is_none() {
            previous["previous"] = Value::Null;
        }
        previous
    });
    let ingress: Vec<&String> = wanted.devices.iter().filter(|dev| wanted.says_ingress(dev)).collect();
    Ok(json!({
        "backend": "kernel", "why": why, "devices": wanted.devices, "policy": user::absolute(&options.files),
        "applied_at": now(), "boot": boot::id()?, "args": options.args, "dev": options.dev, "commands": wanted.commands,
        "before": kept, "original": original, "previous": previous, "table": [], "confirm": null, "ingress": ingress,
        "force": options.force,
    }))
}

/// The state of a policy that is gone back to: from it the way leads no further back, unless it waits to be
/// confirmed. `before`: what its daemon ran.
fn before_last(prior: &State, before: &Value) -> Value {
    let waits = prior.left_to_confirm().is_some();
    let mut prior = prior.0.clone();
    if !waits {
        (prior["previous"], prior["before"]) = (Value::Null, json!({"daemon": null}));
    }
    prior["commands"] = before["commands"].clone();
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

/// A device may be part of one policy of ours, and nobody else's daemon may have it.
fn others(room: &Room, wanted: &Wanted, name: &str) -> anyhow::Result<()> {
    for dev in &wanted.devices {
        if let Some((known, _)) = State::of_device(room, dev)?.filter(|(known, _)| known != name) {
            bail!("`{dev}` is part of what was applied to `{known}`; `tidegate down {known}` takes that away first");
        }
        if let Some(pid) = Room::holder(&room.lock(dev)) {
            bail!("`{dev}` is shaped by a daemon of tidegate's (process {pid}); `tidegate down {dev}` ends it first");
        }
    }
    Ok(())
}

/// What keeps the network alive must get through.
fn safe(options: &Apply, wanted: &Wanted) -> anyhow::Result<()> {
    let dangers = essential::dangers(&wanted.reading, session::ssh().map(session::Ssh::ends));
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
        out += &diff::text(dev, &plan(&Installed::default(), stand, &wanted.log)?);
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

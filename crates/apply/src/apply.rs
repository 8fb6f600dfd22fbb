//! Applying a policy.

use crate::before::Before;
use crate::guardian::{self, Guardian};
use crate::job;
use crate::kernel::{self, Arm, KernelPlan};
use crate::notice::{Notice, NoticeHandler};
use crate::options::{ApplyOptions, BackendChoice};
use crate::record;
use crate::state::{Does, Job, State};
use crate::status::{Health, PolicyHealth, healths};
use crate::time::since_1970;
use crate::wanted::Wanted;
use crate::{kept, undone, user};
use serde_json::{Value, json};
use tidegate_daemon::ssh;
use tidegate_daemon::{Error, Result, bail, ensure, error};
use tidegate_daemon::{PacketIoBackend, RuntimeDir, names_to_json, running_policy};
use tidegate_plan::rebind::main_device;
use tidegate_plan::{ChangePlan, essential, plan, text as diff};
use tidegate_sys::boot;
use tidegate_sys::service::Alone;

/// How long a policy waits to be confirmed over SSH, seconds.
const OVER_SSH: u64 = 60;

/// Applies a policy that was read by [`read()`](crate::read()): the result, as `tidegate apply --json` prints
/// it.
/// `report` gets progress messages and warnings. Before the first change a guardian process is started, which
/// reverts if this process dies, or if the policy is not confirmed in time.
///
/// # Errors
/// The kernel or the daemon refuses something; then all of it was undone, or the guardian continues trying
/// to. Or nothing was changed: the devices belong to another process, or the policy is
/// [`ErrorKind::Unsafe`](crate::ErrorKind::Unsafe) and not forced.
pub fn apply(options: &ApplyOptions, wanted: &Wanted, report: NoticeHandler<'_>) -> Result<Value> {
    let (backend, why) = backend(options, wanted, report)?;
    match backend {
        BackendChoice::User => by_daemon(options, wanted, &why, report),
        _ => by_kernel(options, wanted, &why, report),
    }
}

/// Why a policy is not applied again now: another one of the same device waits to be confirmed.
///
/// # Errors
/// A state cannot be read.
pub fn waiting(name: &str) -> Result<Option<String>> {
    let known = State::of_device(&RuntimeDir::here()?, name)?;
    Ok(known.and_then(|(known, state)| {
        let left = state.left_to_confirm()?.as_secs();
        Some(format!(
            "`{known}` has a policy that waits to be confirmed ({left} s left), so nothing was changed \
            there; `tidegate confirm {known}` keeps it, `tidegate revert {known}` undoes it, then `tidegate \
            apply --at-boot`"
        ))
    }))
}

/// Finishes or undoes what earlier processes did not finish; the caller must read the state again afterwards.
/// With `dry_run`, only reports it.
///
/// # Errors
/// A state cannot be read, or what an earlier process did cannot be undone.
pub fn put_in_order(dry_run: bool, report: NoticeHandler<'_>) -> Result<()> {
    let room = RuntimeDir::here()?;
    for (name, _) in State::all(&room)?.into_iter().filter(|(_, state)| state.job().is_some()) {
        if dry_run {
            warn(
                report,
                format!(
                    "`{name}` is in progress; `tidegate apply` without --dry-run puts that in order first"
                ),
            );
            continue;
        }
        let _alone = job::alone(&room)?;
        if let Some(does) = job::resume(&room, &name, report)? {
            warn(
                report,
                format!(
                    "`tidegate {}` was interrupted on `{name}`; that was put in order first",
                    does.name()
                ),
            );
        }
    }
    Ok(())
}

/// Whose qdiscs it is to be, and why.
fn backend(
    options: &ApplyOptions,
    wanted: &Wanted,
    report: NoticeHandler<'_>,
) -> Result<(BackendChoice, String)> {
    let chosen = match options.backend {
        BackendChoice::Auto => match kernel::lacks(wanted) {
            // A user without the permission to try may not apply either, but may ask what would be done.
            Err(error) if options.dry_run => (
                BackendChoice::Kernel,
                format!("the kernel's qdiscs, if it has them: that cannot be tested ({error:#})"),
            ),
            Err(error) => return Err(error),
            Ok(None) => {
                (BackendChoice::Kernel, "the kernel's qdiscs: it has all that the policy needs".to_owned())
            }
            Ok(Some(what)) => {
                (BackendChoice::User, format!("tidegate's qdiscs in user space: this kernel {what}"))
            }
        },
        BackendChoice::Kernel => (BackendChoice::Kernel, "the kernel's qdiscs, as requested".to_owned()),
        BackendChoice::User => {
            (BackendChoice::User, "tidegate's qdiscs in user space, as requested".to_owned())
        }
    };
    report(Notice::Backend { devices: wanted.devices.clone(), why: chosen.1.clone() });
    Ok(chosen)
}

/// The device after which the policy is named: the last, to which any ifb leads.
fn name(wanted: &Wanted) -> &str {
    wanted.devices.last().map_or("rules", String::as_str)
}

/// How long it waits to be confirmed; `None`: it does not.
fn patience(options: &ApplyOptions) -> Option<u64> {
    let usual = ssh::session().map(|_| OVER_SSH);
    options.confirm.or(usual).filter(|seconds| *seconds > 0)
}

fn by_daemon(options: &ApplyOptions, wanted: &Wanted, why: &str, report: NoticeHandler<'_>) -> Result<Value> {
    safe(options, wanted, report)?;
    // The daemon is named alike.
    let main = main_device(&wanted.log);
    let (room, name) = (RuntimeDir::here()?, main.as_deref().unwrap_or_else(|| name(wanted)));
    // The daemon refuses the same, later and less clearly.
    Arm::table_made(wanted, name).map_err(|error| error!(Policy, "nothing is applied: {error:#}"))?;
    if options.dry_run {
        let (plans, rules) = daemon_plan(wanted, &room, name, report)?;
        report(Notice::Plan(plan_text(&plans, rules.as_deref())));
        report_installed(report, &kernel::shapers(&wanted.devices), None);
        return Ok(json!({
            "applied": false, "dry_run": true, "backend": "user", "why": why,
            "plan": listed(&plans, rules.as_deref()),
        }));
    }
    let mut begun = Begun::new(options, &room, name, report)?;
    let shapers = kernel::shapers(&wanted.devices);
    let prior = State::of_device(&room, name)?;
    if let Some((known, state)) = &prior
        && state.backend() == "kernel"
    {
        bail!(
            Busy,
            "the kernel's qdiscs were applied to `{known}` by tidegate; `tidegate down {known}` removes \
            them first"
        );
    }
    let prior = prior.map(|(_, prior)| prior);
    let (plans, rules) = daemon_plan(wanted, &room, name, report)?;
    let differs = !is_nothing(&plans, rules.as_deref());
    if differs {
        report(Notice::Plan(plan_text(&plans, rules.as_deref())));
    }
    // A revert can restore an earlier policy whatever happens to its files.
    let before = running_policy(&room, name)?;
    if let (false, Some(prior), Some(before)) = (differs, &prior, &before)
        && runs_as_asked(options, before)
        && before["names"] == names_to_json(&wanted.names)
        && is_healthy(name)?
    {
        report(Notice::Plan(plan_text(&plans, rules.as_deref())));
        return Ok(unchanged(&room, name, prior, ("user", why), report));
    }
    let was_running = before.is_some();
    let by_hand = was_running && prior.as_ref().is_none_or(|prior| prior.0["by_hand"] == true);
    let previous = before.as_ref().and_then(|before| Some(before_last(prior.as_ref()?, before)));
    // Where it only brings the same policy back in order, a revert leads to what was before that.
    let same = prior
        .as_ref()
        .filter(|_| !differs)
        .map(|prior| (prior.0["before"].clone(), prior.0["previous"].clone()));
    let mut state = json!({
        "backend": "user", "why": why, "devices": wanted.devices, "policy": user::absolute(&options.files),
        "applied_at": now(), "boot": boot::id()?, "args": options.args, "dev": options.dev, "commands": wanted.commands,
        "names": names_to_json(&wanted.names),
        "previous": previous, "before": {"daemon": before}, "confirm": null, "packet_io": options.packet_io.name(),
        "by_hand": by_hand,
        "realtime": options.realtime, "force": options.force,
    });
    let token = begun.write(&mut state, prior)?;
    let status = match user::apply(options, &room, name, &token, report) {
        Ok(status) => status,
        Err(error) => return Err(begun.undone(&error)),
    };
    if let Some(same) = same {
        (state["before"], state["previous"]) = same;
    }
    if let Err(error) = begun.end(&mut state) {
        return Err(begun.undone(&error));
    }
    // An earlier daemon may have installed something there itself, and has reported that before.
    let shapers = if was_running { Vec::new() } else { shapers };
    report_installed(report, &shapers, user::packet_io(&room, name));
    report(applied(&state, patience(options), name));
    Ok(json!({
        "applied": true, "changed": true, "backend": "user", "why": why, "devices": wanted.devices,
        "plan": listed(&plans, rules.as_deref()), "confirm": state["confirm"], "daemon": status,
    }))
}

/// Does the daemon that runs take packets as the options say?
fn runs_as_asked(options: &ApplyOptions, running: &Value) -> bool {
    let packet_io = options.packet_io.name();
    [running["packet_io"].as_str(), Some(PacketIoBackend::Auto.name())].contains(&Some(packet_io))
        && running["realtime"] == options.realtime
}

/// Is the policy at work as it was applied?
fn is_healthy(name: &str) -> Result<bool> {
    let is_well =
        |health: &Health| matches!(health.condition, PolicyHealth::Installed | PolicyHealth::Waiting);
    Ok(healths(Some(name))?.iter().all(is_well))
}

/// The same policy with other names for its classes: nothing else is written down of it.
fn renamed(room: &RuntimeDir, name: &str, prior: &State, wanted: &Wanted) -> Result<()> {
    let names = names_to_json(&wanted.names);
    if prior.0["names"] == names {
        return Ok(());
    }
    let mut state = prior.clone();
    state.0["names"] = names;
    state.write(room, name)?;
    if state.left_to_confirm().is_none() {
        kept::keep(name, &state)?;
    }
    Ok(())
}

/// The policy is in place already. What a revert goes back to stays as it was: it would lead from the policy
/// to itself.
fn unchanged(
    room: &RuntimeDir,
    name: &str,
    prior: &State,
    (backend, why): (&str, &str),
    report: NoticeHandler<'_>,
) -> Value {
    undone::forget(room, name);
    if let Some(left) = prior.left_to_confirm() {
        warn(
            report,
            format!(
                "it still waits to be confirmed, and is undone in {} s unless confirmed: tidegate confirm {name}",
                left.as_secs()
            ),
        );
    }
    json!({"applied": true, "changed": false, "backend": backend, "why": why})
}

/// A policy that is being applied: from the guardian's start on, before anything is changed, until all of it
/// is there.
struct Begun<'o> {
    options: &'o ApplyOptions,
    report: NoticeHandler<'o>,
    room: &'o RuntimeDir,
    name: String,
    guardian: Guardian,
    alone: Option<Alone>,
}

impl<'o> Begun<'o> {
    /// Starts the guardian, and ends or undoes what an earlier process did not end.
    fn new(
        options: &'o ApplyOptions,
        room: &'o RuntimeDir,
        name: &str,
        report: NoticeHandler<'o>,
    ) -> Result<Begun<'o>> {
        let alone = job::alone(room)?;
        let guardian = Guardian::start(name)?;
        if State::read(room, name)?.is_some_and(|state| state.job().is_some()) {
            bail!(
                Busy,
                "`{name}` is in progress, as another command left it just now; `tidegate status` shows more"
            );
        }
        Ok(Begun { options, report, room, name: name.to_owned(), guardian, alone: Some(alone) })
    }

    /// Writes down what is about to be changed, and how to go back; the job's token.
    fn write(&self, state: &mut Value, prior: Option<State>) -> Result<String> {
        let job = Job::new(Does::Apply, prior);
        state["job"] = job.kept();
        State(state.clone()).write(self.room, &self.name)?;
        Ok(job.token)
    }

    /// Everything is there: from now on it stays, unless it is to be confirmed.
    fn end(&mut self, state: &mut Value) -> Result<()> {
        if let Some(seconds) = patience(self.options) {
            // Without it nothing would revert.
            self.guardian.watches()?;
            state["confirm"] = guardian::awaited(seconds);
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
            warn(self.report, format!("{error:#}"));
        }
        undone::forget(self.room, &self.name);
        self.alone = None;
        Ok(())
    }

    /// Undoes all of it: the error, with the result of that.
    fn undone(&self, error: &Error) -> Error {
        match job::resume(self.room, &self.name, self.report) {
            Ok(_) => Error::new(error.kind(), format!("{error:#}\n  the previous configuration is in place")),
            Err(left) => Error::new(
                error.kind(),
                format!(
                    "{error:#}\n  and it could not be undone: {left:#}\n  the guardian (process {}) goes on \
                    trying, and logs to {}",
                    self.guardian.pid(),
                    self.room.guard_log(&self.name).display()
                ),
            ),
        }
    }
}

/// Says what the kernel has on the devices that packets do not meet while a daemon of tidegate's has them.
/// `packet_io`: how packets come to it, if that is known.
fn report_installed(report: NoticeHandler<'_>, shapers: &[(String, String)], packet_io: Option<String>) {
    for (dev, qdisc) in shapers {
        report(Notice::Bypassed { dev: dev.clone(), qdisc: qdisc.clone(), packet_io: packet_io.clone() });
    }
}

fn warn(report: NoticeHandler<'_>, words: String) {
    report(Notice::Warning(words));
}

fn now() -> u64 {
    since_1970().as_secs()
}

fn by_kernel(options: &ApplyOptions, wanted: &Wanted, why: &str, report: NoticeHandler<'_>) -> Result<Value> {
    let (room, name) = (RuntimeDir::here()?, name(wanted));
    others(&room, wanted, name)?;
    if options.dry_run {
        return dry_run(options, wanted, why, report);
    }
    if options.realtime {
        warn(report, "--realtime is for tidegate's daemon; the kernel's qdiscs do not need it".to_owned());
    }
    let mut begun = Begun::new(options, &room, name, report)?;
    let prior = State::read(&room, name)?;
    others(&room, wanted, name)?;
    let mut arm = Arm::open()?;
    let way = arm.plan(wanted, name, prior.as_ref())?;
    report(Notice::Plan(plan_text(&way.plans, way.about_rules().as_deref())));
    safe(options, wanted, report)?;
    report_caveats(options, &way, report)?;
    if let (true, Some(prior)) = (way.is_empty(), &prior) {
        renamed(&room, name, prior, wanted)?;
        return Ok(unchanged(&room, name, prior, ("kernel", why), report));
    }
    let plan = listed(&way.plans, way.about_rules().as_deref());
    let mut state = noted(options, wanted, prior.as_ref(), &way.before, why)?;
    let same = prior.as_ref().filter(|prior| is_same(prior, options, &state));
    let same = same.map(|prior| (prior.0["before"].clone(), prior.0["previous"].clone()));
    begun.write(&mut state, prior)?;
    let done = arm.go(wanted, way).and_then(|()| {
        if let Some(same) = same {
            (state["before"], state["previous"]) = same;
        }
        state["table"] = record::kept_raw(&Arm::table_made(wanted, name)?);
        state["installed"] = arm.installed(wanted, name)?;
        begun.end(&mut state)
    });
    if let Err(error) = done {
        return Err(begun.undone(&error));
    }
    report(applied(&state, patience(options), name));
    Ok(
        json!({"applied": true, "changed": true, "backend": "kernel", "why": why, "devices": wanted.devices, "plan": plan,
        "confirm": state["confirm"]}),
    )
}

/// Does this only bring back a policy that is applied already (to a device that was dialled again, say)? Then
/// a revert leads to what was before that policy, not to the device without it.
fn is_same(prior: &State, options: &ApplyOptions, state: &Value) -> bool {
    patience(options).is_none() && ["commands", "dev"].iter().all(|part| prior.0[*part] == state[*part])
}

/// What would be done, and whether this kernel would refuse it.
fn dry_run(options: &ApplyOptions, wanted: &Wanted, why: &str, report: NoticeHandler<'_>) -> Result<Value> {
    let (room, name) = (RuntimeDir::here()?, name(wanted));
    let way = Arm::open()?.plan(wanted, name, State::read(&room, name)?.as_ref())?;
    report(Notice::Plan(plan_text(&way.plans, way.about_rules().as_deref())));
    safe(options, wanted, report)?;
    report_caveats(options, &way, report)?;
    let lacks = kernel::lacks(wanted);
    if let Err(error) = &lacks {
        warn(report, format!("whether this kernel takes all of it cannot be tried ({error:#})"));
    }
    let lacks = lacks.ok().flatten();
    if let Some(what) = &lacks {
        warn(report, format!("this would be refused: this kernel {what}; --backend user needs none of it"));
    }
    Ok(json!({
        "applied": false, "dry_run": true, "backend": "kernel", "why": why, "plan": listed(&way.plans, way.about_rules().as_deref()), "refused": lacks,
    }))
}

/// What is kept of it.
fn noted(
    options: &ApplyOptions,
    wanted: &Wanted,
    prior: Option<&State>,
    before: &Before,
    why: &str,
) -> Result<Value> {
    let kept = before.kept();
    // What was there before anything of tidegate's.
    let original = prior.map_or_else(|| kept.clone(), |prior| with_new(&prior.0["original"], &kept));
    let previous = prior.map(|prior| {
        let mut previous = prior.0.clone();
        // What waits to be confirmed continues waiting when it is gone back to: from it the way leads further
        // back.
        if prior.left_to_confirm().is_none() {
            previous["previous"] = Value::Null;
            // The next step back leads to what was there first, not to a policy that nothing knows any more.
            previous["before"] = previous["original"].clone();
        }
        previous
    });
    let ingress: Vec<&String> = wanted.devices.iter().filter(|dev| wanted.sets_ingress(dev)).collect();
    Ok(json!({
        "backend": "kernel", "why": why, "devices": wanted.devices, "policy": user::absolute(&options.files),
        "applied_at": now(), "boot": boot::id()?, "args": options.args, "dev": options.dev, "commands": wanted.commands,
        "names": names_to_json(&wanted.names),
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
    prior["names"] = before["names"].clone();
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

/// A device may be part of one policy of tidegate's, and no other daemon may have it.
fn others(room: &RuntimeDir, wanted: &Wanted, name: &str) -> Result<()> {
    for dev in &wanted.devices {
        if let Some((known, _)) = State::of_device(room, dev)?.filter(|(known, _)| known != name) {
            bail!(
                Busy,
                "`{dev}` is part of what was applied to `{known}`; `tidegate down {known}` takes that away first"
            );
        }
        if let Some(pid) = RuntimeDir::holder(&room.lock(dev)) {
            bail!(
                Busy,
                "`{dev}` is shaped by a daemon of tidegate's (process {pid}); `tidegate down {dev}` ends it first"
            );
        }
    }
    Ok(())
}

/// What keeps the network alive must get through.
fn safe(options: &ApplyOptions, wanted: &Wanted, report: NoticeHandler<'_>) -> Result<()> {
    let dangers = essential::dangers(&wanted.reading, ssh::session().map(ssh::Ssh::ends));
    dangers.iter().for_each(|danger| warn(report, danger.clone()));
    ensure!(
        dangers.is_empty() || options.force || options.dry_run,
        Unsafe,
        "nothing was changed: the policy would cut off what keeps the network alive (above); --force \
        applies it all the same"
    );
    Ok(())
}

fn report_caveats(options: &ApplyOptions, way: &KernelPlan, report: NoticeHandler<'_>) -> Result<()> {
    way.caveats.iter().for_each(|caveat| warn(report, caveat.clone()));
    ensure!(
        way.caveats.is_empty() || options.force || options.dry_run,
        Unsafe,
        "nothing was changed: not all of the present configuration could be restored (above); --force \
        applies it nevertheless"
    );
    Ok(())
}

/// Devices with what changes on each.
type DevicePlans = Vec<(String, ChangePlan)>;

fn is_nothing(plans: &[(String, ChangePlan)], rules: Option<&str>) -> bool {
    rules.is_none() && plans.iter().all(|(_, plan)| plan.is_empty())
}

/// The changes of each device and of the rules, for people.
fn plan_text(plans: &[(String, ChangePlan)], rules: Option<&str>) -> String {
    if is_nothing(plans, rules) {
        return "nothing to change: the policy is already in place\n".into();
    }
    let plans = plans.iter().filter(|(_, plan)| !plan.is_empty() || plan.kept > 0);
    let mut out: String = plans.map(|(dev, plan)| diff::text(dev, plan)).collect();
    out.extend(rules);
    out
}

/// What a daemon would change: from the policy that it runs, or from nothing where none runs.
fn daemon_plan(
    wanted: &Wanted,
    room: &RuntimeDir,
    name: &str,
    report: NoticeHandler<'_>,
) -> Result<(DevicePlans, Option<String>)> {
    let running = running_policy(room, name).and_then(|running| match running {
        Some(running) => wanted.running(&running),
        None => Ok(wanted.nothing()),
    });
    let (installed, tables) = running.unwrap_or_else(|error| {
        warn(report, format!("what runs there now is not known ({error:#}), so the plan shows all of it"));
        wanted.nothing()
    });
    let of_device =
        |((dev, wants), now): ((&String, _), _)| Ok((dev.clone(), plan(now, wants, &wanted.log)?));
    let plans = wanted.devices.iter().zip(&wanted.installed).zip(&installed).map(of_device);
    let table = kernel::table_of(name);
    let rules = match (tables.is_empty(), wanted.tables.is_empty()) {
        _ if tables == wanted.tables => None,
        (_, true) => Some(kernel::rules_line('-', &table, None)),
        (true, false) => Some(kernel::rules_line('+', &table, Some(wanted.rules()))),
        (false, false) => Some(kernel::rules_line('~', &table, Some(wanted.rules()))),
    };
    Ok((plans.collect::<Result<_>>()?, rules))
}

fn listed(plans: &[(String, ChangePlan)], rules: Option<&str>) -> Value {
    let steps = |plan: &ChangePlan| -> Vec<Value> {
        plan.steps
            .iter()
            .map(|step| json!({"sign": diff::word(step.sign), "command": diff::line(step)}))
            .collect()
    };
    let devices =
        plans.iter().map(|(dev, plan)| json!({"dev": dev, "steps": steps(plan), "kept": plan.kept}));
    json!({"devices": devices.collect::<Vec<_>>(), "rules": rules.map(str::trim_end)})
}

fn applied(state: &Value, confirm: Option<u64>, name: &str) -> Notice {
    Notice::Applied { devices: record::strings(&state["devices"]), name: name.to_owned(), confirm }
}

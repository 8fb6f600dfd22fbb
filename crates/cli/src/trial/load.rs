//! From a script to its policy.

use super::options::Options;
use crate::script_options::show_errors;
use anyhow::bail;
use tidegate_capture::{Exit, ScriptRun};
use tidegate_loader::LoadedPolicy;
use tidegate_trial::{Configured, TrialPolicy};

/// Runs the script and gathers what it configured.
///
/// # Errors
/// When it cannot be run, does not end, ends with an error, or issues a command that fails (unless failures
/// are allowed).
pub(crate) fn take_in(options: &Options) -> anyhow::Result<TrialPolicy> {
    let files = [std::slice::from_ref(&options.script), &options.also].concat();
    let taken = tidegate_loader::read(&files, &options.how_to_read())?;
    show_errors(&taken.outcomes);
    if let Some(nothing) = taken.nothing_found() {
        taken.troubles().for_each(|trouble| eprintln!("{trouble}"));
        bail!("{nothing}");
    }
    taken.warnings().for_each(|warning| eprintln!("{warning}"));
    taken.outcomes.iter().try_for_each(|outcome| check_run(outcome, options))?;
    if let Some(dev) = &options.dev {
        taken.must_concern(dev)?;
    }
    must_concern_either(&taken, options.over.as_ref())?;
    of_taken(taken, options.dev.as_deref(), options.over.as_ref())
}

/// Refuses two devices, one on the other, if no command of the policy is about either.
///
/// # Errors
/// The devices that commands are about instead.
pub(crate) fn must_concern_either(
    loaded: &LoadedPolicy,
    over: Option<&(String, String)>,
) -> anyhow::Result<()> {
    let Some((upper, lower)) = over else { return Ok(()) };
    if let (Err(none), Err(_)) = (loaded.must_concern(upper), loaded.must_concern(lower)) {
        let others = none.others.join(", ");
        bail!(
            "--over {upper}={lower}: no command of the policy is about either device; they are about {others}"
        );
    }
    Ok(())
}

/// What was loaded, with the devices that lead to the modem and to the LAN: see [`TrialPolicy::new`].
///
/// # Errors
/// When no option names them, and several devices are configured or none.
pub(crate) fn of_taken(
    loaded: LoadedPolicy,
    dev: Option<&str>,
    over: Option<&(String, String)>,
) -> anyhow::Result<TrialPolicy> {
    let commands = loaded.commands();
    let LoadedPolicy { machine, outcomes, wan, lan, names, .. } = loaded;
    let notes = outcomes.iter().flat_map(|outcome| &outcome.notes).cloned().collect();
    Ok(TrialPolicy::new(Configured { machine, commands, wan, lan, notes, names }, dev, over)?)
}

/// Refuses a script that went wrong, unless it may go on.
fn check_run(outcome: &ScriptRun, options: &Options) -> anyhow::Result<()> {
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

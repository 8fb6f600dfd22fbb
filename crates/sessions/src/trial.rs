//! A policy's files as what a trial on a simulated home link takes.

use crate::error::{Error, Result, invalid};
use std::path::Path;
use tidegate_capture::{Exit, ScriptRun, Trouble};
use tidegate_loader::{LoadedPolicy, short};
use tidegate_packet::Rate;
use tidegate_trial::{Configured, TrialDevices, TrialPolicy};

/// The rates, up and down, that a short policy names; none of another policy.
///
/// # Errors
/// In words: its mistakes.
pub fn rates_of(file: &Path, text: &str) -> Result<(Option<Rate>, Option<Rate>), String> {
    let name = file.to_string_lossy();
    let format = tidegate_loader::sniff(&name, text.as_bytes()).ok();
    let Some(format) = format.filter(|format| short::is_short(*format)) else { return Ok((None, None)) };
    let policies = short::policies(format, &name, text)
        .map_err(|problems| short::tell(file, text, &problems).trim_end().to_owned())?;
    // With several policies in a file, no one knows which link is meant.
    let [(policy, _)] = policies.as_slice() else { return Ok((None, None)) };
    let rate = |given: &Option<_>| {
        given.as_ref().map(|given: &tidegate_syntax::short::Spanned<u64>| Rate::bits(given.value))
    };
    Ok((rate(&policy.up), rate(&policy.down)))
}

/// Refuses two devices, one on the other, if no command of the policy is about either.
///
/// # Errors
/// The devices that commands are about instead.
pub fn must_concern_either(loaded: &LoadedPolicy, over: Option<&(String, String)>) -> Result<()> {
    let Some((upper, lower)) = over else { return Ok(()) };
    if let (Err(none), Err(_)) = (loaded.must_concern(upper), loaded.must_concern(lower)) {
        let others = none.others.join(", ");
        return invalid(format!(
            "--over {upper}={lower}: no command of the policy is about either device; they are about {others}"
        ));
    }
    Ok(())
}

/// What was loaded, with the devices that lead to the modem and to the LAN: see [`TrialPolicy::new`].
///
/// # Errors
/// When no option names them, and several devices are configured or none.
pub fn of_loaded(loaded: LoadedPolicy, devices: TrialDevices<'_>) -> Result<TrialPolicy> {
    let (commands, of_kernel) = (loaded.commands(), loaded.not_known_of_kernel());
    let LoadedPolicy { machine, outcomes, wan, lan, names, .. } = loaded;
    let notes = outcomes.iter().flat_map(|outcome| &outcome.notes).cloned().chain(of_kernel).collect();
    let configured = Configured { machine, commands, wan, lan, notes, names };
    TrialPolicy::new(configured, devices).map_err(|error| Error::Invalid(error.to_string()))
}

/// Refuses a policy whose scripts went wrong. With `keep_going` only one that was cut short; what else went
/// wrong is returned.
///
/// # Errors
/// A script that did not come to its end, or one that failed.
pub fn must_have_worked(loaded: &LoadedPolicy, keep_going: bool) -> Result<Vec<&'static str>> {
    let went = loaded.outcomes.iter().map(|outcome| check_run(outcome, keep_going));
    went.filter_map(Result::transpose).collect()
}

fn check_run(outcome: &ScriptRun, keep_going: bool) -> Result<Option<&'static str>> {
    let how = match &outcome.exit {
        Exit::Code(0) if outcome.troubles.iter().all(Trouble::is_idle) => return Ok(None),
        Exit::Code(0) => "a command in it failed",
        Exit::Code(_) | Exit::Signal(_) => "it ended with an error",
        // Half a policy is another policy: not even --keep-going simulates that.
        _ => return invalid("it did not come to its end, so nothing was simulated"),
    };
    if keep_going {
        return Ok(Some(how));
    }
    invalid(format!("{how}, so nothing was simulated (--keep-going does it with what was understood)"))
}

//! A policy's files as what a trial on a simulated home link takes.

use crate::error::{Error, Result, invalid};
use tidegate_loader::LoadedPolicy;
pub use tidegate_loader::short::rates_of;
use tidegate_trial::{Configured, TrialDevices, TrialPolicy};

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

/// Refuses a policy whose scripts went wrong: see [`LoadedPolicy::must_have_worked`].
///
/// # Errors
/// A script that did not come to its end, or one that failed.
pub fn must_have_worked(loaded: &LoadedPolicy, keep_going: bool) -> Result<Vec<&'static str>> {
    loaded.must_have_worked(keep_going).map_err(Error::Invalid)
}

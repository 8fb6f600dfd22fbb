//! From a script to its policy.

use super::options::Options;
use crate::script_options::show_errors;
use anyhow::bail;
use tidegate_sessions::trial::{must_concern_either, must_have_worked, of_loaded};
use tidegate_trial::{TrialDevices, TrialPolicy};

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
    // What was left out is among the notes of the result.
    let left_out: Vec<String> = taken.left_out().collect();
    taken.warnings().filter(|warning| !left_out.contains(warning)).for_each(|warning| eprintln!("{warning}"));
    for how in must_have_worked(&taken, options.keep_going)? {
        eprintln!("tidegate try: {how}; going on with what was understood");
    }
    if let Some(dev) = &options.dev {
        taken.must_concern(dev)?;
    }
    let devices = TrialDevices {
        wan: options.dev.as_deref(),
        over: options.over.as_ref(),
        lan: options.lan.as_deref(),
    };
    must_concern_either(&taken, options.over.as_ref())?;
    let policy = of_loaded(taken, devices)?;
    if options.lan.as_ref() == Some(&policy.wan) {
        bail!("--lan {}: that is the device that leads to the modem (--dev names another)", policy.wan);
    }
    Ok(policy)
}

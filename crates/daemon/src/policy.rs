//! The policy of a daemon's files.

use crate::error::Result;
use crate::machine::Wanted;
use crate::options::DaemonOptions;
use tidegate_loader::{ClassNames, LoadedPolicy, ReadOptions};
use tidegate_plan::rebind::{names_on_device, on_device};
use tidegate_policy::Op;

/// A message to the user who started the daemon: the outcome of a device that is followed, errors in a
/// script.
pub type MessageHandler<'s> = &'s dyn Fn(&str);

/// The policy of some files, for an engine.
pub(crate) fn read(options: &DaemonOptions, say: MessageHandler<'_>) -> Result<Wanted> {
    wanted(options, &captured(options, say)?.machine.log)
}

/// What the files of a policy configure.
pub(crate) fn captured(options: &DaemonOptions, say: MessageHandler<'_>) -> Result<LoadedPolicy> {
    let how = ReadOptions {
        args: options.args.clone(),
        sandbox: options.sandbox.clone(),
        ..ReadOptions::default()
    };
    let taken = tidegate_loader::read(&options.files, &how)?;
    for warning in taken.warnings() {
        say(&warning);
    }
    taken.must_be_whole().map_err(|half| error!(Policy, "nothing is run: {half}"))?;
    Ok(taken)
}

/// What was carried out on that machine, for an engine on the device that the options name.
pub(crate) fn wanted(options: &DaemonOptions, log: &[Op]) -> Result<Wanted> {
    match &options.dev {
        Some(dev) => Wanted::new(&on_device(log, dev)?),
        None => Wanted::new(log),
    }
}

/// The names of its classes, on the device that the options name.
pub(crate) fn names(options: &DaemonOptions, names: &ClassNames, log: &[Op]) -> ClassNames {
    match &options.dev {
        Some(dev) => names_on_device(names, log, dev),
        None => names.clone(),
    }
}

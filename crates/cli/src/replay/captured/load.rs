//! The policies that are compared on a capture, loaded from their files.

use super::options::Options;
use crate::script_options::show_errors;
use anyhow::{Context, bail};
use std::path::Path;
use tidegate_loader::ReadOptions;
use tidegate_replay::captured::{CandidatePolicy, NONE};
use tidegate_sessions::trial::{must_concern_either, of_loaded};
use tidegate_trial::TrialDevices;

/// Takes the policies in; where the line has a rate, none at all is one of them.
pub(super) fn candidates(options: &Options, seed: u64) -> anyhow::Result<Vec<CandidatePolicy>> {
    let mut all = Vec::new();
    for path in options.policy.iter().filter(|path| path.as_os_str() != NONE) {
        let candidate = read(path, options, seed).with_context(|| format!("policy {}", path.display()))?;
        all.push(candidate);
    }
    let names: Vec<String> = all.iter().map(|one: &CandidatePolicy| one.name.clone()).collect();
    for one in &mut all {
        if names.iter().filter(|name| **name == one.name).count() > 1 {
            one.name.clone_from(&one.file);
        }
    }
    let requested = options.policy.iter().any(|path| path.as_os_str() == NONE);
    if requested || options.rate.is_some() {
        all.insert(0, CandidatePolicy::none(&all, &options.settings()));
    }
    if all.is_empty() {
        bail!("no policy to hold the capture against: give one with --policy, or a line with --rate");
    }
    Ok(all)
}

fn read(path: &Path, options: &Options, seed: u64) -> anyhow::Result<CandidatePolicy> {
    let (path, mut args) = crate::words::file_and_args(path);
    if args.is_empty() {
        args.clone_from(&options.args);
    }
    let devices = options.dev.iter().cloned().collect();
    let how = ReadOptions {
        args: args.clone(),
        devices,
        seed,
        sandbox: (&options.sandbox).into(),
        ..ReadOptions::default()
    };
    let taken = tidegate_loader::read(std::slice::from_ref(&path), &how)?;
    show_errors(&taken.outcomes);
    let troubles: Vec<String> =
        taken.troubles().filter(|trouble| !trouble.is_idle()).map(ToString::to_string).collect();
    if let Some(first) = troubles.first() {
        bail!("a command in it failed, so it is not tried:\n{first}");
    }
    if !taken.ended() {
        bail!("it did not come to its end; `tidegate run` shows what it does");
    }
    if let Some(dev) = &options.dev {
        taken.must_concern(dev)?;
    }
    let devices = TrialDevices { wan: options.dev.as_deref(), over: options.over.as_ref(), lan: None };
    must_concern_either(&taken, options.over.as_ref())?;
    let policy = of_loaded(taken, devices)?;
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(CandidatePolicy { name, file: path.display().to_string(), args, policy })
}

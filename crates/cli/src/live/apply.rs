//! `tidegate apply`: what is printed, and how it ends.

use super::notice::tell;
use super::options::Apply;
use crate::exit::CliExit;
use serde_json::json;
use std::process::ExitCode;
use tidegate_apply::{ApplyOptions, Notice};

/// The form of the document: it changes when a member changes its meaning or goes away.
const FORM: u32 = 1;

/// Plays `tidegate apply`.
pub(super) fn command(options: &Apply) -> ExitCode {
    if options.at_boot { at_boot(options.dev.as_deref()) } else { one(&options.into(), options.json) }
}

fn one(options: &ApplyOptions, as_json: bool) -> ExitCode {
    let report = |notice: Notice| tell("apply", &notice, as_json);
    if let Err(error) = tidegate_apply::put_in_order(options.dry_run, &report) {
        let error = anyhow::Error::from(error);
        eprintln!("tidegate apply: {error:#}");
        return CliExit::of_change(&error).into();
    }
    let wanted = match tidegate_apply::read(options, &report) {
        Ok(wanted) => wanted,
        Err(error) => {
            let error = anyhow::Error::from(error);
            eprintln!("tidegate apply: {error:#}");
            return CliExit::of_device(&error).into();
        }
    };
    match tidegate_apply::apply(options, &wanted, &report) {
        Ok(mut document) => {
            if as_json {
                document["tidegate_apply"] = FORM.into();
                println!("{document:#}");
            }
            // A plan that this kernel would refuse is none.
            if document["refused"].is_string() { CliExit::No.into() } else { CliExit::Yes.into() }
        }
        Err(error) => {
            if as_json {
                println!(
                    "{:#}",
                    json!({"tidegate_apply": FORM, "applied": false, "error": format!("{error:#}")})
                );
            }
            let error = anyhow::Error::from(error);
            eprintln!("tidegate apply: {error:#}");
            CliExit::of_change(&error).into()
        }
    }
}

/// Applies what was applied for good before the machine was restarted, or before a device went away and came
/// back; those that fail keep no others from being applied.
fn at_boot(dev: Option<&str>) -> ExitCode {
    let all = match tidegate_apply::kept(dev) {
        Ok(all) => all,
        Err(error) => {
            let error = anyhow::Error::from(error);
            eprintln!("tidegate apply: {error:#}");
            return CliExit::of_device(&error).into();
        }
    };
    let mut failed = false;
    for (name, options) in all {
        match tidegate_apply::waiting(&name) {
            Ok(None) => {
                let before = if dev.is_some() {
                    "as it was applied and confirmed"
                } else {
                    "as it was before the restart"
                };
                println!("{name}: {before}");
                failed |= one(&options, false) != ExitCode::SUCCESS;
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
    if failed { CliExit::No.into() } else { CliExit::Yes.into() }
}

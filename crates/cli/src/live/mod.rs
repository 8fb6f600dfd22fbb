//! `tidegate apply`, `status`, `confirm`, `revert` and `down`: a policy onto this computer's devices, and
//! away again. What they do is `tidegate_apply`'s.

mod apply;
mod notice;
mod options;
mod status;

pub use options::{Apply, Backend, DeviceOptions, Revert};

use crate::exit::CliExit;
use notice::tell;
use serde_json::json;
use std::process::ExitCode;
use tidegate_apply::{Down, status::where_to};

/// The exit codes and examples of `tidegate status`, for its help.
pub const STATUS_HELP: &str = "\
Exit codes: 0 every policy is installed; 1 one is not (drifted, its device or daemon gone or not answering), or \
nothing is applied; 2 wrong usage or input; 3 one waits for confirmation, or an apply is in progress; 4 not \
permitted. --json has the condition of each.

Examples:
  tidegate status
  tidegate status eth0 --json";

/// The form of these commands' documents: it changes when a member changes its meaning or goes away.
const FORM: u32 = 1;

/// Plays `tidegate apply`.
pub fn apply(options: &Apply) -> ExitCode {
    apply::command(options)
}

/// Plays `tidegate status`.
pub fn status(which: &DeviceOptions) -> ExitCode {
    status::command(which).unwrap_or_else(|error| {
        eprintln!("tidegate status: {error:#}");
        CliExit::of_device(&error).into()
    })
}

/// Plays `tidegate confirm`.
pub fn confirm(which: &DeviceOptions) -> ExitCode {
    ended(
        "confirm",
        tidegate_apply::confirm(which.dev.as_deref()).map(|confirmed| print_confirmed(&confirmed, which)),
    )
}

fn print_confirmed(confirmed: &[String], which: &DeviceOptions) -> bool {
    if which.json {
        println!("{:#}", json!({"tidegate_confirm": FORM, "confirmed": confirmed}));
    } else if confirmed.is_empty() {
        eprintln!("tidegate confirm: nothing waits to be confirmed");
    } else {
        println!("confirmed: {}", confirmed.join(", "));
    }
    !confirmed.is_empty()
}

/// Plays `tidegate revert`.
pub fn revert(options: &Revert) -> ExitCode {
    let done = match &options.dev {
        Some(name) if options.guard => {
            tidegate_apply::guard(name, &mut crate::output::stdout()).map(|()| true)
        }
        dev => tidegate_apply::revert(dev.as_deref(), &|notice| tell("revert", &notice, options.json)).map(
            |name| {
                if options.json {
                    println!("{:#}", json!({"tidegate_revert": FORM, "reverted": [name]}));
                } else {
                    println!("reverted: {name}");
                }
                true
            },
        ),
    };
    ended("revert", done)
}

/// Plays `tidegate down`.
pub fn down(which: &DeviceOptions) -> ExitCode {
    match tidegate_apply::down(which.dev.as_deref(), &|notice| tell("down", &notice, which.json)) {
        Ok(down) => print_down(&down, which),
        Err(error) => ended("down", Err(error)),
    }
}

fn print_down(down: &Down, which: &DeviceOptions) -> ExitCode {
    let Down { gone, followers, left_alone, failed, .. } = down;
    if !failed.is_empty() {
        if which.json {
            println!("{:#}", json!({"tidegate_down": FORM, "down": gone, "failed": failed}));
        }
        eprintln!("tidegate down: {}", failed.join("\n"));
        return CliExit::No.into();
    }
    let is_nothing = gone.is_empty() && followers.is_empty();
    if which.json {
        println!("{:#}", json!({"tidegate_down": FORM, "down": gone, "followers": followers}));
    } else if is_nothing {
        eprintln!("tidegate down: tidegate applied nothing {}", where_to(which.dev.as_deref()));
    } else {
        if !gone.is_empty() {
            println!("down: {}", gone.join(", "));
        }
        for pid in followers {
            println!("ended: the daemon that follows devices (pid {pid})");
        }
        for (name, pid) in left_alone {
            println!(
                "the daemon that follows devices (pid {pid}) leaves {name} alone until {name} comes again \
                or that daemon is started again; `tidegate down` ends it"
            );
        }
    }
    if is_nothing { CliExit::No.into() } else { CliExit::Yes.into() }
}

fn ended(command: &str, done: tidegate_apply::Result<bool>) -> ExitCode {
    match done {
        Ok(true) => CliExit::Yes.into(),
        Ok(false) => CliExit::No.into(),
        Err(error) => {
            let error = anyhow::Error::from(error);
            eprintln!("tidegate {command}: {error:#}");
            CliExit::of_change(&error).into()
        }
    }
}

//! `tidegate apply`, `status`, `confirm`, `revert` and `down`: a policy onto this computer's devices, and
//! away again. What they do is `tidegate_apply`'s.

mod apply;
mod notice;
mod options;
mod status;

pub use options::{Apply, Backend, Revert, Which};

use notice::{UNDONE, UNREAD, tell};
use serde_json::json;
use std::process::ExitCode;
use tidegate_apply::{Down, status::where_to};

/// The exit codes of `tidegate status`, for its help.
pub const STATUS_CODES: &str = "\
Exit codes, of the worst policy: 0 installed; 1 tidegate applied nothing there; 2 wrong usage, or the state \
cannot be read; 3 waiting for confirmation; 4 in progress; \
5 drifted; 6 device gone; 7 daemon dead; 8 daemon not answering; 9 in trouble.";

/// Plays `tidegate apply`.
pub fn apply(options: &Apply) -> ExitCode {
    apply::command(options)
}

/// Plays `tidegate status`.
pub fn status(which: &Which) -> ExitCode {
    status::command(which).unwrap_or_else(|error| {
        eprintln!("tidegate status: {error:#}");
        UNREAD.into()
    })
}

/// Plays `tidegate confirm`.
pub fn confirm(which: &Which) -> ExitCode {
    ended(
        "confirm",
        tidegate_apply::confirm(which.dev.as_deref()).map(|confirmed| told_confirmed(&confirmed, which)),
    )
}

fn told_confirmed(confirmed: &[String], which: &Which) -> bool {
    if which.json {
        println!("{:#}", json!({"confirmed": confirmed}));
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
                    println!("{:#}", json!({"reverted": [name]}));
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
pub fn down(which: &Which) -> ExitCode {
    match tidegate_apply::down(which.dev.as_deref(), &|notice| tell("down", &notice, which.json)) {
        Ok(down) => told_down(&down, which),
        Err(error) => ended("down", Err(error)),
    }
}

fn told_down(down: &Down, which: &Which) -> ExitCode {
    let Down { gone, followers, left_alone, failed, .. } = down;
    if !failed.is_empty() {
        if which.json {
            println!("{:#}", json!({"down": gone, "failed": failed}));
        }
        eprintln!("tidegate down: {}", failed.join("\n"));
        return UNDONE.into();
    }
    let is_nothing = gone.is_empty() && followers.is_empty();
    if which.json {
        println!("{:#}", json!({"down": gone, "followers": followers}));
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
    if is_nothing { UNDONE.into() } else { ExitCode::SUCCESS }
}

fn ended(command: &str, done: tidegate_apply::Result<bool>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => UNDONE.into(),
        Err(error) => {
            eprintln!("tidegate {command}: {error:#}");
            UNDONE.into()
        }
    }
}

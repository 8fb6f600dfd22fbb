#![forbid(unsafe_code)]
//! tidegate: try a traffic-control policy before you trust your link to it.

use std::process::ExitCode;
use tidegate::command_line::{Cli, carry_out, parse};
use tidegate::exit::CliExit;
use tidegate::output;

fn main() -> ExitCode {
    // First things: this process may be a stage of those set apart,
    let _ = tidegate_sys::apart::stage();
    // or may be a stage of a sandbox, or play a tool in a captured script.
    if let Some(code) = tidegate_capture::dispatch() {
        return code.into();
    }
    if cfg!(panic = "abort") {
        exit_at_panic();
    }
    // A bug of tidegate's must not look like a verdict on the policy: it has an exit code of its own.
    match std::panic::catch_unwind(command) {
        Ok(code) => output::finish(code),
        Err(_) => {
            eprintln!("{INTERNAL_ERROR}");
            CliExit::Internal.into()
        }
    }
}

const INTERNAL_ERROR: &str = "tidegate: internal error. This is a bug in tidegate, not a finding about your \
    input: please report it.";

/// Where a panic does not unwind (the router's program), it ends the program in its hook, with the same words
/// and exit code. Hooks that are installed later and undo something run before.
fn exit_at_panic() {
    let message = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        message(panic);
        eprintln!("{INTERNAL_ERROR}");
        std::process::exit(u8::from(CliExit::Internal).into());
    }));
}

fn command() -> ExitCode {
    match parsed() {
        Ok(cli) => carry_out(cli),
        Err(code) => code,
    }
}

/// The words of the command line; or how the program ends, where they are wrong or ask for help. That is
/// printed as clap prints it, in colour on a terminal.
fn parsed() -> Result<Cli, ExitCode> {
    parse(std::env::args_os()).map_err(|error| {
        // An error quotes words, which may hold what a terminal obeys, or lines of their own.
        let words: Vec<String> =
            std::env::args_os().map(|word| tidegate_text::line(&word.to_string_lossy()).into()).collect();
        let is_visible = std::env::args_os().zip(&words).all(|(word, shown)| word == **shown);
        let same = || parse(&words).err().filter(|again| again.kind() == error.kind());
        if let Some(written) = negative(&error, &words) {
            output::note(format_args!("{written}"));
        } else if is_visible {
            print(&error);
        } else if let Some(again) = same() {
            print(&again);
        } else {
            output::note(format_args!("{}\n", tidegate_text::line(&error.render().to_string())));
        }
        u8::try_from(error.exit_code()).unwrap_or(CliExit::Input.into()).into()
    })
}

/// Prints an error, or a help, of clap's.
fn print(error: &clap::Error) {
    // Whether standard error takes everything is not checked.
    match error.print() {
        Err(full) if !error.use_stderr() => output::failed(full),
        _ => {}
    }
}

/// The message for a negative value, which clap takes for an unknown option (`--rtt -1ms`).
fn negative(error: &clap::Error, words: &[String]) -> Option<String> {
    if error.kind() != clap::error::ErrorKind::UnknownArgument {
        return None;
    }
    let (option, value) = words.iter().zip(words.iter().skip(1)).find(|(option, value)| {
        option.starts_with('-') && option.len() > 1 && tidegate::is_negative(value)
    })?;
    Some(format!(
        "error: invalid value '{value}' for '{option}': it must not be negative\n\nFor more information, \
        try '--help'.\n"
    ))
}

//! The program behind the line.

use super::names::SERVER;
use super::options::Options;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

pub(super) fn program(options: &Options) -> Command {
    if !options.program.is_empty() {
        return command_of(options);
    }
    let line = match &options.preset {
        Some(preset) => format!("the line `{preset}`"),
        None => format!("{} up, {} down", options.up, options.down.as_ref().unwrap_or(&options.up)),
    };
    eprintln!(
        "tidegate: you are behind {line}, {} away from `{SERVER}`; `exit` brings you back",
        options.rtt
    );
    Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()))
}

/// The program and its arguments.
pub(super) fn command_of(options: &Options) -> Command {
    let (program, words) = options.program.split_first().unzip();
    let mut command = Command::new(program.map_or("/bin/sh".as_ref(), |program| program.as_os_str()));
    command.args(words.unwrap_or_default());
    command
}

pub(super) fn in_words(options: &Options) -> String {
    options.program.first().map_or_else(|| "a shell".to_owned(), |program| format!("`{}`", program.display()))
}

/// The exit code that a shell has for it.
pub(super) fn code_of(status: ExitStatus) -> u8 {
    status.code().map_or_else(|| 128 + status.signal().unwrap_or(0) as u8, |code| code as u8)
}

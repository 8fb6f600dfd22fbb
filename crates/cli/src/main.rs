#![forbid(unsafe_code)]
//! tidegate: try a traffic-control policy before you trust your link to it.

use tidegate::{capture, replay};

use std::process::ExitCode;

fn main() -> ExitCode {
    // First thing: this process may be a stage of a sandbox, or play a tool in a captured script.
    if let Some(code) = capture::dispatch() {
        return code.into();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((command, words)) if command == "capture" => capture::command(words),
        Some((command, words)) if command == "replay" => replay::command(words),
        _ => ExitCode::SUCCESS,
    }
}

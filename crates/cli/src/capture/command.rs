//! `tidegate capture SCRIPT [ARG…]`: shows which commands a script issues, each with its line.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::{Call, CaptureOptions, Output, Reply, harmless, run_script};

const USAGE: &str = "usage: tidegate capture [--timeout SECONDS] [--dev NAME]... SCRIPT [ARG...]
Runs the script unmodified in a sandbox, answers every tc, ip, iptables, ... with success, and prints the calls.";

/// Runs the command with its words.
#[must_use]
pub fn command(words: &[String]) -> ExitCode {
    let mut options = CaptureOptions { output: Output::PassThrough, ..CaptureOptions::default() };
    let mut words = words.iter();
    let script = loop {
        match words.next().map(String::as_str) {
            Some("--timeout") => {
                let seconds = words.next().and_then(|word| word.parse::<f64>().ok());
                match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
                    Some(timeout) => options.timeout = timeout,
                    None => return usage("--timeout needs a number of seconds"),
                }
            }
            Some("--dev") => match words.next() {
                Some(name) => options.devices.push(name.clone()),
                None => return usage("--dev needs the name of a device"),
            },
            Some("--help" | "-h") => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            Some(word) if word.starts_with("--") => {
                return usage(&format!("unknown option {word}"));
            }
            Some(word) => break word,
            None => return usage("name a script"),
        }
    };
    let args: Vec<String> = words.cloned().collect();
    let mut answer = |call: &Call| harmless(call).unwrap_or_default();
    let answer: &mut dyn FnMut(&Call) -> Reply = &mut answer;
    match run_script(Path::new(script), &args, &options, &mut &mut *answer) {
        Ok(outcome) => {
            for note in &outcome.notes {
                eprintln!("note: {note}");
            }
            for recorded in &outcome.calls {
                let place = recorded
                    .source
                    .as_ref()
                    .map_or("?".to_owned(), |source| format!("{}:{}", source.file.display(), source.line));
                let call = &recorded.call;
                println!("{place}: {} {}", call.tool, call.args.join(" "));
            }
            for trouble in &outcome.troubles {
                eprintln!("{trouble}");
            }
            ExitCode::from(u8::from(!outcome.success()))
        }
        Err(error) => {
            eprintln!("tidegate: {error}");
            ExitCode::from(1)
        }
    }
}

fn usage(reason: &str) -> ExitCode {
    eprintln!("tidegate capture: {reason}\n{USAGE}");
    ExitCode::from(2)
}

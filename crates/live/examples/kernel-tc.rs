//! `tc` that programs the kernel by this crate's messages: what `cargo xtask kernel-proof` puts in the real one's place. Shows nothing.
//!
//! `kernel-tc WORD…`, or `kernel-tc -force -batch FILE` for a file of such words, one command a line.

use std::collections::BTreeMap;
use std::process::ExitCode;
use tidegate_lang::Env;
use tidegate_lang::tc::{self, TcCommand};
use tidegate_live::Kernel;
use tidegate_policy::Table;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.as_slice() {
        [force, batch, file] if force == "-force" && batch == "-batch" => all(file),
        words => Kernel::open().map_err(|error| error.to_string()).and_then(|mut kernel| one(&mut kernel, words)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// The commands of a file; what is refused does not keep the others from being carried out.
fn all(file: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut kernel = Kernel::open().map_err(|error| error.to_string())?;
    for line in text.lines() {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        if let Err(error) = one(&mut kernel, &words) {
            eprintln!("{error}");
        }
    }
    Ok(())
}

/// Where tc has netem's distributions.
const TABLES: &str = "/usr/lib/x86_64-linux-gnu/tc";

/// What is known of the machine: the distributions that it has as files.
fn env(words: &[String]) -> Env {
    let mut env = Env::default();
    if let Some(name) = words.iter().skip_while(|word| *word != "distribution").nth(1)
        && let Ok(text) = std::fs::read_to_string(format!("{TABLES}/{name}.dist"))
    {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let values = lines.flat_map(str::split_whitespace).filter_map(|word| word.parse().ok()).collect();
        env.tables = [(name.clone(), Table(values))].into_iter().collect::<BTreeMap<String, Table>>().into();
    }
    env
}

fn one(kernel: &mut Kernel, words: &[String]) -> Result<(), String> {
    match tc::parse(words, &env(words)) {
        Ok(tc::Parsed { command: TcCommand::Apply(op), .. }) => {
            kernel.apply(&op).map_err(|trouble| trouble.to_string())
        }
        Ok(_) => Ok(()),
        Err(refusal) => Err(refusal.stderr),
    }
}

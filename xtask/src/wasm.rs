//! The module of the playground: `crates/web`, compiled for pages by `packaging/wasm`.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Where the module is kept, so that no build needs a toolchain for it.
const PLACE: &str = "docs/playground";
/// Its file.
const FILE: &str = "tidegate.wasm.js";
/// The code with which `packaging/wasm` says that something cannot be had here.
const ABSENT: i32 = 3;

const USAGE: &str = "usage: cargo xtask wasm [--check]
  docs/playground/tidegate.wasm.js, made again; with --check compared with what is kept there";

/// Makes the module, or compares it with the one that is kept.
pub(crate) fn run(root: &Path, words: &[String]) -> ExitCode {
    let check = match words {
        [] => false,
        [word] if word == "--check" => true,
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match make(root, check) {
        Ok(said) => {
            println!("wasm: {said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("wasm: {why}");
            ExitCode::FAILURE
        }
    }
}

fn make(root: &Path, check: bool) -> Result<String, String> {
    let out = if check { root.join("target/wasm/again") } else { root.join(PLACE) };
    let status = Command::new(root.join("packaging/wasm")).arg(&out).status();
    let status = status.map_err(|error| format!("packaging/wasm: {error}"))?;
    match status.code() {
        Some(0) => {}
        Some(ABSENT) if check => {
            return Ok("SKIPPED: the module is not made again here, see above".to_owned());
        }
        _ => return Err("packaging/wasm failed".to_owned()),
    }
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let made = read(&out.join(FILE))?;
    if check && made != read(&root.join(PLACE).join(FILE))? {
        return Err(format!("{PLACE}/{FILE} is not what this source makes; make it again: cargo xtask wasm"));
    }
    Ok(format!("{FILE} {} bytes{}", made.len(), if check { ", as kept" } else { "" }))
}

#![forbid(unsafe_code)]
//! Tasks of the workspace: `cargo xtask TASK`.

mod circles;
mod columns;
mod examples;
mod fidelity;
mod kernel_proof;
mod lanes;
mod mutants;
mod names;
mod oracle_fuzz;
mod packages;
mod schemas;
mod tcp_fuzz;
mod test_results;
mod validation;
mod virtual_lab;
mod walls;
mod wasm;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask TASK
  walls    dependencies between crates, purity, unique names, and other rules the compiler does not check
  circles                the modules of each crate that need each other
  tests FILE             the test programs that a build listed, those that wait beside those that compute
  mutants CRATE [OPTIONS]  which small changes of a crate its own tests notice
  fidelity FILE          docs/fidelity.md, from the output of a test run
  validation FILE        docs/validation.md, likewise
  wasm [--check]         docs/playground/tidegate.wasm.js, the engine for pages
  schemas                docs/schemas, from the types of documents
  oracle-fuzz [OPTIONS]  random trees against a real kernel; `--help` after it says more
  tcp-fuzz [OPTIONS]     random TCP runs, a real kernel beside the simulator
  kernel-proof KERNEL PROGRAM OUT SCRIPT…  our netlink messages beside tc's in a kernel with every kind
  virtual-lab KERNEL TIDEGATE OUT SCENARIO…  scenarios with real hosts in virtual time";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("walls") => walls::run(root()),
        Some("circles") => circles::run(root()),
        Some("tests") => lanes::run(&words[1..]),
        Some("mutants") => mutants::run(root(), &words[1..]),
        Some("fidelity") => fidelity::run(root(), &words[1..]),
        Some("validation") => validation::run(root(), &words[1..]),
        Some("wasm") => wasm::run(root(), &words[1..]),
        Some("schemas") => schemas::run(root()),
        Some("kernel-proof") => kernel_proof::run(&words[1..]),
        Some("virtual-lab") => virtual_lab::run(&words[1..]),
        Some("oracle-fuzz") => oracle_fuzz::run(root(), &words[1..]),
        Some("tcp-fuzz") => tcp_fuzz::run(root(), &words[1..]),
        Some("--help" | "-h" | "help") => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Some(other) => {
            eprintln!("xtask: unknown task {other}\n{USAGE}");
            ExitCode::from(2)
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The root of the workspace.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

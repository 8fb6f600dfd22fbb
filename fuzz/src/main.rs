//! One binary for all targets: `TIDEGATE_FUZZ_TARGET` names the one that libFuzzer runs.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::Target;

static TARGET: OnceLock<Target> = OnceLock::new();

fn chosen() -> Target {
    let name = std::env::var("TIDEGATE_FUZZ_TARGET").unwrap_or_default();
    tidegate_fuzz::named(&name).unwrap_or_else(|| {
        let known: Vec<&str> = tidegate_fuzz::TARGETS.iter().map(|target| target.name).collect();
        eprintln!("TIDEGATE_FUZZ_TARGET must name a target, one of: {}", known.join(" "));
        std::process::exit(2)
    })
}

fuzz_target!(|bytes: &[u8]| (TARGET.get_or_init(chosen).run)(bytes));

//! Ways into the parsers of foreign bytes that are private otherwise, for `crates/fuzz`.
//!
//! Each takes any bytes and must return: a panic, an overflow, or memory or time without a bound is a bug.

use std::path::Path;
use tidegate_loader::{InputFormat, ReadOptions, read_as};
use tidegate_packet::{Pool, Seeded};
use tidegate_scenario::TraceSpec;
use tidegate_sessions::simulated::ScenarioFiles;
use tidegate_shims::Machine;
use tidegate_shims::{Answer, Call};

/// A policy in a known format, carried out on the model machine and read for `check` and `explain`.
pub fn policy(format: InputFormat, text: &str) {
    let options = ReadOptions { devices: vec!["eth0".to_owned()], ..ReadOptions::default() };
    match read_as(format, text, &options) {
        Ok(taken) => drop(taken.reading()),
        Err(error) => drop(error.to_string()),
    }
}

/// A file of any format, as it is recognised by its first lines; scripts are not run.
pub fn recognised(bytes: &[u8]) {
    for name in ["input", "input.toml", "input.nft"] {
        let format = tidegate_loader::sniff(name, bytes);
        if let Ok(format) = format
            && format != InputFormat::Script
        {
            policy(format, &String::from_utf8_lossy(bytes));
        }
    }
}

/// Parses a scenario.
pub fn scenario(text: &str) {
    let path = Path::new("/nonexistent/scenario.toml");
    if let Err(wrong) = tidegate_scenario::parse(path, text, &ScenarioFiles::default()) {
        wrong.shown(path, text);
    }
}

/// A recording of a link, of any format, and LeoReplayer's delays beside one; what the text names as one on a
/// command line.
pub fn recording(text: &str) {
    let read = |name: &str| Ok(if name == "delays" { text } else { "1\n2\n" }.to_owned());
    for spec in ["file:scale=0.5:skip=1s:loop=2", "file:delays=delays"] {
        let file = |name: &str| {
            if name == "file" && !spec.contains("delays") { Ok(text.to_owned()) } else { read(name) }
        };
        if let Ok(spec) = TraceSpec::parse(spec, &|_| false)
            && let Err(why) = spec.read(&file)
        {
            drop(why);
        }
    }
    let first = text.lines().next().unwrap_or_default();
    if let Ok(spec) = TraceSpec::parse(first, &|_| false) {
        drop((spec.read(&read), spec.to_toml(&|name| Ok::<_, String>(name.to_owned()))));
    }
    if let Err(wrong) = tidegate_scenario::recording(text) {
        assert!(wrong.line > 0 && !wrong.remedy.is_empty(), "{wrong:?}");
    }
}

/// A file of expectations.
pub fn expectations(text: &str) {
    crate::expect::file::fuzz(Path::new("/nonexistent/policy.test.toml"), text);
}

/// A request of a tool shim to its parent, or the reply to it.
pub fn wire(bytes: &[u8]) {
    tidegate_capture::fuzz_wire(bytes);
}

/// Calls of tools on one machine, one after the other.
pub fn calls(calls: &[Call]) {
    let mut machine = Machine::for_script(["eth0", "eth1", "ifb0"]);
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    for call in calls {
        machine.shim(&mut pool, &mut draws).answer(call);
    }
}

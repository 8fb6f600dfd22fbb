//! From the command line to the settings of a trial, and back to the command that gives the same figures.

use super::options::Options;
use crate::dissect::Dissect;
use crate::words::{quoted_input, quoted_path};
use std::fmt::Write as _;
use std::time::Duration;
use tidegate_capture::DEFAULT_TIMEOUT;
use tidegate_packet::{Nanos, Rate};
use tidegate_scenario::shell::{exact_time, quoted, tc_rate};
use tidegate_trial::{ModemBuffer, TrialProbe, TrialSettings};

impl Options {
    /// The settings of the trial itself.
    pub(crate) fn settings(&self, (up, down): (Rate, Rate)) -> TrialSettings {
        TrialSettings {
            script: self.script.display().to_string(),
            again: command(self, (up, down)),
            args: self.args.clone(),
            up,
            down,
            rtt: self.rtt,
            buffer: self.buffer,
            down_buffer: self.down_buffer,
            duration: self.duration,
            cable: self.cable,
            ring: self.ring,
            bql: self.bql,
            load: self.load.clone(),
            flows: self.flows,
            probes: self.probes.clone(),
            ipv6: self.ipv6,
            seed: self.seed,
            show: self.show.clone(),
        }
    }
}

fn timeout(time: Duration) -> String {
    exact_time(Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

/// The words of the command; options at their defaults are left out.
fn command(o: &Options, (up, down): (Rate, Rate)) -> String {
    let mut line = format!("tidegate try {}", quoted_input(&o.script));
    for file in &o.also {
        let _ = write!(line, " --also {}", quoted_path(file));
    }
    let _ = write!(line, " --up {} --down {}", tc_rate(up.as_bits()), tc_rate(down.as_bits()));
    let mut add = |flag: &str, value: String, default: bool| {
        if !default {
            let _ = write!(line, " --{flag} {value}");
        }
    };
    add("rtt", exact_time(o.rtt), o.rtt == Nanos::millis(30));
    let buffer = |size: ModemBuffer| match size {
        ModemBuffer::Bytes(bytes) => format!("{bytes}B"),
        ModemBuffer::Time(span) => exact_time(span),
    };
    add("buffer", buffer(o.buffer), o.buffer == ModemBuffer::Time(Nanos::millis(1500)));
    add("down-buffer", o.down_buffer.map_or_else(String::new, buffer), o.down_buffer.is_none());
    add("duration", exact_time(o.duration), o.duration == Nanos::secs(60));
    add("dev", quoted(o.dev.as_deref().unwrap_or_default()), o.dev.is_none());
    add(
        "over",
        o.over.as_ref().map_or_else(String::new, |(u, l)| quoted(&format!("{u}={l}"))),
        o.over.is_none(),
    );
    add("cable", o.cable.map_or_else(String::new, |cable| tc_rate(cable.as_bits())), o.cable.is_none());
    add("ring", o.ring.map_or_else(String::new, |n| n.to_string()), o.ring.is_none());
    add("bql", o.bql.map_or_else(String::new, |n| n.to_string()), o.bql.is_none());
    let names = |names: Vec<&str>| names.join(",");
    add("load", names(o.load.iter().map(|load| load.id()).collect()), o.load.is_empty());
    add("flows", o.flows.map_or_else(String::new, |n| n.to_string()), o.flows.is_none());
    add("probes", names(o.probes.iter().map(|probe| probe.id()).collect()), o.probes == TrialProbe::ALL);
    add("dissect", "legacy".to_owned(), o.dissect == Dissect::Modern);
    add("timeout", timeout(o.sandbox.timeout), o.sandbox.timeout == DEFAULT_TIMEOUT);
    for file in &o.output {
        let _ = write!(line, " -o {}", quoted_path(&file.path));
    }
    for (flag, set) in
        [("private", o.sandbox.private), ("keep-going", o.keep_going), ("log", o.log), ("ipv6", o.ipv6)]
    {
        if set {
            let _ = write!(line, " --{flag}");
        }
    }
    for command in &o.show {
        let _ = write!(line, " --show {}", quoted(command));
    }
    let _ = write!(line, " --seed {}", o.seed);
    if !o.args.is_empty() {
        let args: String = o.args.iter().map(|arg| format!(" {}", quoted(arg))).collect();
        line.push_str(" --");
        line.push_str(&args);
    }
    line
}

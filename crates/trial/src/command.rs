//! The command that gives the same figures, for the reader of a document.

use crate::settings::{ModemBuffer, TrialLine, TrialProbe, TrialSettings};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_packet::{Dissector, KernelModel, LinuxVersion, Nanos};
use tidegate_scenario::shell::{exact_time, quoted, quoted_input, quoted_path, tc_rate};
use tidegate_sim::Trace;
use tidegate_syntax::TcVersion;

/// What `tidegate try` was given beside a trial's settings.
#[derive(Clone, Copy, Debug)]
pub struct TrialCommand<'c> {
    /// The policy's file.
    pub policy: &'c Path,
    /// More files of the policy.
    pub also: &'c [PathBuf],
    /// The device that leads to the modem,
    pub dev: Option<&'c str>,
    /// or two, the upper one on the lower.
    pub over: Option<&'c (String, String)>,
    /// The device towards the LAN.
    pub lan: Option<&'c str>,
    /// The kernel that the policy is for,
    pub kernel: KernelModel,
    /// and the tc.
    pub tc: TcVersion,
    /// How long its script may run; `None`: as usual.
    pub timeout: Option<Duration>,
    /// What else is said of how its script is run, as on the command line.
    pub script: &'c str,
    /// Where reports are written.
    pub outputs: &'c [&'c Path],
    /// Further flags, without their dashes.
    pub flags: &'c [&'c str],
}

impl TrialCommand<'_> {
    /// The words of the command; options at their defaults are left out.
    pub fn words(&self, o: &TrialSettings) -> String {
        let mut line = format!("tidegate try {}", quoted_input(self.policy));
        for file in self.also {
            let _ = write!(line, " --also {}", quoted_path(file));
        }
        let varies = |trace: fn(&TrialLine) -> &Option<Trace>| {
            o.line.as_ref().is_some_and(|l| trace(l).as_ref().is_some_and(Trace::has_rates))
        };
        if let Some(varying) = &o.line {
            let _ = write!(line, " {}", varying.options);
        }
        // The mean of a recording is no option.
        for (flag, rate, varies) in
            [("up", o.up, varies(|line| &line.up)), ("down", o.down, varies(|line| &line.down))]
        {
            if !varies {
                let _ = write!(line, " --{flag} {}", tc_rate(rate.as_bits()));
            }
        }
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
        let (usual_up, usual_down) = TrialSettings::usual_buffers(o.line.as_ref());
        add("buffer", buffer(o.buffer), o.buffer == usual_up);
        add("down-buffer", o.down_buffer.map_or_else(String::new, buffer), o.down_buffer == usual_down);
        add("duration", exact_time(o.duration), o.duration == Nanos::secs(60));
        add("dev", quoted(self.dev.unwrap_or_default()), self.dev.is_none());
        add(
            "over",
            self.over.map_or_else(String::new, |(u, l)| quoted(&format!("{u}={l}"))),
            self.over.is_none(),
        );
        add("lan", quoted(self.lan.unwrap_or_default()), self.lan.is_none());
        add("cable", o.cable.map_or_else(String::new, |cable| tc_rate(cable.as_bits())), o.cable.is_none());
        add("ring", o.ring.map_or_else(String::new, |n| n.to_string()), o.ring.is_none());
        add("bql", o.bql.map_or_else(String::new, |n| n.to_string()), o.bql.is_none());
        let names = |names: Vec<&str>| names.join(",");
        add("load", names(o.load.iter().map(|load| load.id()).collect()), o.load.is_empty());
        add("flows", o.flows.map_or_else(String::new, |n| n.to_string()), o.flows.is_none());
        add("probes", names(o.probes.iter().map(|probe| probe.id()).collect()), o.probes == TrialProbe::ALL);
        add("linux", self.kernel.linux.to_string(), self.kernel.linux == LinuxVersion::default());
        add("tc", self.tc.to_string(), self.tc == TcVersion::default());
        add("dissect", "legacy".to_owned(), self.kernel.dissector != Dissector::Legacy);
        add("timeout", self.timeout.map_or_else(String::new, timeout), self.timeout.is_none());
        line.push_str(self.script);
        for file in self.outputs {
            let _ = write!(line, " -o {}", quoted_path(file));
        }
        for flag in self.flags.iter().copied().chain(o.ipv6.then_some("ipv6")) {
            let _ = write!(line, " --{flag}");
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
}

fn timeout(time: Duration) -> String {
    exact_time(Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

//! The command line of `tidegate shell`.

use super::expect::LineExpectation;
use super::names::{PROBE, SERVER, YOU};
use crate::outputs::{Form, ReportFile, output_file};
use crate::script_options::ScriptOptions;
use crate::sim::lab::options::Effort;
use clap::Parser;
use std::ffi::OsString;
use std::path::PathBuf;
use tidegate_scenario::presets::LINE_PRESETS;

/// Run a program or a shell behind an emulated link
///
/// Its traffic passes a gateway with your policy, a modem's buffer, and the line. The other end of the line
/// is the host `server`, which replies to pings and runs what --server-command starts.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "\
Needs root, or unprivileged user namespaces.

What --expect takes: rtt min, rtt mean, rtt median, rtt pN, rtt loss; up, down (the rate; N % is of what the line could \
carry); up loss, up drops, down loss, down drops; time (how long the program ran). docs/lab.md describes them.

Exit codes: the program's; 5 the program ended with 0 and an expectation fails; 2 wrong usage or input; 4 not permitted.

Examples:
  tidegate shell --up 2mbit --down 20mbit
  tidegate shell --preset lte --expect 'rtt p95 < 300ms' -o lte.json -- npm test
  tidegate shell --up 2mbit --policy 'gateway.sh start eth0' -- ping -c 5 server
  tidegate shell --attach lab1 --attach-server lab2 -- ip netns exec lab1 ./test.sh
  tidegate shell --server-command 'iperf3 -s' -- iperf3 -c server")]
pub struct Options {
    /// A line that varies, by name, in the place of --up and --down
    #[arg(long, value_name = "NAME", conflicts_with_all = ["up", "down", "trace"],
        value_parser = clap::builder::PossibleValuesParser::new(LINE_PRESETS.iter().map(preset)))]
    pub preset: Option<String>,
    /// What the upload carried over time, and the download: recordings, as `trace` of a link in a scenario
    /// (mahimahi, seconds and Mbit/s, a table), one of which may be empty; what they do not record is as the
    /// other options have it. Parts, scaled and joined: `a.csv:skip=30s+b.csv:scale=0.5` (docs/scenario.md)
    #[arg(long, value_name = "UP[,DOWN]")]
    pub trace: Vec<String>,
    /// The line's upload rate
    #[arg(long, value_name = "RATE", value_parser = known_rate, default_value = "10mbit")]
    pub up: String,
    /// The line's download rate; default: that of --up
    #[arg(long, value_name = "RATE", value_parser = known_rate)]
    pub down: Option<String>,
    /// Round-trip time of the idle line; with a preset, or a recording that has delays, that of the path
    /// behind it
    #[arg(long, value_name = "TIME", value_parser = known_time, default_value = "20ms")]
    pub rtt: String,
    /// The modem's upload buffer; default: 256kB, or the preset's
    #[arg(long, value_name = "SIZE", value_parser = known_size)]
    pub buffer: Option<String>,
    /// The provider's download buffer
    #[arg(long, value_name = "SIZE", value_parser = known_size)]
    pub down_buffer: Option<String>,
    /// Further properties of the upload, as of a link in a scenario: --up-line 'loss = "1%", framing =
    /// "pppoe-ptm"'
    #[arg(long, value_name = "KEYS")]
    pub up_line: Option<String>,
    /// Further properties of the download: --down-line 'loss = { every = 100 }, packet-rate = 4750'
    #[arg(long, value_name = "KEYS")]
    pub down_line: Option<String>,
    /// A policy for the gateway's eth0: a file that `tidegate check` reads, with a script's arguments behind
    /// it: --policy 'gateway.sh start eth0'
    #[arg(long, value_name = "FILE [ARGS]", conflicts_with = "tc")]
    pub policy: Option<PathBuf>,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// A command for the gateway instead of a policy: --tc 'tc qdisc add dev eth0 root fq_codel'; may be
    /// repeated
    #[arg(long, value_name = "COMMAND")]
    pub tc: Vec<String>,
    /// More hosts on the LAN beside `you`: their names with commas between them, or how many hosts there are
    /// (host2, host3, …)
    #[arg(long, value_name = "NAMES|N", value_parser = hosts, default_value = "1")]
    pub hosts: HostNames,
    /// A command that runs on a host meanwhile: --run 'host2=ping server'; may be repeated
    #[arg(long, value_name = "HOST=COMMAND", value_parser = run)]
    pub run: Vec<(String, String)>,
    /// A command that runs on `server` meanwhile: --server-command 'iperf3 -s'; may be repeated
    #[arg(long = "server-command", alias = "far", value_name = "COMMAND", conflicts_with = "attach_server")]
    pub far: Vec<String>,
    /// Let an existing network namespace be the host `you`: a name of `ip netns`, or a process id. The
    /// program then runs outside, where this command does; without one, the line stays until Ctrl-C
    #[arg(long, value_name = "NETNS|PID")]
    pub attach: Option<String>,
    /// Let an existing network namespace be the host `server`
    #[arg(long, value_name = "NETNS|PID")]
    pub attach_server: Option<String>,
    /// Fail (exit code 5) unless this holds of the time in which the program ran: 'rtt p95 < 50ms', 'down >=
    /// 90%'; may be repeated
    #[arg(long, value_name = "EXPECTATION", value_parser = LineExpectation::parse)]
    pub expect: Vec<LineExpectation>,
    /// Write what was asked of the line and what was measured of it while the program ran (.json)
    #[arg(short, long, value_name = "RESULT", value_parser = output_file(&[Form::Json]))]
    pub output: Vec<ReportFile>,
    /// Print that as JSON, and the program's output to standard error
    #[arg(long)]
    pub json: bool,
    /// Write what the line carried and dropped as CSV, every half second
    #[arg(long, value_name = "CSV")]
    pub log: Option<PathBuf>,
    /// Write the gateway's packets with class, queueing delay and outcome as pcapng, for Wireshark; of one
    /// device: PCAPNG:gateway/eth0
    #[arg(long, value_name = "PCAPNG[:MACHINE/DEVICE]")]
    pub pcapng: Option<String>,
    /// Priority of the emulation
    #[command(flatten)]
    pub effort: Effort,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The program and its arguments; default: a shell
    #[arg(last = true)]
    pub program: Vec<OsString>,
}

/// Hosts beside the one on which the program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNames(pub Vec<String>);

/// The most hosts of the LAN: its addresses are those of a home.
const MAX_HOSTS: usize = 64;

/// Letters of the longest name (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 63;

fn hosts(text: &str) -> Result<HostNames, String> {
    let names: Vec<String> = match text.parse::<usize>() {
        Ok(count) if (1..=MAX_HOSTS).contains(&count) => (2..=count).map(|n| format!("host{n}")).collect(),
        Ok(_) => return Err(format!("from 1 to {MAX_HOSTS} hosts are possible")),
        Err(_) => text.split(',').map(|name| name.trim().to_owned()).collect(),
    };
    // As in a label of DNS; one of digits alone would be an address.
    let is_name = |name: &String| {
        name.len() <= MAX_NAME
            && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
    };
    let reserved = [YOU, SERVER, PROBE, "gateway", "modem", "isp", "localhost"];
    for (at, name) in names.iter().enumerate() {
        if !is_name(name) {
            return Err(format!(
                "`{name}` is no name of a host: a letter, then letters, digits, - and _, {MAX_NAME} at most"
            ));
        }
        // Names of hosts are the same in capitals.
        let is_same = |other: &str| other.eq_ignore_ascii_case(name);
        if reserved.into_iter().any(is_same) || names[..at].iter().any(|other| is_same(other)) {
            return Err(format!("there is a host `{name}` already"));
        }
    }
    if names.len() >= MAX_HOSTS {
        Err(format!("from 1 to {MAX_HOSTS} hosts are possible"))
    } else {
        Ok(HostNames(names))
    }
}

fn run(text: &str) -> Result<(String, String), String> {
    let pair =
        text.split_once('=').filter(|(host, command)| !host.trim().is_empty() && !command.trim().is_empty());
    pair.map(|(host, command)| (host.trim().to_owned(), command.trim().to_owned()))
        .ok_or_else(|| "write HOST=COMMAND: host2='ping server'".to_owned())
}

fn preset(preset: &tidegate_scenario::presets::LinePreset) -> clap::builder::PossibleValue {
    clap::builder::PossibleValue::new(preset.name).help(preset.about)
}

/// A rate that the scenario will understand.
fn known_rate(text: &str) -> Result<String, String> {
    crate::values::rate(text).map(|_| text.to_owned())
}

/// A time that the scenario will understand.
fn known_time(text: &str) -> Result<String, String> {
    crate::values::time(text).map(|_| text.to_owned())
}

/// A size that the scenario will understand.
fn known_size(text: &str) -> Result<String, String> {
    crate::values::size(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_a_number() {
        let of = |text: &str| hosts(text).map(|names| names.0.join(" "));
        assert_eq!(of("1").as_deref(), Ok(""));
        assert_eq!(of("3").as_deref(), Ok("host2 host3"));
        assert_eq!(of("tv, pc-1").as_deref(), Ok("tv pc-1"));
        for (text, why) in [
            ("0", "from 1 to 64"),
            ("65", "from 1 to 64"),
            ("a b", "no name of a host"),
            ("a,,b", "no name of a host"),
            ("you", "a host `you` already"),
            ("a,a", "a host `a` already"),
            ("Server", "a host `Server` already"),
            ("a,A", "a host `A` already"),
            ("localhost", "a host `localhost` already"),
            ("tv,2", "no name of a host"),
            ("-x", "no name of a host"),
        ] {
            assert!(of(text).is_err_and(|wrong| wrong.contains(why)), "{text}");
        }
        assert_eq!(run("tv=ping server"), Ok(("tv".into(), "ping server".into())));
        assert!(run("tv").is_err() && run("=x").is_err());
    }
}

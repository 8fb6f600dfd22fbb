//! `tidegate shell`: a program, or a shell, behind a link that the command line describes.
//!
//! you ── gateway (the policy) ── modem = the link = isp ── server

use super::options::Effort;
use super::set_apart;
use crate::exit::CliExit;
use crate::output::ResultFile;
use crate::script_options::ScriptOptions;
use crate::sim::packets;
use anyhow::Context;
use clap::Parser;
use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tidegate_lab::experiment::RealNetwork;
use tidegate_packet::{Nanos, Time};
use tidegate_scenario::lay::{self, LaidOut, START};
use tidegate_scenario::model::Scenario;
use tidegate_scenario::prepare;
use tidegate_scenario::run::{LinkReadings, RunObserver};
use tidegate_sessions::simulated::ScenarioFiles;
use tidegate_sys::apart;

/// How often the meter and the log are written.
const STEP: Nanos = Nanos::millis(500);
/// The host on which the program runs.
const YOU: &str = "you";
/// And the one at the other end of the link.
const SERVER: &str = "server";

/// Run a program or a shell behind an emulated link
///
/// Its traffic passes a gateway with your policy, a modem's buffer, and the line. The other end of the line
/// is the host `server`, which replies to pings and runs what --server-command starts.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "\
Needs root, or unprivileged user namespaces.

Exit codes: the program's; 2 wrong usage or input; 4 not permitted.

Examples:
  tidegate shell --up 2mbit --down 20mbit
  tidegate shell --up 2mbit --policy 'gateway.sh start eth0' -- ping -c 5 server
  tidegate shell --server-command 'iperf3 -s' -- iperf3 -c server")]
pub struct Options {
    /// The line's upload rate
    #[arg(long, value_name = "RATE", value_parser = known_rate, default_value = "10mbit")]
    pub up: String,
    /// The line's download rate; default: that of --up
    #[arg(long, value_name = "RATE", value_parser = known_rate)]
    pub down: Option<String>,
    /// Round-trip time of the idle line
    #[arg(long, value_name = "TIME", value_parser = known_time, default_value = "20ms")]
    pub rtt: String,
    /// The modem's upload buffer
    #[arg(long, value_name = "SIZE", value_parser = known_size, default_value = "256kB")]
    pub buffer: String,
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
    /// A command that runs on `server` meanwhile: --server-command 'iperf3 -s'; may be repeated
    #[arg(long = "server-command", alias = "far", value_name = "COMMAND")]
    pub far: Vec<String>,
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

/// Plays `tidegate shell`; its code is the program's.
pub fn command(options: &Options) -> ExitCode {
    if !apart::here() {
        return set_apart();
    }
    // Ctrl-C is the program's; we end when it does.
    let _passed = tidegate_sys::interrupt::ignore();
    match attempt(options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("tidegate shell: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<u8> {
    let text = described(options)?;
    let path = Path::new("the command line");
    // Of the scenario only the keys of a line were typed by someone.
    let wrong = |wrong: tidegate_scenario::tables::Diagnostic| {
        let before = &text[..wrong.at.start.min(text.len())];
        let line = &text[before.rfind('\n').map_or(0, |found| found + 1)..];
        let is_typed = line.starts_with("up-line") || line.starts_with("down-line");
        anyhow::anyhow!(if is_typed { wrong.shown(path, &text) } else { wrong.to_string() })
    };
    let disk = ScenarioFiles { sandbox: options.sandbox.into() };
    let mut scenario = tidegate_scenario::parse(path, &text, &disk).map_err(wrong)?;
    let prepared = prepare::prepare(&mut scenario, &disk).map_err(wrong)?;
    for note in &prepared.notes {
        eprintln!("tidegate shell: {note}");
    }
    let mut laid = lay::lay(&scenario, &prepared, 0, options.seed).map_err(wrong)?;
    let mut packets = options.pcapng.as_deref().map(|file| packets::observer(&packets::Wanted::parse(file)));
    let mut meter = Meter::new(options, &scenario, &laid)?;
    if let Some(packets) = &mut packets {
        packets.begin(&scenario, &mut laid).map_err(|error| anyhow::anyhow!(error))?;
    }
    let mut network = RealNetwork::new(&scenario, laid, options.effort.into())?;
    let far = options.far.iter().map(|line| Ok((line, network.background(SERVER, line)?)));
    let far: Vec<_> = far.collect::<anyhow::Result<_>>()?;
    let child = network.host(YOU)?.start(program(options));
    let mut child = child.with_context(|| format!("cannot start {}", in_words(options)))?;
    let observer = packets.as_mut().map(|packets| packets.as_mut() as &mut dyn RunObserver);
    let status = network.run(&mut child, observer, (STEP, &mut |laid, now| Ok(meter.tell(laid, now)?)))?;
    meter.end(&network);
    for (line, program) in &far {
        let fate = program.outcome();
        if fate.failed() {
            eprintln!("tidegate shell: --server-command `{line}` failed:\n{}", fate.output().trim_end());
        }
    }
    network.end();
    Ok(status.code().map_or_else(|| 128 + status.signal().unwrap_or(0) as u8, |code| code as u8))
}

/// The command line as a scenario.
fn described(options: &Options) -> anyhow::Result<String> {
    // A string of JSON is one of TOML.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let down = options.down.as_ref().unwrap_or(&options.up);
    let mut text = format!(
        "duration = \"1h\"\n[home]\nhosts = [\"{YOU}\"]\nup = {}\ndown = {}\nrtt = {}\nbuffer = {}\n",
        quoted(&options.up),
        quoted(down),
        quoted(&options.rtt),
        quoted(&options.buffer)
    );
    if let Some(buffer) = &options.down_buffer {
        text += &format!("down-buffer = {}\n", quoted(buffer));
    }
    for (key, line) in [("up-line", &options.up_line), ("down-line", &options.down_line)] {
        if let Some(keys) = line {
            text += &format!("{key} = {{ {keys} }}\n");
        }
    }
    text += "[policies.yours]\n";
    if let Some(policy) = &options.policy {
        let (file, args) = crate::words::file_and_args(policy);
        let path = std::path::absolute(file)?;
        text += &format!("gateway = {}\n", quoted(path.to_str().context("the policy's path is not text")?));
        let args: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
        text += &format!("args = [{}]\n", args.join(", "));
    } else if !options.tc.is_empty() {
        let commands: Vec<String> = options.tc.iter().map(|line| quoted(line)).collect();
        text += &format!("gateway = [{}]\n", commands.join(", "));
    }
    Ok(text + &format!("[[traffic]]\nping = \"{YOU} -> {SERVER}\"\n"))
}

fn program(options: &Options) -> Command {
    let Some((program, words)) = options.program.split_first() else {
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        eprintln!(
            "tidegate: you are behind {} up, {} down, {} away from `{SERVER}`; `exit` brings you back",
            options.up,
            options.down.as_ref().unwrap_or(&options.up),
            options.rtt
        );
        return Command::new(shell);
    };
    let mut command = Command::new(program);
    command.args(words);
    command
}

fn in_words(options: &Options) -> String {
    options.program.first().map_or_else(|| "a shell".to_owned(), |program| format!("`{}`", program.display()))
}

/// What the line does, on the terminal and in a file.
struct Meter {
    /// Away and towards.
    courses: Vec<LinkReadings>,
    on_terminal: bool,
    log: Option<BufWriter<ResultFile>>,
}

impl Meter {
    fn new(options: &Options, scenario: &Scenario, laid: &LaidOut) -> anyhow::Result<Meter> {
        let courses = LinkReadings::all(scenario, 0, &laid.world);
        let line = scenario.cables.iter().position(|cable| cable.name == "dsl");
        let mut log = match &options.log {
            Some(path) => Some(BufWriter::new(crate::output::begin_growing(path)?)),
            None => None,
        };
        if let Some(log) = &mut log {
            writeln!(
                log,
                "seconds,up_bits_per_second,up_queue_bytes,up_dropped,down_bits_per_second,down_queue_bytes,down_dropped"
            )?;
        }
        // An interactive program has the terminal for itself.
        let on_terminal = crate::output::progress_columns().is_some()
            && !options.program.is_empty()
            && !crate::output::stdout().is_terminal();
        Ok(Meter {
            courses: courses.into_iter().filter(|course| Some(course.cable) == line).collect(),
            on_terminal,
            log,
        })
    }

    fn tell(&mut self, laid: &mut LaidOut, now: Time) -> anyhow::Result<()> {
        let mut shown = Vec::new();
        let mut row = format!("{:.1}", now.since(START).0 as f64 / 1e9);
        for course in &mut self.courses {
            course.read(laid, STEP);
            let (sent, queue, lost) = course.last_step();
            let rate = sent as f64 * 8e9 / STEP.0 as f64;
            let way = if course.up { "up" } else { "down" };
            shown.push(format!(
                "{way} {} queue {} lost {lost}",
                tidegate_report::rate(rate),
                tidegate_report::size(queue)
            ));
            row += &format!(",{rate:.0},{queue},{lost}");
        }
        if let Some(log) = &mut self.log {
            writeln!(log, "{row}")?;
        }
        if self.on_terminal {
            crate::output::progress_line(&shown.join("   "));
        }
        Ok(())
    }

    fn end(&mut self, network: &RealNetwork<'_>) {
        if let Some(log) = &mut self.log {
            let _ = log.flush();
        }
        if self.on_terminal {
            crate::output::draw("\r\x1b[K");
        }
        if let Some(address) = network.unknown_address() {
            eprintln!(
                "tidegate shell: packets went to {address}, an address that no host has: behind the link \
                there is only `{SERVER}`"
            );
        }
        let late = network.lateness().quantile(0.99);
        if late.0 > tidegate_measure::experiment::Lateness::BELIEVED {
            eprintln!(
                "tidegate shell: this machine was late: one packet in a hundred came {} later than the link \
                says; --realtime or --busy may help",
                tidegate_report::format_duration(late.0)
            );
        }
    }
}

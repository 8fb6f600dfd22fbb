//! `tidegate shell`: a program, or a shell, behind a link that the command line describes.
//!
//! you ── gateway (the policy) ── modem = the link = isp ── server

mod attach;
mod expect;
mod measured;
mod names;
mod options;
mod program;
mod report;

pub use options::Options;

use super::set_apart;
use crate::exit::CliExit;
use crate::output::ResultFile;
use crate::outputs::{self, ReportFile};
use crate::sim::packets;
use anyhow::Context;
use expect::ExpectationOutcome;
use measured::{LineAsked, LineMeasured, Recorder};
use names::{PROBE, SERVER, YOU};
use program::{code_of, in_words, program};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::TryRecvError;
use std::time::Instant;
use tidegate_lab::experiment::RealNetwork;
use tidegate_lab::load::PingLoad;
use tidegate_packet::{Nanos, Time};
use tidegate_scenario::TraceSpec;
use tidegate_scenario::lay::{self, LaidOut, START};
use tidegate_scenario::model::Scenario;
use tidegate_scenario::prepare;
use tidegate_scenario::run::{LinkReadings, RunObserver};
use tidegate_sessions::simulated::ScenarioFiles;
use tidegate_sys::apart;

/// How often the line is read, and the meter and the log are written.
const READ: Nanos = Nanos::millis(100);
const STEP: Nanos = Nanos::millis(500);
/// How often the line's round trip is measured.
const PING: Nanos = Nanos::millis(100);

/// Plays `tidegate shell`; its code is the program's.
pub fn command(options: &Options) -> ExitCode {
    let is_attached = attach::is_wanted(options);
    if !apart::here() && !is_attached {
        return set_apart();
    }
    // Ctrl-C is the program's; we end when it does.
    let _passed = apart::here().then(tidegate_sys::interrupt::ignore);
    let done = match apart::here() {
        true => attempt(options).map(ExitCode::from),
        false => attach::outside(options),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tidegate shell: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<u8> {
    crate::output::may_write(outputs::paths(&options.output))?;
    let text = described(options)?;
    let path = Path::new("the command line");
    // Of the scenario only the keys of a line were typed by someone.
    let wrong = |wrong: tidegate_scenario::tables::Diagnostic| {
        let before = &text[..wrong.at.start.min(text.len())];
        let line = &text[before.rfind('\n').map_or(0, |found| found + 1)..];
        let is_typed = line.starts_with("up-line") || line.starts_with("down-line");
        anyhow::anyhow!(if is_typed { wrong.shown(path, &text) } else { wrong.to_string() })
    };
    let disk = ScenarioFiles { sandbox: (&options.sandbox).into() };
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
    let mut outside = attach::is_wanted(options).then(attach::Outside::new).transpose()?;
    let devices = match &mut outside {
        Some(outside) => outside.devices(options, &scenario, &mut laid)?,
        None => Some(Vec::new()),
    };
    let Some(devices) = devices else { return Ok(CliExit::Input.into()) };
    let mut recorder = is_measured(options).then(|| Recorder::new(&scenario, &laid)).flatten();
    let asked = LineAsked {
        preset: options.preset.clone(),
        traces: crate::words::names(&options.trace),
        policy: options.policy.as_ref().map(|path| path.display().to_string()),
        seed: options.seed,
        ..LineAsked::new(&scenario)
    };
    let mut network = RealNetwork::new(&scenario, laid, options.effort.into(), devices)?;
    let far = options.far.iter().map(|line| ("--server-command", SERVER, line));
    let far = far.chain(options.run.iter().map(|(host, line)| ("--run", host.as_str(), line)));
    let far = far.map(|(option, host, line)| Ok((option, line, network.background(host, line)?)));
    let far: Vec<_> = far.collect::<anyhow::Result<_>>()?;
    let pings = match recorder {
        Some(_) => Some(network.pings(measuring_host(options), SERVER, PING)?),
        None => None,
    };
    let began = Instant::now();
    let mut ended = begin(options, &network, outside)?;
    let observer = packets.as_mut().map(|packets| packets.as_mut() as &mut dyn RunObserver);
    let mut next = START + STEP;
    let code = network.run(
        &mut *ended,
        observer,
        (READ, &mut |laid, now| {
            recorder.iter_mut().for_each(|recorder| recorder.read(laid, now));
            if now >= next {
                next += STEP;
                meter.tell(laid, now)?;
            }
            Ok(())
        }),
    )?;
    let seconds = began.elapsed().as_secs_f64();
    let measured = recorder.map(|recorder| measure(recorder, &mut network, (seconds, pings.as_ref())));
    meter.end(&network);
    for (option, line, program) in &far {
        let fate = program.outcome();
        if fate.failed() {
            eprintln!("tidegate shell: {option} `{line}` failed:\n{}", fate.output().trim_end());
        }
    }
    network.end();
    match measured {
        Some(measured) => results(options, &asked, &measured, code),
        None => Ok(code),
    }
}

/// Is the line measured? Only then are there pings beside the program's packets.
fn is_measured(options: &Options) -> bool {
    options.json || !options.output.is_empty() || !options.expect.is_empty()
}

fn measuring_host(options: &Options) -> &'static str {
    if options.attach.is_some() { PROBE } else { YOU }
}

/// What says how the program ended, once it has.
type ProgramEnd = dyn FnMut() -> io::Result<Option<u8>>;

/// Starts the program: here, or by the process outside.
fn begin(
    options: &Options,
    network: &RealNetwork<'_>,
    outside: Option<attach::Outside>,
) -> anyhow::Result<Box<ProgramEnd>> {
    if let Some(outside) = outside {
        let ended = outside.begin()?;
        return Ok(Box::new(move || match ended.try_recv() {
            Ok(code) => Ok(Some(code)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Ok(Some(1)),
        }));
    }
    let mut command = program(options);
    if options.json {
        tidegate_sys::process::output_to_stderr(&mut command);
    }
    let child = network.host(YOU)?.start(command);
    let mut child = child.with_context(|| format!("cannot start {}", in_words(options)))?;
    Ok(Box::new(move || Ok(child.try_wait()?.map(code_of))))
}

/// What was measured, now that the program has ended.
fn measure(
    mut recorder: Recorder,
    network: &mut RealNetwork<'_>,
    (seconds, pings): (f64, Option<&PingLoad>),
) -> LineMeasured {
    let now = network.laid.world.net.now();
    recorder.read(&mut network.laid, now);
    let [up, down] = recorder.end(&mut network.laid);
    let late = [0.5, 0.99].map(|share| network.lateness().quantile(share).0);
    let mut measured = LineMeasured { seconds, up, down, late, ..LineMeasured::default() };
    if let Some(pings) = pings {
        if let Some(trouble) = pings.trouble() {
            eprintln!("tidegate shell: the pings that measure the line ended: {trouble}");
        }
        measured.take_pings(&pings.answers(), now.since(START).0);
    }
    measured
}

/// Writes what was measured, and says what was expected of it.
fn results(options: &Options, asked: &LineAsked, measured: &LineMeasured, code: u8) -> anyhow::Result<u8> {
    let expected: Vec<(String, ExpectationOutcome)> =
        options.expect.iter().map(|one| (one.text.clone(), one.outcome(measured))).collect();
    let words: Vec<String> = options.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let document = report::document(asked, measured, (&words, code), &expected);
    for ReportFile { path, .. } in &options.output {
        crate::output::file(path, &document)?;
    }
    if options.json {
        crate::output::text(&document);
    }
    if !crate::output::is_quiet() {
        report::words(asked, measured).lines().for_each(|line| eprintln!("tidegate shell: {line}"));
    }
    for (_, outcome) in &expected {
        let how = if outcome.holds { "holds" } else { "FAILS" };
        eprintln!("tidegate shell: {how}: {}", outcome.words);
    }
    let is_met = expected.iter().all(|(_, outcome)| outcome.holds);
    Ok(if code == 0 && !is_met { CliExit::Unmet.into() } else { code })
}

/// The command line as a scenario.
fn described(options: &Options) -> anyhow::Result<String> {
    // A string of JSON is one of TOML.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let down = options.down.as_ref().unwrap_or(&options.up);
    let mut names = vec![YOU];
    names.extend(options.hosts.0.iter().map(String::as_str));
    if is_measured(options) && measuring_host(options) != YOU {
        names.push(PROBE);
    }
    for (host, _) in &options.run {
        let is_there = names.contains(&host.as_str()) || host == SERVER;
        let all = names.join(", ");
        anyhow::ensure!(is_there, "--run: there is no host `{host}`: there are {all} and {SERVER}");
        let is_attached =
            (host == YOU && options.attach.is_some()) || (host == SERVER && options.attach_server.is_some());
        anyhow::ensure!(
            !is_attached,
            "--run: `{host}` is a namespace of yours: start the command there (`ip netns exec`, `nsenter`)"
        );
    }
    let hosts = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let mut text = format!("duration = \"1h\"\n[home]\nhosts = [{hosts}]\nrtt = {}\n", quoted(&options.rtt));
    match &options.preset {
        Some(preset) => text += &format!("preset = {}\nseed = {}\n", quoted(preset), options.seed),
        None => text += &format!("up = {}\ndown = {}\n", quoted(&options.up), quoted(down)),
    }
    let usual = options.preset.is_none().then_some("256kB");
    if let Some(buffer) = options.buffer.as_deref().or(usual) {
        text += &format!("buffer = {}\n", quoted(buffer));
    }
    if let Some(buffer) = &options.down_buffer {
        text += &format!("down-buffer = {}\n", quoted(buffer));
    }
    let traces = crate::words::names(&options.trace);
    anyhow::ensure!(traces.len() <= 2, "--trace takes two recordings: of the upload, and of the download");
    for (number, (key, line)) in
        [("up-line", &options.up_line), ("down-line", &options.down_line)].into_iter().enumerate()
    {
        let mut keys: Vec<String> = line.iter().cloned().collect();
        if let Some(name) = traces.get(number).filter(|name| !name.is_empty()) {
            let spec =
                TraceSpec::parse(name, &|name| Path::new(name).exists()).map_err(anyhow::Error::msg)?;
            let path = |name: &str| -> anyhow::Result<String> {
                let path = std::path::absolute(name)?;
                Ok(path.to_str().context("a recording's path is not text")?.to_owned())
            };
            keys.push(format!("trace = {}", spec.to_toml(&path)?));
        }
        if !keys.is_empty() {
            text += &format!("{key} = {{ {} }}\n", keys.join(", "));
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
    // What no traffic names is no host that a program could run on.
    let traffic = names.iter().map(|name| format!("[[traffic]]\nping = \"{name} -> {SERVER}\"\n"));
    text.extend(traffic);
    Ok(text)
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

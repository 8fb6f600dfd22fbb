//! `tidegate replay --capture FILE`: what policies would have done with the packets of a capture.
//!
//! ```text
//! file ──▶ frames ──▶ arrivals (which way, which flow, split) ──▶ gateway (a sim::Net, observed) ──▶ account ──▶ measure::replayed
//!                                                                                                      └─▶ annotated (pcapng)
//! ```
//! Packets arrive as they were captured, whether those before them were dropped or not: no sender slows down.
//! `closed` makes a scenario of the capture's connections instead, so that they do.

mod again;
mod load;
mod options;

pub(super) use options::Options;

use crate::outputs;
use crate::pcap_file::{self, PcapFile};
use anyhow::{Context, bail};
use indicatif::ProgressBar;
use std::fmt::Write as _;
use tidegate_measure::replayed::{ReplayLine, Replayed};
use tidegate_replay::annotated::CapturedPackets;
use tidegate_replay::captured::{
    CandidatePolicy, CaptureRun, PacketObserver, Survey, Surveyed, is_silent, step_of,
};
use tidegate_report::replayed as report;

/// Replays a capture, prints the result and writes its files.
pub(super) fn replay(options: &Options, seed: u64) -> anyhow::Result<()> {
    let path = options.file();
    let surveyed = survey(options).with_context(|| path.display().to_string())?;
    if options.closed {
        return again::replay(options, &surveyed, seed, again(options, seed));
    }
    let candidates = load::candidates(options, seed)?;
    crate::output::may_write(outputs::paths(&options.output).chain(options.files()))?;
    let written = written(options, &candidates)?;
    let bar = progress(&surveyed, candidates.len());
    let settings = options.settings();
    let mut replayed = Replayed {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: again(options, seed),
        line: ReplayLine {
            rate: options.rate.map(|rate| rate.as_bits()),
            buffer: options.settings().modem().map(|(_, bytes)| bytes),
        },
        step_ns: step_of(surveyed.duration),
        ..Replayed::default()
    };
    for (number, candidate) in candidates.iter().enumerate() {
        bar.set_message(candidate.name.clone());
        let notes = options.write.as_deref().filter(|_| number == written);
        let file = notes.map(PcapFile::begin).transpose()?;
        let mut notes =
            file.map(|file| CapturedPackets::new(Box::new(file), surveyed.began, &candidate.name));
        let observer = notes.as_mut().map(|notes| notes as &mut dyn PacketObserver);
        let mut run = CaptureRun::new(candidate, &settings, &surveyed, seed, observer);
        pcap_file::open(options.file())?.each(|packet, raw| {
            run.packet(&packet).map_err(|error| anyhow::anyhow!(error))?;
            bar.set_position(raw);
            anyhow::Ok(())
        })?;
        let (outcome, capture, late) = run.finish().map_err(|error| anyhow::anyhow!(error))?;
        replayed.policies.push(outcome);
        replayed.capture = capture;
        notes_of(&mut replayed, candidate, late);
    }
    bar.finish_and_clear();
    if replayed.capture.out.0 + replayed.capture.inward.0 == 0 {
        bail!(
            "none of its {} packets goes out or comes in: {}",
            replayed.capture.packets,
            left_out(&replayed)
        );
    }
    let json = || tidegate_analysis::replayed::to_json(&replayed);
    crate::output::report(&if options.json { json() } else { report::text(&replayed) });
    options.write_files(json, || report::page(&replayed))
}

/// Reads a capture for the first time.
fn survey(options: &Options) -> anyhow::Result<Surveyed> {
    let (mut survey, mut bytes) = (Survey::default(), 0);
    let broken = pcap_file::open(options.file())?.each(|packet, so_far| {
        bytes = so_far;
        survey.packet(&packet);
        anyhow::Ok(())
    })?;
    let format = pcap_file::open(options.file())?.format()?;
    Ok(survey.finish(&options.settings(), bytes, format, broken.as_ref()))
}

fn left_out(replayed: &Replayed) -> String {
    let all: Vec<String> =
        replayed.capture.left_out.iter().map(|(why, count)| format!("{count} {why}")).collect();
    format!("{}; --from says who is here ({})", all.join(", "), replayed.capture.rule)
}

/// What the reader should know of the capture and of a policy.
fn notes_of(replayed: &mut Replayed, candidate: &CandidatePolicy, late: u64) {
    let mut notes = candidate.policy.notes.clone();
    if late > 0 {
        notes.push(format!("{late} packets are behind later ones in the file; they arrive with those"));
    }
    if !candidate.file.is_empty() && is_silent(&candidate.policy) {
        notes.push(format!("{} configures no qdisc", candidate.name));
    }
    for note in notes {
        if !replayed.notes.contains(&note) {
            replayed.notes.push(note);
        }
    }
}

/// The number of the policy whose packets are written: the last, unless one is named.
fn written(options: &Options, candidates: &[CandidatePolicy]) -> anyhow::Result<usize> {
    let Some(name) = &options.write_of else { return Ok(candidates.len() - 1) };
    let found = candidates.iter().position(|one| one.name == *name || one.file == *name);
    found.with_context(|| {
        let names: Vec<&str> = candidates.iter().map(|one| one.name.as_str()).collect();
        format!("unknown policy `{name}`; there are {}", names.join(", "))
    })
}

/// The command that makes the same document again.
fn again(options: &Options, seed: u64) -> String {
    use crate::trial::{exact_time, quoted, tc_rate};
    use tidegate_scenario::shell::quoted_path;
    use tidegate_trial::ModemBuffer;
    let mut line = format!("tidegate replay --capture {}", quoted_path(options.file()));
    let mut add = |flag: &str, value: String| {
        let _ = write!(line, " --{flag} {value}");
    };
    options.policy.iter().for_each(|path| add("policy", quoted_path(path)));
    options.rate.iter().for_each(|rate| add("rate", tc_rate(rate.as_bits())));
    options.buffer.iter().for_each(|buffer| {
        add(
            "buffer",
            match buffer {
                ModemBuffer::Bytes(bytes) => format!("{bytes}B"),
                ModemBuffer::Time(span) => exact_time(*span),
            },
        );
    });
    options.dev.iter().for_each(|dev| add("dev", quoted(dev)));
    options.over.iter().for_each(|(upper, lower)| add("over", quoted(&format!("{upper}={lower}"))));
    options.from.iter().for_each(|prefix| add("from", prefix.to_string()));
    options.local.iter().for_each(|prefix| add("local", prefix.to_string()));
    if options.top != 10 {
        add("top", options.top.to_string());
    }
    options.down.iter().for_each(|rate| add("down", tc_rate(rate.as_bits())));
    options.rtt.iter().for_each(|rtt| add("rtt", exact_time(*rtt)));
    if options.direct {
        line.push_str(" --direct");
    }
    if options.closed {
        line.push_str(" --closed");
    }
    let _ = write!(line, " --seed {seed}");
    if !options.args.is_empty() {
        line.push_str(" --");
        options.args.iter().for_each(|arg| line.push_str(&format!(" {}", quoted(arg))));
    }
    line
}

/// A bar on the terminal; nothing in a pipe.
fn progress(surveyed: &Surveyed, policies: usize) -> ProgressBar {
    let of = if policies > 1 { format!("{{msg}} of {policies} policies") } else { "{msg}".to_owned() };
    let behind = "{bytes}/{total_bytes} of the capture";
    let columns = of.len() + 16 + behind.len();
    crate::output::progress_bar(surveyed.bytes, (&of, behind), columns)
}

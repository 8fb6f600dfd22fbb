//! `--closed`: the capture's connections made again with the simulator's TCP, carried out by `sim`.

use super::load;
use super::options::Options;
use crate::pcap_file;
use crate::sim::of_text;
use anyhow::{Context, bail};
use std::fmt::Write as _;
use tidegate_measure::experiment::{Experiment, RunRecord};
use tidegate_packet::header::proto;
use tidegate_replay::captured::closed::{self, Conversation, Conversations};
use tidegate_replay::captured::{CandidatePolicy, Surveyed};
use tidegate_report::{Align, Table, format_duration, percent, size};

/// Repeats the capture's conversations, prints the result and writes its files.
pub(super) fn replay(options: &Options, surveyed: &Surveyed, seed: u64, again: String) -> anyhow::Result<()> {
    closed::short_enough(surveyed)?;
    let settings = options.settings();
    let candidates = load::candidates(options, seed)?;
    let mut conversations = Conversations::new(surveyed);
    pcap_file::open(options.file())?.each(|packet, _| {
        conversations.packet(&packet);
        anyhow::Ok(())
    })?;
    let (parts, mut notes) = conversations.chosen(&settings);
    if parts.is_empty() {
        bail!("no conversation of the capture can be made again: {}", notes.join("; "));
    }
    let mut experiment: Option<Experiment> = None;
    for candidate in &candidates {
        let file = policy_path(candidate)?;
        let text = closed::scenario(&settings, surveyed, (candidate, file.as_deref()), &parts, seed)?;
        let done = of_text(options.file(), &text).with_context(|| format!("policy {}", candidate.name))?;
        match &mut experiment {
            None => experiment = Some(done),
            Some(all) => {
                all.policies.extend(done.policies);
                all.runs.extend(done.runs);
            }
        }
    }
    let mut experiment = experiment.unwrap_or_default();
    notes.insert(
        0,
        "modelled: the capture's connections are made again with the simulator's TCP; they are not what was \
        captured"
            .into(),
    );
    (experiment.again, experiment.notes) = (again, notes);
    let json = || tidegate_analysis::experiment::to_json(&experiment);
    crate::output::report(&if options.json { json() } else { text(&experiment, &parts) });
    options.write_files(json, || tidegate_report::experiment::page(&experiment))
}

/// The path of a policy's file, valid in the scenario's directory.
fn policy_path(candidate: &CandidatePolicy) -> anyhow::Result<Option<String>> {
    if candidate.file.is_empty() {
        return Ok(None);
    }
    let path = std::path::absolute(&candidate.file)?;
    Ok(Some(path.to_str().context("the policy's path is not text")?.to_owned()))
}

/// Each conversation under each policy.
fn text(experiment: &Experiment, parts: &[Conversation]) -> String {
    let mut out = String::from("The capture's conversations, made again: modelled, not captured.\n\n");
    let of = |run: &RunRecord, part: &Conversation| -> (String, String) {
        if let Some(transfer) = run.transfers.iter().find(|one| one.id == part.id) {
            let took = transfer.finished.map(|at| format_duration(at.saturating_sub(transfer.began)));
            return (took.unwrap_or_else(|| "not done".into()), transfer.lost.to_string());
        }
        let probe = run.probes.iter().find(|one| one.id == part.id);
        probe.map_or_else(Default::default, |probe| {
            let figures = probe.figures(run.window);
            (
                figures.rtt.percentile(95.0).map_or_else(|| "–".into(), format_duration),
                percent(figures.loss()),
            )
        })
    };
    let runs = &experiment.runs;
    for (tcp, caption) in [
        (true, "Connections: how long each took, and packets lost"),
        (false, "Datagrams, one way: 95th percentile, and losses"),
    ] {
        let chosen = parts.iter().filter(|part| (part.key.protocol == proto::TCP) == tcp);
        let mut columns = vec![
            ("conversation".to_owned(), Align::Left),
            ("bytes".to_owned(), Align::Right),
            ("rtt".to_owned(), Align::Right),
        ];
        columns.push(("as captured".to_owned(), Align::Right));
        for run in runs {
            columns.push((run.policy.clone(), Align::Right));
            columns.push(("lost".to_owned(), Align::Right));
        }
        let mut table = Table::new(columns);
        for part in chosen {
            let talk = &part.talk;
            let bytes = talk.sent[usize::from(!talk.forth())].1;
            let arrow = if talk.forth() { part.key.to_string() } else { part.key.back().to_string() };
            let captured = if tcp { format_duration(talk.ended - talk.began) } else { "–".to_owned() };
            let mut row =
                vec![arrow, size(bytes), talk.rtt.map_or_else(|| "–".to_owned(), format_duration), captured];
            for run in runs {
                let (took, lost) = of(run, part);
                row.extend([took, lost]);
            }
            table.row(row);
        }
        if !table.is_empty() {
            let _ = writeln!(out, "{caption}\n\n{table}");
        }
    }
    for note in &experiment.notes {
        let _ = writeln!(out, "Note: {note}");
    }
    let _ = writeln!(out, "Again: {}", experiment.again);
    out
}

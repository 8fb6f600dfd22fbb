//! `tidegate explain POLICY PACKET`: which rules, filters, class and queue a packet meets, and why.
//!
//! ```text
//! files ─▶ loader ─▶ inspect::PolicyModel ─▶ Explainer ─▶ Story ─▶ text | json
//! words or a recording ─▶ Packet ────────────┘
//! ```

mod options;
mod pcap;
mod text;

pub use options::Options;

use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile};
use crate::script_options::show_errors;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::ExitCode;
use tidegate_inspect::explained::{Explained, ExplainedPacket};
use tidegate_inspect::{Packet, PolicyModel};
use tidegate_loader::ReadOptions;

/// Plays `tidegate explain`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tidegate explain: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// Prints the explanation, and writes its files.
fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let answer = answer(options)?;
    crate::output::may_write(outputs::paths(&options.output))?;
    let shown = |form: Form| match form {
        Form::Json => answer.to_json(),
        _ => text::stories(&answer, options.all),
    };
    crate::output::report(&shown(if options.json { Form::Json } else { Form::Text }));
    for ReportFile { path, form } in &options.output {
        crate::output::file(path, shown(*form))?;
    }
    Ok(if answer.differs() { CliExit::No } else { CliExit::Yes })
}

fn answer(options: &Options) -> anyhow::Result<Explained> {
    let packets = packets(options)?;
    let reading = read(&options.policy, options)?;
    let other = options.diff.as_ref().map(|policy| read(policy, options)).transpose()?;
    Explained::of(reading, other, packets, options.reply).map_err(|why| anyhow::anyhow!(why))
}

/// The packets that the options name.
fn packets(options: &Options) -> anyhow::Result<Vec<ExplainedPacket>> {
    let mut packets = match &options.pcap {
        Some(path) => {
            let recorded = pcap::packets(path, options.number)?;
            recorded
                .into_iter()
                .map(|r| ExplainedPacket { heading: format!("packet {}", r.number), packet: r.packet })
                .collect()
        }
        None => vec![ExplainedPacket { heading: String::new(), packet: packet(options)? }],
    };
    for one in &mut packets {
        complete(&mut one.packet, options)?;
    }
    Ok(packets)
}

/// The packet in words. What a file or an argument of a script says instead is told where it belongs.
fn packet(options: &Options) -> anyhow::Result<Packet> {
    let words = options.packet.join(" ");
    Packet::parse(&words).map_err(|wrong| {
        let is_file = options.packet.first().is_some_and(|word| Path::new(word).is_file());
        let remedy = if is_file {
            "; more files of the policy are given with --also"
        } else if !words.contains('>') {
            "; arguments for a script come after `--`"
        } else {
            ""
        };
        anyhow::anyhow!("{wrong}{remedy}")
    })
}

/// Adds options' values where the packet's words have none.
fn complete(packet: &mut Packet, options: &Options) -> anyhow::Result<()> {
    if packet.from.is_none() {
        packet.from.clone_from(&options.r#in);
    }
    if packet.to.is_none() {
        packet.to.clone_from(&options.out);
    }
    if let (None, Some(state)) = (packet.state, &options.state) {
        let same = Packet::parse(&format!("{packet} {state}")).context("--state")?;
        packet.state = same.state;
    }
    Ok(())
}

fn read(policy: &Path, options: &Options) -> anyhow::Result<PolicyModel> {
    let mut files = vec![policy.to_owned()];
    files.extend(options.also.iter().cloned());
    let how = ReadOptions {
        args: options.args.clone(),
        sandbox: (&options.sandbox).into(),
        kernel: options.kernel.into(),
        tc: options.kernel.tc,
        output: tidegate_capture::Output::Collect,
        ..ReadOptions::default()
    };
    let taken = tidegate_loader::read(&files, &how)?;
    show_errors(&taken.outcomes);
    for warning in taken.warnings() {
        eprintln!("{warning}");
    }
    if !taken.ended() {
        bail!("{} did not come to its end, so what it configures is not known", policy.display());
    }
    if let Some(nothing) = taken.nothing_found() {
        bail!("{nothing}");
    }
    Ok(taken.reading())
}

//! `tidegate explain POLICY PACKET`: which rules, filters, class and queue a packet meets, and why.
//!
//! ```text
//! files ─▶ loader ─▶ inspect::Reading ─▶ Explainer ─▶ Story ─▶ text | json
//! words or a recording ─▶ Packet ────────────┘
//! ```

mod answer;
mod json;
mod options;
mod pcap;
mod text;

pub use options::Options;

use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile};
use crate::script_options::show_errors;
use answer::{Answer, Asked, Told};
use anyhow::{Context, bail};
use std::path::Path;
use std::process::ExitCode;
use tidegate_inspect::{Explainer, Packet, Reading, Story};
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
        Form::Json => json::document(&answer),
        _ => text::stories(&answer, options.all),
    };
    crate::output::text(&shown(if options.json { Form::Json } else { Form::Text }));
    for ReportFile { path, form } in &options.output {
        crate::output::file(path, shown(*form))?;
    }
    let parted = answer
        .told
        .iter()
        .any(|told| told.other.as_ref().is_some_and(|other| told.story.parts_from(other).is_some()));
    Ok(if parted { CliExit::No } else { CliExit::Yes })
}

fn answer(options: &Options) -> anyhow::Result<Answer> {
    let asked = asked(options)?;
    let reading = read(&options.policy, options)?;
    let other = options.diff.as_ref().map(|policy| read(policy, options)).transpose()?;
    let mut told = Vec::new();
    {
        let mut explainer = Explainer::new(&reading);
        let mut others = other.as_ref().map(Explainer::new);
        for asked in asked {
            let story = story(&mut explainer, &asked.packet)?;
            let other = others.as_mut().map(|explainer| self::story(explainer, &asked.packet)).transpose()?;
            let reply = options.reply.then(|| reply(&asked, &story));
            told.push(Told { asked, story, other });
            if let Some(asked) = reply {
                let story = self::story(&mut explainer, &asked.packet)?;
                let other =
                    others.as_mut().map(|explainer| self::story(explainer, &asked.packet)).transpose()?;
                told.push(Told { asked, story, other });
            }
        }
    }
    Ok(Answer { reading, other, told })
}

fn story(explainer: &mut Explainer<'_>, packet: &Packet) -> anyhow::Result<Story> {
    match explainer.course(packet) {
        Ok(course) => Ok(explainer.explain(packet, course)),
        Err(why) => bail!("{packet}: {why}"),
    }
}

/// The packets asked for.
fn asked(options: &Options) -> anyhow::Result<Vec<Asked>> {
    let mut asked = match &options.pcap {
        Some(path) => {
            let recorded = pcap::packets(path, options.number)?;
            recorded
                .into_iter()
                .map(|r| Asked { heading: format!("packet {}", r.number), packet: r.packet })
                .collect()
        }
        None => vec![Asked { heading: String::new(), packet: Packet::parse(&options.packet.join(" "))? }],
    };
    for asked in &mut asked {
        complete(&mut asked.packet, options)?;
    }
    Ok(asked)
}

/// What options say of a packet that its words do not.
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

/// What answers a packet; it comes in where that left.
fn reply(asked: &Asked, story: &Story) -> Asked {
    let mut packet = asked.packet.answer();
    if packet.from.is_none() && !story.end.device.is_empty() {
        packet.from = Some(story.end.device.clone());
    }
    let heading = match asked.heading.as_str() {
        "" => "the answer".to_owned(),
        heading => format!("the answer to {heading}"),
    };
    Asked { heading, packet }
}

fn read(policy: &Path, options: &Options) -> anyhow::Result<Reading> {
    let mut files = vec![policy.to_owned()];
    files.extend(options.with.iter().cloned());
    let how = ReadOptions {
        args: options.args.clone(),
        sandbox: options.sandbox.into(),
        dissector: options.dissect.into(),
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

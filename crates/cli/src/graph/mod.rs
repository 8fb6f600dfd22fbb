//! `tidegate graph POLICY`: the trees a policy builds, as text, a picture, or for Graphviz and Mermaid.
//!
//! ```text
//! files ─▶ loader ─▶ machine ─▶ Tree (what is installed on a device) ─▶ Model (boxes) ─▶ text | svg | dot | mermaid
//! try --json ─▶ Used (what each class sent and dropped) ──────────────────┘
//! ```

mod document;
mod lead;
mod markup;
mod model;
mod options;
mod picture;
mod text;
mod tree;
mod used;

pub use options::Options;

use crate::exit::CliExit;
use crate::script_options::{must_have_ended, show_errors};
use anyhow::bail;
use model::{Box, Device, Model};
use options::GraphFormat;
use std::collections::BTreeSet;
use std::process::ExitCode;
use tidegate_inspect::{ClassNames, PolicyInput, PolicyModel, Uses};
use tidegate_loader::{LoadedPolicy, ReadOptions};
use tidegate_policy::{LinkDriver, LinkOp, Op};
use tidegate_shims::Machine;

/// Plays `tidegate graph`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(()) => CliExit::Yes.into(),
        Err(error) => {
            eprintln!("tidegate graph: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

/// The trees of a machine as text.
pub(crate) fn tree(machine: &mut Machine) -> String {
    // The ends of a veth are made together, where neither is there.
    let made = machine.log.iter().filter_map(|op| match op {
        Op::Link(LinkOp::Add { name, kind: LinkDriver::Veth { peer } }) => Some([name.clone(), peer.clone()]),
        _ => None,
    });
    let made: BTreeSet<String> = made.flatten().collect();
    let devices: Vec<_> = machine.gateway.devices().collect();
    let device = |id| (machine.gateway.name(id).to_owned(), machine.gateway.spec(id));
    let reading = PolicyModel::new(PolicyInput {
        sources: Vec::new(),
        steps: Vec::new(),
        ops: machine.log.clone(),
        devices: devices.into_iter().map(device).filter(|(name, _)| !made.contains(name)).collect(),
        down: Vec::new(),
        kernel: machine.gateway.kernel(),
        tc: machine.tc,
        kernel_log: Vec::new(),
        scripts: false,
    });
    let model = Model::of(&mut machine.gateway, machine.now, &Uses::of(&reading), &ClassNames::new());
    text::draw(&model, false, &|_, _| None)
}

fn attempt(options: &Options) -> anyhow::Result<()> {
    let format = options.format()?;
    let used = options.result.as_ref().map(|path| used::read(path, options)).transpose()?;
    let mut taken = load(options)?;
    if let (Some(used), Some(path)) = (&used, &options.result) {
        used.must_be_of(&mut taken, path)?;
    }
    let uses = Uses::of(&taken.reading());
    let mut model = Model::of(&mut taken.machine.gateway, taken.machine.now, &uses, &taken.names);
    if let Some(dev) = &options.dev {
        model.only(dev);
        if model.devices.is_empty() {
            bail!("nothing is configured on {dev}");
        }
    }
    let name = options.files.first().map(|path| path.display().to_string()).unwrap_or_default();
    let text_of = |device: &Device, one: &Box| used.as_ref()?.of(device, one).map(|use_| use_.words());
    let text = match format {
        GraphFormat::Text => text::draw(&model, true, &text_of),
        GraphFormat::Svg => picture::svg(&name, &model, used.as_ref(), options.by),
        GraphFormat::Dot => markup::dot(&name, &model, &text_of),
        GraphFormat::Mermaid => markup::mermaid(&model, &text_of),
        GraphFormat::Json => document::document(&name, &model, &text_of),
    };
    match &options.output {
        Some(path) => crate::output::file(path, text),
        None => {
            match format {
                GraphFormat::Text => crate::output::report(&text),
                _ => crate::output::text(&text),
            }
            Ok(())
        }
    }
}

fn load(options: &Options) -> anyhow::Result<LoadedPolicy> {
    let how = ReadOptions {
        args: options.args.clone(),
        sandbox: (&options.sandbox).into(),
        kernel: options.kernel.into(),
        tc: options.kernel.tc,
        output: tidegate_capture::Output::Collect,
        ..ReadOptions::default()
    };
    let taken = tidegate_loader::read(&options.files, &how)?;
    show_errors(&taken.outcomes);
    for warning in taken.warnings() {
        eprintln!("{warning}");
    }
    must_have_ended(&taken)?;
    if let Some(nothing) = taken.nothing_found() {
        bail!("{nothing}");
    }
    Ok(taken)
}

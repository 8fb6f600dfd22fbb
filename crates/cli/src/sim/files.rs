//! What an experiment is written to.

use super::options::Options;
use crate::outputs::{self, Form, ReportFile};
use anyhow::Context;
use tidegate_analysis::experiment::{flent_files, mahimahi_files};
use tidegate_measure::experiment::Experiment;
use tidegate_report::chart::{Theme, file, png};
use tidegate_report::experiment::{charts, page};

/// Width of a chart in a file of its own, in the units of SVG; a PNG has twice as many points.
const WIDTH: f64 = 760.0;
const PNG_SCALE: f32 = 2.0;

/// Refuses results that would replace what was read for the experiment, before it begins.
pub(super) fn may_write(options: &Options) -> anyhow::Result<()> {
    crate::output::may_write(outputs::paths(&options.output).chain(options.html.as_deref()))?;
    let directories = [&options.svg, &options.png, &options.flent, &options.mahimahi];
    directories.into_iter().flatten().try_for_each(|path| crate::output::may_write_into(path))
}

/// Writes the files that the options name.
pub(super) fn write(options: &Options, experiment: &Experiment, json: &str) -> anyhow::Result<()> {
    for ReportFile { path, form } in &options.output {
        match form {
            Form::Html => crate::output::file(path, page(experiment).as_bytes())?,
            _ => crate::output::file(path, json.as_bytes())?,
        }
    }
    if let Some(path) = &options.html {
        crate::output::file(path, page(experiment).as_bytes())?;
    }
    let drawings =
        if options.svg.is_some() || options.png.is_some() { charts(experiment) } else { Vec::new() };
    if let Some(dir) = &options.svg {
        crate::output::directory(dir)?;
        for (name, drawing) in &drawings {
            crate::output::file(
                &dir.join(format!("{name}.svg")),
                file(drawing, WIDTH, Theme::Light).as_bytes(),
            )?;
        }
    }
    if let Some(dir) = &options.png {
        crate::output::directory(dir)?;
        for (name, drawing) in &drawings {
            let picture = png(drawing, WIDTH, PNG_SCALE, Theme::Light).with_context(|| name.clone())?;
            crate::output::file(&dir.join(format!("{name}.png")), &picture)?;
        }
    }
    if let Some(dir) = &options.flent {
        crate::output::directory(dir)?;
        for (name, bytes) in flent_files(experiment)? {
            crate::output::file(&dir.join(name), &bytes)?;
        }
    }
    if let Some(dir) = &options.mahimahi {
        crate::output::directory(dir)?;
        for (name, text) in mahimahi_files(experiment) {
            crate::output::file(&dir.join(name), text.as_bytes())?;
        }
    }
    Ok(())
}

//! What a measurement is written to; the extension gives the form.

use crate::outputs::{Form, PAGES, ReportFile};
use anyhow::Context;
use std::path::{Path, PathBuf};
use tidegate_analysis::experiment::{flent_files, to_json};
use tidegate_measure::experiment::Experiment;
use tidegate_report::chart::{Theme, file};
use tidegate_report::experiment::{charts, page};

/// The width of a picture.
const WIDTH: f64 = 760.0;

/// The forms of a measurement.
pub(in crate::measuring) const FORMS: &[Form] = &[Form::Json, Form::Html, Form::Flent, Form::Svg];

/// Writes them.
///
/// # Errors
/// One could not be written.
pub(in crate::measuring) fn write(files: &[ReportFile], experiment: &Experiment) -> anyhow::Result<()> {
    for ReportFile { path, form } in files {
        match form {
            Form::Html if PAGES => crate::output::file(path, page(experiment).as_bytes())?,
            Form::Svg if PAGES => pictures(path, experiment)?,
            Form::Flent if PAGES => flent(path, experiment)?,
            _ => crate::output::file(path, to_json(experiment).as_bytes())?,
        }
    }
    Ok(())
}

/// All cases on one sheet; a page has the other charts.
fn pictures(path: &Path, experiment: &Experiment) -> anyhow::Result<()> {
    let all = charts(experiment);
    let sheet = all
        .iter()
        .find(|(name, _)| name == "sheet")
        .context("nothing was answered, so there is nothing to draw")?;
    crate::output::file(path, file(&sheet.1, WIDTH, Theme::Light).as_bytes())
}

/// A file for each run under load (of a test without any, for each run); flent has one test in a file.
fn flent(path: &Path, experiment: &Experiment) -> anyhow::Result<()> {
    let all: Vec<_> = flent_files(experiment)?.into_iter().zip(&experiment.runs).collect();
    let is_meant = |name: &str| experiment.loads.iter().any(|load| load.test.is_some() && load.name == name);
    let any_is_meant = experiment.loads.iter().any(|load| load.test.is_some());
    let chosen = all
        .into_iter()
        .filter(|(_, run)| if any_is_meant { is_meant(&run.load) } else { run.load != "idle" });
    let chosen: Vec<(String, Vec<u8>)> = chosen.map(|(file, _)| file).collect();
    for (n, (name, bytes)) in chosen.iter().enumerate() {
        let stem = name.trim_end_matches(".flent.gz");
        let to = if n == 0 { path.to_owned() } else { beside(path, stem, ".flent.gz") };
        crate::output::file(&to, bytes)?;
    }
    Ok(())
}

/// `all.svg` becomes `all-NAME.svg`.
fn beside(path: &Path, name: &str, ending: &str) -> PathBuf {
    let whole = path.to_string_lossy();
    PathBuf::from(format!("{}-{name}{ending}", whole.trim_end_matches(ending)))
}

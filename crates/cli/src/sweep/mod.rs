//! `tidegate sweep FILE`: a scenario over ranges of parameters, and `tidegate results`, what its rows say.
//!
//! ```text
//! [sweep], --set ─▶ SweepPlan ─▶ sessions::sweep (all processors, journal) ─▶ rows ─▶ CSV | summary
//! ```

mod options;
pub mod results;
mod text;

pub use options::{DesignOptions, Options};

use crate::exit::CliExit;
use crate::outputs::{self, Form, ReportFile};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use tidegate_scenario::model::Scenario;
use tidegate_scenario::shell::{quoted, quoted_input, quoted_path};
use tidegate_sessions::simulated::ScenarioFiles;
use tidegate_sessions::sweep::{PreparedSweep, SweepJob, SweepWatch};
use tidegate_sweep::{SweepQuery, SweepTable, summary_json};

/// Plays `tidegate sweep`.
pub fn command(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tidegate sweep: {error:#}");
            CliExit::of(&error).into()
        }
    }
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let path = &options.file;
    let text = crate::input::scenario(path).with_context(|| path.display().to_string())?;
    let file = options.design.planned(path, &text)?;
    let cases = file.plan.cases()?;
    crate::output::may_write(outputs::paths(&options.output))?;
    let narrow = |scenario: &mut Scenario| file.narrow(scenario);
    let figures = &file.figures;
    let disk = ScenarioFiles { sandbox: (&options.sandbox).into() };
    let job = SweepJob {
        path,
        text: &text,
        cases: &cases,
        narrow: &narrow,
        figures,
        shard: options.shard.unwrap_or((1, 1)),
        workers: options.jobs.map(usize::from),
    };
    let sweep = PreparedSweep::new(job, &disk)?;
    if options.list {
        crate::output::report(&text::cases(&cases));
        return Ok(CliExit::Yes);
    }
    let bar = OnceLock::new();
    let watch = SweepWatch {
        stop: tidegate_sys::interrupt::notice(),
        begin: &|done, total| {
            let columns = "sweeping  1234567/1234567 runs, 10m left".len();
            let words = ("sweeping", "{pos}/{len} runs, {eta} left");
            let bar = bar.get_or_init(|| crate::output::progress_bar(total, words, columns));
            bar.set_position(done);
            // The time left is that of what is done now.
            bar.reset_eta();
        },
        done: &|| bar.get().into_iter().for_each(|bar: &indicatif::ProgressBar| bar.inc(1)),
    };
    let journal = journal(&options.output);
    let table = sweep.carry_out(journal.as_deref(), &watch);
    bar.get().into_iter().for_each(indicatif::ProgressBar::finish_and_clear);
    let table = table.inspect_err(|error| {
        if let Some(error) = error.io() {
            crate::output::note_failure(error);
        }
    })?;
    let of_shard = sweep.runs();
    let done = table.runs.len() as u64;
    if done < of_shard {
        let goes_on = match &journal {
            Some(path) => {
                format!("the same command goes on with the rest (what is done is in {})", quoted_path(path))
            }
            None => "with -o FILE.csv the same command would go on with the rest".to_owned(),
        };
        eprintln!("tidegate sweep: stopped after {done} of {of_shard} runs; {goes_on}");
        return Ok(CliExit::Partial);
    }
    for ReportFile { path, form } in &options.output {
        let content = if *form == Form::Csv { table.csv() } else { summary_of(&table)? };
        crate::output::file(path, content)?;
    }
    // Only once the rows are safe.
    if let Some(path) = journal {
        std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
    }
    if options.json {
        crate::output::text(&summary_of(&table)?);
    } else {
        let wrong = |why: tidegate_sweep::BadRows| anyhow::anyhow!(why);
        let query = SweepQuery { figures: text::usual_figures(&table, figures), ..SweepQuery::default() };
        let summary = table.summary(&query).map_err(wrong)?;
        crate::output::report(&text::summary(&table, &summary, &again(options)));
    }
    Ok(CliExit::Yes)
}

fn summary_of(table: &SweepTable) -> anyhow::Result<String> {
    Ok(summary_json(table, &table.summary(&SweepQuery::default())?))
}

/// Where runs are written down as they end: beside the file of the rows.
fn journal(files: &[ReportFile]) -> Option<PathBuf> {
    let is_file = |path: &Path| !crate::output::is_stdout(path) && (path.is_file() || !path.exists());
    let rows = files.iter().find(|file| file.form == Form::Csv && is_file(&file.path))?;
    let mut name = rows.path.clone().into_os_string();
    name.push(".journal");
    Some(name.into())
}

/// The command that gives the same rows.
fn again(options: &Options) -> String {
    let mut line = format!("tidegate sweep {}", quoted_input(Path::new(&options.file)));
    for (option, value) in options.design.varied() {
        line.push_str(&format!(" {option}"));
        value.iter().for_each(|value| line.push_str(&format!(" {}", quoted(value))));
    }
    options.shard.iter().for_each(|(part, of)| line.push_str(&format!(" --shard {part}/{of}")));
    for ReportFile { path, .. } in &options.output {
        line.push_str(&format!(" -o {}", quoted_path(path)));
    }
    let cases = &options.design.cases;
    line + &cases.choice().words(cases.seed)
}

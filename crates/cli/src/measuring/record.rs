//! `tidegate record`: a line as it is, second by second, as traces for simulations.

use super::far::FarOptions;
use super::overhead::now_ns;
use super::tell;
use crate::exit::CliExit;
use crate::output::{cannot_write, shown};
use crate::outputs::{Form, ReportFile, output_file};
use crate::values::duration;
use anyhow::bail;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tidegate_analysis::record::to_json;
use tidegate_measure::numbers::{format_duration, rate, size};
use tidegate_measure::record::{
    DirectionRecording, LEAST_BUDGET, LONGEST_NS, LineRecording, MOST_BUDGET, RecordingDocument,
    RecordingRequest, record,
};
use tidegate_report::measuring::record::text;
use tidegate_scenario::joined_names;
use tidegate_sessions::KeptPath;
use tidegate_sys::interrupt;
use tidegate_text::shell_word;

/// The shortest recording: two seconds are two rows, and a trace needs these.
const SHORTEST: Duration = Duration::from_secs(2);
/// Where traces are written if no other name is given.
const USUAL: &str = "recorded.csv";

/// Record a line's rate, delay and loss as traces for simulations
///
/// Every quarter of a second a short train of packets shows what the line delivers; small packets in between
/// show delay and loss. The traces are what `try --trace`, `shell --trace`, `gym --traces` and a link's
/// `trace` in a scenario read.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
-o line.csv writes two traces, line-up.csv and line-down.csv; -o line.json every second with its flags. \
Without -o the traces are recorded-up.csv and recorded-down.csv, unless these exist or --json is given.

Exit codes: 0 recorded; 1 nothing arrived, or no rate could be measured; 2 wrong usage or input; 3 partial \
result; 4 not permitted.

Examples:
  tidegate record server.example.org --token token -o line.csv
  tidegate record server.example.org -d 5min --budget 500MB -o line.csv -o line.json
  tidegate try policy.toml --trace line-up.csv,line-down.csv")]
pub struct Options {
    /// The host where `tidegate serve` runs
    pub host: String,
    /// How the server is reached
    #[command(flatten)]
    pub far: FarOptions,
    /// How long to record: 2s to 50min
    #[arg(short, long, value_name = "TIME", default_value = "60s", value_parser = length)]
    pub duration: Duration,
    /// The most data to send, both directions together: 1MB to 2GB
    #[arg(long, value_name = "SIZE", default_value = "100MB", value_parser = budget)]
    pub budget: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the traces (.csv), or the result (.json); may be repeated
    #[arg(short, long, value_name = "FILE", value_parser = output_file(&[Form::Json, Form::Csv]))]
    pub output: Vec<ReportFile>,
}

/// A length that a server allows.
fn length(text: &str) -> Result<Duration, String> {
    let longest = Duration::from_nanos(LONGEST_NS);
    let length = duration(text)?;
    if (SHORTEST..=longest).contains(&length) { Ok(length) } else { Err("2s to 50min".into()) }
}

/// A budget within its bounds.
fn budget(text: &str) -> Result<u64, String> {
    let bytes = crate::values::size(text).map(u64::from)?;
    if (LEAST_BUDGET..=MOST_BUDGET).contains(&bytes) { Ok(bytes) } else { Err("1MB to 2GB".into()) }
}

/// Plays `tidegate record`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("record", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    if options.host.is_empty() {
        bail!("missing HOST: the host where `tidegate serve` runs");
    }
    let files = files(options)?;
    crate::output::may_write(files.iter().map(|(path, _)| path.as_path()))?;
    let document = measure(options)?;
    let result = if options.json { to_json(&document) } else { text(&document) };
    crate::output::report(&result);
    let recorded = &document.recorded;
    if options.output.is_empty() {
        // One may have been made meanwhile.
        files.iter().try_for_each(|(path, _)| refuse_existing(path))?;
    }
    let written = write(&files, &document)?;
    if !options.json && !written.is_empty() {
        report_files(&written);
    }
    let has_rate = |way: &Option<DirectionRecording>| {
        way.as_ref().is_some_and(|way| way.mean_rate().is_some_and(|rate| rate > 0.0))
    };
    Ok(match (&recorded.cut, has_rate(&recorded.up) || has_rate(&recorded.down)) {
        (Some(_), _) => CliExit::Partial,
        (None, true) => CliExit::Yes,
        (None, false) => CliExit::No,
    })
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Document,
    Up,
    Down,
}

/// The files that the options name: of a trace one for each direction.
fn files(options: &Options) -> anyhow::Result<Vec<(PathBuf, Content)>> {
    let mut files = Vec::new();
    for ReportFile { path, form } in &options.output {
        match form {
            Form::Csv => files.extend(pair(path)?),
            _ => files.push((path.clone(), Content::Document)),
        }
    }
    if options.output.is_empty() && !options.json {
        files.extend(pair(Path::new(USUAL))?);
        files.iter().try_for_each(|(path, _)| refuse_existing(path))?;
    }
    Ok(files)
}

/// Names that were not given replace nothing, not even a link that leads nowhere.
fn refuse_existing(path: &Path) -> anyhow::Result<()> {
    if path.symlink_metadata().is_ok() {
        bail!("{} exists already: name another file with -o NAME.csv", shown(path));
    }
    Ok(())
}

/// `line-up.csv` and `line-down.csv` of `line.csv`.
fn pair(path: &Path) -> anyhow::Result<[(PathBuf, Content); 2]> {
    let (Some(stem), Some(extension)) = (path.file_stem(), path.extension()) else {
        bail!("{}: it is only an extension; name a file", cannot_write(path));
    };
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        bail!("{}: it is a directory; name a file in it", cannot_write(path));
    }
    Ok([("-up.", Content::Up), ("-down.", Content::Down)].map(|(way, content)| {
        let mut name: OsString = stem.to_owned();
        name.push(way);
        name.push(extension);
        (path.with_file_name(name), content)
    }))
}

/// Writes what there is; returns the traces. A direction without a rate makes no trace.
fn write(files: &[(PathBuf, Content)], document: &RecordingDocument) -> anyhow::Result<Vec<PathBuf>> {
    let LineRecording { up, down, .. } = &document.recorded;
    let mut traces = Vec::new();
    for (path, content) in files {
        let way = match content {
            Content::Document => {
                crate::output::file(path, to_json(document))?;
                continue;
            }
            Content::Up => up,
            Content::Down => down,
        };
        let way = way
            .as_ref()
            .filter(|way| way.seconds.len() > 1 && way.mean_rate().is_some_and(|rate| rate > 0.0));
        let Some(way) = way else {
            crate::output::note(format_args!(
                "tidegate record: {} is not written: no rate was measured that way for two seconds\n",
                shown(path)
            ));
            continue;
        };
        crate::output::file(path, way.to_csv())?;
        traces.push(path.clone());
    }
    Ok(traces)
}

/// Says which traces there are, and what reads them.
fn report_files(traces: &[PathBuf]) {
    let names: Vec<String> = traces.iter().map(|path| shown(path)).collect();
    let mut lines = format!("Traces: {}\n", names.join(", "));
    // Names are text there.
    let texts: Vec<&str> = traces.iter().filter_map(|path| path.to_str()).collect();
    if texts.len() == 2 {
        let both = shell_word(&joined_names(texts, ','));
        lines += &format!("Try on it: tidegate try POLICY --trace {both}\n");
    }
    crate::output::report(&lines);
}

fn measure(options: &Options) -> anyhow::Result<RecordingDocument> {
    let began_ns = now_ns();
    let mut far = KeptPath::connect(&options.far.target(&options.host)?, interrupt::notice_end)?;
    let length_ns = u64::try_from(options.duration.as_nanos()).unwrap_or(LONGEST_NS);
    let limits = *far.limits();
    let request = RecordingRequest {
        length_ns,
        budget: options.budget,
        most_bits_per_second: limits.bits_per_second,
        most_packets: limits.packets,
        most_ns: limits.longest_ns,
        headers: far.header_bytes(),
    };
    if !crate::output::is_quiet() {
        crate::output::note(format_args!(
            "Recording for {}, with at most {} in both directions together (--budget); Ctrl-C ends it early.\n",
            format_duration(length_ns),
            size(options.budget)
        ));
    }
    let is_quiet = options.json;
    tell(is_quiet, "looking for the rates");
    let mut recorded = record(&mut far, &request, &mut |progress| {
        let [up, down] = progress.rates.map(|found| found.map_or_else(|| "–".into(), rate));
        let (done, sent) = (format_duration(progress.done_ns), size(progress.bytes));
        tell(is_quiet, &format!("recorded {done}: up {up}, down {down}; sent {sent}"));
    })?;
    tell(is_quiet, "");
    // It may have broken off before the recording began.
    recorded.cut = recorded.cut.or_else(|| far.cut());
    Ok(RecordingDocument {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: super::again(),
        began_ns,
        host: options.host.clone(),
        length_ns,
        budget: options.budget,
        recorded,
        caveats: far.caveats(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_two_files() {
        let names = pair(Path::new("dir.d/my line.csv")).map(|two| two.map(|(path, _)| shown(&path)));
        assert_eq!(names.ok(), Some(["dir.d/my line-up.csv", "dir.d/my line-down.csv"].map(String::from)));
        let refused =
            [".csv", "a/.csv", "new.csv/"].map(|name| pair(Path::new(name)).err().map(|why| why.to_string()));
        let expected = [
            "cannot write .csv: it is only an extension; name a file",
            "cannot write a/.csv: it is only an extension; name a file",
            "cannot write new.csv/: it is a directory; name a file in it",
        ];
        assert_eq!(refused, expected.map(|why| Some(why.to_owned())));
        assert_eq!((budget("100MB"), budget("2GB")), (Ok(100_000_000), Ok(2_000_000_000)));
        assert!(budget("10kB").is_err() && budget("3GB").is_err() && budget("x").is_err());
        assert_eq!((length("2s"), length("50min")), (Ok(SHORTEST), Ok(Duration::from_secs(3000))));
        assert!(length("1s").is_err() && length("51min").is_err());
    }
}

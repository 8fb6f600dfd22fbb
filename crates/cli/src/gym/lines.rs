//! The lines that `--traces` names: presets, recordings, pairs of them, what is made of them, directories.

use super::options::Options;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use tidegate_control::PerDirection;
use tidegate_gym::GymLine;
use tidegate_packet::Nanos;
use tidegate_scenario::presets::{LINE_PRESETS, LinePreset};
use tidegate_scenario::{TraceSpec, recording};
use tidegate_sim::Trace;

/// Files of a directory that are taken for recordings at most.
const MAX_FILES: usize = 1000;
/// The most files that are named as passed over.
const MAX_NOTES: usize = 10;
/// Lines of one preset begin so far apart in their recordings, in seconds, within so many.
const APART: (u64, u64) = (37, 270);

/// A line, and what it is.
type AboutLine = (GymLine, String);

/// The lines to play.
///
/// # Errors
/// A name that is given twice or is none of what there is; a recording that cannot be read, or has no rates.
pub(super) fn lines(options: &Options) -> anyhow::Result<Vec<AboutLine>> {
    let most = Some(options.mean.as_bits()).filter(|mean| *mean > 0);
    let names = crate::words::names(&options.traces);
    let mut lines: Vec<AboutLine> = Vec::new();
    // Of a directory, and what stands in it besides recordings is passed over.
    let mut files: Vec<(PathBuf, bool)> = Vec::new();
    let mut composed = Vec::new();
    if names.is_empty() {
        for preset in &LINE_PRESETS {
            lines.extend(of_preset(options, preset, most)?);
        }
    }
    for (at, what) in names.iter().enumerate() {
        if names[..at].contains(what) {
            bail!("--traces: {what} is given twice");
        }
        let path = Path::new(what);
        if let Some(preset) = LinePreset::named(what) {
            lines.extend(of_preset(options, preset, most)?);
        } else if path.is_dir() {
            files.extend(of_directory(path)?.into_iter().map(|file| (file, true)));
        } else if path.exists() {
            files.push((path.to_owned(), false));
        } else {
            let line = GymLine::of_trace(what, &made(what)?, most).map_err(anyhow::Error::msg)?;
            composed.push((line, format!("{what}, a quarter of it up")));
        }
    }
    lines.extend(composed);
    for recorded in paired(read(files)?) {
        let line = recorded.line(most)?;
        if lines.iter().any(|(other, _)| other.name == line.name) {
            bail!("{}: two lines are called {}; rename one", recorded.down.0.display(), line.name);
        }
        lines.push((line, recorded.about()));
    }
    if lines.is_empty() {
        bail!("there is no recording in {}", names.join(", "));
    }
    Ok(lines)
}

/// The lines of a preset: of `--seed`, the next seed, and so on.
fn of_preset(options: &Options, preset: &LinePreset, most: Option<u64>) -> anyhow::Result<Vec<AboutLine>> {
    let line = |n: u64| {
        let seed = options.seed.wrapping_add(n);
        let mut line = GymLine::preset(preset, seed, most).map_err(anyhow::Error::msg)?;
        line.skip = Nanos::secs(seed.wrapping_mul(APART.0) % APART.1);
        // What is said of its rates is of the preset's own.
        let about = match line.slowed {
            slowed if slowed < 1.0 => {
                format!("{} (slowed down {:.1} times here)", preset.about, 1.0 / slowed)
            }
            _ => preset.about.to_owned(),
        };
        Ok((line, about))
    };
    (0..u64::from(options.lines)).map(line).collect()
}

/// What is made of recordings and presets.
fn made(what: &str) -> anyhow::Result<Trace> {
    let spec = TraceSpec::parse(what, &|name| Path::new(name).exists()).map_err(anyhow::Error::msg)?;
    if spec.is_plain() {
        bail!("{what}: there is no such file, and no such preset; presets are {}", LinePreset::names());
    }
    let text =
        |name: &str| crate::input::scenario(Path::new(name)).map_err(|error| format!("{name}: {error}"));
    spec.read(&text).map_err(anyhow::Error::msg)
}

/// Reads recordings; of a directory what is none is named and passed over.
fn read(files: Vec<(PathBuf, bool)>) -> anyhow::Result<Vec<(PathBuf, Trace)>> {
    let mut passed_over = 0;
    let mut found = Vec::new();
    for (path, of_directory) in files {
        let read = crate::input::scenario(&path).with_context(|| path.display().to_string());
        let trace = read.map_err(|error| (error, true)).and_then(|text| {
            recording(&text).map_err(|bad| {
                let why = format!("{}: line {}: {}: {}", path.display(), bad.line, bad.why, bad.remedy);
                (anyhow::Error::msg(why), bad.line <= first_line(&text))
            })
        });
        match trace {
            Ok(trace) => found.push((path, trace)),
            Err((why, true)) if of_directory => {
                passed_over += 1;
                if passed_over <= MAX_NOTES {
                    crate::output::note(format_args!("tidegate gym: passed over as no recording: {why:#}\n"));
                }
            }
            Err((why, _)) => return Err(why),
        }
    }
    Ok(found)
}

/// The first line with content: a file that is wrong before or there is of no known format.
fn first_line(text: &str) -> usize {
    let is_content = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
    text.lines().position(is_content).unwrap_or(0) + 1
}

/// The files of a directory, by name.
fn of_directory(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| path.display().to_string())?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && entry.path().is_file() {
            files.push(entry.path());
        }
        if files.len() > MAX_FILES {
            bail!("{}: more than {MAX_FILES} files; name some of them", path.display());
        }
    }
    files.sort();
    Ok(files)
}

/// A line as it was recorded: its download and, if it was recorded too, its upload.
struct RecordedLine {
    name: String,
    down: (PathBuf, Trace),
    up: Option<(PathBuf, Trace)>,
}

impl RecordedLine {
    fn line(&self, most: Option<u64>) -> anyhow::Result<GymLine> {
        let (path, down) = &self.down;
        let line = match &self.up {
            Some((_, up)) => {
                GymLine::of_pair(&self.name, PerDirection { up: up.clone(), down: down.clone() }, most)
            }
            None => GymLine::of_trace(&self.name, down, most),
        };
        line.map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))
    }

    fn about(&self) -> String {
        let down = self.down.0.display();
        match &self.up {
            Some((up, _)) => format!("{} up, {down} down", up.display()),
            None => format!("{down}, a quarter of it up"),
        }
    }
}

/// The lines of recordings, in their order: `NAME-up.csv` and `NAME-down.csv`, as `tidegate record` writes
/// them, are one.
fn paired(mut recordings: Vec<(PathBuf, Trace)>) -> Vec<RecordedLine> {
    let mut lines = Vec::new();
    while !recordings.is_empty() {
        let (path, trace) = recordings.remove(0);
        let place = |wanted: Option<PathBuf>| {
            let wanted = wanted?;
            recordings.iter().position(|(path, _)| *path == wanted)
        };
        let found = place(other(&path, "-up", "-down")).map(|at| (at, true));
        let found = found.or_else(|| place(other(&path, "-down", "-up")).map(|at| (at, false)));
        let (down, up) = match found {
            Some((at, true)) => (recordings.remove(at), Some((path, trace))),
            Some((at, false)) => ((path, trace), Some(recordings.remove(at))),
            None => ((path, trace), None),
        };
        let stem = down.0.file_stem().unwrap_or_default().to_string_lossy();
        let name = stem.strip_suffix("-down").filter(|_| up.is_some()).unwrap_or(&stem);
        lines.push(RecordedLine { name: name.to_owned(), down, up });
    }
    lines
}

/// The file of the other direction: `line-down.csv` of `line-up.csv`.
fn other(path: &Path, own: &str, other: &str) -> Option<PathBuf> {
    let stem = path.file_stem()?.to_str()?.strip_suffix(own).filter(|stem| !stem.is_empty())?;
    let extension = path.extension().map_or_else(String::new, |end| format!(".{}", end.to_string_lossy()));
    Some(path.with_file_name(format!("{stem}{other}{extension}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_of_both_directions_are_one_line() {
        let trace = |rate: u64| Trace::rates([(Nanos::secs(1), rate)]).expect("a rate");
        let names =
            ["a.csv", "b-down.csv", "b-up.csv", "c-up.csv", "d-up.csv", "x/b-up.csv", "-up.csv", "-down.csv"];
        let files = names.iter().zip(1..).map(|(name, rate)| (PathBuf::from(name), trace(rate))).collect();
        let lines: Vec<(String, String)> =
            paired(files).iter().map(|line| (line.name.clone(), line.about())).collect();
        let single = |name: &str| (name.to_owned(), format!("{name}.csv, a quarter of it up"));
        let mut expected = ["a", "b", "c-up", "d-up", "b-up", "-up", "-down"].map(single);
        expected[1].1 = "b-up.csv up, b-down.csv down".into();
        expected[4].1 = "x/b-up.csv, a quarter of it up".into();
        assert_eq!(lines, expected);
    }
}

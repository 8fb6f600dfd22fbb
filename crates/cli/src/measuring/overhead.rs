//! `tidegate overhead`: what a line adds to each packet, and the words for it.

use super::far::FarOptions;
use super::tell;
use crate::exit::CliExit;
use crate::outputs::{Form, PAGES, ReportFile, output_file};
use anyhow::bail;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_analysis::overhead::to_json;
use tidegate_measure::capacity::{HEADERS, PathDirection};
use tidegate_measure::overhead::{OverheadDocument, Size, Sweep, Swept, sweep};
use tidegate_report::measuring::overhead::{page, text};
use tidegate_sessions::KeptPath;
use tidegate_sys::interrupt;

/// Measure per-packet link overhead, and print the tc options for it
///
/// Floods the line with packets of many sizes: how many bytes it adds to each, whether it cuts them into ATM
/// cells, and how many packets per second it takes.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The line is flooded for half a minute to a minute (nearly two at 100 kbit/s). --from reads a sweep measured \
by another program: one line for each size, with the bytes of the IP packet and the packets per second that \
arrived.

Exit codes: 0 the overhead is known; 1 it could not be determined; 2 wrong usage or input; 3 partial result; \
4 not permitted.

Examples:
  tidegate overhead server.example.org --token token
  tidegate overhead --from sweep.txt -o overhead.html")]
pub struct Options {
    /// The host where `tidegate serve` runs
    #[arg(required_unless_present = "from")]
    pub host: Option<String>,
    /// How the server is reached
    #[command(flatten)]
    pub far: FarOptions,
    /// Only the upload
    #[arg(long, conflicts_with = "down")]
    pub up: bool,
    /// Only the download
    #[arg(long)]
    pub down: bool,
    /// Read a sweep instead of measuring: lines of SIZE and PACKETS PER SECOND
    #[arg(long, value_name = "FILE", conflicts_with = "host")]
    pub from: Option<PathBuf>,
    /// The sizes in that file are UDP payloads over IPv4 (iperf -l), not IP packets
    #[arg(long, requires = "from")]
    pub payload: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the result: .html or .json
    #[arg(short, long, value_name = "FILE", value_parser = output_file(&[Form::Html, Form::Json]))]
    pub output: Option<ReportFile>,
}

/// Plays `tidegate overhead`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("overhead", attempt(options))
}

fn attempt(options: &Options) -> anyhow::Result<CliExit> {
    let document = match (&options.from, &options.host) {
        (Some(file), _) => read(file, options.payload)?,
        (None, Some(host)) => {
            crate::output::may_write(options.output.iter().map(|file| file.path.as_path()))?;
            measure(options, host)?
        }
        (None, None) => bail!("missing HOST, or a sweep (--from FILE)"),
    };
    let shown = if options.json { to_json(&document) } else { text(&document) };
    crate::output::report(&shown);
    if let Some(ReportFile { path, form }) = &options.output {
        let written = if PAGES && *form == Form::Html { page(&document) } else { to_json(&document) };
        crate::output::file(path, written)?;
    }
    let is_known = PathDirection::BOTH
        .iter()
        .any(|way| document.swept.of(*way).is_some_and(|sweep| sweep.line.is_some()));
    Ok(match (&document.swept.cut, is_known) {
        (Some(_), _) => CliExit::Partial,
        (None, true) => CliExit::Yes,
        (None, false) => CliExit::No,
    })
}

/// The directions that the options choose.
pub(super) fn ways(up: bool, down: bool) -> &'static [PathDirection] {
    match (up, down) {
        (true, false) => &[PathDirection::Up],
        (false, true) => &[PathDirection::Down],
        _ => &PathDirection::BOTH,
    }
}

fn measure(options: &Options, host: &str) -> anyhow::Result<OverheadDocument> {
    let began_ns = now_ns();
    let mut far = KeptPath::connect(&options.far.target(host)?, interrupt::notice)?;
    let swept = sweep(&mut far, ways(options.up, options.down), &mut |share| {
        let words =
            if share > 0.0 { format!("swept {:.0} %", share * 100.0) } else { "looking for the rate".into() };
        tell(options.json, &words);
    })?;
    tell(options.json, "");
    let mut swept = if far.is_ipv6() { swept.over_ipv6() } else { swept };
    // It may have broken off before the sweep began.
    swept.cut = swept.cut.or_else(|| far.cut());
    Ok(OverheadDocument { began_ns, swept, caveats: far.caveats(), ..document(host) })
}

fn document(host: &str) -> OverheadDocument {
    OverheadDocument {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        again: super::again(),
        host: host.to_owned(),
        ..OverheadDocument::default()
    }
}

/// Now, ns since 1970.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A sweep that someone else measured: of one direction, called up.
fn read(file: &Path, is_payload: bool) -> anyhow::Result<OverheadDocument> {
    let text = crate::input::result_text(file)?;
    let more = if is_payload { HEADERS } else { 0 };
    let mut sizes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line
            .split('#')
            .next()
            .unwrap_or_default()
            .split([' ', '\t', ',', ';'])
            .filter(|word| !word.is_empty())
            .collect();
        let size = match words[..] {
            [] => continue,
            [size, rate] => size.parse::<u32>().ok().zip(rate.parse::<f64>().ok()),
            _ => None,
        };
        match size {
            Some((size, rate)) if rate > 0.0 && rate.is_finite() && size <= 65_535 => {
                sizes.push(Size::of_rate(size + more, rate));
            }
            _ => bail!(
                "{}:{}: `{line}`: a size in bytes and packets per second, such as `100 4489.2`",
                file.display(),
                number + 1
            ),
        }
    }
    let swept = Swept { up: Some(Sweep::of_sizes(sizes)), ..Swept::default() };
    Ok(OverheadDocument { began_ns: now_ns(), swept, ..document(&file.display().to_string()) })
}

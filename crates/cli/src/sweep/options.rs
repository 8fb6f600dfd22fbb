//! The command line of `tidegate sweep`.

use crate::outputs::{Form, ReportFile, output_file};
use crate::script_options::ScriptOptions;
use crate::sim::CaseOptions;
use clap::Parser;
use std::path::{Path, PathBuf};
use tidegate_sweep::{BadSweep, Method, SweepChoice, SweepFile};

/// What a sweep varies, and which cases are run.
#[derive(Clone, Debug, clap::Args)]
pub struct DesignOptions {
    /// Vary a parameter; may be repeated
    #[arg(long, value_name = "PATH=VALUES")]
    pub set: Vec<String>,
    /// Take the first values of all parameters together, then the second, and so on, instead of a grid
    #[arg(long, conflicts_with = "latin")]
    pub paired: bool,
    /// Draw N samples that cover each parameter evenly (a Latin hypercube, by --seed), instead of a grid
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub latin: Option<u32>,
    /// Leave out cases for which this does not hold: "rtt > 20ms and tcp = bbr"; may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub only: Vec<String>,
    /// Leave out cases for which this holds; may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub skip: Vec<String>,
    /// Which cases are run
    #[command(flatten)]
    pub cases: CaseOptions,
    /// Only these figures, such as ping.p95 or upload.rate; all without it
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub figure: Vec<String>,
}

impl DesignOptions {
    /// What the file plans, with these over it.
    ///
    /// # Errors
    /// What is wrong with its table, or with an option.
    pub(crate) fn planned(&self, path: &Path, text: &str) -> anyhow::Result<SweepFile> {
        let choice = SweepChoice {
            set: self.set.clone(),
            method: match self.latin {
                Some(samples) => Some(Method::Latin(samples)),
                None => self.paired.then_some(Method::Paired),
            },
            only: self.only.clone(),
            skip: self.skip.clone(),
            figures: self.figure.clone(),
            cases: self.cases.choice(),
        };
        SweepFile::planned(text, choice).map_err(|wrong| match wrong {
            BadSweep::File(wrong) => anyhow::anyhow!(wrong.shown(path, text)),
            BadSweep::Setting { setting, why } => anyhow::Error::new(why).context(format!("--set {setting}")),
        })
    }

    /// The options that vary something, with their values.
    pub(crate) fn varied(&self) -> Vec<(&'static str, Option<String>)> {
        let all = |flag, values: &[String]| -> Vec<(&'static str, Option<String>)> {
            values.iter().map(|value| (flag, Some(value.clone()))).collect()
        };
        let mut varied = all("--set", &self.set);
        varied.extend(self.latin.map(|samples| ("--latin", Some(samples.to_string()))));
        varied.extend(all("--only", &self.only));
        varied.extend(all("--skip", &self.skip));
        varied.extend(all("--figure", &self.figure));
        varied.extend(self.paired.then_some(("--paired", None)));
        varied
    }
}

/// Simulate a scenario over ranges of parameters, on all processors
///
/// Each case of the design is run under each policy and load, as often as there are repeats; the same repeat
/// of all cases has the same seed. A sweep that is stopped goes on where it was with the same command.
#[derive(Clone, Debug, Parser)]
#[command(after_help = "\
Values: a list (1ms,5ms,20ms), a range with the number of its values (1..100mbit:log8, 0..5%:lin6), or both. \
Paths: keys of the scenario with points between them (home.rtt, loads.up.traffic.0.count), or the name of a \
value of its table [values]. The table [sweep] holds the same (docs/sweep.md).

Exit codes: 0 done; 2 wrong usage or input; 3 partial result (interrupted: the same command goes on).

Examples:
  tidegate sweep modem.toml --set home.rtt=10..160ms:log5 --repeats 5 -o rtt.csv
  tidegate sweep modem.toml --set target=1..50ms:log6 --figure ping.p95,upload.rate
  tidegate sweep grid.toml --shard 1/16 -o part1.csv")]
pub struct Options {
    /// The scenario (TOML; docs/scenario.md), or the name of one of RFC 7928's (docs/rfc7928.md)
    pub file: PathBuf,
    /// What is varied, and which cases are run
    #[command(flatten)]
    pub design: DesignOptions,
    /// Run only this part of the runs: 1/4 is the first of four, each for a computer of its own
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<(u64, u64)>,
    /// How many runs at once; default: one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// Write the rows, one for each run and figure (.csv), or the summary (.json); may be repeated
    #[arg(short, long, value_name = "RESULT", value_parser = output_file(&[Form::Csv, Form::Json]))]
    pub output: Vec<ReportFile>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the cases and run nothing
    #[arg(long)]
    pub list: bool,
}

/// `1/4`.
fn shard(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
    numbers
        .filter(|(part, of): &(u64, u64)| (1..=*of).contains(part) && *of <= 1_000_000)
        .ok_or_else(|| "write I/N, the part and how many there are: 1/4".to_owned())
}

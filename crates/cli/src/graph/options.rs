//! What `tidegate graph` is told.

use crate::dissect::Dissect;
use crate::script_options::ScriptOptions;
use std::path::PathBuf;

/// What `tidegate graph` is told.
#[derive(clap::Args)]
#[command(after_help = "\
With --result, what a trial measured stands in each box, and the picture is coloured by it: the share of \
its ceiling that a class
used, or the packets it dropped.

Examples:
  tidegate graph examples/home-gateway.sh
  tidegate graph examples/download.sh -o download.svg
  tidegate try examples/home-gateway.sh --up 1600kbit --down 20mbit --json > try.json
  tidegate graph examples/home-gateway.sh --result try.json --load up -o used.svg")]
pub struct Options {
    /// The files that hold the policy.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Arguments for a script.
    #[arg(last = true)]
    pub args: Vec<String>,
    /// The form. Default: by the name of -o, else text.
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<Format>,
    /// Where to write it. Default: standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only this device, and what it leads packets to.
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// What `tidegate try --json` printed of the same policy.
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
    /// The load of the trial to show. Default: its last.
    #[arg(long, value_name = "LOAD", requires = "result")]
    pub load: Option<String>,
    /// What colours the picture.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::Load)]
    pub by: By,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// How far the machine looks into packets.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) dissect: Dissect,
}

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A tree of lines.
    Text,
    /// A picture.
    Svg,
    /// For Graphviz.
    Dot,
    /// For Mermaid, as code hosts draw it.
    Mermaid,
}

/// What colours a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The share of its ceiling that a class sent.
    Load,
    /// The packets that it dropped.
    Drops,
}

impl Options {
    /// The form asked for, or that of the file's name.
    pub(super) fn format(&self) -> Format {
        let by_name = || {
            let extension = self.output.as_ref()?.extension()?.to_str()?;
            Some(match extension {
                "svg" => Format::Svg,
                "dot" | "gv" => Format::Dot,
                "mmd" | "mermaid" => Format::Mermaid,
                _ => return None,
            })
        };
        self.format.or_else(by_name).unwrap_or(Format::Text)
    }
}

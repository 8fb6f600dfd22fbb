//! The command line of `tidegate graph`.

use crate::kernel_options::KernelOptions;
use crate::outputs::{self, Form};
use crate::script_options::ScriptOptions;
use anyhow::bail;
use std::path::PathBuf;

/// Draw a policy's qdiscs, classes and filters as a tree
///
/// As text, a picture, or for Graphviz and Mermaid; with --result, coloured by what a simulation measured.
#[derive(clap::Args)]
#[command(after_help = "\
With --result, each box shows what `tidegate try` measured, and the picture is coloured by the share of its \
ceiling that a class used, or by the packets it dropped.

Exit codes: 0 done; 2 wrong usage or input.

Examples:
  tidegate graph examples/home-gateway.sh
  tidegate graph gateway.sh -o gateway.svg -- start eth0
  tidegate try examples/home-gateway.sh --up 1600kbit --down 20mbit --json > try.json
  tidegate graph examples/home-gateway.sh --result try.json --load up -o used.svg")]
pub struct Options {
    /// The files that hold the policy
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Arguments for a script
    #[arg(last = true)]
    pub args: Vec<String>,
    /// The form; default: by the extension of -o, else text
    #[arg(long, alias = "print", value_enum, value_name = "FORM")]
    pub format: Option<GraphFormat>,
    /// Write the graph: .svg, .dot, .gv, .mmd, .mermaid, .txt or .json; default: standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only this device, and those that it redirects packets to
    #[arg(long, value_parser = crate::values::device, value_name = "DEV")]
    pub dev: Option<String>,
    /// The result of `tidegate try --json` for the same policy
    #[arg(long, value_name = "RESULT")]
    pub result: Option<PathBuf>,
    /// The load of that result to show; default: its last
    #[arg(long, value_name = "LOAD", requires = "result")]
    pub load: Option<String>,
    /// What colours the picture
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::Load)]
    pub by: By,
    /// Print JSON, the same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// The kernel that the policy is for
    #[command(flatten)]
    pub kernel: KernelOptions,
}

/// A form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GraphFormat {
    /// A tree of lines
    Text,
    /// A picture
    Svg,
    /// For Graphviz
    Dot,
    /// For Mermaid, as code hosts draw it
    Mermaid,
    /// For programs
    Json,
}

/// What colours a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The share of its ceiling that each class used
    Load,
    /// The packets that it dropped
    Drops,
}

impl Options {
    /// The form that an option, or the extension of the file, chooses.
    ///
    /// # Errors
    /// The extension is unknown, and no option names the form.
    pub(super) fn format(&self) -> anyhow::Result<GraphFormat> {
        if let Some(format) = self.json.then_some(GraphFormat::Json).or(self.format) {
            return Ok(format);
        }
        let Some(path) = &self.output else { return Ok(GraphFormat::Text) };
        let forms = [Form::Text, Form::Svg, Form::Dot, Form::Mermaid, Form::Json];
        Ok(match Form::of(path, &forms) {
            Some(Form::Svg) => GraphFormat::Svg,
            Some(Form::Dot) => GraphFormat::Dot,
            Some(Form::Mermaid) => GraphFormat::Mermaid,
            Some(Form::Json) => GraphFormat::Json,
            Some(_) => GraphFormat::Text,
            None => bail!("-o {}: {}, or --format names the form", path.display(), outputs::unknown(&forms)),
        })
    }
}

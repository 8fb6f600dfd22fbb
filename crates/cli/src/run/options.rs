//! What `tidegate run` is told.

use crate::dissect::Dissect;
use crate::script_options::ScriptOptions;
use std::path::PathBuf;

/// What `tidegate run` is told.
#[derive(clap::Args)]
#[command(after_help = "\
The script runs unmodified, in namespaces of its own, and changes nothing outside. tc, ip, iptables,
ifconfig, ethtool, modprobe, sysctl and sudo are answered by a model of the machine. What the script
writes to files is gone afterwards.

Exit code: the script's own, of several runs the first that is not 0. 124: its time was up; 125: no
sandbox can be made, or it started too many processes; 126: the file is no script; 127: there is no
such file; 128 + N: signal N ended it; 2: wrong usage.

Examples:
  tidegate run examples/home-gateway.sh --print tree
  tidegate run examples/home-gateway.sh start --then show --then stop
  tidegate run examples/three-bands.sh --print batch > bands.batch")]
pub struct Options {
    /// The script.
    pub script: PathBuf,
    /// Arguments for the script; those that begin with - stand behind --.
    pub args: Vec<String>,
    /// Run it once more, on the same machine, with these arguments (several in quotes: --then 'start eth1').
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub then: Vec<String>,
    /// What to print of the machine when all is done; what the script says goes to standard error then.
    #[arg(long, value_name = "FORM", value_enum)]
    pub print: Option<Print>,
    /// A device that is there beside those the script names. May be repeated.
    #[arg(long, value_name = "NAME", value_parser = crate::values::device)]
    pub dev: Vec<String>,
    /// How far the machine's kernel looks into packets for the keys of their flows.
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub(crate) dissect: Dissect,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Print {
    /// The commands that were carried out, one a line: loops, functions, batches and -restore files taken
    /// apart.
    Tc,
    /// A file for `tc -batch`; commands of other tools stand in it as comments.
    Batch,
    /// The machine as JSON, with every call, its line and its answer.
    Json,
    /// Each device's qdiscs and classes as a tree, with the filters that lead there.
    Tree,
}

impl Options {
    /// The arguments of each run.
    pub(super) fn turns(&self) -> Vec<Vec<String>> {
        let mut turns = vec![self.args.clone()];
        turns.extend(self.then.iter().map(|args| split(args)));
        turns
    }
}

/// Splits at blanks; quotes of either kind hold a word together.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in text.chars() {
        match (quote, letter) {
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == letter => quote = None,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_a_shell_would() {
        assert_eq!(split("start eth1"), ["start", "eth1"]);
        assert_eq!(split("  'a b'  c\"d e\"f '' "), ["a b", "cd ef", ""]);
        assert_eq!(split(""), [""; 0]);
    }
}

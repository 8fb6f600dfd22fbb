//! The command line of `tidegate`: its commands in groups, how words become one of them, and what each
//! starts.

#[cfg(feature = "experiments")]
use crate::experiments::Experiment;
#[cfg(feature = "pages")]
use crate::graph;
#[cfg(feature = "workstation")]
use crate::import;
use crate::left_out::{self, Groups, left_out};
#[cfg(feature = "manual")]
use crate::manual;
use crate::wrapping::wrapped;
use crate::{autorate, check, daemon, explain, live, measuring, output, policy, run, trial, watch};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// Try a traffic-control policy before you trust your link to it
#[derive(Parser)]
#[command(name = "tidegate", version, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// When to use colours; the environment variable NO_COLOR turns `auto` off
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    color: ColorChoice,
    /// Show no progress; results, warnings and errors are still printed
    #[arg(short, long, global = true, help_heading = "Output")]
    quiet: bool,
    /// `-o -`: standard output is for the file.
    #[arg(skip)]
    stdout_is_file: bool,
    #[command(subcommand)]
    command: Command,
}

/// The groups of `tidegate --help`, the commands used most first; a smaller build lacks some.
const GROUPS: &Groups = &[
    (
        "Diagnose",
        &["quick", "ping", "measure", "loss", "overhead", "calibrate", "record", "doctor", "verify", "serve"],
    ),
    ("Write and check", &["policy", "check", "explain", "graph", "test", "import"]),
    (
        "Simulate",
        &[
            "try", "sim", "sweep", "results", "tune", "gym", "bundle", "lab", "shell", "replay", "compare",
            "run",
        ],
    ),
    (
        "Operate",
        &[
            "apply", "status", "confirm", "revert", "down", "autorate", "daemon", "top", "metrics", "tc",
            "capture",
        ],
    ),
    ("Other", &["completions", "man", "help"]),
];

#[derive(Subcommand)]
enum Command {
    /// Test a line for bufferbloat in 30 seconds, and suggest a policy
    Quick(Box<measuring::quick::Options>),
    /// Ping hosts on a fixed schedule, with charts of delay and loss
    #[cfg(feature = "workstation")]
    Ping(Box<measuring::ping::Options>),
    /// Measure delay, loss and throughput to a tidegate server
    Measure(Box<measuring::measure::Options>),
    /// Measure packet loss in each direction separately
    #[cfg(feature = "workstation")]
    Loss(Box<measuring::loss::Options>),
    /// Measure per-packet link overhead, and print the tc options for it
    #[cfg(feature = "workstation")]
    Overhead(Box<measuring::overhead::Options>),
    /// Find the highest rate each way at which delay does not rise
    #[cfg(feature = "workstation")]
    Calibrate(Box<measuring::calibrate::Options>),
    /// Find out why this computer does not shape as configured
    Doctor(measuring::doctor::Options),
    /// Measure with and without a policy, in turns, and compare
    Verify(Box<measuring::verify::Options>),
    /// Run the server that other computers measure against
    Serve(measuring::serve::Options),
    /// Write, show and convert short policies: ten lines instead of tc
    Policy(policy::Options),
    /// Find mistakes in a policy: where, what happens, how to fix it
    Check(check::Options),
    /// Show which rules, class and queue a packet meets, and why
    Explain(Box<explain::Options>),
    /// Draw a policy's qdiscs, classes and filters as a tree
    #[cfg(feature = "pages")]
    Graph(graph::Options),
    /// Convert any supported policy format to tc commands
    #[cfg(feature = "workstation")]
    Import(import::Options),
    /// Simulate one policy on a home link, and report what it changes
    Try(Box<trial::Options>),
    #[cfg(feature = "experiments")]
    #[command(flatten)]
    Experiment(Experiment),
    /// Run a script in a sandbox, and print what it configures
    Run(run::Options),
    /// Apply a policy to this computer's devices, all or nothing
    Apply(Box<live::Apply>),
    /// Show the policies that tidegate applied, and whether they work
    #[command(after_help = live::STATUS_HELP)]
    Status(live::DeviceOptions),
    /// Keep a policy that waits for confirmation
    #[command(after_help = "\
Exit codes: 0 confirmed; 1 nothing waits for confirmation; 2 wrong usage or input; 4 not permitted.

Examples:
  tidegate confirm
  tidegate confirm eth0")]
    Confirm(live::DeviceOptions),
    /// Undo the last apply on a device
    ///
    /// The policy before it is applied again, or the configuration before the first. `tidegate down` removes
    /// all policies at once.
    #[command(after_help = "\
Exit codes: 0 done; 1 nothing was applied there, or it could not be undone; 2 wrong usage or input; 4 not \
permitted.

Examples:
  tidegate revert
  tidegate revert eth0")]
    Revert(live::Revert),
    /// Remove every tidegate policy and restore what was there before
    ///
    /// `tidegate revert` undoes only the last apply.
    #[command(after_help = "\
Exit codes: 0 done; 1 nothing was applied there, or it could not be undone; 2 wrong usage or input; 4 not \
permitted.

Examples:
  tidegate down
  tidegate down eth0")]
    Down(live::DeviceOptions),
    /// Adjust a shaper's rate to a line that varies (LTE, Starlink)
    Autorate(Box<autorate::Options>),
    /// Run a policy in user space on real devices, in the foreground
    Daemon(Box<daemon::Options>),
    /// Show classes live: throughput, queueing delay, drops, marks
    Top(watch::top::Options),
    /// Export the counters of shaped devices to Prometheus
    Metrics(watch::metrics::Options),
    /// Query or change a running daemon with tc syntax
    Tc(watch::tc::Options),
    /// Capture packets as they leave a running daemon's queues
    Capture(watch::capture::Options),
    /// Print a completion script for a shell
    #[cfg(feature = "manual")]
    #[command(after_help = "\
Examples:
  source <(tidegate completions bash)
  tidegate completions fish > ~/.config/fish/completions/tidegate.fish")]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page of a command
    #[cfg(feature = "manual")]
    Man(manual::Options),
}

/// The command line as clap knows it, with the commands in groups.
pub fn parser() -> clap::Command {
    let plain = Cli::command();
    let mut groups = listed(&plain, GROUPS);
    // The template's own text is not wrapped by clap.
    if let Some(columns) = output::columns() {
        groups = wrapped(&groups, columns);
    }
    plain.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n\n\
         `tidegate COMMAND --help` has examples and exit codes.\n"
    ))
}

/// The commands in their groups, a line each, and the names of those that this build lacks.
fn listed(plain: &clap::Command, all: &Groups) -> String {
    let left_out = left_out(plain, all);
    let mut groups = String::new();
    let usual = "Print this help, or that of a command";
    for (heading, names) in all {
        let _ = writeln!(groups, "{heading}:");
        for name in names.iter().filter(|name| !left_out.contains(name)) {
            let about = plain.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map_or_else(|| usual.to_owned(), ToString::to_string);
            let _ = writeln!(groups, "  {name:11}  {about}");
        }
        groups.push('\n');
    }
    if !left_out.is_empty() {
        let _ = writeln!(groups, "{}:\n  {}\n", left_out::HEADING, left_out::listed(&left_out));
    }
    groups
}

/// Understands the words of a command line, the program's name first.
///
/// # Errors
/// They are wrong, or ask for help or the version.
pub fn parse(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Cli, clap::Error> {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    // Help and errors are coloured, too, before anything is understood.
    let mut parser = parser().color(color(&words));
    let matches =
        parser.try_get_matches_from_mut(&words).map_err(|error| with_remedy(error, &parser, &words))?;
    let stdout_is_file = stdout_is_file(&matches).map_err(|error| {
        let command = matches.subcommand_name().and_then(|name| parser.find_subcommand_mut(name));
        match command {
            Some(command) => error.format(command),
            None => error,
        }
    })?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut parser))?;
    Ok(Cli { stdout_is_file, ..cli })
}

/// The options that print a document instead of text.
const DOCUMENTS: [&str; 3] = ["json", "sarif", "tap"];

/// Whether `-o` names standard output, which has room for one document.
///
/// # Errors
/// Another is to be printed there.
fn stdout_is_file(matches: &clap::ArgMatches) -> Result<bool, clap::Error> {
    let Some((name, command)) = matches.subcommand() else { return Ok(false) };
    let files = command.try_get_raw("output").ok().flatten().into_iter().flatten();
    let files: Vec<_> = files.filter(|name| output::is_stdout(Path::new(name))).collect();
    // `graph` prints one form in any case: -o says where.
    let is_one = name == "graph";
    let is_set = |option: &&&str| matches!(command.try_get_one::<bool>(option), Ok(Some(true)));
    let also = DOCUMENTS.iter().find(is_set).filter(|_| !is_one);
    let conflict = |words: String| Err(clap::Error::raw(ErrorKind::ArgumentConflict, words));
    match (files.len(), also) {
        (0, _) => Ok(false),
        (1, None) => Ok(!is_one),
        (1, Some(option)) => conflict(format!(
            "--{option} and -o - both write to standard output; leave one of them out, or name a file"
        )),
        _ => conflict("two results cannot both be written to standard output; name a file".to_owned()),
    }
}

/// Says where a word belongs that a command does not take: the arguments of a script, and the program behind
/// a link, stand behind `--`.
fn with_remedy(mut error: clap::Error, parser: &clap::Command, words: &[OsString]) -> clap::Error {
    // Beside a capture, `replay` takes no folders.
    if error.kind() == ErrorKind::ArgumentConflict {
        let mut after = words.iter().skip_while(|word| *word != "--policy").skip(2);
        let word = after.next().and_then(|word| word.to_str()).filter(|word| !word.starts_with('-'));
        if let (Some(word), Some("replay")) = (word, words.get(1).and_then(|word| word.to_str())) {
            let word = tidegate_scenario::shell::quoted(word);
            let remedy = format!("arguments for the script come after `--`: `-- {word}`");
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![remedy.into()]));
        }
        return error;
    }
    if let Some(name) = named_but_left_out(&error, parser, GROUPS) {
        return clap::Error::raw(ErrorKind::InvalidSubcommand, left_out::refusal(name) + "\n");
    }
    if let Some(meant) = transposed(&error, parser) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant]));
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return error };
    if error.kind() != ErrorKind::UnknownArgument || word.starts_with('-') {
        return error;
    }
    let word = tidegate_scenario::shell::quoted(word);
    // Of `policy from` the inner command.
    let mut command = parser;
    for name in words.iter().skip(1) {
        command = command.find_subcommand(name).unwrap_or(command);
    }
    let last = command.get_positionals().find(|argument| argument.is_last_set());
    let remedy = match last.map(|argument| argument.get_id().as_str()) {
        Some("args") => {
            let of_policy = match command.get_arguments().any(|argument| argument.get_long() == Some("also"))
            {
                true => format!("; another file of the policy is given with --also: `--also {word}`"),
                false => String::new(),
            };
            format!("arguments for the script come after `--`: `-- {word}`{of_policy}")
        }
        Some("program") => format!("the program comes after `--`: `-- {word}`"),
        Some("command") => {
            format!("one scenario file at a time; the command of --at comes after `--`: `-- {word}`")
        }
        _ => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![remedy.into()]));
    error
}

/// The command that was asked for, where this build lacks it.
fn named_but_left_out(error: &clap::Error, parser: &clap::Command, all: &Groups) -> Option<&'static str> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    left_out(parser, all).into_iter().find(|name| name == typed)
}

/// The command of which one slip of the fingers makes what was typed: clap's own measure overlooks `tyr` for
/// `try`.
fn transposed(error: &clap::Error, parser: &clap::Command) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let mut names = parser.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name);
    names.find(|name| strsim::damerau_levenshtein(name, typed) == 1).map(str::to_owned)
}

/// When clap's own text is coloured: by `--color`, and where that is `auto` by the rule for results. clap's
/// rule for `auto` is another one: a variable `CI` makes it colour on terminals that only print.
fn color(words: &[OsString]) -> ColorChoice {
    let words = words.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    let words: Vec<_> = words.collect();
    let value = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--color") {
        Some("") => words.get(at + 1).map(|value| value.to_string()),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    });
    match value.and_then(|value| ColorChoice::from_str(&value, false).ok()).unwrap_or_default() {
        ColorChoice::Auto if !output::may_color() => ColorChoice::Never,
        choice => choice,
    }
}

/// Carries out a command line.
pub fn carry_out(cli: Cli) -> ExitCode {
    if cli.quiet {
        output::set_quiet();
    }
    output::set_color(cli.color);
    output::fold_results();
    if cli.stdout_is_file {
        output::set_stdout_is_file();
    }
    match cli.command {
        Command::Try(options) => trial::command(&options),
        #[cfg(feature = "experiments")]
        Command::Experiment(experiment) => experiment.carry_out(),
        Command::Check(options) => check::command(&options),
        Command::Explain(options) => explain::command(&options),
        #[cfg(feature = "pages")]
        Command::Graph(options) => graph::command(&options),
        #[cfg(feature = "workstation")]
        Command::Import(options) => import::command(&options),
        Command::Run(options) => run::command(&options),
        Command::Policy(options) => policy::command(&options),
        Command::Apply(options) => live::apply(&options),
        Command::Status(options) => live::status(&options),
        Command::Confirm(options) => live::confirm(&options),
        Command::Revert(options) => live::revert(&options),
        Command::Down(options) => live::down(&options),
        Command::Autorate(options) => autorate::command(&options),
        Command::Daemon(options) => daemon::command(&options),
        Command::Top(options) => watch::top::command(&options),
        Command::Metrics(options) => watch::metrics::command(&options),
        Command::Tc(options) => watch::tc::command(&options),
        Command::Capture(options) => watch::capture::command(&options),
        Command::Quick(options) => measuring::quick::command(&options),
        #[cfg(feature = "workstation")]
        Command::Ping(options) => measuring::ping::command(&options),
        Command::Serve(options) => measuring::serve::command(&options),
        Command::Measure(options) => measuring::measure::command(&options),
        #[cfg(feature = "workstation")]
        Command::Loss(options) => measuring::loss::command(&options),
        #[cfg(feature = "workstation")]
        Command::Overhead(options) => measuring::overhead::command(&options),
        #[cfg(feature = "workstation")]
        Command::Calibrate(options) => measuring::calibrate::command(&options),
        Command::Doctor(options) => measuring::doctor::command(&options),
        Command::Verify(options) => measuring::verify::command(&options),
        #[cfg(feature = "manual")]
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut text);
            output::text(&String::from_utf8_lossy(&text));
            ExitCode::SUCCESS
        }
        #[cfg(feature = "manual")]
        Command::Man(options) => manual::command(&options, parser(), GROUPS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Columns in which no line is folded.
    const WIDE: usize = 1000;

    #[test]
    fn every_command_is_in_one_group_and_fits_a_line() {
        let plain = Cli::command();
        let all: BTreeSet<&str> = plain.get_subcommands().map(clap::Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(grouped.len(), all.len() + 1, "`help` is clap's own");
        assert_eq!(left_out(&plain, GROUPS), [""; 0]);
        assert!(all.iter().all(|name| grouped.contains(name)), "{all:?}");
        let help = parser().render_help().to_string();
        for line in help.lines().take_while(|line| *line != "Options:") {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(help.contains("\nDiagnose:\n  quick        Test a line"), "{help}");
    }

    #[test]
    fn commands_that_a_smaller_build_lacks_are_named_in_its_help_and_errors() {
        let smaller = crate::left_out::tests::smaller();
        let groups = crate::left_out::tests::GROUPS;
        assert_eq!(
            listed(&smaller, groups),
            "Look:\n  check        Find mistakes\n\nOther:\n  help         Print this help, or that of a \
            command\n\nNot in this smaller build, but in the packages for Linux computers:\n  sim\n\n"
        );
        let of = |words: &[&str]| {
            let error = smaller.clone().try_get_matches_from(words).expect_err("it is no command");
            named_but_left_out(&error, &smaller, groups)
        };
        assert_eq!(of(&["tidegate", "sim", "a.toml"]), Some("sim"));
        assert_eq!(of(&["tidegate", "help", "sim"]), Some("sim"));
        assert_eq!(of(&["tidegate", "smi"]), None);
        assert_eq!(of(&["tidegate", "check", "sim"]), None);
    }

    #[test]
    fn every_help_begins_with_the_line_of_the_list_and_has_examples_that_parse() {
        for command in parser().get_subcommands() {
            let (name, about) = (command.get_name(), command.get_about().expect("a line").to_string());
            let long = command.clone().term_width(WIDE).render_long_help().to_string();
            assert_eq!(long.lines().next(), Some(about.as_str()), "{name}");
            assert!(!about.ends_with('.'), "{about}");
            let lines = long.lines().map(str::trim).filter(|line| !line.contains("[OPTIONS]"));
            let examples: Vec<&str> = lines.filter(|line| line.starts_with("tidegate ")).collect();
            assert!(!examples.is_empty() || long.contains("(tidegate "), "{name} has no example");
            for example in examples {
                // Without remarks, and without what the shell does.
                let command = example.split("  ").next().unwrap_or_default();
                if let Some(wrong) = wrong(command) {
                    panic!("{name}: {example}\n{wrong}");
                }
            }
        }
    }

    #[test]
    fn help_speaks_the_words_of_the_field() {
        let dialect = [
            " told",
            " tell",
            " of ours",
            "anew",
            "whoever",
            "whom",
            "towards you",
            "away from you",
            "far end",
            "by itself",
            "what stands",
            "stands",
            "octet",
            "reflector",
            "mend",
            "our own",
            "so often",
            "by which door",
            "who answers",
            "wrong use,",
            "all else",
        ];
        for command in parser().get_subcommands() {
            let text = command.clone().render_long_help().to_string().to_lowercase();
            let found: Vec<&&str> = dialect.iter().filter(|word| text.contains(**word)).collect();
            assert!(found.is_empty(), "{}: {found:?}\n{text}", command.get_name());
        }
    }

    /// The commands with `--json`, and the published schema of what that prints.
    const SCHEMAS: [(&str, &str); 37] = [
        ("autorate", "autorate"),
        ("tune", "tune"),
        ("gym", "gym"),
        ("bundle", "bundle"),
        ("sweep", "sweep"),
        ("results", "sweep"),
        ("quick", "quick"),
        ("ping", "ping"),
        ("measure", "experiment"),
        ("loss", "loss"),
        ("overhead", "overhead"),
        ("calibrate", "calibrate"),
        ("record", "record"),
        ("doctor", "doctor"),
        ("verify", "verify"),
        ("policy list", "policy_list"),
        ("policy show", "policy"),
        ("policy from", "policy"),
        ("check", "check"),
        ("explain", "explain"),
        ("graph", "graph"),
        ("test", "test"),
        ("import", "import"),
        ("try", "trial"),
        ("sim", "experiment"),
        ("lab", "experiment"),
        ("shell", "shell"),
        ("replay", "replayed"),
        ("compare", "comparison"),
        ("run", "run"),
        ("apply", "apply"),
        ("status", "status"),
        ("confirm", "confirm"),
        ("revert", "revert"),
        ("down", "down"),
        ("top", "top"),
        ("capture", "capture"),
    ];

    /// The commands without, and why.
    const WITHOUT: [(&str, &str); 10] = [
        ("serve", "it runs until it is stopped, and has no result"),
        ("daemon", "it runs until it is stopped; `status` has its state"),
        ("metrics", "it has the text format of Prometheus"),
        ("tc", "it has tc's own -j"),
        ("completions", "it prints a script"),
        ("man", "it writes manual pages"),
        ("policy help", "it prints documentation"),
        ("policy new", "it prints a policy"),
        ("policy schema", "it prints JSON in any case"),
        ("policy wizard", "it asks questions"),
    ];

    #[test]
    fn every_command_with_a_result_prints_json_with_a_published_schema() {
        let parser = parser();
        let inner =
            |command: &clap::Command| -> Vec<clap::Command> { command.get_subcommands().cloned().collect() };
        let mut all: Vec<(String, clap::Command)> = Vec::new();
        for command in inner(&parser) {
            let name = command.get_name().to_owned();
            match inner(&command).as_slice() {
                [] => all.push((name, command)),
                some => {
                    all.extend(some.iter().map(|one| (format!("{name} {}", one.get_name()), one.clone())))
                }
            }
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
        for (name, command) in &all {
            let has = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
            let schema = SCHEMAS.iter().find(|(of, _)| of == name);
            let why = WITHOUT.iter().find(|(of, _)| of == name);
            assert_eq!((has, schema.is_some(), why.is_none()), (has, has, has), "{name}");
            if let Some((_, schema)) = schema {
                assert!(folder.join(format!("{schema}.schema.json")).is_file(), "{name}: {schema}");
            }
        }
        assert_eq!(all.len(), SCHEMAS.len() + WITHOUT.len(), "a command that is named is gone");
    }

    #[test]
    fn a_command_with_a_typo_gets_a_suggestion() {
        for (typed, meant) in [("chekc", "check"), ("stauts", "status"), ("aply", "apply"), ("tyr", "try")] {
            let Err(error) = parse(["tidegate", typed]) else { panic!("{typed} is a command") };
            assert!(error.to_string().contains(&format!("'{meant}'")), "{error}");
        }
    }

    /// Why a line of a document or of advice is not understood.
    fn wrong(line: &str) -> Option<String> {
        let words = crate::words::split(line).into_iter();
        let words = words.take_while(|word| ![">", "|", "&&"].contains(&word.as_str()));
        match parse(words) {
            Ok(_) => None,
            Err(error) if !error.use_stderr() => None,
            Err(error) => Some(error.to_string()),
        }
    }
}

#![forbid(unsafe_code)]
//! tidegate: try a traffic-control policy before you trust your link to it.

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use tidegate::{
    check, compare, daemon, expect, explain, graph, import, live, measuring, output, policy, replay, run,
    sim, trial, watch,
};

/// Try a traffic-control policy before you trust your link to it.
#[derive(Parser)]
#[command(name = "tidegate", version, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a script unmodified in a private namespace and simulate its policy on a link behind a modem with a
    /// big buffer.
    Try(Box<trial::Options>),
    /// Do an experiment that a file describes: policies compared under loads, between hosts and machines in
    /// virtual time.
    Sim(Box<sim::Options>),
    /// Do such an experiment with real hosts: the kernel's TCP in namespaces, joined by the scenario's links,
    /// by the real clock.
    Lab(Box<sim::lab::Options>),
    /// Run a program, or a shell, behind a described link: a gateway with your policy, a modem's buffer, the
    /// line.
    Shell(Box<sim::lab::shell::Options>),
    /// Lay results of `tidegate sim` beside each other: what differs, by how much, and whether by more than
    /// repeats do.
    Compare(compare::Options),
    /// Find what is wrong with a policy: where, what happens because of it, and what mends it.
    Check(check::Options),
    /// Tell the story of a packet: the rules and filters it meets, its class and queue, and what it may wait
    /// for there.
    Explain(Box<explain::Options>),
    /// Draw the trees a policy builds: as text, a picture, for Graphviz or Mermaid; coloured by what a trial
    /// measured.
    Graph(graph::Options),
    /// Hold what is expected of a policy against the simulated link: delays, shares, rates, and where packets
    /// go.
    Test(expect::Options),
    /// Write, show and explain short policies: ten lines that become tc and nft.
    Policy(policy::Options),
    /// Print as commands what holds a policy in other words, or what this machine has now.
    Import(import::Options),
    /// Run a script in a private namespace against a model of the machine, and print what it came to.
    Run(run::Options),
    /// Do a recorded run of a real kernel again, packet by packet.
    Replay(Box<replay::Options>),
    /// Put a policy onto this computer's devices: only what differs is changed, and all of it is undone if
    /// anything is refused.
    Apply(Box<live::Apply>),
    /// Show the policies that tidegate applied, and whether the kernel and the daemons still have them.
    #[command(after_help = live::STATUS_CODES)]
    Status(live::Which),
    /// Keep what was applied with --confirm, or over SSH.
    Confirm(live::Which),
    /// Bring back what stood before the last policy.
    Revert(live::Revert),
    /// Take away all that is ours, and bring back what stood before.
    Down(live::Which),
    /// Run a policy on real devices with tidegate's own disciplines, in the foreground.
    Daemon(Box<daemon::Options>),
    /// Show classes at work: rates, waits, losses, marks, borrowing; live, or line by line.
    Top(watch::top::Options),
    /// Tell Prometheus what devices count whose policy is at work.
    Metrics(watch::metrics::Options),
    /// Ask a running daemon, or have it change, in tc's words.
    Tc(watch::tc::Options),
    /// Follow the packets of a class as they leave a running daemon: as pcapng for Wireshark, or in words.
    Capture(watch::capture::Options),
    /// Half a minute, one page: what is wrong with this line, where, and what would mend it.
    Quick(Box<measuring::quick::Options>),
    /// Ask hosts again and again, on schedule: round trips, losses, and the six panels of ping-exp.
    Ping(Box<measuring::ping::Options>),
    /// Be the far end that others measure with.
    Serve(measuring::serve::Options),
    /// Measure a path with a server of ours at its far end: delays, losses and rates, each way, idle and
    /// under load.
    Measure(Box<measuring::measure::Options>),
    /// Find what is lost on the way to a host, and on the way back: how much, how sure that is, in what
    /// bursts.
    Loss(Box<measuring::loss::Options>),
    /// Find what a line adds to each packet, and the words for it.
    Overhead(Box<measuring::overhead::Options>),
    /// Find the highest rate each way at which delay does not rise: what to write into a policy.
    Calibrate(Box<measuring::calibrate::Options>),
    /// Find what keeps this computer from shaping as it was told: how large, and what mends it.
    Doctor(measuring::doctor::Options),
    /// Hold the same load with a policy against without, in turns: what differs, and how sure that is.
    Verify(Box<measuring::verify::Options>),
    /// Print what a shell needs to complete tidegate's words: `source <(tidegate completions bash)`.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    // First things: this process may be a stage of those set apart,
    let _ = tidegate_sys::apart::stage();
    // or may be a stage of a sandbox, or play a tool in a captured script.
    if let Some(code) = tidegate_capture::dispatch() {
        return code.into();
    }
    // A bug of ours must not look like a verdict on the policy: it has an exit code of its own.
    match std::panic::catch_unwind(command) {
        Ok(code) => output::finish(code),
        Err(_) => {
            eprintln!(
                "tidegate: internal error. This is a bug in tidegate, not a finding about your input: \
                please report it."
            );
            tidegate::INTERNAL_ERROR.into()
        }
    }
}

fn command() -> ExitCode {
    let cli = match parsed() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match cli.command {
        Command::Try(options) => trial::command(&options),
        Command::Sim(options) => sim::command(&options),
        Command::Lab(options) => sim::lab::command(&options),
        Command::Shell(options) => sim::lab::shell::command(&options),
        Command::Compare(options) => compare::command(&options),
        Command::Check(options) => check::command(&options),
        Command::Explain(options) => explain::command(&options),
        Command::Graph(options) => graph::command(&options),
        Command::Test(options) => expect::command(&options),
        Command::Import(options) => import::command(&options),
        Command::Run(options) => run::command(&options),
        Command::Replay(options) => replay::command(&options),
        Command::Policy(options) => policy::command(&options),
        Command::Apply(options) => live::apply(&options),
        Command::Status(which) => live::status(&which),
        Command::Confirm(which) => live::confirm(&which),
        Command::Revert(options) => live::revert(&options),
        Command::Down(which) => live::down(&which),
        Command::Daemon(options) => daemon::command(&options),
        Command::Top(options) => watch::top::command(&options),
        Command::Metrics(options) => watch::metrics::command(&options),
        Command::Tc(options) => watch::tc::command(&options),
        Command::Capture(options) => watch::capture::command(&options),
        Command::Quick(options) => measuring::quick::command(&options),
        Command::Ping(options) => measuring::ping::command(&options),
        Command::Serve(options) => measuring::serve::command(&options),
        Command::Measure(options) => measuring::measure::command(&options),
        Command::Loss(options) => measuring::loss::command(&options),
        Command::Overhead(options) => measuring::overhead::command(&options),
        Command::Calibrate(options) => measuring::calibrate::command(&options),
        Command::Doctor(options) => measuring::doctor::command(&options),
        Command::Verify(options) => measuring::verify::command(&options),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut text);
            output::text(&String::from_utf8_lossy(&text));
            ExitCode::SUCCESS
        }
    }
}

/// The words of the command line; or how the program ends, where they are wrong or ask for help. That is
/// printed as clap prints it (in colour on a terminal), unless a file name among the words would move the
/// cursor.
fn parsed() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        if let Some(said) = negative(&error) {
            output::note(format_args!("{said}"));
            return u8::try_from(error.exit_code()).unwrap_or(1).into();
        }
        let shown = error.render().to_string();
        if shown.chars().all(|letter| letter == '\n' || tidegate_text::is_visible(letter)) {
            // Of standard error nobody asks whether it takes everything.
            match error.print() {
                Err(full) if !error.use_stderr() => output::failed(full),
                _ => {}
            }
        } else {
            output::note(format_args!("{shown}"));
        }
        u8::try_from(error.exit_code()).unwrap_or(1).into()
    })
}

/// What is said of a negative value, which clap takes for an unknown option (`--rtt -1ms`).
fn negative(error: &clap::Error) -> Option<String> {
    if error.kind() != clap::error::ErrorKind::UnknownArgument {
        return None;
    }
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let (option, value) = words.iter().zip(words.iter().skip(1)).find(|(option, value)| {
        option.starts_with('-') && option.len() > 1 && tidegate::is_negative(value)
    })?;
    Some(format!(
        "error: invalid value '{value}' for '{option}': it must not be negative\n\nFor more information, \
        try '--help'.\n"
    ))
}

//! `tidegate serve`: the server that other computers measure against.

use super::far::token;
use crate::exit::CliExit;
use crate::values::{duration, rate};
use anyhow::{Context, bail};
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tidegate_packet::Rate;
use tidegate_probe_wire::{PORT, Quotas, ServerStats};
use tidegate_prober::serve::{Server, Serving};
use tidegate_sys::{interrupt, poll, service};

/// The interval of log messages, if something happened.
const TELL: Duration = Duration::from_secs(60);

/// Run the server that other computers measure against
///
/// `tidegate measure`, `loss`, `overhead`, `calibrate`, `quick` and `verify` on other computers use it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 ended on request; 2 wrong usage or input, such as a port in use or neither a token nor --open; \
4 not permitted.

Examples:
  tidegate serve --new-token token               make a token
  tidegate serve --token token                   on this computer
  tidegate measure THIS-HOST --token token       on the other")]
pub struct Options {
    /// An address to listen on; may be repeated; default: all, IPv4 and IPv6
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<IpAddr>,
    /// The port, TCP and UDP
    #[arg(long, default_value_t = PORT)]
    pub port: u16,
    /// The file with the token that clients need; default: the environment variable TIDEGATE_TOKEN
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Write a new token into this file, which must not exist, and exit
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token", "open"])]
    pub new_token: Option<PathBuf>,
    /// Serve everyone, without a token; all other limits apply
    #[arg(long, conflicts_with = "token")]
    pub open: bool,
    /// The most that one session may send or receive, each way
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "1gbit")]
    pub rate: Rate,
    /// Concurrent sessions
    #[arg(long, default_value_t = 16)]
    pub sessions: usize,
    /// Concurrent sessions from one address
    #[arg(long, default_value_t = 4)]
    pub sessions_each: usize,
    /// The longest single measurement
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = duration)]
    pub longest: Duration,
}

/// Plays `tidegate serve`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("serve", attempt(options).map(|()| CliExit::Yes))
}

fn attempt(options: &Options) -> anyhow::Result<()> {
    if let Some(file) = &options.new_token {
        return new_token(file);
    }
    let token = if options.open { None } else { token(options.token.as_deref())? };
    if token.is_none() && !options.open {
        bail!(
            "a token is needed (--token FILE; make one with `tidegate serve --new-token FILE`), or --open \
            to serve anyone"
        );
    }
    if let Some(file) = &options.token
        && File::open(file)?.metadata()?.permissions().mode() & 0o077 != 0
    {
        eprintln!("tidegate serve: others on this machine can read {}: `chmod 600` it", file.display());
    }
    let bell = interrupt::event_fd().context("cannot wait for the end")?;
    let serving = Serving { at: options.listen.clone(), port: options.port, token, quotas: quotas(options) };
    let server =
        Server::start(&serving).with_context(|| format!("cannot listen at port {}", options.port))?;
    // The parent process may not read it.
    let _ = service::notify("READY=1");
    let at: Vec<String> = server.at().iter().map(ToString::to_string).collect();
    say(&format!(
        "listening at {} (TCP and UDP){}",
        at.join(", "),
        if options.open { ", for anyone" } else { "" }
    ));
    let mut stats = ServerStats::default();
    while poll::readable(&[bell.as_fd()], TELL)? != [true] {
        let counts = server.counts();
        if counts != stats {
            say(&in_words(&counts));
            stats = counts;
        }
    }
    say(&format!("ended; {}", in_words(&server.counts())));
    Ok(())
}

/// Draws a token that only the owner of its file can read.
fn new_token(path: &Path) -> anyhow::Result<()> {
    if path.symlink_metadata().is_ok() {
        bail!("{} exists already; remove it first if that token is not in use", path.display());
    }
    let token = tidegate_prober::new_token().context("cannot draw at random")?;
    let mut file = crate::output::begin(path)?;
    let written = file.make_private().and_then(|()| writeln!(file, "{token}")).and_then(|()| file.commit());
    written.with_context(|| crate::output::cannot_write(path))
}

fn quotas(options: &Options) -> Quotas {
    let mut quotas =
        Quotas { sessions: options.sessions, sessions_each: options.sessions_each, ..Quotas::default() };
    quotas.calls = quotas.calls.max(quotas.sessions.saturating_mul(8));
    quotas.limits.bits_per_second = options.rate.as_bits();
    quotas.limits.longest_ns = u64::try_from(options.longest.as_nanos()).unwrap_or(u64::MAX);
    quotas
}

fn say(what: &str) {
    if !crate::output::is_quiet() {
        // Who started us may have closed it.
        eprintln!("tidegate serve: {what}");
    }
}

fn in_words(counts: &ServerStats) -> String {
    let mut words = format!(
        "{} sessions, {} exchanges, {} flows, {} packets accepted, {} from unknown senders",
        counts.sessions, counts.exchanges, counts.flows, counts.packets, counts.strays
    );
    for (reason, count) in &counts.refused {
        words += &format!("; {count} refused: {reason}");
    }
    words
}

//! `tidegate serve`: the far end that others measure with.

use super::far::token;
use crate::values::duration;
use anyhow::{Context, bail};
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tidegate_probe_wire::{PORT, Quotas, ServerStats};
use tidegate_prober::serve::{Server, Serving};
use tidegate_syntax::units;
use tidegate_sys::{interrupt, poll, service};

/// How often what happened is told, if something did.
const TELL: Duration = Duration::from_secs(60);

/// The far end that others measure with: `tidegate measure`, `loss`, `overhead`, `calibrate`, `quick` and
/// `verify` on other machines.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Make a token:  tidegate serve --new-token token
Then here:     tidegate serve --token token
And there:     tidegate measure THIS-HOST --token token

Exit codes: 0 ended when asked to, 2 an address or port cannot be had, or there is neither a token nor \
--open.")]
pub struct Options {
    /// An address to listen at; otherwise all of both families. May be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<IpAddr>,
    /// The port, TCP and UDP.
    #[arg(long, default_value_t = PORT)]
    pub port: u16,
    /// The file with the token that whoever measures must know; otherwise the variable TIDEGATE_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Write a new token into this file, which must not be there yet, and end.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token", "open"])]
    pub new_token: Option<PathBuf>,
    /// Let everybody measure, without a token; all other limits stay.
    #[arg(long, conflicts_with = "token")]
    pub open: bool,
    /// What one session may send or receive, each way.
    #[arg(long, default_value = "1gbit")]
    pub rate: String,
    /// Sessions at once.
    #[arg(long, default_value_t = 16)]
    pub sessions: usize,
    /// Sessions at once from one address.
    #[arg(long, default_value_t = 4)]
    pub sessions_each: usize,
    /// The longest single measurement.
    #[arg(long, default_value = "10m", value_parser = duration)]
    pub longest: Duration,
    /// Say nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Plays `tidegate serve`.
pub fn command(options: &Options) -> ExitCode {
    super::ended("serve", attempt(options).map(|()| 0))
}

fn attempt(options: &Options) -> anyhow::Result<()> {
    if let Some(file) = &options.new_token {
        return new_token(file);
    }
    let token = if options.open { None } else { token(options.token.as_deref())? };
    if token.is_none() && !options.open {
        bail!(
            "who may measure? Name a file with a token (--token FILE; make one with `tidegate serve \
            --new-token FILE`), or let everybody (--open)"
        );
    }
    if let Some(file) = &options.token
        && File::open(file)?.metadata()?.permissions().mode() & 0o077 != 0
    {
        eprintln!("tidegate serve: others on this machine can read {}: `chmod 600` it", file.display());
    }
    let bell = interrupt::event_fd().context("cannot wait for the end")?;
    let serving = Serving { at: options.listen.clone(), port: options.port, token, quotas: quotas(options)? };
    let server =
        Server::start(&serving).with_context(|| format!("cannot listen at port {}", options.port))?;
    // Whoever started us may not care.
    let _ = service::notify("READY=1");
    let at: Vec<String> = server.at().iter().map(ToString::to_string).collect();
    say(
        options,
        &format!(
            "listening at {} (TCP and UDP){}",
            at.join(", "),
            if options.open { ", for everybody" } else { "" }
        ),
    );
    let mut told = ServerStats::default();
    while poll::readable(&[bell.as_fd()], TELL)? != [true] {
        let counts = server.counts();
        if counts != told {
            say(options, &in_words(&counts));
            told = counts;
        }
    }
    say(options, &format!("ended; {}", in_words(&server.counts())));
    Ok(())
}

/// Draws a token that only the owner of its file can read.
fn new_token(path: &Path) -> anyhow::Result<()> {
    if path.symlink_metadata().is_ok() {
        bail!("{} is there already; remove it first if nobody needs that token", path.display());
    }
    let token = tidegate_prober::new_token().context("cannot draw at random")?;
    let mut file = crate::output::begin(path)?;
    let written = file.make_private().and_then(|()| writeln!(file, "{token}")).and_then(|()| file.commit());
    written.with_context(|| crate::output::cannot_write(path))
}

fn quotas(options: &Options) -> anyhow::Result<Quotas> {
    let bytes = units::parse_rate(&options.rate);
    let bytes =
        bytes.with_context(|| format!("--rate {}: not a rate; write 100mbit, 1gbit", options.rate))?;
    let mut quotas =
        Quotas { sessions: options.sessions, sessions_each: options.sessions_each, ..Quotas::default() };
    quotas.calls = quotas.calls.max(quotas.sessions.saturating_mul(8));
    quotas.limits.bits_per_second = bytes.0.saturating_mul(8);
    quotas.limits.longest_ns = u64::try_from(options.longest.as_nanos()).unwrap_or(u64::MAX);
    Ok(quotas)
}

fn say(options: &Options, what: &str) {
    if !options.quiet {
        // Who started us may have closed it.
        eprintln!("tidegate serve: {what}");
    }
}

fn in_words(counts: &ServerStats) -> String {
    let mut words = format!(
        "{} sessions, {} exchanges, {} flows, {} packets taken, {} of nobody",
        counts.sessions, counts.exchanges, counts.flows, counts.packets, counts.strays
    );
    for (reason, count) in &counts.refused {
        words += &format!("; {count} refused: {reason}");
    }
    words
}

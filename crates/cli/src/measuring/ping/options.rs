//! The command line of `tidegate ping`: ping-exp's letters, and names of hosts.

use crate::measuring::ds_field;
use crate::measuring::family::FamilyOptions;
use crate::outputs::{Form, ReportFile, output_file};
use crate::values;
use anyhow::{Context, bail, ensure};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_prober::hops;
use tidegate_prober::ping::{PingMethod, PingSchedule};

/// The port of the echo service (RFC 862).
const ECHO_PORT: u16 = 7;
/// The default number of requests for each target.
const USUAL_COUNT: u64 = 400;

/// Ping hosts on a fixed schedule, with charts of delay and loss
///
/// Requests are sent on schedule, whatever is lost or late; a reply counts however late it arrives. Requests
/// to several targets are spread over the interval.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Times run from the call that sends to the kernel's timestamp of the reply; the column `here` is the part \
that passed before this computer's driver had the request, which is this computer's own queue.

Exit codes: 0 every target replied at least once; 1 a target never did; 2 wrong usage or input; 3 partial \
result; 4 not permitted.

Examples:
  tidegate ping example.org
  tidegate ping --hops example.org
  tidegate ping -t gateway,192.168.1.1,0 -t voip,example.org,EF,200 -i 200ms -c 400 -o chart.svg -w run.json
  tidegate ping -r run.json -l -o chart.png")]
pub struct Options {
    /// Hosts to ping
    #[arg(value_name = "HOST")]
    pub hosts: Vec<String>,
    /// A target: its name, its host, the DS field (0 to 255, or a name such as EF), bytes of data; may be
    /// repeated
    #[arg(short = 't', long = "target", value_name = "ID,HOST,TOS[,SIZE]")]
    pub targets: Vec<String>,
    /// Time from one request to the next (as in ping, a number alone is seconds); at least 2ms unless root
    #[arg(short, long, value_name = "TIME", value_parser = values::interval, default_value = "200ms")]
    pub interval: Duration,
    /// Requests for each target; 0: until Ctrl-C [default: 400]
    #[arg(short, long, value_name = "COUNT")]
    pub count: Option<u64>,
    /// How long requests are sent, instead of how many
    #[arg(short, long, value_name = "TIME", value_parser = values::duration, conflicts_with = "count")]
    pub duration: Option<Duration>,
    /// Write the measurement as JSON, which -r reads
    #[arg(short, long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Measure nothing; show a file that -w wrote
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["hosts", "targets", "write"])]
    pub read: Option<PathBuf>,
    /// Draw lines from reply to reply instead of a dot for each
    #[arg(short, long)]
    pub lines: bool,
    /// Write the result: six panels as .svg or .png, a page with tables as .html, or .json; may be repeated
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_parser = output_file(&[Form::Svg, Form::Png, Form::Html, Form::Json])
    )]
    pub output: Vec<ReportFile>,
    /// Send UDP to this port (default: 7, echo) instead of ICMP; "port unreachable" counts as a reply, and no
    /// permission is needed
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "7")]
    pub udp: Option<u16>,
    /// The DS field of requests to hosts named without -t
    #[arg(short = 'Q', long, value_name = "TOS", default_value = "0")]
    pub tos: String,
    /// Bytes of data in requests to hosts named without -t
    #[arg(short, long, value_name = "BYTES", default_value_t = tidegate_prober::ping::USUAL_SIZE)]
    pub size: u16,
    /// The address family
    #[command(flatten)]
    pub family: FamilyOptions,
    /// Ping the routers on the path, too: up to this hop, default 3; routers that reply to no echo requests
    /// are asked once a second
    #[arg(long, value_name = "HOPS", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    pub hops: Option<u8>,
    /// Print JSON instead of the table
    #[arg(long)]
    pub json: bool,
}

impl Options {
    fn way(&self) -> PingMethod {
        self.udp.map_or(PingMethod::Icmp, |port| PingMethod::Udp(if port == 0 { ECHO_PORT } else { port }))
    }

    /// The targets, and how each is pinged. Looks names up, and with --hops finds the routers on the path.
    ///
    /// # Errors
    /// A value is wrong, or a name or a route is missing.
    pub(super) fn plans(&self) -> anyhow::Result<Vec<PingSchedule>> {
        let hour = Duration::from_secs(3600);
        ensure!(!self.interval.is_zero() && self.interval <= hour, "-i is from 2ms to 1h");
        let mut plans = Vec::new();
        for host in &self.hosts {
            let mut plan = self.plan(host)?;
            (plan.ds_field, plan.size) = (ds_field(&self.tos)?, self.size);
            plans.push(plan);
        }
        for words in &self.targets {
            plans.push(self.target(words).with_context(|| format!("-t {words}"))?);
        }
        ensure!(
            !plans.is_empty(),
            "missing HOST; write `tidegate ping HOST`, `-t ID,HOST,TOS[,SIZE]`, or `-r FILE`"
        );
        if let Some(most) = self.hops {
            plans = self.with_hops(plans, most)?;
        }
        Ok(plans)
    }

    fn plan(&self, host: &str) -> anyhow::Result<PingSchedule> {
        let mut plan = PingSchedule::new(host, self.family.family())?;
        plan.interval = self.interval;
        plan.count = self.limit();
        plan.way = self.way();
        Ok(plan)
    }

    /// Requests for each target; `None`: until Ctrl-C.
    pub(super) fn limit(&self) -> Option<u64> {
        let count = match self.duration {
            Some(duration) => duration.as_nanos().div_ceil(self.interval.as_nanos().max(1)) as u64,
            None => self.count.unwrap_or(USUAL_COUNT),
        };
        (count > 0).then_some(count)
    }

    /// A target in ping-exp's words.
    fn target(&self, words: &str) -> anyhow::Result<PingSchedule> {
        let parts: Vec<&str> = words.split(',').map(str::trim).collect();
        let (id, host, tos, size) = match parts[..] {
            [id, host, tos] => (id, host, tos, None),
            [id, host, tos, size] => (id, host, tos, Some(size)),
            _ => bail!("a target is ID,HOST,TOS or ID,HOST,TOS,SIZE"),
        };
        ensure!(!id.is_empty() && !host.is_empty(), "a target has a name and a host");
        let mut plan = self.plan(host)?;
        plan.id = id.to_owned();
        plan.ds_field = ds_field(tos)?;
        if let Some(size) = size {
            plan.size =
                size.parse().with_context(|| format!("`{size}` is not a number of bytes (0 to 65507)"))?;
        }
        Ok(plan)
    }

    /// Those on the way to the first target, and then the targets.
    fn with_hops(&self, plans: Vec<PingSchedule>, most: u8) -> anyhow::Result<Vec<PingSchedule>> {
        ensure!((1..=hops::MOST_HOPS).contains(&most), "--hops is from 1 to {}", hops::MOST_HOPS);
        let Some(first) = plans.first() else { return Ok(plans) };
        let found = hops::find(first.address, first.way, most)?;
        if found.iter().all(|hop| hop.address.is_none() || hop.is_host) {
            eprintln!(
                "tidegate ping: none of the first {most} routers on the path to {} replies",
                first.host
            );
        }
        let mut all = Vec::new();
        for hop in found.iter().filter(|hop| !hop.is_host) {
            let Some(mut plan) = hops::watch(hop, first.address, first.way, first.interval) else { continue };
            // As long as the others, however seldom it is pinged.
            let share = first.interval.as_secs_f64() / plan.interval.as_secs_f64();
            plan.count = self.limit().map(|count| (count as f64 * share).ceil() as u64);
            all.push(plan);
        }
        all.extend(plans);
        Ok(all)
    }
}

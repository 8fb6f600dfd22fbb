//! The command line of `tidegate ping`: ping-exp's letters, and names of hosts.

use crate::measuring::ds_field;
use crate::measuring::family::FamilyOptions;
use crate::values;
use anyhow::{Context, bail, ensure};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_prober::hops;
use tidegate_prober::ping::{PingMethod, PingSchedule};

/// The port of the echo service (RFC 862).
const ECHO_PORT: u16 = 7;
/// Requests for each target, where nothing is said.
const USUAL_COUNT: u64 = 400;

/// What may be said.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Requests go out on schedule, whatever is lost or late; an answer counts however late it comes. Requests of \
several targets are spread over the interval. Times \
are from the sending to the kernel's stamp of the answer; `here` is what of that passed before this \
computer's own driver had the request, which is its own queue.

  tidegate ping example.org
  tidegate ping -t gateway,192.168.1.1,0 -t voip,example.org,EF,200 -i .2 -c 400 -o chart.svg -w run.json
  tidegate ping -r run.json -l -o chart.png
  tidegate ping --hops example.org

Exit codes: 0 everybody answered at least once; 1 somebody never did; 2 wrong use, no permission, no name, \
no way; 3 ended before its time, the result is partial.")]
pub struct Options {
    /// Hosts to ask.
    #[arg(value_name = "HOST")]
    pub hosts: Vec<String>,
    /// A target: its name, its host, the DS field (0 to 255, or a name such as EF), bytes of data. May be
    /// repeated.
    #[arg(short = 't', long = "target", value_name = "ID,HOST,TOS[,SIZE]")]
    pub targets: Vec<String>,
    /// From one request to the next (a number alone is seconds); at least 2ms unless you are root.
    #[arg(short, long, value_name = "TIME", value_parser = values::seconds, default_value = "200ms")]
    pub interval: f64,
    /// Requests for each target; 0: until Ctrl-C.
    #[arg(short, long, value_name = "COUNT", default_value_t = USUAL_COUNT)]
    pub count: u64,
    /// Write what was measured into this file, as JSON.
    #[arg(short, long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Measure nothing: read such a file, and show it again.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["hosts", "targets", "write"])]
    pub read: Option<PathBuf>,
    /// Join answers by lines instead of drawing a dot for each.
    #[arg(short, long)]
    pub lines: bool,
    /// Draw the six panels into this file: .svg or .png, or .html with tables; .json is as -w. May be
    /// repeated.
    #[arg(short, long, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Ask by UDP: whoever echoes there answers, or this computer's kernel is told that nobody listens, which
    /// is an answer, too. Needs no permission.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "7")]
    pub udp: Option<u16>,
    /// The DS field of what is asked of hosts named without -t.
    #[arg(short = 'Q', long, value_name = "TOS", default_value = "0")]
    pub tos: String,
    /// Bytes of data for hosts named without -t.
    #[arg(short, long, value_name = "OCTETS", default_value_t = tidegate_prober::ping::USUAL_SIZE)]
    pub size: u16,
    /// By which addresses.
    #[command(flatten)]
    pub family: FamilyOptions,
    /// Ask those on the way to the host, too: so many hops, 3 if nothing is said. Routers that answer no echo
    /// requests are asked once a second.
    #[arg(long, value_name = "HOPS", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    pub hops: Option<u8>,
    /// Print JSON instead of the table.
    #[arg(long)]
    pub json: bool,
    /// No chart on the terminal meanwhile.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Options {
    fn way(&self) -> PingMethod {
        self.udp.map_or(PingMethod::Icmp, |port| PingMethod::Udp(if port == 0 { ECHO_PORT } else { port }))
    }

    /// Who is asked, and how. Looks names up, and with --hops asks finding the hops on the path.
    ///
    /// # Errors
    /// Words that mean nothing, or what stands in the way.
    pub(super) fn plans(&self) -> anyhow::Result<Vec<PingSchedule>> {
        ensure!(
            self.interval.is_finite() && self.interval > 0.0 && self.interval <= 3600.0,
            "-i is from 0.002 to 3600 seconds"
        );
        let mut plans = Vec::new();
        for host in &self.hosts {
            let mut plan = self.plan(host)?;
            (plan.ds_field, plan.size) = (ds_field(&self.tos)?, self.size);
            plans.push(plan);
        }
        for words in &self.targets {
            plans.push(self.target(words).with_context(|| format!("-t {words}"))?);
        }
        ensure!(!plans.is_empty(), "whom? `tidegate ping HOST`, `-t ID,HOST,TOS[,SIZE]`, or `-r FILE`");
        if let Some(most) = self.hops {
            plans = self.with_hops(plans, most)?;
        }
        Ok(plans)
    }

    fn plan(&self, host: &str) -> anyhow::Result<PingSchedule> {
        let mut plan = PingSchedule::new(host, self.family.family())?;
        plan.interval = Duration::from_secs_f64(self.interval);
        plan.count = self.limit();
        plan.way = self.way();
        Ok(plan)
    }

    fn limit(&self) -> Option<u64> {
        (self.count > 0).then_some(self.count)
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
                size.parse().with_context(|| format!("`{size}` is no number of octets (0 to 65507)"))?;
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
                "tidegate ping: of those on the way to {} none among the first {most} answers",
                first.host
            );
        }
        let mut all = Vec::new();
        for hop in found.iter().filter(|hop| !hop.is_host) {
            let Some(mut plan) = hops::watch(hop, first.address, first.way, first.interval) else { continue };
            // As long as the others, however seldom it is asked.
            let share = first.interval.as_secs_f64() / plan.interval.as_secs_f64();
            plan.count = self.limit().map(|count| (count as f64 * share).ceil() as u64);
            all.push(plan);
        }
        all.extend(plans);
        Ok(all)
    }
}

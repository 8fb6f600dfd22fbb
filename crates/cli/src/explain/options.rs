//! The command line of `tidegate explain`.

use crate::kernel_options::KernelOptions;
use crate::outputs::{Form, ReportFile, output_file};
use crate::script_options::ScriptOptions;
use std::path::PathBuf;

/// Show which rules, class and queue a packet meets, and why
#[derive(clap::Args)]
#[command(after_help = "\
A packet is PROTOCOL SOURCE[:PORT] > DESTINATION[:PORT] and properties; quote it for the shell.
  protocols   tcp, udp, icmp, icmp6, arp, gre, esp, … or proto N; ethertype N for other than IP
  headers     len BYTES, dscp NAME, tos N, ecn NAME, ihl WORDS, byte OFFSET=VALUE
              syn ack fin rst psh urg ece cwr (TCP; default ack), echo, echo-reply, type N/M (ICMP)
  direction   in DEV, out DEV; in lo: sent by the machine's own programs
  connection  new, established, related, invalid; reply; bytes N (sent before); connmark N
  marks       mark N, priority N or 1:10
Each rule and filter is marked + (matches) or - (does not, and why). The engine decides, not a reading of \
the commands.

Exit codes: 0 done; 1 with --diff: the policies differ; 2 wrong usage or input.

Examples:
  tidegate explain examples/three-bands.sh 'tcp 192.168.1.7:51820 > 1.1.1.1:22 dscp AF21 len 120'
  tidegate explain gateway.sh 'udp 192.168.1.7 > 1.1.1.1:53' -- start eth0
  tidegate explain gateway.sh --pcap call.pcap --out eth0")]
pub struct Options {
    /// The policy: a script, or another file that `tidegate check` reads
    pub policy: PathBuf,
    /// The packet (see below)
    #[arg(required_unless_present = "pcap", conflicts_with = "pcap", allow_hyphen_values = false)]
    pub packet: Vec<String>,
    /// Arguments for a script
    #[arg(last = true)]
    pub args: Vec<String>,
    /// More files of the policy: the rules beside a tc batch
    #[arg(long, alias = "with", value_name = "FILE")]
    pub also: Vec<PathBuf>,
    /// Take packets from a capture (pcap or pcapng): the first of each flow
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Only this packet of the capture, counted from 1
    #[arg(long, value_name = "N", requires = "pcap", value_parser = clap::value_parser!(u64).range(1..))]
    pub number: Option<u64>,
    /// The device that it arrives on; lo: sent by the machine's own programs
    #[arg(long, value_name = "DEV", alias = "from")]
    pub r#in: Option<String>,
    /// The device that it leaves by
    #[arg(long, value_name = "DEV", alias = "to")]
    pub out: Option<String>,
    /// The state of its connection
    #[arg(long, value_name = "STATE", value_parser = ["new", "established", "related", "invalid"])]
    pub state: Option<String>,
    /// Explain the reply to the packet, too
    #[arg(long)]
    pub reply: bool,
    /// Another policy: show where the packet's path differs, and where it ends in each
    #[arg(long, value_name = "POLICY2")]
    pub diff: Option<PathBuf>,
    /// Show every rule and filter, however many do not match
    #[arg(long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the explanation: .json or .txt; may be repeated
    #[arg(short, long, value_name = "FILE", value_parser = output_file(&[Form::Json, Form::Text]))]
    pub output: Vec<ReportFile>,
    /// The sandbox that scripts run in
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// The kernel that the policy is for
    #[command(flatten)]
    pub kernel: KernelOptions,
}

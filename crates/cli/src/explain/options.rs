//! What `tidegate explain` is told.

use crate::dissect::Dissect;
use crate::script_options::ScriptOptions;
use std::path::PathBuf;

/// What `tidegate explain` is told.
#[derive(clap::Args)]
#[command(after_help = "\
A packet is written as PROTOCOL SOURCE[:PORT] > DESTINATION[:PORT] and what else is to be said of it; a \
shell wants quotes round it.
  protocols   tcp, udp, icmp, icmp6, arp, gre, esp, … or proto N; ethertype N for what is no IP
  headers     len BYTES, dscp NAME, tos N, ecn NAME, ihl WORDS, octet OFFSET=VALUE
              syn ack fin rst psh urg ece cwr (TCP; ack if none is said), echo, echo-reply, type N/M (ICMP)
  way         in DEV, out DEV; in lo: the machine's own programs send it
  connection  new, established, related, invalid; reply; bytes N (carried before); connmark N
  marks       mark N, priority N or 1:10
Rules and filters are marked: + it fits, - it does not and why. What the engine counted decides, not a \
reading of the words.
Exit codes: 0; 1 with --diff: the policies part; 2 a file or a packet cannot be read, or there is no \
traffic control.

Examples:
  tidegate explain examples/three-bands.sh 'tcp 192.168.1.7:51820 > 1.1.1.1:22 dscp AF21 len 120'
  tidegate explain gateway.sh --pcap call.pcap --out eth0")]
pub struct Options {
    /// The policy: a script, a tc batch, iptables-save, nft rules, a short policy.
    pub policy: PathBuf,
    /// The packet, in words.
    #[arg(required_unless_present = "pcap", conflicts_with = "pcap", allow_hyphen_values = false)]
    pub packet: Vec<String>,
    /// Arguments for a script.
    #[arg(last = true)]
    pub args: Vec<String>,
    /// More files that belong to the policy.
    #[arg(long, value_name = "FILE")]
    pub with: Vec<PathBuf>,
    /// Packets from a recording (pcap or pcapng): the first of every flow.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Of the recording, only this packet; counted from 1.
    #[arg(long, value_name = "N", requires = "pcap", value_parser = clap::value_parser!(u64).range(1..))]
    pub number: Option<u64>,
    /// The device it comes in by; lo: the machine's own programs send it.
    #[arg(long, value_name = "DEV", alias = "from")]
    pub r#in: Option<String>,
    /// The device it leaves by.
    #[arg(long, value_name = "DEV", alias = "to")]
    pub out: Option<String>,
    /// What it is to its connection.
    #[arg(long, value_name = "STATE", value_parser = ["new", "established", "related", "invalid"])]
    pub state: Option<String>,
    /// Tell the story of the packet that answers it, too.
    #[arg(long)]
    pub reply: bool,
    /// Another policy: where the two part, and where the packet ends in each.
    #[arg(long, value_name = "POLICY2")]
    pub diff: Option<PathBuf>,
    /// Show every rule and filter, however many do not fit.
    #[arg(long)]
    pub all: bool,
    /// Print the stories as JSON.
    #[arg(long)]
    pub json: bool,
    /// The sandbox that scripts run in.
    #[command(flatten)]
    pub sandbox: ScriptOptions,
    /// How far the machine looks into packets.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) dissect: Dissect,
}

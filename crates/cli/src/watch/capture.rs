//! `tidegate capture`: the packets of a class as they leave a running daemon, or are lost: what waited how
//! long, for Wireshark or in words.

use super::{failed, is_closed_pipe};
use crate::values;
use anyhow::bail;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidegate_apply::daemon_with;
use tidegate_daemon::Client;
use tidegate_daemon::Daemon;
use tidegate_daemon::RuntimeDir;
use tidegate_pcap::{CaptureDirection, Interface, Record, TcVerdict, Writer, link};
use tidegate_replay::annotated::wait;
use tidegate_syntax::units::parse_classid;
use tidegate_sys::interrupt;

/// Capture packets as they leave a running daemon's queues
///
/// Each packet has the time when it left or was dropped, its class and queue, its queueing delay and its
/// outcome; of its bytes, only the headers that the engine keeps. Slow readers lose packets; forwarding never
/// waits for them.
#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 done; 2 wrong usage or input, or no daemon answers; 4 not permitted: root and the user who \
started the daemon may read packets.

Examples:
  tidegate capture eth0 1:10 -c 100
  tidegate capture eth0 1:10 -w - | wireshark -k -i -
  tidegate capture eth0 --duration 30s -w eth0.pcapng")]
pub struct Options {
    /// The device
    pub device: String,
    /// The class, as tc names it, or `root` for the root qdisc; default: all
    pub class: Option<String>,
    /// Write pcapng; `-`: to standard output; default: print packets line by line
    #[arg(short, long, alias = "output", short_alias = 'o', value_name = "PCAPNG")]
    pub write: Option<PathBuf>,
    /// Print one JSON document for each packet, one per line
    #[arg(long, conflicts_with = "write")]
    pub json: bool,
    /// End after this number of packets
    #[arg(short, long, value_name = "PACKETS")]
    pub count: Option<u64>,
    /// End after this time
    #[arg(short, long, alias = "seconds", value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,
}

/// Runs the command.
pub fn command(options: &Options) -> ExitCode {
    match follow(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => failed("capture", &error),
    }
}

/// Where packets go.
enum Sink {
    Words,
    Json,
    Pcapng(Box<dyn Write>, Writer),
}

fn follow(options: &Options) -> anyhow::Result<()> {
    let daemon = daemon_with(&options.device)?;
    if let Daemon::Silent(silence) = Daemon::of(&RuntimeDir::here()?, &daemon) {
        bail!("{daemon}: {silence}");
    }
    let mut client = Client::open(&daemon)?;
    let status = client.request(&json!({"ask": "status"}))?;
    let epoch = status["epoch_ns"].as_u64().unwrap_or(0);
    client.send(&json!({"ask": "capture", "device": options.device, "class": options.class}))?;
    let mut sink = Sink::open(options)?;
    let stop = interrupt::notice();
    let end = options.duration;
    let (began, mut left) = (Instant::now(), options.count.unwrap_or(u64::MAX));
    while left > 0 && !stop.load(Ordering::Relaxed) && end.is_none_or(|end| began.elapsed() < end) {
        // Without packets the daemon sends an empty object twice a second, so that the time and Ctrl-C are
        // noticed.
        let Some(document) = client.next_line()? else { break };
        if let Some(packet) = Packet::read(&document, epoch) {
            sink.take(&packet)?;
            left -= 1;
        }
    }
    sink.flush()
}

impl Sink {
    fn open(options: &Options) -> anyhow::Result<Sink> {
        let Some(path) = &options.write else {
            return Ok(if options.json { Sink::Json } else { Sink::Words });
        };
        let file: Box<dyn Write> = match path.to_str() {
            Some("-") => {
                anyhow::ensure!(
                    !crate::output::stdout().is_terminal(),
                    "pcapng is nothing for a terminal; pipe it into Wireshark, or name a file"
                );
                Box::new(crate::output::stdout())
            }
            _ => Box::new(crate::output::begin_growing(path)?),
        };
        let mut writer = Writer::new(&format!("tidegate {}", env!("CARGO_PKG_VERSION")));
        let class = options.class.as_deref().map(|class| format!(" class {class}")).unwrap_or_default();
        let description = "packets when they left or were dropped";
        writer.interface(Interface {
            name: &format!("{}{class}", options.device),
            description,
            link: link::ETHERNET,
        });
        let mut sink = Sink::Pcapng(file, writer);
        // Wireshark wants to know at once what it reads.
        sink.flush()?;
        Ok(sink)
    }

    fn take(&mut self, packet: &Packet) -> anyhow::Result<()> {
        match self {
            Sink::Words => Ok(crate::output::next(&format!("{}\n", packet.words()))?),
            Sink::Json => Ok(crate::output::next(&format!("{}\n", packet.document()))?),
            Sink::Pcapng(_, writer) => {
                packet.write(writer);
                self.flush()
            }
        }
    }

    /// Packets are looked at as they come.
    fn flush(&mut self) -> anyhow::Result<()> {
        match self {
            Sink::Words | Sink::Json => Ok(()),
            Sink::Pcapng(file, writer) => {
                file.write_all(&writer.take())?;
                Ok(file.flush()?)
            }
        }
    }
}

/// The form of a line: it changes when a member changes its meaning or goes away.
const FORM: u32 = 1;

/// The class of a packet that met no queue of the device: a filter dropped it before, it came in where
/// nothing is queued, or it is one of those that pass by the queues.
const NO_CLASS: &str = "none";

/// A packet in the daemon's form.
#[derive(Debug, PartialEq, Eq)]
struct Packet {
    /// ns since 1970.
    left: u64,
    waited: u64,
    class: String,
    /// What the policy calls the class.
    name: Option<String>,
    qdisc: String,
    outcome: String,
    length: u32,
    front: Vec<u8>,
}

impl Packet {
    /// `None`: it describes no packet.
    fn read(document: &Value, epoch: u64) -> Option<Packet> {
        let text = |member: &str| document[member].as_str().unwrap_or_default().to_owned();
        let (came, left) = (document["came_ns"].as_u64()?, document["left_ns"].as_u64()?);
        Some(Packet {
            left: epoch.saturating_add(left),
            waited: left.saturating_sub(came),
            class: text("class"),
            name: document["name"].as_str().map(str::to_owned),
            qdisc: text("qdisc"),
            outcome: text("outcome"),
            length: document["len"].as_u64().and_then(|length| u32::try_from(length).ok()).unwrap_or(0),
            front: bytes_of_hex(document["front"].as_str().unwrap_or_default()),
        })
    }

    /// What happened to it.
    fn words(&self) -> String {
        let seconds = self.left / 1_000_000_000 % 86_400;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let micros = self.left / 1000 % 1_000_000;
        format!("{hour:02}:{minute:02}:{second:02}.{micros:06} {}", self.comment())
    }

    /// The packet in JSON, for programs.
    fn document(&self) -> Value {
        json!({
            "tidegate_capture": FORM, "time_ns": self.left, "class": self.class, "name": self.name,
            "qdisc": self.qdisc, "length": self.length,
            "queueing_delay_ns": self.waited, "outcome": self.outcome(),
        })
    }

    fn outcome(&self) -> &'static str {
        match self.outcome.as_str() {
            "dropped" => "dropped",
            "marked" => "sent with a new CE mark",
            _ => "sent",
        }
    }

    fn comment(&self) -> String {
        let Packet { class, qdisc, length, name, .. } = self;
        let name = name.as_ref().map(|name| format!(" ({})", tidegate_text::line(name))).unwrap_or_default();
        let outcome = self.outcome();
        if class == NO_CLASS {
            return format!("no queue {length} B, {outcome}");
        }
        format!("{class}{name} {qdisc} {length} B waited {}, {outcome}", wait(self.waited))
    }

    fn write(&self, writer: &mut Writer) {
        // A packet of a device of the network layer has no link header.
        let kept = &self.front[..self.front.len().min(self.length as usize)];
        writer.packet(&Record {
            interface: 0,
            time: self.left,
            bytes: kept,
            length: self.length.max(kept.len() as u32),
            direction: Some(CaptureDirection::Out),
            dropped_before: None,
            id: None,
            queue: parse_classid(&self.class).filter(|class| !class.is_none()).map(|class| class.0),
            verdict: Some(if self.outcome == "dropped" { TcVerdict::Dropped } else { TcVerdict::Passed }),
            comment: &self.comment(),
        });
    }
}

/// Bytes written as pairs of hexadecimal digits; up to what is none.
fn bytes_of_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map_while(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_described_in_words() {
        let document = json!({"came_ns": 1_000_000, "left_ns": 3_500_000, "class": "1:10", "qdisc": "10:", "outcome": "marked", "len": 1514,
            "front": "0200zz"});
        let packet = Packet::read(&document, 1_700_000_000_000_000_000).expect("a packet");
        assert_eq!(packet.words(), "22:13:20.003500 1:10 10: 1514 B waited 2.50 ms, sent with a new CE mark");
        assert_eq!(packet.front, [2, 0]);
        let mut named = document;
        named["name"] = json!("calls\u{1b}[31m");
        let packet = Packet::read(&named, 0).expect("a packet");
        assert_eq!(
            packet.comment(),
            "1:10 (calls\\x1b[31m) 10: 1514 B waited 2.50 ms, sent with a new CE mark"
        );
        assert_eq!(Packet::read(&json!({}), 0), None);
        let unqueued = json!({
            "came_ns": 1, "left_ns": 2, "class": "none", "qdisc": "none", "outcome": "dropped", "len": 60
        });
        assert_eq!(Packet::read(&unqueued, 0).expect("a packet").comment(), "no queue 60 B, dropped");
    }
}

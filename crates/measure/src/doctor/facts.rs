//! What a computer reports of its devices, and how it is worded.

use alloc::string::String;
use alloc::vec::Vec;

/// What was looked at, of one computer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The time between the two looks, ns.
    pub seconds_ns: u64,
    /// The computer's devices.
    pub devices: Vec<DeviceFacts>,
    /// The devices that default routes lead out by, the first the one that is taken.
    pub default_routes: Vec<String>,
    /// The computer's processors.
    pub processors: Vec<Processor>,
    /// What its processors did with packets that came.
    pub softnet: Softnet,
    /// Ways around the qdiscs that nft opened.
    pub flow_tables: Vec<FlowTableFacts>,
    /// Traffic that keeps the network alive and would be dropped or starve, in sentences.
    pub starved: Vec<String>,
    /// What the checker finds in the policies: a rule's number, and what is wrong; how many there are in all.
    pub checked: (Vec<(String, String)>, usize),
    /// What happened to the ECN field, where a server was asked.
    pub ecn: Option<EcnResult>,
    /// Policies of tidegate's that are not at work.
    pub broken: Vec<BrokenPolicy>,
    /// What could not be looked at, and why.
    pub unknown: Vec<String>,
}

/// A policy that was applied and is not at work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BrokenPolicy {
    /// The name that it is kept under: a device's.
    pub name: String,
    /// The devices that it is for.
    pub devices: Vec<String>,
    /// Its condition, as `tidegate status` names it: `daemon dead`.
    pub condition: String,
    /// What went wrong last, where that is known.
    pub why: Option<String>,
}

/// A network device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceFacts {
    /// The device's name, as Linux has it.
    pub name: String,
    /// Is there hardware behind it?
    pub is_hardware: bool,
    /// The devices that it is stacked on (of ppp0: eth0).
    pub below: Vec<String>,
    /// The bridge or bond that it is part of.
    pub master: Option<String>,
    /// Does it carry PPP, so that what is beneath it sees frames that are no IP?
    pub is_ppp: bool,
    /// Bytes of its largest packet.
    pub mtu: u32,
    /// Packets of its transmit queue.
    pub txqueuelen: u32,
    /// The rate of its link, bits per second; `None`: the driver does not report.
    pub speed_bps: Option<u64>,
    /// Bytes that left by it between the two looks.
    pub sent: u64,
    /// Bytes that came in by it between the two looks.
    pub received: u64,
    /// Features of ethtool's that are on.
    pub features: Vec<String>,
    /// The limits that the driver's queues had at the second look, bytes (BQL); `None`: it has none.
    pub byte_limits: Option<Vec<u64>>,
    /// What shapes what leaves by it.
    pub shaper: Option<ShaperFacts>,
    /// What happens to what comes by it.
    pub inwards: Inwards,
}

/// What happens to packets that come in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Inwards {
    /// Nothing.
    #[default]
    Plain,
    /// They go through this device, whose qdiscs they meet.
    Led(String),
    /// They are policed, or something else is done that is not looked at.
    Handled,
}

/// Qdiscs that hold packets to a rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShaperFacts {
    /// Whose they are: `kernel` or `user`.
    pub backend: String,
    /// Their kind at the device itself.
    pub kind: String,
    /// The rate that they hold packets to, bits per second; `None`: none is known.
    pub rate_bps: Option<u64>,
    /// The rate of the kernel's qdiscs on the same device, where these are not the kernel's, bits per second.
    pub beneath_bps: Option<u64>,
    /// Bytes that it sent between the two looks.
    pub sent: u64,
    /// Packets that it sent between the two looks.
    pub packets: u64,
    /// How often something had to wait between the two looks.
    pub overlimits: u64,
    /// Bytes that wait, the more of both looks.
    pub backlog: u64,
    /// Packets that it dropped between the two looks.
    pub drops: u64,
    /// Packets it has sent since it was made.
    pub packets_ever: u64,
    /// Times that something had to wait since it was made.
    pub overlimits_ever: u64,
    /// Does it split what the sender handed over as one (cake)?
    pub splits: bool,
    /// The shaper's classes.
    pub classes: Vec<ShaperClass>,
}

/// A class of a shaper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShaperClass {
    /// Its class id: `1:10`.
    pub id: String,
    /// Has it no classes below?
    pub is_leaf: bool,
    /// Packets it has sent since it was made; `None`: it does not count.
    pub packets_ever: Option<u64>,
}

/// How busy a processor was between the two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Processor {
    /// Its number, as in `/proc/stat`.
    pub number: u32,
    /// The share of its time that went to the network's soft interrupts, 0 to 1.
    pub softirq: f64,
    /// The share of its time in which it did anything, 0 to 1.
    pub busy: f64,
}

/// What happened to arriving packets before any program saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Packets.
    pub processed: u64,
    /// Those lost because the queue before the processor was full.
    pub dropped: u64,
    /// Times that packets were left because the time for them was over.
    pub squeezed: u64,
}

/// A flow table of nft's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTableFacts {
    /// Its name, with its table's.
    pub name: String,
    /// The devices of the flow table.
    pub devices: Vec<String>,
    /// Does the hardware forward on its own?
    pub is_hardware: bool,
}

/// The outcome of the ECN field of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EcnResult {
    /// The server that was asked.
    pub host: String,
    /// The DS field of the requests.
    pub sent: u8,
    /// The DS field of its answer.
    pub answered: Option<u8>,
    /// The routers that quoted a request, in order of the path, and the DS field it had there.
    pub quoted: Vec<(String, u8)>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    #[default]
    Note,
    /// It makes shaping worse.
    Warning,
    /// It does not shape.
    Bad,
}

impl Severity {
    /// Its name: `note`, `warning`, `bad`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Bad => "bad",
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoctorFinding {
    /// Its short name: `offload-burst`.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The device, where it is about one.
    pub device: String,
    /// What is so, with its size.
    pub what: String,
    /// What fixes it, in words.
    pub remedy: String,
    /// And as commands to paste.
    pub commands: Vec<String>,
}

/// What a look at a computer came to, as one document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnosis {
    /// The version that looked.
    pub version: String,
    /// The command that looks again.
    pub again: String,
    /// What was looked at, in words.
    pub looked_at: Vec<String>,
    /// What was found, the worst first.
    pub findings: Vec<DoctorFinding>,
    /// When this must not be believed.
    pub caveats: Vec<String>,
    /// The facts it follows from.
    pub facts: Facts,
}

impl Facts {
    /// The device of this name.
    pub fn device(&self, name: &str) -> Option<&DeviceFacts> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The devices that packets to the Internet leave by: the first default route's, and those it is stacked
    /// on.
    pub fn outwards(&self) -> Vec<&DeviceFacts> {
        let mut found: Vec<&DeviceFacts> = Vec::new();
        let mut waiting: Vec<&str> = self.default_routes.iter().take(1).map(String::as_str).collect();
        while let Some(name) = waiting.pop() {
            let Some(device) = self.device(name) else { continue };
            if found.iter().any(|known| known.name == device.name) {
                continue;
            }
            waiting.extend(device.below.iter().map(String::as_str));
            found.push(device);
        }
        found
    }

    /// Does some device lead what comes in through this one?
    pub(super) fn is_redirect_target(&self, name: &str) -> bool {
        self.devices.iter().any(|device| matches!(&device.inwards, Inwards::Led(to) if to == name))
    }

    /// A rate of bytes between the two looks.
    pub(super) fn rate(&self, bytes: u64) -> f64 {
        crate::bits_per_second(bytes, self.seconds_ns)
    }
}

impl DeviceFacts {
    /// Does it hold what leaves to a rate?
    pub(super) fn rate_bps(&self) -> Option<u64> {
        self.shaper.as_ref()?.rate_bps.filter(|rate| *rate > 0)
    }

    pub(super) fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|known| known == feature)
    }
}

/// A rate as people write it.
pub(super) fn rate_in_words(bits_per_second: f64) -> String {
    let (value, unit) = match bits_per_second {
        bits if bits >= 1e9 => (bits / 1e9, "Gbit/s"),
        bits if bits >= 1e6 => (bits / 1e6, "Mbit/s"),
        bits => (bits / 1e3, "kbit/s"),
    };
    alloc::format!("{value:.1} {unit}")
}

/// ms of this many bytes at a rate.
pub(super) fn milliseconds_of(bytes: u64, rate_bps: u64) -> f64 {
    bytes as f64 * 8e3 / rate_bps.max(1) as f64
}

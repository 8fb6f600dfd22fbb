//! What a trial is told.

use tidegate_packet::{Rate, Span};

/// What a trial is told: the link, what goes on there, what is kept.
#[derive(Clone, Debug)]
pub struct TrialSettings {
    /// The policy's name, for its reader: the path of its file.
    pub script: String,
    /// The command that gives the same figures, for its reader.
    pub again: String,
    /// The uplink's rate.
    pub up: Rate,
    /// The downlink's rate.
    pub down: Rate,
    /// Round-trip time of the idle path, transmission times not counted.
    pub rtt: Span,
    /// The modem's buffer for the uplink.
    pub buffer: ModemBuffer,
    /// How long each load is measured, after its warm-up.
    pub duration: Span,
    /// The cable from the gateway to the modem.
    pub cable: Rate,
    /// Frames that the device before the modem takes ahead of what it sends; `None`: what the policy says, else 1.
    pub ring: Option<u32>,
    /// The byte queue limit (BQL) of that device, in bytes.
    pub bql: Option<u32>,
    /// What loads the link; nothing named: empty, up, down, both.
    pub load: Vec<TrialLoad>,
    /// Transfers of the load, each way; `None`: as many as each load usually has.
    pub flows: Option<u16>,
    /// What people do and wait for meanwhile.
    pub probes: Vec<TrialProbe>,
    /// Everything goes over IPv6.
    pub ipv6: bool,
    /// The same seed gives the same trial, to the byte.
    pub seed: u64,
    /// What the machine is asked after the last load with the policy, as on its shell.
    pub show: Vec<String>,
}

impl TrialSettings {
    /// A link of these rates; all else as `tidegate try` has it where no one says otherwise: a round trip of 30 ms, a
    /// modem that holds 1.5 s, each load measured for a minute.
    pub fn new(script: impl Into<String>, up: Rate, down: Rate) -> TrialSettings {
        TrialSettings {
            script: script.into(),
            again: String::new(),
            up,
            down,
            rtt: Span::millis(30),
            buffer: ModemBuffer::Time(Span::millis(1500)),
            duration: Span::secs(60),
            cable: Rate(12_500_000),
            ring: None,
            bql: None,
            load: Vec::new(),
            flows: None,
            probes: TrialProbe::ALL.to_vec(),
            ipv6: false,
            seed: 1,
            show: Vec::new(),
        }
    }
}

/// What loads the link; named as flent's tests where they exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrialLoad {
    /// Nothing.
    Empty,
    /// Two TCP uploads (from the gateway itself, when the script has rules for what that serves).
    Up,
    /// Three TCP downloads.
    Down,
    /// Both.
    Both,
    /// A web server on the gateway itself sends.
    Server,
    /// One computer uploads four times, another one once.
    Hosts,
    /// One upload.
    Tcp1up,
    /// One download.
    Tcp1down,
    /// So many uploads (--flows).
    TcpNup,
    /// So many downloads.
    TcpNdown,
    /// Four uploads and four downloads, marked BE, BK, CS5 and EF.
    Rrul,
    /// Four and four, unmarked.
    RrulBe,
    /// UDP at one and a half times the uplink's rate.
    UdpFlood,
    /// Nothing but the probes.
    Ping,
}

impl TrialLoad {
    /// Each with its name and what it is, in the order in which help lists them.
    pub const TABLE: [(TrialLoad, &'static str, &'static str); 14] = [
        (TrialLoad::Empty, "empty", "Nothing"),
        (
            TrialLoad::Up,
            "up",
            "Two TCP uploads (from the gateway itself, when the script has rules for what that serves)",
        ),
        (TrialLoad::Down, "down", "Three TCP downloads"),
        (TrialLoad::Both, "both", "Both"),
        (TrialLoad::Server, "server", "A web server on the gateway itself sends"),
        (TrialLoad::Hosts, "hosts", "One computer uploads four times, another one once"),
        (TrialLoad::Tcp1up, "tcp_1up", "One upload"),
        (TrialLoad::Tcp1down, "tcp_1down", "One download"),
        (TrialLoad::TcpNup, "tcp_nup", "So many uploads (--flows)"),
        (TrialLoad::TcpNdown, "tcp_ndown", "So many downloads"),
        (TrialLoad::Rrul, "rrul", "Four uploads and four downloads, marked BE, BK, CS5 and EF"),
        (TrialLoad::RrulBe, "rrul_be", "Four and four, unmarked"),
        (TrialLoad::UdpFlood, "udp_flood", "UDP at one and a half times the uplink's rate"),
        (TrialLoad::Ping, "ping", "Nothing but the probes"),
    ];

    /// Its name.
    pub fn id(self) -> &'static str {
        let row = Self::TABLE.iter().find(|(known, ..)| *known == self);
        row.map_or("", |(_, id, _)| id)
    }

    /// The one of that name, in capitals or not.
    pub fn named(name: &str) -> Option<TrialLoad> {
        let row = Self::TABLE.iter().find(|(_, id, _)| id.eq_ignore_ascii_case(name));
        row.map(|(known, ..)| *known)
    }
}

/// What people do and wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrialProbe {
    /// ICMP echoes, five a second.
    Ping,
    /// A call.
    Voip,
    /// Names looked up, one a second.
    Dns,
    /// Logins over SSH, one every five seconds.
    Ssh,
    /// A web page, every twelve seconds.
    Web,
    /// Nothing.
    None,
}

impl TrialProbe {
    /// Each with its name and what it is, in the order in which help lists them.
    pub const TABLE: [(TrialProbe, &'static str, &'static str); 6] = [
        (TrialProbe::Ping, "ping", "ICMP echoes, five a second"),
        (TrialProbe::Voip, "voip", "A call"),
        (TrialProbe::Dns, "dns", "Names looked up, one a second"),
        (TrialProbe::Ssh, "ssh", "Logins over SSH, one every five seconds"),
        (TrialProbe::Web, "web", "A web page, every twelve seconds"),
        (TrialProbe::None, "none", "Nothing"),
    ];

    /// What is done unless said otherwise.
    pub const ALL: [TrialProbe; 5] =
        [TrialProbe::Ping, TrialProbe::Voip, TrialProbe::Dns, TrialProbe::Ssh, TrialProbe::Web];

    /// Its name.
    pub fn id(self) -> &'static str {
        let row = Self::TABLE.iter().find(|(known, ..)| *known == self);
        row.map_or("", |(_, id, _)| id)
    }

    /// The one of that name, in capitals or not.
    pub fn named(name: &str) -> Option<TrialProbe> {
        let row = Self::TABLE.iter().find(|(_, id, _)| id.eq_ignore_ascii_case(name));
        row.map(|(known, ..)| *known)
    }
}

/// How much a modem holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModemBuffer {
    /// So many bytes.
    Bytes(u64),
    /// What the uplink sends in this time.
    Time(Span),
}

impl ModemBuffer {
    /// In bytes, before a link of this rate; room for one full frame at least.
    pub fn bytes(self, rate: Rate) -> u64 {
        let bytes = match self {
            ModemBuffer::Bytes(bytes) => bytes,
            ModemBuffer::Time(span) => (u128::from(rate.0) * u128::from(span.0) / 1_000_000_000) as u64,
        };
        bytes.max(1514)
    }
}

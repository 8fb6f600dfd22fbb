//! The settings of a trial.

use tidegate_packet::{Nanos, Rate};
use tidegate_scenario::quantities::span;
use tidegate_sim::Trace;
use tidegate_syntax::quantity::{self, SizeOrTime};

/// The settings of a trial: the link, the traffic, what is kept.
#[derive(Clone, Debug)]
pub struct TrialSettings {
    /// The policy's name, for its reader: the path of its file.
    pub script: String,
    /// The arguments of the policy's script.
    pub args: Vec<String>,
    /// The command that gives the same figures, for its reader.
    pub again: String,
    /// The uplink's rate.
    pub up: Rate,
    /// The downlink's rate.
    pub down: Rate,
    /// The line varies: `up` and `down` are its means.
    pub line: Option<TrialLine>,
    /// Round-trip time of the idle path, transmission times not counted.
    pub rtt: Nanos,
    /// The modem's buffer for the uplink.
    pub buffer: ModemBuffer,
    /// The provider's buffer for the downlink; `None`: what it sends in 250 ms, at least 64 kB.
    pub down_buffer: Option<ModemBuffer>,
    /// How long each load is measured, after its warm-up.
    pub duration: Nanos,
    /// The cable from the gateway to the modem; `None`: the slowest usual one that is faster than the line.
    pub cable: Option<Rate>,
    /// Frames that the device before the modem takes ahead of what it sends; `None`: the policy's value, else
    /// 1.
    pub ring: Option<u32>,
    /// The byte queue limit (BQL) of that device, in bytes.
    pub bql: Option<u32>,
    /// What loads the link; nothing named: idle, up, down, both.
    pub load: Vec<TrialLoad>,
    /// Transfers of the load, each way; `None`: as many as each load usually has.
    pub flows: Option<u16>,
    /// What people do and wait for meanwhile.
    pub probes: Vec<TrialProbe>,
    /// Everything goes over IPv6.
    pub ipv6: bool,
    /// The same seed gives the same trial, to the byte.
    pub seed: u64,
    /// Commands for the machine after the last load with the policy, as on its shell.
    pub show: Vec<String>,
}

impl TrialSettings {
    /// A link of these rates, with the defaults of `tidegate try`: a round trip of 30 ms, a modem that
    /// buffers 1.5 s, each load measured for a minute.
    pub fn new(script: impl Into<String>, up: Rate, down: Rate) -> TrialSettings {
        TrialSettings {
            script: script.into(),
            args: Vec::new(),
            again: String::new(),
            up,
            down,
            line: None,
            rtt: Nanos::millis(30),
            buffer: TrialSettings::usual_buffers(None).0,
            down_buffer: None,
            duration: Nanos::secs(60),
            cable: None,
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

    /// The buffers that a line has where nothing else is asked for: the modem's, and the provider's if it
    /// differs from what any line has.
    pub fn usual_buffers(line: Option<&TrialLine>) -> (ModemBuffer, Option<ModemBuffer>) {
        match line.and_then(|line| line.buffers) {
            Some([up, down]) => (up, Some(down)),
            None => (ModemBuffer::Time(Nanos::millis(1500)), None),
        }
    }

    /// The bytes that the modem and the provider buffer.
    pub(crate) fn buffers(&self) -> [u64; 2] {
        let usual = || tidegate_sim::HomeSpec::new(self.up.as_bits(), self.down.as_bits()).down_buffer;
        [self.buffer.bytes(self.up), self.down_buffer.map_or_else(usual, |buffer| buffer.bytes(self.down))]
    }
}

/// A line that varies over time.
#[derive(Clone, Debug)]
pub struct TrialLine {
    /// What it is, for its reader: `the preset lte`.
    pub name: String,
    /// The options of `tidegate try` that choose it.
    pub options: String,
    /// What the uplink follows; `None`: it stays as it is.
    pub up: Option<Trace>,
    /// What the downlink follows.
    pub down: Option<Trace>,
    /// The buffers before it, up and down, where nothing else is asked for; `None`: those of any line.
    pub buffers: Option<[ModemBuffer; 2]>,
}

impl TrialLine {
    /// Bytes that each direction could carry in the steps of a run, where a recording says so.
    pub(crate) fn capacity(&self, step: Nanos, steps: u64) -> [Vec<u64>; 2] {
        [&self.up, &self.down].map(|trace| {
            let carries = |n| trace.as_ref()?.carries(Nanos(n * step.0), Nanos((n + 1) * step.0));
            (0..steps).map_while(carries).collect()
        })
    }
}

/// An enum whose variants people name: one row each, `Variant "name" "what it is"`. The second text is the
/// variant's documentation and its line in help.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($variant:ident $id:literal $doc:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = $doc] $variant,)*
        }

        impl $name {
            /// Each with its name and what it is, in the order in which help lists them.
            pub const TABLE: &'static [($name, &'static str, &'static str)] =
                &[$(($name::$variant, $id, $doc),)*];

            /// The word for it on the command line and in documents.
            pub const fn id(self) -> &'static str {
                match self { $($name::$variant => $id,)* }
            }

            /// The one of that name, in capitals or not.
            pub fn named(name: &str) -> Option<$name> {
                let old = OLD_NAMES.iter().find(|(old, _)| old.eq_ignore_ascii_case(name));
                let name = old.map_or(name, |(_, new)| new);
                let row = Self::TABLE.iter().find(|(_, id, _)| id.eq_ignore_ascii_case(name));
                row.map(|(known, ..)| *known)
            }
        }
    };
}

/// Names of 0.1.0 that are still read, each with today's.
pub const OLD_NAMES: [(&str, &str); 1] = [("empty", "idle")];

named! {
    /// What loads the link; named as flent's tests where they exist.
    TrialLoad {
        Idle "idle" "No load",
        Up "up" "Two TCP uploads (from the gateway itself, if the script has rules for its own servers)",
        Down "down" "Three TCP downloads",
        Both "both" "Two TCP uploads and three downloads",
        Server "server" "Uploads of a web server on the gateway itself",
        Hosts "hosts" "Four uploads of one computer and one upload of another",
        Tcp1up "tcp_1up" "One upload",
        Tcp1down "tcp_1down" "One download",
        TcpNup "tcp_nup" "N uploads (--flows N)",
        TcpNdown "tcp_ndown" "N downloads (--flows N)",
        Rrul "rrul" "Four uploads and four downloads, marked BE, BK, CS5 and EF",
        RrulBe "rrul_be" "The same, unmarked",
        UdpFlood "udp_flood" "UDP at one and a half times the uplink's rate",
        Ping "ping" "Only the probes",
    }
}

named! {
    /// What people do and wait for.
    TrialProbe {
        Ping "ping" "Pings, five a second",
        Voip "voip" "A telephone call",
        Dns "dns" "DNS queries, one a second",
        Ssh "ssh" "SSH logins, one every five seconds",
        Web "web" "Web pages, one every twelve seconds",
        None "none" "Nothing",
    }
}

impl TrialProbe {
    /// The default probes: all but `None`.
    pub const ALL: [TrialProbe; 5] =
        [TrialProbe::Ping, TrialProbe::Voip, TrialProbe::Dns, TrialProbe::Ssh, TrialProbe::Web];
}

/// How much a modem holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModemBuffer {
    /// So many bytes.
    Bytes(u64),
    /// What the uplink sends in this time.
    Time(Nanos),
}

impl ModemBuffer {
    /// Reads bytes (`24kB`), or a time at its link's rate (`1500ms`).
    ///
    /// # Errors
    /// What to write instead.
    pub fn parse(text: &str) -> Result<ModemBuffer, String> {
        match quantity::size_or_time(text).map_err(|wrong| wrong.to_string())? {
            SizeOrTime::Size(bytes) => Ok(ModemBuffer::Bytes(bytes)),
            SizeOrTime::Time(_) => span(text).map(ModemBuffer::Time),
        }
    }

    /// In bytes, before a link of this rate; room for one full frame at least.
    pub fn bytes(self, rate: Rate) -> u64 {
        let bytes = match self {
            ModemBuffer::Bytes(bytes) => bytes,
            ModemBuffer::Time(span) => (u128::from(rate.0) * u128::from(span.0) / 1_000_000_000) as u64,
        };
        bytes.max(1514)
    }
}

//! A scenario's file, parsed: nodes, links, traffic, the policies compared, and expectations.

use crate::transactions::PageShape;
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;
use tidegate_packet::{KernelModel, Nanos};
use tidegate_policy::LinkDriver;
use tidegate_sim::{CongestionControl, EcnCodepoint, Impairment, LinkFraming, Trace};
use tidegate_syntax::TcVersion;

/// A place in the file.
pub type TextRange = Range<usize>;

/// An experiment to be.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The scenario's file, for messages and for files beside it.
    pub path: PathBuf,
    /// The text of the file, for messages.
    pub text: String,
    /// Its title; may be empty.
    pub title: String,
    /// What it is about; may be empty.
    pub about: String,
    /// Where it comes from: a paper, a page.
    pub source: Option<String>,
    /// How long is measured, after the warm-up.
    pub duration: Nanos,
    /// How long the traffic runs before it is measured.
    pub warm_up: Nanos,
    /// The seed of the first repeat; each has the next.
    pub seed: u64,
    /// How often each case is run.
    pub repeats: u32,
    /// The step of all series.
    pub step: Nanos,
    /// Irregularity of hosts, per packet.
    pub jitter: Nanos,
    /// The nodes of the network.
    pub nodes: Vec<ScenarioNode>,
    /// The links between them.
    pub cables: Vec<ScenarioLink>,
    /// The policies to compare.
    pub policies: Vec<ScenarioPolicy>,
    /// The loads to compare them under.
    pub loads: Vec<ScenarioLoad>,
    /// What happens in every run.
    pub at: Vec<TimelineEntry>,
    /// The cases, by the numbers of policy and load.
    pub cases: Vec<(usize, usize)>,
    /// What is expected of the figures.
    pub expect: Vec<Expectation>,
    /// The machine that this computer's kernel is; `None`: all are models.
    pub kernel: Option<usize>,
}

impl Scenario {
    /// Leaves only cases of these policies and loads, by name; of none named, all.
    ///
    /// # Errors
    /// A name that is none, with those that are; or no case is left.
    pub fn keep(&mut self, policies: &[String], loads: &[String]) -> Result<(), String> {
        let known = |names: &[String], all: Vec<&str>, what: &str| match names
            .iter()
            .find(|name| !all.contains(&name.as_str()))
        {
            Some(name) => Err(format!("unknown {what} `{name}`; known: {}", all.join(", "))),
            None => Ok(()),
        };
        known(policies, self.policies.iter().map(|policy| policy.name.as_str()).collect(), "policy")?;
        known(loads, self.loads.iter().map(|load| load.name.as_str()).collect(), "load")?;
        let meant = |names: &[String], name: &String| names.is_empty() || names.contains(name);
        let Scenario { policies: all, loads: every, cases, .. } = self;
        cases.retain(|(p, l)| meant(policies, &all[*p].name) && meant(loads, &every[*l].name));
        if cases.is_empty() { Err("no case is left; --list shows all".into()) } else { Ok(()) }
    }

    /// The node of a device of the machine that the kernel is: numbered beyond those of the file.
    pub fn port(&self, device: usize) -> usize {
        self.nodes.len() + device
    }

    /// Where in the network a cable ends.
    pub fn end_in_network(&self, end: LinkEnd) -> LinkEnd {
        match end.device {
            Some(device) if self.kernel == Some(end.node) => {
                LinkEnd { node: self.port(device), device: None }
            }
            _ => end,
        }
    }

    /// A device of the kernel's machine as documents call it.
    pub fn device_name(&self, device: usize) -> String {
        let name = |node: usize| {
            format!("{}:{}", self.nodes[node].name, self.nodes[node].machine.devices[device].name)
        };
        self.kernel.map(name).unwrap_or_default()
    }

    /// The cable in a device of the kernel's machine, and whether what leaves there goes up.
    pub fn wire(&self, device: usize) -> Option<(usize, bool)> {
        let node = self.kernel?;
        self.cables.iter().enumerate().find_map(|(number, cable)| {
            let at = cable.ends.iter().position(|end| *end == LinkEnd { node, device: Some(device) })?;
            Some((number, at + 1 < cable.ends.len()))
        })
    }

    /// How many devices the kernel's machine has.
    pub fn ports(&self) -> usize {
        self.kernel.map_or(0, |node| self.nodes[node].machine.devices.len())
    }
    /// How long a run lasts, settling and what comes after the window left out.
    pub fn end(&self) -> Nanos {
        self.warm_up + self.duration
    }

    /// The measured window.
    pub fn window(&self) -> (u64, u64) {
        (self.warm_up.0, self.end().0)
    }
}

/// A node of the network.
#[derive(Clone, Debug)]
pub struct ScenarioNode {
    /// The node's name in the scenario.
    pub name: String,
    /// What it is.
    pub role: NodeRole,
    /// Its address, if it has one of its own.
    pub address: Option<IpAddr>,
    /// How its TCP behaves.
    pub tcp: TcpOptions,
    /// What a machine is.
    pub machine: MachineSetup,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// Traffic begins or ends here.
    Host,
    /// It has devices, which may have policies.
    Machine,
    /// Packets pass.
    Relay,
}

/// What a machine is beside its name.
#[derive(Clone, Debug, Default)]
pub struct MachineSetup {
    /// Its devices, in the order in which they are named.
    pub devices: Vec<ScenarioDevice>,
    /// The kernel of the machine.
    pub kernel: KernelModel,
    /// Its tc.
    pub tc: TcVersion,
    /// Ticks per second of its kernel; `None`: the usual.
    pub hz: Option<u32>,
    /// Commands of every policy.
    pub setup: Vec<MachineCommand>,
}

/// A device of a machine.
#[derive(Clone, Debug)]
pub struct ScenarioDevice {
    /// The device's name on its machine.
    pub name: String,
    /// What kind it is.
    pub kind: LinkDriver,
    /// The device that it is stacked on.
    pub on: Option<String>,
    /// Its address and the length of the prefix.
    pub address: Option<(IpAddr, u8)>,
    /// Bytes of the largest network packet; `None`: as usual for its kind.
    pub mtu: Option<u32>,
    /// Its `txqueuelen`, in packets; `None`: as usual for its kind.
    pub txqueuelen: Option<u32>,
    /// A cable is in it.
    pub plugged: bool,
}

/// How a host's TCP behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpOptions {
    /// The congestion control.
    pub control: Option<CongestionControl>,
    /// How ECN is used.
    pub ecn: Option<EcnCodepoint>,
    /// The largest receive window, in bytes.
    pub receive_window: Option<u64>,
    /// The initial congestion window, in segments.
    pub initial_window: Option<u32>,
    /// Are acknowledgements delayed?
    pub delayed_ack: Option<bool>,
    /// The send buffer, in bytes.
    pub send_buffer: Option<u64>,
    /// Does TCP small queues (TSQ) limit what a sender queues?
    pub small_queues: Option<bool>,
}

impl TcpOptions {
    /// The congestion control in force.
    pub fn control(&self) -> CongestionControl {
        self.control.unwrap_or(CongestionControl::Cubic)
    }

    /// The ECN codepoint of data packets, where the receiver does not refuse it: the one given, or the one
    /// that the congestion control needs.
    pub fn ecn(&self) -> EcnCodepoint {
        self.ecn.unwrap_or(match self.control() {
            CongestionControl::Dctcp => EcnCodepoint::Ect0,
            CongestionControl::Prague => EcnCodepoint::Ect1,
            _ => EcnCodepoint::Off,
        })
    }

    /// The options given here, with those of `other` where none is.
    pub fn or(self, other: TcpOptions) -> TcpOptions {
        TcpOptions {
            control: self.control.or(other.control),
            ecn: self.ecn.or(other.ecn),
            receive_window: self.receive_window.or(other.receive_window),
            initial_window: self.initial_window.or(other.initial_window),
            delayed_ack: self.delayed_ack.or(other.delayed_ack),
            send_buffer: self.send_buffer.or(other.send_buffer),
            small_queues: self.small_queues.or(other.small_queues),
        }
    }
}

/// What joins nodes.
#[derive(Clone, Debug)]
pub struct ScenarioLink {
    /// The link's name in the scenario.
    pub name: String,
    /// Its ends: two, or several that share it; the last is the hub.
    pub ends: Vec<LinkEnd>,
    /// Bytes of the largest network packet.
    pub mtu: Option<u32>,
    /// Towards the last end.
    pub up: LinkDirection,
    /// From the last end.
    pub down: LinkDirection,
}

/// Where a cable ends: a node, and of a machine the number of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    /// The number of the node.
    pub node: usize,
    /// Of a machine the number of its device.
    pub device: Option<usize>,
}

/// One direction of a cable, in the properties that are given.
#[derive(Clone, Debug, Default)]
pub struct LinkDirection {
    /// Bits per second.
    pub rate: Option<u64>,
    /// 0: no cap.
    pub packet_rate: Option<u64>,
    /// The one-way propagation delay.
    pub delay: Option<Nanos>,
    /// The largest extra delay of a packet.
    pub jitter: Option<Nanos>,
    /// What the queue before it holds.
    pub buffer: Option<BufferSize>,
    /// What the link adds to each frame.
    pub framing: Option<LinkFraming>,
    /// Frames in the transmit ring.
    pub ring: Option<u32>,
    /// The byte queue limit (BQL), in bytes.
    pub bql: Option<u32>,
    /// Loss, reordering, varying delay.
    pub impairment: Option<Impairment>,
    /// A recorded rate, instead of `rate`.
    pub trace: Option<Trace>,
}

impl LinkDirection {
    /// Its rate, of a recorded one the mean; `None`: without limit.
    pub fn mean_rate(&self) -> Option<u64> {
        self.trace.as_ref().and_then(Trace::mean_rate).or(self.rate)
    }

    /// The properties given here, with those of `other` where none is.
    #[must_use]
    pub fn or(self, other: &LinkDirection) -> LinkDirection {
        let other = other.clone();
        LinkDirection {
            rate: self.rate.or(other.rate),
            packet_rate: self.packet_rate.or(other.packet_rate),
            delay: self.delay.or(other.delay),
            jitter: self.jitter.or(other.jitter),
            buffer: self.buffer.or(other.buffer),
            framing: self.framing.or(other.framing),
            ring: self.ring.or(other.ring),
            bql: self.bql.or(other.bql),
            impairment: self.impairment.or(other.impairment),
            trace: self.trace.or(other.trace),
        }
    }
}

/// What a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// So many bytes.
    Bytes(u64),
    /// So many packets.
    Packets(u32),
    /// What the line sends in this time.
    Time(Nanos),
}

/// A policy to compare.
#[derive(Clone, Debug)]
pub struct ScenarioPolicy {
    /// The policy's name in the scenario.
    pub name: String,
    /// Its title, for tables.
    pub title: String,
    /// The policy of each machine.
    pub machines: Vec<(usize, PolicySource)>,
    /// What its links are like, where that differs: the number of the cable, up, down.
    pub links: Vec<(usize, LinkDirection, LinkDirection)>,
    /// What happens only under this policy.
    pub at: Vec<TimelineEntry>,
}

/// Where a machine's policy comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PolicySource {
    /// In the scenario itself.
    Commands(Vec<MachineCommand>),
    /// In a file, of whatever kind `tidegate check` reads.
    File {
        /// The file's path.
        path: PathBuf,
        /// Arguments for a script.
        args: Vec<String>,
        /// Where it is named.
        at: TextRange,
    },
}

/// A command of a shell, and its place in the file.
#[derive(Clone, Debug)]
pub struct MachineCommand {
    /// The tool and its arguments.
    pub words: Vec<String>,
    /// Its place in the scenario's file.
    pub at: TextRange,
}

impl MachineCommand {
    /// As it is typed.
    pub fn line(&self) -> String {
        self.words.iter().map(|word| crate::shell::quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Something that happens at a moment of a run.
#[derive(Clone, Debug)]
pub struct TimelineEntry {
    /// When, from the beginning of the run.
    pub time: Nanos,
    /// What happens.
    pub what: TimelineEvent,
}

/// What happens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TimelineEvent {
    /// A command on a machine.
    Command {
        /// The number of its node; [`usize::MAX`]: every machine.
        machine: usize,
        /// The command.
        command: MachineCommand,
    },
    /// A machine runs a script: its commands one after the other, so far apart.
    Script {
        /// The number of its node.
        machine: usize,
        /// The script's path.
        path: PathBuf,
        /// The script's arguments.
        args: Vec<String>,
        /// The time from one command to the next.
        pace: Nanos,
        /// Where it is named.
        at: TextRange,
    },
    /// A change of a link: up and down, each in the properties that are given.
    Link {
        /// The number of the link.
        cable: usize,
        /// Up and down.
        lines: Box<[LinkDirection; 2]>,
    },
}

/// The traffic.
#[derive(Clone, Debug)]
pub struct ScenarioLoad {
    /// The load's name in the scenario.
    pub name: String,
    /// Its title, for tables.
    pub title: String,
    /// The test of flent's that it is.
    pub test: Option<String>,
    /// The traffic of the load.
    pub items: Vec<TrafficItem>,
    /// Programs on real hosts.
    pub programs: Vec<HostProgram>,
}

/// A program of the user's on a real host.
#[derive(Clone, Debug)]
pub struct HostProgram {
    /// The number of the node it runs on.
    pub node: usize,
    /// The line, as a shell reads it.
    pub command: String,
    /// When it starts, from the beginning of the run.
    pub start: Nanos,
    /// When it is stopped if it still runs; `None`: at the end.
    pub stop: Option<Nanos>,
    /// Its place in the scenario's file.
    pub at: Range<usize>,
}

/// An item of traffic.
#[derive(Clone, Debug)]
pub struct TrafficItem {
    /// Its name in figures.
    pub id: String,
    /// Its title, for charts.
    pub title: String,
    /// The number of the node that sends, or sends the requests.
    pub from: usize,
    /// The number of the other node.
    pub to: usize,
    /// When it starts, from the beginning of the run.
    pub start: Nanos,
    /// No start is given: it need not be the instant at which others start.
    pub anywhere: bool,
    /// When it stops; `None`: at the end of the run.
    pub stop: Option<Nanos>,
    /// The DS field.
    pub dsfield: u8,
    /// The port that is called.
    pub port: u16,
    /// What kind of traffic it is.
    pub what: TrafficKind,
    /// Its place in the scenario's file.
    pub at: TextRange,
}

/// What one thing is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TrafficKind {
    /// A transfer of so many bytes, or without an end; `login`: ssh's login comes first.
    Tcp {
        /// How many at once.
        count: u32,
        /// Payload of each; `None`: it has no end.
        bytes: Option<u64>,
        /// How its TCP behaves, where that differs from its hosts'.
        tcp: TcpOptions,
        /// Does the receiver open the connection, as for a download?
        receiver_opens: bool,
        /// Is there an SSH login first, as for scp?
        login: bool,
        /// Are its congestion window and round trips recorded?
        record: bool,
    },
    /// Datagrams at an interval.
    Udp {
        /// Payload bytes of each.
        payload: u32,
        /// From one datagram to the next.
        every: Nanos,
        /// How regularly they leave.
        pace: DatagramPacing,
    },
    /// Echo requests.
    Ping {
        /// Payload bytes of each.
        payload: u32,
        /// From one ping to the next.
        every: Nanos,
        /// How many; `None`: until the end.
        count: Option<u64>,
    },
    /// A question and its answer over TCP.
    Request {
        /// From one request to the next.
        every: Nanos,
        /// Payload bytes of the question.
        request: u32,
        /// Payload bytes of the answer.
        reply: u32,
    },
    /// DNS look-ups.
    Dns {
        /// From one lookup to the next.
        every: Nanos,
    },
    /// SSH logins.
    Ssh {
        /// From one login to the next.
        every: Nanos,
    },
    /// Web pages; without a shape as most are today.
    Web {
        /// From one page to the next.
        every: Nanos,
        /// What a page is made of.
        shape: Option<PageShape>,
        /// The timeout of a page.
        patience: Option<Nanos>,
    },
}

/// How regularly datagrams leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DatagramPacing {
    /// To the nanosecond.
    #[default]
    Even,
    /// Each late by something up to this.
    Late(Nanos),
    /// As a Poisson process.
    Poisson,
}

/// A figure that is expected.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// What the expectation is called in results in the scenario.
    pub id: String,
    /// What it is, in words.
    pub what: String,
    /// The figure that is expected.
    pub figure: FigureRef,
    /// The figure is divided by this one.
    pub over: Option<FigureRef>,
    /// The published value, in SI units.
    pub published: Option<f64>,
    /// The least and the largest value that are accepted.
    pub within: (f64, f64),
    /// The units that its values were written with, as figures have them (`%`: a share), and where.
    pub units: Vec<(&'static str, Range<usize>)>,
    /// Must it hold?
    pub gate: bool,
    /// Why it is not within its bounds, where that is known.
    pub why: Option<String>,
}

/// A figure of a case.
#[derive(Clone, Debug)]
pub struct FigureRef {
    /// Its name: `ping.p95`.
    pub name: String,
    /// The number of the policy.
    pub policy: usize,
    /// The number of the load.
    pub load: usize,
    /// Another window than the measured one.
    pub between: Option<(Nanos, Nanos)>,
    /// Its place in the scenario's file.
    pub at: TextRange,
}

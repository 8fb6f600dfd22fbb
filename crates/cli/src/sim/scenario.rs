//! What a scenario's file says, understood: who is there, what joins them, what goes on, what is compared, what is expected.

use crate::errands::Shape;
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;
use tidegate_packet::{Dissector, Span};
use tidegate_policy::LinkKind;
use tidegate_sim::{CongestionControl, Ecn, Framing, Impairment, Trace};

/// A place in the file.
pub(super) type Place = Range<usize>;

/// An experiment to be.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) title: String,
    pub(super) about: String,
    pub(super) source: Option<String>,
    pub(super) duration: Span,
    pub(super) warm_up: Span,
    pub(super) seed: u64,
    pub(super) repeats: u32,
    pub(super) step: Span,
    /// Irregularity of hosts, per packet.
    pub(super) jitter: Span,
    pub(super) nodes: Vec<Node>,
    pub(super) cables: Vec<Cable>,
    pub(super) policies: Vec<Policy>,
    pub(super) loads: Vec<Load>,
    /// What happens in every run.
    pub(super) at: Vec<At>,
    /// The cases, by the numbers of policy and load.
    pub(super) cases: Vec<(usize, usize)>,
    pub(super) expect: Vec<Expected>,
    /// The machine that this computer's kernel is; `None`: all are models.
    pub(super) kernel: Option<usize>,
    /// Where the packets of the run are written, if somebody asks.
    pub(super) packets: Option<super::packets::Wanted>,
}

impl Scenario {
    /// The node that stands for a device of the machine that the kernel is: beyond those of the file.
    pub(super) fn port(&self, device: usize) -> usize {
        self.nodes.len() + device
    }

    /// Where in the network a cable ends.
    pub(super) fn end_in_network(&self, end: End) -> End {
        match end.device {
            Some(device) if self.kernel == Some(end.node) => End { node: self.port(device), device: None },
            _ => end,
        }
    }

    /// A device of the kernel's machine as documents call it.
    pub(super) fn device_name(&self, device: usize) -> String {
        let name = |node: usize| format!("{}:{}", self.nodes[node].name, self.nodes[node].machine.devices[device].name);
        self.kernel.map(name).unwrap_or_default()
    }

    /// The cable in a device of the kernel's machine, and whether what leaves there goes up.
    pub(super) fn wire(&self, device: usize) -> Option<(usize, bool)> {
        let node = self.kernel?;
        self.cables.iter().enumerate().find_map(|(number, cable)| {
            let at = cable.ends.iter().position(|end| *end == End { node, device: Some(device) })?;
            Some((number, at + 1 < cable.ends.len()))
        })
    }

    /// How many devices the kernel's machine has.
    pub(super) fn ports(&self) -> usize {
        self.kernel.map_or(0, |node| self.nodes[node].machine.devices.len())
    }
    /// How long a run lasts, settling and what comes after the window left out.
    pub(super) fn end(&self) -> Span {
        self.warm_up + self.duration
    }

    /// The measured window.
    pub(super) fn window(&self) -> (u64, u64) {
        (self.warm_up.0, self.end().0)
    }
}

/// Somebody in the network.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) address: Option<IpAddr>,
    pub(super) tcp: Tcp,
    /// What a machine is.
    pub(super) machine: Machine,
}

/// What somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Traffic begins or ends here.
    Host,
    /// It has devices, which may have policies.
    Machine,
    /// Packets pass.
    Relay,
}

/// What a machine is beside its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    pub(super) devices: Vec<Device>,
    pub(super) dissector: Dissector,
    pub(super) hz: Option<u32>,
    /// Commands of every policy.
    pub(super) setup: Vec<Command>,
}

/// A device of a machine.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) kind: LinkKind,
    pub(super) on: Option<String>,
    pub(super) address: Option<(IpAddr, u8)>,
    pub(super) mtu: Option<u32>,
    pub(super) txqueuelen: Option<u32>,
    /// A cable is in it.
    pub(super) plugged: bool,
}

/// How a host's TCP behaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tcp {
    pub(super) control: Option<CongestionControl>,
    pub(super) ecn: Option<Ecn>,
    pub(super) receive_window: Option<u64>,
    pub(super) initial_window: Option<u32>,
    pub(super) delayed_ack: Option<bool>,
    pub(super) send_buffer: Option<u64>,
    pub(super) small_queues: Option<bool>,
}

impl Tcp {
    /// The congestion control in force.
    pub(super) fn control(&self) -> CongestionControl {
        self.control.unwrap_or(CongestionControl::Cubic)
    }

    /// What data packets say in their ECN field, where the receiver does not refuse it: what was asked for, or what the congestion
    /// control needs.
    pub(super) fn ecn(&self) -> Ecn {
        self.ecn.unwrap_or(match self.control() {
            CongestionControl::Dctcp => Ecn::Ect0,
            CongestionControl::Prague => Ecn::Ect1,
            _ => Ecn::Off,
        })
    }

    /// What is said here, else what `other` says.
    pub(super) fn or(self, other: Tcp) -> Tcp {
        Tcp {
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
pub(super) struct Cable {
    pub(super) name: String,
    pub(super) ends: Vec<End>,
    /// Octets of the largest network packet.
    pub(super) mtu: Option<u32>,
    pub(super) up: Line,
    pub(super) down: Line,
}

/// Where a cable ends: a node, and of a machine the number of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) node: usize,
    pub(super) device: Option<usize>,
}

/// One direction of a cable, as far as it is told.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) rate: Option<u64>,
    /// 0: no cap.
    pub(super) packet_rate: Option<u64>,
    pub(super) delay: Option<Span>,
    pub(super) jitter: Option<Span>,
    pub(super) buffer: Option<Buffer>,
    pub(super) framing: Option<Framing>,
    pub(super) ring: Option<u32>,
    pub(super) bql: Option<u32>,
    pub(super) impairment: Option<Impairment>,
    pub(super) trace: Option<Trace>,
}

/// What a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffer {
    Bytes(u64),
    Packets(u32),
    /// What the line sends in this time.
    Time(Span),
}

/// A policy to compare.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) title: String,
    /// What each machine is told.
    pub(super) machines: Vec<(usize, Source)>,
    /// What its links are like, where that differs: the number of the cable, up, down.
    pub(super) links: Vec<(usize, Line, Line)>,
    pub(super) at: Vec<At>,
}

/// Where a machine's policy stands.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// In the scenario itself.
    Commands(Vec<Command>),
    /// In a file, of whatever kind `tidegate check` reads.
    File { path: PathBuf, args: Vec<String>, at: Place },
}

/// A command of a shell, and its place in the file.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
    pub(super) at: Place,
}

impl Command {
    /// As it is typed.
    pub(super) fn line(&self) -> String {
        self.words.iter().map(|word| crate::trial::quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Something that happens at a moment of a run.
#[derive(Clone, Debug)]
pub(super) struct At {
    pub(super) time: Span,
    pub(super) what: Happening,
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    /// A machine is told something.
    Command { machine: usize, command: Command },
    /// A machine runs a script: its commands one after the other, so far apart.
    Script { machine: usize, path: PathBuf, args: Vec<String>, pace: Span, at: Place },
    /// A link changes: up and down, each as far as it is told.
    Link { cable: usize, lines: Box<[Line; 2]> },
}

/// What goes on.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) name: String,
    pub(super) title: String,
    /// The test of flent's that it is.
    pub(super) test: Option<String>,
    pub(super) items: Vec<Item>,
    pub(super) programs: Vec<Program>,
}

/// A program of the user's on a real host.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) node: usize,
    /// The line, as a shell reads it.
    pub(super) command: String,
    pub(super) start: Span,
    /// When it is stopped if it still runs; `None`: at the end.
    pub(super) stop: Option<Span>,
    /// Where it stands in the file.
    pub(super) at: Range<usize>,
}

/// One thing that goes on.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) start: Span,
    /// Nobody said when it starts: it need not be the instant in which others do.
    pub(super) anywhere: bool,
    pub(super) stop: Option<Span>,
    /// The DS field.
    pub(super) dsfield: u8,
    /// The port that is called.
    pub(super) port: u16,
    pub(super) what: What,
    pub(super) at: Place,
}

/// What one thing is.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// A transfer of so many bytes, or without an end; `login`: what ssh says comes first.
    Tcp {
        count: u32,
        bytes: Option<u64>,
        tcp: Tcp,
        receiver_opens: bool,
        login: bool,
        record: bool,
    },
    /// Datagrams at an interval.
    Udp {
        payload: u32,
        every: Span,
        pace: Pace,
    },
    /// Echoes.
    Ping {
        payload: u32,
        every: Span,
        count: Option<u64>,
    },
    /// A question and its answer over TCP.
    Request {
        every: Span,
        request: u32,
        reply: u32,
    },
    Dns {
        every: Span,
    },
    Ssh {
        every: Span,
    },
    /// Pages; without a shape as most are today.
    Web {
        every: Span,
        shape: Option<Shape>,
        patience: Option<Span>,
    },
}

/// How regularly datagrams leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pace {
    /// To the nanosecond.
    #[default]
    Even,
    /// Each late by something up to this.
    Late(Span),
    /// As a Poisson process.
    Poisson,
}

/// A figure that is expected.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) id: String,
    pub(super) what: String,
    pub(super) figure: Asked,
    /// The figure is divided by this one.
    pub(super) over: Option<Asked>,
    pub(super) published: Option<f64>,
    pub(super) within: (f64, f64),
    pub(super) gate: bool,
    pub(super) why: Option<String>,
}

/// A figure of a case.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) policy: usize,
    pub(super) load: usize,
    /// Another window than the measured one.
    pub(super) between: Option<(Span, Span)>,
    pub(super) at: Place,
}

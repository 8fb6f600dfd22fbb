//! The packets of a capture as they arrive at the gateway: which way, in which flow, split where they are too
//! long.

use super::frames::{self, Ip, LeftOut};
use super::settings::CaptureSettings;
use super::side::{DirectionRule, Looking, as_address};
use super::split::{Piece, Splitter};
use std::collections::BTreeMap;
use tidegate_measure::replayed::CaptureSummary;
use tidegate_packet::Head;
use tidegate_packet::header::ethertype;
use tidegate_pcap::CaptureDirection;

/// Flows that are distinguished; what is beyond is one.
const MOST_FLOWS: usize = 65_536;

/// A packet is not believed to come so long after the first: a year, ns.
const LONGEST: u64 = 365 * 86_400 * 1_000_000_000;

/// What a first reading of a capture found.
pub struct Surveyed {
    /// Which packets go out, and which come in.
    pub rule: DirectionRule,
    /// When its first packet was captured.
    pub began: u64,
    /// From its first packet to its last, in ns.
    pub duration: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// `pcap` or `pcapng`.
    pub format: &'static str,
    /// Where and why reading ended before the file did.
    pub broken: Option<String>,
}

/// A capture, read for the first time: how long it is, and which way its packets go.
#[derive(Default)]
pub struct Survey {
    looking: Looking,
    ends: Option<(u64, u64)>,
}

impl Survey {
    /// A packet of it.
    pub fn packet(&mut self, packet: &tidegate_pcap::CapturedPacket<'_>) {
        if let Some(time) = packet.time {
            let (first, last) = self.ends.unwrap_or((time, time));
            let believed = time.saturating_sub(first) <= LONGEST;
            self.ends = Some((first, if believed { last.max(time) } else { last }));
        }
        if let Ok(ip) = frames::open(packet) {
            self.looking.see(&ip);
        }
    }

    /// All of it was read: this many bytes of a format, to where it is `broken` if it is.
    pub fn finish(
        self,
        options: &CaptureSettings,
        bytes: u64,
        format: &'static str,
        broken: Option<&tidegate_pcap::Broken>,
    ) -> Surveyed {
        let (began, last) = self.ends.unwrap_or_default();
        let rule = if options.from.is_empty() {
            self.looking.rule()
        } else {
            DirectionRule::Ours(options.from.clone())
        };
        Surveyed {
            rule,
            began,
            duration: last - began,
            bytes,
            format,
            broken: broken
                .map(|broken| format!("{broken}; the {} packets before it are used", broken.packets)),
        }
    }
}

/// A packet that arrives.
pub struct CapturedArrival {
    /// After the first packet, ns.
    pub at: u64,
    /// Which way it goes.
    pub way: CaptureDirection,
    /// The machine itself sends it, or gets it.
    pub local: bool,
    /// The number of its flow.
    pub flow: u32,
    /// The packet's headers.
    pub head: Head,
    /// Bytes of the IP packet.
    pub len: u32,
}

/// Flows by number, each by the addresses, ports and protocol of its packets.
#[derive(Default)]
pub struct Flows {
    known: BTreeMap<CapturedFlowKey, u32>,
    /// The flows, by number.
    pub keys: Vec<CapturedFlowKey>,
}

/// What the packets of a flow have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturedFlowKey {
    /// The source address; of IPv4 as an IPv6-mapped one.
    pub source: [u8; 16],
    /// The destination address, IPv4 as IPv4-mapped.
    pub destination: [u8; 16],
    /// The protocol above IP.
    pub protocol: u8,
    /// The ports; 0 where there are none.
    pub ports: (u16, u16),
}

impl CapturedFlowKey {
    /// Of a packet.
    pub fn of(ip: &Ip<'_>) -> CapturedFlowKey {
        CapturedFlowKey {
            source: ip.source(),
            destination: ip.destination(),
            protocol: ip.protocol(),
            ports: ip.ports().unwrap_or_default(),
        }
    }

    /// The other direction.
    pub fn back(self) -> CapturedFlowKey {
        let CapturedFlowKey { source, destination, protocol, ports } = self;
        CapturedFlowKey { source: destination, destination: source, protocol, ports: (ports.1, ports.0) }
    }
}

impl std::fmt::Display for CapturedFlowKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = |address: &[u8; 16], port: u16| match (as_address(address), port) {
            (address, 0) => address.to_string(),
            (std::net::IpAddr::V6(address), port) => format!("[{address}]:{port}"),
            (address, port) => format!("{address}:{port}"),
        };
        let protocol = tidegate_inspect::bytes::protocol_name(self.protocol);
        write!(f, "{protocol} {} > {}", end(&self.source, self.ports.0), end(&self.destination, self.ports.1))
    }
}

impl Flows {
    fn number(&mut self, key: CapturedFlowKey) -> u32 {
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let number = self.keys.len() as u32;
        if self.keys.len() >= MOST_FLOWS {
            return number;
        }
        self.keys.push(key);
        self.known.insert(key, number);
        number
    }

    /// A flow in words.
    pub fn name(&self, flow: u32) -> String {
        self.keys.get(flow as usize).map_or_else(|| "further flows".to_owned(), CapturedFlowKey::to_string)
    }
}

/// Gives the arrivals of a capture, one after the other, and counts what is left out.
pub(crate) struct Arrivals<'s> {
    surveyed: &'s Surveyed,
    options: &'s CaptureSettings,
    /// Bytes of the longest packet that the device carries.
    mtu: u32,
    splitter: Splitter,
    pub flows: Flows,
    left_out: BTreeMap<LeftOut, u64>,
    packets: u64,
    out: (u64, u64),
    inward: (u64, u64),
    split: (u64, u64),
    /// Packets that follow later ones in the file.
    late: u64,
    latest: u64,
}

impl<'s> Arrivals<'s> {
    pub(crate) fn new(surveyed: &'s Surveyed, options: &'s CaptureSettings, mtu: u32) -> Arrivals<'s> {
        Arrivals {
            surveyed,
            options,
            mtu,
            splitter: Splitter::default(),
            flows: Flows::default(),
            left_out: BTreeMap::new(),
            packets: 0,
            out: (0, 0),
            inward: (0, 0),
            split: (0, 0),
            late: 0,
            latest: 0,
        }
    }

    /// What a packet of the capture comes to: one arrival, or several where it was too long for one frame.
    pub(crate) fn take(
        &mut self,
        packet: &tidegate_pcap::CapturedPacket<'_>,
        mut arrive: impl FnMut(CapturedArrival),
    ) {
        self.packets += 1;
        match self.taken(packet) {
            Ok(arrivals) => arrivals.into_iter().for_each(|arrival| {
                let count =
                    if arrival.way == CaptureDirection::Out { &mut self.out } else { &mut self.inward };
                *count = (count.0 + 1, count.1 + u64::from(arrival.len) + Head::ETHERNET as u64);
                arrive(arrival);
            }),
            Err(why) => *self.left_out.entry(why).or_default() += 1,
        }
    }

    fn taken(&mut self, packet: &tidegate_pcap::CapturedPacket<'_>) -> Result<Vec<CapturedArrival>, LeftOut> {
        let ip = frames::open(packet)?;
        let way = self.surveyed.rule.way(&ip)?;
        // What has no time of its own comes with the one before.
        let at = packet.time.map_or(self.latest, |time| time.saturating_sub(self.surveyed.began));
        if at > LONGEST {
            return Err(LeftOut::TooLate);
        }
        self.late += u64::from(at < self.latest);
        self.latest = at.max(self.latest);
        self.splitter.learn(&ip);
        let pieces = if ip.len > self.mtu {
            let pieces = self.splitter.split(&ip, self.mtu).ok_or(LeftOut::TooLong)?;
            self.split = (self.split.0 + 1, self.split.1 + pieces.len() as u64);
            pieces
        } else {
            vec![Piece { front: ip.bytes.to_vec(), len: ip.len }]
        };
        let flow = self.flows.number(CapturedFlowKey::of(&ip));
        let own = if way == CaptureDirection::Out { ip.source() } else { ip.destination() };
        let local = self.options.local.iter().any(|prefix| prefix.contains(&own));
        let kind = if ip.v6 { ethertype::IPV6 } else { ethertype::IPV4 };
        let arrival = |piece: Piece| {
            let mut head = Head::from_network(kind, &piece.front);
            // Its checksums count as right: a card may have had them to fill in.
            head.sum_header();
            CapturedArrival { at: self.latest, way, local, flow, head, len: piece.len }
        };
        Ok(pieces.into_iter().map(arrival).collect())
    }

    /// The document's facts about the capture.
    pub(crate) fn summary(&self) -> CaptureSummary {
        CaptureSummary {
            file: self.options.file.clone(),
            format: self.surveyed.format.to_owned(),
            began: self.surveyed.began,
            duration: self.surveyed.duration,
            packets: self.packets,
            rule: self.surveyed.rule.words(),
            out: self.out,
            inward: self.inward,
            left_out: self.left_out.iter().map(|(why, count)| (why.words(), *count)).collect(),
            split: self.split,
            broken: self.surveyed.broken.clone(),
        }
    }

    /// Packets that follow later ones in the file.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }
}

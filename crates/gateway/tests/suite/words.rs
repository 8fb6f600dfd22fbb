//! A machine that takes the tools' command lines, and packets to send through it.

use std::net::IpAddr;
use tidegate_gateway::{
    DeviceId, DeviceSpec, EgressPath, Gateway, GatewayContext, ReceiveOutcome, XmitStatus,
};
use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, Meta, Pkt, Pool, Seeded, Time};
use tidegate_policy::{LinkDriver, LinkOp, Op};
use tidegate_syntax::ip::{self, IpCommand};
use tidegate_syntax::iptables::{self, IptCommand};
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat, TcCommand};
use tidegate_syntax::{Device, Env};

/// Bytes of the frames on Ethernet, by default.
pub(crate) const FRAME: u32 = 114;

pub(crate) struct Machine {
    pub(crate) gateway: Gateway,
    pub(crate) pool: Pool,
    pub(crate) random: Seeded,
    pub(crate) now: Time,
}

/// What a packet is after its way through the machine.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) frame_len: u32,
    pub(crate) ethertype: u16,
    pub(crate) source: (IpAddr, u16),
    pub(crate) destination: (IpAddr, u16),
    pub(crate) mark: u32,
}

impl Machine {
    /// A machine with these devices, each of the kind that its name implies.
    pub(crate) fn new(devices: &[&str]) -> Machine {
        let mut gateway = Gateway::new();
        for name in devices {
            gateway.add_device(name, DeviceSpec::of(&LinkDriver::of_name(name)));
        }
        Machine { gateway, pool: Pool::new(256), random: Seeded::new(1), now: Time(1) }
    }

    pub(crate) fn world(&mut self) -> (&mut Gateway, GatewayContext<'_>) {
        (&mut self.gateway, GatewayContext { now: self.now, pool: &mut self.pool, random: &mut self.random })
    }

    pub(crate) fn id(&self, name: &str) -> DeviceId {
        self.gateway.device(name).expect(name)
    }

    pub(crate) fn op(&mut self, op: &Op) -> String {
        let (gateway, world) = self.world();
        gateway.apply(world, op).map_or_else(|error| error.to_string(), Option::unwrap_or_default)
    }

    /// The output of a command: empty if it succeeded.
    pub(crate) fn answer(&mut self, line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let device = |id| Device { name: self.gateway.name(id).to_owned(), ..Device::default() };
        let env = Env { devices: Some(self.gateway.devices().map(device).collect()), ..Env::default() };
        match words[0].as_str() {
            "tc" => match tc::parse(&words[1..], &env).expect(line) {
                tc::TcCommandLine { command: TcCommand::Apply(op), .. } => self.op(&op),
                tc::TcCommandLine { command: TcCommand::Show(what), flags, .. } => self.shows(&what, &flags),
                _ => panic!("{line}"),
            },
            "ip" => match ip::parse(&words[1..], &env).expect(line).command {
                IpCommand::AddLink { name, kind, .. } => self.op(&Op::Link(LinkOp::Add { name, kind })),
                IpCommand::DeleteLink(name) => self.op(&Op::Link(LinkOp::Delete { name })),
                IpCommand::Address { add, dev, address, prefix, .. } => {
                    self.op(&Op::Link(LinkOp::Address { name: dev, add, address, prefix }))
                }
                _ => panic!("{line}"),
            },
            tool => match iptables::parse(tool, &words[1..]).expect(line).command {
                IptCommand::Apply(op) => self.op(&Op::Netfilter(op)),
                _ => panic!("{line}"),
            },
        }
    }

    fn shows(&mut self, what: &ShowWhat, flags: &ShowFlags) -> String {
        let device = what.dev.as_deref().and_then(|name| self.gateway.device(name));
        match (what.object, device) {
            (Object::Filter, _) if what.block != 0 => {
                match self.gateway.block_filters(self.now, what.block) {
                    Ok(dumps) => tc::show_filters(&dumps, what, flags),
                    Err(error) => error.to_string(),
                }
            }
            (Object::Qdisc, Some(device)) => {
                tc::show_qdiscs(&self.gateway.qdiscs(self.now, device), what, flags)
            }
            (Object::Class, Some(device)) => {
                tc::show_classes(&self.gateway.listed_classes(self.now, device), what, flags)
            }
            (Object::Filter, Some(device)) => {
                match self.gateway.filters(self.now, device, what.parent.expect("a parent")) {
                    Ok(dumps) => tc::show_filters(&dumps, what, flags),
                    Err(error) => error.to_string(),
                }
            }
            (_, None) => panic!("a device"),
        }
    }

    /// Commands that all go well.
    pub(crate) fn run(&mut self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            assert_eq!(self.answer(line), "", "{line}");
        }
    }

    pub(crate) fn insert(&mut self, head: Head, frame_len: u32) -> Pkt {
        self.pool.insert(Meta::of(&head, frame_len), head).expect("there is room")
    }

    pub(crate) fn offer(&mut self, device: &str, route: EgressPath, pkt: Pkt) -> XmitStatus {
        let device = self.id(device);
        let (gateway, world) = self.world();
        gateway.offer(world, device, route, pkt)
    }

    pub(crate) fn receive(&mut self, device: &str, pkt: Pkt) -> ReceiveOutcome {
        let device = self.id(device);
        let (gateway, world) = self.world();
        gateway.receive(world, device, pkt)
    }

    pub(crate) fn poll(&mut self, device: &str) -> Option<Pkt> {
        let device = self.id(device);
        let (gateway, world) = self.world();
        gateway.poll(world, device)
    }

    /// What a packet is now; it goes.
    pub(crate) fn see(&mut self, pkt: Pkt) -> Seen {
        let meta = self.pool.meta(&pkt);
        let (frame_len, mark, kind) = (meta.frame_len, meta.mark.0, meta.ethertype);
        let bytes = self.pool.settle(&pkt).network().to_vec();
        self.pool.release(pkt);
        let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (source, destination) = if bytes[0] >> 4 == 4 {
            let ip = |at: usize| IpAddr::from(<[u8; 4]>::try_from(&bytes[at..at + 4]).expect("four"));
            ((ip(12), port(20)), (ip(16), port(22)))
        } else {
            let ip = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&bytes[at..at + 16]).expect("sixteen"));
            ((ip(8), port(40)), (ip(24), port(42)))
        };
        Seen { frame_len, ethertype: kind, source, destination, mark }
    }

    /// The packet that a device sends next; `None`: it sends none.
    pub(crate) fn sends(&mut self, device: &str) -> Option<Seen> {
        let pkt = self.poll(device)?;
        Some(self.see(pkt))
    }

    /// A packet goes this way and leaves at once, or is dropped.
    pub(crate) fn passes(&mut self, route: EgressPath, device: &str, head: Head) -> Option<Seen> {
        let pkt = self.insert(head, FRAME);
        let _ = self.offer(device, route, pkt);
        self.sends(device)
    }

    /// Packets that are nowhere but in the pool: none may be lost.
    pub(crate) fn live(&self) -> usize {
        self.pool.live()
    }
}

/// A UDP datagram of either family: both ends must be of one.
pub(crate) fn udp(source: (&str, u16), destination: (&str, u16), dsfield: u8) -> Head {
    let ip = |text: &str| text.parse::<IpAddr>().expect(text);
    let ports = [source.1.to_be_bytes(), destination.1.to_be_bytes(), [0, 80], [0, 0]].concat();
    match (ip(source.0), ip(destination.0)) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = vec![0x45, dsfield, 0, 100, 0, 0, 0x40, 0, 64, proto::UDP, 0, 0];
            header.extend(from.octets().into_iter().chain(to.octets()).chain(ports));
            Head::from_network(ethertype::IPV4, &header)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut header = vec![0x60 | dsfield >> 4, dsfield << 4, 0, 0, 0, 60, proto::UDP, 64];
            header.extend(from.octets().into_iter().chain(to.octets()).chain(ports));
            Head::from_network(ethertype::IPV6, &header)
        }
        _ => panic!("one family"),
    }
}

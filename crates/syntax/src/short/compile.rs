//! A short policy as commands: one cake; or one `fq_codel` in a class of HTB; or HTB with a class for each
//! kind of traffic, fair queues in the classes, and nft rules that classify.
//!
//! The commands may be carried out again over what they made, and nothing is unshaped meanwhile: the root and
//! the classes stay, a table of rules is replaced whole. A packet finds its class by its priority (`meta
//! priority set 1:20`), which HTB takes for the class's number, so marks stay free for others. On an ifb,
//! which comes before the rules, u32 filters ask instead.

use super::apps::App;
use super::policy::{
    Class, Fair, LinkOverhead, Network, PortEnd, Queue, Rank, Share, Short, Spanned, TreeKind,
};
use super::problem::Problem;
use super::read::bits;
use crate::nft::{Span, mark_blocks};
use std::fmt::Write as _;
use std::net::IpAddr;
use tidegate_packet::Handle;

/// A command of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledCommand {
    /// The tool's name.
    pub tool: &'static str,
    /// The arguments.
    pub words: Vec<String>,
    /// What it is given to read.
    pub stdin: Option<String>,
    /// The place in the policy that it comes from.
    pub from: Span,
    /// The same place for each line of `stdin`.
    pub inside: Vec<Span>,
    /// It fails where what it does has been done before.
    pub may_fail: bool,
}

/// What a short policy comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compiled {
    /// The commands, in order.
    pub commands: Vec<CompiledCommand>,
    /// What its writer should know.
    pub notes: Vec<Problem>,
}

/// The class of what must never wait: names, addresses, neighbours, clocks, short acknowledgements.
pub(super) const CONTROL: u16 = 0x10;
/// What it is called.
pub const CONTROL_NAME: &str = "DNS, DHCP, clocks and short acknowledgements";
/// The class of what belongs to none.
pub(super) const REST: u16 = 0xf0;
/// Its priority in HTB.
pub(super) const REST_PRIO: u32 = 6;
/// The class of what does not come from the provider, on the device towards the LAN.
pub(super) const LOCAL: u16 = 0xf1;
/// The handle of a policy's cake.
const CAKE: u16 = 0xca;
/// The handle of the HTB around a policy's one `fq_codel`.
const ONE: u16 = 2;
/// Bytes of a frame.
const FRAME: u64 = 1514;
/// Ports of what must never wait: names, DHCP, clocks, DHCPv6.
pub(super) const CONTROL_PORTS: [(u16, u16); 5] = [(53, 53), (67, 68), (123, 123), (546, 547), (853, 853)];

/// Which way packets go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Away, on the device towards the modem.
    Up,
    /// Towards us, on the device towards the LAN.
    Lan,
    /// Towards us, on an ifb.
    Ifb,
}

/// One device to be shaped.
struct Target<'s> {
    short: &'s Short,
    way: Way,
    dev: String,
    /// Bits a second that are used.
    rate: u64,
    span: Span,
}

/// A class with its numbers.
struct Planned<'s> {
    minor: u16,
    class: Option<&'s Class>,
    rate: u64,
    ceil: u64,
    prio: usize,
    fair: Fair,
    queue: Queue,
    span: Span,
}

/// The commands that a policy comes to.
pub fn compile(short: &Short) -> Compiled {
    let mut compiled = Compiled::default();
    let mut targets = Vec::new();
    // One byte of 65 is the line's own on PTM.
    let whole = |rate: u64| if short.link.ptm { rate * 64 / 65 } else { rate };
    let used = |rate: u64, share: u32| whole(rate) * u64::from(share) / 100;
    if let Some(up) = &short.up {
        let dev = short.device.value.clone();
        targets.push(Target { short, way: Way::Up, dev, rate: used(up.value, short.shape), span: up.span });
    }
    if let Some(down) = &short.down {
        let (way, dev) = match &short.lan {
            Some(lan) if short.kind == TreeKind::Classes => (Way::Lan, lan.value.clone()),
            // What the gateway itself sends to the LAN must not be shaped, and one queue cannot except it.
            Some(lan) => {
                compiled.note(
                    lan.span,
                    format!("lan is not used: {} for downloads is on an ifb", short.kind.one()),
                    "On the device towards the LAN it would shape what the gateway itself sends, too.",
                );
                (Way::Ifb, ifb(&short.device.value))
            }
            _ => (Way::Ifb, ifb(&short.device.value)),
        };
        targets.push(Target { short, way, dev, rate: used(down.value, short.down_share()), span: down.span });
    }
    for target in &targets {
        target.write(&mut compiled);
    }
    if short.kind == TreeKind::FqCodel && short.fair == Fair::Host {
        compiled.note(
            short.device.span,
            "fair = \"host\" does not hold: fq_codel shares between connections, whichever host they are of",
            "kind = \"cake\" and kind = \"classes\" share between hosts.",
        );
    }
    if short.kind == TreeKind::Classes {
        rules(short, &targets, &mut compiled);
    }
    for target in targets.iter().filter(|target| target.way == Way::Ifb) {
        target.lead(&mut compiled);
    }
    compiled
}

impl Short {
    /// The number of the class of that name, on every device that is shaped.
    pub fn class_id(&self, name: &str) -> Option<Handle> {
        let at = self.classes.iter().position(|class| class.name.value == name)?;
        Some(Handle::new(1, minor_of(at)))
    }
}

impl Short {
    /// What each class is called, by device and number: as in the file, and those that every policy has.
    pub fn class_names(&self) -> Vec<(String, Handle, String)> {
        if self.kind == TreeKind::Cake {
            return Vec::new();
        }
        if self.kind == TreeKind::FqCodel {
            let device = &self.device.value;
            let devices = [self.up.as_ref().map(|_| device.clone()), self.down.as_ref().map(|_| ifb(device))];
            let link = |dev| (dev, Handle::new(ONE, 1), "the link".to_owned());
            return devices.into_iter().flatten().map(link).collect();
        }
        let up = self.up.iter().map(|_| (self.device.value.clone(), false));
        let down = self.down.iter().map(|_| match &self.lan {
            Some(lan) => (lan.value.clone(), true),
            None => (ifb(&self.device.value), false),
        });
        let mut names = Vec::new();
        for (dev, is_lan) in up.chain(down) {
            let mut name =
                |minor: u16, name: &str| names.push((dev.clone(), Handle::new(1, minor), name.to_owned()));
            name(1, "the link");
            name(CONTROL, CONTROL_NAME);
            for (at, class) in self.classes.iter().enumerate() {
                name(minor_of(at), &class.name.value);
            }
            name(REST, "the rest");
            if is_lan {
                name(LOCAL, "not from the provider");
            }
        }
        names
    }
}

/// The minor number of a class by its place in the policy.
fn minor_of(at: usize) -> u16 {
    CONTROL + 0x10 * (at as u16 + 1)
}

/// The most bytes in a device's name.
const MAX_NAME: usize = 15;

/// The name of the ifb of a device: where the device's whole name has no room in it, with a checksum of that
/// (FNV-1a, folded to 16 bits), or `pppoe-dsl-wan1` and `pppoe-dsl-wan2` would share one.
fn ifb(device: &str) -> String {
    let name = format!("ifb4{device}");
    if name.len() <= MAX_NAME {
        return name;
    }
    let hash =
        device.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let end = (0..=MAX_NAME - 5).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    let begin = &name[..end];
    format!("{begin}-{:04x}", (hash >> 16) ^ (hash & 0xffff))
}

impl Compiled {
    fn push(&mut self, from: Span, may_fail: bool, command: &str) {
        let mut words = command.split_whitespace().map(String::from);
        let tool = match words.next().as_deref() {
            Some("ip") => "ip",
            _ => "tc",
        };
        self.commands.push(CompiledCommand {
            tool,
            words: words.collect(),
            stdin: None,
            from,
            inside: Vec::new(),
            may_fail,
        });
    }

    fn note(&mut self, span: Span, what: impl Into<String>, remedy: &str) {
        self.notes.push(Problem::new(span, what, remedy));
    }
}

impl<'s> Target<'s> {
    /// The tree of the device.
    fn write(&self, out: &mut Compiled) {
        let (dev, span) = (&self.dev, self.span);
        if self.way == Way::Ifb {
            out.push(span, true, &format!("ip link add name {dev} type ifb"));
            out.push(span, false, &format!("ip link set dev {dev} up"));
        }
        let default = if self.way == Way::Lan { LOCAL } else { REST };
        match self.short.kind {
            TreeKind::Cake => return self.cake(out),
            TreeKind::FqCodel => return self.one_fq_codel(out),
            TreeKind::Classes => {}
        }
        out.push(span, true, &format!("tc qdisc replace dev {dev} root handle 1: htb default {default:x}"));
        let size = self.size();
        self.whole(1, &size, out);
        let planned = self.plan();
        for class in &planned {
            self.class(class, &size, out);
        }
        if self.way == Way::Lan {
            // What the gateway itself and other networks send is not the link's business.
            out.push(
                span,
                false,
                &format!(
                    "tc class replace dev {dev} parent 1: classid 1:{LOCAL:x} htb \
            rate 10gbit ceil 10gbit burst 128k cburst 128k quantum 60000"
                ),
            );
            out.push(span, false, &format!("tc qdisc replace dev {dev} parent 1:{LOCAL:x} fq_codel"));
        }
        out.push(span, true, &format!("tc filter del dev {dev} parent 1:"));
        // Address resolution (ARP) must not wait; netfilter's tables for IP do not see it.
        out.push(
            span,
            false,
            &format!("tc filter add dev {dev} parent 1: protocol arp prio 1 matchall flowid 1:{CONTROL:x}"),
        );
        if self.way == Way::Ifb {
            self.filters(&planned, out);
        }
    }

    /// The class of all that the device sends.
    fn whole(&self, major: u16, size: &str, out: &mut Compiled) {
        let (dev, rate, burst) = (&self.dev, kbit(self.rate), burst(self.rate));
        out.push(
            self.span,
            false,
            &format!(
                "tc class replace dev {dev} parent {major:x}: classid {major:x}:1 htb rate {rate} \
        ceil {rate} burst {burst} cburst {burst} quantum {FRAME}{size}"
            ),
        );
    }

    /// The one `fq_codel` of a device, in the class that shapes.
    fn one_fq_codel(&self, out: &mut Compiled) {
        let dev = &self.dev;
        // Another handle than that of classes, whose HTB this must replace.
        out.push(self.span, true, &format!("tc qdisc replace dev {dev} root handle {ONE:x}: htb default 1"));
        self.whole(ONE, &self.size(), out);
        let queue = self.queue(Queue::Fair, Fair::Flow, self.rate);
        if self.short.fair == Fair::None {
            // The number of flows is settled for good when a queue is made.
            let made = queue.replacen("fq_codel", "fq_codel flows 1", 1);
            out.push(self.span, true, &format!("tc qdisc add dev {dev} parent {ONE:x}:1 {made}"));
        }
        out.push(self.span, false, &format!("tc qdisc replace dev {dev} parent {ONE:x}:1 {queue}"));
    }

    /// The one cake of a device, which has nothing in it.
    fn cake(&self, out: &mut Compiled) {
        let (dev, link) = (&self.dev, self.short.link);
        let hosts = if self.way == Way::Up { "nat dual-srchost" } else { "nat dual-dsthost" };
        let mut words = format!("bandwidth {} diffserv4 ", kbit(self.rate));
        words += match self.short.fair {
            Fair::Host => hosts,
            Fair::Flow => "flows",
            Fair::None => "flowblind",
        };
        if self.way != Way::Up {
            // Packets that are dropped here have come over the line.
            words += " ingress";
        }
        if link != LinkOverhead::default() {
            // Counted from the IP packet on; of PTM the rate is less already.
            let cells = if link.atm { "atm" } else { "noatm" };
            let _ = write!(words, " overhead {} mpu {} {cells}", link.overhead, link.mpu);
        }
        // Another handle than that of classes: a qdisc of another kind cannot replace one of the same handle.
        out.push(self.span, false, &format!("tc qdisc replace dev {dev} root handle {CAKE:x}: cake {words}"));
    }

    /// What the link adds to a frame as the device counts it.
    fn size(&self) -> String {
        let link = self.short.link;
        if link == LinkOverhead::default() {
            return String::new();
        }
        // Devices of point-to-point links have no header of their own.
        let header =
            if self.dev.starts_with("ppp") || self.dev.starts_with("tun") || self.dev.starts_with("wg") {
                0
            } else {
                14
            };
        let mut size = format!(" overhead {}", link.overhead.saturating_sub(header));
        if link.mpu > 0 {
            let _ = write!(size, " mpu {}", link.mpu);
        }
        let _ = write!(size, " linklayer {}", if link.atm { "atm" } else { "ethernet" });
        size
    }

    /// The classes with their rates: those that are given, and the rest divided.
    fn plan(&self) -> Vec<Planned<'s>> {
        let link = self.rate;
        let part = |percent: u64| (link * percent / 100).max(8_000);
        let value_of = |share: Share| match share {
            Share::Percent(percent) => part(percent.into()),
            Share::Rate(rate) => rate.min(link),
        };
        let control = part(5);
        let fixed = |class: &Class| match (&class.share, class.rank) {
            (Some(share), _) => Some(value_of(share.value)),
            (None, Rank::First) => Some(part(20)),
            (None, Rank::Last) => Some(part(5)),
            (None, Rank::Middle) => None,
        };
        let given: u64 = self.short.classes.iter().filter_map(fixed).sum();
        let open = self.short.classes.iter().filter(|class| fixed(class).is_none()).count() as u64;
        // The default class weighs as much as two classes without a share.
        let unit = (link.saturating_sub(control + given) / (open + 2)).max(8_000);
        let mut planned = vec![Planned {
            minor: CONTROL,
            class: None,
            rate: control,
            ceil: link,
            prio: 0,
            fair: Fair::Flow,
            queue: Queue::Short,
            span: self.span,
        }];
        for (number, class) in self.short.classes.iter().enumerate() {
            let first = class.rank == Rank::First;
            planned.push(Planned {
                minor: minor_of(number),
                class: Some(class),
                rate: fixed(class).unwrap_or(unit),
                ceil: class.ceil.as_ref().map_or(link, |ceil| value_of(ceil.value)),
                prio: if class.rank == Rank::Last { 7 } else { (number + 1).min(5) },
                fair: class
                    .fair
                    .as_ref()
                    .map_or(if first { Fair::Flow } else { self.short.fair }, |fair| fair.value),
                queue: class
                    .queue
                    .as_ref()
                    .map_or(if first { Queue::Short } else { Queue::Fair }, |queue| queue.value),
                span: class.name.span,
            });
        }
        planned.push(Planned {
            minor: REST,
            class: None,
            rate: (2 * unit).min(link),
            ceil: link,
            prio: 6,
            fair: self.short.fair,
            queue: Queue::Fair,
            span: self.span,
        });
        // Of a link of a few kbit/s the least rates are more than there is.
        let sum: u64 = planned.iter().map(|class| class.rate).sum();
        if sum > link {
            planned.iter_mut().for_each(|class| class.rate = (class.rate * link / sum).max(1000));
        }
        // A share that the file does not name never lifts a ceil that it does.
        planned.iter_mut().for_each(|class| class.rate = class.rate.min(class.ceil).max(1000));
        planned
    }

    fn class(&self, class: &Planned<'_>, size: &str, out: &mut Compiled) {
        let (dev, minor) = (&self.dev, class.minor);
        let ceil = class.ceil.max(class.rate);
        let (rate, top) = (kbit(class.rate), kbit(ceil));
        let (burst, cburst) = (burst(class.rate), burst(ceil));
        let quantum = if class.rate > 12_000_000 { 2 * FRAME } else { FRAME };
        out.push(
            class.span,
            false,
            &format!(
                "tc class replace dev {dev} parent 1:1 classid 1:{minor:x} htb rate {rate} ceil {top} burst \
            {burst} cburst {cburst} prio {} quantum {quantum}{size}",
                class.prio
            ),
        );
        let queue = self.queue(class.queue, class.fair, ceil);
        if class.fair != Fair::Host {
            out.push(class.span, false, &format!("tc qdisc replace dev {dev} parent 1:{minor:x} {queue}"));
            return;
        }
        out.push(
            class.span,
            true,
            &format!("tc qdisc replace dev {dev} parent 1:{minor:x} handle {minor:x}: drr"),
        );
        let buckets = self.short.buckets;
        for bucket in 1..=buckets {
            out.push(
                class.span,
                false,
                &format!(
                    "tc class replace dev {dev} parent {minor:x}: classid {minor:x}:{bucket:x} drr quantum \
                    {FRAME}"
                ),
            );
            // The number of flows is settled for good when a queue is made: a few for each host's.
            let made = queue.replacen("fq_codel", "fq_codel flows 256", 1);
            out.push(class.span, true, &format!("tc qdisc add dev {dev} parent {minor:x}:{bucket:x} {made}"));
            out.push(
                class.span,
                false,
                &format!("tc qdisc replace dev {dev} parent {minor:x}:{bucket:x} {queue}"),
            );
        }
        let key = if self.way == Way::Up { "nfct-src" } else { "dst" };
        out.push(
            class.span,
            false,
            &format!(
                "tc filter replace dev {dev} parent {minor:x}: protocol all prio 1 handle 1 flow hash keys \
            {key} divisor {buckets} baseclass {minor:x}:1"
            ),
        );
    }

    /// The queue of a class that may send at `rate`.
    fn queue(&self, queue: Queue, fair: Fair, rate: u64) -> String {
        // A frame and a half must fit into the target, or the link idles.
        let frame_us = FRAME * 8 * 3 / 2 * 1_000_000 / rate.max(1);
        let target = frame_us.max(5_000);
        let quantum = if rate < 4_000_000 { " quantum 300" } else { "" };
        match (queue, fair) {
            (Queue::Plain, _) | (_, Fair::None) => {
                // A tenth of a second at the most, a few frames at least.
                let limit = (rate / 80 / FRAME).clamp(8, 1000);
                format!("pfifo limit {limit}")
            }
            (Queue::Short, _) => {
                format!(
                    "fq_codel limit 200 target {}us interval {}us{quantum} noecn",
                    frame_us.max(2_000),
                    frame_us.max(2_000) + 40_000
                )
            }
            (Queue::Fair, _) => {
                format!("fq_codel limit 1000 target {target}us interval {}us{quantum} ecn", target + 95_000)
            }
        }
    }

    /// Leads what arrives over the ifb.
    fn lead(&self, out: &mut Compiled) {
        let (dev, ifb) = (&self.short.device.value, &self.dev);
        out.push(self.span, true, &format!("tc qdisc add dev {dev} handle ffff: ingress"));
        out.push(
            self.span,
            true,
            &format!(
                "tc filter add dev {dev} parent ffff: protocol all prio 10 handle 1 matchall action mirred \
            egress redirect dev {ifb}"
            ),
        );
    }

    /// The header fields that hold the port of this end.
    fn fields(&self, end: PortEnd) -> &'static [&'static str] {
        match (end, self.way) {
            (PortEnd::Either, _) => &FIELDS,
            (PortEnd::Remote, Way::Up) | (PortEnd::Local, Way::Lan | Way::Ifb) => &["dport"],
            (PortEnd::Local, Way::Up) | (PortEnd::Remote, Way::Lan | Way::Ifb) => &["sport"],
        }
    }

    /// u32 filters in the place of rules.
    fn filters(&self, planned: &[Planned<'_>], out: &mut Compiled) {
        let mut filter = |span: Span, v6: bool, minor: u16, matches: &str| {
            let (protocol, prio) = if v6 { ("ipv6", 11) } else { ("ip", 10) };
            out.push(
                span,
                false,
                &format!(
                    "tc filter add dev {} parent 1: protocol {protocol} prio {prio} u32 {matches} flowid \
                    1:{minor:x}",
                    self.dev
                ),
            );
        };
        // Neighbours and routers looking for one another.
        for kind in [133, 134, 135, 136, 137] {
            filter(
                self.span,
                true,
                CONTROL,
                &format!("match ip6 protocol 58 0xff match u8 {kind} 0xff at 40"),
            );
        }
        for range in CONTROL_PORTS {
            for v6 in [false, true] {
                by_port(v6, 17, range, &FIELDS, &mut |matches| filter(self.span, v6, CONTROL, matches));
            }
        }
        for planned in planned {
            let Some(class) = planned.class else { continue };
            for v6 in [false, true] {
                let keys = ClassKeys::of(class);
                for (at, end, ranges) in keys.ports() {
                    for range in ranges {
                        by_port(v6, PROTOCOLS[at].0, *range, self.fields(end), &mut |matches| {
                            filter(keys.at[at], v6, planned.minor, matches)
                        });
                    }
                }
                for dscp in &keys.dscp {
                    let field = if v6 { "match ip6 priority" } else { "match ip dsfield" };
                    filter(keys.at[2], v6, planned.minor, &format!("{field} {:#04x} 0xfc", dscp << 2));
                }
                for host in class.hosts.iter().filter(|host| v6 && host.value.address.is_ipv6()) {
                    filter(host.span, v6, planned.minor, &format!("match ip6 dst {}", network(&host.value)));
                }
            }
        }
        for class in planned.iter().filter_map(|planned| planned.class) {
            if let Some(host) = class.hosts.iter().find(|host| host.value.address.is_ipv4()) {
                out.note(
                    host.span,
                    "downloads of an IPv4 host cannot be classified on an ifb, where NAT still hides it",
                    "Name the device towards the LAN: lan = \"br-lan\".",
                );
            }
            if let Some(after) = &class.after {
                out.note(
                    after.span,
                    format!(
                        "after, of class {}, holds for uploads only: downloads come to an ifb before their \
                        connections are known",
                        class.name.value
                    ),
                    "Name the device towards the LAN: lan = \"br-lan\".",
                );
            }
        }
        if planned.iter().any(|planned| planned.fair == Fair::Host) {
            out.note(
                self.span,
                "behind NAT all IPv4 downloads go to one address, so fair = \"host\" separates only IPv6 \
                hosts there",
                "Name the device towards the LAN: lan = \"br-lan\".",
            );
        }
    }
}

/// Matches of u32 for a range of ports, in these fields.
fn by_port(v6: bool, protocol: u8, (low, high): (u16, u16), fields: &[&str], each: &mut dyn FnMut(&str)) {
    let ip = if v6 { "ip6" } else { "ip" };
    for end in fields {
        for (value, mask) in mark_blocks(low.into(), high.into(), 16) {
            each(&format!("match {ip} protocol {protocol} 0xff match {ip} {end} {value} {mask:#06x}"));
        }
    }
}

/// The protocols that have ports, with their names.
const PROTOCOLS: [(u8, &str); 2] = [(6, "tcp"), (17, "udp")];
/// The fields of a header that hold ports.
const FIELDS: [&str; 2] = ["sport", "dport"];

/// What of a class its words ask for, each with the place of the first word that does.
struct ClassKeys {
    /// TCP's ports, then UDP's, by their ends.
    ports: [[Vec<(u16, u16)>; 3]; 2],
    dscp: Vec<u8>,
    at: [Span; 3],
}

impl ClassKeys {
    fn of(class: &Class) -> ClassKeys {
        let mut keys = ClassKeys { ports: Default::default(), dscp: Vec::new(), at: [class.name.span; 3] };
        for app in class.apps.iter().rev() {
            let App { tcp, udp, dscp, .. } = *app.value;
            keys.take([tcp, udp], PortEnd::Either, dscp, app.span);
        }
        for ports in class.ports.iter().rev() {
            let range = [ports.value.range];
            let of = |protocol: u8| {
                if ports.value.protocol.is_none_or(|given| given == protocol) { &range[..] } else { &[] }
            };
            keys.take([of(6), of(17)], ports.value.end, &[], ports.span);
        }
        for dscp in class.dscp.iter().rev() {
            keys.take([&[], &[]], PortEnd::Either, &[dscp.value], dscp.span);
        }
        keys.ports = keys.ports.map(|ends| ends.map(merged));
        keys.dscp.sort_unstable();
        keys.dscp.dedup();
        keys
    }

    /// Ranges of ports, each with its protocol's place in [`PROTOCOLS`], and the end that has them; none is
    /// empty.
    fn ports(&self) -> impl Iterator<Item = (usize, PortEnd, &[(u16, u16)])> {
        let of = move |at: usize| {
            PortEnd::ALL.into_iter().map(move |end| (at, end, &self.ports[at][end as usize][..]))
        };
        (0..PROTOCOLS.len()).flat_map(of).filter(|(.., ranges)| !ranges.is_empty())
    }

    fn take(&mut self, ports: [&[(u16, u16)]; 2], end: PortEnd, dscp: &[u8], span: Span) {
        for (at, ranges) in ports.into_iter().enumerate() {
            self.ports[at][end as usize].extend_from_slice(ranges);
            if !ranges.is_empty() {
                self.at[at] = span;
            }
        }
        self.dscp.extend_from_slice(dscp);
        if !dscp.is_empty() {
            self.at[2] = span;
        }
    }
}

/// A text for nft, with the place that each line comes from.
#[derive(Default)]
struct Text {
    text: String,
    from: Vec<Span>,
}

impl Text {
    fn line(&mut self, from: Span, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
        self.text.push('\n');
        self.from.push(from);
    }
}

/// The table of rules that classify.
fn rules(short: &Short, targets: &[Target<'_>], out: &mut Compiled) {
    let ruled: Vec<&Target<'_>> = targets.iter().filter(|target| target.way != Way::Ifb).collect();
    let span = short.device.span;
    let mut text = Text::default();
    // Made, so that it can be deleted, so that it is made again: all in one step.
    text.line(span, "table inet tidegate");
    text.line(span, "delete table inet tidegate");
    text.line(span, "table inet tidegate {");
    for target in &ruled {
        chain(target, &mut text);
    }
    text.line(span, "}");
    if ruled.is_empty() {
        return;
    }
    out.commands.push(CompiledCommand {
        tool: "nft",
        words: vec!["-f".into(), "-".into()],
        stdin: Some(text.text),
        from: span,
        inside: text.from,
        may_fail: false,
    });
}

fn chain(target: &Target<'_>, text: &mut Text) {
    let (device, span) = (&target.short.device.value, target.span);
    let (name, hook) = if target.way == Way::Up { ("up", "postrouting") } else { ("down", "forward") };
    text.line(span, format!("\tchain {name} {{"));
    text.line(span, format!("\t\ttype filter hook {hook} priority mangle; policy accept;"));
    match target.way {
        Way::Up => text.line(span, format!("\t\toifname != \"{device}\" return")),
        _ => {
            text.line(span, format!("\t\tiifname != \"{device}\" return"));
            text.line(span, format!("\t\toifname != \"{}\" return", target.dev));
        }
    }
    let planned = target.plan();
    control(target, text);
    let classes = || planned.iter().filter_map(|planned| Some((planned, planned.class?)));
    for (planned, class) in classes().filter(|(_, class)| class.rank == Rank::First) {
        members(target, planned.minor, class, text);
    }
    // What has carried much is no page, whatever its port.
    for (planned, class) in classes() {
        if let Some(after) = &class.after {
            let (bytes, minor, name) = (after.value, planned.minor, plain(&class.name.value));
            text.line(
                after.span,
                format!("\t\tct bytes > {bytes} meta priority set 1:{minor:x} accept comment \"{name}\""),
            );
        }
    }
    for (planned, class) in classes().filter(|(_, class)| class.rank != Rank::First) {
        members(target, planned.minor, class, text);
    }
    text.line(span, format!("\t\tmeta priority set 1:{REST:x}"));
    text.line(span, "\t}");
}

/// What must never wait.
fn control(target: &Target<'_>, text: &mut Text) {
    let to = format!("meta priority set 1:{CONTROL:x} accept");
    let span = target.span;
    text.line(span, format!("\t\tudp dport {} {to}", set(&CONTROL_PORTS)));
    text.line(span, format!("\t\tudp sport {} {to}", set(&CONTROL_PORTS)));
    text.line(
        span,
        format!(
            "\t\ticmpv6 type {{ nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert }} {to}"
        ),
    );
    if target.way == Way::Up {
        text.line(
            span,
            format!("\t\ttcp flags & (fin | syn | rst | psh | ack | urg) == ack meta length < 100 {to}"),
        );
    }
}

/// The rules of a class.
fn members(target: &Target<'_>, minor: u16, class: &Class, text: &mut Text) {
    let to = format!("meta priority set 1:{minor:x} accept comment \"{}\"", plain(&class.name.value));
    let end = if target.way == Way::Up { "saddr" } else { "daddr" };
    for (v6, ip) in [(false, "ip"), (true, "ip6")] {
        let here: Vec<_> = class.hosts.iter().filter(|host| host.value.address.is_ipv6() == v6).collect();
        if let Some(first) = here.first() {
            let hosts: Vec<String> = here.iter().map(|host| network(&host.value)).collect();
            text.line(first.span, format!("\t\t{ip} {end} {} {to}", braced(&hosts)));
        }
    }
    let keys = ClassKeys::of(class);
    for (at, end, ranges) in keys.ports() {
        for field in target.fields(end).iter().rev() {
            text.line(keys.at[at], format!("\t\t{} {field} {} {to}", PROTOCOLS[at].1, set(ranges)));
        }
    }
    if !keys.dscp.is_empty() {
        let values: Vec<String> = keys.dscp.iter().map(u8::to_string).collect();
        for ip in ["ip", "ip6"] {
            text.line(keys.at[2], format!("\t\t{ip} dscp {} {to}", braced(&values)));
        }
    }
}

/// A name as a comment of nft's may have it.
fn plain(name: &str) -> String {
    name.chars()
        .map(|letter| if letter == '"' || letter.is_control() { ' ' } else { letter })
        .take(100)
        .collect()
}

/// Sorted, without overlaps, which nft does not take in a set.
fn merged(mut ranges: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u16, u16)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// Ports as a set of nft.
fn set(ranges: &[(u16, u16)]) -> String {
    let text = |(low, high): &(u16, u16)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    braced(&ranges.iter().map(text).collect::<Vec<_>>())
}

fn braced(values: &[String]) -> String {
    match values {
        [one] => one.clone(),
        several => format!("{{ {} }}", several.join(", ")),
    }
}

pub(super) fn network(network: &Network) -> String {
    let most = if matches!(network.address, IpAddr::V4(_)) { 32 } else { 128 };
    if network.bits == most {
        network.address.to_string()
    } else {
        format!("{}/{}", network.address, network.bits)
    }
}

fn kbit(rate: u64) -> String {
    format!("{}kbit", rate / 1000)
}

/// Bytes that may go at once: what the rate sends in two milliseconds, two frames at least.
fn burst(rate: u64) -> u64 {
    (rate / 8 / 500).max(2 * FRAME)
}

impl Compiled {
    /// What was found, as a shell script; `name`: where it comes from.
    pub fn script(&self, name: &str) -> String {
        let mut out =
            format!("#!/bin/sh\n# {name}, as tidegate policy show writes it. It may be run again.\n");
        for line in &self.commands {
            let words: Vec<String> = line.words.iter().map(|word| quoted(word)).collect();
            let _ = write!(out, "{} {}", line.tool, words.join(" "));
            if let Some(stdin) = &line.stdin {
                let _ = write!(out, " <<'END'\n{stdin}END");
            } else if line.may_fail {
                out.push_str(" 2>/dev/null || true # done before");
            }
            out.push('\n');
        }
        out
    }

    /// In a sentence: what is shaped to what.
    pub fn summary(&self, short: &Short) -> String {
        let way = |rate: &Option<Spanned<u64>>, share: u32, way: &str| {
            let used = |rate: &Spanned<u64>| bits(rate.value * u64::from(share) / 100);
            rate.as_ref().map(|rate| format!("{way} at {}", used(rate)))
        };
        let ways = [way(&short.up, short.shape, "up"), way(&short.down, short.down_share(), "down")];
        let ways: Vec<String> = ways.into_iter().flatten().collect();
        let tree = match short.kind {
            TreeKind::Classes => format!("{} classes", short.classes.len() + 2),
            TreeKind::Cake => "cake".to_owned(),
            TreeKind::FqCodel => "fq_codel".to_owned(),
        };
        format!("{}: {}, {tree}, {} commands", short.device.value, ways.join(", "), self.commands.len())
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "%+,-./:=@_".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

//! Actions that rewrite packets, before the queues see them: what they leave shows in filters, hashes, marks
//! and connections.

use super::World;
use super::filters::{DSFIELDS, PORTS};

/// Addresses that packets get; those of the traffic among them.
const ADDRESSES: &[&str] = &["10.0.0.1", "10.0.0.5", "10.9.0.1", "192.168.7.7", "1.2.3.4", "255.255.255.255"];
const NETWORKS: &[&str] = &["10.0.0.1", "10.0.0.0/8", "10.0.0.0/30", "10.9.0.0/16", "any", "192.168.0.0/16"];
const SUMS: &[&str] = &["ip4h", "tcp", "udp", "icmp", "igmp", "ip4h and tcp and udp", "tcp and udp and icmp"];
const LINK: &[&str] =
    &["ecn", "swap mac", "set dmac 02:00:00:00:00:09", "set smac 02:00:00:00:00:08 etype 0x0800"];
const TAGS: &[&str] =
    &["push id 5", "push id 9 priority 3 protocol 802.1ad", "pop", "modify id 7", "modify id 6 priority 1"];

impl World {
    /// Filters with such actions, at the device's egress or where routed packets come in. What they draw,
    /// they draw last: cases stay as they were without them.
    pub(super) fn rewrites(&mut self) {
        if !self.rng.chance(25) {
            return;
        }
        let arriving = self.forward && self.rng.chance(50);
        let (device, hook) = if arriving { ("in1", "ingress") } else { ("link0", "egress") };
        let clsact = format!("tc qdisc add dev {device} clsact");
        let arrives = format!("dev {device} ingress");
        let is_there = self.script.iter().any(|line| line.starts_with(&clsact));
        if !is_there && self.script.iter().any(|line| line.contains(&arrives)) {
            return;
        }
        if !is_there {
            self.script.push(clsact);
        }
        for pref in 1..=self.rng.range(1, 3) {
            let protocol = *self.rng.pick(&["ip", "ip", "ip", "ipv6"]);
            let mut actions = String::new();
            for _ in 0..self.rng.range(1, 4) {
                let action = self.rewriting(protocol, arriving);
                let then = *self.rng.pick(&["pipe", "pipe", "pipe", "continue", "pass"]);
                actions += &format!(" action {action} {then}");
            }
            // Those that have their place already are asked first.
            let pref = 300 + pref;
            self.script.push(format!(
                "tc filter add dev {device} {hook} protocol {protocol} prio {pref} matchall{actions}"
            ));
        }
    }

    /// One action. What arrives is not tagged: there is no device for it.
    fn rewriting(&mut self, protocol: &str, arriving: bool) -> String {
        match self.rng.weighted(&[45, 20, 20, 8, if arriving { 0 } else { 7 }]) {
            0 => self.pedit(protocol == "ipv6"),
            1 => {
                let direction = *self.rng.pick(&["ingress", "egress"]);
                format!("nat {direction} {} {}", self.rng.pick(NETWORKS), self.rng.pick(ADDRESSES))
            }
            2 => format!("csum {}", self.rng.pick(SUMS)),
            3 => format!("skbmod {}", self.rng.pick(LINK)),
            _ => format!("vlan {}", self.rng.pick(TAGS)),
        }
    }

    /// Fields of the other family would make fragments of packets, whose ports the flow filter replaces by
    /// what no one can know.
    fn pedit(&mut self, v6: bool) -> String {
        let extended = v6 || self.rng.chance(60);
        let mut words = if extended { "pedit ex".to_owned() } else { "pedit".to_owned() };
        for _ in 0..self.rng.range(1, 3) {
            let munge = match (extended, v6) {
                (false, _) => self.munge(),
                (true, _) if self.rng.chance(40) => self.munge_ports(),
                (true, false) => self.munge_v4(),
                (true, true) => self.munge_v6(),
            };
            words += &format!(" munge {munge}");
        }
        words
    }

    /// By fields of IPv4 counted from its header, or by offsets.
    fn munge(&mut self) -> String {
        let port = *self.rng.pick(PORTS);
        match self.rng.below(6) {
            0 => format!("ip {} set {}", self.rng.pick(&["src", "dst"]), self.rng.pick(ADDRESSES)),
            1 => format!(
                "ip tos set {} retain {}",
                self.rng.pick(DSFIELDS),
                self.rng.pick(&["0xfc", "0x3", "0xff"])
            ),
            2 => format!("ip {} set {port}", self.rng.pick(&["sport", "dport"])),
            3 => format!("ip ttl {}", self.rng.pick(&["set 7", "invert", "clear", "preserve"])),
            4 => format!("offset {} u16 set {port}", self.rng.pick(&[20, 22, 40, 42, 2000])),
            _ => {
                format!(
                    "offset 20 u16 at 8 {} {} set {port}",
                    self.rng.pick(&["40", "0f", "ff"]),
                    self.rng.range(0, 5)
                )
            }
        }
    }

    fn munge_ports(&mut self) -> String {
        let (header, name) = (*self.rng.pick(&["tcp", "udp"]), *self.rng.pick(&["sport", "dport"]));
        if self.rng.chance(50) {
            return format!("{header} {name} set {}", self.rng.pick(PORTS));
        }
        format!("{header} {name} add {}", self.rng.range(1, 300))
    }

    fn munge_v4(&mut self) -> String {
        match self.rng.below(3) {
            0 => format!("ip {} set {}", self.rng.pick(&["src", "dst"]), self.rng.pick(ADDRESSES)),
            1 => format!("ip tos {} {}", self.rng.pick(&["set", "add"]), self.rng.pick(DSFIELDS)),
            _ => "ip ttl decrement".to_owned(),
        }
    }

    fn munge_v6(&mut self) -> String {
        match self.rng.below(3) {
            0 => format!("ip6 flow_lbl set {}", self.rng.pick(&[0, 1, 77, 0xfffff])),
            1 => format!("ip6 traffic_class set {}", self.rng.pick(DSFIELDS)),
            _ => "ip6 hoplimit decrement".to_owned(),
        }
    }
}

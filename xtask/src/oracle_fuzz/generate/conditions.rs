//! What newer filters ask: flower's keys, the expressions of basic, every packet (matchall), and the tables
//! of u32.

use super::World;
use super::filters::{DSFIELDS, PORTS};
use crate::oracle_fuzz::rng::Rng;

/// Expressions that hold a comparison of their own.
const DEEPEST: u32 = 2;

impl World {
    /// The keys of a flower filter for this protocol.
    pub(super) fn flower(&mut self, protocol: &str) -> String {
        let rng = &mut self.rng;
        let six = protocol == "ipv6";
        let mut words = Vec::new();
        let mut add = |rng: &mut Rng, percent: u64, key: &dyn Fn(&mut Rng) -> String| {
            if rng.chance(percent) {
                words.push(key(rng));
            }
        };
        if protocol == "all" {
            return String::new();
        }
        if rng.chance(60) {
            let proto = *rng.pick(&["tcp", "udp", "udp"]);
            add(rng, 100, &|_| format!("ip_proto {proto}"));
            add(rng, 60, &|rng| format!("{} {}", rng.pick(&["dst_port", "src_port"]), port(rng)));
            if proto == "tcp" {
                add(rng, 15, &|rng| format!("tcp_flags {}", rng.pick(&["0x10/0x10", "0x2/0x12", "0x10"])));
            }
        } else if !six {
            add(rng, 20, &|_| "ip_proto icmp".to_owned());
        }
        add(rng, 40, &|rng| {
            if six {
                format!("src_ip 2001:db8::{:x}{}", rng.range(1, 4), rng.pick(&["", "/128", "/126", "/64"]))
            } else {
                format!("src_ip 10.0.0.{}{}", rng.range(1, 8), rng.pick(&["", "/32", "/30", "/24"]))
            }
        });
        add(rng, 30, &|rng| {
            if six {
                format!("dst_ip 2001:db8:1::{:x}", rng.range(1, 4))
            } else {
                format!("dst_ip 10.9.0.{}{}", rng.range(1, 4), rng.pick(&["", "/31", "/255.255.255.0"]))
            }
        });
        add(rng, 25, &|rng| {
            format!("ip_tos 0x{:x}{}", rng.pick(DSFIELDS), rng.pick(&["", "/0xfc", "/0x3", "/0xff"]))
        });
        add(rng, 10, &|rng| format!("ip_ttl {}", rng.pick(&["64", "63", "64/0xff", "0x40/0xf0"])));
        if !six {
            add(rng, 8, &|rng| format!("ip_flags {}", rng.pick(&["nofrag", "frag", "nofirstfrag"])));
        }
        words.join(" ")
    }

    /// The expression of a basic filter, with the word before it, or nothing.
    pub(super) fn basic(&mut self) -> String {
        if self.rng.chance(8) {
            return String::new();
        }
        format!("match {}", expression(&mut self.rng, self.ports, DEEPEST))
    }
}

fn port(rng: &mut Rng) -> String {
    let port = *rng.pick(PORTS);
    match rng.below(6) {
        0 => format!("{port}-{}", port.saturating_add(rng.range(1, 9000) as u16)),
        1 => format!("{port}/{}", rng.pick(&["0xfff0", "0xff00", "0xffff"])),
        _ => port.to_string(),
    }
}

/// One comparison, or several joined.
fn expression(rng: &mut Rng, ports: bool, deeper: u32) -> String {
    let count = rng.weighted(&[55, 30, 15]) + 1;
    let mut text = String::new();
    for at in 0..count {
        if at > 0 {
            let joint: &str = if rng.chance(50) { " and " } else { " or " };
            text.push_str(joint);
        }
        if rng.chance(15) {
            text.push_str("not ");
        }
        if deeper > 0 && rng.chance(15) {
            text.push_str(&format!("'(' {} ')'", expression(rng, ports, deeper - 1)));
        } else {
            text.push_str(&condition(rng, ports));
        }
    }
    text
}

fn condition(rng: &mut Rng, ports: bool) -> String {
    let relation = *rng.pick(&["eq", "gt", "lt"]);
    match rng.below(4) {
        // The checksum of what has no ports is not among what both sides make.
        0 if ports => format!("'cmp(u16 at {} layer 2 {relation} {})'", rng.pick(&[0, 2]), rng.pick(PORTS)),
        0 | 1 => match rng.below(4) {
            0 => format!("'cmp(u8 at 9 layer 1 {relation} {})'", rng.pick(&[6, 17, 1])),
            1 => format!("'cmp(u8 at 1 layer 1 mask 0xfc {relation} 0x{:x})'", rng.pick(DSFIELDS) & 0xfc),
            2 => format!("'cmp(u16 at 2 layer 1 {relation} {})'", rng.range(46, 1500)),
            _ => format!(
                "'cmp(u32 at 12 layer 1 mask 0xffffffff {relation} {})'",
                0x0a00_0000 + rng.range(1, 8)
            ),
        },
        2 => match rng.below(3) {
            0 => format!("'u32(u32 0x0a00000{} 0xffffffff at 12)'", rng.range(1, 8)),
            1 => format!("'u32(u8 {} 0xff at 9)'", rng.pick(&[6, 17, 1])),
            _ => format!("'u32(u16 0x{:x} 0xfff0 at 2)'", rng.range(46, 1500) & 0xfff0),
        },
        _ => meta(rng, relation),
    }
}

fn meta(rng: &mut Rng, relation: &str) -> String {
    match rng.below(5) {
        0 => format!("'meta(nf_mark {relation} {})'", rng.range(1, 6)),
        1 => format!("'meta(nf_mark mask 0x3 {relation} {})'", rng.range(0, 3)),
        2 => format!("'meta(pkt_len {relation} {})'", rng.range(60, 1514)),
        3 => format!("'meta(priority {relation} {})'", rng.below(8)),
        _ => format!("'meta(protocol {relation} {})'", rng.pick(&["0x800", "0x86dd"])),
    }
}

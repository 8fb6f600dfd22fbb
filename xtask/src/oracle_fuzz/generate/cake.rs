//! The words of cake, and streams of acknowledgements for its filter.

use super::World;
use super::kinds::{Words, rate, time};
use crate::oracle_fuzz::case::Row;
use crate::oracle_fuzz::rng::Rng;

const FRAMINGS: &[&str] = &[
    "raw",
    "atm",
    "ptm",
    "noatm",
    "conservative",
    "ethernet",
    "ether-vlan",
    "docsis",
    "pppoe-ptm",
    "bridged-ptm",
    "pppoe-vcmux",
    "pppoa-llc",
    "ipoa-llcsnap",
    "overhead 18 mpu 64",
    "overhead 44 atm",
    "overhead -20",
    "overhead -64",
    "overhead 100 ptm",
    "mpu 200",
];

pub(super) fn cake(rng: &mut Rng, about: u64) -> String {
    let mut words = Words::new();
    match rng.below(20) {
        0 | 1 => words.add("unlimited"),
        2 => words.add(format!("bandwidth {} autorate-ingress", rate(rng, about))),
        3 => {}
        4 => words.add(format!("bandwidth {}", rate(rng, 8000))),
        _ => words.add(format!("bandwidth {}", rate(rng, about))),
    }
    words.maybe(rng, 70, |rng| {
        (*rng.pick(&["besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"])).to_owned()
    });
    words.maybe(rng, 70, |rng| {
        let modes = [
            "flowblind",
            "srchost",
            "dsthost",
            "hosts",
            "flows",
            "dual-srchost",
            "dual-dsthost",
            "triple-isolate",
        ];
        (*rng.pick(&modes)).to_owned()
    });
    words.maybe(rng, 40, |rng| match rng.below(3) {
        0 => {
            (*rng.pick(&["datacentre", "lan", "metro", "regional", "oceanic", "satellite", "interplanetary"]))
                .to_owned()
        }
        1 => format!("rtt {}", time(rng, 1, 300)),
        _ => format!("rtt {}us", rng.log_range(1, 100_000)),
    });
    words.maybe(rng, 15, |_| "nat".to_owned());
    words.maybe(rng, 25, |_| "wash".to_owned());
    words.maybe(rng, 25, |_| "ingress".to_owned());
    words.maybe(rng, 25, |rng| (*rng.pick(&["ack-filter", "ack-filter-aggressive"])).to_owned());
    words.maybe(rng, 45, |rng| (*rng.pick(FRAMINGS)).to_owned());
    words.maybe(rng, 30, |rng| format!("memlimit {}", rng.pick(&["5000", "20k", "60k", "200k", "1m", "8m"])));
    words.maybe(rng, 25, |rng| {
        format!("fwmark {}", rng.pick(&["0x1", "0x3", "0xf", "0x6", "0xff00", "0xffffffff"]))
    });
    words.maybe(rng, 5, |_| "no-split-gso".to_owned());
    words.text()
}

/// TCP's options: timestamps and ranges, in the order in which senders write them, now and then others.
fn options(rng: &mut Rng, stamp: u64, ack: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let kind = rng.below(10);
    if kind < 6 {
        out.extend([1, 1, 8, 10]);
        out.extend((stamp as u32).to_be_bytes());
        out.extend((stamp as u32 / 2).to_be_bytes());
    }
    if (4..8).contains(&kind) {
        let ranges = rng.range(1, 3);
        out.extend([1, 1, 5, 2 + 8 * ranges as u8]);
        for _ in 0..ranges {
            let from = (ack + rng.below(6) * 1000).wrapping_sub(1000 * u64::from(rng.chance(5))) as u32;
            out.extend(from.to_be_bytes());
            out.extend((from + 1000 * rng.range(1, 3) as u32).to_be_bytes());
        }
    }
    match rng.below(40) {
        0 => out.extend([2, 4, 5, 180]),
        1 => out.extend([1, 3, 3, 7]),
        2 => out.extend([0, 0, 0, 0]),
        3 => out.extend([254, 1, 1, 1]),
        _ => {}
    }
    out.truncate(40);
    out
}

impl World {
    /// What receivers of downloads send: acknowledgements in bursts, now and then with data or an odd flag.
    pub(super) fn acknowledgements(&mut self, rows: &mut Vec<Row>, span: u64) {
        let first = rows.iter().map(|row| row.id()).max().unwrap_or(0) + 1;
        let (count, flows) = (self.rng.log_range(10, 200), self.rng.range(1, 4));
        let mut acked = vec![5000_u64; flows as usize];
        let mut at = 0;
        for number in 0..count {
            if !self.rng.chance(70) {
                at += self.rng.below(2 * span.max(1_000_000) / count + 1);
            }
            let flow = self.rng.below(flows);
            let id = first + number;
            let text = self.acknowledgement(flow, &mut acked[flow as usize], at / 1_000_000);
            rows.push(Row { time: at, rest: format!("{id},{text}") });
        }
        rows.sort_by_key(|row| row.time);
    }

    fn acknowledgement(&mut self, flow: u64, acked: &mut u64, stamp: u64) -> String {
        let rng = &mut self.rng;
        if rng.chance(75) {
            *acked += 1000 * rng.range(1, 3);
        }
        let ack = if rng.chance(5) { acked.saturating_sub(2000) } else { *acked };
        let stamp = if rng.chance(5) { stamp.saturating_sub(5) } else { stamp };
        let flags: u8 = match rng.below(30) {
            0 => 0x18,
            1 => 0x11,
            2 => 0x12,
            3 => 0x30,
            4..=6 => 0x50,
            7 => 0x90,
            _ => 0x10,
        };
        let mut header = Vec::new();
        header.extend((4000 + flow as u16).to_be_bytes());
        header.extend(80_u16.to_be_bytes());
        header.extend(1000_u32.to_be_bytes());
        header.extend((ack as u32).to_be_bytes());
        let options = options(rng, stamp, ack);
        let reserved = u8::from(rng.chance(2));
        header.extend([
            ((20 + options.len() / 4 * 4) as u8 / 4) << 4 | reserved,
            flags,
            0xff,
            0xff,
            0,
            0,
            0,
            0,
        ]);
        header.extend(&options[..options.len() / 4 * 4]);
        let data = if rng.chance(8) { rng.range(1, 400) } else { 0 };
        let size = 34 + header.len() as u64 + data;
        let hex: String = header.iter().map(|byte| format!("{byte:02x}")).collect();
        let ds = if flow == 1 { 2 } else { 0 };
        format!(
            "{size},10.0.0.{},10.9.0.1,tcp,{},80,{ds},{},0,,0,0,{hex}",
            flow / 2 + 1,
            4000 + flow,
            flow + 1
        )
    }
}

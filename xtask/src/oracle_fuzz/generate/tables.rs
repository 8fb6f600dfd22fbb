//! Tables of u32: filters that lead into a table, and those in its buckets.

use super::filters::{FilterParent, PORTS};
use super::{Filter, World};

impl World {
    /// A table, what is in some of its buckets, and a filter that leads there.
    pub(super) fn table(&mut self, place: &FilterParent) {
        let parent = format!("parent {}", place.parent);
        let pref = self.rng.range(1, 9);
        let number = self.rng.range(1, 9);
        if self.filters.iter().any(|other| other.parent == parent && other.pref == pref) {
            return;
        }
        let divisor = 1_u64 << self.rng.range(0, 8);
        let row = |handle: String, words: String| Filter {
            parent: parent.clone(),
            protocol: "ip",
            pref,
            handle,
            kind: "u32",
            words,
        };
        self.add_filter(row(format!("handle {number:x}: "), format!("divisor {divisor}")));
        let (mask, at) = *self.rng.pick(&[
            ("0x0000000f", 12),
            ("0x000000ff", 16),
            ("0x00ff0000", 8),
            ("0x0000ffff", 20),
            ("0x0000fc00", 0),
        ]);
        let moved = self.rng.chance(40);
        for _ in 0..self.rng.range(1, 6) {
            let bucket = self.rng.below(divisor.min(8));
            let condition = if moved { self.transport() } else { self.network() };
            let result = self.result(place);
            let action = self.actions(20);
            let into = if self.rng.chance(20) && !moved {
                format!("ht {number:x}: sample ip src 10.0.0.{} 0xff", self.rng.range(1, 8))
                    + " divisor "
                    + &divisor.to_string()
            } else {
                format!("ht {number:x}:{bucket:x}:")
            };
            self.add_filter(row(String::new(), format!("{into} {condition} {result}{action}")));
        }
        let header = if moved { " offset at 0 mask 0x0f00 shift 6" } else { "" };
        let header = if moved && self.rng.chance(30) { format!("{header} eat") } else { header.to_owned() };
        let condition = self.network();
        let result = if self.rng.chance(30) { format!(" {}", self.result(place)) } else { String::new() };
        self.add_filter(row(
            String::new(),
            format!("{condition}{header} hashkey mask {mask} at {at} link {number:x}:{result}"),
        ));
    }

    fn network(&mut self) -> String {
        match self.rng.below(5) {
            0 => "match u32 0 0".to_owned(),
            1 => format!("match ip protocol {} 0xff", self.rng.pick(&[6, 17])),
            2 => format!("match ip src 10.0.0.{}/{}", self.rng.range(1, 8), self.rng.pick(&[32, 31, 30])),
            3 => format!("match ip dport {} 0xffff", self.rng.pick(PORTS)),
            _ => format!("match ip dst 10.9.0.{}", self.rng.range(1, 4)),
        }
    }

    fn transport(&mut self) -> String {
        let port = *self.rng.pick(PORTS);
        match self.rng.below(4) {
            0 => "match u32 0 0".to_owned(),
            1 => format!("match u16 0x{port:04x} 0xffff at nexthdr+{}", self.rng.pick(&[0, 2])),
            2 => format!("match udp dst {port} 0xffff"),
            _ => format!("match tcp src {port} 0xffff"),
        }
    }
}

//! Traffic: a few to dozens of flows, in the rhythms that break schedulers.

use super::World;
use super::filters::{DSFIELDS, PORTS};
use crate::oracle_fuzz::case::Row;

const SECOND: u64 = 1_000_000_000;

/// How a flow sends.
#[derive(Clone, Copy, Debug)]
enum Rhythm {
    Even,
    Random,
    /// So many at the same nanosecond.
    Bursts(u64),
    /// Even, with pauses.
    Pauses,
}

impl World {
    /// The packets, by time, and the time of the last one; load in percent of the bottleneck.
    pub(super) fn traffic(&mut self, load: u64) -> (Vec<Row>, u64) {
        let flows = if self.rng.chance(15) { self.rng.range(12, 40) } else { self.rng.range(1, 9) };
        let total = self.rng.log_range(15, 500).max(flows);
        let grid = *self.rng.pick(&[1, 1, 1, 1000, 100_000, 1_000_000]);
        let six = self.rng.chance(35);
        let mut packets: Vec<(u64, String)> = Vec::new();
        let per_flow = total.div_ceil(flows);
        let share = (self.rate * load / 100 / flows).max(1000);
        for flow in 0..flows {
            let head = self.flow_head(flow, six);
            let rhythm = match self.rng.below(6) {
                0 => Rhythm::Even,
                1 | 2 => Rhythm::Random,
                3 | 4 => Rhythm::Bursts(self.rng.range(2, 24)),
                _ => Rhythm::Pauses,
            };
            let sizes = self.rng.below(4);
            let fixed = self.rng.range(60, 1514);
            let mut time = self.rng.below(50_000_000) * self.rng.below(2);
            let mut owed = 0;
            for number in 0..per_flow {
                let size = match sizes {
                    0 => 1514,
                    1 => fixed,
                    2 => *self.rng.pick(&[66, 200, 576, 1000, 1514]),
                    _ => self.rng.range(60, 1514),
                };
                let size = size.clamp(head.smallest, self.longest);
                packets.push((time / grid * grid, format!("{size},{}", head.text)));
                owed += size * 8 * SECOND / share;
                match rhythm {
                    Rhythm::Even => time += std::mem::take(&mut owed),
                    Rhythm::Random => time += self.rng.below(2 * std::mem::take(&mut owed) + 1),
                    Rhythm::Bursts(length) if number % length == length - 1 => {
                        time += std::mem::take(&mut owed)
                    }
                    Rhythm::Bursts(_) => {}
                    Rhythm::Pauses => {
                        time += std::mem::take(&mut owed);
                        if self.rng.chance(3) {
                            time += self.rng.log_range(10_000_000, 4 * SECOND);
                        }
                    }
                }
            }
        }
        // Stable: packets of one instant keep the order of their flows.
        packets.sort_by_key(|(time, _)| *time);
        packets.retain(|(time, _)| *time < 60 * SECOND);
        let span = packets.last().map_or(0, |(time, _)| *time);
        let row = |(at, (time, text)): (usize, &(u64, String))| Row {
            time: *time,
            rest: format!("{},{text}", at + 1),
        };
        (packets.iter().enumerate().map(row).collect(), span)
    }

    /// The columns after the size, the same for a whole flow.
    fn flow_head(&mut self, flow: u64, six: bool) -> Head {
        let v6 = six && !self.forward && self.rng.chance(50);
        let proto = match self.rng.below(10) {
            0 if !self.ports => {
                if v6 {
                    "58"
                } else {
                    "icmp"
                }
            }
            1..5 => "tcp",
            _ => "udp",
        };
        let rng = &mut self.rng;
        let (src, dst) = if v6 {
            (format!("2001:db8::{:x}", rng.range(1, 4)), format!("2001:db8:1::{:x}", rng.range(1, 4)))
        } else {
            (format!("10.0.0.{}", rng.range(1, 8)), format!("10.9.0.{}", rng.range(1, 4)))
        };
        let (sport, dport) = match proto {
            "icmp" | "58" => (rng.range(1, 9), 0),
            _ if rng.chance(15) => (u64::from(*rng.pick(PORTS)), rng.range(1024, 65_000)),
            _ => (rng.range(1024, 65_000), u64::from(*rng.pick(PORTS))),
        };
        let ds = *rng.pick(DSFIELDS);
        let mark = if rng.chance(75) { flow % 6 + 1 } else { rng.below(300) };
        let prio = if rng.chance(75) { "0".to_owned() } else { rng.below(16).to_string() };
        let class = if self.rng.chance(12) { self.any_class() } else { None };
        let prio = class.map_or(prio, |class| class.id);
        let flags = if proto == "tcp" { "A" } else { "" };
        let (seq, ack) = if proto == "tcp" { (1000, 5000) } else { (0, 0) };
        let smallest = if v6 { 82 } else { 60 };
        Head {
            text: format!("{src},{dst},{proto},{sport},{dport},{ds},{mark},{prio},{flags},{seq},{ack}"),
            smallest,
        }
    }
}

struct Head {
    text: String,
    smallest: u64,
}

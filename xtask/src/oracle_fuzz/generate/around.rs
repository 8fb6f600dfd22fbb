//! Around the queues: filters where packets arrive, actions that ask for connections, copies, samples.
//!
//! What is decided here comes from a stream of its own, so that the rest of a case stays as it was before
//! there was this file.

use super::World;
use super::filters::PORTS;
use crate::oracle_fuzz::case::Row;
use crate::oracle_fuzz::rng::Rng;

/// Actions that let the packet continue to the next one, anywhere.
const ANYWHERE: &[&str] = &[
    "connmark",
    "connmark zone 3",
    "ctinfo cpmark",
    "ctinfo cpmark 0x3",
    "ctinfo dscp 0x3f",
    "ctinfo dscp 0x3f 0x100 cpmark 0xff",
    "ctinfo dscp 0xfc 0x1",
    "simple sdata around pipe",
    "sample rate 3 group 1",
    "sample rate 1 group 2 trunc 40",
    "skbedit mark 2",
    "skbedit inheritdsfield",
];
/// Those that look connections up: at hooks only.
const AT_HOOKS: &[&str] = &[
    "ct",
    "ct commit",
    "ct commit mark 3",
    "ct commit mark 0x101/0x1ff",
    "ct commit force mark 5",
    "ct clear",
    "ct mark 7",
    "ct nat",
];
/// What flower asks of connections.
const STATES: &[&str] = &[
    "",
    "ct_state -trk",
    "ct_state +trk+new",
    "ct_state +trk+est",
    "ct_state +trk+est+rpl",
    "ct_state +trk+inv",
    "ct_mark 3",
    "ct_mark 0x1/0x1",
];

impl World {
    /// Filters where packets arrive, and where they leave; the rows that show what they counted.
    pub(super) fn around(&mut self, rng: &mut Rng, rows: &mut Vec<Row>, span: u64) {
        if !rng.chance(30) {
            return;
        }
        let mut hooks = vec!["link0 egress"];
        if self.forward {
            self.script.push("tc qdisc add dev in1 clsact".to_owned());
            hooks.push("in1 ingress");
        }
        self.script.push("tc qdisc add dev link0 clsact".to_owned());
        self.script.push("ip link set ifb0 up".to_owned());
        for hook in hooks {
            for pref in 1..=rng.range(1, 5) {
                let (condition, done) = (self.packet_around(rng), self.done_around(rng, hook));
                self.script
                    .push(format!("tc filter add dev {hook} protocol ip prio {pref} {condition} {done}"));
            }
            rows.push(Row { time: span, rest: format!("!,tc -s filter show dev {hook} >> snap.txt") });
        }
    }

    fn packet_around(&self, rng: &mut Rng) -> String {
        let port = *rng.pick(PORTS);
        let from = if self.forward && rng.chance(30) { " indev in1" } else { "" };
        match rng.below(4) {
            0 => "matchall".to_owned(),
            1 => format!("u32 match ip dport {port} 0xffff{from}"),
            2 => format!("flower{from} ip_proto udp dst_port {port}"),
            _ => format!("flower{from} {}", rng.pick(STATES)).trim_end().to_owned(),
        }
    }

    fn done_around(&self, rng: &mut Rng, hook: &str) -> String {
        let mut actions = Vec::new();
        for _ in 0..rng.range(1, 4) {
            let all = if rng.chance(50) { ANYWHERE } else { AT_HOOKS };
            actions.push(format!("action {}", rng.pick(all)));
        }
        // Where rules drop what was redirected so, the kernel counts that beside the action; we do not.
        if hook == "in1 ingress"
            && rng.chance(15)
            && !self.script.iter().any(|line| line.ends_with("-j DROP"))
        {
            let what = *rng.pick(&["mirror", "redirect"]);
            actions.push(format!("action mirred ingress {what} dev ifb0"));
        }
        let last = *rng.pick(&["continue", "continue", "pass", "drop"]);
        actions.push(format!("action {last}"));
        actions.join(" ")
    }
}

//! Policies made up at random, as commands in several wordings.

use tidegate_packet::{RandomSource as _, Seeded};

/// A class of a made-up policy.
pub(crate) struct Class {
    minor: u32,
    parent: u32,
    /// kbit/s.
    rate: u32,
    ceil: u32,
    leaf: Option<&'static str>,
}

/// A made-up policy: one root with classes, queues below them, filters, marks.
pub(crate) struct Policy {
    pub(crate) default: u32,
    pub(crate) classes: Vec<Class>,
    /// Preference, match, class.
    pub(crate) filters: Vec<(u32, String, u32)>,
    /// Rules that mark.
    pub(crate) marks: Vec<String>,
}

/// How a policy is written down.
#[derive(Clone, Copy)]
pub(crate) struct Wording {
    pub(crate) kind: &'static str,
    pub(crate) major: u32,
    /// What minor numbers become.
    pub(crate) minor: fn(u32) -> u32,
    pub(crate) protocol: &'static str,
    /// Classes of one parent, queues and filters of other preferences are in the reverse order.
    pub(crate) reversed: bool,
}

pub(crate) const PLAIN: Wording =
    Wording { kind: "htb", major: 1, minor: |minor| minor, protocol: "ip", reversed: false };

impl Policy {
    /// The policy of a seed.
    pub(crate) fn new(seed: u64) -> Policy {
        let mut draws = Seeded::new(seed);
        let mut below = |n: u32| draws.below(n);
        let pick = |n: u32, of: &[&'static str]| of[n as usize % of.len()];
        let whole = [1000, 4000, 20_000][below(3) as usize];
        let mut classes = vec![Class { minor: 1, parent: 0, rate: whole, ceil: whole, leaf: None }];
        let leaves = 2 + below(3);
        for n in 0..leaves {
            let rate = whole / leaves * (50 + below(100)) / 100;
            let ceil = [whole, rate, rate / 2, whole * 2][below(4) as usize].max(8);
            let queues =
                ["fq_codel", "sfq", "pfifo limit 1000", "pfifo limit 2", "red limit 60000 avpkt 1000"];
            let leaf = (below(4) > 0).then(|| pick(below(5), &queues));
            classes.push(Class { minor: 16 * (n + 1), parent: 1, rate, ceil, leaf });
        }
        let leaf = |n: u32| 16 * (n % leaves + 1);
        let filters = (0..1 + below(4)).map(|n| {
            let what = match below(5) {
                0 => "u32 match ip dport 22 0xffff".to_owned(),
                1 => format!("u32 match ip dst 10.0.{}.0/24", below(3)),
                2 => format!("u32 match ip tos {:#x} 0xfc", [0xb8, 0x10, 0x20][below(3) as usize]),
                3 => format!("handle {} fw", 1 + below(3)),
                _ => format!(
                    "flower ip_proto {} dst_port {}",
                    pick(below(2), &["tcp", "udp"]),
                    5000 + below(3)
                ),
            };
            (10 * (n + 1), what, leaf(below(8)))
        });
        let filters = filters.collect();
        let marks = (0..below(3)).map(|n| {
            let protocol = pick(below(2), &["tcp", "udp"]);
            format!(
                "iptables -t mangle -A POSTROUTING -o eth0 -p {protocol} --dport {} -j MARK --set-mark {}",
                80 + n,
                1 + below(3)
            )
        });
        let marks = marks.collect();
        // Now and then one that is not there.
        let default = leaf(below(leaves + 1)) + if below(6) == 0 { 7 } else { 0 };
        Policy { default, classes, filters, marks }
    }

    /// Its commands, a line each.
    pub(crate) fn commands(&self, words: Wording) -> Vec<String> {
        let Wording { kind, major, protocol, .. } = words;
        let id = |minor: u32| {
            if minor == 0 { format!("{major:x}:") } else { format!("{major:x}:{:x}", (words.minor)(minor)) }
        };
        let mut out = vec![format!(
            "tc qdisc add dev eth0 root handle {major:x}: {kind} default {:x}",
            (words.minor)(self.default)
        )];
        let class = |class: &Class| {
            let shape = match kind {
                "hfsc" => format!("ls m2 {}kbit ul m2 {}kbit", class.rate, class.ceil),
                _ => format!("rate {}kbit ceil {}kbit", class.rate, class.ceil),
            };
            format!(
                "tc class add dev eth0 parent {} classid {} {kind} {shape}",
                id(class.parent),
                id(class.minor)
            )
        };
        let queue =
            |class: &Class| Some(format!("tc qdisc add dev eth0 parent {} {}", id(class.minor), class.leaf?));
        let filter = |(preference, what, class): &(u32, String, u32)| {
            format!(
                "tc filter add dev eth0 parent {} protocol {protocol} prio {preference} {what} flowid {}",
                id(0),
                id(*class)
            )
        };
        let (root, leaves) = self.classes.split_at(1);
        out.extend(root.iter().map(class));
        let mut parts: [Vec<String>; 3] = [
            leaves.iter().map(class).collect(),
            leaves.iter().filter_map(queue).collect(),
            self.filters.iter().map(filter).collect(),
        ];
        if words.reversed {
            parts.iter_mut().for_each(|part| part.reverse());
            // Filters may precede the queues of their classes.
            parts.swap(1, 2);
        }
        out.extend(parts.into_iter().flatten());
        out.extend(self.marks.iter().cloned());
        out
    }
}

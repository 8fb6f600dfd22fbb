//! Random questions about TCP: a rate, delays, a queueing discipline and up to six flows.

use crate::oracle_fuzz::rng::Rng;
use std::fs;
use std::io;
use std::path::Path;

/// A question, as the files that the oracle reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Name of the row of the table that it counts for.
    pub(crate) discipline: &'static str,
    pub(crate) setup: String,
    pub(crate) script: String,
    pub(crate) flows: String,
}

/// One flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    control: &'static str,
    start: u64,
    seconds: u64,
}

/// How long the first flow lasts, in seconds; the others end two seconds earlier, so that they may be
/// shifted.
const SECONDS: u64 = 20;
/// The latest start.
const LATEST: u64 = 8;
/// What a shifted run adds to the delay, per shift, so that a lone flow is not simply repeated.
const NUDGE_US: u64 = 100;

/// How many different starts there are.
const STARTS: u64 = 3;

/// A qdisc: its name, whether the hosts use ECN, and its words for a rate in kbit/s.
struct Kind {
    name: &'static str,
    ecn: bool,
    words: fn(&mut Rng, u64) -> String,
}

const KINDS: [Kind; 14] = [
    Kind { name: "pfifo, shallow", ecn: false, words: |rng, _| format!("pfifo limit {}", rng.range(4, 30)) },
    Kind {
        name: "pfifo, deep",
        ecn: false,
        words: |rng, _| format!("pfifo limit {}", rng.log_range(64, 1000)),
    },
    Kind {
        name: "bfifo",
        ecn: false,
        words: |rng, _| format!("bfifo limit {}", rng.log_range(8_000, 400_000)),
    },
    Kind { name: "codel", ecn: false, words: |_, _| "codel".into() },
    Kind { name: "codel, ECN", ecn: true, words: |_, _| "codel ecn".into() },
    Kind { name: "fq_codel", ecn: false, words: |_, _| "fq_codel".into() },
    Kind { name: "fq_codel, ECN", ecn: true, words: |_, _| "fq_codel".into() },
    Kind { name: "pie", ecn: false, words: |_, _| "pie".into() },
    Kind { name: "fq_pie", ecn: false, words: |_, _| "fq_pie".into() },
    Kind { name: "red", ecn: false, words: red },
    Kind { name: "sfq", ecn: false, words: |_, _| "sfq".into() },
    Kind { name: "fq", ecn: false, words: |_, _| "fq".into() },
    Kind { name: "tbf", ecn: false, words: tbf },
    Kind { name: "cake", ecn: false, words: cake },
];

fn red(rng: &mut Rng, kbit: u64) -> String {
    // The least average is 10 to 40 ms of the rate.
    let min = (kbit * rng.range(10, 40) / 8).max(6_000);
    let (max, limit) = (min * 3, min * 12);
    let burst = (2 * min + max) / 3000 + 1;
    format!(
        "red limit {limit} min {min} max {max} avpkt 1000 burst {burst} probability 0.02 bandwidth {kbit}kbit"
    )
}

fn tbf(rng: &mut Rng, kbit: u64) -> String {
    let (burst, latency) = (rng.range(5_000, 30_000), rng.range(20, 200));
    format!("tbf rate {kbit}kbit burst {burst} latency {latency}ms")
}

fn cake(rng: &mut Rng, kbit: u64) -> String {
    let tins = rng.pick(&["besteffort", "diffserv3", "diffserv4"]);
    format!("cake bandwidth {kbit}kbit {tins}")
}

/// The question of this number, shifted: each flow but the first starts up to two seconds later. From the
/// third shift on these starts come again, and only the delay continues growing.
pub(crate) fn question(seed: u64, number: u64, shift: u64) -> Question {
    let mut rng = Rng::of_case(seed, number);
    let kind = &KINDS[(number % KINDS.len() as u64) as usize];
    let kbit = rng.log_range(1_000, 50_000);
    let hops = [rng.log_range(2_000, 40_000), rng.log_range(2_000, 40_000) + shift * NUDGE_US];
    let words = (kind.words)(&mut rng, kbit);
    let flows = flows(&mut rng, shift % STARTS);
    let mut script = format!(
        "ip netns exec B tc qdisc change dev vb root netem delay {}us limit 10000\n\
         tc qdisc change dev a0 root netem delay {}us limit 10000\n",
        hops[0], hops[1]
    );
    script += &if words.starts_with("tbf ") || words.starts_with("cake ") {
        format!("tc qdisc add dev b0 root handle 1: {words}\n")
    } else {
        format!(
            "tc qdisc add dev b0 root handle 1: htb default 1\n\
             tc class add dev b0 parent 1: classid 1:1 htb rate {kbit}kbit\n\
             tc qdisc add dev b0 parent 1:1 handle 10: {words}\n"
        )
    };
    let lines = (1..).zip(&flows).map(|(at, flow)| {
        let Flow { control, start, seconds } = flow;
        format!("{start} {control} {seconds} {control}{at}\n")
    });
    Question {
        discipline: kind.name,
        setup: format!("{kbit}kbit {} {SECONDS}\n", u8::from(kind.ecn)),
        script,
        flows: lines.collect(),
    }
}

/// One to six flows of one control or of several, by their start.
fn flows(rng: &mut Rng, shift: u64) -> Vec<Flow> {
    const CONTROLS: [&str; 3] = ["cubic", "reno", "bbr"];
    let count = rng.range(1, 6);
    let alike = rng.chance(40).then(|| *rng.pick(&CONTROLS));
    let mut flows: Vec<Flow> = (0..count)
        .map(|at| {
            let control = alike.unwrap_or(*rng.pick(&CONTROLS));
            let start = if at == 0 { 0 } else { rng.range(0, LATEST) };
            Flow { control, start, seconds: SECONDS - start - if at == 0 { 0 } else { 2 } }
        })
        .collect();
    for flow in flows.iter_mut().skip(1) {
        flow.start += shift;
    }
    flows.sort_by_key(|flow| flow.start);
    flows
}

impl Question {
    /// The files, by name.
    fn files(&self) -> [(&'static str, &str); 3] {
        [("setup", &self.setup), ("script.tc", &self.script), ("flows", &self.flows)]
    }

    /// Whether this question already is in a folder.
    pub(crate) fn exists_in(&self, dir: &Path) -> bool {
        self.files()
            .iter()
            .all(|(name, text)| fs::read_to_string(dir.join(name)).is_ok_and(|found| found == *text))
    }

    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)?;
        self.files().iter().try_for_each(|(name, text)| fs::write(dir.join(name), text))
    }

    /// Names of the flows.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.flows.lines().filter_map(|line| line.split_whitespace().nth(3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_moves_later_flows_only() {
        let mut moved = 0;
        for number in 0..50 {
            let [a, b] = [0, 1].map(|shift| question(3, number, shift));
            assert_eq!((a.discipline, &a.setup), (b.discipline, &b.setup), "{number}");
            assert_eq!(a.names().count(), b.names().count());
            assert!(a.flows.starts_with("0 ") && b.flows.starts_with("0 "), "{}{}", a.flows, b.flows);
            moved += u32::from(a.flows != b.flows);
        }
        assert!(moved > 20, "{moved}");
    }
}

//! Actions: what filters do beside choosing a class, and the machine's actions on their own.

use super::World;
use super::kinds::{Words, rate};
use crate::oracle_fuzz::rng::Rng;

/// Verdicts of gact that need no number.
const VERDICTS: &[&str] = &["pass", "ok", "drop", "shot", "continue", "reclassify", "pipe", "trap"];
/// What a policer does about what comes too fast.
const EXCEEDS: &[&str] = &["drop", "drop", "pass", "ok", "continue", "reclassify", "pipe"];
/// The numbers that shared actions have: few, so that filters and commands meet.
const INDICES: u64 = 4;
/// The kinds of action that `tc actions` is asked about.
const KINDS: &[&str] = &["police", "gact", "skbedit", "mirred"];

impl World {
    /// The actions of a filter, with the blank in front, or nothing.
    pub(super) fn actions(&mut self, percent: u64) -> String {
        if !self.rng.chance(percent) {
            return String::new();
        }
        if self.rng.chance(20) {
            // The old way: the policer is an option of the filter, not one of its actions.
            return format!(" {}", self.police(true));
        }
        let count = self.rng.weighted(&[70, 22, 8]) as u64 + 1;
        (1..=count).map(|at| format!(" action {}", self.action(count - at))).collect()
    }

    /// One action that `after` more follow.
    fn action(&mut self, after: u64) -> String {
        match self.rng.weighted(&[35, 30, 20, 15]) {
            0 => self.police(false),
            1 => self.gact(after),
            3 if self.led => self.mirred(),
            _ => self.skbedit(),
        }
    }

    /// An action that is there before packets come, and that filters refer to by its number.
    pub(super) fn shared_action(&mut self) -> String {
        let words = self.action(0);
        format!("tc actions add action {}", numbered(&words, self.rng.range(1, INDICES)))
    }

    fn police(&mut self, old: bool) -> String {
        let (rng, about) = (&mut self.rng, self.rate);
        if rng.chance(10) {
            return format!("police index {}", rng.range(1, INDICES));
        }
        let mut words = Words::new();
        words.add("police");
        if rng.chance(15) {
            words.add(format!("pkts_rate {} pkts_burst {}", rng.log_range(5, 2000), rng.log_range(1, 40)));
        } else if rng.chance(5) {
            words.add(format!("mtu {}", rng.range(100, 1600)));
        } else {
            measured_by_bytes(rng, about, &mut words);
        }
        if rng.chance(75) {
            words.add(if old && rng.chance(50) { exceed(rng).to_owned() } else { conform_exceed(rng) });
        }
        words.maybe(rng, 12, |rng| format!("index {}", rng.range(1, INDICES)));
        words.text()
    }

    fn gact(&mut self, after: u64) -> String {
        let verdict = self.verdict(after);
        let rng = &mut self.rng;
        let mut words = Words::new();
        words.add(verdict);
        words.maybe(rng, 20, |rng| {
            let how = rng.pick(&["netrand", "determ"]);
            format!(
                "random {how} {} {}",
                rng.pick(&["drop", "pass", "continue", "pipe", "reclassify"]),
                rng.log_range(1, 20)
            )
        });
        words.maybe(rng, 10, |rng| format!("index {}", rng.range(1, INDICES)));
        words.text()
    }

    fn verdict(&mut self, after: u64) -> String {
        match self.rng.below(12) {
            0 if after > 0 => format!("jump {}", self.rng.range(1, after)),
            1 | 2 => format!("goto chain {}", self.chain()),
            _ => (*self.rng.pick(VERDICTS)).to_owned(),
        }
    }

    fn skbedit(&mut self) -> String {
        let class = self.any_class().map_or("1:1".to_owned(), |class| class.id);
        let rng = &mut self.rng;
        let mut words = Words::new();
        words.add("skbedit");
        words.maybe(rng, 60, |rng| {
            format!("priority {}", if rng.chance(70) { class } else { rng.below(16).to_string() })
        });
        words.maybe(rng, 60, |rng| {
            let mark = rng.range(1, 6);
            if rng.chance(30) {
                format!("mark {mark}/{}", rng.pick(&["0x3", "0xff", "7"]))
            } else {
                format!("mark {mark}")
            }
        });
        words.maybe(rng, 10, |_| "mark 1 priority 0:3".to_owned());
        words.maybe(rng, 35, |rng| (*rng.pick(VERDICTS)).to_owned());
        let text = words.text();
        // It must be told to do something.
        if text.contains("mark") || text.contains("priority") { text } else { "skbedit mark 2".to_owned() }
    }

    fn mirred(&mut self) -> String {
        let rng = &mut self.rng;
        let what = *rng.pick(&["mirror", "mirror", "redirect"]);
        let verdict = if what == "mirror" && rng.chance(25) { " continue" } else { "" };
        format!("mirred egress {what} dev ifb{}{verdict}", rng.below(2))
    }

    /// A command on the machine's actions in the middle of a run.
    pub(super) fn change_actions(&mut self) -> String {
        let kind = *self.rng.pick(KINDS);
        let index = self.rng.range(1, INDICES + 1);
        let show = *self.rng.pick(&["", " -s", " -s", " -j -s", " -d", " -p -j"]);
        match self.rng.below(12) {
            0 | 1 => {
                let verb = *self.rng.pick(&["add", "replace", "replace", "change"]);
                let words = self.action(0);
                format!("tc actions {verb} action {}", numbered(&words, index))
            }
            2 => format!("tc actions del action {kind} index {index}"),
            3 => format!("tc actions flush action {kind}"),
            4 | 5 => format!("tc{show} actions get action {kind} index {index}"),
            _ => format!("tc{show} actions ls action {kind}"),
        }
    }
}

/// The action with this number, whatever it said of one before.
fn numbered(words: &str, index: u64) -> String {
    let words = words.split(" index ").next().unwrap_or(words);
    format!("{words} index {index}")
}

fn measured_by_bytes(rng: &mut Rng, about: u64, words: &mut Words) {
    let speed = about * rng.range(20, 130) / 100;
    words.add(format!("rate {}", rate(rng, speed)));
    words.add(format!("burst {}", rng.pick(&["1600", "2k", "3k", "5000", "10k", "20k", "1514"])));
    if rng.chance(20) {
        words.add(format!("peakrate {}bit", speed * rng.range(105, 300) / 100 + 9000));
        words.add(format!("mtu {}", rng.pick(&[1514, 1600, 2000, 600])));
    } else {
        words.maybe(rng, 20, |rng| format!("mtu {}", rng.pick(&[1514, 1500, 600, 3000, 9000])));
    }
    words.maybe(rng, 12, |rng| format!("mpu {}", rng.pick(&[64, 84, 200])));
    words.maybe(rng, 12, |rng| format!("overhead {}", rng.pick(&[4, 18, 40])));
    words.maybe(rng, 15, |rng| format!("linklayer {}", rng.pick(&["atm", "adsl", "ethernet"])));
}

fn exceed(rng: &mut Rng) -> &'static str {
    EXCEEDS[rng.below(EXCEEDS.len() as u64) as usize]
}

fn conform_exceed(rng: &mut Rng) -> String {
    let above = exceed(rng);
    if rng.chance(40) {
        return format!("conform-exceed {above}");
    }
    format!("conform-exceed {above}/{}", rng.pick(&["pass", "ok", "pipe", "continue", "drop", "reclassify"]))
}

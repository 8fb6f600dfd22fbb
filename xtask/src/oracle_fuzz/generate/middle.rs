//! Commands in the middle of a run: changes, replacements, removals, mistakes, and looks at the statistics.

use super::kinds::{self, KINDS};
use super::{Qdisc, World, fair, later};
use crate::oracle_fuzz::case::Row;

/// Commands whose first line of complaint and whose exit code are compared (the usage texts below it are
/// everyone's own).
const MISTAKES: &[&str] = &[
    "tc qdisc add dev link0 root handle 1: nosuch",
    "tc qdisc add dev link0 parent 1:1 handle 5: nosuch limit 3",
    "tc qdisc add dev link0 parent 99:1 handle 5: pfifo",
    "tc qdisc add dev link0 parent 1:fff handle 5: pfifo limit 4",
    "tc qdisc add dev link0 root pfifo limit",
    "tc qdisc add dev link0 root handle 2: pfifo limit x",
    "tc qdisc replace dev link0 root handle 2: tbf rate 1mbit burst 1500",
    "tc qdisc change dev link0 root handle 9: pfifo limit 3",
    "tc qdisc change dev link0 root handle 1: sfq limit 1",
    "tc qdisc del dev link0 parent 1:1 handle 9999:",
    "tc qdisc del dev link0 root handle 9:",
    "tc qdisc del dev link1 root",
    "tc qdisc del dev nolink root",
    "tc class add dev link0 parent 1: classid 1:1 htb",
    "tc class add dev link0 parent 1: classid 9:1 htb rate 100kbit",
    "tc class add dev link0 parent 9: classid 9:1 htb rate 100kbit",
    "tc class del dev link0 classid 1:fe",
    "tc class del dev link0 parent 1: classid 1:1",
    "tc class change dev link0 parent 1: classid 1:7e drr quantum 0",
    "tc class add dev link0 parent 1: classid 1:7f htb rate 100kbit burst x",
    "tc class add dev link0 parent 1: classid 1:7f htb rate 100x",
    "tc class add dev link0 parent 1: classid 1:7f hfsc ul rate 100kbit",
    "tc class add dev link0 parent 1: classid 1:7f hfsc sc umax 1500 rate 100kbit",
    "tc qdisc change dev link0 root handle 1: hfsc default 99999",
    "tc filter add dev link0 parent 9: protocol ip prio 1 handle 1 fw classid 1:1",
    "tc filter add dev link0 parent 1: protocol ip prio 1 u32 classid 1:1",
    "tc filter add dev link0 parent 1: protocol ip prio 1 flow hash keys nosuch divisor 4",
    "tc filter add dev link0 parent 1: protocol ip prio 3 nosuch classid 1:1",
    "tc filter del dev link0 parent 1: protocol ip prio 77",
    "tc filter del dev link0 parent 1: protocol ip prio 1 handle 99 fw",
    "tc qdisc add dev link0 parent 1:1 handle 10000: pfifo",
    "tc qdisc add dev link0 parent 1:1 handle 66: codel target x",
    "tc qdisc replace dev link0 parent 1:1 handle 66: prio bands 2",
    "tc qdisc replace dev link0 parent 1:1 handle 66: sfq divisor 3",
    "tc qdisc replace dev link0 parent 1:1 handle 66: fq_codel flows 65537",
    "tc qdisc replace dev link0 parent 1:1 handle 66: stab overhead 4 linklayer atm pfifo",
    "tc qdisc change dev link0 parent 1:1 handle 66: pfifo limit 3",
    "tc qdisc change dev link0 root handle 1: ets bands 3 strict 4",
    "tc qdisc change dev link0 root handle 1: ets quanta 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17",
    "tc class change dev link0 parent 1: classid 1:1 ets quantum 5000",
    "tc qdisc replace dev link0 parent 1:1 handle 66: gred vq 1 limit 9000 min 1000 max 3000 avpkt 500",
    "tc qdisc replace dev link0 parent 1:1 handle 66: fq_pie flows 65537",
    "tc qdisc replace dev link0 parent 1:1 handle 66: fq quantum 0",
    "tc qdisc replace dev link0 parent 1:1 handle 66: fq buckets 1",
    "tc qdisc replace dev link0 parent 1:1 handle 66: hhf quantum 4294967295",
    "tc qdisc replace dev link0 parent 1:1 handle 66: netem reorder 5%",
    "tc qdisc replace dev link0 parent 1:1 handle 66: netem delay 10ms distribution normal",
    "tc qdisc change dev link0 root handle 1: skbprio limit x",
];

impl World {
    /// Puts commands between the packets.
    pub(super) fn middle(&mut self, rows: &mut Vec<Row>, span: u64) {
        let count = match self.rng.weighted(&[20, 35, 30, 15]) {
            0 => 0,
            1 => self.rng.range(1, 2),
            2 => self.rng.range(2, 5),
            _ => self.rng.range(5, 12),
        };
        let mut commands = Vec::new();
        for _ in 0..count {
            let time = if self.rng.chance(20) && !rows.is_empty() {
                self.rng.pick(rows).time
            } else {
                self.rng.below(span + span / 8 + 1)
            };
            let mut text = self.command();
            if self.rng.chance(35) {
                let look = self.look();
                text = format!("{text}; {look}");
            }
            commands.push(Row { time, rest: format!("!,{text}") });
        }
        rows.extend(commands);
        rows.sort_by_key(|row| row.time);
    }

    fn command(&mut self) -> String {
        let acting = if self.acting { 14 } else { 0 };
        let text = match self.rng.weighted(&[22, 16, 14, 6, 8, 16, 10, 8, 2, acting]) {
            0 => return self.look(),
            1 => self.change_qdisc(),
            2 => self.replace_qdisc(),
            3 => self.delete_qdisc(),
            4 => self.graft(),
            5 => self.change_class(),
            6 => self.change_filter(),
            7 => {
                let wrong = *self.rng.pick(MISTAKES);
                return format!("{wrong} 2> err.txt; echo rc=$? >> snap.txt; head -1 err.txt >> snap.txt");
            }
            8 => self.whole_root(),
            _ => Some(self.change_actions()),
        };
        match text {
            Some(text) => format!("{text} >> snap.txt 2>&1; echo rc=$? >> snap.txt"),
            None => self.look(),
        }
    }

    /// A look at the statistics while packets wait.
    fn look(&mut self) -> String {
        let detail = *self.rng.pick(&["-s", "-s -d", "-d", "-s"]);
        match self.rng.below(5) {
            0 | 1 => format!("tc {detail} qdisc show dev link0 >> snap.txt 2>&1"),
            3 if self.acting && self.rng.chance(60) => {
                let kind = *self.rng.pick(&["police", "gact", "skbedit", "mirred"]);
                format!("tc -s actions ls action {kind} >> snap.txt 2>&1")
            }
            2 | 3 => format!("tc {detail} class show dev link0 >> snap.txt 2>&1"),
            _ => {
                let parent =
                    self.filters.first().map_or("parent 1:".to_owned(), |filter| filter.parent.clone());
                format!("tc {detail} filter show dev link0 {parent} >> snap.txt 2>&1")
            }
        }
    }

    fn any_qdisc(&mut self) -> Qdisc {
        self.rng.pick(&self.qdiscs).clone()
    }

    /// Fresh words for a kind, with the blank in front.
    fn fresh(&mut self, kind: &str) -> String {
        let Some(spec) = KINDS.iter().find(|spec| spec.name == kind) else { return String::new() };
        let words = (spec.words)(&mut self.rng, self.rate);
        if words.is_empty() { words } else { format!(" {words}") }
    }

    fn same(words: &str) -> String {
        if words.is_empty() { String::new() } else { format!(" {words}") }
    }

    fn change_qdisc(&mut self) -> Option<String> {
        let Qdisc { kind, handle, place, words, .. } = self.any_qdisc();
        let handle = handle.map_or(String::new(), |h| format!(" handle {h:x}:"));
        let words = if self.rng.chance(30) {
            Self::same(&words)
        } else if kind == "gred" && self.rng.chance(70) {
            format!(" {}", later::gred_queue(&mut self.rng, self.rate))
        } else {
            self.fresh(kind)
        };
        Some(format!("tc qdisc change dev link0 {place}{handle} {kind}{words}"))
    }

    fn replace_qdisc(&mut self) -> Option<String> {
        let Qdisc { kind, handle, place, words, .. } = self.any_qdisc();
        if place == "root" && self.rng.chance(70) {
            return None;
        }
        let old = handle.map_or(String::new(), |h| format!(" handle {h:x}:"));
        let new = self.new_handle();
        match self.rng.below(4) {
            0 => Some(format!("tc qdisc replace dev link0 {place}{old} {kind}{}", Self::same(&words))),
            1 => {
                let words = self.fresh(kind);
                Some(format!("tc qdisc replace dev link0 {place}{old} {kind}{words}"))
            }
            2 => {
                let words = self.fresh(kind);
                Some(format!("tc qdisc replace dev link0 {place} handle {new:x}: {kind}{words}"))
            }
            _ => {
                let kind = self.rng.pick(self.kinds).name;
                let words = self.fresh(kind);
                let handle = if self.rng.chance(50) { format!(" handle {new:x}:") } else { String::new() };
                Some(format!("tc qdisc replace dev link0 {place}{handle} {kind}{words}"))
            }
        }
    }

    fn new_handle(&mut self) -> u16 {
        self.next_handle += 1;
        self.next_handle
    }

    fn delete_qdisc(&mut self) -> Option<String> {
        let Qdisc { handle, place, .. } = self.any_qdisc();
        if place == "root" {
            return None;
        }
        let handle =
            handle.filter(|_| self.rng.chance(60)).map_or(String::new(), |h| format!(" handle {h:x}:"));
        Some(format!("tc qdisc del dev link0 {place}{handle}"))
    }

    /// A new qdisc below a class, with its packets queued there.
    fn graft(&mut self) -> Option<String> {
        let class = self.any_class()?;
        let kind = self.rng.pick(self.kinds).name;
        let words = self.fresh(kind);
        let new = self.new_handle();
        let verb = *self.rng.pick(&["add", "add", "replace"]);
        Some(format!("tc qdisc {verb} dev link0 parent {} handle {new:x}: {kind}{words}", class.id))
    }

    fn change_class(&mut self) -> Option<String> {
        let by_hand = |q: &&Qdisc| matches!(q.kind, "htb" | "drr" | "hfsc" | "qfq" | "ets");
        let with: Vec<Qdisc> = self.qdiscs.iter().filter(by_hand).cloned().collect();
        if with.is_empty() {
            return None;
        }
        let qdisc = self.rng.pick(&with).clone();
        let handle = qdisc.handle?;
        if qdisc.classes.is_empty() {
            return None;
        }
        let class = self.rng.pick(&qdisc.classes).clone();
        let share = self.rate * self.rng.range(10, 90) / 100;
        let words = match qdisc.kind {
            "htb" => format!(" {}", kinds::htb_class(&mut self.rng, share, self.rate)),
            "hfsc" => format!(" {}", fair::hfsc_class(&mut self.rng, share, self.rate)),
            "qfq" => fair::qfq_class(&mut self.rng),
            "ets" => later::ets_class(&mut self.rng),
            _ => kinds::drr_class(&mut self.rng),
        };
        let (kind, id, parent) = (qdisc.kind, &class.id, &class.parent);
        if matches!(kind, "hfsc" | "qfq") && self.rng.chance(12) {
            let wrong = *self.rng.pick(if kind == "hfsc" { fair::HFSC_MISTAKES } else { fair::QFQ_MISTAKES });
            return Some(wrong.replace("HANDLE", &format!("{handle:x}")));
        }
        Some(match self.rng.below(8) {
            0 => format!("tc class del dev link0 classid {id}"),
            1 => format!("tc class del dev link0 parent {parent} classid {id}"),
            2 => format!(
                "tc class add dev link0 parent {handle:x}: classid {handle:x}:{:x} {kind}{words}",
                self.rng.range(0x40, 0x60)
            ),
            3 if matches!(kind, "htb" | "hfsc") => {
                let minor = self.rng.range(0x40, 0x60);
                format!("tc class add dev link0 parent {id} classid {handle:x}:{minor:x} {kind}{words}")
            }
            4 => format!("tc class replace dev link0 parent {parent} classid {id} {kind}{words}"),
            5 => format!(
                "tc class change dev link0 parent {parent} classid {id} {kind}{}",
                Self::same(&class.words)
            ),
            _ => format!("tc class change dev link0 parent {parent} classid {id} {kind}{words}"),
        })
    }

    fn change_filter(&mut self) -> Option<String> {
        if self.filters.is_empty() || self.rng.chance(35) {
            let filter = self.any_filter()?;
            let verb = *self.rng.pick(&["add", "add", "replace"]);
            return Some(format!("tc filter {verb} dev link0 {filter}"));
        }
        let mut filter = self.rng.pick(&self.filters).clone();
        let super::Filter { parent, protocol, pref, handle, kind, .. } = &filter;
        Some(match self.rng.below(4) {
            0 => format!("tc filter del dev link0 {parent} protocol {protocol} prio {pref}"),
            1 if matches!(*kind, "fw" | "flow") => {
                format!("tc filter del dev link0 {parent} protocol {protocol} prio {pref} {handle}{kind}")
            }
            2 => {
                let class = self.any_class()?;
                filter.words = match filter.kind {
                    "flow" => return None,
                    "basic" | "flower" | "matchall" => {
                        let condition = filter.words.split(" classid ").next().unwrap_or_default().to_owned();
                        let condition = condition.split(" flowid ").next().unwrap_or_default();
                        format!("{condition} classid {}", class.id).trim_start().to_owned()
                    }
                    "u32" => format!("match ip dport 80 0xffff classid {}", class.id),
                    _ => format!("classid {}", class.id),
                };
                let verb = *self.rng.pick(&["change", "replace"]);
                format!("tc filter {verb} dev link0 {filter}")
            }
            _ => format!("tc filter {} dev link0 {filter}", self.rng.pick(&["add", "replace"])),
        })
    }

    /// The root itself goes, or is another.
    fn whole_root(&mut self) -> Option<String> {
        match self.rng.below(3) {
            0 => Some("tc qdisc del dev link0 root".to_owned()),
            1 => {
                let kind = self.rng.pick(self.kinds).name;
                let words = self.fresh(kind);
                Some(format!("tc qdisc replace dev link0 root handle 2: {kind}{words}"))
            }
            _ => Some(format!("tc qdisc add dev link0 root handle 3: pfifo limit {}", self.rng.range(1, 99))),
        }
    }
}

//! Random cases: a tree, its filters, traffic through it, and changes in the middle.

use super::case::Case;
use super::draws::Draws;

/// Deepest tree, in qdiscs.
const DEEPEST: u32 = 3;
/// Most packets in a case: enough for queues to fill, few enough for a third of a second each.
const MOST_PACKETS: usize = 700;

/// A qdisc or class that a change may be made to.
struct Node {
    /// Kind of the qdisc.
    kind: &'static str,
    /// `root` or `parent 1:10`.
    place: String,
    /// `10:`.
    handle: String,
    /// Bits per second that reach it, about.
    rate: u64,
}

struct Class {
    kind: &'static str,
    parent: String,
    classid: String,
    rate: u64,
}

struct Maker {
    draws: Draws,
    script: Vec<String>,
    nodes: Vec<Node>,
    classes: Vec<Class>,
    /// Parents that have filters, with the preferences in use.
    filters: Vec<(String, u32)>,
    next_handle: u32,
    icmp: bool,
}

/// The case of this number.
pub(super) fn case(seed: u64, number: u64) -> Case {
    let mut draws = Draws::of_case(seed, number);
    let slow = draws.percent(55);
    let rate = if slow { draws.one(&[300_000, 790_000, 1_000_000, 3_300_000, 8_200_000, 20_000_000]) } else { 0 };
    let overhead = if slow { draws.one(&[0, 0, 18, 24, 38]) } else { 0 };
    let txqueuelen = draws.one(&[1000, 1000, 100, 30, 10]);
    let icmp = draws.percent(30);
    let mut maker = Maker {
        draws,
        script: Vec::new(),
        nodes: Vec::new(),
        classes: Vec::new(),
        filters: Vec::new(),
        next_handle: 0x10,
        icmp,
    };
    let shaped = if slow { rate } else { maker.draws.one(&[200_000, 700_000, 1_500_000, 6_000_000, 20_000_000]) };
    let stab = if maker.draws.percent(20) { maker.stab() } else { String::new() };
    maker.qdisc("root", "1:", shaped, 0, !slow, &stab);
    let rows = maker.schedule(shaped);
    Case { link: format!("{rate} {overhead} 1500 {txqueuelen}"), script: maker.script, rows }
}

impl Maker {
    fn say(&mut self, line: String) {
        self.script.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
    }

    fn handle(&mut self) -> String {
        self.next_handle += self.draws.range(1, 6) as u32;
        format!("{:x}:", self.next_handle)
    }

    fn stab(&mut self) -> String {
        let d = &mut self.draws;
        let mut out = "stab".to_string();
        if d.percent(30) {
            out += &format!(" mtu {} tsize {}", d.one(&[1500, 2047, 4095]), d.one(&[16, 128, 512, 600]));
        }
        if d.percent(50) {
            out += &format!(" mpu {}", d.one(&[64, 96]));
        }
        out += &format!(" overhead {}", ["-4", "10", "18", "40"][d.below(4) as usize]);
        out += ["", " linklayer ethernet", " linklayer atm", " linklayer adsl"][d.below(4) as usize];
        out
    }

    /// Adds a qdisc and what is below it.
    fn qdisc(&mut self, place: &str, handle: &str, rate: u64, depth: u32, shaping: bool, stab: &str) {
        const LEAVES: [&str; 9] =
            ["pfifo", "bfifo", "pfifo_head_drop", "sfq", "sfq", "codel", "fq_codel", "fq_codel", "pfifo_fast"];
        const INNER: [&str; 5] = ["prio", "tbf", "htb", "htb", "drr"];
        let inner = depth < DEEPEST && (shaping || self.draws.percent(if depth == 0 { 80 } else { 30 }));
        let kind = match (shaping, inner) {
            (true, _) => self.draws.pick(&["tbf", "htb", "htb"]),
            (false, true) => self.draws.pick(&INNER),
            (false, false) => self.draws.pick(&LEAVES),
        };
        let options = self.options(kind, rate);
        self.say(format!("tc qdisc add dev link0 {place} handle {handle} {stab} {kind} {options}"));
        self.nodes.push(Node { kind, place: place.into(), handle: handle.into(), rate });
        match kind {
            "prio" => self.prio(handle, &options, rate, depth),
            "tbf" if self.draws.percent(60) => self.below(&format!("{handle}1"), rate, depth),
            "htb" => self.htb(handle, rate, depth),
            "drr" => self.drr(handle, rate, depth),
            "sfq" | "fq_codel" if self.draws.percent(15) => self.filters(handle, &[], depth),
            _ => {}
        }
    }

    fn below(&mut self, class: &str, rate: u64, depth: u32) {
        let handle = self.handle();
        self.qdisc(&format!("parent {class}"), &handle, rate, depth + 1, false, "");
    }

    /// Options of a kind; few or none now and then, so that defaults are met too.
    fn options(&mut self, kind: &str, rate: u64) -> String {
        let d = &mut self.draws;
        let mut out = String::new();
        match kind {
            "pfifo" | "pfifo_head_drop" if d.percent(70) => out = format!("limit {}", d.one(&[0, 1, 3, 10, 33, 100])),
            "bfifo" if d.percent(80) => out = format!("limit {}", d.one(&[1000, 5000, 20000, 110306])),
            "prio" if d.percent(80) => {
                let bands = d.range(2, 6);
                out = format!("bands {bands} priomap");
                for _ in 0..16 {
                    out += &format!(" {}", d.below(bands));
                }
            }
            "tbf" => out = tbf(d, rate),
            "htb" => {
                out = format!("default {:x}", d.one(&[0, 2, 0x10, 0x11, 0x99]));
                if d.percent(20) {
                    out += &format!(" r2q {}", d.one(&[1, 5, 100]));
                }
                if d.percent(20) {
                    out += &format!(" direct_qlen {}", d.one(&[0, 2, 50]));
                }
            }
            "sfq" => {
                for (chance, option) in [
                    (40, format!("limit {}", d.one(&[2, 10, 60, 127, 300]))),
                    (30, format!("quantum {}", d.one(&[300, 1000, 1514, 3000]))),
                    (25, format!("depth {}", d.one(&[1, 5, 60]))),
                    (20, format!("divisor {}", d.one(&[4, 16, 256]))),
                    (15, format!("flows {}", d.one(&[2, 8, 40]))),
                    (20, "headdrop".into()),
                    (10, format!("perturb {}", d.one(&[1, 2]))),
                ] {
                    if d.percent(chance) {
                        out += &format!(" {option}");
                    }
                }
            }
            "codel" | "fq_codel" => {
                out = codel(d);
                if kind == "fq_codel" {
                    for (chance, option) in [
                        (35, format!("quantum {}", d.one(&[256, 300, 1514, 3000]))),
                        (35, format!("flows {}", d.one(&[1, 2, 16, 1024]))),
                        (15, format!("memory_limit {}", d.one(&[20_000, 60_000]))),
                        (20, format!("drop_batch {}", d.one(&[1, 2, 8]))),
                    ] {
                        if d.percent(chance) {
                            out += &format!(" {option}");
                        }
                    }
                }
            }
            _ => {}
        }
        out
    }

    fn prio(&mut self, handle: &str, options: &str, rate: u64, depth: u32) {
        let bands = options.split_whitespace().nth(1).and_then(|bands| bands.parse().ok()).unwrap_or(3);
        let classes: Vec<String> = (1..=bands).map(|band: u32| format!("{handle}{band:x}")).collect();
        for class in &classes {
            if self.draws.percent(65) {
                self.below(class, rate, depth);
            }
        }
        if self.draws.percent(50) {
            self.filters(handle, &classes, depth);
        }
    }

    fn drr(&mut self, handle: &str, rate: u64, depth: u32) {
        let count = self.draws.range(1, 5);
        let mut classes = Vec::new();
        for minor in 1..=count {
            let quantum = if self.draws.percent(70) {
                format!("quantum {}", self.draws.one(&[100, 600, 1514, 3000]))
            } else {
                String::new()
            };
            let classid = format!("{handle}{minor:x}");
            self.say(format!("tc class add dev link0 parent {handle} classid {classid} drr {quantum}"));
            self.classes.push(Class { kind: "drr", parent: handle.into(), classid: classid.clone(), rate });
            if self.draws.percent(55) {
                self.below(&classid, rate, depth);
            }
            classes.push(classid);
        }
        self.filters(handle, &classes, depth);
        if self.draws.percent(85) {
            let class = classes[self.draws.below(count) as usize].clone();
            self.say(format!(
                "tc filter add dev link0 parent {handle} protocol all prio 90 u32 match u32 0 0 flowid {class}"
            ));
        }
    }

    fn htb(&mut self, handle: &str, rate: u64, depth: u32) {
        let extra = ["", "", "", " overhead 24", " mpu 64", " linklayer atm overhead 10"][self.draws.below(6) as usize];
        let top = format!("{handle}1");
        self.htb_class(handle, &top, rate, rate, extra);
        let mut leaves = Vec::new();
        let count = self.draws.range(1, 4);
        for index in 0..count {
            let classid = format!("{handle}{:x}", 0x10 + index);
            let share = rate * self.draws.range(5, 120) / 100 / count;
            let ceil = if self.draws.percent(70) { rate } else { share.max(rate * self.draws.range(20, 110) / 100) };
            self.htb_class(&top, &classid, share, ceil, extra);
            if self.draws.percent(20) {
                for inner in 0..2 {
                    let below = format!("{handle}{:x}", 0x100 + index * 16 + inner);
                    self.htb_class(&classid, &below, share / 2, ceil, extra);
                    leaves.push((below, share));
                }
            } else {
                leaves.push((classid, share));
            }
        }
        if self.draws.percent(15) {
            let lone = format!("{handle}2");
            self.htb_class(handle, &lone, rate / 4, rate / 3, extra);
            leaves.push((lone, rate / 4));
        }
        let mut classes = Vec::new();
        for (class, share) in leaves {
            if self.draws.percent(60) {
                self.below(&class, share.max(100_000), depth);
            }
            classes.push(class);
        }
        self.filters(handle, &classes, depth);
    }

    fn htb_class(&mut self, parent: &str, classid: &str, rate: u64, ceil: u64, extra: &str) {
        let options = htb_options(&mut self.draws, rate, ceil);
        self.say(format!("tc class add dev link0 parent {parent} classid {classid} htb {options}{extra}"));
        self.classes.push(Class { kind: "htb", parent: parent.into(), classid: classid.into(), rate });
    }

    /// Filters at a qdisc that lead to these classes (none: flows of sfq or fq_codel, by number).
    fn filters(&mut self, parent: &str, classes: &[String], depth: u32) {
        let count = self.draws.range(u64::from(depth == 0), 5);
        for index in 0..count {
            let pref = (index + 1) as u32;
            let line = self.filter(parent, classes, pref);
            self.say(format!("tc filter add dev link0 parent {parent} {line}"));
            self.filters.push((parent.into(), pref));
        }
    }

    fn filter(&mut self, parent: &str, classes: &[String], pref: u32) -> String {
        let d = &mut self.draws;
        let class = match classes.len() {
            0 => format!("{parent}{:x}", d.range(1, 8)),
            n => classes[d.below(n as u64) as usize].clone(),
        };
        let word = d.pick(&["classid", "flowid"]);
        let protocol = d.pick(&["ip", "ip", "all", "ipv6"]);
        match d.below(10) {
            0..3 => {
                let mask = ["", "", "/0xff", "/0x3"][d.below(4) as usize];
                format!("protocol {protocol} prio {pref} handle {}{mask} fw {word} {class}", d.below(4))
            }
            3..5 => flow_filter(d, parent, classes.len().max(1) as u64, pref, self.icmp),
            _ if protocol == "ipv6" => {
                let matched = match d.below(4) {
                    0 => format!("ip6 priority {:#x} 0xfc", d.one(&[0xb8, 0x20, 0])),
                    1 => format!("ip6 dport {} 0xffff", d.one(&[53, 80, 443])),
                    2 => "ip6 src 2001:db8::/32".to_string(),
                    _ => format!("ip6 protocol {} 0xff", d.one(&[6, 17])),
                };
                format!("protocol ipv6 prio {pref} u32 match {matched} {word} {class}")
            }
            _ => {
                let matched = match d.below(8) {
                    0 => format!("ip dport {} 0xffff", d.one(&[53, 80, 443])),
                    1 => format!("ip sport {} 0xf000", d.one(&[0x1000, 0x2000])),
                    2 => format!("ip tos {:#x} 0xfc", d.one(&[0xb8, 0x10, 0x20])),
                    3 => format!("ip protocol {} 0xff", d.one(&[1, 6, 17])),
                    4 => format!("ip src 10.0.0.{}/{}", d.below(4), d.one(&[24, 31, 32])),
                    5 => format!("mark {} 0x3 match u32 0 0", d.below(4)),
                    6 => format!("u16 {} 0xff00 at 2", d.one(&[0x100, 0x400])),
                    _ => format!("udp dst {} 0xffff match ip protocol 17 0xff", d.one(&[53, 80])),
                };
                let protocol = if protocol == "all" { "all" } else { "ip" };
                format!("protocol {protocol} prio {pref} u32 match {matched} {word} {class}")
            }
        }
    }

    /// Traffic, looks and changes.
    fn schedule(&mut self, rate: u64) -> Vec<String> {
        let mut rows: Vec<(u64, String)> = Vec::new();
        let span = self.draws.range(150, 2500) * 1_000_000;
        let flows = self.draws.range(1, 7);
        // Each flow offers a part of the load; together from half to three times what gets through.
        let load = rate * self.draws.range(50, 300) / 100;
        for _ in 0..flows {
            self.flow(span, load / flows, MOST_PACKETS / flows as usize, &mut rows);
        }
        for _ in 0..self.draws.below(4) {
            let at = self.draws.below(span);
            let what = self.draws.pick(&["-s", "-s -d", "-d", "-s"]);
            let mut command =
                format!("tc {what} qdisc show dev link0 >> snap.txt; tc {what} class show dev link0 >> snap.txt");
            if let Some((parent, _)) = self.filters.first() {
                command += &format!("; tc {what} filter show dev link0 parent {parent} >> snap.txt");
            }
            rows.push((at, format!("!,{command}")));
        }
        for _ in 0..self.draws.below(5) {
            let at = self.draws.below(span);
            if let Some(command) = self.change() {
                // What tc says and its exit code are compared too.
                rows.push((at, format!("!,{command} >> snap.txt 2>&1 || echo rc=$? >> snap.txt")));
            }
        }
        rows.sort_by_key(|(time, _)| *time);
        let mut id = 0;
        rows.into_iter()
            .map(|(time, row)| match row.starts_with('!') {
                true => format!("{time},{row}"),
                false => {
                    id += 1;
                    format!("{time},{id},{row}")
                }
            })
            .collect()
    }

    fn flow(&mut self, span: u64, rate: u64, most: usize, rows: &mut Vec<(u64, String)>) {
        let icmp = self.icmp;
        let classes: Vec<String> = self.classes.iter().map(|class| class.classid.clone()).collect();
        let d = &mut self.draws;
        let v6 = d.percent(25);
        let proto = match d.below(10) {
            0 if icmp && !v6 => "icmp",
            0..6 => "udp",
            _ => "tcp",
        };
        let (src, dst) = match v6 {
            true => (format!("2001:db8::{:x}", d.range(1, 4)), format!("2001:db8:1::{:x}", d.range(1, 4))),
            false => (format!("10.0.0.{}", d.range(1, 4)), format!("10.9.0.{}", d.range(1, 4))),
        };
        let (sport, dport) = if proto == "icmp" { (0, 0) } else { (d.range(1024, 60000), d.one(&[53, 80, 443, 5001])) };
        let dsfield = d.one(&[0, 0, 1, 2, 0xb8, 0x10, 0x22]);
        let mark = d.one(&[0, 0, 1, 2, 3, 0x101]);
        let prio = match d.below(8) {
            0 if !classes.is_empty() => classes[d.below(classes.len() as u64) as usize].clone(),
            1 => d.below(16).to_string(),
            _ => "0".into(),
        };
        let fixed = d.percent(50);
        let (low, high) = (100, if d.percent(25) { 250 } else { 1514 });
        let mut size = d.range(low, high);
        let burst = if d.percent(40) { d.range(2, 12) } else { 1 };
        let (mut time, mut seq) = (d.below(span / 4 + 1), 1000);
        for _ in 0..most as u64 / burst {
            if time >= span {
                break;
            }
            for _ in 0..burst {
                if !fixed {
                    size = d.range(low, high);
                }
                let flags = if proto == "tcp" { "A" } else { "" };
                let (s, a) = if proto == "tcp" { (seq, 5000) } else { (0, 0) };
                rows.push((
                    time,
                    format!("{size},{src},{dst},{proto},{sport},{dport},{dsfield},{mark},{prio},{flags},{s},{a}"),
                ));
                seq += size;
            }
            let gap = burst * size * 8 * 1_000_000_000 / rate.max(10_000);
            time += if d.percent(50) { gap } else { d.range(gap / 4, gap * 7 / 4) };
        }
    }

    /// A change to something that is there.
    fn change(&mut self) -> Option<String> {
        let which = self.draws.below(10);
        if which < 3 && !self.classes.is_empty() {
            let index = self.draws.below(self.classes.len() as u64) as usize;
            let (kind, parent, classid, rate) = {
                let class = &self.classes[index];
                (class.kind, class.parent.clone(), class.classid.clone(), class.rate)
            };
            if which == 2 && self.draws.percent(30) {
                return Some(format!("tc class del dev link0 classid {classid}"));
            }
            let options = match kind {
                "htb" => {
                    let rate = rate * self.draws.range(30, 150) / 100;
                    let ceil = rate * self.draws.range(100, 200) / 100;
                    htb_options(&mut self.draws, rate, ceil)
                }
                _ => format!("quantum {}", self.draws.one(&[300, 600, 2000])),
            };
            return Some(format!("tc class change dev link0 parent {parent} classid {classid} {kind} {options}"));
        }
        if which < 5 && !self.filters.is_empty() {
            let index = self.draws.below(self.filters.len() as u64) as usize;
            let (parent, pref) = self.filters[index].clone();
            if which == 3 {
                return Some(format!("tc filter del dev link0 parent {parent} prio {pref}"));
            }
            let line = self.filter(&parent, &[], pref + 20);
            return Some(format!("tc filter add dev link0 parent {parent} {line}"));
        }
        let index = self.draws.below(self.nodes.len() as u64) as usize;
        let (kind, place, handle, rate) = {
            let node = &self.nodes[index];
            (node.kind, node.place.clone(), node.handle.clone(), node.rate)
        };
        match self.draws.below(6) {
            0 if place != "root" => Some(format!("tc qdisc del dev link0 {place}")),
            1 if place != "root" => {
                let new = self.draws.pick(&["pfifo", "sfq", "fq_codel", "codel", "bfifo", "tbf"]);
                let options = self.options(new, rate);
                let handle = if self.draws.percent(60) { self.handle() } else { handle };
                Some(format!("tc qdisc replace dev link0 {place} handle {handle} {new} {options}"))
            }
            2 => {
                let options = self.options(kind, rate);
                Some(format!("tc qdisc replace dev link0 {place} handle {handle} {kind} {options}"))
            }
            _ => {
                let options = self.options(kind, rate);
                Some(format!("tc qdisc change dev link0 {place} handle {handle} {kind} {options}"))
            }
        }
    }
}

fn bits(rate: u64) -> String {
    format!("{}bit", rate.max(8000) / 100 * 100)
}

fn tbf(d: &mut Draws, rate: u64) -> String {
    let mut out = format!("rate {} burst {}", bits(rate), d.one(&[1600, 2000, 5000, 10240, 900]));
    out += &match d.percent(50) {
        true => format!(" latency {}ms", d.range(5, 200)),
        false => format!(" limit {}", d.one(&[3000, 20000, 100000])),
    };
    if d.percent(15) {
        out += &format!(" peakrate {} mtu {}", bits(rate * 2), d.one(&[1600, 3000]));
    }
    if d.percent(15) {
        out += [" overhead 18", " mpu 64", " linklayer atm", " overhead 10 linklayer atm"][d.below(4) as usize];
    }
    out
}

fn codel(d: &mut Draws) -> String {
    let mut out = String::new();
    for (chance, option) in [
        (45, format!("limit {}", d.one(&[5, 40, 120, 1000]))),
        (35, format!("target {}ms", d.range(1, 40))),
        (35, format!("interval {}ms", d.range(10, 150))),
        (35, d.pick(&["ecn", "noecn"]).to_string()),
        (15, format!("ce_threshold {}ms", d.range(1, 10))),
    ] {
        if d.percent(chance) {
            out += &format!(" {option}");
        }
    }
    out
}

fn htb_options(d: &mut Draws, rate: u64, ceil: u64) -> String {
    let mut out = format!("rate {} ceil {}", bits(rate), bits(ceil));
    for (chance, option) in [
        (40, format!("burst {}", d.one(&[1600, 4096, 15000]))),
        (40, format!("cburst {}", d.one(&[1600, 4096, 15000]))),
        (50, format!("prio {}", d.below(4))),
        (30, format!("quantum {}", d.one(&[318, 1514, 3000]))),
    ] {
        if d.percent(chance) {
            out += &format!(" {option}");
        }
    }
    out
}

fn flow_filter(d: &mut Draws, parent: &str, classes: u64, pref: u32, icmp: bool) -> String {
    // Packets without ports hash a pointer in the keys of ports: nobody can reproduce that.
    let keys: &[&str] = if icmp {
        &["src", "dst", "src,dst", "mark", "priority", "src,proto", "dst,mark"]
    } else {
        &["src", "dst", "src,dst,proto,proto-src,proto-dst", "proto-dst", "mark", "dst,proto-src", "priority"]
    };
    let base = if d.percent(50) { format!("baseclass {parent}1") } else { String::new() };
    let divisor = d.range(1, classes + 2);
    if d.percent(65) {
        let keys = d.pick(keys);
        return format!("protocol all prio {pref} handle {} flow hash keys {keys} divisor {divisor} {base}", pref + 1);
    }
    let key = d.pick(&["mark", "dst", "src", "priority"]);
    let sum = ["", "and 0x3", "and 0x3 addend 1", "rshift 1", "xor 1", "or 2"][d.below(6) as usize];
    format!("protocol ip prio {pref} handle {} flow map key {key} {sum} divisor {divisor} {base}", pref + 1)
}

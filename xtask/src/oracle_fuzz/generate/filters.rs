//! Filters of every kind, on every qdisc that asks them.

use super::{Filter, World};
use crate::oracle_fuzz::rng::Rng;

/// IPv4 sources, destinations and ports that traffic and filters share, so that they meet.
pub(super) const PORTS: &[u16] = &[22, 53, 80, 443, 5060, 6881, 8801, 27015];
pub(super) const DSFIELDS: &[u8] = &[0, 0, 0, 1, 2, 3, 0x10, 0x08, 0x20, 0xb8, 0xb9, 0xba, 0xc0, 0x28];

/// What a filter may be requested.
const PROTOCOLS: &[&str] = &["ip", "ipv6", "all"];

/// The parent of filters, and the results that make sense there.
pub(super) struct FilterParent {
    pub(super) parent: String,
    results: Vec<String>,
    flows: bool,
}

impl World {
    /// Some filters for most qdiscs that have use for them.
    pub(super) fn filters(&mut self) {
        for place in self.filter_places() {
            let likely = if place.flows { 15 } else { 85 };
            if !self.rng.chance(likely) {
                continue;
            }
            let style = self.rng.weighted(&[40, 15, 35, 10]);
            match style {
                0 => self.marks(&place),
                1 => {
                    let filter = self.flow(&place, 1);
                    self.add_filter(filter);
                }
                3 => self.table(&place),
                _ => {
                    for _ in 0..self.rng.range(1, 6) {
                        let filter = self.any_filter_at(&place);
                        self.add_filter(filter);
                    }
                }
            }
        }
    }

    /// Any filter for any place: for changes in the middle.
    pub(super) fn any_filter(&mut self) -> Option<Filter> {
        let places = self.filter_places();
        if places.is_empty() {
            return None;
        }
        let at = self.rng.below(places.len() as u64) as usize;
        Some(self.any_filter_at(&places[at]))
    }

    fn filter_places(&mut self) -> Vec<FilterParent> {
        let mut places = Vec::new();
        for qdisc in &self.qdiscs {
            let Some(handle) = qdisc.handle else { continue };
            let results: Vec<String> = qdisc.classes.iter().map(|class| class.id.clone()).collect();
            match qdisc.kind {
                "prio" | "drr" | "htb" | "hfsc" | "qfq" => {
                    if matches!(qdisc.kind, "htb" | "hfsc") && self.rng.chance(25) {
                        for inner in qdisc.classes.iter().filter(|class| !class.leaf) {
                            let below: Vec<String> = qdisc
                                .classes
                                .iter()
                                .filter(|c| c.parent == inner.id)
                                .map(|c| c.id.clone())
                                .collect();
                            places.push(FilterParent {
                                parent: inner.id.clone(),
                                results: below,
                                flows: false,
                            });
                        }
                    }
                    places.push(FilterParent { parent: format!("{handle:x}:"), results, flows: false });
                }
                "sfq" | "fq_codel" | "sfb" => {
                    let results = (1..=4).map(|minor| format!("{handle:x}:{minor}")).collect();
                    places.push(FilterParent { parent: format!("{handle:x}:"), results, flows: true });
                }
                _ => {}
            }
        }
        places.retain(|place| !place.results.is_empty());
        places
    }

    pub(super) fn add_filter(&mut self, mut filter: Filter) {
        while self.filters.iter().any(|other| clash(other, &filter)) {
            filter.pref += 1;
        }
        self.script.push(format!("tc filter add dev link0 {filter}"));
        self.filters.push(filter);
    }

    /// One fw filter per result: mark N goes to result N.
    fn marks(&mut self, place: &FilterParent) {
        let protocol = *self.rng.pick(&["ip", "all", "all"]);
        let mask = if self.rng.chance(25) { *self.rng.pick(&["/0xf", "/0xff", "/0x7"]) } else { "" };
        let pref = self.rng.range(1, 5);
        for (at, result) in place.results.clone().iter().enumerate().take(8) {
            let handle = format!("handle {}{mask} ", at + 1);
            let acting = if self.acting { 20 } else { 0 };
            let words = format!("classid {result}{}", self.actions(acting));
            let parent = format!("parent {}", place.parent);
            self.add_filter(Filter { parent, protocol, pref, handle, kind: "fw", words });
        }
    }

    fn any_filter_at(&mut self, place: &FilterParent) -> Filter {
        let pref = self.rng.range(1, 200);
        let mut filter = match self.rng.weighted(&[25, 35, 10, 14, 12, 4]) {
            0 => {
                let mask = if self.rng.chance(30) { *self.rng.pick(&["/0xf", "/0xff", "/0x3"]) } else { "" };
                Filter {
                    parent: format!("parent {}", place.parent),
                    protocol: PROTOCOLS[self.rng.below(3) as usize],
                    pref,
                    handle: format!("handle {}{mask} ", self.rng.range(1, 6)),
                    kind: "fw",
                    words: self.result(place),
                }
            }
            1 => self.u32(place, pref),
            2 => return self.flow(place, pref),
            kind => self.newer(place, pref, kind),
        };
        if self.acting {
            filter.words.push_str(&self.actions(35));
            if self.rng.chance(12) {
                filter.handle = format!("chain {} {}", self.chain(), filter.handle);
            }
        }
        filter
    }

    /// flower, basic or matchall.
    fn newer(&mut self, place: &FilterParent, pref: u64, kind: usize) -> Filter {
        // Few preferences, so that filters share them.
        let pref = if self.rng.chance(50) { pref % 5 + 1 } else { pref };
        let protocol = PROTOCOLS[self.rng.weighted(&[70, 15, 15])];
        let (kind, condition) = match kind {
            3 => ("flower", self.flower(protocol)),
            4 => ("basic", self.basic()),
            _ => ("matchall", String::new()),
        };
        let words = format!("{condition} {}", self.result(place)).trim_start().to_owned();
        Filter {
            parent: format!("parent {}", place.parent),
            protocol,
            pref,
            handle: String::new(),
            kind,
            words,
        }
    }

    pub(super) fn result(&mut self, place: &FilterParent) -> String {
        let word = *self.rng.pick(&["classid", "flowid"]);
        if self.rng.chance(4) {
            return format!("{word} {}", self.rng.pick(&["1:77", "7:1", "1:0"]));
        }
        let result = self.rng.pick(&place.results).clone();
        format!("{word} {result}")
    }

    fn u32(&mut self, place: &FilterParent, pref: u64) -> Filter {
        let protocol = *self.rng.pick(&["ip", "ip", "ip", "ipv6", "all"]);
        let count = self.rng.weighted(&[60, 30, 10]) + 1;
        let mut words = String::new();
        let mut used = Vec::new();
        for _ in 0..count {
            let (field, text) = u32_match(&mut self.rng, protocol);
            // Two demands on one field contradict each other, and tc says so and stops.
            if !used.contains(&field) {
                used.push(field);
                words.push_str(&text);
                words.push(' ');
            }
        }
        words.push_str(&self.result(place));
        Filter {
            parent: format!("parent {}", place.parent),
            protocol,
            pref,
            handle: String::new(),
            kind: "u32",
            words,
        }
    }

    fn flow(&mut self, place: &FilterParent, pref: u64) -> Filter {
        let mut keys = vec!["src", "dst", "proto", "mark", "priority"];
        if self.ports {
            keys.extend(["proto-src", "proto-dst"]);
        }
        let rng = &mut self.rng;
        let count = place.results.len().max(1) as u64;
        let divisor = if rng.chance(80) { count } else { rng.range(1, 1024) };
        let base = &place.results[0];
        let mut words = if rng.chance(65) {
            let mut chosen: Vec<&str> = keys.iter().filter(|_| rng.chance(45)).copied().collect();
            if chosen.is_empty() {
                chosen.push("src");
            }
            format!("hash keys {}", chosen.join(","))
        } else {
            let key = *rng.pick(&keys);
            let mut words = format!("map key {key}");
            if rng.chance(50) {
                words.push_str(&format!(" and 0x{:x}", rng.pick(&[0xff_u32, 0xf, 0x7, 0xffff])));
            }
            if rng.chance(20) {
                words.push_str(&format!(" rshift {}", rng.range(1, 4)));
            }
            if rng.chance(25) {
                words.push_str(&format!(" addend {}", rng.range(1, 10)));
            }
            words
        };
        words.push_str(&format!(" divisor {divisor}"));
        if rng.chance(90) {
            words.push_str(&format!(" baseclass {base}"));
        }
        if words.starts_with("hash") && rng.chance(15) {
            words.push_str(&format!(" perturb {}", rng.range(1, 5)));
        }
        let protocol = *rng.pick(&["all", "all", "ip", "ipv6"]);
        let handle = format!("handle {} ", rng.range(1, 9));
        Filter { parent: format!("parent {}", place.parent), protocol, pref, handle, kind: "flow", words }
    }
}

/// Whether the kernel refuses the second filter at the first one's pref: the setting up is to succeed.
fn clash(one: &Filter, two: &Filter) -> bool {
    let mask = |filter: &Filter| filter.handle.split('/').nth(1).map(str::to_owned);
    one.parent == two.parent
        && one.pref == two.pref
        && (one.kind != two.kind
            || one.protocol != two.protocol
            || (!matches!(one.kind, "u32" | "basic" | "flower") && one.handle == two.handle)
            || (one.kind == "flower" && one.words == two.words)
            || (one.kind == "fw" && mask(one) != mask(two)))
}

/// A match of a u32 filter: the word it looks at, and its text.
fn u32_match(rng: &mut Rng, protocol: &str) -> (u8, String) {
    let port = *rng.pick(PORTS);
    let ds = *rng.pick(DSFIELDS);
    if protocol == "ipv6" {
        return match rng.below(6) {
            0 => (0, format!("match ip6 priority 0x{:x} 0xfc", ds & 0xfc)),
            1 => (10, format!("match ip6 dport {port} 0xffff")),
            2 => (6, format!("match ip6 protocol {} 0xff", rng.pick(&[6, 17, 58]))),
            3 => (20, format!("match ip6 src 2001:db8::{:x}/128", rng.range(1, 4))),
            4 => (30, format!("match ip6 dst 2001:db8:1::{:x}/128", rng.range(1, 4))),
            _ => (10, format!("match ip6 sport {port} 0xffff")),
        };
    }
    match rng.below(12) {
        0 => (0, format!("match ip tos 0x{:x} 0x{:x}", ds & 0xfc, 0xfc)),
        1 => (0, format!("match ip dsfield 0x{ds:x} 0xff")),
        2 => (8, format!("match ip protocol {} 0xff", rng.pick(&[1, 6, 17]))),
        3 => (12, format!("match ip src 10.0.0.{}/32", rng.range(1, 8))),
        4 => (12, format!("match ip src 10.0.0.{}/{}", rng.pick(&[0, 4]), rng.pick(&[24, 30]))),
        5 => (16, format!("match ip dst 10.9.0.{}/32", rng.range(1, 4))),
        6 => (20, format!("match ip dport {port} 0xffff")),
        7 => (20, format!("match ip sport {port} 0xffff")),
        8 => (0, format!("match u16 0x0000 0x{:x} at 2", rng.pick(&[0xfc00_u32, 0xff00, 0xffc0]))),
        9 => (8, format!("match u8 {} 0xff at 9", rng.pick(&["6", "17", "0x11", "1"]))),
        10 => (20, format!("match u32 0x{port:08x} 0x0000ffff at 20")),
        _ => (99, format!("match mark {} 0x{:x}", rng.range(1, 6), rng.pick(&[0xff_u32, 0xffff_ffff, 0x7]))),
    }
}

impl std::fmt::Display for Filter {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { parent, protocol, pref, handle, kind, words } = self;
        write!(to, "{parent} protocol {protocol} prio {pref} {handle}{kind} {words}")
    }
}

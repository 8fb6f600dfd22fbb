//! Listings read back: what `tc qdisc show`, `class show` and `filter show` print for people, as the commands
//! that make the same.
//!
//! Counters go, values stay; what a listing does not have cannot be restored (an exact burst; automatic
//! handles stay automatic). Class and filter listings do not name their device: a line `$ tc class show dev
//! eth0`, as a transcript has it, or `# dev eth0` names it for the lines that follow.

use crate::units;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_policy::Kind;

/// A command that a listing comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its line in the listing, from 1.
    pub line: usize,
    /// tc's words, without its name.
    pub args: Vec<String>,
}

/// Why a listing cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotListed {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// Words with a value that a listing shows and a command does not take.
const COUNTERS: [&str; 12] = [
    "refcnt",
    "direct_packets_stat",
    "ver",
    "level",
    "Scell_log",
    "index",
    "ref",
    "bind",
    "dropped",
    "offloaded",
    "linklayer",
    "ewma",
];
/// What to do about what is not read.
const COMMANDS_INSTEAD: &str = "give the commands that made it";
/// By how many bytes a bucket may be rounded down, and looked for.
const MAX_ROUNDING: u32 = 4096;
/// Kinds whose listings lack what their commands need, or write it otherwise.
const NOT_WHOLE: [&str; 5] = ["choke", "gred", "hhf", "red", "sfb"];
/// Remarks of a listing that have no value.
const REMARKS: [&str; 5] = ["----------------", "[Unknown", "not_in_hw", "in_hw", "multiqueue:"];

/// The commands that make what is listed, in an order in which they can be carried out.
///
/// # Errors
/// The first line that is none of tc's, or about nothing that is known.
pub fn read_listing(text: &str) -> Result<Vec<Listed>, NotListed> {
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        reader.line = at + 1;
        reader.take(line)?;
    }
    reader.finish()
}

/// Does a text look like a listing? Every line is one of tc's, or the counters below it.
pub fn is_listing(text: &str) -> bool {
    let mut some = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let listed = match words[0] {
            "qdisc" | "class" => words.get(2).is_some_and(|word| word.contains(':') || *word == "0:"),
            "filter" => words.contains(&"pref"),
            _ if line.starts_with([' ', '\t']) => continue,
            _ if prompt(line).is_some() || line.starts_with('#') => continue,
            _ => false,
        };
        if !listed {
            return false;
        }
        some = true;
    }
    some
}

/// The words of a command in a transcript: `$ tc class show dev eth0`, `# dev eth0`.
fn prompt(line: &str) -> Option<Vec<&str>> {
    let rest = line.trim_start().strip_prefix(['$', '#'])?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    words.contains(&"dev").then_some(words)
}

/// A place where something is installed: device and handle.
type Place = (String, String);

#[derive(Default)]
struct Reader {
    line: usize,
    /// The device and parent that a prompt named.
    dev: Option<String>,
    parent: Option<String>,
    qdiscs: Vec<(Place, Listed)>,
    classes: Vec<(Place, Listed)>,
    filters: Vec<Listed>,
    /// A filter whose matches and actions may follow.
    open: Option<Filter>,
}

/// A filter under way.
struct Filter {
    line: usize,
    args: Vec<String>,
    flowid: Option<String>,
    matches: Vec<String>,
    actions: Vec<String>,
    u32: bool,
}

impl Reader {
    fn take(&mut self, line: &str) -> Result<(), NotListed> {
        if let Some(words) = prompt(line) {
            self.close();
            let after = |word: &str| words.iter().position(|w| *w == word).and_then(|at| words.get(at + 1));
            self.dev = after("dev").map(|dev| (*dev).to_owned());
            self.parent = after("parent").map(|parent| (*parent).to_owned());
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first() {
            Some(&"qdisc") => self.qdisc(&words),
            Some(&"class") => self.class(&words),
            Some(&"filter") => self.filter(&words),
            Some(&"match") => self.matches(&words),
            Some(&"action") => self.action(&words),
            // What it prints of a policer, of a table of conditions.
            Some(what @ (&"police" | &"Section")) if self.open.is_some() => {
                Err(self.wrong(&format!("is a {what} of a filter, which is not read; {COMMANDS_INSTEAD}")))
            }
            _ if line.starts_with([' ', '\t', '#']) || words.is_empty() => Ok(()),
            _ => Err(self.wrong("is not a line of a listing of tc")),
        }
    }

    fn wrong(&self, why: &str) -> NotListed {
        NotListed { line: self.line, why: why.to_owned() }
    }

    fn device(&self, words: &[&str]) -> Result<String, NotListed> {
        let named = words
            .iter()
            .position(|word| *word == "dev")
            .and_then(|at| words.get(at + 1))
            .map(|dev| (*dev).to_owned());
        let only = || {
            let devices: BTreeSet<&String> = self.qdiscs.iter().map(|((dev, _), _)| dev).collect();
            if devices.len() == 1 { devices.into_iter().next().cloned() } else { None }
        };
        named.or_else(|| self.dev.clone()).or_else(only).ok_or_else(|| {
            self.wrong(
                "does not say of which device; put a line `# dev eth0` before the listing of each device",
            )
        })
    }

    /// `qdisc KIND HANDLE: [dev DEV] root|parent ID|ingress [refcnt N] options…`
    fn qdisc(&mut self, words: &[&str]) -> Result<(), NotListed> {
        self.close();
        let [_, kind, handle, rest @ ..] = words else { return Err(self.wrong("is cut short")) };
        let dev = self.device(words)?;
        // Qdiscs that the kernel attaches on its own, and those of a card with several queues.
        let automatic = *handle == "0:" || matches!(*kind, "noqueue" | "mq");
        if automatic {
            return Ok(());
        }
        // A model of losses is listed without its words.
        let has_model = *kind == "netem" && rest.iter().any(|word| matches!(*word, "gemodel" | "state"));
        if NOT_WHOLE.contains(kind) || has_model {
            return Err(self.wrong(&format!("is a {kind}, whose listing is not read; {COMMANDS_INSTEAD}")));
        }
        let mut args: Vec<String> = ["qdisc", "add", "dev", &dev].map(str::to_owned).to_vec();
        if matches!(*kind, "ingress" | "clsact") {
            args.push((*kind).to_owned());
            self.qdiscs.push(((dev, "ffff:".into()), Listed { line: self.line, args }));
            return Ok(());
        }
        match rest.iter().position(|word| *word == "parent").and_then(|at| rest.get(at + 1)) {
            Some(parent) => args.extend(["parent".to_owned(), (*parent).to_owned()]),
            None => args.push("root".into()),
        }
        args.extend(["handle", handle, kind].map(str::to_owned));
        args.extend(options(kind, rest));
        // That it marks is listed, that it does not is not; it does where nothing is said.
        if *kind == "fq_codel" && rest.contains(&"flows") && !rest.contains(&"ecn") {
            args.push("noecn".into());
        }
        fill_bucket(&mut args, "rate", "burst");
        self.qdiscs.push(((dev, (*handle).to_owned()), Listed { line: self.line, args }));
        Ok(())
    }

    /// `class KIND ID root|parent ID [leaf HANDLE:] options…`
    fn class(&mut self, words: &[&str]) -> Result<(), NotListed> {
        self.close();
        let [_, kind, id, rest @ ..] = words else { return Err(self.wrong("is cut short")) };
        // Classes of kinds that make them by themselves.
        if !Kind::from_name(kind).is_some_and(Kind::classes_are_made) {
            return Ok(());
        }
        let dev = self.device(words)?;
        let major = id.split(':').next().unwrap_or("");
        // HFSC lists its root as a class.
        if id.ends_with(':') {
            return Ok(());
        }
        let parent = rest.iter().position(|word| *word == "parent").and_then(|at| rest.get(at + 1));
        let parent = parent.map_or_else(|| format!("{major}:"), |parent| (*parent).to_owned());
        let mut args: Vec<String> =
            ["class", "add", "dev", &dev, "parent", &parent, "classid", id, kind].map(str::to_owned).to_vec();
        args.extend(options(kind, rest));
        fill_bucket(&mut args, "rate", "burst");
        fill_bucket(&mut args, "ceil", "cburst");
        self.classes.push(((dev, (*id).to_owned()), Listed { line: self.line, args }));
        Ok(())
    }

    /// `filter [parent ID] protocol P pref N KIND chain C [options…]`
    fn filter(&mut self, words: &[&str]) -> Result<(), NotListed> {
        self.close();
        let after =
            |word: &str| words.iter().position(|w| *w == word).and_then(|at| words.get(at + 1)).copied();
        let (Some(protocol), Some(pref)) = (after("protocol"), after("pref")) else {
            return Err(self.wrong("is a filter without protocol and pref"));
        };
        let Some(kind_at) = words.iter().position(|word| *word == "pref").map(|at| at + 2) else {
            return Ok(());
        };
        let Some(kind) = words.get(kind_at) else { return Err(self.wrong("is cut short")) };
        let rest = &words[kind_at + 1..];
        let rest = if rest.first() == Some(&"chain") { rest.get(2..).unwrap_or_default() } else { rest };
        // The heading of a preference, and u32's tables.
        if rest.is_empty() || rest.windows(2).any(|pair| pair == ["ht", "divisor"]) {
            return Ok(());
        }
        let dev = self.device(words)?;
        let mut args: Vec<String> = ["filter", "add", "dev", &dev].map(str::to_owned).to_vec();
        if let Some(parent) = after("parent").map(str::to_owned).or_else(|| self.parent.clone()) {
            args.extend(["parent".to_owned(), parent]);
        }
        args.extend(["protocol", protocol, "pref", pref].map(str::to_owned));
        let mut filter = Filter {
            line: self.line,
            args,
            flowid: None,
            matches: Vec::new(),
            actions: Vec::new(),
            u32: *kind == "u32",
        };
        match *kind {
            "u32" => {
                filter.args.push("u32".into());
                filter.flowid = after("flowid")
                    .or_else(|| after("*flowid"))
                    .map(|id| id.trim_start_matches('*').to_owned());
                filter.flowid = filter.flowid.filter(|id| id.contains(':'));
            }
            kind @ ("fw" | "flow" | "matchall") => {
                if let Some(handle) = after("handle").filter(|_| kind != "matchall") {
                    filter.args.extend(["handle".to_owned(), handle.to_owned()]);
                }
                filter.args.push(kind.to_owned());
                filter.args.extend(flow_options(rest));
            }
            other => {
                let why =
                    format!("is a filter of the kind {other}, whose listing is not read; {COMMANDS_INSTEAD}");
                return Err(self.wrong(&why));
            }
        }
        self.open = Some(filter);
        Ok(())
    }

    /// `match 00100000/00fc0000 at 0`, `at nexthdr+0`
    fn matches(&mut self, words: &[&str]) -> Result<(), NotListed> {
        let [_, pair, _, at, ..] = words else { return Err(self.wrong("is cut short")) };
        let (Some((value, mask)), Some(filter)) = (pair.split_once('/'), &mut self.open) else {
            return Err(self.wrong("belongs to no filter"));
        };
        filter.matches.extend(
            ["match", "u32", &format!("0x{value}"), &format!("0x{mask}"), "at", at].map(str::to_owned),
        );
        Ok(())
    }

    /// `action order 1: mirred (Egress Redirect to device ifb0) stolen`, `gact action drop`
    fn action(&mut self, words: &[&str]) -> Result<(), NotListed> {
        let line = self.line;
        let Some(filter) = &mut self.open else { return Err(self.wrong("belongs to no filter")) };
        let text = words.join(" ");
        if let Some((_, to)) = text.split_once("Egress Redirect to device ") {
            let device = to.split(')').next().unwrap_or("");
            filter
                .actions
                .extend(["action", "mirred", "egress", "redirect", "dev", device].map(str::to_owned));
        } else if let Some(what) =
            words.iter().position(|word| *word == "action").filter(|_| text.contains("gact"))
        {
            let control =
                words.iter().skip(what + 1).skip_while(|word| **word != "action").nth(1).unwrap_or(&"pass");
            filter.actions.extend(["action", control].map(str::to_owned));
        } else {
            let why = format!("is an action whose listing is not read ({text}); {COMMANDS_INSTEAD}");
            return Err(NotListed { line, why });
        }
        Ok(())
    }

    fn close(&mut self) {
        let Some(filter) = self.open.take() else { return };
        let mut args = filter.args;
        if filter.u32 && filter.matches.is_empty() {
            args.extend(["match", "u32", "0", "0"].map(str::to_owned));
        }
        args.extend(filter.matches);
        if let Some(flowid) = filter.flowid {
            args.extend(["flowid".to_owned(), flowid]);
        }
        args.extend(filter.actions);
        self.filters.push(Listed { line: filter.line, args });
    }

    /// Puts each after its parent: qdiscs and classes by turns, then the filters.
    fn finish(mut self) -> Result<Vec<Listed>, NotListed> {
        self.close();
        let mut out: Vec<Listed> = Vec::new();
        let mut there: BTreeMap<Place, bool> = BTreeMap::new();
        let mut waiting: Vec<(Place, Listed)> = self.qdiscs.into_iter().chain(self.classes).collect();
        loop {
            let before = waiting.len();
            let mut left = Vec::new();
            for (place, listed) in waiting {
                let parent = listed
                    .args
                    .iter()
                    .position(|word| word == "parent")
                    .map(|at| listed.args[at + 1].clone());
                // Classes of some kinds are there with their qdisc.
                let of_qdisc = |parent: &str| {
                    let major = parent.split(':').next().unwrap_or_default();
                    there.get(&(place.0.clone(), format!("{major}:"))) == Some(&true)
                };
                let ready = parent
                    .is_none_or(|parent| of_qdisc(&parent) || there.contains_key(&(place.0.clone(), parent)));
                if ready {
                    let handle = listed.args.iter().position(|word| word == "handle");
                    let kind = handle.and_then(|at| Kind::from_name(listed.args.get(at + 2)?));
                    let makes = kind.is_some_and(|kind| !kind.classes_are_made());
                    there.insert(place, makes);
                    out.push(listed);
                } else {
                    left.push((place, listed));
                }
            }
            waiting = left;
            if waiting.is_empty() {
                break;
            }
            if waiting.len() == before {
                let (_, listed) = &waiting[0];
                let why =
                    "hangs on something that is not listed; list the classes too: tc class show dev DEV"
                        .to_owned();
                return Err(NotListed { line: listed.line, why });
            }
        }
        out.extend(self.filters);
        Ok(out)
    }
}

/// The options of a qdisc or class, as a command takes them.
fn options(kind: &str, words: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut mpu_said = false;
    while let Some(word) = words.get(at) {
        let value = words.get(at + 1).copied();
        at += match *word {
            "dev" | "parent" | "leaf" => 2,
            "root" => 1,
            "linklayer" if value == Some("atm") => {
                out.extend(["linklayer".to_owned(), "atm".into()]);
                2
            }
            "default" => {
                out.extend(["default".to_owned(), value.unwrap_or("0").trim_start_matches("0x").to_owned()]);
                2
            }
            counter if COUNTERS.contains(&counter) => 2,
            remark if REMARKS.contains(&remark) => 1,
            "mpu" => {
                // Shown for the burst and for the cburst; 0 is none.
                let bytes = value.unwrap_or("0b").trim_end_matches('b');
                if bytes != "0" && !std::mem::replace(&mut mpu_said, true) {
                    out.extend(["mpu".to_owned(), bytes.to_owned()]);
                }
                2
            }
            "lat" => {
                out.extend(["latency".to_owned(), value.unwrap_or("50ms").to_owned()]);
                2
            }
            "priomap" => {
                let map = words[at + 1..].iter().take_while(|word| word.chars().all(|c| c.is_ascii_digit()));
                out.push("priomap".into());
                let before = out.len();
                out.extend(map.map(|band| (*band).to_owned()));
                1 + out.len() - before
            }
            other => {
                out.push(plain(kind, out.last().map(String::as_str), other));
                1
            }
        };
    }
    out
}

/// tc keeps a bucket as time and shows it in bytes rounded down: finds the bytes that are shown as these.
fn fill_bucket(args: &mut [String], rate: &str, burst: &str) {
    let after =
        |word: &str| args.iter().position(|arg| arg == word).map(|at| at + 1).filter(|at| *at < args.len());
    let (Some(rate), Some(at)) = (after(rate), after(burst)) else { return };
    let (Some(rate), Some(shown)) = (units::parse_rate(&args[rate]), units::parse_size(&args[at])) else {
        return;
    };
    let same = |bytes: &u32| units::bytes_of(rate, units::ticks_of(rate, *bytes)) == shown;
    if rate.0 > 0
        && let Some(bytes) = (shown..shown.saturating_add(MAX_ROUNDING)).find(same)
    {
        args[at] = format!("{bytes}b");
    }
}

/// A value as a command takes it: `10240p` is 10240, `128/1024` the first, `10sec` is 10, `1599b/8` is 1599b.
fn plain(kind: &str, before: Option<&str>, word: &str) -> String {
    let text = match (kind, before) {
        (_, Some("flows" | "burst" | "cburst" | "mtu" | "minburst")) => {
            word.split('/').next().unwrap_or(word)
        }
        (_, Some("limit" | "flow_limit")) => word.strip_suffix('p').unwrap_or(word),
        ("sfq", Some("perturb")) => word.strip_suffix("sec").unwrap_or(word),
        ("sfq", Some("quantum" | "min" | "max")) => word.strip_suffix('b').unwrap_or(word),
        ("sfb", Some("rehash" | "db")) => word.strip_suffix("ms").unwrap_or(word),
        _ => word,
    };
    text.to_owned()
}

/// The options of fw, flow and matchall.
fn flow_options(words: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += match *word {
            "handle" | "chain" => 2,
            "not_in_hw" | "in_hw" => 1,
            "perturb" => {
                let seconds = words.get(at + 1).copied().unwrap_or("0");
                out.extend(["perturb".to_owned(), seconds.trim_end_matches("sec").to_owned()]);
                2
            }
            "(rule" => {
                1 + words[at + 1..].iter().position(|word| word.ends_with(')')).map_or(0, |end| end + 1)
            }
            other => {
                out.push(other.to_owned());
                1
            }
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_becomes_commands_in_an_order_that_works() {
        let text = "\
qdisc fq_codel 8001: dev eth0 parent 1:10 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms \
memory_limit 32Mb ecn drop_batch 64 
qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x20 direct_packets_stat 0 ver 3.17 direct_qlen 1000
qdisc pfifo_fast 0: dev eth1 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
class htb 1:10 parent 1:1 leaf 8001: prio 2 quantum 2000 rate 300Kbit overhead 18 ceil 1Mbit linklayer \
ethernet burst 1599b/1 mpu 0b cburst 1599b/1 mpu 0b level 0 
class htb 1:1 root rate 1Mbit ceil 1Mbit burst 1600b cburst 1600b 
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) 
filter parent 1: protocol ip pref 10 u32 chain 0 
filter parent 1: protocol ip pref 10 u32 chain 0 fh 800: ht divisor 1 
filter parent 1: protocol ip pref 10 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 *flowid 1:10 \
not_in_hw 
  match 00100000/00fc0000 at 0
  match 00160000/ffff0000 at nexthdr+0
filter parent 1: protocol ip pref 11 fw chain 0 handle 0x7/0xff classid 1:10 
";
        let listed: Vec<String> =
            read_listing(text).expect("is read").iter().map(|one| one.args.join(" ")).collect();
        assert_eq!(
            listed,
            [
                "qdisc add dev eth0 root handle 1: htb r2q 10 default 20 direct_qlen 1000",
                "class add dev eth0 parent 1: classid 1:1 htb rate 1Mbit ceil 1Mbit burst 1600b cburst 1600b",
                "class add dev eth0 parent 1:1 classid 1:10 htb prio 2 quantum 2000 rate 300Kbit overhead \
                18 ceil 1Mbit burst 1599b cburst 1599b",
                "qdisc add dev eth0 parent 1:10 handle 8001: fq_codel limit 10240 flows 1024 quantum 1514 \
                target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64",
                "filter add dev eth0 parent 1: protocol ip pref 10 u32 match u32 0x00100000 0x00fc0000 at 0 \
                match u32 0x00160000 0xffff0000 at nexthdr+0 flowid 1:10",
                "filter add dev eth0 parent 1: protocol ip pref 11 handle 0x7/0xff fw classid 1:10",
            ]
        );
    }

    #[test]
    fn children_of_classes_that_come_by_themselves_and_words_that_listings_leave_out() {
        let text = "qdisc prio 1: dev eth0 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1\n\
                    qdisc tbf 2: dev eth0 parent 1:1 rate 1Mbit burst 10Kb lat 30ms \n\
                    qdisc fq_codel 3: dev eth0 parent 2:1 limit 10240p flows 1024 quantum 1514 target 5ms \
                    interval 100ms memory_limit 32Mb drop_batch 64 \n\
                    qdisc fq 4: dev eth0 parent 1:2 limit 1000p flow_limit 50p buckets 1024\n";
        let listed: Vec<String> =
            read_listing(text).expect("is read").iter().map(|one| one.args.join(" ")).collect();
        assert_eq!(listed.len(), 4, "{listed:?}");
        assert!(
            listed[1].starts_with("qdisc add dev eth0 parent 1:1 handle 2: tbf rate 1Mbit"),
            "{listed:?}"
        );
        assert!(listed[2].ends_with("memory_limit 32Mb drop_batch 64 noecn"), "{listed:?}");
        assert!(listed[3].ends_with("fq limit 1000 flow_limit 50 buckets 1024"), "{listed:?}");
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let wrong = |text: &str| read_listing(text).expect_err("cannot be read");
        assert_eq!(wrong("class htb 1:1 root rate 1Mbit\n").line, 1);
        assert!(wrong("qdisc sfq 2: dev eth0 parent 1:1 limit 127p\n").why.contains("tc class show"));
        assert!(
            wrong("# dev eth0\nfilter parent 1: protocol ip pref 1 bpf chain 0 handle 0x1 x.o\n")
                .why
                .contains("bpf")
        );
        let filter = "# dev eth0\nfilter parent ffff: protocol all pref 1 u32 chain 0 fh 800::800 order 2048 key \
                      ht 800 bkt 0 flowid :1 not_in_hw \n  match 00000000/00000000 at 0\n";
        let police =
            wrong(&format!("{filter} police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action drop overhead 0b\n"));
        assert!(police.line == 4 && police.why.contains("police"), "{police:?}");
        for kind in ["red 1: dev eth0 root limit 400000b", "netem 1: dev eth0 root limit 9 loss gemodel p 1%"]
        {
            let wrong = wrong(&format!("qdisc {kind}\n"));
            assert!(wrong.why.ends_with("give the commands that made it"), "{wrong:?}");
        }
    }
}

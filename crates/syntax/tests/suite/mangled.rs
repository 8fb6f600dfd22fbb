//! Whatever the words, the parsers answer: nothing panics, and every refusal has a code.

use tidegate_syntax::{Env, batch, ip, iptables, tc};

/// A small generator (xorshift), so that a failure can be repeated from its seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

const ODD: [&str; 24] = [
    "",
    "-",
    ":",
    "::",
    "/",
    "0x",
    "-1",
    "99999999999999999999",
    "1e400",
    "nan",
    "inf%",
    "%",
    "ü",
    "1:",
    ":1",
    "ffff:ffff",
    "\u{0}",
    "0/0",
    "1/33",
    "!",
    "--",
    "at",
    "nexthdr+",
    "4294967295",
];

fn mangle(words: &mut Vec<String>, draws: &mut Draws, all: &[String]) {
    for _ in 0..=draws.below(3) {
        let at = draws.below(words.len());
        match draws.below(6) {
            0 if words.len() > 1 => drop(words.remove(at)),
            1 => words.insert(at, ODD[draws.below(ODD.len())].into()),
            2 if !words.is_empty() => words[at] = ODD[draws.below(ODD.len())].into(),
            3 if !words.is_empty() => words[at] = all[draws.below(all.len())].clone(),
            4 if !words.is_empty() => {
                let cut =
                    words[at].char_indices().nth(draws.below(6)).map_or(words[at].len(), |(index, _)| index);
                words[at].truncate(cut);
            }
            _ if !words.is_empty() => {
                let other = draws.below(words.len());
                words.swap(at, other);
            }
            _ => {}
        }
    }
}

#[test]
fn mangled_words_are_answered() {
    let lines: Vec<Vec<String>> = include_str!("../data/tc-answers.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split('\t').nth(2))
        .map(|line| line.split_whitespace().map(String::from).collect())
        .collect();
    let all: Vec<String> = lines.iter().flatten().cloned().collect();
    let rules = "-t mangle -w 1 -A POSTROUTING -o eth0 ! -s 10.0.0.0/8 -p tcp --sport 80 -m multiport \
    --dports 1,2:3 -m mark --mark 1/2 -m tos --tos 0x10/0x3f -j MARK --set-xmark 1/2 --tcp-flags SYN,ACK \
    SYN -nvL OUTPUT -tmangle --length 1: -g QOS -P FORWARD DROP";
    let rules: Vec<String> = rules.split_whitespace().map(String::from).collect();
    let (env, mut draws) = (Env::default(), Draws(0x7469_6465));
    for round in 0..60_000 {
        let mut words = lines[round % lines.len()].clone();
        mangle(&mut words, &mut draws, &all);
        if let Err(refusal) = tc::parse(&words, &env) {
            assert!(refusal.code > 0, "{words:?}");
        }
        batch::lines(&words.join(if round % 3 == 0 { "\\\n" } else { " " }));
        if round % 4 == 0 {
            let mut words = rules[draws.below(rules.len())..].to_vec();
            mangle(&mut words, &mut draws, &rules);
            if let Err(refusal) =
                iptables::parse(["iptables", "ip6tables", "iptables-save"][round % 3], &words)
            {
                assert!(refusal.code > 0, "{words:?}");
            }
            let mut words: Vec<String> =
                ["link", "set", "dev", "eth0", "mtu", "1492", "up"].map(String::from).into();
            mangle(&mut words, &mut draws, &all);
            let _answered = ip::parse(&words, &env);
        }
    }
}

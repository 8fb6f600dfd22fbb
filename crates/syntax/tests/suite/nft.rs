//! Rules and commands as the real nft 1.0.6 listed or refused them.

use tidegate_policy::netfilter::{Family, NetfilterRule, NfCommand, NfOp};
use tidegate_syntax::nft::{self, Ask, Command};

const RULES: &str = include_str!("../data/nft-rules.txt");
const REFUSED: &str = include_str!("../data/nft-refused.txt");

/// Rules that are listed in other words of the same meaning: a comparison, or a match in a header, is stored
/// as its meaning.
const OTHERWISE: [(&str, &str); 8] = [
    ("iif lo accept", "iifname \"lo\" accept"),
    // The recording's machine had no such device.
    ("oifname \"eth0\" oif \"eth0\" accept", "oifname \"eth0\" oifname \"eth0\" accept"),
    ("ct state { new, established } accept", "ct state established,new accept"),
    ("ip length 40-64 accept", "meta nfproto ipv4 meta length 40-64 accept"),
    ("ip6 length > 100 accept", "meta nfproto ipv6 meta length > 140 accept"),
    ("ct reply avgpkt >= 500 accept", "ct reply avgpkt > 499 accept"),
    ("meta protocol ip accept", "meta nfproto ipv4 accept"),
    ("meta protocol { ip, ip6 } accept", "accept"),
];
/// Rules that nft takes and we refuse by name.
const LATER: [&str; 22] = [
    "ct state vmap { established : accept, invalid : drop }",
    "icmp code 3 accept",
    "meta priority 1:10 accept",
    "ip version 4 accept",
    "limit rate 5/second accept",
    "meta skuid 1000 accept",
    "th dport 80 accept",
    "meta mark set tcp dport map { 22 : 1, 80 : 2 }",
    "tcp dport vmap { 22 : accept, 80 : drop }",
    "ip saddr @x accept",
    "ip ttl set 5",
    "ip ecn not-ect accept",
    "@th,16,16 22 accept",
    "queue num 1",
    "meta pkttype unicast accept",
    "ip saddr . tcp dport { 10.0.0.1 . 80 } accept",
    "meta mark set jhash ip saddr mod 16",
    "meta mark set numgen inc mod 4",
    "meta priority set ip dscp map { ef : 1:10 }",
    "ether type ip accept",
    "vlan id 5 accept",
    "fib daddr type local accept",
];

/// Commands that are refused with another mark or reason: the word that is wrong is named, where nft names
/// what follows it; host names are not looked up; `monitor` and `destroy` are refused by name.
const ELSEWHERE: [&str; 8] = [
    "add rule inet t c meta priority set 1:",
    "foo",
    "add foo",
    "monitor foo",
    "destroy table inet zz",
    "add rule inet t c ip saddr foo.bar accept",
    "add rule inet t c \"tcp\" dport 22",
    "add chain inet t m { type filter hook postrouting priority -150 ; } ; add rule inet t m oifname eth0 \
    meta priority set 1:0x10",
];

fn commands(text: &str) -> Result<Vec<Command>, tidegate_syntax::Refusal> {
    nft::parse(text, Some("rule"))
}

/// A rule in its parts.
fn rules(words: &str) -> Result<Vec<NetfilterRule>, tidegate_syntax::Refusal> {
    let rule = |command: Command| match command.ask {
        Ask::Op(NfOp { command: NfCommand::Append(_, rule), .. }) => Some(rule),
        Ask::Op(NfOp { command: NfCommand::Counters(..), .. }) => None,
        other => panic!("{words}: {other:?}"),
    };
    Ok(commands(&format!("add rule inet t c {words}"))?.into_iter().filter_map(rule).collect())
}

fn cases(recorded: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    recorded.split("\n> ").skip(1).map(|case| {
        let mut lines = case.lines();
        (lines.next().unwrap_or_default(), lines.collect())
    })
}

#[test]
fn rules_are_listed_as_recorded_or_refused_by_name() {
    let (mut differing, mut listed, mut refused) = (Vec::new(), 0, Vec::new());
    for (words, wanted) in cases(RULES) {
        let known =
            |output: &str| OTHERWISE.iter().any(|(condition, other)| *condition == words && *other == output);
        match rules(words) {
            Ok(rules) => {
                let counts = if words.contains("packets 5") { (5, 500) } else { (0, 0) };
                let parts: Vec<_> = rules.into_iter().map(|rule| (rule, Some(counts))).collect();
                let output = nft::print_parts(&parts, Family::Inet);
                listed += 1;
                if wanted != [output.as_str()] && !known(&output) {
                    differing.push(format!("{words}\n  {}\n  {output}", wanted.join("\n  ")));
                }
            }
            Err(refusal) if refusal.stderr.contains("is not supported in this version") => {
                assert!(refusal.remedy.is_some(), "{words}");
                refused.push(words);
            }
            // The kernel of the recording had no modules for it.
            Err(refusal) => {
                let lines: Vec<&str> = refusal.stderr.lines().collect();
                if lines != wanted {
                    differing.push(format!("{words}\n  {}\n  {}", wanted.join("\n  "), lines.join("\n  ")));
                }
            }
        }
    }
    assert_eq!(differing, Vec::<String>::new(), "{}", differing.join("\n"));
    assert!(listed > 70, "only {listed} rules");
    assert_eq!(refused, LATER);
}

/// What is listed is the same rule when it is read.
#[test]
fn listings_are_read_again() {
    let mut compared = 0;
    for (words, _) in cases(RULES) {
        let Ok(parts) = rules(words) else { continue };
        let counted: Vec<_> = parts.iter().map(|rule| (rule.clone(), None)).collect();
        let listed = nft::print_parts(&counted, Family::Inet);
        assert_eq!(rules(&listed).as_deref(), Ok(parts.as_slice()), "{words}: {listed}");
        compared += 1;
    }
    assert!(compared > 70, "only {compared} rules");
}

/// Refusals that come from the words, as recorded; the kernel's are tested in
/// `crates/cli/tests/commands/nft.rs`.
#[test]
fn commands_are_refused_as_recorded() {
    let mut differing = Vec::new();
    let mut compared = 0;
    for (words, wanted) in cases(REFUSED) {
        if wanted.iter().any(|line| line.contains("No such file") || line.contains("Could not process")) {
            continue;
        }
        compared += 1;
        let output = match nft::parse(words, Some("/dev/stdin")) {
            Ok(_) => "accepted".to_owned(),
            Err(refusal) => refusal.stderr,
        };
        let elsewhere = ELSEWHERE.contains(&words) && output.contains("Error: ");
        if output.lines().collect::<Vec<_>>() != wanted && !elsewhere {
            differing.push(format!(
                "{words}\n  {}\n  {}",
                wanted.join("\n  "),
                output.trim_end().replace('\n', "\n  ")
            ));
        }
    }
    assert_eq!(differing, Vec::<String>::new(), "{}", differing.join("\n"));
    assert!(compared > 30, "only {compared} commands");
}

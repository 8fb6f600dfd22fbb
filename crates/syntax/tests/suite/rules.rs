//! Rules as the real iptables 1.8.9 listed or refused them.

use tidegate_policy::netfilter::NfCommand;
use tidegate_syntax::iptables::{self, IptCommand, ListStyle, ListedChain, ListedRule};

const RECORDED: &str = include_str!("../data/rules.txt");

/// The answer of our iptables to a rule, in the form of the recording.
fn matches_of(words: &str) -> Vec<String> {
    let args: Vec<String> = ["-t", "mangle", "-A", "FORWARD"]
        .into_iter()
        .chain(words.split_whitespace())
        .map(String::from)
        .collect();
    let rule = match iptables::parse("iptables", &args) {
        Ok(parsed) => match parsed.command {
            IptCommand::Apply(op) => match op.command {
                NfCommand::Append(_, rule) => rule,
                other => panic!("{words}: {other:?}"),
            },
            other => panic!("{words}: {other:?}"),
        },
        Err(refusal) => {
            let mut lines: Vec<String> = refusal.stderr.lines().map(String::from).collect();
            lines.push(format!("rc {}", refusal.code));
            return lines;
        }
    };
    let rules = vec![ListedRule { rule, packets: 0, bytes: 0 }];
    let chain = ListedChain { name: "FORWARD".into(), policy: Some(true), rules, ..ListedChain::default() };
    let styles = [
        ListStyle { commands: true, ..ListStyle::default() },
        ListStyle { verbose: true, numeric: true, ..ListStyle::default() },
        ListStyle::default(),
    ];
    let last = |style: &ListStyle| {
        let text = iptables::list(std::slice::from_ref(&chain), false, style);
        text.lines().last().unwrap_or_default().to_owned()
    };
    styles.iter().map(last).collect()
}

#[test]
fn rules_are_listed_and_refused_as_recorded() {
    let mut differing = Vec::new();
    let mut compared = 0;
    for case in RECORDED.split("\n> ").skip(1) {
        let mut lines = case.lines();
        let words = lines.next().unwrap_or_default();
        let wanted: Vec<&str> = lines.collect();
        let ours = matches_of(words);
        compared += 1;
        // Chains that are not there are refused by the machine, not by the words.
        if ours != wanted
            && !wanted.iter().any(|line| line.contains("does not exist") || line.contains("RULE_APPEND"))
        {
            differing.push(format!("{words}\n  {}\n  {}", wanted.join("\n  "), ours.join("\n  ")));
        }
    }
    assert_eq!(differing, Vec::<String>::new());
    assert!(compared > 100, "only {compared} rules");
}

//! Policies from lines of tc and iptables.

use tidegate_gateway::DeviceSpec;
use tidegate_inspect::{
    Finding, Level, PolicyInput, PolicyModel, Rule, Source, SourceLocation, Step, Witness, Word, check,
};
use tidegate_packet::KernelModel;
use tidegate_policy::{LinkDriver, Op};
use tidegate_syntax::{Env, TcVersion, iptables, tc};

/// What these commands come to; each must be understood.
pub(crate) fn reading(devices: &[&str], text: &str) -> PolicyModel {
    PolicyModel::new(given(devices, text))
}

/// The input of a [`PolicyModel`] of these commands, all of which succeeded.
pub(crate) fn given(devices: &[&str], text: &str) -> PolicyInput {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (mut steps, mut ops) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate() {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Some((tool, args)) = words.split_first() else { continue };
        let op = match tool.as_str() {
            "tc" => match tc::parse(args, &Env::default()).expect(line).command {
                tc::TcCommand::Apply(op) => op,
                other => panic!("{line}: {other:?}"),
            },
            _ => match iptables::parse(tool, args).expect(line).command {
                iptables::IptCommand::Apply(op) => Op::Netfilter(op),
                other => panic!("{line}: {other:?}"),
            },
        };
        let place = |columns| Some(SourceLocation { file: 0, line: at + 1, columns });
        let mut behind = tool.len();
        let word = |text: &String| {
            let columns = column(line, behind, text);
            behind = columns.map_or(behind, |(_, end)| end);
            Word { text: text.clone(), place: columns.and_then(place), literal: true }
        };
        steps.push(Step {
            tool: tool.clone(),
            words: args.iter().map(word).collect(),
            place: place((0, 0)),
            ops: ops.len()..ops.len() + 1,
            refused: None,
            may_fail: false,
            at_fault: None,
            is_skipped: false,
            frames: Vec::new(),
            called_from: None,
        });
        ops.push(op);
    }
    PolicyInput {
        sources: vec![Source { name: "policy".into(), lines }],
        steps,
        ops,
        devices: devices
            .iter()
            .map(|name| ((*name).to_owned(), DeviceSpec::of(&LinkDriver::of_name(name))))
            .collect(),
        down: Vec::new(),
        kernel: KernelModel::default(),
        tc: TcVersion::default(),
        kernel_log: Vec::new(),
        scripts: false,
    }
}

/// The columns of a word in a line, behind the words before it.
fn column(line: &str, behind: usize, word: &str) -> Option<(usize, usize)> {
    let at = behind + line.get(behind..)?.find(word)?;
    Some((at, at + word.len()))
}

/// The findings of some rules, a line for each: where, how bad, what, why, and what shows it.
pub(crate) fn findings_of(text: &str, rules: &[Rule]) -> Vec<String> {
    let line = |finding: &Finding| {
        let at = finding.place.as_ref().map_or(0, |place| place.line);
        let level = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        let shown = match &finding.witness {
            Some(Witness::Packet { packet, went }) => format!("{packet}: {went}"),
            Some(Witness::Number(number)) => number.clone(),
            None => String::new(),
        };
        let remedy = finding.fix.as_ref().map_or("", |fix| &fix.what);
        format!(
            "{at} {level} {}: {}; {}; {shown}; {remedy}",
            finding.rule.id(),
            finding.what,
            finding.because
        )
    };
    let mut reading = reading(&["eth0", "eth1"], text);
    check(&mut reading).iter().filter(|finding| rules.contains(&finding.rule)).map(line).collect()
}

/// There is one finding, and it contains all of this.
pub(crate) fn check_finding(text: &str, rules: &[Rule], parts: &[&str]) {
    let found = findings_of(text, rules);
    assert_eq!(found.len(), 1, "{text}\n{found:#?}");
    for part in parts {
        assert!(found[0].contains(part), "{text}\nwanted {part}\n{}", found[0]);
    }
}

/// There is no finding.
pub(crate) fn silent(text: &str, rules: &[Rule]) {
    assert_eq!(findings_of(text, rules), [""; 0], "{text}");
}

//! Rates, times, sizes and probabilities in tc's options, as two releases read, refused and listed them
//! (`data/numbers.txt.gz` describes the runs).

use std::io::Read;
use tidegate_gateway::DeviceSpec;
use tidegate_packet::{LinuxVersion, Pool, Seeded};
use tidegate_shims::{Answer, Call, Machine};
use tidegate_syntax::TcVersion;

#[test]
fn numbers_are_read_and_listed_as_two_releases_did() {
    let mut recorded = String::new();
    let packed = &include_bytes!("data/numbers.txt.gz")[..];
    flate2::read::GzDecoder::new(packed).read_to_string(&mut recorded).expect("what was recorded");
    let rows: Vec<Vec<&str>> = recorded
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect();
    assert!(rows.len() > 900);
    let mut differ = String::new();
    for (at, (linux, tc)) in LinuxVersion::RECORDED.into_iter().zip(TcVersion::ALL).enumerate() {
        for row in &rows {
            let wanted = [row[1 + 2 * at], row[2 + 2 * at]];
            let found = made(row[0], linux, tc);
            if found != wanted {
                differ += &format!("{} by tc {tc}:\n  Linux {wanted:?}\n  here  {found:?}\n", row[0]);
            }
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

/// The first line that a command prints, and the first of the listing after it.
fn made(qdisc: &str, linux: LinuxVersion, tc: TcVersion) -> [String; 2] {
    let mut spec = DeviceSpec { hz: 1000, ..DeviceSpec::default() };
    spec.switches.linux = linux;
    let mut machine = Machine::recorded(spec, false);
    machine.tc = tc;
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let mut shim = machine.shim(&mut pool, &mut draws);
    let mut first_line = |command: &str| {
        let args = command.split_whitespace().map(str::to_owned).collect();
        let reply = shim.answer(&Call { tool: "tc".into(), args, stdin: None, cwd: "/".into(), netns: None });
        let text = [reply.stdout, reply.stderr].concat();
        let text = String::from_utf8(text).expect("text");
        text.lines().find(|line| !line.starts_with("tidegate: ")).map(without_seed).unwrap_or_default()
    };
    [
        first_line(&format!("qdisc add dev link1 root handle 1: {qdisc}")),
        first_line("-d qdisc show dev link1"),
    ]
}

/// A line of a listing without netem's seed, which is drawn.
fn without_seed(line: &str) -> String {
    let line = line.trim();
    let Some((front, seed)) = line.split_once(" seed ") else { return line.to_owned() };
    let rest = seed.split_once(' ').map_or("", |(_, rest)| rest);
    format!("{front} {rest}").trim_end().to_owned()
}

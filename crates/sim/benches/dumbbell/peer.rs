//! The same dumbbell in ns-3 and ns-2, in turns with tidegate: ratios of one run, so that a busy machine
//! slows all alike.

use crate::{CASES, Case, net, run};
use std::path::PathBuf;
use std::process::Command;
use tidegate_packet::{Nanos, Time};

/// Turns; the median of each peer counts.
const TURNS: usize = 3;
const MBIT: u64 = 100;
/// The libraries of ns-3 that its program needs.
const LIBRARIES: [&str; 9] = [
    "point-to-point",
    "applications",
    "internet-apps",
    "internet",
    "traffic-control",
    "bridge",
    "network",
    "stats",
    "core",
];

fn program(name: &str) -> String {
    format!("{}/benches/peer/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Compiles the program for ns-3; an error is a reason for people.
fn build() -> Result<PathBuf, String> {
    let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ns3-dumbbell");
    let done = Command::new("g++")
        .args(["-std=c++17", "-O2", "-o"])
        .arg(&built)
        .arg(program("ns3.cc"))
        .args(LIBRARIES.map(|library| format!("-lns3-{library}")))
        .output();
    match done {
        Ok(output) if output.status.success() => Ok(built),
        Ok(_) => Err("it does not compile (Debian: apt-get install libns3-dev g++)".into()),
        Err(error) => Err(format!("g++ does not run: {error}")),
    }
}

/// CPU-seconds that children of this process have taken.
fn children_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    // Fields 16 and 17 of proc(5), in hundredths; the third is the first here.
    [13, 14].iter().filter_map(|&at: &usize| fields.get(at)?.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// What ns-3 says of itself: bottleneck packets per CPU-second, setting up included.
fn ns3(program: &PathBuf, flows: u32, secs: u64, queue: &str) -> Option<f64> {
    let words =
        [format!("--n={flows}"), format!("--mbit={MBIT}"), format!("--dur={secs}"), format!("--q={queue}")];
    let output = Command::new(program).args(words).arg("--perflow=0").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split("btl_pkts_per_cpu_s=").nth(1)?.split_whitespace().next()?.parse().ok()
}

/// The packets that ns-2's senders put into the bottleneck, per CPU-second.
fn ns2(flows: u32, secs: u64) -> Option<f64> {
    let before = children_seconds();
    let words = [flows.to_string(), MBIT.to_string(), secs.to_string(), "DropTail".into(), "Sack1".into()];
    let output = Command::new("ns").arg(program("ns2.tcl")).args(words).output().ok()?;
    let cpu = children_seconds() - before;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let packets: f64 = text.split("datapack=").nth(1)?.split_whitespace().next()?.parse().ok()?;
    Some(packets / cpu)
}

fn ours(case: Case, flows: u32, secs: u64) -> f64 {
    let end = Time(0) + Nanos::secs(secs);
    let (mut net, dumbbell) = net(case, MBIT, flows, end);
    run(&mut net, &dumbbell, end).per_second()
}

fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied()
}

/// Runs all of them in turns and prints the table.
pub(crate) fn compare() {
    let ns3_program = build();
    if let Err(why) = &ns3_program {
        println!("ns-3 is left out: {why}");
    }
    if Command::new("ns").arg("/dev/null").output().is_err() {
        println!("ns-2 is left out: no program `ns` (Debian: apt-get install ns2)");
    }
    println!(
        "| flows | ns-3, CUBIC, fq_codel | ns-2, Sack1, DropTail | tidegate, CUBIC, fq_codel | tidegate, \
        Reno, pfifo | fq_codel / ns-3 | fq_codel / ns-2 | pfifo / ns-2 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (flows, secs) in [(4, 30), (20, 30), (100, 30)] {
        let (mut three, mut two, mut fair, mut plain) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for turn in 0..TURNS {
            // Ours are done in an instant: the same simulated time is too short to measure.
            fair.push(ours(CASES[3], flows, secs * 10));
            plain.push(ours(CASES[0], flows, secs * 10));
            two.extend(ns2(flows, secs));
            // One turn is a minute of work, so it gets no second one with many flows.
            if let Ok(program) = &ns3_program
                && (turn == 0 || flows == 4)
            {
                three.extend(ns3(program, flows, secs, "fqcodel"));
            }
        }
        let [three, two, fair, plain] =
            [three, two, fair, plain].map(|figures| median(figures).unwrap_or(f64::NAN));
        println!(
            "| {flows} | {:.0} k | {:.2} M | {:.2} M | {:.2} M | {:.0} | {:.2} | {:.2} |",
            three / 1e3,
            two / 1e6,
            fair / 1e6,
            plain / 1e6,
            fair / three,
            fair / two,
            plain / two
        );
    }
}

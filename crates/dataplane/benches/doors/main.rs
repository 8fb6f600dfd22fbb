//! Backends on real packets, beside the kernel's own forwarding and with the engine behind them, in one run.
//!
//! `cargo bench -p tidegate-dataplane --profile ci` (root; two processors or more). Three machines in a row,
//! A - M - B; M forwards. Each direction is measured in every round, so that what else the machine does meets
//! all of them; medians are printed, and ratios to the kernel and to the bare backend.
//!
//! `-- 20 capture` takes twenty rounds instead of five, and only ways whose name has that word in it.

mod line;
mod load;
mod ways;

use std::io;

use line::Line;
use load::Measured;
use ways::{ForwardingPath, Kind, Policy};

const ROUNDS: usize = 5;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    // Tests of all targets start this too.
    if !words.iter().any(|word| word == "--bench") {
        return Ok(());
    }
    let rounds = words.iter().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    let line = match Line::lay() {
        Ok(line) => line,
        Err(error) => {
            println!("left out: no network namespaces can be made here ({error})");
            return Ok(());
        }
    };
    let is_name = |word: &&String| !word.starts_with('-') && word.parse::<usize>().is_err();
    let chosen: Vec<&String> = words.iter().skip(1).filter(is_name).collect();
    let ways: Vec<ForwardingPath> =
        all().into_iter().filter(|way| chosen.iter().all(|word| way.name().contains(*word))).collect();
    let mut measured: Vec<Vec<Measured>> = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        for (way, of_way) in ways.iter().zip(&mut measured) {
            match way.run(&line, load::all) {
                Ok(seen) => of_way.push(seen),
                Err(error) if round == 0 => println!("left out: {way}: {error}"),
                Err(error) => return Err(error),
            }
        }
    }
    print(&ways, &measured);
    Ok(())
}

/// All ways to be measured, each bare backend before what has an engine behind it.
fn all() -> Vec<ForwardingPath> {
    let mut ways = vec![ForwardingPath::Kernel];
    for kind in [Kind::Queue, Kind::Capture, Kind::Tun] {
        ways.push(ForwardingPath::Bare(kind));
        ways.extend([Policy::Pfifo, Policy::HtbFqCodel].map(|policy| ForwardingPath::Engine(kind, policy)));
    }
    ways
}

fn print(ways: &[ForwardingPath], measured: &[Vec<Measured>]) {
    println!(
        "{:<34} {:>8} {:>7} {:>7} {:>7} {:>9} {:>8} {:>8}",
        "way", "UDP kpps", "/bare", "TCP G/s", "/bare", "ns CPU/p", "ping p50", "p95 us"
    );
    let mut bare = (0.0, 0.0);
    for (way, of_way) in ways.iter().zip(measured).filter(|(_, of_way)| !of_way.is_empty()) {
        let [packets, stream, cpu, p50, p95] = load::medians(of_way);
        if !matches!(way, ForwardingPath::Engine(..)) {
            bare = (packets, stream);
        }
        println!(
            "{:<34} {:>8.0} {:>7.2} {:>7.2} {:>7.2} {:>9.0} {:>8.0} {:>8.0}",
            way.to_string(),
            packets / 1e3,
            packets / bare.0,
            stream / 1e9,
            stream / bare.1,
            cpu,
            p50,
            p95
        );
    }
}

//! Nanoseconds per packet through the engine, in and out, with a steady backlog.
//!
//! `cargo bench -p tidegate-qdisc [-- PART-OF-A-NAME]`, or `-- --count PACKETS NAME given|single|parsed`,
//! which runs one tree for so many packets: for a profiler or a counter of instructions (`valgrind
//! --tool=callgrind --toggle-collect='*steady*'`).
//!
//! `-- beside` runs only the comparison with DPDK, which the table ends with where DPDK is installed.
//!
//! The time is taken over pieces of 4,096 packets, short against a time slice, so that other work on the
//! machine shows in few of them.
// A benchmark is the one place here that looks at a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, missing_docs)]

mod beside;
mod rig;

use rig::{BenchCase, CASES, PacketInput, Rig};
use std::hint::black_box;
use std::time::Instant;

const PIECE: usize = 4096;
const PIECES: usize = 300;
const REPEATS: usize = 3;

/// A good piece (one in twenty is better) and the median piece, ns per packet.
fn time(rig: &mut Rig) -> (f64, f64) {
    let mut pieces: Vec<f64> = (0..PIECES)
        .map(|_| {
            let start = Instant::now();
            black_box(&mut *rig).steady(PIECE);
            start.elapsed().as_nanos() as f64 / PIECE as f64
        })
        .collect();
    pieces.sort_by(f64::total_cmp);
    (pieces[PIECES / 20], pieces[PIECES / 2])
}

fn measure(case: &BenchCase, arrival: PacketInput) -> (f64, f64, f64) {
    let mut rig = None;
    let memory = allocation_counter::measure(|| rig = Some(Rig::new(case, arrival)));
    let Some(mut rig) = rig else { unreachable!("built above") };
    rig.steady(4 * PIECE.max((case.leaves * case.backlog) as usize));
    let (mut best, mut medians) = (f64::INFINITY, Vec::new());
    for _ in 0..REPEATS {
        let (low, median) = time(&mut rig);
        best = best.min(low);
        medians.push(median);
    }
    medians.sort_by(f64::total_cmp);
    assert!(rig.whole(), "{}: {} packets lost", case.name, rig.lost);
    (best, medians[REPEATS / 2], memory.bytes_current as f64 / f64::from(case.leaves))
}

fn count(words: &[String]) {
    let [packets, name, arrival, ..] = words else {
        return eprintln!("--count PACKETS NAME given|single|parsed");
    };
    let arrival = match arrival.as_str() {
        "parsed" => PacketInput::Parsed,
        "single" => PacketInput::Single,
        _ => PacketInput::Given,
    };
    let (Ok(packets), Some(case)) = (packets.parse(), CASES.iter().find(|case| case.name == name)) else {
        let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        return eprintln!("no such tree; there are: {names:?}");
    };
    let mut rig = Rig::new(case, arrival);
    rig.steady(packets);
    assert!(rig.whole(), "{}: {} packets lost", case.name, rig.lost);
}

/// Is a tree named by all words? Huge ones, which take long to build, must be.
fn chosen(case: &BenchCase, words: &[String]) -> bool {
    words.iter().all(|word| case.name.contains(word.as_str())) && (!words.is_empty() || case.leaves < 50_000)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let Some(at) = words.iter().position(|word| word == "--count") {
        return count(&words[at + 1..]);
    }
    if words == ["beside"] {
        return beside::run();
    }
    println!(
        "ns per packet, in and out: best and median     in batches      one by one          parsed   heap \
        bytes per leaf"
    );
    for case in CASES.iter().filter(|case| chosen(case, &words)) {
        let given = measure(case, PacketInput::Given);
        let single = measure(case, PacketInput::Single);
        let parsed = measure(case, PacketInput::Parsed);
        print!("{:40}", case.name);
        for (best, median, _) in [given, single, parsed] {
            print!(" {best:7.1} {median:7.1}");
        }
        println!(" {:10.0}", given.2);
    }
    if words.is_empty() {
        beside::run();
    }
}

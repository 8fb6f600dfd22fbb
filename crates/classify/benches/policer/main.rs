//! The policer's speed: a random one of many for each packet, one rate, one bucket, one packet in eight too
//! much.
//!
//! `cargo bench -p tidegate-classify --bench policer -- --peers` runs DPDK's `rte_meter` beside it, in turns,
//! on the same processor. Time is an argument on both sides.

// A benchmark reads the clock and runs its peer.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;
use tidegate_classify::{ActionInput, Policers};
use tidegate_packet::{LinuxVersion, Rate, Time};
use tidegate_policy::{Police, RateSpec, Ticks};

/// Packets whose time is taken together, as in the peer.
const PIECE: u32 = 65_536;
const PIECES: usize = 100;
const ROUNDS: usize = 15;
const LENGTH: u32 = 64;
const RATE: Rate = Rate::bits(1_000_000_000);
/// 64 bytes take 512 ns at that rate, and come every 450 at each policer.
const EVERY: f64 = 450.0;

struct Rig {
    policers: Policers,
    count: u32,
    /// In 1/1024 ns, so that many policers share a nanosecond.
    now: u64,
    step: u64,
    random: u32,
    passed: u64,
}

impl Rig {
    fn new(count: u32) -> Rig {
        let params = Police {
            rate: Some(RateSpec { rate: RATE, ..RateSpec::default() }),
            burst: Ticks((100_000 * Ticks::PER_SECOND / RATE.0) as u32),
            mtu: 2047,
            ..Police::default()
        };
        let mut policers = Policers::default();
        for _ in 0..count {
            policers.add(&params, Time(0));
        }
        Rig {
            policers,
            count,
            now: 0,
            step: (EVERY * 1024.0 / f64::from(count)) as u64,
            random: 12_345,
            passed: 0,
        }
    }

    /// A good piece (one in twenty is better) and the median one, ns per packet.
    fn time(&mut self) -> (f64, f64) {
        let mut pieces: Vec<f64> = (0..PIECES).map(|_| self.piece()).collect();
        pieces.sort_by(f64::total_cmp);
        (pieces[PIECES / 20], pieces[PIECES / 2])
    }

    fn piece(&mut self) -> f64 {
        let start = Instant::now();
        // In registers, as the peer's are.
        let Rig { policers, count, now, step, random, passed } = self;
        let (mut time, mut state, mut conforming) = (*now, *random, 0);
        for _ in 0..PIECE {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let policer = (u64::from(state) * u64::from(*count)) >> 32;
            time += *step;
            let meter = ActionInput {
                len: LENGTH,
                whole: LENGTH,
                now: Time(time >> 10),
                passed_over: false,
                linux: LinuxVersion::default(),
            };
            conforming += u64::from(policers.conforms(policer as u32, meter));
        }
        (*now, *random, *passed) = (time, state, *passed + conforming);
        start.elapsed().as_nanos() as f64 / f64::from(PIECE)
    }
}

struct Peer {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn build() -> Result<PathBuf, String> {
        let flags = Command::new("pkg-config").args(["--cflags", "--libs", "libdpdk"]).output();
        let flags = flags.map_err(|error| format!("pkg-config does not run: {error}"))?;
        if !flags.status.success() {
            return Err("pkg-config finds no libdpdk (Debian: apt-get install libdpdk-dev)".into());
        }
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rte_meter");
        let built = Command::new("cc")
            .args(["-O3", "-march=native", "-w", "-o"])
            .arg(&program)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer/rte_meter.c"))
            .args(String::from_utf8_lossy(&flags.stdout).split_whitespace())
            .status();
        match built {
            Ok(status) if status.success() => Ok(program),
            Ok(status) => Err(format!("the C compiler fails: {status}")),
            Err(error) => Err(format!("the C compiler does not run: {error}")),
        }
    }

    fn start(program: &PathBuf, meters: u32) -> Option<Peer> {
        let mut child = Command::new(program)
            .arg(meters.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let answers = BufReader::new(child.stdout.take()?);
        Some(Peer { child, answers })
    }

    fn time(&mut self) -> Option<(f64, f64)> {
        writeln!(self.child.stdin.as_mut()?, "{PIECES}").ok()?;
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace().map(str::parse);
        Some((words.next()?.ok()?, words.next()?.ok()?))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// One line: ours, and the peer's beside it where it runs.
fn line(policers: u32, program: Option<&PathBuf>) {
    let mut rig = Rig::new(policers);
    let mut peer = program.and_then(|program| Peer::start(program, policers));
    let (mut ours, mut theirs, mut good, mut middle) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    rig.time();
    for _ in 0..ROUNDS {
        let own = rig.time();
        ours.push(own.0);
        if let Some(peers) = peer.as_mut().and_then(Peer::time) {
            theirs.push(peers.0);
            good.push(peers.0 / own.0);
            middle.push(peers.1 / own.1);
        }
    }
    let packets = u64::from(PIECE) * PIECES as u64 * (ROUNDS as u64 + 1);
    let passed = rig.passed as f64 / packets as f64;
    print!("{policers:>8} {:>10.1} {:>8.0} %", median(ours), passed * 100.0);
    match theirs.is_empty() {
        true => println!(),
        false => println!(" {:>10.1} {:>12.2} {:>12.2}", median(theirs), median(good), median(middle)),
    }
}

fn main() {
    let peers = std::env::args().any(|word| word == "--peers");
    let program = match peers.then(Peer::build) {
        Some(Ok(program)) => Some(program),
        Some(Err(reason)) => {
            println!("beside rte_meter: skipped, {reason}");
            None
        }
        None => None,
    };
    println!(
        "ns per packet, medians of {ROUNDS} rounds; passed; with the peer: its ns, and its time divided by ours"
    );
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "policers", "tidegate", "passed", "rte_meter", "ratio, good", "median"
    );
    for policers in [1, 100, 10_000, 100_000] {
        line(policers, program.as_ref());
    }
}

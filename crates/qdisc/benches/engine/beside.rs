//! The tree of pipes beside DPDK's rte_sched with the same load: in one run, in turns, on one core.

use crate::rig::{BenchCase, CASES, PacketInput, Rig};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Packets whose time is taken together, as in the peer.
const PIECE: usize = 4096;
const PIECES: usize = 200;
const ROUNDS: usize = 15;

/// The peer's program, waiting for work.
struct Peer {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Peer {
    /// Compiles it; an error is a reason for people.
    fn build() -> Result<PathBuf, String> {
        let flags = Command::new("pkg-config").args(["--cflags", "--libs", "libdpdk"]).output();
        let flags = flags.map_err(|error| format!("pkg-config does not run: {error}"))?;
        if !flags.status.success() {
            return Err("pkg-config finds no libdpdk (Debian: apt-get install libdpdk-dev)".into());
        }
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rte_sched");
        let built = Command::new("cc")
            .args(["-O3", "-march=native", "-w", "-DALLOW_EXPERIMENTAL_API", "-o"])
            .arg(&program)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer/rte_sched.c"))
            .args(String::from_utf8_lossy(&flags.stdout).split_whitespace())
            .status();
        match built {
            Ok(status) if status.success() => Ok(program),
            Ok(status) => Err(format!("the C compiler fails: {status}")),
            Err(error) => Err(format!("the C compiler does not run: {error}")),
        }
    }

    fn start(program: &PathBuf, pipes: u32, backlog: u32) -> Option<Peer> {
        let mut child = Command::new(program)
            .args([pipes.to_string(), backlog.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let answers = BufReader::new(child.stdout.take()?);
        Some(Peer { child, answers })
    }

    /// Runs pieces: a good one and the median one, ns per packet.
    fn time(&mut self) -> Option<(f64, f64)> {
        writeln!(self.child.stdin.as_mut()?, "{PIECES}").ok()?;
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        let (good, median) = line.trim().split_once(' ')?;
        Some((good.parse().ok()?, median.parse().ok()?))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn time(rig: &mut Rig) -> (f64, f64) {
    let mut pieces: Vec<f64> = (0..PIECES)
        .map(|_| {
            let start = Instant::now();
            rig.steady(PIECE);
            start.elapsed().as_nanos() as f64 / PIECE as f64
        })
        .collect();
    pieces.sort_by(f64::total_cmp);
    (pieces[PIECES / 20], pieces[PIECES / 2])
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn compare(program: &PathBuf, case: &BenchCase) -> Option<()> {
    let mut peer = Peer::start(program, case.leaves, case.backlog / case.flows)?;
    let mut rig = Rig::new(case, PacketInput::Given);
    rig.steady(8 * (case.leaves * case.backlog) as usize);
    peer.time()?;
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (peers, own) = (peer.time()?, time(&mut rig));
        theirs.push(peers.0);
        ours.push(own.0);
        ratios.push((peers.0 / own.0, peers.1 / own.1));
    }
    assert!(rig.whole(), "{}: {} packets lost", case.name, rig.lost);
    let (good, middle): (Vec<f64>, Vec<f64>) = ratios.into_iter().unzip();
    let (theirs, ours, good, middle) = (median(theirs), median(ours), median(good), median(middle));
    println!("{:28} {theirs:16.1} {ours:14.1} {good:16.2} {middle:12.2}", case.name);
    Some(())
}

/// Prints the comparison, or why there is none.
pub(crate) fn run() {
    let program = match Peer::build() {
        Ok(program) => program,
        Err(reason) => return println!("beside rte_sched: skipped, {reason}"),
    };
    println!(
        "ns per packet: medians of {ROUNDS} rounds in turns; their time divided by ours, of good and of \
        median pieces"
    );
    println!("{:28} {:>16} {:>14} {:>16} {:>12}", "", "DPDK rte_sched", "tidegate", "ratio, good", "median");
    for case in CASES.iter().filter(|case| case.name.starts_with("pipes")) {
        if compare(&program, case).is_none() {
            println!("{:28} skipped: the peer does not run", case.name);
        }
    }
}

//! `cargo xtask tcp-fuzz`: random runs of real Linux TCP against the simulator's, flow by flow.
//!
//! `generate` makes a question of a seed and a number, `oracle_fuzz::ask` gets the kernel's answer, the
//! example `tcp_answers` of the simulator ours; `figures` says how far apart they are. Each question is asked
//! three times, the later flows shifted by a second or two and the delay by a tenth of a millisecond: where
//! the kernel's own answers then lie far apart, for any flow of a run, the run is chaotic, and says nothing
//! about a single simulated answer. Answers are kept, so that the simulator can be changed and compared
//! again.

mod figures;
mod generate;

use crate::oracle_fuzz::ask::Oracle;
use crate::test_results;
use figures::{Figures, Flow, both, quantile, theirs};
use generate::{Question, question};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const USAGE: &str = "usage: ORACLE=…/ask cargo xtask tcp-fuzz [options]
  --runs N,N…    questions of seed 1, of seed 2, … (default 98; each is asked three times)
  --keep DIR     questions and answers (default target/tcp-fuzz)
  --sim PATH     the simulator's answers (default target/ci/examples/tcp_answers;
                 `cargo build --profile ci -p tidegate-sim --example tcp_answers` makes it)
  --worst N      show so many flows that are furthest off (default 12)
  --only TEXT    disciplines whose name begins so
  --cores N      so many kernels answer at a time (default 1)
  --chance       ask three times more, the delay a little further on: how far one mean of three lies from \
  another, in
                 Linux itself, which no simulator can undercut
  --page         write docs/tcp-fuzz.md or, without TIDEGATE_BLESS, hold it against this table
exit: 0 compared, 1 the page differs, 2 cannot run";

/// How often a question is asked: as it is, and shifted.
const SHIFTS: u64 = 3;
/// A run is calm where the kernel's answers to the shifted questions lie within so much of one another, for
/// each of its flows.
const CALM: f64 = 0.10;
/// Windows are bounded by the memory of the kernel that is asked: with so much, by 4 MB and 6 MB.
const MEMORY: &str = "1G";
/// Questions answered by one call of a program.
const BATCH: usize = 16;

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    /// Questions of seed 1, of seed 2, …
    runs: Vec<u64>,
    keep: PathBuf,
    sim: PathBuf,
    worst: usize,
    only: String,
    cores: usize,
    chance: bool,
    page: bool,
}

/// Runs the task with the words after its name.
pub(crate) fn run(root: &Path, words: &[String]) -> ExitCode {
    let outcome = options(root, words).and_then(|options| {
        let flows = compare(&options)?;
        let table = table(&options, &flows);
        print!("{table}{}", worst(&flows, options.worst));
        Ok(if options.page {
            test_results::settle(
                &root.join("docs/tcp-fuzz.md"),
                &page(&table),
                "tcp-fuzz",
                &format!("{} flows", flows.len()),
            )
        } else {
            ExitCode::SUCCESS
        })
    });
    outcome.unwrap_or_else(|message| {
        eprintln!("tcp-fuzz: {message}");
        ExitCode::from(2)
    })
}

fn options(root: &Path, words: &[String]) -> Result<Options, String> {
    let mut options = Options {
        runs: vec![98],
        keep: root.join("target/tcp-fuzz"),
        sim: root.join("target/ci/examples/tcp_answers"),
        worst: 12,
        only: String::new(),
        cores: 1,
        chance: false,
        page: false,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{word} {text}: not a number"));
        match word.as_str() {
            "--runs" => options.runs = value()?.split(',').map(number).collect::<Result<_, _>>()?,
            "--worst" => options.worst = number(value()?)? as usize,
            "--keep" => options.keep = PathBuf::from(value()?),
            "--sim" => options.sim = PathBuf::from(value()?),
            "--only" => options.only.clone_from(value()?),
            "--cores" => options.cores = number(value()?)?.max(1) as usize,
            "--chance" => options.chance = true,
            "--page" => options.page = true,
            "--help" | "-h" | "help" => return Err(USAGE.to_owned()),
            other => return Err(format!("unknown option {other}\n{USAGE}")),
        }
    }
    Ok(options)
}

/// A question's folders, one per shift.
struct QuestionSet {
    name: String,
    questions: Vec<(Question, PathBuf)>,
    /// The same once more, for what chance does.
    again: Vec<(Question, PathBuf)>,
}

/// The questions of all seeds, with where they stand.
fn questions(options: &Options) -> Vec<QuestionSet> {
    let numbers =
        (1..).zip(&options.runs).flat_map(|(seed, &runs)| (0..runs).map(move |number| (seed, number)));
    let all = numbers.map(|(seed, number)| {
        let name = format!("s{seed}-{number}");
        let one = |shift| (question(seed, number, shift), options.keep.join(format!("{name}-{shift}")));
        let again = if options.chance { (SHIFTS..2 * SHIFTS).map(&one).collect() } else { Vec::new() };
        QuestionSet { questions: (0..SHIFTS).map(&one).collect(), again, name: name.clone() }
    });
    all.filter(|set| set.questions[0].0.discipline.starts_with(&options.only)).collect()
}

fn compare(options: &Options) -> Result<Vec<Flow>, String> {
    let sets = questions(options);
    let all: Vec<&(Question, PathBuf)> = sets.iter().flat_map(|set| &set.questions).collect();
    let again = sets.iter().flat_map(|set| &set.again);
    ask(&all.iter().copied().chain(again).collect::<Vec<_>>(), options.cores)?;
    for part in all.chunks(BATCH) {
        let status = Command::new(&options.sim).args(part.iter().map(|(_, dir)| dir)).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("{}: {status}", options.sim.display())),
            Err(error) => return Err(format!("{}: {error}\n{USAGE}", options.sim.display())),
        }
    }
    Ok(sets.iter().flat_map(flows).collect())
}

/// Asks the kernel what it has not been asked yet.
fn ask(all: &[&(Question, PathBuf)], cores: usize) -> Result<(), String> {
    let missing: Vec<&(Question, PathBuf)> =
        all.iter().filter(|(question, dir)| !(question.exists_in(dir) && answered(dir))).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let oracle = Oracle::from_environment()?;
    let parts = Mutex::new(missing.chunks(BATCH));
    let atomic_usize = AtomicUsize::new(0);
    let work = |core: usize| -> Result<(), String> {
        let oracle = oracle.on_core(core);
        loop {
            let part = parts.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(part) = part else { return Ok(()) };
            ask_part(&oracle, part)?;
            eprintln!(
                "asked {} of {}",
                atomic_usize.fetch_add(part.len(), Ordering::Relaxed) + part.len(),
                missing.len()
            );
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|core| scope.spawn(move || work(core))).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

fn ask_part(oracle: &Oracle, part: &[&(Question, PathBuf)]) -> Result<(), String> {
    let at_fault = |error: io::Error| format!("{}: {error}", part[0].1.display());
    for (question, dir) in part {
        let _ = fs::remove_dir_all(dir);
        question.write(dir).map_err(at_fault)?;
    }
    let dirs: Vec<PathBuf> = part.iter().map(|(_, dir)| dir.clone()).collect();
    oracle.ask_about_tcp(&dirs, MEMORY).map_err(at_fault)?;
    for (_, dir) in part {
        // Every packet is in there: large, and not asked for.
        let _ = fs::remove_file(dir.join("packets.csv"));
        if !answered(dir) {
            eprintln!("{}: no answer", dir.display());
        }
    }
    Ok(())
}

/// Whether the kernel answered in this folder, and its script went through.
fn answered(dir: &Path) -> bool {
    let text = fs::read_to_string(dir.join("guest.out")).unwrap_or_default();
    fs::metadata(dir.join("stats.json")).is_ok_and(|file| file.len() > 0) && !text.contains("script failed")
}

/// The flows of a question whose connection came about in each of its runs.
fn flows(set: &QuestionSet) -> Vec<Flow> {
    // A shift moves all later flows alike, so their order and names stay.
    let names: Vec<&str> = set.questions[0].0.names().collect();
    let runs = |name: &str| set.questions.iter().map(|(_, dir)| both(dir, name)).collect::<Option<Vec<_>>>();
    let mut found = Vec::new();
    let again = |name: &str| set.again.iter().map(|(_, dir)| theirs(dir, name)).collect::<Option<Vec<_>>>();
    for (at, name) in names.iter().enumerate() {
        match runs(name) {
            Some(runs) => {
                let (discipline, first) = (set.questions[0].0.discipline, at == 0);
                let (again, name) = (again(name).unwrap_or_default(), format!("{} {name}", set.name));
                found.push(Flow { discipline, name, calm: false, runs, again, first });
            }
            None => eprintln!("{}: {name} did not connect in each run", set.name),
        }
    }
    let calm = found.iter().all(|flow| flow.spread(rate) <= CALM && flow.spread(trip) <= CALM);
    for flow in &mut found {
        flow.calm = calm;
    }
    found
}

fn rate(figures: &Figures) -> f64 {
    figures.rate
}

fn trip(figures: &Figures) -> f64 {
    figures.trip
}

/// Median and p90 of an error, in per cent.
fn errors(flows: &[&Flow], error: impl Fn(&Flow) -> f64) -> String {
    let mut found: Vec<f64> = flows.iter().map(|flow| 100.0 * error(flow)).collect();
    if found.is_empty() {
        return "–".into();
    }
    format!("{:.1} / {:.1}", quantile(&mut found, 0.5), quantile(&mut found, 0.9))
}

/// What chance alone does to the flows that the kernel was asked of again.
fn chance(flows: &[&Flow], of: fn(&Figures) -> f64) -> String {
    let known: Vec<&Flow> = flows.iter().copied().filter(|flow| flow.chance(of).is_some()).collect();
    errors(&known, |flow| flow.chance(of).unwrap_or_default())
}

/// The median of the later flows' signed error, in per cent: far from nought, they get too much here or too
/// little.
fn late(flows: &[&Flow]) -> String {
    let mut found: Vec<f64> =
        flows.iter().filter(|flow| !flow.first).map(|flow| 100.0 * flow.bias(rate)).collect();
    if found.is_empty() { "–".into() } else { format!("{:+.1}", quantile(&mut found, 0.5)) }
}

fn row(name: &str, flows: &[&Flow]) -> String {
    let calm: Vec<&Flow> = flows.iter().copied().filter(|flow| flow.calm).collect();
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        flows.len(),
        errors(flows, |flow| flow.error_of_means(rate)),
        chance(flows, rate),
        late(flows),
        errors(flows, |flow| flow.error_of_means(trip)),
        chance(flows, trip),
        calm.len(),
        errors(&calm, |flow| flow.error(rate)),
        errors(&calm, |flow| flow.error(trip)),
    )
}

fn table(options: &Options, flows: &[Flow]) -> String {
    let runs: Vec<String> = options.runs.iter().map(u64::to_string).collect();
    let mut table = format!(
        "`cargo xtask tcp-fuzz --runs {}{}`: {} flows. Errors in per cent, median / p90.\n\n\
         | qdisc | flows | rate, mean of {SHIFTS} runs | Linux and itself | late flows, signed \
         | RTT, mean of {SHIFTS} runs | Linux and itself | flows of calm runs | rate | RTT |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        runs.join(","),
        if options.chance { " --chance" } else { "" },
        flows.len()
    );
    let mut groups: BTreeMap<&str, Vec<&Flow>> = BTreeMap::new();
    for flow in flows {
        groups.entry(flow.discipline).or_default().push(flow);
    }
    for (name, flows) in &groups {
        table += &row(name, flows);
    }
    table + &row("all", &flows.iter().collect::<Vec<_>>())
}

/// The flows that are furthest off in the mean of the shifted runs.
fn worst(flows: &[Flow], count: usize) -> String {
    let mut flows: Vec<&Flow> = flows.iter().collect();
    let off = |flow: &Flow| flow.error_of_means(rate).max(2.0 * flow.error_of_means(trip));
    flows.sort_by(|a, b| off(b).total_cmp(&off(a)));
    let mut text = String::new();
    for flow in flows.iter().take(count) {
        text += &format!("\n{} ({}){}\n", flow.name, flow.discipline, if flow.calm { ", calm" } else { "" });
        for [theirs, ours] in &flow.runs {
            let Figures { rate, trip } = theirs;
            let line = format!("  Linux {rate:7.3} Mbit/s {trip:7.1} ms, here {:7.3}", ours.rate);
            text += &format!("{line} {:7.1}\n", ours.trip);
        }
    }
    text
}

/// What the page says before the table.
const INTRODUCTION: &str = "# Simulated TCP compared with real Linux on random runs\n\
\n\
How close is the simulated TCP to Linux's? Each run has a random rate (1 to 50 Mbit/s), two random\n\
delays, a qdisc and one to six flows of CUBIC, Reno and BBR with staggered starts, for 20 s. A real\n\
Linux 6.1 in virtual time runs it, and so does the simulator. For each flow the acknowledged rate and\n\
the median of the smoothed round trip are compared. Against a Linux of your own (`--help` has all\n\
options; ORACLE names the program that runs it):\n\
\n\
\x20\x20\x20\x20cargo xtask tcp-fuzz --runs 98,70 --chance\n\
\n\
How to read the table:\n\
\n\
- Flows that share a queue are chaotic, so every run is repeated three times with the later flows\n\
\x20\x20shifted by a second or two, and means of three are compared.\n\
- *Linux and itself* shows how much of the difference is chance: Linux ran everything again with a\n\
\x20\x20delay 0.3 ms longer, and the two means of three are compared. A perfect simulator would differ by\n\
\x20\x20that much.\n\
- *Calm runs* are those in which Linux's own three results are within 10 % of one another for each\n\
\x20\x20flow: there single results are comparable.\n\
- *Late flows, signed* is the median error of all flows except the first of each run, with its sign.\n\n";

fn page(table: &str) -> String {
    format!("{INTRODUCTION}{table}")
}

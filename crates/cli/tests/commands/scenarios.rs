//! Every scenario is carried out: its requirements hold, the guide's printed output is real, and the guide's
//! pictures are its own.
//!
//! Each figure becomes a row of docs/validation.md. `TIDEGATE_BLESS=1 cargo test -p tidegate --test commands
//! scenarios::` writes outputs, tables and pictures of docs/guide again.

use crate::common;

use common::{Place, TIDEGATE, papers, skip};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use tidegate_analysis::experiment::{self, ComparisonText};
use tidegate_measure::experiment::{Comparison, Experiment};
use tidegate_report::chart::{Theme, file};
use tidegate_report::experiment::charts;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All scenario files, as a user at the project's root names them.
fn scenarios() -> Vec<String> {
    let (root, mut folders, mut found) = (root(), vec![root().join("scenarios")], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "toml") {
                found.push(path.strip_prefix(&root).expect("below the root").display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// What a scenario printed, and its result.
struct Done {
    printed: String,
    succeeded: bool,
    result: Experiment,
}

fn carry_out(scenario: &str, place: &Place) -> Done {
    let result = place.0.join(scenario.replace('/', "-")).with_extension("json");
    let output = Command::new(TIDEGATE)
        // A slow computer is told how long the run will take, which is no result.
        .args(["sim", "--quiet", scenario, "-o"])
        .arg(&result)
        .current_dir(root())
        .output()
        .expect("tidegate runs");
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let text =
        std::fs::read_to_string(&result).unwrap_or_else(|error| panic!("{scenario}: {error}\n{printed}"));
    let result = experiment::from_json(&text).unwrap_or_else(|error| panic!("{scenario}: {error:?}"));
    Done { printed, succeeded: output.status.success(), result }
}

/// All of them, on two threads.
fn all() -> BTreeMap<String, Done> {
    let place = Place::new("scenarios");
    let (queue, done) = (Mutex::new(scenarios()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("nobody failed").pop();
                    let Some(scenario) = next else { break };
                    let one = carry_out(&scenario, &place);
                    done.lock().expect("nobody failed").insert(scenario, one);
                }
            });
        }
    });
    done.into_inner().expect("nobody failed")
}

fn group(scenario: &str) -> &'static str {
    match scenario.strip_prefix("scenarios/validation/") {
        Some("unresponsive.toml") => "Kernel under an unresponsive flow",
        Some(_) => "Queue management and fairness with TCP",
        None => "The articles' experiments",
    }
}

fn verdict(comparison: &Comparison) -> &'static str {
    match (comparison.held, comparison.gated) {
        (true, true) => "within",
        (false, true) => "outside",
        (_, false) => "reported",
    }
}

#[test]
fn scenarios_pass_and_the_guide_is_true() {
    if skip() {
        return;
    }
    let done = all();
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let mut wrong = String::new();
    for (scenario, Done { printed, succeeded, result }) in &done {
        let source = format!("`{scenario}`");
        for c in &result.comparisons {
            let ComparisonText { published, found, bounds, .. } = experiment::comparison_text(c);
            let expected =
                if c.published.is_some() { format!("{bounds} (published {published})") } else { bounds };
            let (what, verdict) = (&c.what, verdict(c));
            println!(
                "validation: {} | {} | {what} | {expected} | {found} | {verdict} | {source}",
                group(scenario),
                c.id
            );
        }
        if !succeeded {
            let _ = writeln!(wrong, "{scenario} does not hold:\n{printed}");
        }
    }
    guide(&done, bless, &mut wrong);
    assert!(wrong.is_empty(), "{wrong}");
}

/// Compares the guide's outputs, tables and pictures with the results.
fn guide(done: &BTreeMap<String, Done>, bless: bool, wrong: &mut String) {
    for paper in papers::of(&root().join("docs/guide")) {
        let before = std::fs::read_to_string(&paper).expect("a paper");
        let printed = |command: &str| match command.strip_prefix("tidegate sim ") {
            Some(scenario) if !scenario.contains(' ') => done
                .get(scenario)
                .map_or_else(|| papers::run(command, &root()), |done| papers::lines(&done.printed)),
            _ => papers::run(command, &root()),
        };
        let (renewed, differs) = papers::renewed(&before, printed);
        let after = papers::generated(&renewed, "published", &published(done));
        if after != before && !bless {
            let _ = writeln!(wrong, "{} is not what is found: {differs}", paper.display());
        }
        if bless {
            std::fs::write(&paper, &after).expect("a paper");
        }
        for (scenario, chart) in pictures(&after) {
            let Some(done) = done.get(&scenario) else {
                let _ = writeln!(wrong, "{}: unknown scenario {scenario}", paper.display());
                continue;
            };
            picture(&scenario, &chart, &done.result, bless, wrong);
        }
    }
}

/// `<!-- picture: SCENARIO CHART -->` comes before each.
fn pictures(text: &str) -> Vec<(String, String)> {
    let found = text.lines().filter_map(|line| line.strip_prefix("<!-- picture: ")?.strip_suffix(" -->"));
    found.filter_map(|words| words.split_once(' ')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

/// The file of a chart's picture: `scenarios/modem/modem.toml latency-upload` is
/// `img/modem-modem-latency-upload.svg`.
fn picture(scenario: &str, chart: &str, result: &Experiment, bless: bool, wrong: &mut String) {
    let stem = scenario.trim_start_matches("scenarios/").trim_end_matches(".toml").replace('/', "-");
    let path = root().join(format!("docs/guide/img/{stem}-{chart}.svg"));
    let charts = charts(result);
    let Some((_, drawing)) = charts.iter().find(|(name, _)| name == chart) else {
        let names: Vec<&str> = charts.iter().map(|(name, _)| name.as_str()).collect();
        let _ = writeln!(wrong, "{scenario} has no chart {chart}; it has {}", names.join(", "));
        return;
    };
    let text = file(drawing, WIDTH, Theme::Light);
    if bless {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a picture");
    } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
        let _ = writeln!(wrong, "{} is not the picture of {scenario}", path.display());
    }
}

/// How wide pictures are, as `--svg` writes them.
const WIDTH: f64 = 760.0;

/// The table of all published figures.
fn published(done: &BTreeMap<String, Done>) -> String {
    let mut table =
        String::from("| | figure | published | simulated | accepted | result |\n|---|---|---|---|---|---|\n");
    for (scenario, Done { result, .. }) in done.iter().filter(|(name, _)| !name.contains("/validation/")) {
        for c in &result.comparisons {
            let ComparisonText { published, found, bounds, .. } = experiment::comparison_text(c);
            let verdict = match (&c.why, c.gated, c.held) {
                (Some(why), false, _) => format!("reported: {why}"),
                (None, false, _) => "reported".to_owned(),
                (Some(why), true, true) => format!("within; {why}"),
                (None, true, true) => "within".to_owned(),
                (_, true, false) => "**outside**".to_owned(),
            };
            let bounds = if c.gated { bounds } else { String::new() };
            let _ = writeln!(
                table,
                "| [{}](../../{scenario}) | {} | {published} | {found} | {bounds} | {verdict} |",
                c.id, c.what
            );
        }
    }
    table
}

/// The same seed gives the same bytes, and another one others.
#[test]
fn a_run_repeats_to_the_byte() {
    if skip() {
        return;
    }
    let result = |seed: &str| {
        let words = ["sim", "scenarios/home-table/call.toml", "--duration", "10s", "--seed", seed, "--json"];
        Command::new(TIDEGATE).args(words).current_dir(root()).output().expect("tidegate runs").stdout
    };
    let (once, again, other) = (result("5"), result("5"), result("6"));
    assert!(once.len() > 10_000 && once == again && once != other);
}

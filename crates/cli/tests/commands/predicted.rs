//! Predictions of the simulator, compared with measurements on real hosts: `docs/predicted-vs-measured.md`.
//!
//! The measured figures are kept in `data/lab-figures.tsv`; the predictions are made again. `TIDEGATE_LAB=DIR
//! TIDEGATE_BLESS=1 cargo test -p tidegate --test commands predicted::` takes new measurements from the
//! results in DIR (`ARM-SCENARIO.json`, as `cargo xtask virtual-lab` and `tidegate lab FILE -o` write them)
//! and writes the page.

use crate::common;

use common::TIDEGATE;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_analysis::experiment::{from_json, in_words};
use tidegate_measure::experiment::{Experiment, figures, group_of};

/// The scenarios, and the options beside the file.
const SCENARIOS: [(&str, &str, &[&str]); 7] = [
    ("home-gateway/office", "The home gateway", &["--duration", "30s"]),
    ("modem/modem", "The modem of 128 kbit/s", &[]),
    ("four-experiments/experiments", "The four latency experiments", &["--repeats", "1"]),
    ("home-table/one-host", "The six-row table: one host", &["--repeats", "1"]),
    ("home-table/scp", "The six-row table: copies", &["--repeats", "1"]),
    ("home-table/web", "The six-row table: the web", &["--repeats", "1", "--duration", "120s"]),
    ("home-table/call", "The six-row table: a call", &["--repeats", "1"]),
];

/// How measurements were made: in virtual time, in real time.
const ARMS: [(&str, &str); 2] = [("virtual", "measured, virtual clock"), ("real", "measured, real clock")];

const MEASURED: &str = "data/lab-figures.tsv";
const MISSES: &str = "data/lab-misses.txt";

/// A figure's place: arm, scenario, policy, load, figure.
type Key = [String; 5];

/// A figure: middle, least and most of its repeats, and its unit.
#[derive(Clone, Debug, PartialEq)]
struct Figure {
    median: f64,
    least: f64,
    most: f64,
    unit: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// All that is compared: of probes p50, p95, p99 and loss, of transfers the rate; of several alike the sum:
/// which of them is ahead is chance.
fn is_compared(figure: &str) -> bool {
    if figure.strip_suffix(".rate").is_some_and(|id| group_of(id) != id) {
        return false;
    }
    [".median", ".p95", ".p99", ".loss", ".rate"].iter().any(|end| figure.ends_with(end))
        && !figure.starts_with("class ")
        && !figure.starts_with("queue ")
        && !figure.starts_with("link ")
}

fn figures_of(arm: &str, scenario: &str, of: &Experiment) -> BTreeMap<Key, Figure> {
    let mut all = BTreeMap::new();
    for case in of.cases() {
        let Some(run) = case.runs.first() else { continue };
        for name in figures(run).into_iter().filter(|name| is_compared(name)) {
            let Ok(spread) = case.figure(&name) else { continue };
            let key = [arm, scenario, &case.policy.name, &case.load.name, &name].map(str::to_owned);
            let (median, least, most) = (spread.median, spread.least, spread.most);
            all.insert(key, Figure { median, least, most, unit: spread.unit.to_owned() });
        }
    }
    all
}

fn read_measured() -> BTreeMap<Key, Figure> {
    let text = fs::read_to_string(data(MEASURED)).unwrap_or_default();
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [arm, scenario, policy, load, figure, unit, median, least, most] = fields[..] else {
            panic!("nine fields: {line}")
        };
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let key = [arm, scenario, policy, load, figure].map(str::to_owned);
        let found = Figure {
            median: number(median),
            least: number(least),
            most: number(most),
            unit: unit.to_owned(),
        };
        all.insert(key, found);
    }
    all
}

fn write_measured(all: &BTreeMap<Key, Figure>) {
    let mut text = String::from("# arm\tscenario\tpolicy\tload\tfigure\tunit\tmedian\tleast\tmost\n");
    for (key, of) in all {
        let _ = writeln!(
            text,
            "{}\t{}\t{:.9}\t{:.9}\t{:.9}",
            key.join("\t"),
            of.unit,
            of.median,
            of.least,
            of.most
        );
    }
    fs::write(data(MEASURED), text).expect("a file");
}

fn predicted(scenario: &str, words: &[&str]) -> BTreeMap<Key, Figure> {
    let file = root().join("scenarios").join(scenario).with_extension("toml");
    let run =
        Command::new(TIDEGATE).arg("sim").arg(file).args(words).arg("--json").output().expect("it starts");
    let text = String::from_utf8(run.stdout).expect("text");
    figures_of("", scenario, &from_json(&text).unwrap_or_else(|error| panic!("{scenario}: {error:?}")))
}

/// How far a prediction may be off: 10 % or a millisecond; shares and losses 3 points.
fn is_within(predicted: &Figure, measured: &Figure) -> bool {
    let off = (predicted.median - measured.median).abs();
    let absolute = if measured.unit == "s" { 0.001 } else { 0.03 };
    off <= 0.1 * measured.median.abs() || measured.unit != "bit/s" && off <= absolute
}

/// Why some figures are off: `SCENARIO POLICY/LOAD FIGURE: reason`, each word may be `*`.
fn read_misses() -> Vec<([String; 4], String)> {
    let text = fs::read_to_string(data(MISSES)).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let one = |line: &str| {
        let (place, reason) = line.split_once(": ").expect("PLACE: REASON");
        let mut words = place.split_whitespace();
        let mut word = || words.next().expect("SCENARIO POLICY/LOAD FIGURE").to_owned();
        let (scenario, case, figure) = (word(), word(), word());
        let (policy, load) = case.split_once('/').expect("POLICY/LOAD");
        ([scenario, policy.to_owned(), load.to_owned(), figure], reason.to_owned())
    };
    lines.map(one).collect()
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        Some((front, back)) => {
            text.len() >= front.len() + back.len() && text.starts_with(front) && text.ends_with(back)
        }
        None => pattern == text,
    }
}

/// Takes in the results of a directory.
fn take_in(dir: &Path, measured: &mut BTreeMap<Key, Figure>) {
    for (scenario, ..) in SCENARIOS {
        for (arm, _) in ARMS {
            let name = scenario.rsplit('/').next().unwrap_or(scenario);
            let Ok(text) = fs::read_to_string(dir.join(format!("{arm}-{name}.json"))) else { continue };
            let mut result = from_json(&text).unwrap_or_else(|error| panic!("{arm}-{name}: {error:?}"));
            result.runs.retain(|run| run.lateness.is_none_or(|late| late.is_believed()));
            measured.retain(|[of, what, ..], _| of != arm || what != scenario);
            measured.extend(figures_of(arm, scenario, &result));
        }
    }
}

#[test]
fn predictions_are_compared_with_measurements() {
    let bless = std::env::var_os("TIDEGATE_BLESS").is_some();
    let mut measured = read_measured();
    if let Some(dir) = std::env::var_os("TIDEGATE_LAB") {
        take_in(Path::new(&dir), &mut measured);
        write_measured(&measured);
    }
    let misses = read_misses();
    let mut used = vec![false; misses.len()];
    let (mut page, mut unexplained) = (String::new(), String::new());
    let mut counts = BTreeMap::from([("virtual", (0, 0)), ("real", (0, 0))]);
    for (scenario, title, words) in SCENARIOS {
        if !measured.keys().any(|[_, of, ..]| of == scenario) {
            continue;
        }
        let predictions = predicted(scenario, words);
        let _ = writeln!(page, "\n## {title}\n\n`tidegate sim scenarios/{scenario}.toml{}`\n", stdout(words));
        let _ = writeln!(
            page,
            "| policy | load | figure | predicted | {} | {} | |\n|---|---|---|---:|---:|---:|---|",
            ARMS[0].1, ARMS[1].1
        );
        for ([_, _, policy, load, figure], prediction) in &predictions {
            let mut cells = String::new();
            let mut remark = String::new();
            let mut known = false;
            for (arm, _) in ARMS {
                let key = [arm, scenario, policy, load, figure].map(str::to_owned);
                let Some(found) = measured.get(&key) else {
                    cells.push_str(" – |");
                    continue;
                };
                known = true;
                let count = counts.get_mut(arm).expect("an arm");
                count.1 += 1;
                let (unit, within) = (prediction_unit(found), is_within(prediction, found));
                let shown = with_range(figure, found, unit);
                let _ = write!(cells, " {} |", if within { shown } else { format!("**{shown}**") });
                if within {
                    count.0 += 1;
                    continue;
                }
                let place = [scenario, policy, load, figure];
                let why = misses
                    .iter()
                    .position(|(of, _)| of.iter().zip(place).all(|(pattern, text)| fits(pattern, text)));
                match why {
                    Some(why) => {
                        used[why] = true;
                        remark = format!("[{}](#deviations)", why + 1);
                    }
                    None if arm == "virtual" => {
                        let _ = writeln!(
                            unexplained,
                            "{scenario} {policy}/{load} {figure}: predicted {}, found {}",
                            prediction.median, found.median
                        );
                    }
                    None => remark = "real clock only".to_owned(),
                }
            }
            if known {
                let of = in_words(figure, prediction.median, prediction_unit(prediction));
                let _ = writeln!(page, "| {policy} | {load} | {figure} | {of} |{cells} {remark} |");
            }
        }
    }
    let page = whole(&counts, &page, &misses);
    let path = root().join("docs/predicted-vs-measured.md");
    if bless {
        fs::write(&path, &page).expect("a page");
    }
    assert!(unexplained.is_empty(), "a prediction is off, and {MISSES} does not say why:\n{unexplained}");
    let idle: Vec<_> =
        misses.iter().zip(&used).filter(|(_, used)| !**used).map(|((place, _), _)| place).collect();
    assert!(bless || idle.is_empty(), "{MISSES} explains what is no miss: {idle:?}");
    assert!(
        bless || fs::read_to_string(&path).expect("the page") == page,
        "docs/predicted-vs-measured.md is not true any more: bless it"
    );
    assert!(counts["virtual"].1 > 50, "something is compared");
}

fn stdout(words: &[&str]) -> String {
    words.iter().map(|word| format!(" {word}")).collect()
}

/// The middle of the repeats, and from where to where they go if there are several.
fn with_range(figure: &str, of: &Figure, unit: &'static str) -> String {
    let [median, least, most] = [of.median, of.least, of.most].map(|value| in_words(figure, value, unit));
    if least == most { median } else { format!("{median} ({least} to {most})") }
}

fn prediction_unit(of: &Figure) -> &'static str {
    ["s", "bit/s", "bytes"].into_iter().find(|unit| *unit == of.unit).unwrap_or("")
}

fn whole(counts: &BTreeMap<&str, (usize, usize)>, tables: &str, misses: &[([String; 4], String)]) -> String {
    let [virtually, really] = ["virtual", "real"].map(|arm| counts[arm]);
    let mut page = format!(
        "# Predicted and measured\n\n\
         How close does the simulator come to hosts with real Linux TCP? `tidegate sim` predicts,\n\
         `tidegate lab` measures the same scenario, links and qdiscs with real TCP, sockets and pings:\n\n    \
         tidegate sim scenarios/modem/modem.toml\n    \
         sudo tidegate lab scenarios/modem/modem.toml\n\n\
         Two series were measured. *Virtual clock*: a virtual machine whose clock stops while anything\n\
         runs (Linux 6.1; no noise, the same bytes each time). *Real clock*: a shared virtual machine of\n\
         two processors with other work on it (Linux 6.18, 2026-11-22, `--realtime`); runs that reported\n\
         themselves unreliable are excluded, and of several runs the median and the range are given.\n\n\
         Controllers of a shaper's rate on lines that vary, predicted by `tidegate gym` and measured, are in\n\
         [autorate.md](autorate.md#the-gyms-predictions-and-three-lines).\n\n\
         A figure is within the target if it deviates by at most 10 % or 1 ms; a share or a loss ratio by 3\n\
         percentage points. Others are in **bold**, with the reason under [Deviations](#deviations).\n\n\
         | | within | of |\n|---|---:|---:|\n\
         | measured, virtual clock | {} | {} |\n| measured, real clock | {} | {} |\n",
        virtually.0, virtually.1, really.0, really.1
    );
    page.push_str(tables);
    page.push_str("\n## Deviations\n\n");
    page.push_str("Each reason is for all figures that refer to it. Its figures are from these runs.\n\n");
    for (number, (_, reason)) in misses.iter().enumerate() {
        let _ = writeln!(page, "{}. {reason}", number + 1);
    }
    page
}

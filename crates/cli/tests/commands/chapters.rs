//! The chapters about disciplines: their tables and pictures are what the parser's tables, the engine and the
//! simulator give.
//!
//! A chapter `docs/disciplines/KIND.md` has two generated parts, between `<!-- generated: NAME -->` and `<!--
//! end -->`: the parameters, and figures of the standard load; and two pictures in `docs/img/disciplines`:
//! packets through a small queue (`docs/disciplines/packets/KIND`, with what a real kernel answered there),
//! and a call under the standard load with `examples/disciplines/KIND.sh`. `TIDEGATE_BLESS=1 cargo test -p
//! tidegate --test commands chapters::` writes them again.

use crate::common;

use common::{Place, TIDEGATE, skip};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_policy::Kind;
use tidegate_policy::spec::{KindSpec, OptionSpec, REFUSED, UnsupportedKind};

/// The standard load: a wire of 10 Mbit/s that is the bottleneck itself, two uploads or a flood of UDP, a
/// call and pings beside them.
const STANDARD: &str = "--up 10mbit --down 10mbit --cable 10mbit --load up,udp_flood --probes ping,voip";

/// Kinds younger than the kernel that answers.
const UNANSWERED: &[Kind] = &[Kind::DualPi2];

/// Kinds that the devices of pictures and of the standard load refuse, because they have one transmit queue.
const REFUSED_THERE: &[Kind] = &[Kind::Multiq, Kind::Mq];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares what is written down with what it should be, or writes it down.
struct Ledger {
    bless: bool,
    wrong: Vec<String>,
}

impl Ledger {
    fn file(&mut self, path: &Path, wanted: &str) {
        if fs::read_to_string(path).unwrap_or_default() == wanted {
            return;
        }
        if self.bless {
            fs::create_dir_all(path.parent().expect("a folder")).expect("docs can be written");
            fs::write(path, wanted).expect("docs can be written");
        } else {
            self.wrong.push(format!("{} is not what is made today", path.display()));
        }
    }

    /// The part of a paper between its markers.
    fn part(&mut self, paper: &Path, name: &str, wanted: &str) {
        let text = fs::read_to_string(paper).unwrap_or_default();
        let begin = format!("<!-- generated: {name} -->\n");
        let (Some((before, rest)), end) = (text.split_once(&begin), "<!-- end -->") else {
            self.wrong.push(format!("{} has no part `{}`", paper.display(), begin.trim()));
            return;
        };
        let after = rest.split_once(end).map_or("", |(_, after)| after);
        self.file(paper, &format!("{before}{begin}{wanted}{end}{after}"));
    }
}

fn tidegate(words: &str, place: &Path) -> String {
    let output = Command::new(TIDEGATE)
        .args(words.split_whitespace())
        .current_dir(place)
        .output()
        .expect("tidegate runs");
    assert!(output.status.success(), "tidegate {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn parameters(kind: Kind) -> String {
    let spec = KindSpec::find(kind.name()).expect("every kind has a table");
    let mut out = String::new();
    for (title, options) in [("The qdisc", spec.qdisc), ("A class", spec.class)] {
        match options {
            None => {}
            Some([]) => out.push_str(&format!("{title} takes no parameters.\n\n")),
            Some(options) => {
                out.push_str(&format!("{title}:\n\n| parameter | default | meaning |\n|---|---|---|\n"));
                options.iter().for_each(|option| out.push_str(&parameter(option)));
                out.push('\n');
            }
        }
    }
    if out.is_empty() { "It takes no parameters.\n".into() } else { out.trim_end().to_owned() + "\n" }
}

fn parameter(option: &OptionSpec) -> String {
    let names: Vec<String> =
        [option.key].iter().chain(option.aliases).map(|name| format!("`{name}`")).collect();
    let takes = option.value.words().replace('|', "\\|");
    let takes = if takes.is_empty() { takes } else { format!(" {takes}") };
    let default = if option.default == "this" { "yes" } else { option.default };
    format!("| {}{takes} | {default} | {} |\n", names.join(" or "), option.doc)
}

/// The kinds that are not built.
fn refused_kinds() -> String {
    let row = |kind: &UnsupportedKind| format!("| `{}` | {} | {} |\n", kind.name, kind.why, kind.instead);
    let rows: String = REFUSED.iter().map(row).collect();
    format!("| kind | why | instead |\n|---|---|---|\n{rows}")
}

/// What a load did to people, of one run of a result.
struct Figures {
    ping: Answers,
    call: Answers,
    mbit: f64,
}

struct Answers {
    median: f64,
    p95: f64,
    lost: f64,
}

fn figures(run: &Value) -> Figures {
    let probe = |id: &str| {
        let probes = run["probes"].as_array().expect("probes");
        let probe = probes.iter().find(|probe| probe["id"] == id).expect("the probe");
        answers(probe["replies"].as_array().expect("answers"))
    };
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let seconds = (number(&run["window"][1]) - number(&run["window"][0])) / 1e9;
    let flows = run["flows"].as_array().expect("flows");
    let bytes: f64 = flows.iter().filter(|flow| flow["up"] == true).map(|flow| number(&flow["bytes"])).sum();
    Figures { ping: probe("ping"), call: probe("voip-up"), mbit: bytes * 8.0 / seconds / 1e6 }
}

fn answers(all: &[Value]) -> Answers {
    let mut ms: Vec<f64> = all.iter().filter_map(|answer| answer[1].as_f64()).map(|ns| ns / 1e6).collect();
    ms.sort_by(f64::total_cmp);
    let at = |share: f64| {
        ms.get(((ms.len() as f64 * share).ceil() as usize).max(1) - 1).copied().unwrap_or(f64::NAN)
    };
    let lost = (all.len() - ms.len()) as f64 / all.len().max(1) as f64;
    Answers { median: at(0.5), p95: at(0.95), lost }
}

impl Figures {
    fn cells(&self) -> String {
        let ms = |value: f64| match value {
            value if value.is_nan() => "none came".to_owned(),
            value if value < 100.0 => format!("{value:.1} ms"),
            value => format!("{value:.0} ms"),
        };
        let Figures { ping, call, mbit } = self;
        let cells = [
            ms(ping.median),
            ms(ping.p95),
            ms(call.p95),
            format!("{:.1} %", call.lost * 100.0),
            format!("{mbit:.2} Mbit/s"),
        ];
        cells.join(" | ")
    }
}

const HEAD: &str = "ping, median | ping, 95th percentile | call, 95th percentile | call, lost | carried |\n";

/// The load's runs, without and with the policy.
fn load_table(runs: &[(String, Figures, Figures)]) -> String {
    let mut out = format!("| load | | {HEAD}|---|---|--:|--:|--:|--:|--:|\n");
    for (load, without, with) in runs {
        out.push_str(&format!("| {load} | without | {} |\n", without.cells()));
        out.push_str(&format!("| | with | {} |\n", with.cells()));
    }
    out
}

fn standard_load(kind: Kind, place: &Path, ledger: &mut Ledger) -> Vec<(String, Figures, Figures)> {
    let (name, picture) = (kind.name(), "load.svg");
    let script = format!("examples/disciplines/{name}.sh");
    let json = tidegate(&format!("try {script} {STANDARD} --json --log --report {picture}"), place);
    let drawn = fs::read_to_string(place.join(picture)).expect("a picture");
    ledger.file(&root().join(format!("docs/img/disciplines/{name}-load.svg")), &drawn);
    let document: Value = serde_json::from_str(&json).expect("JSON");
    let runs = document["runs"].as_array().expect("runs");
    let titles: [(&str, &str); 2] = [("up", "two uploads"), ("udp_flood", "a flood of UDP")];
    titles
        .map(|(load, title)| {
            let run = |policy: bool| {
                let run = runs.iter().find(|run| run["load"] == load && run["policy"] == policy);
                figures(run.unwrap_or_else(|| panic!("{name}: no run of {load}")))
            };
            (title.to_owned(), run(false), run(true))
        })
        .into()
}

/// The tokens of a class of HTB every 100 ms, from an experiment that a real kernel has answered.
fn htb_tokens() -> String {
    let shown = fs::read_to_string(root().join("docs/disciplines/experiments/htb-tokens/snap.txt"))
        .expect("a listing");
    let mut out = String::from(
        "| at | tokens | ceiling's tokens | mode | sent | on its own rate | borrowed \
        |\n|--:|--:|--:|---|--:|--:|--:|\n",
    );
    let number = |text: &str, name: &str| -> i64 {
        let after = text.split(name).nth(1).and_then(|rest| rest.split_whitespace().next());
        after.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
    };
    for (at, class) in shown.split("class htb ").skip(1).enumerate() {
        let (tokens, ceiling) = (number(class, " tokens: "), number(class, "ctokens: "));
        let mode = match (tokens, ceiling) {
            (_, ..0) => "CANT_SEND",
            (..0, _) => "MAY_BORROW",
            _ => "CAN_SEND",
        };
        let bytes = |ticks: i64, bits_per_s: f64| (ticks as f64 * 64e-9 * bits_per_s / 8.0).round();
        out += &format!(
            "| {} ms | {} B | {} B | {mode} | {} packets | {} | {} |\n",
            100 * at,
            bytes(tokens, 200e3),
            bytes(ceiling, 400e3),
            number(class, " bytes "),
            number(class, "lended: "),
            number(class, "borrowed: "),
        );
    }
    out
}

#[test]
fn chapters_are_what_engine_and_simulator_give() {
    if skip() {
        return;
    }
    let place = Place::new("chapters");
    for folder in ["examples", "docs"] {
        std::os::unix::fs::symlink(root().join(folder), place.0.join(folder)).expect("a link");
    }
    let mut ledger = Ledger { bless: std::env::var_os("TIDEGATE_BLESS").is_some(), wrong: Vec::new() };
    let mut index = [String::new(), String::new()];
    for &kind in Kind::ALL {
        let name = kind.name();
        let paper = root().join(format!("docs/disciplines/{name}.md"));
        ledger.part(&paper, "parameters", &parameters(kind));
        if REFUSED_THERE.contains(&kind) {
            continue;
        }
        let folder = format!("docs/disciplines/packets/{name}");
        tidegate(&format!("replay {folder} --out replayed --picture packets.svg"), &place.0);
        let answered: &[&str] = if UNANSWERED.contains(&kind) { &[] } else { &["egress.csv", "stats.txt"] };
        for file in answered {
            let read = |folder: &str| fs::read_to_string(place.0.join(folder).join(file)).expect("a result");
            assert_eq!(read("replayed"), read(&folder), "{folder}/{file} is not what the kernel answered");
        }
        let drawn = fs::read_to_string(place.0.join("packets.svg")).expect("a picture");
        ledger.file(&root().join(format!("docs/img/disciplines/{name}.svg")), &drawn);
        let runs = standard_load(kind, &place.0, &mut ledger);
        ledger.part(&paper, "load", &load_table(&runs));
        for (rows, (_, _, with)) in index.iter_mut().zip(&runs) {
            rows.push_str(&format!("| [{name}]({name}.md) | {} |\n", with.cells()));
        }
    }
    ledger.part(&root().join("docs/disciplines/htb.md"), "tokens", &htb_tokens());
    let head = format!("| | {HEAD}|---|--:|--:|--:|--:|--:|\n");
    let paper = root().join("docs/disciplines/README.md");
    for (name, rows) in ["uploads", "flood"].iter().zip(index) {
        ledger.part(&paper, name, &format!("{head}{rows}"));
    }
    ledger.part(&paper, "refused", &refused_kinds());
    assert!(ledger.wrong.is_empty(), "{}", ledger.wrong.join("\n"));
    println!(
        "fidelity: documentation | the packets drawn in the qdisc chapters | exact | {} recordings identical",
        Kind::ALL.len() - UNANSWERED.len() - REFUSED_THERE.len()
    );
}

//! `tidegate tune`: values that are better and keep the bounds, and true words where there are none.

use crate::common;

use common::{Place, TIDEGATE, schemas, skip};
use std::process::{Command, Output};

fn tidegate(place: &Place, words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).current_dir(&place.0).output().expect("tidegate runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A shaper whose rate decides: above the line's the queue is in the modem, below it throughput is lost.
fn filled(name: &str) -> Place {
    let place = Place::new(name);
    place.file(
        "t.toml",
        "duration = '2s'\nwarm-up = '1s'\n[values]\nrate = '12mbit'\ndrop = '0%'\n[home]\nup = '10mbit'\n\
        down = '50mbit'\n[policies.codel]\ngateway = [\n\
        'tc qdisc add dev eth0 root handle 1: tbf rate ${rate} burst 10k limit 1M',\n\
        'tc qdisc add dev eth0 parent 1: codel']\n\
        [policies.netem]\ngateway = 'tc qdisc add dev eth0 root netem loss ${drop}'\n\
        [loads.one]\ntraffic = [{ id = 'upload', tcp = 'a -> server' }]\n\
        [loads.two]\ntraffic = [{ tcp = 'a -> server', count = 2 }]\n[loads.idle]\n\
        [[traffic]]\nping = 'b -> server'\nevery = '20ms'\n",
    );
    place
}

#[test]
fn better_values_are_found_and_checked() {
    if skip() {
        return;
    }
    let place = filled("tune");
    let words = [
        "tune",
        "t.toml",
        "--set",
        "rate=2..12mbit",
        "--objective",
        "p95 ping",
        "--subject",
        "upload >= 80%",
        "--policy",
        "codel",
        "--load",
        "one",
        "--tries",
        "14",
    ];
    let json = tidegate(&place, &[&words[..], &["--json", "-o", "f.svg", "-o", "f.pdf"]].concat());
    assert_eq!(json.status.code(), Some(0), "{}", text(&json.stderr));
    let document = schemas::document(&json.stdout);
    let tried = document["tried"].as_array().expect("points");
    assert_eq!(tried.len(), 14);
    let best = &tried[document["best"][0].as_u64().expect("a best") as usize];
    let objective = |point: &serde_json::Value| point["objective"].as_f64().expect("a value");
    let limit = document["bounds"][0]["limit"].as_f64().expect("a limit");
    assert!(objective(best) < objective(&document["own"]) && best["feasible"] == true, "{document}");
    assert!(best["bounds"][0].as_f64().is_some_and(|rate| rate >= limit), "{document}");
    let best_of_all =
        tried.iter().filter(|one| one["feasible"] == true).map(objective).fold(f64::MAX, f64::min);
    assert_eq!(objective(best), best_of_all);
    // Nothing on the front is beaten in both.
    let place_of = |at: &serde_json::Value| {
        let point = &tried[at.as_u64().expect("a place") as usize];
        (objective(point), point["bounds"][0].as_f64().expect("a rate"))
    };
    let front: Vec<(f64, f64)> =
        document["front"].as_array().expect("a front").iter().map(place_of).collect();
    for one in &front {
        let beats = |point: &serde_json::Value| {
            let rate = point["bounds"][0].as_f64().expect("a rate");
            objective(point) <= one.0 && rate >= one.1 && (objective(point), rate) != *one
        };
        assert!(!tried.iter().any(beats), "{one:?}");
    }
    let checks = document["checks"].as_array().expect("checks");
    let with: Vec<(&str, u64, u64)> = checks
        .iter()
        .map(|one| {
            let number = |name: &str| one[name].as_u64().unwrap_or_default();
            (one["load"].as_str().unwrap_or_default(), number("seed"), number("repeats"))
        })
        .collect();
    assert_eq!(with, [("one", 2, 5), ("two", 2, 5)]);
    // The interval of the difference, below 0: the best is better there, and has that for the reader.
    let high = checks[0]["differences"][0][1].as_f64().expect("a difference");
    assert!(
        checks[0]["differences"][0][0].as_f64().is_some_and(|low| low <= high && high < 0.0),
        "{document}"
    );
    assert_eq!(document["other_loads"], serde_json::json!(["idle"]));
    for (file, begin) in [("f.svg", "<svg"), ("f.pdf", "%PDF-")] {
        let bytes = std::fs::read(place.0.join(file)).expect("a drawing");
        assert!(text(&bytes).starts_with(begin), "{file}");
    }
    let shown = tidegate(&place, &words);
    let out = text(&shown.stdout);
    assert!(out.contains("14 points tried, policy codel, load one, each with the seed 1\n"), "{out}");
    assert!(
        out.contains("With the seeds 2 to 6 that the search did not use: the best has ping.p95 ")
            && out.contains(": better (the difference, with 95 % confidence: "),
        "{out}"
    );
    assert!(
        out.contains("With the load two and the seeds 2 to 6: ")
            && out.contains("The load idle does not measure"),
        "{out}"
    );
    let set = best["set"]["values.rate"].as_str().expect("a value");
    let again = format!("Use it: tidegate sim t.toml --set values.rate={set} --policy codel --load one\n");
    assert!(out.ends_with(&again), "{out}");
    // The command has what the search had.
    let more = ["--repeats", "2", "-d", "1500ms", "--seed", "7", "--private"];
    let out = text(&tidegate(&place, &[&words[..12], &["--tries", "4"], &more].concat()).stdout);
    let again = " --policy codel --load one --repeats 2 --duration 1500ms --seed 7 --private\n";
    assert!(out.ends_with(again), "{out}");
    assert_eq!(tidegate(&place, &[&words[..], &["--json"]].concat()).stdout, json.stdout, "the same again");
}

#[test]
fn what_is_not_found_is_said() {
    if skip() {
        return;
    }
    let place = filled("tune-none");
    let of = |words: &[&str]| {
        let output = tidegate(&place, &[&["tune", "t.toml", "--tries", "4"], words].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let ping = ["--objective", "ping.p95", "--policy", "codel", "--load", "one"];
    let (code, out, _) =
        of(&[&ping[..], &["--set", "rate=2..5mbit", "--subject", "upload.rate >= 9mbit"]].concat());
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("No point keeps all bounds\nThe nearest: upload.rate is "), "{out}");
    assert!(!out.contains("Use it"), "{out}");
    // On an idle line the rate decides nothing.
    let (code, out, _) =
        of(&["--objective", "ping.p95", "--policy", "codel", "--load", "idle", "--set", "rate=20..50mbit"]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("No point is better than the scenario's own values\n"), "{out}");
    assert!(out.contains("4 points are as good as the first"), "{out}");
    // What a machine refuses is the worst, and is counted.
    let lossy = ["--objective", "ping.p95", "--policy", "netem", "--load", "one", "--set"];
    let (code, out, _) = of(&[&lossy[..], &["drop=0..200%"]].concat());
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains(" could not be simulated, the first because: with values.drop="), "{out}");
    let (code, _, err) = of(&[&lossy[..], &["drop=120..200%"]].concat());
    assert!(code == Some(2) && err.contains("Illegal \"loss percent\""), "{err}");
    for (words, why) in [
        (
            &["--set", "rate=2..5mbit", "--objective", "ping.p95"][..],
            "choose with --policy (codel, netem) and --load (one, two, idle)",
        ),
        (
            &["--set", "rate=2mbit,3mbit", "--objective", "ping.p95", "--load", "one"],
            "values.rate has a list of 2 values: a search needs a range",
        ),
        (
            &["--set", "rate=2..5", "--objective", "ping.p95", "--load", "one"],
            "values.rate is 12mbit in the scenario, and the range 2..5 has no unit: write values.rate=2..5mbit",
        ),
        (
            &["--set", "rate=-5..50ms", "--objective", "ping.p95", "--load", "one"],
            "the range -5ms..50ms has another unit: write it in mbit",
        ),
        (
            &["--set", "rate=2..5mbit", "--objective", "ping.p9x", "--policy", "codel", "--load", "one"],
            "no figure is called `ping.p9x`",
        ),
        (
            &[
                "--set",
                "rate=2..5mbit",
                "--objective",
                "upload.fairness",
                "--policy",
                "codel",
                "--load",
                "one",
            ],
            "Write `min upload.fairness`",
        ),
        (
            &[
                "--set",
                "rate=2..5mbit",
                "--objective",
                "ping.p95",
                "--policy",
                "codel",
                "--load",
                "one",
                "--subject",
                "upload >= 3ms",
            ],
            "upload.rate has bit/s, its bound s",
        ),
        (
            &["--set", "rate=2..5mbit", "--objective", "ping.p95", "--subject", "upload"],
            "`upload` is no bound",
        ),
        (
            &["--set", "rtae=2..5mbit", "--objective", "ping.p95", "--policy", "codel", "--load", "one"],
            "rtae: the scenario has no value of this name; did you mean `rate`? Its table [values] has rate, drop",
        ),
        (&["--objective", "ping.p95"], "--set"),
    ] {
        let (code, out, err) = of(words);
        assert_eq!((code, err.contains(why)), (Some(2), true), "{words:?}\n{out}{err}");
    }
}

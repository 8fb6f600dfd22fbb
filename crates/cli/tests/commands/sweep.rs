//! `tidegate sweep` and `results`: rows that go on after a kill, parts that become one, and what is refused.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::process::{Command, Output};

fn tidegate(place: &Place, line: &str) -> Output {
    Command::new(TIDEGATE).args(line.split(' ')).current_dir(&place.0).output().expect("tidegate runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn filled(name: &str) -> Place {
    let place = Place::new(name);
    place.file(
        "s.toml",
        "duration = '1s'\nwarm-up = '1s'\n[values]\nrate = '2mbit'\n[home]\nup = '${rate}'\ndown = '9mbit'\n\
        [policies.none]\n[policies.fair]\ngateway = ['tc qdisc add dev eth0 root fq_codel']\n[[traffic]]\n\
        tcp = 'a -> server'\n[[traffic]]\nping = 'b -> server'\nevery = '50ms'\n\
        [sweep.set]\nrate = ['1mbit', '4mbit']\n",
    );
    place
}

#[test]
fn a_sweep_goes_on_and_its_parts_become_one() {
    if skip() {
        return;
    }
    let place = filled("sweep");
    let whole = tidegate(&place, "sweep s.toml --repeats 2 --figure ping.p95,upload.rate -o whole.csv");
    let shown = text(&whole.stdout);
    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole.stderr));
    assert!(shown.contains("8 of 8 runs") && shown.contains("values.rate"), "{shown}");
    let rows = std::fs::read_to_string(place.0.join("whole.csv")).expect("rows");
    assert_eq!(rows.lines().count(), 1 + 8 * 2);
    assert!(!place.0.join("whole.csv.journal").exists());
    // A journal of its first runs, the last of them cut off: as a kill leaves it.
    let (head, body) = rows.split_once('\n').expect("columns");
    let id = body.split(',').next().expect("an id");
    let first: Vec<&str> = body.lines().take(5).collect();
    let journal = format!(
        "# journal of sweep {id}\n{}\n{}\n# run 0\n{}\n{}\n# run 1\n{}\n",
        first[0], first[1], first[2], first[3], first[4]
    );
    std::fs::write(place.0.join("again.csv.journal"), journal).expect("a journal");
    let again = tidegate(&place, "sweep s.toml --repeats 2 --figure ping.p95,upload.rate -o again.csv");
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(std::fs::read_to_string(place.0.join("again.csv")).expect("rows"), rows);
    std::fs::write(place.0.join("again.csv.journal"), "# journal of sweep 0\n0,8\n").expect("a journal");
    let other = tidegate(&place, "sweep s.toml --repeats 2 --figure ping.p95,upload.rate -o again.csv");
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("is of another sweep"), "{}", text(&other.stderr));
    for part in ["1", "2"] {
        let line =
            format!("sweep s.toml --repeats 2 --figure ping.p95,upload.rate --shard {part}/2 -o {part}.csv");
        assert_eq!(tidegate(&place, &line).status.code(), Some(0));
    }
    let half = tidegate(&place, "results 2.csv");
    assert_eq!(half.status.code(), Some(3));
    assert!(
        text(&half.stderr).contains("4 of 8 runs are missing, the first is number 0"),
        "{}",
        text(&half.stderr)
    );
    let merged = tidegate(&place, "results 2.csv 1.csv 2.csv -o merged.csv --versus policy=none");
    assert_eq!(merged.status.code(), Some(0), "{}", text(&merged.stderr));
    assert!(text(&merged.stdout).contains("difference"), "{}", text(&merged.stdout));
    assert_eq!(std::fs::read_to_string(place.0.join("merged.csv")).expect("rows"), rows);
    assert!(head.ends_with("figure,value,unit,values.rate (bit/s)"), "{head}");
    for (plot, file, begin) in [
        ("rate,ping.p95", "p.svg", "<svg"),
        ("ping.p95,upload.rate", "p.pdf", "%PDF-"),
        ("policy,upload.rate", "p.png", "\u{fffd}PNG"),
    ] {
        let drawn = tidegate(&place, &format!("results whole.csv --plot {plot} -o {file}"));
        assert_eq!(drawn.status.code(), Some(0), "{}", text(&drawn.stderr));
        let bytes = std::fs::read(place.0.join(file)).expect("a drawing");
        assert!(text(&bytes).starts_with(begin), "{file}");
    }
    let nowhere = tidegate(&place, "results whole.csv --plot ping.p95");
    assert!(text(&nowhere.stderr).contains("needs both what to draw and where"), "{}", text(&nowhere.stderr));
    // Of more parts than runs some are empty.
    let empty =
        tidegate(&place, "sweep s.toml --repeats 2 --figure ping.p95,upload.rate --shard 9/9 -o 9.csv");
    assert_eq!(
        (empty.status.code(), text(&empty.stdout).lines().next()),
        (Some(0), Some("No run falls into this part: the sweep has 8 in all"))
    );
    let merged = tidegate(&place, "results 9.csv whole.csv -o merged.csv");
    assert_eq!(merged.status.code(), Some(0), "{}", text(&merged.stderr));
    assert_eq!(std::fs::read_to_string(place.0.join("merged.csv")).expect("rows"), rows);
    let nothing = tidegate(&place, "results 9.csv");
    assert_eq!(text(&nothing.stderr), "tidegate results: these files have no rows\n");
}

#[test]
fn what_cannot_be_varied_is_said_before_anything_runs() {
    if skip() {
        return;
    }
    let place = filled("sweep-wrong");
    let rows = [
        ("sweep s.toml --set rate=1..9", "needs the number of its values"),
        ("sweep s.toml --set hme.up=1mbit,2mbit", "did you mean `home`?"),
        ("sweep s.toml --set home.rtt=1x", "with values.rate=1mbit home.rtt=1x: s.toml:"),
        ("sweep s.toml --only down=1mbit", "`down` is not varied: there are values.rate"),
        ("sweep s.toml --policy nine", "unknown policy `nine`; known: none, fair"),
        ("results s.toml", "no rows of a sweep"),
        ("sweep s.toml --figure ping.p95s", "no figure is called `ping.p95s`: there are ping."),
    ];
    for (line, expected) in rows {
        let output = tidegate(&place, line);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.contains(expected)), (Some(2), true), "{line}\n{said}");
    }
}

/// The harm of a second transfer that joins: half of the rate, and the time until both have their shares.
#[test]
fn harm_and_convergence_are_figures_of_a_sweep() {
    if skip() {
        return;
    }
    let place = Place::new("sweep-harm");
    place.file(
        "h.toml",
        "duration = '16s'\nwarm-up = '1s'\nrepeats = 2\n[home]\nup = '10mbit'\ndown = '50mbit'\n[policies.none]\n\
        [loads.alone]\ntraffic = [{ id = 'flow-1', tcp = 'a -> server' }]\n\
        [loads.beside]\ntraffic = [{ id = 'flow-1', tcp = 'a -> server' },\n\
        { id = 'flow-2', tcp = 'b -> server', start = '2s' }]\n",
    );
    let done = tidegate(&place, "sweep h.toml -o h.csv");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let shown = tidegate(&place, "results h.csv --harm load=alone --figure flow-1.rate --json");
    let document = common::schemas::document(&shown.stdout);
    let rows = document["rows"].as_array().expect("rows");
    let harm: Vec<&serde_json::Value> = rows.iter().map(|row| &row["harm"]).collect();
    assert!(harm[0].is_null(), "alone there is none: {document}");
    let mean = harm[1]["mean"].as_f64().expect("a harm");
    assert!((0.3..0.7).contains(&mean) && harm[1]["pairs"] == 2, "{document}");
    let shown = text(&tidegate(&place, "results h.csv --harm load=alone --figure flow-1.rate").stdout);
    assert!(shown.contains("Harm: how much worse than alone") && shown.contains("  harm  "), "{shown}");
    let none = tidegate(&place, "results h.csv --harm load=alone --figure flow-1.share");
    assert!(text(&none.stderr).contains("no row has a harm"), "{}", text(&none.stderr));
    assert!(!text(&none.stdout).contains("Harm:"), "{}", text(&none.stdout));
    // A transfer alone joins no other, and has no such figure; the one that joins has.
    let rows = std::fs::read_to_string(place.0.join("h.csv")).expect("rows");
    let of = |load: &str, figure: &str| {
        let is = |row: &&str| row.contains(&format!(",{load},")) && row.contains(&format!(",{figure},"));
        rows.lines().find(is).and_then(|row| row.split(',').nth(9)).map(str::to_owned)
    };
    assert_eq!(
        (of("alone", "flow-1.convergence"), of("beside", "flow-1.convergence")),
        (None, Some("".into()))
    );
    let joined = of("beside", "flow.convergence");
    assert!(joined.is_some() && joined == of("beside", "flow-2.convergence"), "{rows}");
    let refused = tidegate(&place, "results h.csv --harm load=nobody");
    assert!(text(&refused.stderr).contains("no run has load = nobody"), "{}", text(&refused.stderr));
}

//! Charts and files where figures are unusual, and pictures that are not empty.

use crate::fixture::experiment;
use flate2::read::GzDecoder;
use resvg::tiny_skia::Pixmap;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Read;
use tidegate_analysis::experiment::{flent_files, from_flent};
use tidegate_measure::experiment::Experiment;
use tidegate_report::chart::{Drawn, LOOKS, Target, Theme, file, pingexp, png};
use tidegate_report::experiment::{charts, page};

fn target(name: &str, answers: Vec<(u64, Option<u64>)>) -> Target {
    Target { name: name.into(), answers }
}

#[test]
fn six_panels_of_unusual_answers() {
    const MS: u64 = 1_000_000;
    let asked = |took: fn(u64) -> Option<u64>| (0..400).map(|n| (n * 200 * MS, took(n))).collect::<Vec<_>>();
    let cases: [(&str, Vec<Target>, &[&str]); 5] = [
        ("all lost", vec![target("gone", asked(|_| None))], &["100.0 %", ">none<"]),
        ("below a bin", vec![target("near", asked(|n| Some(300_000 + n)))], &["300 µs", "(2 ms bins)", "0.0 %"]),
        ("one lost, one not", vec![target("a", asked(|_| None)), target("b", asked(|_| Some(MS)))], &["1.00 ms"]),
        ("very long", vec![target("far", asked(|n| Some(n * 50 * MS)))], &["(118 ms bins)"]),
        ("nobody", vec![], &["Latency over time"]),
    ];
    for (name, targets, expected) in cases {
        let drawn = file(&pingexp(name, "", &targets, Drawn::Dots), 760.0, Theme::Light);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{name}");
        for words in expected {
            assert!(drawn.contains(words), "{name}: {words}\n{drawn}");
        }
        png(&pingexp(name, "", &targets, Drawn::Dots), 760.0, 1.0, Theme::Light).expect(name);
    }
    let many: Vec<Target> = (0..8).map(|n| target(&format!("t{n}"), asked(|_| Some(MS)))).collect();
    let drawn = file(&pingexp("many", "", &many, Drawn::Lines), 760.0, Theme::Light);
    assert!(drawn.contains("not drawn: t6, t7") && LOOKS == 6, "those left out are told");
}

#[test]
fn pictures_are_not_empty() {
    let charts = charts(&experiment());
    for name in ["upload-dest1-time", "topology", "both-none-pingexp"] {
        let drawing = &charts.iter().find(|(known, _)| known == name).expect(name).1;
        let [light, dark] = [Theme::Light, Theme::Dark].map(|theme| {
            let picture = png(drawing, 760.0, 2.0, theme).expect(name);
            Pixmap::decode_png(&picture).expect("a PNG")
        });
        let colours = |picture: &Pixmap| {
            picture.pixels().iter().map(|p| (p.red(), p.green(), p.blue())).collect::<BTreeSet<_>>().len()
        };
        assert!(colours(&light) > 20 && colours(&dark) > 20, "{name}");
        let corner = |picture: &Pixmap| picture.pixel(3, 3).map(|p| p.red());
        assert_eq!((corner(&light), corner(&dark)), (Some(0xfd), Some(0x15)), "{name}");
    }
    // Words are there: where the title stands, something is as dark as ink.
    let (_, drawing) = charts.iter().find(|(name, _)| name == "upload-dest1-time").expect("a chart");
    let picture = png(drawing, 760.0, 2.0, Theme::Light).expect("a picture");
    let picture = Pixmap::decode_png(&picture).expect("a PNG");
    let title = picture.pixels().iter().take(1520 * 44).filter(|p| p.red() < 0x40).count();
    assert!(title > 500, "{title} dark pixels in the title");
}

fn unpacked(bytes: &[u8]) -> Value {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn what_flent_reads_is_read_back() {
    let of = experiment();
    let files = flent_files(&of).expect("files");
    for (run, (name, packed)) in of.runs.iter().zip(&files) {
        let back = from_flent(packed).expect(name);
        let found = &back.runs[0];
        assert_eq!(found.transfers.len(), run.transfers.len(), "{name}");
        // Payload of each step is rounded to whole bytes; a window may begin within a step.
        for (transfer, back) in run.transfers.iter().filter(|one| one.id.starts_with("upload")).zip(&found.transfers) {
            let share = back.bytes as f64 / transfer.bytes.max(1) as f64;
            assert!((share - 1.0).abs() < 0.02, "{name}: {} {share}", transfer.id);
        }
        let (probe, back) = (&run.probes[0], &found.probes[0]);
        let (figures, back) = (probe.figures(run.window), back.figures(found.window));
        // What was lost after the last answer has no number to show it.
        assert!(figures.lost.abs_diff(back.lost) <= 1, "{name}: {} {}", figures.lost, back.lost);
        let medians = [figures.rtt.percentile(50.0), back.rtt.percentile(50.0)].map(Option::unwrap_or_default);
        assert!(medians[0].abs_diff(medians[1]) < 1_000_000, "{name}: {medians:?}");
    }
    let wrong = from_flent(b"no file of flent's").expect_err("it is none");
    assert!(wrong.to_string().contains("flent"), "{wrong}");
}

#[test]
fn flent_files_have_what_flent_asks_for() {
    let files = flent_files(&experiment()).expect("files");
    assert_eq!(files.len(), 27, "one per run");
    let of = |name: &str| unpacked(&files.iter().find(|(known, _)| known == name).expect(name).1);
    let both = of("both-none-0.flent.gz");
    let metadata = &both["metadata"];
    assert_eq!(
        [&both["version"], &metadata["NAME"], &metadata["LOCAL_HOST"], &metadata["HOST"], &metadata["LENGTH"]],
        [&Value::from(4), &"rrul_be".into(), &"a".into(), &"dest1".into(), &30.into()]
    );
    let steps = both["x_values"].as_array().expect("a list").len();
    let names: Vec<&String> = both["results"].as_object().expect("an object").keys().collect();
    let expected =
        ["TCP upload BE", "TCP upload BE2", "TCP download BE3", "TCP totals", "Ping (ms) ICMP", "Ping (ms) avg"];
    for name in expected {
        assert!(names.iter().any(|known| *known == name), "{name}: {names:?}");
        assert_eq!(both["results"][name].as_array().expect(name).len(), steps, "{name}");
    }
    let mean = |values: &Value| {
        let known: Vec<f64> = values.as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
        known.iter().sum::<f64>() / known.len() as f64
    };
    let carried = experiment()
        .runs
        .iter()
        .find(|run| run.policy == "none" && run.load == "both")
        .map(|run| run.transfers.iter().map(|transfer| transfer.rate(run.window) / 1e6).sum::<f64>());
    let found = mean(&both["results"]["TCP totals"]);
    assert!(carried.is_some_and(|carried| (found - carried).abs() < 0.005 * carried), "{found} {carried:?}");
    assert_eq!(of("upload-tbf-2.flent.gz")["metadata"]["NAME"], "tcp_nup");
    assert_eq!(of("empty-fair-0.flent.gz")["metadata"]["NAME"], "ping");
    let sample = &both["raw_values"]["TCP upload BE"][0];
    assert!(sample["tcp_cwnd"].is_number() && sample["tcp_rtt"].is_number(), "{sample}");
}

#[test]
fn nothing_at_all() {
    let empty = Experiment::default();
    assert!(charts(&empty).is_empty() && flent_files(&empty).expect("no files").is_empty());
    assert!(page(&empty).contains("tidegate"), "a page all the same");
}

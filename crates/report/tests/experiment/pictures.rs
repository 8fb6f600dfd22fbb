//! Charts and files where figures are unusual, and pictures that are not empty.

use crate::fixture::experiment::experiment;
use resvg::tiny_skia::Pixmap;
use std::collections::BTreeSet;
use tidegate_analysis::experiment::flent_files;
use tidegate_measure::experiment::Experiment;
use tidegate_report::chart::{LOOKS, PingRow, SeriesStyle, Theme, file, pingexp, png};
use tidegate_report::experiment::{charts, page};

fn target(name: &str, answers: Vec<(u64, Option<u64>)>) -> PingRow {
    PingRow { name: name.into(), answers }
}

#[test]
fn six_panels_of_unusual_answers() {
    const MS: u64 = 1_000_000;
    let samples =
        |took: fn(u64) -> Option<u64>| (0..400).map(|n| (n * 200 * MS, took(n))).collect::<Vec<_>>();
    let cases: [(&str, Vec<PingRow>, &[&str]); 5] = [
        ("all lost", vec![target("gone", samples(|_| None))], &["100.0 %", ">none<"]),
        (
            "below a bin",
            vec![target("near", samples(|n| Some(300_000 + n)))],
            &["300 µs", "(2 ms bins)", "0.0 %"],
        ),
        (
            "one lost, one not",
            vec![target("a", samples(|_| None)), target("b", samples(|_| Some(MS)))],
            &["1.00 ms"],
        ),
        ("very long", vec![target("far", samples(|n| Some(n * 50 * MS)))], &["(118 ms bins)"]),
        ("nobody", vec![], &["Latency over time"]),
    ];
    for (name, targets, expected) in cases {
        let drawn = file(&pingexp(name, "", &targets, SeriesStyle::Dots), 760.0, Theme::Light);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{name}");
        for words in expected {
            assert!(drawn.contains(words), "{name}: {words}\n{drawn}");
        }
        png(&pingexp(name, "", &targets, SeriesStyle::Dots), 760.0, 1.0, Theme::Light).expect(name);
    }
    let many: Vec<PingRow> = (0..8).map(|n| target(&format!("t{n}"), samples(|_| Some(MS)))).collect();
    let drawn = file(&pingexp("many", "", &many, SeriesStyle::Lines), 760.0, Theme::Light);
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
    // There is text: at the title's place something is as dark as ink.
    let (_, drawing) = charts.iter().find(|(name, _)| name == "upload-dest1-time").expect("a chart");
    let picture = png(drawing, 760.0, 2.0, Theme::Light).expect("a picture");
    let picture = Pixmap::decode_png(&picture).expect("a PNG");
    let title = picture.pixels().iter().take(1520 * 44).filter(|p| p.red() < 0x40).count();
    assert!(title > 500, "{title} dark pixels in the title");
}

#[test]
fn nothing_at_all() {
    let empty = Experiment::default();
    assert!(charts(&empty).is_empty() && flent_files(&empty).expect("no files").is_empty());
    assert!(page(&empty).contains("tidegate"), "a page all the same");
}

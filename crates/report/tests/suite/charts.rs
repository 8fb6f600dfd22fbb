//! Charts on their own: files that any viewer of SVG takes.

use tidegate_report::chart::{Axis, Band, ChartLine, Reference, TreeBox, lines, stack, tree};
use tidegate_report::svg;

/// The names of elements, each closed where XML wants it; else what is wrong.
fn elements(text: &str) -> Result<Vec<String>, String> {
    let mut open: Vec<&str> = Vec::new();
    let mut all = Vec::new();
    for piece in text.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').ok_or_else(|| format!("no end: {piece}"))?;
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("quotes: {tag}"));
        } else if tag.starts_with('/') {
            match open.pop() {
                Some(last) if last == name => {}
                last => return Err(format!("{name} closes {last:?}")),
            }
        } else {
            all.push(name.to_owned());
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    if open.is_empty() { Ok(all) } else { Err(format!("open: {open:?}")) }
}

#[test]
fn files_of_their_own() {
    const SECOND: f64 = 1e9;
    let time = || Axis::time(4_000_000_000);
    let band =
        |name: &str, colour, values: [f64; 4]| Band { name: name.into(), colour, values: values.to_vec() };
    let line = |name: &str, class, value: Option<f64>| ChartLine {
        name: name.into(),
        class,
        fill: None,
        points: (0..40).map(|n| (f64::from(n) * SECOND / 10.0, value)).collect(),
    };
    let node = |name: &str, parent, dead: Option<&str>| TreeBox {
        name: name.into(),
        parent,
        lines: vec!["1 Mbit/s <i>".into()],
        filters: vec!["mark 1 & more".into()],
        load: Some((0.5, Some(2.0))),
        dead: dead.map(Into::into),
        ..TreeBox::default()
    };
    let level = Reference { name: "at most".into(), value: 900.0 };
    let drawings = [
        lines(
            "l",
            "",
            (time(), Axis::spans(9_000_000, 4)),
            200.0,
            SECOND,
            &[line("a", "with", Some(4e6)), line("b", "without", None)],
        ),
        stack(
            "s",
            "",
            (time(), Axis::rates(1e3, 4)),
            0.0,
            SECOND,
            &[band("a", 1, [1.0, 2.0, 0.0, 900.0]), band("b", 2, [0.0; 4])],
            &[level],
        ),
        tree(
            "t",
            "",
            &[node("1:", None, None), node("1:1", Some(0), None), node("1:2", Some(0), Some("no rule"))],
        ),
    ];
    for drawing in drawings {
        let file = svg(&drawing, 640.0);
        let names = elements(&file).unwrap_or_else(|wrong| panic!("{}: {wrong}\n{file}", drawing.title()));
        assert_eq!(
            (names[0].as_str(), names.contains(&"style".to_owned())),
            ("svg", true),
            "{}",
            drawing.title()
        );
        assert!(
            file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && file.contains("class=\"mark"),
            "{file}"
        );
        assert!(!file.contains("NaN") && !file.contains("calc("), "{file}");
        let room = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
        std::fs::write(room.join(format!("chart-{}.svg", drawing.title())), &file)
            .expect("target/tmp is writable");
    }
}

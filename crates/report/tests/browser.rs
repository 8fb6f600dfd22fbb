//! The page in a browser: what is drawn, at a telephone's and a desk's width, light and dark, with scripts
//! and without.

#[path = "common/browser.rs"]
mod browser;
#[path = "../../analysis/tests/fixture/mod.rs"]
mod fixture;

use browser::{browser, complaints, look};
use tidegate_measure::pinged::PingRequest;
use tidegate_measure::quick::{HopResult, LoadDirection, LoadPhase, Quick};
use tidegate_report::html;

/// The page of `quick`, whose table is whole on a telephone.
#[test]
fn a_quick_look_as_people_see_it() {
    let Some(browser) = browser() else {
        println!("SKIPPED: no chromium in PATH; the page of `quick` was not looked at");
        return;
    };
    const MS: u64 = 1_000_000;
    let place = |name: &str, distance: u8, idle: u64, more: u64| HopResult {
        name: name.into(),
        distance: Some(distance),
        requests: (0..400)
            .map(|n| PingRequest {
                sent_ns: n * 50 * MS,
                took_ns: (n % 97 != 60).then_some((idle + n * 7 % 5 + if n < 130 { 0 } else { more }) * MS),
                here_ns: None,
            })
            .collect(),
    };
    let phase = |load, from: u64, to: u64| LoadPhase {
        load,
        window: (from * MS, to * MS),
        by: "four TCP transfers".into(),
        up_bits: (load == LoadDirection::Up).then_some(5e6),
        ..LoadPhase::default()
    };
    let quick = Quick {
        places: vec![
            place("192.168.178.1", 1, 1, 0),
            place("dslb-088-072-100-001.pools.provider.example", 2, 9, 130),
            place("speed.example.net", 6, 20, 130),
        ],
        phases: vec![
            phase(LoadDirection::Idle, 0, 6_500),
            phase(LoadDirection::Up, 6_500, 13_500),
            phase(LoadDirection::Down, 13_500, 20_000),
        ],
        ..Quick::default()
    };
    let page = tidegate_report::measuring::quick::page(&quick);
    for (name, width, dark) in
        [("quick-phone", 390, false), ("quick-phone-dark", 390, true), ("quick-desk", 1280, true)]
    {
        let found = look(&browser, name, &page, width, dark);
        assert_eq!(complaints(&found), Vec::<String>::new(), "{name}");
        let read = found["read_out"].to_string();
        assert!(read.starts_with("\"10–11 s · 192.168.178.1: median "), "{read}");
    }
}

#[test]
fn as_people_see_it() {
    let Some(browser) = browser() else {
        println!("SKIPPED: no chromium in PATH; the page was not looked at");
        return;
    };
    let trial = fixture::trial::trial();
    let page = html(&trial);
    let quiet = page.split_once("<script>").expect("a script").0.to_owned() + "</body></html>";
    let views = [
        ("phone-light", &page, 390, false),
        ("phone-dark", &page, 390, true),
        ("desk-light", &page, 1280, false),
        ("desk-dark", &page, 1280, true),
        ("phone-quiet", &quiet, 390, false),
    ];
    for (name, page, width, dark) in views {
        let found = look(&browser, name, page, width, dark);
        assert_eq!(complaints(&found), Vec::<String>::new(), "{name}");
        let scripted = name != "phone-quiet";
        let facts =
            ["width", "dark", "panels", "panels_at_first", "probes_at_first", "after_choice", "read_out"];
        let shown: Vec<String> = facts.iter().map(|fact| format!("{fact} {}", found[fact])).collect();
        let expected = [
            format!("width {width}"),
            format!("dark {dark}"),
            "panels 4".to_owned(),
            // Without a script everything is there at once.
            format!(
                "panels_at_first {}",
                if scripted { "[\"load-3\"]" } else { "[\"load-0\",\"load-1\",\"load-2\",\"load-3\"]" }
            ),
            format!("probes_at_first {}", if scripted { 1 } else { 20 }),
            format!("after_choice {}", if scripted { "[\"load-1\",\"load-1-1\"]" } else { "[]" }),
            format!(
                "read_out {}",
                if scripted {
                    "\"32–33 s · without: median 1400 ms · without: max 1413 ms · without: lost 0\""
                } else {
                    "\"\""
                }
            ),
        ];
        assert_eq!(shown, expected, "{name}");
        // Five probes twice, a stack, two buffers, six cards for each of three loads; the idle one has as
        // many; overview. (The tree and the way are lists.)
        let least = 4 * (10 + 1 + 2 + 6) + 1;
        assert!(found["figures"].as_u64() >= Some(least), "{name}: {} figures", found["figures"]);
    }
}

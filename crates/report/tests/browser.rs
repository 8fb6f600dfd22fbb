//! The page in a browser: what is drawn, at a telephone's and a desk's width, light and dark, with scripts
//! and without.

#[path = "common/browser.rs"]
mod browser;
#[path = "../../analysis/tests/fixture/mod.rs"]
mod fixture;

use browser::{browser, complaints, look};
use tidegate_report::html;

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
                    "\"32–33 s · without: median 1400 ms · without: longest 1413 ms · without: lost 0\""
                } else {
                    "\"\""
                }
            ),
        ];
        assert_eq!(shown, expected, "{name}");
        // Five probes twice, a stack, two buffers, six cards for each of three loads; the idle one has as
        // many; overview, tree. (The way is a list.)
        let least = 4 * (10 + 1 + 2 + 6) + 2;
        assert!(found["figures"].as_u64() >= Some(least), "{name}: {} figures", found["figures"]);
    }
}

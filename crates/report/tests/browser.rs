//! The page in a browser: what is drawn, at a telephone's and a desk's width, light and dark, with scripts and without.

mod common;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_report::html;

/// Runs in the page before anything else: collects what goes wrong.
const EARS: &str = include_str!("data/ears.js");
/// Runs in the page when it is complete: opens everything, measures it and leaves what it found.
const EYES: &str = include_str!("data/eyes.js");

/// Windows are 500 pixels wide at least; a frame is as narrow as a telephone. What the eyes found comes as a message.
const FRAME: &str = "<!DOCTYPE html><meta name=color-scheme content='light dark'><body style='margin:0'><script>
addEventListener('message', event => {
  const found = document.createElement('pre');
  found.id = 'found';
  found.textContent = event.data;
  document.body.append(found);
});
</script>";

/// Milliseconds of the page's own time until the findings are taken.
const BUDGET: u32 = 10_000;
/// Seconds a browser may take.
const PATIENCE: &str = "120";

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    places.find(|place| place.is_file())
}

/// Loads a page and gives what the eyes found.
fn look(browser: &Path, name: &str, page: &str, width: u32, dark: bool) -> Value {
    let room = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, profile) = (room.join(format!("{name}.html")), room.join(format!("{name}-profile")));
    let frame = room.join(format!("{name}-frame.html"));
    let page = page.replacen("<head>", &format!("<head><script>{EARS}</script>"), 1);
    let page = page.replacen("</body>", &format!("<script>{EYES}</script></body>"), 1);
    std::fs::write(&file, page).expect("the page is written");
    let inner = format!("<iframe src='{name}.html' style='border:0;width:{width}px;height:900px'></iframe>");
    std::fs::write(&frame, format!("{FRAME}{inner}")).expect("its frame is written");
    let output = Command::new("timeout")
        .arg(PATIENCE)
        .arg(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"])
        // Nobody answers: a page that asked for anything would go without.
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--dump-dom"])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--virtual-time-budget={BUDGET}"))
        .arg("--window-size=1400,1000")
        .arg(format!("file://{}", frame.display()))
        .output()
        .expect("the browser starts");
    let _ = std::fs::remove_dir_all(&profile);
    let dom = String::from_utf8_lossy(&output.stdout);
    let found = dom.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let found = found.unwrap_or_else(|| panic!("{name}: no findings\n{}", String::from_utf8_lossy(&output.stderr))).0;
    let text = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).expect("findings are JSON")
}

/// What must not be found, and is.
fn complaints(found: &Value) -> Vec<String> {
    let lists = ["errors", "refused", "requests", "too_wide", "empty", "outside", "covered", "pale"];
    let told = lists.iter().flat_map(|list| {
        let items = found[list].as_array().expect("a list").iter();
        items.map(move |item| format!("{list}: {}", item.as_str().unwrap_or_default()))
    });
    told.take(20).collect()
}

#[test]
fn as_people_see_it() {
    let Some(browser) = browser() else {
        println!("SKIPPED: no chromium in PATH; the page was not looked at");
        return;
    };
    let trial = common::fixture();
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
        let facts = ["width", "dark", "panels", "panels_at_first", "probes_at_first", "after_choice", "read_out"];
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
                if scripted { "\"32–33 s · without: median 1400 ms · longest 1413 ms · lost 0\"" } else { "\"\"" }
            ),
        ];
        assert_eq!(shown, expected, "{name}");
        // Five probes twice, a stack, two buffers, six cards for each of three loads; the idle one has as many; overview, tree, way.
        let least = 4 * (10 + 1 + 2 + 6) + 3;
        assert!(found["figures"].as_u64() >= Some(least), "{name}: {} figures", found["figures"]);
    }
}

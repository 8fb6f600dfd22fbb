//! A page in a browser: what is drawn, measured by the page's own eyes.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs in the page before anything else: collects what goes wrong.
const EARS: &str = include_str!("../data/ears.js");
/// Runs in the page when it is complete: opens everything, measures it and leaves what it found.
const EYES: &str = include_str!("../data/eyes.js");

/// Windows are 500 pixels wide at least; a frame is as narrow as a telephone. What the eyes found comes as a
/// message.
const FRAME: &str =
    "<!DOCTYPE html><meta name=color-scheme content='light dark'><body style='margin:0'><script>
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

pub(crate) fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    places.find(|place| place.is_file())
}

/// Loads a page and gives what the eyes found.
pub(crate) fn look(browser: &Path, name: &str, page: &str, width: u32, dark: bool) -> Value {
    let room = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, profile) = (room.join(format!("{name}.html")), room.join(format!("{name}-profile")));
    let frame = room.join(format!("{name}-frame.html"));
    // Before the page's policy is read, which would refuse them.
    let ours =
        format!("<head><script>{EARS}\naddEventListener('DOMContentLoaded', () => {{\n{EYES}\n}});</script>");
    let page = page.replacen("<head>", &ours, 1);
    std::fs::write(&file, page).expect("the page is written");
    let inner = format!("<iframe src='{name}.html' style='border:0;width:{width}px;height:900px'></iframe>");
    std::fs::write(&frame, format!("{FRAME}{inner}")).expect("its frame is written");
    let output = Command::new("timeout")
        .arg(PATIENCE)
        .arg(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"])
        // No server: a page that requested anything would go without.
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
    let found =
        found.unwrap_or_else(|| panic!("{name}: no findings\n{}", String::from_utf8_lossy(&output.stderr))).0;
    let text = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).expect("findings are JSON")
}

/// What must not be found, and is.
pub(crate) fn complaints(found: &Value) -> Vec<String> {
    let lists = ["errors", "refused", "requests", "too_wide", "empty", "outside", "covered", "pale"];
    let lines = lists.iter().flat_map(|list| {
        let items = found[list].as_array().expect("a list").iter();
        items.map(move |item| format!("{list}: {}", item.as_str().unwrap_or_default()))
    });
    lines.take(20).collect()
}

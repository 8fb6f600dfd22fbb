//! The playground, opened from disk in Chromium and used.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places =
        std::env::split_paths(&path).flat_map(|dir| names.iter().map(move |name| dir.join(name)));
    places.find(|place| place.is_file())
}

#[test]
fn the_playground_is_used_from_disk() {
    let (Some(node), Some(chromium)) =
        (program(&["node"]), program(&["chromium", "chromium-browser", "google-chrome"]))
    else {
        eprintln!("SKIPPED: the playground is not opened: there is no node or no Chromium");
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = here.join("../../docs/playground/index.html").canonicalize().expect("the page is there");
    let mut command = Command::new(node);
    command.arg(here.join("tests/page.js")).arg(chromium).arg(page);
    // Pictures, for people: TIDEGATE_SHOTS names a folder.
    command.args(std::env::var_os("TIDEGATE_SHOTS"));
    let output = command.output().expect("node starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    let has = |name: &str, part: &str| assert!(text(name).contains(part), "{name}: {}", text(name));

    assert_eq!(found["errors"], Value::Array(Vec::new()), "the page complains");
    has("verdict", "the policy cuts the ping's 95th percentile");
    assert!(found["tiles"].as_u64() >= Some(6) && found["charts"].as_u64() >= Some(3), "{found:#}");
    has("explained", "cake");
    // A mistake gives a finding with its line; what tc refuses, and what is no policy, too.
    has("finding", "line 1");
    assert!(found["marked"].as_u64() >= Some(1));
    has("refused", "line 2");
    has("script", "tidegate run --print tc SCRIPT");
    has("binary", "not text");
    // A slider changes the figures, and the address keeps the state.
    assert_ne!(found["before"], found["after"]);
    assert_eq!(found["kept"][0], "tc qdisc add dev eth0 root cake bandwidth 9mbit\n");
    assert_eq!(found["both"], 3, "without, A and B");
    assert_eq!(found["markup"], 0, "a policy's markup became elements");
    assert_eq!(found["story"].as_array().map(Vec::len), Some(6));
    assert!(found["wide"].as_u64() <= Some(390), "wider than a telephone: {}", found["wide"]);
    let rates = found["rates"].as_array().expect("times");
    println!(
        "recomputation of 30 s at 10 Mbit/s in Chromium, ms, the middle one: {}",
        rates[rates.len() / 2]
    );
}

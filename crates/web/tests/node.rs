//! The module that pages load gives the documents that this library gives natively, to the byte.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_web::answer;

/// Seconds that each run of a scenario is shortened to.
const SHORT: &str = "2s";
/// The most seconds of a scenario's runs together, so that the comparison stays short.
const MAX_SECONDS: usize = 12;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a folder with this extension, and of those in it, sorted.
fn files(dir: &Path, extension: &str, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).expect("the folder is there").flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, extension, into);
        } else if path.extension().is_some_and(|found| found == extension) {
            into.push(path);
        }
    }
}

fn node() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("node")).find(|place| place.is_file())
}

/// Requests about the repository's own files.
fn requests() -> Vec<Value> {
    let mut requests = Vec::new();
    let mut scenarios = Vec::new();
    for folder in ["scenarios", "examples/scenarios", "crates/scenario/library"] {
        files(&root().join(folder), "toml", &mut scenarios);
    }
    for path in scenarios {
        let text = fs::read_to_string(&path).expect("a scenario is read");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let cases = text.matches("[policies.").count().max(1) * text.matches("[loads.").count().max(1);
        if cases * 2 <= MAX_SECONDS {
            let options = json!({ "repeats": 1, "duration": SHORT });
            requests.push(json!({ "do": "sim", "name": name, "scenario": text,
                "repeats": options["repeats"], "duration": options["duration"] }));
        }
    }
    let mut policies = Vec::new();
    files(&root().join("examples"), "sh", &mut policies);
    policies.push(root().join("examples/home.toml"));
    policies.push(root().join("examples/mistakes/home.toml"));
    for path in policies {
        let text = fs::read_to_string(&path).expect("a policy is read");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        requests.push(json!({ "do": "check", "name": name, "policy": text }));
        requests.push(json!({ "do": "try", "name": name, "policy": text, "up": "2mbit", "down": "10mbit",
            "duration": "2s", "load": ["up"] }));
    }
    requests
}

#[test]
fn the_module_for_pages_gives_the_same_bytes() {
    let playground = root().join("docs/playground");
    let Some(node) = node() else {
        eprintln!("SKIPPED: the module for pages is not compared with the library: there is no node");
        return;
    };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("requests.json");
    fs::write(&file, Value::from(requests()).to_string()).expect("requests are written");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node.js");
    let output = Command::new(node).arg(script).arg(playground).arg(&file).output().expect("node starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let mut counted: BTreeMap<(String, u64), usize> = BTreeMap::new();
    for line in text.lines() {
        let one: Value = serde_json::from_str(line).expect("a line of JSON");
        let request = one["request"].as_str().expect("a request");
        let (code, document) = match answer(request) {
            Ok(document) => (0, document),
            Err(refusal) => (1, refusal),
        };
        let about: Value = serde_json::from_str(request).expect("JSON");
        let what = format!("{} {}", about["do"], about["name"]);
        assert_eq!((one["code"].as_u64(), one["text"].as_str()), (Some(code), Some(&*document)), "{what}");
        *counted.entry((about["do"].as_str().unwrap_or_default().to_owned(), code)).or_default() += 1;
    }
    println!("documents of node and of the library, the same to the byte (0: done, 1: refused): {counted:?}");
    for done in ["check", "commands", "explain", "sim", "try"] {
        assert!(counted.get(&(done.to_owned(), 0)).is_some_and(|count| *count >= 9), "{done}: {counted:?}");
    }
}

#[test]
fn what_cannot_be_done_is_said_with_its_place() {
    let refused = |request: Value| {
        let refusal = answer(&request.to_string()).expect_err("a refusal");
        serde_json::from_str::<Value>(&refusal).expect("JSON")["refused"].take()
    };
    let script =
        refused(json!({ "do": "check", "name": "a.sh", "policy": "#!/bin/sh\nfor i in 1; do tc; done\n" }));
    assert!(script["remedy"].as_str().is_some_and(|how| how.contains("tidegate run --print tc SCRIPT")));
    let short =
        refused(json!({ "do": "try", "name": "a.toml", "policy": "device = \"eth0\"\nupp = \"1mbit\"\n" }));
    let is_there = |place: &Value| place["line"] == 2 && place["columns"] == json!([0, 3]);
    assert!(short["places"].as_array().is_some_and(|places| places.iter().any(is_there)), "{short:#}");
    let list = "# one\ntc qdisc add dev eth0 root handle 1: htb\ntc class add dev eth0 parent 1: bogus\n";
    let line = json!({ "do": "try", "name": "a.sh", "policy": list, "up": "1mbit", "down": "5mbit" });
    assert_eq!(refused(line)["places"][0]["line"], json!(3));
    let scenario =
        refused(json!({ "do": "sim", "name": "a.toml", "scenario": "duration = \"2s\"\n[hom]\n" }));
    assert!(scenario["places"][0]["line"].is_u64(), "{scenario:#}");
    let fast = json!({ "do": "try", "name": "a.sh", "policy": "tc qdisc add dev eth0 root fq\n",
        "up": "10gbit", "down": "10gbit" });
    assert!(refused(fast)["reason"].as_str().is_some_and(|why| why.contains("gigabits to carry")));
    let long = "#".repeat(tidegate_web::RequestLimits::TEXT + 1);
    assert!(refused(json!({ "do": "check", "policy": long }))["remedy"].is_string());
    for policy in ["\u{0}\u{1}\u{2}", "", "buy milk", "PK\u{3}\u{4}", "{", "[[[[[[[[[["] {
        assert!(refused(json!({ "do": "check", "name": "a", "policy": policy }))["reason"].is_string());
    }
    assert!(answer("no JSON").is_err() && answer("{\"do\": \"fly\"}").is_err());
}

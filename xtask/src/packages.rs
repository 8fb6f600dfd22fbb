//! What `cargo package` asks of each crate that may be published, checked without making packages: metadata,
//! versions of dependencies, no circle through dev-dependencies (a crate is published after all that it
//! names), and no test data.

use crate::walls::{list, members, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The most that a package may hold before compression, bytes: sources and what they include, no recordings.
const MAX_BYTES: u64 = 2 << 20;

/// The most keywords that crates.io takes.
const MAX_KEYWORDS: usize = 5;

/// Which crates depend on which: a name, and the names of its dependencies, dev-dependencies included.
type Graph<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// What is missing in the crates of the workspace that may be published.
pub(crate) fn breaches(metadata: &Value) -> Vec<String> {
    let published: Vec<&Value> =
        members(metadata).into_iter().filter(|package| is_published(package)).collect();
    let mut breaches: Vec<String> = published.iter().flat_map(|package| package_breaches(package)).collect();
    let names: BTreeSet<&str> = published.iter().map(|package| text(package, "name")).collect();
    let graph: Graph<'_> =
        published.iter().map(|package| (text(package, "name"), dependencies(package, &names))).collect();
    for name in &names {
        if let Some(way) = dependency_path(&graph, name) {
            breaches.push(format!("{name}: cannot be published, it needs itself: {}", way.join(" → ")));
        }
    }
    breaches
}

/// Crates without `publish = false`.
fn is_published(package: &Value) -> bool {
    !package["publish"].as_array().is_some_and(Vec::is_empty)
}

fn package_breaches(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let mut breaches = Vec::new();
    for field in ["license", "repository", "description", "readme"] {
        if text(package, field).is_empty() {
            breaches.push(format!("{name}: Cargo.toml has no {field}"));
        }
    }
    for field in ["keywords", "categories"] {
        match list(package, field).len() {
            0 => breaches.push(format!("{name}: Cargo.toml has no {field}")),
            many if many > MAX_KEYWORDS => {
                breaches.push(format!("{name}: {many} {field}: crates.io takes {MAX_KEYWORDS}"));
            }
            _ => {}
        }
    }
    // A dev-dependency without a version is left out of what is published; the tests' data are not in it
    // either.
    for dependency in
        list(package, "dependencies").iter().filter(|dependency| text(dependency, "kind") != "dev")
    {
        if !text(dependency, "path").is_empty() && text(dependency, "req") == "*" {
            let to = text(dependency, "name");
            breaches.push(format!("{name}: its dependency {to} has a path and no version"));
        }
    }
    let size = size(Path::new(text(package, "manifest_path")));
    if size > MAX_BYTES {
        breaches.push(format!(
            "{name}: its package holds {size} bytes, at most {MAX_BYTES}: `exclude` test data"
        ));
    }
    breaches
}

/// The bytes of the files beside a manifest that `exclude` does not name.
fn size(manifest: &Path) -> u64 {
    let Some(dir) = manifest.parent() else { return 0 };
    let excluded = fs::read_to_string(manifest).unwrap_or_default();
    let excluded = excluded.lines().find_map(|line| line.strip_prefix("exclude = ")).unwrap_or_default();
    let excluded: Vec<&str> = excluded.split('"').skip(1).step_by(2).collect();
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let kept = entries.filter(|entry| !excluded.iter().any(|name| entry.file_name() == **name));
    kept.map(|entry| bytes(&entry.path())).sum()
}

fn bytes(path: &Path) -> u64 {
    if path.is_dir() {
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| bytes(&entry.path())).sum()
    } else {
        fs::metadata(path).map_or(0, |data| data.len())
    }
}

/// The crates of the workspace that a package names with a version: one without is left out of what is
/// published.
fn dependencies<'a>(package: &'a Value, members: &BTreeSet<&str>) -> Vec<&'a str> {
    let all = list(package, "dependencies").iter().filter(|dependency| text(dependency, "req") != "*");
    all.map(|dependency| text(dependency, "name")).filter(|name| members.contains(name)).collect()
}

/// The way from a crate to itself, if there is one.
fn dependency_path<'a>(graph: &Graph<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut seen = BTreeSet::new();
    let mut ways = vec![vec![start]];
    while let Some(way) = ways.pop() {
        for next in way.last().and_then(|last| graph.get(last)).into_iter().flatten() {
            let further: Vec<&str> = way.iter().copied().chain([*next]).collect();
            if *next == start {
                return Some(further);
            }
            if seen.insert(*next) {
                ways.push(further);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, needs: &[(&str, &str)]) -> Value {
        let needs: Vec<Value> = needs
            .iter()
            .map(|(to, req)| json!({ "name": to, "req": req, "path": "/x", "kind": "dev" }))
            .collect();
        json!({
            "name": name, "id": name, "license": "MIT", "repository": "r", "description": "d", "readme": "README.md",
            "keywords": ["k"], "categories": ["c"], "manifest_path": "/nowhere/Cargo.toml", "publish": null,
            "dependencies": needs,
        })
    }

    fn of(packages: &[Value]) -> Vec<String> {
        let ids: Vec<&str> = packages.iter().map(|package| text(package, "id")).collect();
        breaches(&json!({ "workspace_members": ids, "packages": packages }))
    }

    #[test]
    fn a_circle_through_a_dev_dependency_and_a_missing_version_are_found() {
        assert!(of(&[package("a", &[("b", "^1")]), package("b", &[])]).is_empty());
        let circle = of(&[package("a", &[("b", "^1")]), package("b", &[("a", "^1")])]);
        assert!(circle[0].contains("a → b → a"), "{circle:?}");
        let mut missing = package("a", &[("b", "*")]);
        assert!(of(&[missing.clone(), package("b", &[])]).is_empty(), "a dev-dependency may have none");
        missing["dependencies"][0]["kind"] = Value::Null;
        assert_eq!(of(&[missing, package("b", &[])]), ["a: its dependency b has a path and no version"]);
    }

    #[test]
    fn missing_metadata_is_found_unless_the_crate_is_not_published() {
        let mut bare = package("a", &[]);
        bare["readme"] = Value::Null;
        bare["keywords"] = json!([]);
        assert_eq!(of(&[bare.clone()]), ["a: Cargo.toml has no readme", "a: Cargo.toml has no keywords"]);
        bare["publish"] = json!([]);
        assert!(of(&[bare]).is_empty());
    }
}

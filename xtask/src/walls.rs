//! The workspace's rules, checked: which crate may depend on which, and what a pure crate may not contain.
//!
//! The compiler keeps most of them (`no_std`, `forbid(unsafe_code)`, clippy's disallowed lists); this checks
//! that it was asked to, and what it cannot see: dependencies, licences, names that are defined twice, long
//! lines, paths that exist on one machine only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::names::PublicNames;

/// What programs may depend on: every library.
const LIBRARIES: &[&str] = &[
    "packet",
    "policy",
    "syntax",
    "classify",
    "qdisc",
    "gateway",
    "inspect",
    "sim",
    "measure",
    "analysis",
    "report",
    "sys",
    "sandbox",
    "shims",
    "capture",
    "loader",
    "scenario",
    "sweep",
    "control",
    "gym",
    "trial",
    "replay",
    "lab",
    "plan",
    "netlink-wire",
    "netlink",
    "dataplane",
    "daemon",
    "apply",
    "sessions",
    "pcap",
    "probe-wire",
    "prober",
    "text",
    "device",
];

/// Each crate, whether it is pure, and the crates it may depend on.
const CRATES: [(&str, Purity, &[&str]); 43] = [
    ("text", Purity::NoStd, &[]),
    ("packet", Purity::NoStd, &[]),
    ("policy", Purity::NoStd, &["packet"]),
    ("netlink-wire", Purity::NoStd, &[]),
    ("recording", Purity::Std, &["packet"]),
    ("archives", Purity::Impure, &[]),
    ("syntax", Purity::Std, &["policy", "packet"]),
    ("classify", Purity::NoStd, &["policy", "packet"]),
    ("qdisc", Purity::NoStd, &["classify", "policy", "packet"]),
    ("gateway", Purity::NoStd, &["qdisc", "classify", "policy", "packet"]),
    ("inspect", Purity::Std, &["gateway", "qdisc", "classify", "policy", "packet", "syntax"]),
    ("plan", Purity::Std, &["inspect", "gateway", "qdisc", "classify", "policy", "packet", "syntax"]),
    ("measure", Purity::Std, &[]),
    ("pcap", Purity::NoStd, &[]),
    ("probe-wire", Purity::NoStd, &["measure"]),
    ("sim", Purity::NoStd, &["gateway", "qdisc", "classify", "policy", "packet", "measure"]),
    ("analysis", Purity::Std, &["measure", "packet"]),
    ("report", Purity::Impure, &["analysis", "gym", "measure", "sweep", "text"]),
    ("sys", Purity::Impure, &["netlink-wire", "text"]),
    ("sandbox", Purity::Impure, &["sys"]),
    ("shims", Purity::Std, &["gateway", "classify", "policy", "packet", "syntax"]),
    ("device", Purity::Std, &["shims", "gateway", "qdisc", "policy", "packet", "syntax"]),
    // Its only work is to check what C gives and to hand it on.
    ("capi", Purity::Impure, &["device"]),
    ("capture", Purity::Impure, &["shims", "sandbox", "sys", "text"]),
    (
        "loader",
        Purity::Impure,
        &["capture", "shims", "inspect", "gateway", "policy", "packet", "syntax", "sys", "text"],
    ),
    (
        "scenario",
        Purity::Std,
        &["sim", "measure", "shims", "inspect", "gateway", "policy", "packet", "syntax", "text"],
    ),
    ("sweep", Purity::Std, &["scenario", "measure", "packet", "syntax"]),
    ("control", Purity::NoStd, &["packet"]),
    ("gym", Purity::Std, &["control", "scenario", "sim", "gateway", "policy", "packet", "syntax"]),
    (
        "trial",
        Purity::Std,
        &["scenario", "sim", "measure", "shims", "inspect", "gateway", "policy", "packet", "syntax"],
    ),
    (
        "replay",
        Purity::Std,
        &[
            "trial",
            "scenario",
            "sim",
            "measure",
            "shims",
            "inspect",
            "gateway",
            "policy",
            "packet",
            "pcap",
            "recording",
        ],
    ),
    ("prober", Purity::Impure, &["measure", "probe-wire", "sys", "text"]),
    ("lab", Purity::Impure, &["scenario", "sim", "netlink", "gateway", "policy", "packet", "measure", "sys"]),
    ("netlink", Purity::Impure, &["netlink-wire", "policy", "packet", "sys"]),
    ("dataplane", Purity::Impure, &["netlink", "gateway", "policy", "packet", "sys"]),
    (
        "daemon",
        Purity::Impure,
        &[
            "dataplane",
            "plan",
            "netlink",
            "loader",
            "shims",
            "inspect",
            "gateway",
            "policy",
            "packet",
            "syntax",
            "sys",
            "text",
        ],
    ),
    (
        "apply",
        Purity::Impure,
        &[
            "daemon",
            "dataplane",
            "plan",
            "netlink",
            "loader",
            "inspect",
            "gateway",
            "policy",
            "packet",
            "sys",
            "text",
        ],
    ),
    (
        "sessions",
        Purity::Impure,
        &[
            "apply",
            "daemon",
            "dataplane",
            "plan",
            "netlink",
            "replay",
            "trial",
            "control",
            "gym",
            "control",
            "sweep",
            "scenario",
            "loader",
            "capture",
            "inspect",
            "prober",
            "probe-wire",
            "measure",
            "analysis",
            "syntax",
            "policy",
            "packet",
            "sys",
            "text",
        ],
    ),
    // A module for pages: it names its functions for them, and reads their buffers.
    (
        "web",
        Purity::Impure,
        &[
            "loader", "capture", "trial", "scenario", "inspect", "measure", "analysis", "syntax", "packet",
            "text",
        ],
    ),
    ("cli", Purity::Impure, LIBRARIES),
    (
        "fuzz",
        Purity::Impure,
        &[
            "cli",
            "control",
            "shims",
            "loader",
            "syntax",
            "packet",
            "pcap",
            "inspect",
            "analysis",
            "report",
            "probe-wire",
            "netlink",
            "dataplane",
            "sys",
            "sim",
            "prober",
        ],
    ),
    ("python", Purity::Impure, LIBRARIES),
    // An example of a qdisc in another crate: it depends on what such a crate may.
    ("custom-qdisc", Purity::NoStd, &["qdisc", "classify", "policy", "packet"]),
];

/// Impure crates whose pure part needs no std: what does needs the feature `std`.
const NO_STD_IN_PART: [&str; 1] = ["netlink"];

/// Third-party crates that a pure crate may use: mathematics, a keyed hash that should not be written again,
/// JSON, TOML, YAML and CSV, which are text in and text out, and gzip, which is bytes in and bytes out.
const PURE_DEPENDENCIES: [&str; 12] = [
    "libm",
    "hmac",
    "sha2",
    "serde",
    "serde_json",
    "serde_path_to_error",
    "schemars",
    "toml",
    "toml_edit",
    "saphyr-parser",
    "csv",
    "flate2",
];

/// Licences that are compatible with MIT OR Apache-2.0.
const LICENCES: [&str; 13] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unlicense",
    "CC0-1.0",
    "Unicode-3.0",
];

/// Where code marked so may be that the compiler cannot check, and why: a crate's folder, or one file of a
/// crate whose root says `#![deny(unsafe_code)]`.
const UNCHECKED: [(&str, &str); 3] = [
    ("crates/sys", "system calls"),
    ("crates/capi/src/abi.rs", "pointers that a C program gives: checked there, and nowhere used further in"),
    ("crates/web/src/abi.rs", "the names of functions that a page calls"),
];

/// What clippy refuses in a pure crate: the `clippy.toml` of each.
pub(crate) const PURE_CLIPPY: &str = include_str!("pure-clippy.toml");

/// The longest source file, in lines: a longer one holds two things.
const MAX_LINES: usize = 950;

/// How pure a crate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purity {
    /// No clock, no IO, no global state, and no std.
    NoStd,
    /// The same, with std's collections and text.
    Std,
    /// The outside world.
    Impure,
}

/// Runs the checks and prints what they find.
pub(crate) fn run(root: &Path) -> ExitCode {
    match check(root) {
        Ok(breaches) if breaches.is_empty() => {
            println!("walls: all rules hold");
            ExitCode::SUCCESS
        }
        Ok(breaches) => {
            for breach in &breaches {
                eprintln!("walls: {breach}");
            }
            eprintln!("walls: {} breaches; ARCHITECTURE.md gives the reasons for the rules", breaches.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("walls: {error}");
            ExitCode::FAILURE
        }
    }
}

/// All breaches in the workspace at `root`.
fn check(root: &Path) -> Result<Vec<String>, String> {
    let metadata = metadata(root)?;
    let mut breaches = arrows(&metadata);
    breaches.extend(licences(&metadata));
    breaches.extend(crate::packages::breaches(&metadata));
    breaches.extend(crate::examples::breaches(&metadata));
    breaches.extend(crate::circles::breaches(root));
    for (short, purity, _) in CRATES {
        for parent in ["crates", "examples"] {
            let dir = root.join(parent).join(short);
            if dir.is_dir() {
                breaches.extend(crate_files(&dir, short, purity));
            }
        }
    }
    let mut files = Vec::new();
    collect(root, &mut files)?;
    let mut names = PublicNames::default();
    for path in files {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let name = path.strip_prefix(root).unwrap_or(&path);
        breaches.extend(foreign_paths(name, &text));
        breaches.extend(crate::columns::breaches(name, &text));
        names.add(name, &text);
        if name.extension().is_some_and(|extension| extension == "rs") {
            breaches.extend(source(name, &text));
        }
    }
    breaches.extend(names.breaches());
    Ok(breaches)
}

fn metadata(root: &Path) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Dependencies between the crates, and of pure crates on third-party ones.
fn arrows(metadata: &Value) -> Vec<String> {
    let known: BTreeMap<&str, (Purity, &[&str])> =
        CRATES.iter().map(|(name, purity, allowed)| (*name, (*purity, *allowed))).collect();
    let mut breaches = Vec::new();
    for package in members(metadata) {
        let name = text(package, "name");
        if name == "xtask" {
            continue;
        }
        let known_as = crate_of(name);
        let Some((purity, allowed)) = known_as.and_then(|short| known.get(short)) else {
            breaches.push(format!(
                "{name}: no such crate in ARCHITECTURE.md; add it to xtask's list with what it may depend on"
            ));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let to = text(dependency, "name");
            // Tests may use what the crate itself may not.
            if dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            match crate_of(to) {
                Some(other) if allowed.contains(&other) => {}
                Some(other) => {
                    breaches.push(format!("{name}: must not depend on {other}: arrows point down only"))
                }
                None if *purity == Purity::Impure || PURE_DEPENDENCIES.contains(&to) => {}
                None => breaches.push(format!(
                    "{name}: a pure crate uses none but {}, not {to}",
                    PURE_DEPENDENCIES.join(", ")
                )),
            }
        }
    }
    breaches
}

/// Everything that is linked must be free to go with MIT or Apache-2.0.
fn licences(metadata: &Value) -> Vec<String> {
    list(metadata, "packages")
        .iter()
        .filter(|package| !permitted(text(package, "license")))
        .map(|package| {
            format!(
                "{} {}: licence `{}` is not on the list",
                text(package, "name"),
                text(package, "version"),
                text(package, "license")
            )
        })
        .collect()
}

/// True when one alternative of the expression needs listed licences only.
fn permitted(expression: &str) -> bool {
    let flat = expression.replace(['(', ')'], " ").replace('/', " OR ");
    flat.split(" OR ")
        .any(|alternative| alternative.split(" AND ").all(|licence| LICENCES.contains(&licence.trim())))
}

/// What the root file and the manifest of a crate must say.
fn crate_files(dir: &Path, short: &str, purity: Purity) -> Vec<String> {
    let mut breaches = Vec::new();
    let read = |file: &str| fs::read_to_string(dir.join(file)).ok();
    let heads: Vec<(&str, String)> =
        ["src/lib.rs", "src/main.rs"].into_iter().filter_map(|file| Some((file, read(file)?))).collect();
    if heads.is_empty() {
        breaches.push(format!("crates/{short}: neither src/lib.rs nor src/main.rs"));
    }
    for (file, head) in &heads {
        let word = match short {
            "sys" => None,
            // One file of it is on the list of `UNCHECKED`.
            "capi" | "web" => Some("#![deny(unsafe_code)]"),
            _ => Some("#![forbid(unsafe_code)]"),
        };
        if let Some(word) = word.filter(|word| !head.contains(word)) {
            breaches.push(format!("crates/{short}/{file}: must say {word}"));
        }
        let no_std = purity == Purity::NoStd || NO_STD_IN_PART.contains(&short);
        if no_std && !head.lines().any(|line| line.trim() == "#![no_std]") {
            breaches.push(format!("crates/{short}/{file}: must say #![no_std], without a condition"));
        }
    }
    if purity != Purity::Impure && read("clippy.toml").as_deref() != Some(PURE_CLIPPY) {
        breaches.push(format!("crates/{short}/clippy.toml: must be a copy of xtask/src/pure-clippy.toml"));
    }
    let manifest = read("Cargo.toml").unwrap_or_default();
    if !manifest.contains("[lints]\nworkspace = true") {
        breaches.push(format!("crates/{short}/Cargo.toml: must take the workspace's lints"));
    }
    breaches
}

/// Paths that exist only on the machine where the project began.
fn foreign_paths(name: &Path, text: &str) -> Vec<String> {
    // Written in two parts so that this file does not find itself.
    let wanted = [concat!("../", "shared"), concat!("/wo", "rk/")];
    let mut breaches = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for path in wanted {
            let found = line.match_indices(path).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|letter| letter.is_alphanumeric() || "/.-_".contains(letter))
            });
            if found {
                breaches.push(format!(
                    "{}:{}: refers to {path}, which no clone has",
                    name.display(),
                    number + 1
                ));
            }
        }
    }
    breaches
}

/// What only `crates/cli/src/output.rs` may call in the command: everything printed or written goes through
/// it.
const OUTPUT_ONLY: [&str; 8] = [
    "io::stdout()",
    "io::stderr()",
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "create_dir",
    "File::create",
    "OutputFile",
];

/// Files of the command that may print or write.
const OUTPUT_EXEMPT: [(&str, &str); 1] = [("crates/cli/src/output.rs", "the place itself")];

/// Finds printing and writing outside `output.rs`.
fn output(name: &Path, code: &str) -> Vec<String> {
    if !name.starts_with("crates/cli/src")
        || OUTPUT_EXEMPT.iter().any(|(exempt, _)| name == Path::new(exempt))
    {
        return Vec::new();
    }
    // What follows is the file's tests.
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().enumerate();
    let found = lines
        .filter_map(|(number, line)| Some((number, OUTPUT_ONLY.iter().find(|call| line.contains(**call))?)));
    found
        .map(|(number, call)| {
            format!(
                "{}:{}: `{call}`: use crate::output, which escapes and checks",
                name.display(),
                number + 1
            )
        })
        .collect()
}

/// Libraries that print nothing: their callers get what there is to report.
const QUIET: [&str; 6] = ["plan", "netlink", "dataplane", "daemon", "apply", "sessions"];

/// What prints. (`println!` ends in `print!` too.)
const PRINTS: [&str; 4] = ["print!(", "println!(", "io::stdout()", "io::stderr()"];

/// Finds printing in the libraries that print nothing.
fn quiet(name: &Path, code: &str) -> Vec<String> {
    if !QUIET.iter().any(|short| name.starts_with(Path::new("crates").join(short).join("src"))) {
        return Vec::new();
    }
    // What follows is the file's tests.
    let code = code.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().enumerate().filter(|(_, line)| PRINTS.iter().any(|call| line.contains(call)));
    lines
        .map(|(number, _)| format!("{}:{}: a library prints nothing: report it", name.display(), number + 1))
        .collect()
}

/// Finds what a source file may not contain.
fn source(name: &Path, text: &str) -> Vec<String> {
    let mut breaches = output(name, &code_only(text));
    breaches.extend(quiet(name, &code_only(text)));
    let lines = text.lines().count();
    if lines > MAX_LINES {
        breaches.push(format!("{}: {lines} lines: split it, {MAX_LINES} is the limit", name.display()));
    }
    if !UNCHECKED.iter().any(|(place, _)| name.starts_with(place)) {
        for (number, line) in code_only(text).lines().enumerate() {
            let mut words = line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
            if words.any(|word| word == "unsafe") {
                let places = UNCHECKED.map(|(place, _)| place).join(" and ");
                breaches.push(format!("{}:{}: unsafe code belongs in {places}", name.display(), number + 1));
            }
        }
    }
    breaches
}

/// The text with comments and string literals blanked, line by line.
pub(crate) fn code_only(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let rest = &letters[at..];
        let length = if rest.starts_with(&['/', '/']) {
            rest.iter().take_while(|letter| **letter != '\n').count()
        } else if rest.starts_with(&['/', '*']) {
            block_comment(rest)
        } else if letter == '"' {
            quoted(rest)
        } else if let Some(length) =
            raw_string(rest, at.checked_sub(1).and_then(|before| letters.get(before)))
        {
            length
        } else if let Some(length) = char_literal(rest) {
            length
        } else {
            code.push(letter);
            at += 1;
            continue;
        };
        let length = length.clamp(1, rest.len());
        code.extend(rest[..length].iter().map(|letter| if *letter == '\n' { '\n' } else { ' ' }));
        at += length;
    }
    code
}

/// The length of a literal of one character that would be taken for something else: `'"'` would open a string
/// that never ends.
pub(crate) fn char_literal(rest: &[char]) -> Option<usize> {
    let is_one = rest.starts_with(&['\'', '"', '\'']) || rest.starts_with(&['\'', '\\']);
    is_one.then(|| rest.iter().skip(2).position(|letter| *letter == '\'').map_or(1, |end| end + 3))
}

/// The length of a `/*` comment, which may hold others.
pub(crate) fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(&['/', '*']) {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(&['*', '/']) {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The length of a string literal.
pub(crate) fn quoted(rest: &[char]) -> usize {
    let mut at = 1;
    while let Some(letter) = rest.get(at) {
        match letter {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`, if one begins here.
pub(crate) fn raw_string(rest: &[char], before: Option<&char>) -> Option<usize> {
    if rest.first() != Some(&'r') || before.is_some_and(|letter| letter.is_alphanumeric() && *letter != 'b') {
        return None;
    }
    let hashes = rest[1..].iter().take_while(|letter| **letter == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let mut end = vec!['"'];
    end.extend(std::iter::repeat_n('#', hashes));
    let body = hashes + 2;
    let found = rest[body..].windows(end.len()).position(|window| window == end);
    Some(found.map_or(rest.len(), |found| body + found + end.len()))
}

/// Collects all files of the tree, except git's and build output.
pub(crate) fn collect(dir: &Path, into: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if [".git", "target", "wt"].iter().any(|skipped| name == *skipped) {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), into)?,
            Ok(kind) if kind.is_file() => into.push(entry.path()),
            _ => {}
        }
    }
    Ok(())
}

/// The packages of the workspace.
pub(crate) fn members(metadata: &Value) -> Vec<&Value> {
    let ids: Vec<&str> = list(metadata, "workspace_members").iter().filter_map(Value::as_str).collect();
    list(metadata, "packages").iter().filter(|package| ids.contains(&text(package, "id"))).collect()
}

fn crate_of(package: &str) -> Option<&str> {
    match package {
        "tidegate" => Some("cli"),
        other => other.strip_prefix("tidegate-"),
    }
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_rules_are_kept() {
        let breaches = check(crate::root()).unwrap();
        assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    }

    #[test]
    fn upward_dependencies_and_third_party_crates_in_pure_crates_are_seen() {
        let package = |name: &str, dependencies: &[(&str, &str)]| {
            let dependencies: Vec<Value> =
                dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
            json!({"id": name, "name": name, "dependencies": dependencies})
        };
        let metadata = json!({
            "workspace_members": ["tidegate", "tidegate-qdisc", "tidegate-sim", "tidegate-shed", "xtask"],
            "packages": [
                package("tidegate", &[("tidegate-sim", ""), ("clap", "")]),
                package("tidegate-qdisc", &[("tidegate-gateway", ""), ("libm", ""), ("rand", ""), ("proptest", "dev")]),
                package("tidegate-sim", &[("tidegate-sys", ""), ("tidegate-gateway", "")]),
                package("tidegate-shed", &[]),
                package("xtask", &[("tidegate", "")]),
            ]
        });
        assert_eq!(
            arrows(&metadata),
            [
                "tidegate-qdisc: must not depend on gateway: arrows point down only",
                "tidegate-qdisc: a pure crate uses none but libm, hmac, sha2, serde, serde_json, \
                serde_path_to_error, schemars, toml, toml_edit, saphyr-parser, csv, flate2, not rand",
                "tidegate-sim: must not depend on sys: arrows point down only",
                "tidegate-shed: no such crate in ARCHITECTURE.md; add it to xtask's list with what it may \
                depend on",
            ]
        );
    }

    #[test]
    fn licences_are_read_as_expressions() {
        let cases = [
            ("MIT OR Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("GPL-2.0-only", false),
            ("GPL-2.0-only OR MIT", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("MIT AND GPL-3.0-only", false),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
            ("", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(permitted(expression), expected, "{expression}");
        }
    }

    #[test]
    fn cargo_deny_allows_the_same_licences() {
        let text = fs::read_to_string(crate::root().join("deny.toml")).unwrap();
        let list = text.split_once("\nallow = [\n").and_then(|(_, rest)| rest.split_once("\n]")).unwrap().0;
        let allowed: Vec<&str> = list.lines().map(|line| line.trim().trim_matches(['"', ','])).collect();
        assert_eq!(allowed, LICENCES);
    }

    #[test]
    fn only_code_counts_as_code() {
        let word = concat!("un", "safe");
        let hidden = format!(
            "// {word}\nlet a = \"{word} \\\" {word}\"; /* {word} /* x */ {word} */ let b = '\"'; \
            r#\"{word}\"#;\n"
        );
        assert_eq!(source(Path::new("x.rs"), &hidden), Vec::<String>::new());
        let shown = format!("let a = '\\'';\n{word} {{ }}\n");
        assert_eq!(source(Path::new("x.rs"), &shown).len(), 1);
        assert_eq!(source(Path::new("crates/sys/src/x.rs"), &shown).len(), 0);
        assert_eq!(source(Path::new("crates/capi/src/abi.rs"), &shown).len(), 0);
        assert_eq!(source(Path::new("crates/capi/src/abi/x.rs"), &shown).len(), 1);
        assert_eq!(source(Path::new("crates/capi/src/text.rs"), &shown).len(), 1);
    }

    #[test]
    fn libraries_that_print_are_seen() {
        let text = "// println!(1)\nfn a() { eprintln!(\"x\"); }\n#[cfg(test)]\nfn b() { println!(); }\n";
        let found = source(Path::new("crates/apply/src/x.rs"), text);
        assert_eq!(found, ["crates/apply/src/x.rs:2: a library prints nothing: report it"]);
        assert!(source(Path::new("crates/lab/src/x.rs"), text).is_empty());
    }

    #[test]
    fn paths_of_one_machine_are_seen() {
        let text = format!(
            "see {}/seeds\n`{}x` but not https://example.org{0}",
            concat!("../", "shared"),
            concat!("/wo", "rk/")
        );
        assert_eq!(foreign_paths(Path::new("a.md"), &text).len(), 2);
    }
}

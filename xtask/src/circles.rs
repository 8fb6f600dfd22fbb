//! Circles among the modules of a crate: files that need each other can be read, tested and moved only
//! together.
//!
//! A file needs another one where its code names it: by a path that begins with `crate` or `super`, or with a
//! module that it declares itself. Tests do not count, nor does who may see an item (`pub(in crate::tc)`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::walls::{code_only, collect};

/// The crates whose modules form no circle.
const FREE: [&str; 37] = [
    "analysis",
    "apply",
    "archives",
    "capi",
    "capture",
    "classify",
    "cli",
    "control",
    "daemon",
    "dataplane",
    "device",
    "gateway",
    "gym",
    "lab",
    "loader",
    "measure",
    "netlink",
    "netlink-wire",
    "packet",
    "pcap",
    "plan",
    "policy",
    "probe-wire",
    "prober",
    "recording",
    "replay",
    "report",
    "sandbox",
    "scenario",
    "sessions",
    "shims",
    "sim",
    "sweep",
    "syntax",
    "sys",
    "text",
    "trial",
];

/// A module by its path from the crate's root; the root itself is empty.
type Module = Vec<String>;

/// Prints the circles of every crate: its name, and the modules of each.
pub(crate) fn run(root: &Path) -> ExitCode {
    let mut crates: Vec<_> = fs::read_dir(root.join("crates")).into_iter().flatten().flatten().collect();
    crates.sort_by_key(fs::DirEntry::file_name);
    for entry in crates {
        let name = entry.file_name().to_string_lossy().into_owned();
        let circles = of_crate(&entry.path());
        println!(
            "{name}: {}",
            if circles.is_empty() { "none".to_owned() } else { circles.len().to_string() }
        );
        for circle in circles {
            println!("  {}: {}", circle.len(), circle.join(", "));
        }
    }
    ExitCode::SUCCESS
}

/// Circles in the crates that must have none.
pub(crate) fn breaches(root: &Path) -> Vec<String> {
    let all = FREE
        .iter()
        .flat_map(|name| of_crate(&root.join("crates").join(name)).into_iter().map(move |one| (name, one)));
    all.map(|(name, circle)| format!("crates/{name}: these modules form a circle: {}", circle.join(", ")))
        .collect()
}

fn of_crate(dir: &Path) -> Vec<Vec<String>> {
    let (src, mut files) = (dir.join("src"), Vec::new());
    if collect(&src, &mut files).is_err() {
        return Vec::new();
    }
    let mut modules: BTreeMap<Module, String> = BTreeMap::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let Ok(text) = fs::read_to_string(path) else { continue };
        let Ok(inner) = path.strip_prefix(&src) else { continue };
        let module = module_of(inner);
        if module.last().is_none_or(|last| last != "tests") {
            modules.insert(module, text);
        }
    }
    circles(&modules)
}

/// `file/mod.rs` is `file`, `file/lines.rs` is `file::lines`, `lib.rs` the root.
fn module_of(path: &Path) -> Module {
    let mut parts: Module =
        path.iter().map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned()).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

/// Modules that reach each other, each circle once, by name.
fn circles(modules: &BTreeMap<Module, String>) -> Vec<Vec<String>> {
    let needs: BTreeMap<&Module, BTreeSet<Module>> =
        modules.iter().map(|(module, text)| (module, needed(module, text, modules))).collect();
    let reached = |from: &Module| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            for other in needs.get(&next).into_iter().flatten() {
                if seen.insert(other.clone()) {
                    open.push(other.clone());
                }
            }
        }
        seen
    };
    let reaches: BTreeMap<&Module, BTreeSet<Module>> =
        modules.keys().map(|module| (module, reached(module))).collect();
    let mut found = BTreeSet::new();
    for (module, others) in &reaches {
        let circle: BTreeSet<&Module> = others
            .iter()
            .filter(|other| reaches.get(other).is_some_and(|back| back.contains(*module)))
            .collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    let name = |module: &&Module| if module.is_empty() { "the root".to_owned() } else { module.join("::") };
    found.iter().map(|circle| circle.iter().map(name).collect()).collect()
}

/// The modules that a file names.
fn needed(module: &Module, text: &str, modules: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let code = code_only(text);
    let code = without_visibility(code.split("#[cfg(test)]").next().unwrap_or_default());
    let mut all = BTreeSet::new();
    for path in paths(&code) {
        let mut parts = path.iter().map(String::as_str).peekable();
        let mut at = match parts.peek() {
            Some(&"crate") => {
                parts.next();
                Vec::new()
            }
            Some(&"super") => module.clone(),
            Some(&"self") => {
                parts.next();
                module.clone()
            }
            _ => module.clone(),
        };
        while parts.next_if(|part| *part == "super").is_some() {
            at.pop();
        }
        let begins_here = path.first().is_some_and(|first| !["crate", "super"].contains(&first.as_str()));
        let mut is_module = false;
        for part in parts {
            at.push(part.to_owned());
            if !modules.contains_key(&at) {
                at.pop();
                break;
            }
            is_module = true;
        }
        // What a path begins with may be another crate, or a name of this file.
        if at != *module && (is_module || !begins_here) {
            all.insert(at);
        }
    }
    all
}

/// Code without `(in crate::tc)` and the like.
fn without_visibility(code: &str) -> String {
    let mut parts = code.split("pub(in ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "pub " + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// All paths of two parts and more, those in braces written out.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    // What precedes each brace that is open, and the path so far.
    let (mut outer, mut path): (Vec<Vec<String>>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut word, mut joined) = (String::new(), false);
    let letters: Vec<char> = code.chars().chain([' ']).collect();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        at += 1;
        if letter.is_alphanumeric() || letter == '_' {
            word.push(letter);
            continue;
        }
        if !word.is_empty() {
            if !joined {
                path = outer.last().cloned().unwrap_or_default();
            }
            path.push(std::mem::take(&mut word));
            joined = false;
        }
        if letter == ':' && letters.get(at) == Some(&':') {
            at += 1;
            joined = true;
            continue;
        }
        if letter == '{' && joined {
            outer.push(std::mem::take(&mut path));
        } else {
            if path.len() > 1 {
                found.push(std::mem::take(&mut path));
            }
            path.clear();
            if letter == '}' {
                outer.pop();
            } else if letter == '{' {
                // A block: what is in it begins again.
                outer.push(Vec::new());
            }
        }
        joined = false;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> BTreeMap<Module, String> {
        files.iter().map(|(path, text)| (module_of(Path::new(path)), (*text).to_owned())).collect()
    }

    #[test]
    fn a_circle_is_found_whatever_it_goes_by() {
        let there = ("a.rs", "use crate::b::{self, inner::{X, Y}};");
        assert!(
            circles(&modules(&[there, ("b/mod.rs", "mod inner;"), ("b/inner.rs", "fn f() {}")])).is_empty()
        );
        for back in
            ["use crate::a;", "fn f() { crate::a::g() }", "use super::super::a::Z;", "use crate::{a::Z, c};"]
        {
            let found = circles(&modules(&[there, ("b/mod.rs", "mod inner;"), ("b/inner.rs", back)]));
            assert_eq!(found, [["a", "b::inner"]], "{back}");
        }
    }

    #[test]
    fn what_a_child_takes_from_its_parent_is_a_circle_once_the_parent_uses_it() {
        let child = ("b/inner.rs", "use super::Shared;");
        assert!(circles(&modules(&[("b/mod.rs", "mod inner; struct Shared;"), child])).is_empty());
        let found = circles(&modules(&[("b/mod.rs", "mod inner; use inner::Used; struct Shared;"), child]));
        assert_eq!(found, [["b", "b::inner"]]);
    }

    #[test]
    fn tests_comments_and_other_crates_do_not_count() {
        let a = ("a.rs", "use crate::b::X;");
        let seen = "pub(in crate::a) fn f() {}";
        for harmless in
            ["// use crate::a::Y;\n", "use other::a::Y;", "#[cfg(test)] mod tests { use crate::a::Y; }", seen]
        {
            assert!(circles(&modules(&[a, ("b.rs", harmless)])).is_empty(), "{harmless}");
        }
    }
}

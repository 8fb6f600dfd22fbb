//! Every target over its kept corpus, and over mutations of it: the short run.

use std::fs;
use std::path::Path;

use tidegate_fuzz::{Mutator, TARGETS};

/// Mutations of each target.
const MUTATIONS: usize = 2_000;

fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            (path.display().to_string(), fs::read(&path).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

/// Runs a target; a panic names the input, so that it can be kept.
fn run(target: &tidegate_fuzz::FuzzTarget, what: &str, bytes: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| (target.run)(bytes)) {
        let path = std::env::temp_dir().join(format!("tidegate-fuzz-{}", target.name));
        let _ = fs::write(&path, bytes);
        eprintln!("{}: {what} panics; the bytes are in {}", target.name, path.display());
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn every_target_has_a_corpus_and_takes_it() {
    for target in TARGETS {
        let files = corpus(target.name);
        assert!(!files.is_empty(), "{}: no corpus", target.name);
        files.iter().for_each(|(path, bytes)| run(target, path, bytes));
    }
}

#[test]
fn every_target_takes_mutations_of_its_corpus() {
    for target in TARGETS {
        let files = corpus(target.name);
        let mut mutator = Mutator::new(target.name.len() as u64);
        for number in 0..MUTATIONS {
            let (path, input) = &files[number % files.len()];
            let (_, other) = &files[(number / files.len() + number) % files.len()];
            run(target, &format!("mutation {number} of {path}"), &mutator.mutate(input, other));
        }
    }
}

#[test]
fn every_corpus_has_a_target() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in fs::read_dir(dir).expect("a corpus") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(tidegate_fuzz::named(&name).is_some(), "corpus/{name}: no target of that name");
    }
}

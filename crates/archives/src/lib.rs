#![forbid(unsafe_code)]
//! For tests: the archives of recorded runs of a real kernel, and what differs from them.
//!
//! A recording is a folder of texts (`script.tc`, `schedule.csv`, `egress.csv`, …); an archive holds many.
//! Each crate that such runs protect carries out those that it has the parts for, and counts them
//! ([`identical`]).

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The files of a recording, by name.
pub type RecordingFiles = BTreeMap<String, String>;

/// The recordings of an archive, by name: those with commands that need nothing from outside.
///
/// # Panics
/// When there is no such archive, or it is none.
pub fn recordings(archive: &str) -> BTreeMap<String, RecordingFiles> {
    let mut all: BTreeMap<String, RecordingFiles> = BTreeMap::new();
    for entry in opened(archive).entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").into_owned();
        let name = |path: Option<&std::ffi::OsStr>| path.unwrap_or_default().to_string_lossy().into_owned();
        let mut text = String::new();
        if entry.header().entry_type().is_file() && entry.read_to_string(&mut text).is_ok() {
            let folder = name(path.parent().and_then(Path::file_name));
            all.entry(folder).or_default().insert(name(path.file_name()), text);
        }
    }
    // Some need a table of netem's that iproute2 installs.
    let complete = |script: &String| !script.contains("distribution experimental");
    all.retain(|_, files| files.get("script.tc").is_some_and(complete));
    all
}

/// The text files of an archive, by their names without endings.
///
/// # Panics
/// When there is no such archive, or a file is no text.
pub fn texts(archive: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in opened(archive).entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        if entry.header().entry_type().is_file() {
            let path = entry.path().expect("a path").into_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("a text");
            all.insert(path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), text);
        }
    }
    all
}

fn opened(archive: &str) -> tar::Archive<GzDecoder<File>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../cli/tests/data/{archive}.tar.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    tar::Archive::new(GzDecoder::new(file))
}

/// Where a text differs from the kernel's, by its first line that does; `None`: nowhere.
pub fn first_line(name: &str, kernel: &str, ours: &str) -> Option<String> {
    if kernel == ours {
        return None;
    }
    let found = kernel.lines().zip(ours.lines()).enumerate().find(|(_, (kernel, ours))| kernel != ours);
    Some(match found {
        Some((line, (kernel, ours))) => format!("{name}:{}: kernel `{kernel}`, tidegate `{ours}`", line + 1),
        None => format!("{name}: kernel {} lines, tidegate {}", kernel.lines().count(), ours.lines().count()),
    })
}

/// `drops.csv` without its heading and its last column: the kernel's function that freed a packet is for
/// people.
pub fn without_place(drops: &str) -> String {
    let without = |line: &str| format!("{}\n", line.rsplit_once(',').map_or(line, |(rest, _)| rest));
    drops.lines().skip(1).map(without).collect()
}

/// Compares recordings of some archives with `difference`: `Err` where it needs more than there is, `None`
/// where it is as recorded. As many as the table lists must be carried out.
///
/// # Panics
/// When one differs, or when more or fewer were carried out: a recording needs more, or less, than it did.
pub fn identical<More>(
    archives: &[(&str, usize)],
    mut difference: impl FnMut(&RecordingFiles) -> Result<Option<String>, More>,
) {
    let (mut wrong, mut counts) = (String::new(), Vec::new());
    for (archive, _) in archives {
        let mut waiting = 0;
        for (name, files) in recordings(archive) {
            match difference(&files) {
                Err(_) => continue,
                Ok(None) => {}
                Ok(Some(difference)) => wrong += &format!("{archive}/{name}: {difference}\n"),
            }
            waiting += 1;
        }
        counts.push((*archive, waiting));
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(counts, archives);
}

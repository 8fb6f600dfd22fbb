//! Files that a program may write to: their content.

use std::fs;
use std::io::Read;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// The most files that are read, and the most bytes of each.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 256;

/// The files that the patterns name, with their content (at most 256 bytes, ends trimmed), in the order of
/// the names.
///
/// A pattern is an absolute path in which one part may be `*`: any entry of that directory. What cannot be
/// read is left out.
#[must_use]
pub fn read(patterns: &[String]) -> Vec<(String, String)> {
    let paths = patterns.iter().flat_map(|pattern| match pattern.split_once("/*/") {
        None => vec![pattern.clone()],
        Some((dir, rest)) => {
            let mut names: Vec<String> = fs::read_dir(dir)
                .into_iter()
                .flatten()
                .flatten()
                .take(MAX_FILES)
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect();
            names.sort();
            names.into_iter().map(|name| format!("{dir}/{name}/{rest}")).collect()
        }
    });
    paths.take(MAX_FILES).filter_map(|path| content(Path::new(&path)).map(|text| (path, text))).collect()
}

fn content(path: &Path) -> Option<String> {
    // What a program put there in its place may be a link to what it may not read, or a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_entry_and_missing_ones_are_left_out() {
        let dir = std::env::temp_dir().join(format!("tidegate-watch-{}", std::process::id()));
        for name in ["b", "a"] {
            fs::create_dir_all(dir.join(name)).expect("a directory");
            fs::write(dir.join(name).join("mtu"), format!("{name}\n")).expect("a file");
        }
        fs::create_dir_all(dir.join("c")).expect("a directory");
        for (name, target) in [("d", "/proc/self/environ"), ("e", "/dev/zero")] {
            fs::create_dir_all(dir.join(name)).expect("a directory");
            std::os::unix::fs::symlink(target, dir.join(name).join("mtu")).expect("a link");
        }
        let root = dir.display();
        let found = read(&[format!("{root}/*/mtu"), format!("{root}/none")]);
        let wanted = [(format!("{root}/a/mtu"), "a".to_owned()), (format!("{root}/b/mtu"), "b".to_owned())];
        assert_eq!(found, wanted);
        fs::remove_dir_all(&dir).expect("it is ours");
    }
}

//! Settings of network links for which the kernel makes no link: files in memory replace them.
//!
//! Scripts write to `/proc/sys/net/ipv4/conf/eth0/rp_filter` and the like. Where no kind of link can be made
//! without loading a module, those directories do not exist; here they get the kernel's defaults, and keep
//! what is written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::mounts;

/// Directories with one directory for each link.
const PER_LINK: [&str; 2] = ["/proc/sys/net/ipv4/conf", "/proc/sys/net/ipv6/conf"];
/// The link whose settings new links get.
const DEFAULT: &str = "default";
/// The most links, and settings of one, that are copied.
const MAX_LINKS: usize = 256;
const MAX_SETTINGS: usize = 512;

/// A link's settings: file names with what is in them.
type Settings = Vec<(PathBuf, Vec<u8>)>;

/// Covers the settings of all links with copies in memory, those of `missing` among them.
///
/// # Errors
/// The step that failed; a kernel without the directories has nothing to cover.
pub(crate) fn cover_missing(missing: &[&str]) -> io::Result<()> {
    for dir in PER_LINK.map(Path::new).into_iter().filter(|dir| dir.is_dir()) {
        let mut links: Vec<(PathBuf, Settings)> = Vec::new();
        for entry in fs::read_dir(dir)?.flatten().take(MAX_LINKS) {
            links.push((entry.file_name().into(), settings(&entry.path())?));
        }
        let default =
            links.iter().find(|(name, _)| name == Path::new(DEFAULT)).map(|(_, settings)| settings.clone());
        let missing = missing
            .iter()
            .take(MAX_LINKS)
            .map(|name| (PathBuf::from(name), default.clone().unwrap_or_default()));
        links.extend(missing.collect::<Vec<_>>());
        mounts::frame(dir)?;
        for (name, settings) in links {
            fs::create_dir_all(dir.join(&name))?;
            for (file, content) in settings {
                fs::write(dir.join(&name).join(file), content)?;
            }
        }
    }
    Ok(())
}

/// What can be read of a link's settings.
fn settings(dir: &Path) -> io::Result<Settings> {
    let files = fs::read_dir(dir)?.flatten().take(MAX_SETTINGS);
    Ok(files.filter_map(|file| Some((file.file_name().into(), fs::read(file.path()).ok()?))).collect())
}

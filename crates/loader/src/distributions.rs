//! netem's distributions that cannot be computed, from the files that iproute2 installs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tidegate_policy::NetemDistribution;

/// Where distributions of Linux install them.
const PLACES: [&str; 3] = ["/usr/lib/tc", "/usr/lib/x86_64-linux-gnu/tc", "/usr/share/tc"];
/// Those that no formula gives.
const NAMES: [&str; 1] = ["experimental"];

/// The distributions that are installed here, by name.
pub fn installed() -> Arc<BTreeMap<String, NetemDistribution>> {
    static TABLES: OnceLock<Arc<BTreeMap<String, NetemDistribution>>> = OnceLock::new();
    let all = || NAMES.into_iter().filter_map(|name| Some((name.to_owned(), read(name)?))).collect();
    TABLES.get_or_init(|| Arc::new(all())).clone()
}

/// The files that they are in.
pub fn installed_files() -> Vec<PathBuf> {
    let found = |name: &str| {
        PLACES.iter().map(|place| PathBuf::from(format!("{place}/{name}.dist"))).find(|path| path.is_file())
    };
    NAMES.into_iter().filter_map(found).collect()
}

fn read(name: &str) -> Option<NetemDistribution> {
    let text =
        PLACES.iter().find_map(|place| std::fs::read_to_string(format!("{place}/{name}.dist")).ok())?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let values: Option<Vec<i16>> =
        lines.flat_map(str::split_whitespace).map(|word| word.parse().ok()).collect();
    values.filter(|values| !values.is_empty()).map(|values| NetemDistribution(values.into()))
}

//! Scenarios that are part of the program, by name: those of RFC 7928, with which reviewers compare active
//! queue management.

/// A scenario that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryScenario {
    /// `rfc7928/bursts`: the name of its group and its own.
    pub name: &'static str,
    /// Its text, as of a file.
    pub text: &'static str,
}

macro_rules! library {
    ($($name:literal),* $(,)?) => {
        &[$(LibraryScenario {
            name: $name,
            text: include_str!(concat!("../library/", $name, ".toml")),
        }),*]
    };
}

/// All of them, in the order of the RFC.
pub const LIBRARY: &[LibraryScenario] = library![
    "rfc7928/same-window",
    "rfc7928/different-windows",
    "rfc7928/aggressive",
    "rfc7928/unresponsive",
    "rfc7928/rtt-fairness",
    "rfc7928/bursts",
    "rfc7928/congestion",
    "rfc7928/varying-congestion",
    "rfc7928/varying-capacity",
    "rfc7928/flapping-capacity",
    "rfc7928/traffic-mix",
    "rfc7928/both-ways",
    "rfc7928/two-queues",
];

/// The one with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static LibraryScenario> {
    LIBRARY.iter().find(|scenario| scenario.name == name)
}

/// The names of those in the group that a name names (`rfc7928/x`: all of `rfc7928`).
pub fn beside(name: &str) -> impl Iterator<Item = &'static str> {
    let group = name.split_once('/').map_or(name, |(group, _)| group).to_owned();
    let is_beside = move |known: &&str| known.split_once('/').is_some_and(|(of, _)| of == group);
    LIBRARY.iter().map(|scenario| scenario.name).filter(is_beside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoFiles, parse};
    use std::path::Path;

    /// Each is a scenario that needs no other file, and compares the same six kinds of queue.
    #[test]
    fn all_are_whole() {
        for LibraryScenario { name, text } in LIBRARY {
            let scenario = parse(Path::new(name), text, &NoFiles)
                .unwrap_or_else(|wrong| panic!("{}", wrong.shown(Path::new(name), text)));
            let policies: Vec<&str> = scenario.policies.iter().map(|policy| policy.name.as_str()).collect();
            assert_eq!(policies, ["fifo", "red", "codel", "pie", "fq_codel", "cake"], "{name}");
            assert!(scenario.source.is_some_and(|source| source.starts_with("RFC 7928, section")), "{name}");
        }
        assert_eq!(beside("rfc7928/burst").count(), LIBRARY.len());
        assert_eq!((find("rfc7928/bursts").is_some(), beside("x.toml").count()), (true, 0));
    }
}

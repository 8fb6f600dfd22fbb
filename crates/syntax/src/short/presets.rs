//! Policies to begin with. Each is one queue in each direction unless classes are asked for: simulated beside
//! uploads and downloads, one cake keeps calls, logins and look-ups as short as each preset's classes
//! (docs/policy.md has the table).

use super::policy::{Fair, Queue, Rank};

/// A preset: the file that names it overrides what it wants otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The preset's name, for `preset = "…"`.
    pub name: &'static str,
    /// Whom it is for, in one line.
    pub about: &'static str,
    /// By what the link is shared.
    pub fair: Fair,
    /// The preset's classes, where classes are asked for.
    pub classes: &'static [PresetClass],
}

/// A class of a preset.
#[derive(Clone, Copy, Debug)]
pub struct PresetClass {
    /// The class's name.
    pub name: &'static str,
    /// Before or behind the others.
    pub rank: Rank,
    /// What belongs to it.
    pub apps: &'static [&'static str],
    /// And by DSCP.
    pub dscp: &'static [u8],
    /// Its guaranteed rate, in per cent of the link.
    pub share: u32,
    /// Connections that have carried so many bytes.
    pub after: Option<u64>,
    /// How its packets wait.
    pub queue: Queue,
}

const fn first(name: &'static str, apps: &'static [&'static str], share: u32) -> PresetClass {
    PresetClass { name, rank: Rank::First, apps, dscp: &[], share, after: None, queue: Queue::Short }
}

const fn middle(name: &'static str, apps: &'static [&'static str], share: u32) -> PresetClass {
    PresetClass { name, rank: Rank::Middle, apps, dscp: &[], share, after: None, queue: Queue::Fair }
}

const fn last(name: &'static str, apps: &'static [&'static str], after: Option<u64>) -> PresetClass {
    PresetClass { name, rank: Rank::Last, apps, dscp: &[8, 1], share: 5, after, queue: Queue::Fair }
}

/// All presets.
pub const PRESETS: [Preset; 5] = [
    Preset {
        name: "home",
        about: "calls, games and pages stay quick beside long transfers; fair sharing between hosts",
        fair: Fair::Host,
        classes: &[
            first("calls", &["voip", "rtp", "zoom", "teams", "meet", "facetime"], 15),
            first("games", &["games", "minecraft"], 10),
            middle("web", &["web", "ssh"], 30),
            last("bulk", &["torrent", "backup", "syncthing"], Some(20_000_000)),
        ],
    },
    Preset {
        name: "voip",
        about: "calls stay quick beside everything else",
        fair: Fair::Flow,
        classes: &[first("calls", &["voip", "rtp", "sip"], 30), last("bulk", &["torrent", "backup"], None)],
    },
    Preset {
        name: "games",
        about: "games and calls stay quick beside everything else; fair sharing between hosts",
        fair: Fair::Host,
        classes: &[
            first("games", &["games", "minecraft", "discord"], 20),
            first("calls", &["voip", "rtp", "zoom", "teams", "meet", "facetime"], 15),
            last("bulk", &["torrent", "backup", "steam"], Some(20_000_000)),
        ],
    },
    Preset {
        name: "server",
        about: "a server: logins and pages stay quick beside copies",
        fair: Fair::Flow,
        classes: &[
            first("logins", &["ssh", "vpn"], 10),
            middle("web", &["web"], 50),
            middle("mail", &["mail"], 10),
            last("copies", &["backup", "syncthing"], None),
        ],
    },
    Preset {
        name: "sqm",
        about: "DSCPs choose, as in SQM's simple.qos: EF and similar first, CS1 last",
        fair: Fair::Flow,
        classes: &[
            PresetClass {
                name: "priority",
                rank: Rank::First,
                apps: &[],
                dscp: &[46, 44, 48, 56, 40],
                share: 30,
                after: None,
                queue: Queue::Fair,
            },
            PresetClass {
                name: "background",
                rank: Rank::Last,
                apps: &[],
                dscp: &[8, 1],
                share: 10,
                after: None,
                queue: Queue::Fair,
            },
        ],
    },
];

/// The preset of that name.
pub fn preset_named(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name.eq_ignore_ascii_case(name))
}

//! plug: packets wait until a command lets them go.

use super::name::Kind;
use crate::spec::error_style::ErrorStyle;
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};

/// plug: the last command of a line holds. In a dump the kernel reports nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlugParams {
    /// What to do; when it is made, nothing but `limit` is looked at.
    pub command: Option<PlugCommand>,
    /// Bytes that may wait: for [`PlugCommand::Limit`], and when it is made. 0 where none was given.
    pub limit: u32,
}

/// An operation on a plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugCommand {
    /// Plug it: packets since the last plug are an epoch that a release sends.
    Block,
    /// Let the last epoch that was closed by a plug go.
    Release,
    /// Let everything go, until it is plugged again.
    ReleaseIndefinite,
    /// Only set the limit.
    Limit,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("block", ValueKind::Flag, "this", "close an epoch, and hold later packets"),
    OptionSpec::exact("release", ValueKind::Flag, "", "send the epoch that the last `block` closed"),
    OptionSpec::exact("release_indefinite", ValueKind::Flag, "", "send everything until the next `block`"),
    OptionSpec::exact(
        "limit",
        ValueKind::Size,
        "txqueuelen times the largest frame",
        "maximum backlog in bytes",
    ),
];

const VOICE: ErrorStyle = ErrorStyle {
    illegal: "Illegal value for \"{name}\": \"{text}\"",
    unknown: "plug: unknown parameter \"{word}\"",
    ..ErrorStyle::PLAIN
};

pub(super) const PLUG: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    error_style: VOICE,
    ..KindSpec::new(Kind::Plug, "plug", "holds packets until they are released, an epoch at a time")
};

/// What a dump does not report.
pub(super) const UNTOLD: &str = "how much may wait in it, and whether it is plugged";

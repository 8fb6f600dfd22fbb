//! hfsc: service curves in a tree.

use super::name::Kind;
use super::row::{Changes, ClassLayout, Filters};
use crate::spec::error_style::{ErrorStyle, Help};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};

/// The options of hfsc, the hierarchical fair service curve (Stoica, Zhang, Ng 1997; tc-hfsc(7)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HfscParams {
    /// Minor number of the class for what nothing classifies; 0 = none, and such packets are dropped.
    pub default: u16,
}

/// A class of hfsc. Of the three curves `None` and a curve of two zero slopes mean the same: there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HfscClassParams {
    /// Real time: what the class is given whatever the others want.
    pub rt: Option<ServiceCurve>,
    /// Link sharing: its part of what is left.
    pub ls: Option<ServiceCurve>,
    /// Upper limit of what it gets by link sharing.
    pub ul: Option<ServiceCurve>,
}

/// A curve of two straight pieces: bytes of service over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceCurve {
    /// Slope of the first piece, bytes per second.
    pub m1: u32,
    /// Where the first piece ends, µs.
    pub d_us: u32,
    /// Slope of the second piece, bytes per second.
    pub m2: u32,
}

const OPTIONS: &[OptionSpec] = &[OptionSpec::short(
    "default",
    ValueKind::Hex16,
    "none: drop",
    "class (hexadecimal minor) of packets that no filter matches",
)
.once("default")];

const CLASS: &[OptionSpec] = &[
    OptionSpec::short("rt", ValueKind::Curve, "none", "real-time curve: the guaranteed service"),
    OptionSpec::short("ls", ValueKind::Curve, "none", "link-sharing curve: the class's share of the rest"),
    OptionSpec::short("sc", ValueKind::Curve, "none", "one curve for both rt and ls"),
    OptionSpec::short("ul", ValueKind::Curve, "none", "upper limit of link sharing; needs ls or sc"),
];

const VOICE: ErrorStyle = ErrorStyle {
    illegal: "{more}HFSC: Illegal \"{name}\"",
    unknown: "HFSC: What is \"{word}\" ?",
    twice: "HFSC: Double \"{name}\"",
    help: Help::Begun,
    ..ErrorStyle::PLAIN
};

pub(super) const HFSC: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    class: Some(CLASS),
    classes: ClassLayout::Made,
    filters: Filters::OfClassesToo,
    changes: Changes::InPlace,
    error_style: VOICE,
    keeps_rate: true,
    ..KindSpec::new(
        Kind::Hfsc,
        "hfsc",
        "hierarchical fair service curves: a sure delay and a share, set apart",
    )
};

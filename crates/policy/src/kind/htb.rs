//! htb: token buckets that borrow.

use super::name::Kind;
use super::row::{Ahead, ClassLayout, Filters};
use crate::rate::{RateSpec, Ticks};
use crate::spec::error_style::{ErrorStyle, Help};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of htb, the hierarchical token bucket (Devera 2002; tc-htb(8)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HtbParams {
    /// The minor number of the class for packets that nothing classifies; 0: none, and they leave unshaped.
    pub default: u32,
    /// A class's quantum is its rate in bytes per second divided by this, unless given.
    pub r2q: u32,
    /// Packets that may wait unclassified. Default: the device's transmit queue length.
    pub direct_qlen: Option<u32>,
}

impl Default for HtbParams {
    fn default() -> HtbParams {
        HtbParams { default: 0, r2q: 10, direct_qlen: None }
    }
}

/// The options of a class of htb.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HtbClassParams {
    /// The guaranteed rate.
    pub rate: RateSpec,
    /// The rate up to which it may borrow from its parent.
    pub ceil: RateSpec,
    /// Its bucket (`burst`): how long it takes at `rate`, in ticks (64 ns).
    pub buffer: Ticks,
    /// The bucket of its ceiling (`cburst`): how long it takes at `ceil`, in ticks (64 ns).
    pub cbuffer: Ticks,
    /// Bytes that it sends in its turn among classes of its priority; 0: its rate divided by
    /// [`HtbParams::r2q`]. In a dump: the value in force.
    pub quantum: u32,
    /// Its priority, 0 (served first) to 7: among classes that need not borrow, and then among those that do.
    pub prio: u32,
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::short(
        "default",
        ValueKind::Hex,
        "0: send at once, unshaped",
        "class (hexadecimal minor) of packets that no filter matches",
    ),
    OptionSpec::short(
        "direct_qlen",
        ValueKind::Decimal,
        "the device's txqueuelen",
        "maximum backlog of unshaped packets",
    ),
    OptionSpec::short("debug", ValueKind::Ignored, "", "accepted, without effect"),
    OptionSpec::short(
        "r2q",
        ValueKind::Decimal,
        "10",
        "a class's quantum is its rate in bytes per second divided by this",
    ),
    OptionSpec::short("offload", ValueKind::Flag, "", "offload to hardware; simulated devices cannot"),
];

const CLASS: &[OptionSpec] = &[
    OptionSpec::short("prio", ValueKind::Decimal, "0", "priority for borrowing, 0 (first) to 7"),
    OptionSpec::short(
        "mtu",
        ValueKind::Decimal,
        "1600",
        "largest packet, for the default of burst and cburst only",
    ),
    OptionSpec::short("mpu", ValueKind::Decimal16, "0", "minimum size that a packet is charged in bytes"),
    OptionSpec::short("overhead", ValueKind::Decimal16, "0", "bytes that the link adds to each packet"),
    OptionSpec::short(
        "linklayer",
        ValueKind::LinkLayer,
        "ethernet",
        "link layer: whole frames, or ATM cells",
    ),
    OptionSpec::short(
        "quantum",
        ValueKind::Decimal,
        "rate/r2q, 1000 to 200000",
        "bytes served per round when borrowing",
    ),
    OptionSpec::short("burst", ValueKind::SizeCell, "rate/hz + mtu", "bucket size of rate, in bytes")
        .or(&["buffer", "maxburst"]),
    OptionSpec::short("cburst", ValueKind::SizeCell, "ceil/hz + mtu", "bucket size of ceil, in bytes")
        .or(&["cbuffer", "cmaxburst"]),
    OptionSpec::exact("ceil", ValueKind::Rate, "rate", "maximum rate, borrowing included").once("ceil"),
    OptionSpec::exact("rate", ValueKind::Rate, "", "the guaranteed rate of the class").once("rate"),
];

const VOICE: ErrorStyle =
    ErrorStyle { illegal_usage: true, as_typed: true, help: Help::InClasses, ..ErrorStyle::PLAIN };

pub(super) const HTB: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    class: Some(CLASS),
    error_style: VOICE,
    classes: ClassLayout::Made,
    filters: Filters::OfClassesToo,
    keeps_rate: true,
    ..KindSpec::new(
        Kind::Htb,
        "htb",
        "hierarchical token bucket: classes with a sure rate that borrow what others leave",
    )
};

pub(super) fn ahead(params: &HtbParams) -> Vec<Ahead> {
    vec![Ahead::Unserved { queue: "direct queue", limit: params.direct_qlen.unwrap_or(1000) }]
}

//! The table of the size table.

use super::table::{OptionSpec, ValueKind};

/// The size table that precedes the kind of a root qdisc: `stab … htb …`.
pub const STAB: &[OptionSpec] = &[
    OptionSpec::short("mtu", ValueKind::Decimal, "2047", "longest packet the table is made for")
        .once("mtu")
        .blamed("invalid mtu"),
    OptionSpec::short("mpu", ValueKind::Decimal, "0", "minimum size that a packet is charged in bytes")
        .once("mpu")
        .blamed("invalid mpu"),
    OptionSpec::short(
        "overhead",
        ValueKind::Signed,
        "0",
        "bytes that the link adds to each packet; may be negative",
    )
    .once("overhead")
    .blamed("invalid overhead"),
    OptionSpec::short("tsize", ValueKind::Decimal, "512", "entries of the table")
        .once("tsize")
        .blamed("invalid table size"),
    OptionSpec::short(
        "linklayer",
        ValueKind::LinkLayer,
        "ethernet",
        "link layer: whole frames, or ATM cells",
    )
    .once("linklayer")
    .blamed("invalid linklayer"),
];

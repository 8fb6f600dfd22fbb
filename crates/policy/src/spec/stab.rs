//! The table of the size table.

use super::table::{OptionSpec, Takes};

/// The size table that stands before the kind of a root qdisc: `stab … htb …`.
pub const STAB: &[OptionSpec] = &[
    OptionSpec::short("mtu", Takes::Decimal, "2047", "longest packet the table is made for")
        .once("mtu")
        .blamed("invalid mtu"),
    OptionSpec::short("mpu", Takes::Decimal, "0", "least bytes that a packet counts")
        .once("mpu")
        .blamed("invalid mpu"),
    OptionSpec::short(
        "overhead",
        Takes::Signed,
        "0",
        "bytes that the link adds to each packet; may be negative",
    )
    .once("overhead")
    .blamed("invalid overhead"),
    OptionSpec::short("tsize", Takes::Decimal, "512", "entries of the table")
        .once("tsize")
        .blamed("invalid table size"),
    OptionSpec::short(
        "linklayer",
        Takes::LinkLayer,
        "ethernet",
        "how the link cuts packets: whole, or in ATM cells",
    )
    .once("linklayer")
    .blamed("invalid linklayer"),
];

//! Kinds of links: what they add to each packet.
//!
//! Overheads are counted from the IP packet, as CAKE's keywords do (tc-cake(8)); ATM's cells come on top,
//! PTM's 64/65 coding too.

/// A kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkKind {
    /// Its name in a policy.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Bytes beside the IP packet.
    pub overhead: u32,
    /// Bytes that a frame has at least.
    pub mpu: u32,
    /// Frames travel in ATM cells.
    pub atm: bool,
    /// One byte of 65 is the line's own.
    pub ptm: bool,
}

const fn kind(name: &'static str, overhead: u32, mpu: u32, about: &'static str) -> LinkKind {
    LinkKind { name, about, overhead, mpu, atm: false, ptm: false }
}

const fn atm(name: &'static str, overhead: u32, about: &'static str) -> LinkKind {
    LinkKind { name, about, overhead, mpu: 0, atm: true, ptm: false }
}

const fn ptm(name: &'static str, overhead: u32, about: &'static str) -> LinkKind {
    LinkKind { name, about, overhead, mpu: 0, atm: false, ptm: true }
}

/// All that are known.
pub const LINKS: [LinkKind; 18] = [
    kind("none", 0, 0, "frames as the device counts them, with Ethernet's 14 bytes"),
    kind("ethernet", 38, 84, "Ethernet to the provider: preamble, header, checksum and gap"),
    kind("ethernet vlan", 42, 84, "the same with a VLAN tag"),
    kind("fibre", 38, 84, "fibre with Ethernet framing"),
    kind("fibre pppoe", 50, 96, "the same with PPPoE and a VLAN tag"),
    kind("docsis", 18, 64, "cable: the provider's shaper counts Ethernet frames"),
    kind("lte", 20, 0, "mobile networks: a guess, their overhead varies"),
    ptm("vdsl2", 22, "VDSL2 without PPPoE"),
    ptm("vdsl2 vlan", 26, "the same with a VLAN tag"),
    ptm("vdsl2 pppoe", 30, "VDSL2 with PPPoE"),
    ptm("vdsl2 pppoe vlan", 34, "the same with a VLAN tag"),
    atm("adsl pppoa-vcmux", 10, "ADSL, PPPoA VC-Mux"),
    atm("adsl pppoa-llc", 14, "ADSL, PPPoA LLC"),
    atm("adsl pppoe-vcmux", 32, "ADSL, PPPoE VC-Mux"),
    atm("adsl pppoe-llc", 40, "ADSL, PPPoE LLC: the common one"),
    atm("adsl bridged-vcmux", 24, "ADSL, bridged VC-Mux"),
    atm("adsl bridged-llc", 32, "ADSL, bridged LLC"),
    atm("adsl", 48, "ADSL of unknown kind: at least as much as any"),
];

/// Other names of kinds, as people call them.
pub const OTHER_NAMES: [(&str, &str); 2] = [("cable", "docsis"), ("fiber", "fibre")];

/// The kind of that name, blanks and case aside.
///
/// ```
/// use tidegate_syntax::short::links::link_named;
///
/// assert_eq!(link_named("Cable").map(|kind| kind.name), Some("docsis"));
/// ```
pub fn link_named(name: &str) -> Option<&'static LinkKind> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let given = plain(name);
    let wanted =
        OTHER_NAMES.iter().find(|(other, _)| *other == given).map_or(given.as_str(), |(_, name)| name);
    LINKS.iter().find(|kind| kind.name == wanted)
}

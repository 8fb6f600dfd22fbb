//! How lines code what they carry.

/// How a line codes what it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// Byte by byte: Ethernet, cable, fibre, most shapers.
    #[default]
    Bytes,
    /// In PTM's 64/65-byte coding: VDSL2.
    Ptm,
    /// In ATM cells, 53 bytes for each 48: ADSL.
    Atm,
    /// In steps of this many bytes: a shaper with a table of rates, which takes each size for the largest of
    /// its step.
    Steps(u32),
}

impl Coding {
    /// All that are tried: the simplest first.
    pub const ALL: [Coding; 8] = [
        Coding::Bytes,
        Coding::Ptm,
        Coding::Atm,
        Coding::Steps(4),
        Coding::Steps(8),
        Coding::Steps(16),
        Coding::Steps(32),
        Coding::Steps(64),
    ];

    /// Bytes on the wire for so many.
    pub fn on_wire(self, bytes: u32) -> u32 {
        match self {
            Coding::Bytes => bytes,
            Coding::Ptm => bytes + bytes.div_ceil(64),
            Coding::Atm => bytes.div_ceil(48) * 53,
            Coding::Steps(step) => bytes.next_multiple_of(step.max(1)),
        }
    }

    /// Its name in a document.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Bytes => "bytes",
            Coding::Ptm => "ptm",
            Coding::Atm => "atm",
            Coding::Steps(_) => "steps",
        }
    }
}

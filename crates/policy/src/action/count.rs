//! Actions that tell others of packets, who are not there: they count.

use super::Control;

/// simple: the kernel writes a line into its log for each packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// What the line says; `None`: the action must be there already.
    pub text: Option<String>,
    /// How things go on.
    pub control: Control,
}

/// sample: some packets are shown to who listens to a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// One packet in so many, by draws; `None` beside a group of `None`: the action must be there already.
    pub rate: Option<u32>,
    /// Who listens.
    pub group: Option<u32>,
    /// So many of its first octets are shown; otherwise all.
    pub octets: Option<u32>,
    /// How things go on.
    pub control: Control,
}

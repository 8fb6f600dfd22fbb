//! Actions that notify programs outside the model (`sample`, `nflog`): here they only count.

use super::control::Control;
use alloc::string::String;

/// simple: the kernel writes a line into its log for each packet (tc-simple(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// The text of the line; `None`: the action must exist already.
    pub text: Option<String>,
    /// How the packet continues after this action.
    pub control: Control,
}

/// sample: some packets are shown to the listeners of a psample group (tc-sample(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleAction {
    /// One packet in so many, by draws; `None` beside a group of `None`: the action must be there already.
    pub rate: Option<u32>,
    /// The number of the psample group.
    pub group: Option<u32>,
    /// So many of a packet's first bytes are shown (`trunc`); `None`: all.
    pub trunc_size: Option<u32>,
    /// How the packet continues after this action.
    pub control: Control,
}
